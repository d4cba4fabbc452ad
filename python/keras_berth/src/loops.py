"""Steps one after another over a sequence: op by op, or as a loop of the engine in a trace of many of them."""
import berth as tf
from berth import _core
from berth._structure import pack, present

_ops = _core.ops
_UNROLLED = 64  # steps that stand one by one in a trace; a longer sequence is a loop, which is compiled sooner


def rows_of(x, axis=0):
    """A function of a number, or a scalar tensor in a loop: x at that place of the axis."""
    columns = []

    def row(i):
        if not isinstance(i, int):
            return _ops.gather(x, i, axis=axis)
        if not columns:
            columns.extend(_ops.unstack(x, axis=axis))
        return columns[i]

    return row


def in_turns(step, carry, count, axis=0, unroll=False):
    """step(k, carry) -> (carry, results) for k = 0, 1, ...; returns the last carry and all results, along `axis`.

    Results that are None stay None.
    """
    if unroll or count <= _UNROLLED or not _core.traces_loop():
        every = []
        for k in range(count):
            carry, results = step(k, carry)
            leaves, form = present(results)
            every.append(leaves)
        return carry, pack(form, [_ops.stack([tf.convert_to_tensor(v) for v in rows], axis) for rows in zip(*every)])
    carry, results = step(0, carry)  # whose shapes and dtypes are those of all
    carried, form = present(carry)
    carried = [tf.convert_to_tensor(v) for v in carried]
    first, result_form = present(results)
    first = [tf.convert_to_tensor(v) for v in first]
    n = len(carried)

    def turn(k, *values):
        new, rows = step(k, pack(form, values[:n]))
        new, rows = present(new)[0], present(rows)[0]
        return (k + 1, *(tf.cast(v, old.dtype) for v, old in zip(new, carried)),
                *(_written(all, k, tf.cast(v, all.dtype)) for v, all in zip(rows, values[n:])))

    every = [_written(_ops.zeros([count, *v.shape], v.dtype), 0, v) for v in first]
    done = tf.while_loop(lambda k, *_: k < count, turn, (1, *carried, *every), maximum_iterations=count - 1)
    return pack(form, done[1:1 + n]), pack(result_form, [_moved(v, axis) for v in done[1 + n:]])


def _moved(x, axis):
    """x with its first axis at another place."""
    rest = list(range(1, len(x.shape)))
    return _ops.transpose(x, [*rest[:axis], 0, *rest[axis:]]) if axis else x


def _written(every, k, row):
    return _ops.tensor_scatter_nd_update(every, _ops.reshape(_core.convert(k, "int32"), [1, 1]), _ops.expand_dims(row, 0))
