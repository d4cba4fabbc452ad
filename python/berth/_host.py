"""Functions of Python as ops, gradient rules of one's own, libraries of ops."""
import functools
import itertools
import types
import weakref

from berth import _core
from berth._core import Tensor, Variable
from berth._function import NeedsValues, _calls
from berth._gradient import GradientTape, device
from berth._lazy import Lazy
from berth._structure import flatten, pack
from berth._tensor import TensorSpec, as_dtype, convert_to_tensor

inspect = Lazy("inspect")
_functions = weakref.WeakValueDictionary()  # by token: what a traced call runs
_tokens = itertools.count()
owners = []  # lists that hold those while the engine traces something else than a Function
_forever = []


class ShapeUnknown(NeedsValues):
    """A call of Python is traced whose results have shapes that are not known."""


def custom_gradient(f=None):
    """Decorator: f(*args) returns (result, grad); grad(*dy) returns a gradient for each argument.

    If f reads trainable variables, grad takes them as variables=, and returns (gradients, gradients of the variables).
    """
    if f is None:
        return custom_gradient
    read = []  # the variables that f has read so far

    @functools.wraps(f)
    def call(*args, **kwargs):
        leaves, form = flatten(args, _is_tensor_like)
        while True:
            try:
                forms = []
                values = [convert_to_tensor(v) for v in leaves] + [v.read_value() for v in read]
                out = _core.call_with_gradient(lambda t: run(t[:len(leaves)], form, kwargs, forms), values)
                return pack(forms[0], out)
            except _Reads as error:
                read.extend(error.args[0])

    def run(tensors, form, kwargs, forms):
        tape = _core.Tape(False, True)
        tape.enter()
        try:
            result, grad = f(*pack(form, tensors), **kwargs)
        finally:
            tape.exit()
        found = [v for v in tape.watched() if all(v._serial() != w._serial() for w in read)]
        takes = _takes_variables(grad)
        if (found or read) and not takes:
            raise TypeError(f"custom_gradient: {f.__name__} reads the variable {(found or read)[0].name}, so its gradient "
                            "function must take variables=None, and return the gradients of those second")
        if found:
            raise _Reads(found)
        out, result_form = flatten(result)
        forms.append(result_form)

        def rule(dy):
            grads, own = grad(*dy, variables=list(read)) if read else (
                grad(*dy, **({"variables": []} if takes else {})), [])
            if takes and not read and isinstance(grads, tuple) and len(grads) == 2:
                grads = grads[0]  # those of variables come second
            if len(tensors) == 1 and not isinstance(grads, (list, tuple)):
                grads = [grads]
            return [None if g is None else convert_to_tensor(g) for g in [*flatten(grads)[0], *own]]

        return [convert_to_tensor(v) for v in out], rule

    return call


class _Reads(Exception):
    """A function with a gradient of its own reads variables that were not known; it is called again."""


def _takes_variables(grad):
    try:
        return "variables" in inspect.signature(grad).parameters
    except (TypeError, ValueError):
        return False


def _is_tensor_like(v):
    return hasattr(v, "__array__") or isinstance(v, (bool, int, float, complex))


def py_function(func=None, inp=None, Tout=None, name=None):
    """Calls func(*tensors) on the CPU, also inside of a traced function; differentiable.

    Tout: dtypes of the results, or tf.TensorSpec(shape, dtype): a traced function whose results have
    no shape here runs op by op. Without func, a decorator: py_function(Tout=tf.float32)(func)(*tensors).
    """
    return _call(func, inp, Tout, False)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """py_function for a function of NumPy arrays; without a gradient."""
    return _call(func, inp, Tout, True)


def _call(func, inp, Tout, arrays):
    if func is None:
        return lambda func: functools.wraps(func)(lambda *args: _call(func, args, Tout, arrays))
    inputs = [convert_to_tensor(v) for v in (inp or [])]
    wanted, form = flatten([] if Tout is None else Tout)

    def run(*tensors):
        result = func(*[t.numpy() for t in tensors] if arrays else tensors)
        values = [] if result is None or not wanted else (
            list(result) if isinstance(Tout, (list, tuple)) else [result])
        if len(values) != len(wanted):
            raise ValueError(f"{getattr(func, '__name__', 'the function')} returned {len(values)} "
                             f"values; Tout has {len(wanted)}")
        return [_of_dtype(v, w, arrays) for v, w in zip(values, wanted)]

    if not _core.traces_loop():
        with device("/CPU:0"):
            return pack(form, run(*inputs)) if wanted else None
    out = call_host(run, inputs, wanted, differentiable=not arrays)
    return pack(form, out) if wanted else None


def _of_dtype(value, wanted, casts):
    dtype = wanted.dtype if isinstance(wanted, TensorSpec) else as_dtype(wanted)
    if isinstance(value, (Tensor, Variable)) or dtype == _core.string or not casts:
        return convert_to_tensor(value, dtype)
    import numpy
    return convert_to_tensor(numpy.asarray(value).astype(dtype.as_numpy_dtype))


def call_host(run, inputs, specs, differentiable=False):
    """Traces a call of run(*tensors) -> tensors on the host."""
    if any(t.dtype == _core.string for t in inputs):
        raise ShapeUnknown("py_function: text is not in a plan")
    numbers = []
    for s in specs:
        if not isinstance(s, TensorSpec) or not s.shape.is_fully_defined():
            raise ShapeUnknown(
                "py_function: the shape of the result must be known while the function is traced; "
                f"give Tout as tf.TensorSpec(shape, dtype), not {s!r}")
        numbers += [_core.dtype_number(s.dtype), len(s.shape), *s.shape]
    fn = run if inputs else lambda _: run()
    token = next(_tokens)
    _functions[token] = fn
    for hosted in [f.hosted for f in _calls.tracing] + owners[-1:] or [_forever]:
        hosted.append(fn)
    _core.set_host_runner(_run)
    given = inputs or [convert_to_tensor(0)]
    with device("/CPU:0"):
        return _core.call_op("PyFunction", given, {
            "token": token, "outputs": len(specs), "specs": numbers,
            "differentiable": int(differentiable)})


def _run(token, backward, tensors):
    """What the kernel of PyFunction calls."""
    fn = _functions[token]
    if not backward:
        return fn(*tensors)
    inputs, dy = tensors[:backward], tensors[backward:]
    by = [t for t in inputs if t.dtype.is_floating or t.dtype.is_complex]
    with GradientTape() as tape:
        tape.watch(by)
        results = [r for r in fn(*inputs) if r.dtype.is_floating or r.dtype.is_complex]
    return tape.gradient(results, by, output_gradients=dy, unconnected_gradients="zero")


def load_op_library(library_filename):
    """Loads a shared library of ops that C++ registers; returns a module of its functions.

    Before anything computes: kernels are refused once devices exist.
    """
    before = set(_core.op_names())
    _core.load_library(str(library_filename))
    module = types.ModuleType(f"berth.library.{library_filename}")
    for op in _core.op_names():
        if op not in before:
            setattr(module, _snake(op), _function_of(op))
    return module


def _snake(name):
    import re
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()


def _function_of(op):
    inputs, attrs, outputs, text = _core.op_schema(op)
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in inputs]
    parameters += [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
                   for n in attrs + ["name"]]
    signature = inspect.Signature(parameters)

    def call(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        tensors = [convert_to_tensor(given[n]) for n in inputs]
        out = _core.call_op(op, tensors, {n: given[n] for n in attrs if given.get(n) is not None})
        return out[0] if len(out) == 1 else out

    call.__name__, call.__doc__, call.__signature__ = _snake(op), text, signature
    return call
