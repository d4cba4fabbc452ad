"""strategy.plan(model, batch): the training step of a model of Keras, planned before it runs."""
import contextlib

import berth as tf
from berth import _core
from berth._placement import FitsReport, bytes_of
from berth._structure import flatten, pack, present
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor

from keras_berth.src import variable
from keras_berth.src.epoch import tensors


def plan_of(model, strategy, batch):
    """The engine's prediction; batch: how many examples, or a batch of data, of which only shapes count."""
    examples, step_of = _steps(model, strategy, batch)
    return strategy.__berth__.plan_step("train_step", step_of, examples)


def choose_for(model, strategy, batch):
    """Lets an AutoStrategy choose by the training step on this batch."""
    examples, step_of = _steps(model, strategy, batch)
    strategy.__berth__.choose_step("train_step", step_of, examples)


def fits(model, strategy, batch, memory):
    """What model.fits() says; strategy: None where there is none."""
    examples, step_of = _steps(model, strategy, batch)
    handle = None if strategy is None else strategy.__berth__
    return FitsReport(examples, *_core.fits_step(handle, "train_step", step_of, examples, bytes_of(memory)))


def _steps(model, strategy, batch):
    """How many examples, and what makes the step on n of them."""
    data = _declared(model) if isinstance(batch, int) else tensors(batch)
    leaves, form = present(data)
    examples = batch if isinstance(batch, int) else leaves[0].shape[0]
    least = 1 if strategy is None else strategy.num_replicas_in_sync
    if examples < least:
        raise ValueError(f"plan: the batch has {examples} examples, there are {least} replicas; "
                         "expected at least one example for each")

    def specs(n):
        return [(tf.TensorShape([n, *v.shape[1:]]), tf.as_dtype(v.dtype)) for v in leaves]

    train_step = model._named(model.train_step)

    def step(values):
        with variable.without_metrics():
            return [tf.convert_to_tensor(v) for v in flatten(train_step(pack(form, values)))[0]]

    with contextlib.nullcontext() if strategy is None else strategy.scope():
        model._symbolic_build(data_batch=pack(form, [KerasTensor(s, d.name) for s, d in specs(examples)]))
    variables = [v._value for v in model.trainable_variables]
    return examples, lambda n: (specs(n), step, variables)


def _declared(model):
    """What the model declares: inputs, and targets as its losses want them."""
    inputs, outputs = (getattr(model, name, None) if model.built else None for name in ("inputs", "outputs"))
    if not inputs or any(None in x.shape[1:] for x in inputs):
        raise ValueError(f"plan: the shapes of the inputs of model {model.name!r} are not known; expected keras.Input with "
                         "all sizes but that of the batch, or a batch of data in place of its size")
    losses = model._compile_loss._user_loss if model._compile_loss is not None else None
    if isinstance(losses, dict):
        losses = [losses.get(name) for name in model.output_names]
    losses = losses if isinstance(losses, (list, tuple)) else [losses] * len(outputs)
    targets = [None if loss is None else _target(loss, out) for loss, out in zip(losses, outputs)]
    form = getattr(model, "_functional", model)
    return (tree.pack_sequence_as(form._inputs_struct, inputs), tree.pack_sequence_as(form._outputs_struct, targets))


def _target(loss, output):
    """Labels of classes, or the same as predictions."""
    name = f"{loss} {getattr(loss, 'name', '')} {getattr(loss, '__name__', '')} {type(loss).__name__}".lower()
    return KerasTensor(output.shape[:-1], "int32") if "sparse" in name else KerasTensor(output.shape, output.dtype)
