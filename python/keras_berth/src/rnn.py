"""Recurrent loops: a step function over time, whose steps stand one by one in the trace."""
from berth import _core
from keras.src import tree

from keras_berth.src.ops.core import convert_to_tensor

_ops = _core.ops


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False,
        input_length=None, time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    """Returns (last output, outputs [batch, time, ...], last states)."""
    time = 0 if time_major else 1
    columns = [_ops.unstack(convert_to_tensor(x), axis=time) for x in tree.flatten(inputs)]
    steps = range(len(columns[0]))
    if not steps:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    masks = None if mask is None else _masks(mask, time)
    states, constants = initial_states, tuple(constants or ())
    outputs, last = [], None
    for i in (reversed(steps) if go_backwards else steps):
        row = tree.pack_sequence_as(inputs, [c[i] for c in columns])
        out, new_states = step_function(row, tuple(states) + constants)
        if masks is not None:
            previous = _ops.zeros_like(out) if last is None or zero_output_for_mask else last
            out = _kept(masks[i], out, previous)
            new_states = tree.pack_sequence_as(new_states, [
                _kept(masks[i], new, old) for new, old in zip(tree.flatten(new_states), tree.flatten(states))])
        last, states = out, new_states
        outputs = [*outputs, out] if return_all_outputs else [out]
    return last, tree.map_structure(lambda *rows: _ops.stack(list(rows), time), *outputs), states


def _masks(mask, time):
    """What each step keeps: bool [batch, 1...]."""
    mask = convert_to_tensor(mask, "bool")
    return _ops.unstack(mask, axis=time)


def _kept(mask, new, old):
    rank = len(new.shape)
    while len(mask.shape) < rank:
        mask = _ops.expand_dims(mask, -1)
    return _ops.where(mask, new, convert_to_tensor(old, new.dtype))


def _no_fused(*args, **kwargs):
    raise NotImplementedError


lstm = gru = bidirectional_lstm = bidirectional_gru = _no_fused


def cudnn_ok(*args, **kwargs):
    return False
