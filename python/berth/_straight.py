"""Which functions need AutoGraph: what has no branch and calls nothing of the user's does not."""
import os
import types

from berth._lazy import Lazy

from berth import _core

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(types.__file__)) + os.sep
# Packages whose functions take no tensors apart.
_OTHERS = ("malt", "numpy", "scipy", "pandas", "matplotlib", "PIL", "torch", "jax", "sklearn",
           "tqdm", "absl", "pytest", "_pytest", "IPython", "ipykernel", "keras", "tensorflow")
dis = Lazy("dis")
# Functions of Python that AutoGraph replaces.
_REPLACED = {"len", "range", "int", "float", "enumerate", "zip"}
_straight_code = {}


def is_user_code(code):
    """True of code that is neither Berth's nor Python's, nor of a package of _OTHERS."""
    file = code.co_filename
    if file.startswith(_OWN) or file.startswith("<frozen"):
        return False
    _, _, package = file.rpartition("site-packages" + os.sep)
    if package != file:
        return package.split(os.sep)[0].removesuffix(".py") not in _OTHERS
    return not file.startswith(_LIBRARY)


def is_converted(fn):
    """True of a function whose calls inside a traced function are converted."""
    generator = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
    return (is_user_code(fn.__code__) and not fn.__code__.co_flags & generator
            and not hasattr(fn, "autograph_info__")  # is converted already
            and not getattr(fn, "_do_not_convert", False) and fn.__code__.co_filename != "<string>")


def _has_branches(code):
    known = _straight_code.get(code)
    if known is None:
        known = (any("JUMP" in i.opname or i.opname in ("FOR_ITER", "UNARY_NOT")
                     for i in dis.get_instructions(code))
                 or any(_has_branches(c) for c in code.co_consts if isinstance(c, types.CodeType)))
        _straight_code[code] = known
    return known


def _names(code):
    found = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found |= _names(c)
    return found


def _is_plain(value):
    """True when a call of the value runs no code of the user's that must be converted."""
    if isinstance(value, type) or value is None:
        return True
    fn = getattr(value, "__func__", value)
    if not isinstance(fn, types.FunctionType):
        fn = getattr(type(value), "__call__", None)
    return not isinstance(fn, types.FunctionType) or not is_converted(fn)


def is_straight(fn, args=()):
    """True when tracing `fn` as it is gives what AutoGraph would."""
    self = getattr(fn, "__self__", None)
    fn = getattr(fn, "__func__", fn)
    if not isinstance(fn, types.FunctionType):
        return True
    if not is_converted(fn):
        return True
    names = _names(fn.__code__)
    if _has_branches(fn.__code__) or names & _REPLACED:
        return False
    seen = [fn.__globals__[n] for n in names if n in fn.__globals__] + list(args)
    for cell in fn.__closure__ or ():
        try:
            seen.append(cell.cell_contents)
        except ValueError:
            pass  # not set yet
    if self is not None:
        seen.append(self)
    for value in seen:
        if value is not self and not _is_plain(value):
            return False
        if isinstance(value, (_core.Tensor, _core.Variable, int, float, str)):
            continue
        if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("berth", *_OTHERS):
            continue
        for name in names:
            held = vars(value).get(name) if hasattr(value, "__dict__") else None
            if held is None and not isinstance(value, types.ModuleType):
                held = getattr(type(value), name, None)
            if held is not None and not _is_plain(held):
                return False
    return True
