"""Runs the statements of docstrings in this process's engine; tools/docstrings starts it.

Each docstring runs in a process of its own, forked after the engine is imported and before it computes, so that a
crash, a hang or a changed setting stays there. What each statement gives is written as a line of JSON.
"""
import ast
import builtins
import contextlib
import importlib
import io
import json
import linecache
import os
import pathlib
import re
import signal
import sys
import tempfile
import types

VALUES = 1000  # of an array, at most


def array(value):
    import numpy as np
    value = np.asarray(value)
    flat = value.ravel()[:VALUES]
    if value.dtype.kind in "OSU":
        items = [x.decode("latin-1") if isinstance(x, bytes) else str(x) for x in flat]
    elif value.dtype.kind == "c":
        items = [[x.real, x.imag] for x in flat.astype("complex128").tolist()]
    else:
        items = flat.tolist() if value.dtype.kind in "biuf" else flat.astype("float64").tolist()
    return {"dtype": "text" if value.dtype.kind in "OSU" else value.dtype.name, "shape": list(value.shape), "values": items}


def told(value, tf, depth=0):
    """A value as JSON that both engines should agree on."""
    kind, inner = type(value), lambda x: told(x, tf, depth + 1)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is bytes:
        return {"bytes": value.decode("latin-1")}
    if depth > 6:
        return "..."
    if isinstance(value, dict) or kind.__name__ == "_DictWrapper":
        return {"dict": {str(k): inner(v) for k, v in value.items()}}
    if isinstance(value, (list, tuple)) or kind.__name__ == "ListWrapper":
        return {"fields" if hasattr(value, "_fields") else "items": [inner(v) for v in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(map(repr, value))}
    names = {c.__name__ for c in kind.__mro__}
    if isinstance(value, tf.TensorShape):
        return {"shape of": None if value.rank is None else value.as_list()}
    if isinstance(value, tf.DType) or kind.__module__ == "numpy" and "dtype" in kind.__name__:
        return {"dtype of": value.name}
    if "KerasTensor" in names:
        return {"symbolic": [str(value.dtype), list(value.shape)]}
    if kind.__name__.endswith("Spec"):
        return {"spec": kind.__name__, **{n: inner(getattr(value, n, None)) for n in ("shape", "dtype", "ragged_rank")}}
    if "RaggedTensor" in names:
        return {"ragged": [inner(value.flat_values), [inner(s) for s in value.nested_row_splits]]}
    if "SparseTensor" in names:
        return {"sparse": [inner(value.indices), inner(value.values), inner(value.dense_shape)]}
    if "IndexedSlices" in names:
        return {"slices": [inner(value.indices), inner(value.values)]}
    if isinstance(value, tf.Variable) or "KerasVariable" in names or kind.__name__ == "MirroredVariable":
        return {"variable": array(value.numpy())}
    if isinstance(value, tf.Tensor):
        if not hasattr(value, "numpy") or getattr(value, "is_symbolic", False):
            return {"symbolic": [value.dtype.name, None if value.shape.rank is None else value.shape.as_list()]}
        return {"tensor": array(value.numpy())}
    if hasattr(value, "element_spec"):
        return {"data set": inner(value.element_spec)}
    if kind.__module__ == "numpy" or isinstance(value, complex):
        return {"array": array(value)}
    return {"object": ""}


def text_of(value):
    """What a prompt shows, without addresses and numbers of names."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))[:2000] if value is not None else ""


def names_in(tree):
    """(names that a statement reads, names that it sets)."""
    reads, sets = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (reads if isinstance(node.ctx, ast.Load) else sets).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            sets.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            sets.update((a.asname or a.name).split(".")[0] for a in node.names)
    return reads, sets


def run_statement(source, file, names, tf, printed):
    """What a statement gave: {value, text} or {error, classes, why}."""
    pathlib.Path(file).write_text(source)
    linecache.cache[file] = (len(source), None, source.splitlines(True), os.path.abspath(file))
    out = io.StringIO()
    try:
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(out):
            exec(compile(tree, file, "exec"), names)
            value = eval(compile(ast.Expression(last.value), file, "eval"), names) if last is not None else None
            return {"value": [told(value, tf), [told(p, tf) for p in printed]],
                    "text": (out.getvalue()[:2000] + text_of(value)).strip()}
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        if lines and lines[0].startswith(("in user code", "Exception encountered", "Graph execution error")):
            lines = [line for line in lines if re.match(r"\w*(Error|Exception): ", line)] or lines
        return {"error": type(error).__name__, "of": getattr(error, "name", None), "classes": [c.__name__ for c in type(error).__mro__],
                "why": f"{type(error).__name__}: {lines[0] if lines else ''}"[:400]}


def run_docstring(doc, out):
    """Runs the statements of a docstring; writes a line for each."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    tf, printed, names, broken = importlib.import_module("tensorflow"), [], vars(main), set()

    def own_print(*values, **how):
        printed.extend(values)
        builtins.print(*values, **how)
    names.update(tf=tf, np=importlib.import_module("numpy"), os=os, keras=importlib.import_module("keras"), print=own_print)
    for number, (source, _) in enumerate(doc["examples"]):
        printed.clear()
        given = run_statement(source, f"example_{number}.py", names, tf, printed)
        try:
            reads, sets = names_in(ast.parse(source))
        except SyntaxError:
            reads, sets = set(), set()
        if "error" in given:
            given["after"] = bool(reads & broken) or given["of"] in broken
            broken |= sets
        else:
            broken -= sets
        out.write(json.dumps({"name": doc["name"], "number": number, **given}) + "\n")
        out.flush()


def over(*_):
    raise TimeoutError


def run_all(docs, told_path, seconds):
    """In a process with an engine that has computed nothing yet: a fork for each docstring."""
    importlib.import_module("numpy")
    for module in map(importlib.import_module, ("keras", "tensorflow")):
        for name in dir(module):  # what is loaded when it is first asked for: once, not in each fork
            getattr(module, name, None)
    signal.signal(signal.SIGALRM, over)
    for doc in docs:
        folder = tempfile.TemporaryDirectory()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.chdir(folder.name)
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
            with contextlib.suppress(BaseException), open(told_path, "a") as out:
                run_docstring(doc, out)
            os._exit(0)
        signal.alarm(seconds)
        try:
            why = f"the process ended with {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"
        except TimeoutError:
            why = f"longer than {seconds} s"
        signal.alarm(0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        if why.startswith("longer"):
            os.waitpid(child, 0)
        with open(told_path, "a") as out:
            out.write(json.dumps({"name": doc["name"], "ended": why}) + "\n")
        folder.cleanup()


if __name__ == "__main__":
    run_all(json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2], int(sys.argv[3]))
