"""Names: type stubs against the functions, and the table of TensorFlow's names in the documentation."""
import ast
import functools
import keyword
import os
import re
import subprocess
import sys
import types

import berth as tf
import pytest

SOURCE = os.path.join(os.path.dirname(__file__), "..", "..")
API = os.environ.get("BERTH_API") or os.path.join(SOURCE, "..", "shared", "data", "api")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, os.path.join(SOURCE, "python", "stubs.py"),
                    os.path.join(SOURCE, "include"),
                    os.path.join(SOURCE, "python", "signatures.tsv"), str(folder)], check=True)
    return folder


def arguments_of(function):
    """What the function itself says when it is given an argument that it lacks."""
    try:
        function(there_is_none_of_this_name=1)
    except TypeError as e:
        return {tuple(re.split(r", ", m)) if m else () for m in re.findall(r"it has \(([^)]*)\)", str(e))}
    raise AssertionError(f"{function} took an argument that it lacks")


def test_stubs_say_what_functions_take(stubs):
    checked = 0
    for path in sorted(stubs.rglob("*.pyi")):
        module = tf
        for part in path.relative_to(stubs).with_suffix("").parts:
            module = module if part == "__init__" else getattr(module, part)
        text = path.read_text()
        compile(text, str(path), "exec")
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef) or node.name == "__getattr__":
                continue
            function = getattr(module, node.name)
            if hasattr(function, "handlers"):
                function = function.__wrapped__  # RaggedTensors may answer
            if not isinstance(function, types.BuiltinFunctionType):
                continue  # written by hand, or a class of Keras
            names = tuple(a.arg[:-1] if a.arg[-1] == "_" and keyword.iskeyword(a.arg[:-1]) else a.arg
                          for a in node.args.args)
            if node.args.vararg:
                names += ("*" + node.args.vararg.arg,)
            found = arguments_of(function)
            assert names in found or names[:-1] in found, (path.name, node.name, names, found)
            checked += 1
    assert checked > 350


def test_stubs_are_installed_with_the_wheel(stubs):
    package = os.path.dirname(tf.__file__)
    if not os.path.exists(os.path.join(package, "py.typed")):
        pytest.skip("this is not an installed package")
    for path in stubs.rglob("*.pyi"):
        with open(os.path.join(package, path.relative_to(stubs))) as installed:
            assert installed.read() == path.read_text(), path


@pytest.mark.skipif(not os.path.isdir(API), reason="the lists of names are not here (BERTH_API)")
def test_the_table_of_names_is_that_of_the_package():
    # -P: the package that is installed, not the folder beside the script.
    done = subprocess.run([sys.executable, "-P", os.path.join(SOURCE, "python", "names.py"), API],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(os.path.join(SOURCE, "docs", "python-names.md")) as page:
        assert page.read() == done.stdout, "python -P python/names.py API > docs/python-names.md"
    planned = subprocess.run([sys.executable, "-P", os.path.join(SOURCE, "python", "names.py"), API, "--planned"],
                             capture_output=True, text=True, check=True)
    with open(os.path.join(SOURCE, "python", "berth", "_planned.py")) as file:
        assert file.read() == planned.stdout, "python -P python/names.py API --planned > python/berth/_planned.py"


def message_of(path):
    with pytest.raises(AttributeError) as error:
        value = tf
        for part in path.split("."):
            value = getattr(value, part)
    return str(error.value)


def test_missing_names_say_what_is_near_and_whether_they_are_planned():
    assert "which is planned" in message_of("train.experimental.ShardingCallback")
    assert "near it: relu" in message_of("nn.relu_") and "neither TensorFlow" in message_of("nn.relu_")
    assert "will not: ops have one form" in message_of("raw_ops.Add")
    for name in ("keras.layers.Densee", "data.Datasett", "train.Checkpointt", "keras.losses.Hubber",
                 "profiler.strat"):
        assert "near it" in message_of(name), name


def test_members_of_servers_say_whether_they_will_come():
    assert "will not: sessions of version 1" in message_of("distribute.Server.create_local_server")
    assert "will not: version 1: tf.distribute.Server" in message_of("train.Server")
    assert "as_dict() has the same" in message_of("train.ClusterDef") and not hasattr(tf.distribute.Server, "__len__")


def test_every_missing_name_says_whether_it_will_come():
    from berth import _absent
    from berth._never import NEVER
    from berth._planned import NAMES
    wrong = [n for n in NAMES if "which is planned" not in message_of(n.removeprefix("tf."))]
    assert not wrong and len(NAMES) > 900, wrong
    for name, why in NEVER:
        if name in ("tf.raw_ops", "keras.legacy", "keras.src", "tf.compat.v1"):  # what is there has others under it
            continue
        if name.rpartition(".")[2] in vars(_absent):  # a class that programs ask for
            with pytest.raises(NotImplementedError, match=re.escape(why)):
                functools.reduce(getattr, name.split(".")[1:], tf)()
        else:
            assert why in message_of(name.removeprefix("tf.")), name
    assert "which is planned" in message_of("raw_ops.Nothing") or "will not" in message_of("raw_ops.Nothing")
