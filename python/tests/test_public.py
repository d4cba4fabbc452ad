"""Every public callable has a signature, a docstring in Python's words, and a line in the stubs."""
import ast
import inspect
import pathlib
import re
import types
import typing

import berth as tf
import berth.experimental.numpy  # noqa: F401  imported at its first use
import pytest

# Words of C++, of nanobind, and of numbers of lines in the engine.
FOREIGN = re.compile(r"\w::\w|\bThrows\b|\bstd\b|nullopt|\{\.|\bk[A-Z][a-z]+\w*|\w\.(h|cc)\b|incompatible function")
# What modules import, or have for each other.
HELPERS = set("""Lazy call_converted contracts convert_to_tensor describe flatten hide_in is_keras_file is_operation
load_weights metric_of name_missing note_read of_keras operands operation owner pack refuse save_text save_weights snake unknown_name
variables_in wrapped""".split())
SPACES = (types.ModuleType, types.SimpleNamespace)
TYPES = types.GenericAlias, type(typing.Union[int, str])  # not called


def imported(space, value):
    """Whether one of the modules that import classes of others has it from there."""
    return getattr(space, "__name__", "") in ("berth.keras.models", "berth.keras.layers", "berth.train") and getattr(
        value, "__module__", "") not in (space.__name__, "berth._example", "berth._core")


def walk(space, path, seen):
    """Public callables by the paths that they have."""
    for name in dir(space):
        value = getattr(space, name, None)
        if name.startswith("_") or value is None or id(value) in seen:
            continue
        if isinstance(value, SPACES):
            if not isinstance(value, types.ModuleType) or value.__name__.startswith("berth"):
                seen.add(id(value))
                home = getattr(value, "__name__", "")
                yield from walk(value, home.replace("berth", "tf", 1) if home else f"{path}.{name}", seen)
        elif callable(value) and not isinstance(value, TYPES) and name not in HELPERS and not imported(space, value):
            yield f"{path}.{name}", value


CALLABLES = {"tf.convert_to_tensor": tf.convert_to_tensor, **dict(walk(tf, "tf", {id(tf)}))}


def members(cls):
    """Public methods and properties that a class adds: (name, member, what has its signature, or None of a property)."""
    for name, member in vars(cls).items():
        fn = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if name.startswith("_") or isinstance(fn, type) or not (isinstance(fn, property) or callable(fn)):
            continue
        yield name, member, None if isinstance(fn, property) else fn


MEMBERS = [(f"{path}.{name}", member, fn) for path, cls in CALLABLES.items() if isinstance(cls, type)
           for name, member, fn in members(cls)]


def test_there_are_many():
    assert len(CALLABLES) > 900 and "tf.math.reduce_sum" in CALLABLES and "tf.keras.layers.Dense" in CALLABLES


def test_signatures():
    lacking = []
    for path, value in CALLABLES.items():
        try:
            inspect.signature(value)
        except ValueError:
            lacking.append(path)
    for path, _, fn in MEMBERS:
        # What nanobind binds has it as the first line of its docstring.
        if type(fn).__name__ == "nb_method":
            if re.search(r"\barg\d*\b", fn.__doc__):
                lacking.append(path)
        elif fn is not None and not inspect.signature(fn):
            lacking.append(path)
    assert not lacking, " ".join(lacking)


def test_docstrings_in_words_of_python():
    lacking, foreign = [], []
    for path, value in CALLABLES.items():
        text = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
        if not text or not text.strip():
            lacking.append(path)
        elif FOREIGN.search(text):
            foreign.append((path, FOREIGN.search(text)[0]))
    for path, member, fn in MEMBERS:
        text = member.__doc__ or ""
        if type(fn).__name__ == "nb_method":
            text = text.partition("\n")[2]
        if not text.strip():
            lacking.append(path)
        elif FOREIGN.search(text):
            foreign.append((path, FOREIGN.search(text)[0]))
    assert not lacking, " ".join(lacking)
    assert not foreign, foreign


def stubbed(module):
    """The names that a module's stub has, and those of the classes in it."""
    folder = pathlib.Path(tf.__file__).parent.joinpath(*module)
    path = folder / "__init__.pyi" if folder.is_dir() else folder.with_suffix(".pyi")
    if not path.exists():
        return None
    names = set()

    def add(body, prefix):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    names.update(prefix + node.name + n[n.index("."):] for base in node.bases for n in list(names)
                                 if n.startswith(ast.unparse(base) + "."))
                    names.add(f"{prefix}{node.name}.*")  # not the other name of a class of another stub
                    add(node.body, prefix + node.name + ".")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                names.add(prefix + target.id)
            elif isinstance(node, ast.ImportFrom):
                names.update(prefix + (a.asname or a.name) for a in node.names)
    add(ast.parse(path.read_text()).body, "")
    return names


def test_stubs():
    lacking, stubs = [], {}
    for path in [*CALLABLES, *(path for path, _, _ in MEMBERS)]:
        parts = path.split(".")[1:]
        # The module that has a stub, and what is left of the path in it.
        for at in range(len(parts) - 1, -1, -1):
            module = tuple(parts[:at])
            if module not in stubs:
                stubs[module] = stubbed(module)
            if stubs[module] is not None:
                break
        if ".".join(parts[at:]) in stubs[module]:
            continue
        owner = ".".join(parts[at:-1])
        if not owner or owner in stubs[module] and f"{owner}.*" in stubs[module]:
            lacking.append(path)
    assert not lacking, " ".join(lacking)


@pytest.mark.parametrize("call, says", {
    "shape": (lambda: tf.TensorShape(), "TensorShape() needs the argument 'dims'"),
    "shapes": (lambda: tf.TensorShape(1, 2), "TensorShape() takes 1 arguments, 2 were given"),
    "variable": (lambda: tf.Variable(1.0, kind=2), "Variable() has no argument 'kind'; it has (initial_value"),
    "policy": (lambda: tf.keras.mixed_precision.Policy(3), "Policy()"),
    "part": (lambda: tf.config.LogicalDeviceConfiguration("x"), "LogicalDeviceConfiguration()"),
    "trace": (lambda: tf.profiler.experimental.Trace(4), "Trace()"),
}.values())
def test_constructors_speak_python(call, says):
    with pytest.raises(TypeError) as caught:
        call()
    assert says in str(caught.value) and not FOREIGN.search(str(caught.value))
    assert "nanobind" not in str(caught.value) and "argument types" not in str(caught.value)
