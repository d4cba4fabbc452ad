"""tf.debugging: checks of values, which also run inside of traced functions."""

import os as _os
import types as _types

import numpy as _np

from berth import _core
from berth._core import Tensor as _Tensor, Variable as _Variable
from berth._core import InvalidArgumentError as _InvalidArgumentError
from berth._frames import hiding as _hiding
from berth._frames import (disable_traceback_filtering, enable_traceback_filtering,  # noqa: F401
                           is_traceback_filtering_enabled)
from berth._tensor import as_dtype as _as_dtype, convert_to_tensor as _convert


@_hiding
def get_log_device_placement():
    """Whether the device of each op is printed as it runs."""
    return _core.get_log_device_placement()


@_hiding
def set_log_device_placement(enabled):
    """Prints the device of each op as it runs, or ceases to."""
    _core.set_log_device_placement(enabled)


def _check(fails, tensors):
    """Raises what fails(*arrays) says, now or whenever the traced function runs."""
    tensors = [_convert(t) for t in tensors]

    def run(*values):
        said = fails(*[v._array() for v in values])
        if said:
            raise _InvalidArgumentError(said)
        return []

    if any(t.is_symbolic for t in tensors):
        from berth import _host
        _host.call_host(run, tensors, [])
    else:
        run(*tensors)


def Assert(condition, data, summarize=None, name=None):
    """Raises InvalidArgumentError with `data` unless all of `condition` holds."""
    fixed = [d for d in data if not isinstance(d, (_Tensor, _Variable))]
    shown = [d for d in data if isinstance(d, (_Tensor, _Variable))]

    def fails(holds, *values):
        return "" if holds.all() else f"assertion failed: {[*fixed, *values]}"
    _check(fails, [condition, *shown])


def _compares(name, test, what):
    def check(x, y, message=None, summarize=None, name=None):
        def fails(a, b):
            return "" if _np.all(test(a, b)) else (
                f"{message + ': ' if message else ''}x {what} y does not hold for all elements: x = "
                f"{_short(a)}, y = {_short(b)}")
        x = _convert(x)
        _check(fails, [x, _convert(y, None if isinstance(y, (_Tensor, _Variable)) else x.dtype)])
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises InvalidArgumentError unless x {what} y holds for all elements."
    return check


def _short(a):
    return _np.array2string(a, threshold=6, separator=", ")


assert_equal = _compares("assert_equal", _np.equal, "==")
_assert_none_equal = _compares("assert_none_equal", _np.not_equal, "!=")


def assert_none_equal(x, y, summarize=None, message=None, name=None):
    """Raises InvalidArgumentError unless x != y holds for all elements."""
    _assert_none_equal(x, y, message, summarize)


assert_less = _compares("assert_less", _np.less, "<")
assert_less_equal = _compares("assert_less_equal", _np.less_equal, "<=")
assert_greater = _compares("assert_greater", _np.greater, ">")
assert_greater_equal = _compares("assert_greater_equal", _np.greater_equal, ">=")


def _signed(name, test, what):
    def check(x, message=None, summarize=None, name=None):
        _check(lambda a: "" if _np.all(test(a, 0)) else
               f"{message + ': ' if message else ''}x {what} 0 does not hold for all elements: x = "
               f"{_short(a)}", [x])
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises InvalidArgumentError unless x {what} 0 holds for all elements."
    return check


assert_positive = _signed("assert_positive", _np.greater, ">")
assert_negative = _signed("assert_negative", _np.less, "<")
assert_non_negative = _signed("assert_non_negative", _np.greater_equal, ">=")
assert_non_positive = _signed("assert_non_positive", _np.less_equal, "<=")


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    """Raises InvalidArgumentError unless |x - y| <= atol + rtol |y|; 10 epsilon each by default."""
    x = _convert(x)
    y = _convert(y, None if isinstance(y, (_Tensor, _Variable)) else x.dtype)
    eps = 10 * float(_np.finfo(_np.float32 if x.dtype.name == "bfloat16"
                               else x.dtype.as_numpy_dtype).eps)
    r, a = (eps if v is None else v for v in (rtol, atol))

    def fails(p, q):
        return "" if _np.all(_np.abs(p - q) <= a + r * _np.abs(q)) else (
            f"{message + ': ' if message else ''}x and y are not near: x = {_short(p)}, y = {_short(q)}")
    _check(fails, [x, y])


def _not_finite(a):
    a = _np.asarray(a)
    if a.dtype.kind not in "fc":
        a = a.astype("float32")
    kinds = [k for k, test in (("NaN", _np.isnan), ("Inf", _np.isinf)) if test(a).any()]
    return " and ".join(kinds)


def check_numerics(tensor, message, name=None):
    """Returns the tensor; raises InvalidArgumentError where it has a NaN or an infinity."""
    tensor = _convert(tensor)
    _check(lambda a: f"{message} : Tensor had {_not_finite(a)} values" if _not_finite(a) else "",
           [tensor])
    return tensor


def _config_module():
    from berth import config
    return config


@_hiding
def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """Makes the first op whose result has a NaN or an infinity raise InvalidArgumentError.

    The error says which op, the line that called it, and from what to what its inputs go. Functions run op by op
    meanwhile (as after run_functions_eagerly), on every device. The two limits, of the stack that TensorFlow prints, have
    no effect: the error names the line.
    """
    _core.enable_check_numerics()
    _config_module()._check_numerics(True)


@_hiding
def disable_check_numerics():
    """Ends enable_check_numerics."""
    _core.disable_check_numerics()
    _config_module()._check_numerics(False)


class _Dump:
    """What enable_dump_debug_info() returns."""

    def FlushNonExecutionFiles(self):  # noqa: N802: TensorFlow's name
        """Writes what is there."""
        _core.flush_dump_debug_info()

    FlushExecutionFiles = FlushNonExecutionFiles


@_hiding
def _enable_dump_debug_info(dump_root, tensor_debug_mode="NO_TENSOR", circular_buffer_size=1000, op_regex=None,
                            tensor_dtypes=None):
    """Writes every op from now on to files in dump_root that TensorBoard's debugger reads (its tab "Debugger V2").

    tensor_debug_mode: NO_TENSOR, CURT_HEALTH, CONCISE_HEALTH, FULL_HEALTH, SHAPE or FULL_TENSOR, in small letters, too.
    The last circular_buffer_size ops are written at the end; all if it is below 1. Ops that op_regex does not match from
    their first letter on are written without values. Functions run op by op meanwhile.
    """
    if tensor_dtypes is not None:
        raise NotImplementedError("enable_dump_debug_info: tensor_dtypes; expected None: values of all dtypes of numbers")
    _core.enable_dump_debug_info(_os.fspath(dump_root), tensor_debug_mode.upper(), max(int(circular_buffer_size), 0),
                                 op_regex or "")
    _config_module()._dump_debug_info(True)
    return _Dump()


@_hiding
def _disable_dump_debug_info():
    """Ends enable_dump_debug_info and writes what it has."""
    _core.disable_dump_debug_info()
    _config_module()._dump_debug_info(False)


experimental = _types.SimpleNamespace(enable_dump_debug_info=_enable_dump_debug_info,
                                      disable_dump_debug_info=_disable_dump_debug_info)


def assert_all_finite(x, message, name=None):
    """check_numerics under its other name."""
    return check_numerics(x, message)


def _says(message, text):
    return f"{message + ': ' if message else ''}{text}"


def assert_rank(x, rank, message=None, name=None):
    """Raises ValueError unless x has this rank."""
    if len(_convert(x).shape) != rank:
        raise ValueError(_says(message, f"the rank of {x!r} is not {rank}"))


def assert_rank_at_least(x, rank, message=None, name=None):
    """Raises ValueError unless x has at least this rank."""
    if len(_convert(x).shape) < rank:
        raise ValueError(_says(message, f"the rank of {x!r} is below {rank}"))


def assert_rank_in(x, ranks, message=None, name=None):
    """Raises ValueError unless x has one of these ranks."""
    if len(_convert(x).shape) not in [int(r) for r in ranks]:
        raise ValueError(_says(message, f"the rank of {x!r} is none of {list(ranks)}"))


def assert_scalar(tensor, message=None, name=None):
    """Returns the tensor; raises ValueError unless it is a scalar."""
    tensor = _convert(tensor)
    assert_rank(tensor, 0, message)
    return tensor


def assert_type(tensor, tf_type, message=None, name=None):
    """Raises TypeError unless the tensor has this dtype."""
    if (tensor if hasattr(tensor, "dtype") else _convert(tensor)).dtype != _as_dtype(tf_type):
        raise TypeError(_says(message, f"{tensor!r} is not {_as_dtype(tf_type).name}"))


def assert_integer(x, message=None, name=None):
    """Raises TypeError unless x has whole numbers."""
    if not _convert(x).dtype.is_integer:
        raise TypeError(_says(message, f"{x!r} has no integer dtype"))


def assert_same_float_dtype(tensors=None, dtype=None):
    """Returns the floating dtype that all have; raises ValueError when there are several."""
    found = {_convert(t).dtype.name for t in tensors or []} | ({_as_dtype(dtype).name} if dtype else set())
    if len(found) > 1 or not all(_as_dtype(n).is_floating for n in found):
        raise ValueError(f"expected one floating dtype, not {sorted(found)}")
    return _as_dtype(found.pop() if found else "float32")


def assert_proper_iterable(values):
    """Raises TypeError for a tensor, an array, text, or what cannot be iterated."""
    if isinstance(values, (_Tensor, _Variable, _np.ndarray, str, bytes)) or not hasattr(
            values, "__iter__"):
        raise TypeError(f"expected a list or tuple, not {type(values).__name__}")


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """Raises ValueError unless shapes fit: [(x, ("N", 3)), (y, ("N",))]; equal names, equal sizes."""
    sizes = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        dims = list(_convert(x).shape)
        if wanted is None:
            continue
        wanted = [wanted] if isinstance(wanted, (int, str)) else list(wanted)
        if wanted and wanted[0] is Ellipsis or (wanted and wanted[0] == "..."):
            dims, wanted = dims[max(0, len(dims) - len(wanted) + 1):], wanted[1:]
        fits = len(dims) == len(wanted)
        for d, w in zip(dims, wanted):
            if w is None or w == "." or d is None:
                continue
            fits = fits and d == (sizes.setdefault(w, d) if isinstance(w, str) else w)
        if not fits:
            raise ValueError(_says(message, f"shape {dims} is not {wanted}, where {sizes}"))


def is_numeric_tensor(tensor):
    """True of a tensor of numbers."""
    return isinstance(tensor, (_Tensor, _Variable)) and (
        tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_complex)


def diagnostic_counts():
    """How many diagnostics of each id there were (docs/diagnostics.md)."""
    return dict(_core.diagnostic_counts())
