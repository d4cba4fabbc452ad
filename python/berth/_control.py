"""Functions over elements and branches: tf.case, tf.switch_case, tf.map_fn, tf.foldl and their kin."""
import builtins
from _thread import _local as _thread_local  # threading.local, without the import of threading

from berth import _core
from berth._function import _calls, call_converted, cond
from berth._not_tensors import refuse_kinds
from berth._strings import _of_text_too
from berth._structure import Composite, flatten, pack
from berth._tensor import convert_to_tensor

__all__ = ["case", "switch_case", "map_fn", "foldl", "foldr", "scan", "recompute_grad", "name_scope",
           "vectorized_map", "init_scope", "control_dependencies"]

_ops = _core.ops


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """Returns fn() of the first pair whose predicate holds, else default() (tf.case)."""
    refuse_kinds("case", "a list of pairs of a scalar tensor of bool and a function", pred_fn_pairs=pred_fn_pairs)
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if exclusive and sum(builtins.bool(p) for p, _ in pairs) > 1:
        raise _core.InvalidArgumentError("case: more than one predicate holds, with exclusive=True")
    if default is None:
        default = pairs.pop()[1]
    out = default
    for pred, fn in reversed(pairs):
        out = (lambda p, f, rest: lambda: cond(p, f, rest))(pred, fn, out)
    return out()


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """Returns branch_fns[branch_index](); of an index out of range the last, or default()."""
    items = branch_fns.items() if isinstance(branch_fns, dict) else enumerate(branch_fns)
    pairs = [(i, f) if not isinstance(f, tuple) else f for i, f in items]
    index = convert_to_tensor(branch_index)
    last = default or pairs[-1][1]
    return case([(_ops.equal(index, i), f) for i, f in pairs], default=last)


def _elements(elems):
    from berth import unstack
    leaves, form = flatten(elems, whole=(Composite,))
    parts = [v._unstack() if hasattr(v, "_unstack") else unstack(convert_to_tensor(v)) for v in leaves]
    return [pack(form, list(one)) for one in zip(*parts)]


def _stacked(results, wanted=None):
    """The results one after the other; `wanted` says which of them are of a class of their own, such as RaggedTensors."""
    leaves, form = zip(*[flatten(r, whole=(Composite,)) for r in results])
    specs = [None] * len(leaves[0]) if wanted is None else flatten(wanted, whole=(Composite,))[0]
    return pack(form[0], [_column(list(column), spec) for column, spec in zip(zip(*leaves), specs, strict=True)])


def _column(values, spec):
    if hasattr(type(values[0]), "_stack"):
        return type(values[0])._stack(values)
    if isinstance(values[0], Composite) or hasattr(spec, "ragged_rank"):
        from berth import ragged
        return ragged.stack(values)
    from berth import stack
    return stack([convert_to_tensor(v) for v in values])


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False,
           infer_shape=True, name=None, fn_output_signature=None):
    """Stacks fn(element) over the first axis, whose length must be known."""
    wanted = dtype if fn_output_signature is None else fn_output_signature
    parts = _elements(elems)
    if not len(parts):
        return _none_of(fn, elems)
    out = _stacked([call_converted(fn, e) for e in parts], wanted)
    for v, w in zip(*(flatten(x, whole=(Composite,))[0] for x in (out, [] if wanted is None else wanted))):
        if v.dtype != getattr(w, "dtype", w):
            raise TypeError(f"map_fn: the function returns {v.dtype}, fn_output_signature says {w}")
    return out


def _none_of(fn, elems):
    """The results of map_fn() over no element: of the shapes that those of one would have."""
    leaves, form = flatten(elems)
    row = [_ops.zeros(v.shape[1:], v.dtype) for v in map(convert_to_tensor, leaves)]
    out, form = flatten(call_converted(fn, pack(form, row)))
    return pack(form, [_of_text_too(_ops.expand_dims)(convert_to_tensor(v), 0)[:0] for v in out])


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """map_fn under its other name."""
    return map_fn(fn, elems)


def _fold(fn, elements, state):
    for e in elements:
        state = call_converted(fn, state, e)
        yield state


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    """Returns fn(... fn(fn(initializer, first), second) ..., last)."""
    return _last(fn, _elements(elems), initializer)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    """foldl from the last element to the first."""
    return _last(fn, _elements(elems)[::-1], initializer)


def _last(fn, elements, state):
    if state is None:
        state, elements = elements[0], elements[1:]
    for state in _fold(fn, elements, state):
        pass
    leaves, form = flatten(state)
    return pack(form, [convert_to_tensor(v) for v in leaves])


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
         infer_shape=True, reverse=False, name=None):
    """Stacks all states of foldl."""
    elements = _elements(elems)[::-1 if reverse else 1]
    if initializer is None:
        states = [elements[0], *_fold(fn, elements[1:], elements[0])]
    else:
        states = list(_fold(fn, elements, initializer))
    return _stacked(states[::-1] if reverse else states)


class init_scope:
    """A block outside of traces, tapes and replicas: its ops run at once, in each trace anew, and variables live on."""

    def __enter__(self):
        self._scope, self._tracing = _core.InitScope(), _calls.tracing
        self._scope.enter()
        _calls.tracing = []

    def __exit__(self, *_):
        _calls.tracing = self._tracing
        self._scope.leave()


class control_dependencies:
    """A block after `control_inputs`: there is nothing to do, since effects keep the order of the program."""

    def __init__(self, control_inputs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def recompute_grad(f):
    """Decorator: inner values are computed again for the gradient in place of being kept."""
    import functools

    @functools.wraps(f)
    def call(*args, **kwargs):
        leaves, form = flatten(args)
        forms = []

        def run(tensors):
            out, result_form = flatten(f(*pack(form, tensors), **kwargs))
            forms.append(result_form)
            return [convert_to_tensor(v) for v in out]
        out = _core.call_recomputed(run, [convert_to_tensor(v) for v in leaves])
        return pack(forms[0], out)
    return call


class _Names(_thread_local):
    """The name scopes that are open on a thread."""

    def __init__(self):
        self.open = []


_names = _Names()


class name_scope:
    """Names of variables that are made inside begin with it; names of ops come from functions and layers."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        name = self.name or ""
        if name and not name.endswith("/"):
            inside = get_current_name_scope()
            name = f"{inside}/{name}/" if inside else f"{name}/"
        _names.open.append(name)
        _core._set_name_scope(name)
        return name

    def __exit__(self, *_):
        _names.open.pop()
        _core._set_name_scope(_names.open[-1] if _names.open else "")


def get_current_name_scope():
    """The name scopes that are open, "outer/inner"; "" where none is."""
    return _names.open[-1].rstrip("/") if _names.open else ""
