"""What errors say in Python: no word of C++ or of the binding, whatever a function is given."""
import os
import random
import re
import signal
import subprocess
import sys
import types

import berth as tf
import numpy as np
import pytest

MODULES = ["", "data", "keras", "distribute", "debugging", "train", "ragged", "sparse", "nest", *(
    f"keras.{n}" for n in ("layers", "losses", "metrics", "optimizers", "initializers", "callbacks", "utils",
                           "applications", "activations", "regularizers", "constraints"))]
# They end the program, change it for other tests, or wait for others.
LEFT_OUT = re.compile("exit|quit|download|get_file|load_data|^(set|disable|enable|start|clear|reset|write|save)_|"
                      "connect|load_op_library|^start$|sleep|py_function|numpy_function|trace_|^print$")
CPP = re.compile(r"::|\bk[A-Z][a-z]\w*|\b(to_vector|copy_to|item|int64_t|nullptr|nanobind)\b|\.(cc|h):\d+|"
                 r"(?<!__init__\(\): )incompatible function|\bstd\.|\{\.|\.attr\(")
# Names of Python's own, and the constructors of classes that the binding makes, whose types it lists.
OF_PYTHON = re.compile(r"object has no attribute 'item'|item assignment|__init__\(\): incompatible function")
SHARE = 1 if os.environ.get("BERTH_WHOLE") else 12


def functions():
    """(path, function) of the package, each once."""
    found, seen = [], set()

    def walk(module, path):
        if id(module) in seen:
            return
        seen.add(id(module))
        for name in getattr(module, "__all__", sorted(vars(module))):
            value = getattr(module, name)
            if name.startswith("_") or LEFT_OUT.search(name):
                continue
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("berth."):
                    walk(value, f"{path}.{name}")
            elif callable(value):
                found.append((f"{path}.{name}", value))

    for name in MODULES:
        module = tf
        for part in name.split(".") if name else ():
            module = getattr(module, part)
        walk(module, f"tf.{name}".rstrip("."))
    return found


def argument_lists():
    f = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    text = tf.constant(["a"])
    return [(), (None,), ("text",), (object(),), (3.7,), (-1,), ([],), ([[1], [2, 3]],), (f,), (f, f), (f, "x"),
            (f, 3.5), (f, None), (f, [0, 5]), (tf.constant([1, 2]), f), (f, f, f), (text,), (text, 1), ({"a": 1},),
            (f, f, -1), (lambda: 1,), (lambda x: x, f), (np.zeros((2, 2), ">f4"), np.zeros(3)), ([f, "a"],)]


KEYWORDS = ({"bogus": 1}, {"axis": 9}, {"dtype": "nope"}, {"name": 3}, {"axis": "x"})


class _Late(BaseException):
    pass


def wrong_words(call):
    """What is wrong with the message of the error that a call ends in, if it does."""
    def late(*_):
        raise _Late
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 2)
    try:
        call()
    except (_Late, SystemExit, KeyboardInterrupt):
        return None
    except Exception as error:
        text = str(error)
        return text if CPP.search(OF_PYTHON.sub("", text)) else None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return None


def all_wrong(share, seed):
    wrong = set()
    drawn = random.Random(seed)
    for path, fn in functions():
        if drawn.random() * share > 1:
            continue
        for args in argument_lists():
            calls = [lambda: fn(*args)]
            if "keras" not in path and args and isinstance(args[0], tf.Tensor):
                calls.append(lambda: tf.function(lambda *a: fn(*a))(*args))
            wrong |= {(path, text) for call in calls if (text := wrong_words(call))}
        for keywords in KEYWORDS:
            if text := wrong_words(lambda: fn(tf.ones([2, 3]), **keywords)):
                wrong.add((path, text))
    return wrong


def test_errors_speak_python(tmp_path):
    # In a process of its own: such calls leave files, seeds and handlers.
    seed = os.environ.get("BERTH_SEED", "1")
    done = subprocess.run([sys.executable, os.path.abspath(__file__), str(SHARE), seed], cwd=tmp_path,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=1200)
    assert done.returncode == 0, f"seed {seed}\n" + done.stdout[-4000:]


def test_values_that_a_kept_trace_lacks_are_named_in_words():
    for what in ("int(x)", "x.numpy()", "np.array(x)", "[1, 2][x[0]]", "f'{x[0]:.2f}'"):
        read = eval(f"lambda x: {what}", {"np": np})  # pylint: disable=eval-used
        with pytest.raises((tf.errors.FailedPreconditionError, tf.errors.InvalidArgumentError, TypeError)) as caught:
            tf.function(read, autograph=False).get_concrete_function(tf.constant([1, 2])).save("nowhere")
        assert not CPP.search(str(caught.value)), caught.value


if __name__ == "__main__":
    errors = all_wrong(float(sys.argv[1]), int(sys.argv[2]))
    for where, said in sorted(errors):
        print(f"{where}: {said[:300]}")
    sys.exit(bool(errors))
