"""Forms of the engine's functions with arguments of TensorFlow's that it lacks; a call that gives one of those comes here."""
import functools
import inspect

from berth import _core
from berth._tensor import as_dtype, convert_to_tensor, refuse

_ops = _core.ops
_forms = {}  # path of a function of the engine: (form, names of the arguments that the engine lacks)


def _form(path, extra):
    def keep(function):
        _forms[path] = function, set(extra.split()), inspect.signature(function)
        return function
    return keep


def other_form(path, args, kwargs):
    """What the form of `path` gives for a call that the engine's own could not take; NotImplemented where there is none.

    Without a form a call with None for options is made again without these.
    """
    form, extra, signature = _forms.get(path, (None, (), None))
    try:
        given = signature.bind(*args, **kwargs).arguments if form else {}
    except TypeError:
        given = {}
    if extra & given.keys():
        return form(*args, **kwargs)
    kept = {k: v for k, v in kwargs.items() if v is not None}
    count = next((i for i in range(len(args), 0, -1) if args[i - 1] is not None), 0)
    if count == 0 or (len(kept), count) == (len(kwargs), len(args)):
        return NotImplemented
    try:
        return functools.reduce(getattr, path.split("."), _ops)(*args[:count], **kept)
    except TypeError:
        return NotImplemented  # what the engine said of the whole call


@_form("matmul", "a_is_sparse b_is_sparse output_type grad_a grad_b")
def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False, b_is_sparse=False,
           output_type=None, grad_a=False, grad_b=False, name=None):
    """The product of matrices, in output_type where that is given; the other arguments are hints of which no result depends."""
    if output_type is not None:
        a, b = (_ops.math.cast(convert_to_tensor(v), as_dtype(output_type)) for v in (a, b))
    return _ops.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


@_form("strided_slice", "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask var")
def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
                  shrink_axis_mask=0, var=None, name=None):
    """From begin[i] to before end[i] in steps of strides[i]; bit i of a mask: without this begin or end, as `...`, as a new axis,
    or as the one element at begin[i], without its axis."""
    refuse("tf.strided_slice", var=var)
    x, (begin, end) = convert_to_tensor(input_), (convert_to_tensor(v).numpy().tolist() for v in (begin, end))
    strides = [1] * len(begin) if strides is None else convert_to_tensor(strides).numpy().tolist()
    if ellipsis_mask & ellipsis_mask - 1 or not len(begin) == len(end) == len(strides):
        raise ValueError(f"tf.strided_slice: ellipsis_mask is {ellipsis_mask:#b}, begin {begin}, end {end}, strides {strides}; "
                         "expected at most one bit and lists of one length")
    key = []
    for i, (first, last, step) in enumerate(zip(begin, end, strides)):
        def bit(mask):
            return mask >> i & 1
        key.append(... if bit(ellipsis_mask) else None if bit(new_axis_mask) else first if bit(shrink_axis_mask) else
                   slice(None if bit(begin_mask) else first, None if bit(end_mask) else last, step))
    return x[tuple(key)]
