"""The operators that AutoGraph puts in place of Python's control flow (_autograph.py).

A block of the user's is a function without arguments here; what it changes is read and written by
get() and set(), the values of `names`. On a symbolic tensor a block is traced into a branch of cond
or a body of while_loop; on all else Python decides.
"""
import numpy as np
from malt.operators.variables import Undefined, UndefinedReturnValue

from berth import _core
from berth._core import Tensor, Variable
from berth._arrays import TensorArray
from berth._function import NeedsValues, traced_branches, without_text
from berth._ops import range as tf_range
from berth._structure import LEAF, Made, Fixed, flatten, pack
from berth._tensor import convert_to_tensor

_ops = _core.ops
_NUMBERS = (bool, int, float, np.generic)


class _Again(Exception):
    """A block must be traced anew, now that something is known of it."""

    def __init__(self, what):
        super().__init__(what)
        self.what = what


def is_staged(value):
    """True of a tensor that is not known while the function is traced."""
    return isinstance(value, (Tensor, Variable)) and _core.traces_cond(value)


def _predicate(value):
    value = convert_to_tensor(value)
    return value if value.dtype == _core.bool else _ops.not_equal(value, 0)


def _is_leaf(value):
    return isinstance(value, (Tensor, Variable, np.ndarray) + _NUMBERS)


def _missing(value):
    return isinstance(value, (Undefined, UndefinedReturnValue))


def _is_number(value):
    return isinstance(value, _NUMBERS)


def _dtype_of(value):
    """The dtype that a leaf has by itself."""
    return convert_to_tensor(value).dtype


def _cast(value, dtype):
    return convert_to_tensor(value, dtype if _is_number(value) else None)


def _joint(a, b, name, where):
    """The dtype of a value that is `a` here and `b` there: numbers of Python adapt."""
    if not _is_number(b) or not _is_number(a):
        strong, weak = (b, a) if _is_number(a) else (a, b)
        dtype = strong.dtype if isinstance(strong, (Tensor, Variable)) else _dtype_of(strong)
        if not _is_number(weak):
            other = _dtype_of(weak)
            if other != dtype:
                raise TypeError(f"'{name}' is {_dtype_of(a).name} {where[0]} and {_dtype_of(b).name} "
                                f"{where[1]}; tf.cast changes dtypes")
            return dtype
        if isinstance(weak, bool) != (dtype == _core.bool) or (
                isinstance(weak, float) and dtype.is_integer):
            raise TypeError(f"'{name}' is {_dtype_of(a).name} {where[0]} and {_dtype_of(b).name} "
                            f"{where[1]}; tf.cast changes dtypes")
        return dtype
    if isinstance(a, bool) != isinstance(b, bool):
        raise TypeError(f"'{name}' is {a!r} {where[0]} and {b!r} {where[1]}")
    return _dtype_of(a if isinstance(a, float) else b)


def _same_form(a, b):
    """True when two structures differ in their leaves alone."""
    if a is LEAF or b is LEAF:
        return a is b
    if isinstance(a, Fixed) and isinstance(b, Fixed):
        if a.value is b.value or (_missing(a.value) and _missing(b.value)):
            return True
        return type(a.value) is type(b.value) and isinstance(
            a.value, (str, bytes, slice)) and a.value == b.value
    if type(a) is not type(b):
        return False
    if isinstance(a, Made):
        return a.key == b.key and _same_form(a.form, b.form)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same_form(a[k], b[k]) for k in a)
    return isinstance(a, (list, tuple)) and len(a) == len(b) and all(map(_same_form, a, b))


def _show(form):
    if isinstance(form, Fixed):
        return "not set" if _missing(form.value) else repr(form.value)
    return "a tensor" if form is LEAF else f"a structure {form}"


def _without_text(leaves):
    without_text([v for v in leaves if not _is_number(v)])


def _is_text(form):
    return isinstance(form, Fixed) and isinstance(form.value, (str, bytes))


def _check_form(a, b, name, where):
    for form in (a, b):
        if isinstance(form, Made) and form.key[0] == "array":
            TensorArray.staged(form)
    if _same_form(a, b):
        return
    if _is_text(a) and _is_text(b):
        raise NeedsValues(f"'{name}' is text that depends on a tensor")
    if name.startswith("retval_") or name.startswith("do_return"):
        raise ValueError(f"a value is returned {where[0 if a is LEAF else 1]}, and not "
                         f"{where[1 if a is LEAF else 0]}: return in both, or after them")
    raise ValueError(f"'{name}' is {_show(a)} {where[0]} and {_show(b)} {where[1]}; what depends on "
                     "a tensor is a tensor, or a structure of tensors, in both")


_BRANCHES = ("where the condition holds", "where it does not")
_TURNS = ("before the loop", "after a turn")


def _flat(state):
    parts = [flatten(v, _is_leaf) for v in state]
    return [leaf for leaves, _ in parts for leaf in leaves], [form for _, form in parts]


def _count(form):
    """A list with an element for each leaf of a form."""
    if form is LEAF:
        return [LEAF]
    if isinstance(form, Made):
        return _count(form.form)
    if isinstance(form, dict):
        return [leaf for v in form.values() for leaf in _count(v)]
    if isinstance(form, (list, tuple)):
        return [leaf for v in form for leaf in _count(v)]
    return []


def if_stmt(cond, body, orelse, get, set, names, nouts):
    """if cond: body() else: orelse()"""
    if not is_staged(cond):
        return body() if cond else orelse()
    start, dtypes = get(), None
    while True:
        kept = []

        def branch(block):
            def run(_):
                set(start)
                block()
                leaves, forms = _flat(get()[:nouts])
                _without_text(leaves)
                kept.append((leaves, forms))
                if len(kept) == 2:
                    wanted = _joint_branches(*kept, names)
                    if wanted != [_cast(v, d).dtype for v, d in zip(
                            kept[0][0], dtypes or [None] * len(wanted))]:
                        raise _Again(wanted)
                    return without_text([_cast(v, d) for v, d in zip(leaves, wanted)])
                return without_text([_cast(v, d) for v, d in zip(leaves, dtypes or [None] * len(leaves))])
            return run

        try:
            out = traced_branches(_predicate(cond), branch(body), branch(orelse))
            break
        except _Again as again:
            dtypes = again.what
        finally:
            set(start)
    (leaves, forms), (others, _) = kept
    # A number, or a variable, that is the same in both stays what it is.
    out = [a if (a is b and isinstance(a, Variable)) or (
        _is_number(a) and type(a) is type(b) and a == b) else t
        for t, a, b in zip(out, leaves, others)]
    set(tuple(pack(list(forms), out)) + tuple(start[nouts:]))


def _joint_branches(one, other, names):
    for name, a, b in zip(names, one[1], other[1]):
        _check_form(a, b, name, _BRANCHES)
    owners = [name for name, form in zip(names, one[1]) for _ in _count(form)]
    return [_joint(a, b, name, _BRANCHES) for name, a, b in zip(owners, one[0], other[0])]


def if_exp(cond, if_true, if_false, text):
    """if_true() if cond else if_false()"""
    if not is_staged(cond):
        return if_true() if cond else if_false()
    return _value_of(cond, if_true, if_false, text)


def _value_of(cond, if_true, if_false, text):
    held = [None]

    def put(state):
        held[0] = state[0]
    if_stmt(cond, lambda: put((if_true(),)), lambda: put((if_false(),)), lambda: (held[0],), put,
            (text,), 1)
    return held[0]


def and_(a, b):
    first = a()
    if not is_staged(first):
        return first and b()
    return _value_of(first, lambda: _predicate(b()), lambda: _predicate(first), "and")


def or_(a, b):
    first = a()
    if not is_staged(first):
        return first or b()
    return _value_of(first, lambda: _predicate(first), lambda: _predicate(b()), "or")


def not_(a):
    return _ops.logical_not(_predicate(a)) if is_staged(a) else not a


def assert_stmt(test, message):
    """assert test, message()"""
    if not is_staged(test):
        assert test, message()
        return
    from berth import debugging
    debugging.Assert(test, [message()])


def while_stmt(test, body, get, set, names, opts):
    """while test(): body()"""
    more = test()
    while not is_staged(more):
        if not more:
            return
        body()
        more = test()
    _loop(test, body, get, set, names, opts.get("maximum_iterations"), opts)


def for_stmt(values, extra_test, body, get, set, names, opts):
    """for target in values: body(target); extra_test() is false after a break."""
    from berth.data import Dataset
    if not _core.traces_loop():
        pass
    elif isinstance(values, Dataset):
        raise NeedsValues("a data set is iterated inside a tf.function, which is not traced")
    elif isinstance(values, (Tensor, Variable)):
        return _for_tensor(convert_to_tensor(values), extra_test, body, get, set, names, opts)
    elif isinstance(values, _Range):
        return values.loop(extra_test, body, get, set, names, opts)
    for target in values:
        more = True if extra_test is None else extra_test()
        if is_staged(more):
            if_stmt(more, lambda: body(target), lambda: None, get, set, names, len(names))
        elif more:
            body(target)
        else:
            break


def _for_tensor(values, extra_test, body, get, set, names, opts):
    if len(values.shape) == 0:
        raise TypeError("a scalar has no elements to iterate over")
    length = values.shape[0]
    limit = _ops.shape(values)[0] if length is None else length
    _count_up(0, limit, 1, length, lambda i: body(_ops.gather(values, i)), extra_test, get, set,
              names, opts)


class _Range:
    """range(n) of a tensor: the values of a loop, and nothing else."""

    def __init__(self, *args):
        start, limit = (0, args[0]) if len(args) == 1 else args[:2]
        self._bounds = start, limit, args[2] if len(args) > 2 else 1

    def loop(self, extra_test, body, *state):
        _count_up(*self._bounds, None, body, extra_test, *state)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.__berth_tensor__()

    def __berth_tensor__(self):
        raise NeedsValues("the length of a range is a tensor, which is not known while the function is "
                          "traced; only a `for` can take it")


def _count_up(start, limit, step, length, body, extra_test, get, set, names, opts):
    """for i in range(start, limit, step): body(i); `length` turns if that is known."""
    dtype = next((v.dtype for v in (start, limit, step) if isinstance(v, (Tensor, Variable))), None)
    at = [convert_to_tensor(start, None if isinstance(start, Tensor) else dtype)]
    up = step > 0

    def more():
        if is_staged(up):
            inside = _ops.logical_or(_ops.logical_and(up, at[0] < limit),
                                     _ops.logical_and(step < 0, at[0] > limit))
        else:
            inside = at[0] < limit if up else at[0] > limit
        return inside if extra_test is None else and_(lambda: inside, extra_test)

    def turn():
        body(at[0])
        at[0] = at[0] + step

    def put(state):
        at[0] = state[0]
        set(tuple(state[1:]))

    most = opts.get("maximum_iterations")
    if length is not None:
        most = length if most is None else min(most, length)
    _loop(more, turn, lambda: (at[0], *get()), put, ("the index", *names), most, opts)


def _loop(test, body, get, set, names, limit, opts):
    """Traces a loop. What is not set before it starts as zeros of what a turn sets it to."""
    start, dtypes = list(get()), {}
    while True:
        leaves, forms = _flat(start)
        owners = [name for name, form in zip(names, forms) for _ in _count(form)]
        tensors = without_text([_cast(v, dtypes.get(i)) for i, v in enumerate(leaves)])

        def load(args):
            set(tuple(pack(list(forms), args)))

        def check(args):
            load(args)
            return [_predicate(test())]

        def turn(args):
            load(args)
            body()
            state = get()
            for i, form in enumerate(forms):
                if isinstance(form, Fixed):
                    _without_text(flatten(state[i], _is_leaf)[0])
                if isinstance(form, Fixed) and _missing(form.value) and not _missing(state[i]):
                    raise _Again((i, _zeros_of(state[i], names[i])))
            after, now = _flat(state)
            for name, a, b in zip(names, forms, now):
                _check_form(a, b, name, _TURNS)
            for i, (v, a) in enumerate(zip(leaves, after)):
                wanted = _joint(v if _is_number(v) else tensors[i], a, owners[i], _TURNS)
                if wanted != tensors[i].dtype:
                    raise _Again((None, (i, wanted)))
            return [_cast(v, t.dtype) for v, t in zip(after, tensors)]

        try:
            out = _core.trace_while(check, turn, tensors, -1 if limit is None else int(limit))
            break
        except _core.InvalidArgumentError as error:
            if opts.get("shape_invariants"):
                raise NeedsValues(f"a variable of a loop grows, as its shape invariant allows: {error}") from error
            raise
        except _Again as again:
            symbol, what = again.what
            if symbol is None:
                dtypes[what[0]] = what[1]
            else:
                start[symbol] = what()
                dtypes = {}
        finally:
            set(tuple(start))
    load(out)


def _zeros_of(value, name):
    """Returns a function that makes zeros like `value`: outside of the trace that has it."""
    leaves, form = flatten(value, _is_leaf)
    specs = [(t.shape, t.dtype) for t in map(convert_to_tensor, leaves)]
    for shape, _ in specs:
        if not shape.is_fully_defined():
            raise ValueError(f"'{name}' is first set inside of a loop on tensors, with a shape that "
                             f"is not known, {shape}; set it before the loop")
    return lambda: pack(form, [_ops.zeros(shape, dtype) for shape, dtype in specs])


def _len(value):
    if isinstance(value, (Tensor, Variable)) and value.shape[0] is None:
        return _ops.shape(value)[0]
    return len(value)


def _range(*args):
    return _Range(*args) if any(is_staged(a) for a in args) else range(*args)


def _tensor_range(*args, **kwargs):
    try:
        return tf_range(*args, **kwargs)
    except _core.FailedPreconditionError as error:
        if kwargs or not getattr(error, "needs_values", False):
            raise
        return _Range(*args)


def _int(value=0, *base):
    return _ops.math.cast(value, _core.int32) if is_staged(value) else int(value, *base)


def _float(value=0.0):
    return _ops.math.cast(value, _core.float32) if is_staged(value) else float(value)


BUILTINS = {len: _len, range: _range, tf_range: _tensor_range, int: _int, float: _float}
OPERATORS = {"if_stmt": if_stmt, "while_stmt": while_stmt, "for_stmt": for_stmt, "if_exp": if_exp,
             "and_": and_, "or_": or_, "not_": not_, "assert_stmt": assert_stmt}
