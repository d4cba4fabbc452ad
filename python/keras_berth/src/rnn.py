"""Recurrent layers: a step function over time, and LSTM as one op of the engine."""
from berth import _core
from keras.src import activations, tree

from keras_berth.src.loops import in_turns, rows_of
from keras_berth.src.ops.core import convert_to_tensor

_ops = _core.ops


def rnn(step_function, inputs, initial_states, go_backwards=False, mask=None, constants=None, unroll=False,
        input_length=None, time_major=False, zero_output_for_mask=False, return_all_outputs=True):
    """Returns (last output, outputs [batch, time, ...], last states)."""
    time = 0 if time_major else 1
    leaves = [convert_to_tensor(x) for x in tree.flatten(inputs)]
    count, rows = leaves[0].shape[time], [rows_of(x, time) for x in leaves]
    if not count:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    kept = None if mask is None else rows_of(convert_to_tensor(mask, "bool"), time)
    constants = tuple(constants or ())

    def step(k, carry):
        last, states = carry
        i = count - 1 - k if go_backwards else k
        out, new = step_function(tree.pack_sequence_as(inputs, [row(i) for row in rows]), tuple(states) + constants)
        if kept is not None:
            previous = _ops.zeros_like(out) if last is None or zero_output_for_mask else last
            out = _kept(kept(i), out, previous)
            new = tree.pack_sequence_as(new, [
                _kept(kept(i), a, b) for a, b in zip(tree.flatten(new), tree.flatten(states))])
        return (out, new), out if return_all_outputs else None

    (last, states), outputs = in_turns(step, (None, initial_states), count, time, unroll)
    if not return_all_outputs:
        outputs = tree.map_structure(lambda v: _ops.expand_dims(v, time), last)
    return last, outputs, states


def _kept(mask, new, old):
    """`new` where the mask, bool [batch] or [batch, 1...], says so."""
    rank = len(new.shape)
    while len(mask.shape) < rank:
        mask = _ops.expand_dims(mask, -1)
    return _ops.where(mask, new, convert_to_tensor(old, new.dtype))


def lstm(inputs, initial_state_h, initial_state_c, mask, kernel, recurrent_kernel, bias, activation,
         recurrent_activation, return_sequences=False, go_backwards=False, unroll=False):
    """Returns (last output, outputs, last states); NotImplementedError where the engine's op computes something else.

    Of a mask it is not said whether outputs that are left out are zeros (zero_output_for_mask).
    """
    if mask is not None or activation is not activations.tanh or recurrent_activation is not activations.sigmoid or unroll:
        raise NotImplementedError
    x, kernel, recurrent_kernel, h, c = map(
        convert_to_tensor, (inputs, kernel, recurrent_kernel, initial_state_h, initial_state_c))
    if x.dtype.name not in ("float32", "float64") or not x.shape[1]:
        raise NotImplementedError
    parts = _ops.matmul(_ops.reverse(x, [1]) if go_backwards else x, kernel)
    if bias is not None:
        parts = parts + convert_to_tensor(bias)
    outputs, c, *_ = _core.call_op("LSTM", [parts, recurrent_kernel, h, c], {})
    last = outputs[:, -1]
    return last, outputs if return_sequences else _ops.expand_dims(last, 1), [last, c]


def _no_fused(*args, **kwargs):
    raise NotImplementedError


gru = bidirectional_lstm = bidirectional_gru = _no_fused


def cudnn_ok(*args, **kwargs):
    return False
