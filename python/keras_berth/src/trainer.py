"""fit(), evaluate() and predict() of Keras' models: steps that change variables in place, as plans of the engine."""
import contextlib
import warnings

import berth as tf
import numpy as np
from berth import _core
from berth._placement import save_text
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.saving import serialization_lib
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from keras_berth.src import distribution_lib, losses
from keras_berth.src.elastic import ElasticFit, watches_batches
from keras_berth.src.epoch import Epochs, NoBatches, is_text, tensors
from keras_berth.src.layer import steps_of
from keras_berth.src.plan import choose_for, fits, plan_of
from keras_berth.src.steps import ScheduledStep, Step


class BerthTrainer(base_trainer.Trainer):
    """The mixin of keras.Model."""

    def __init__(self):
        super().__init__()
        self.train_function = self.test_function = self.predict_function = None
        self._contract, self._gradient_norms = None, False
        self._last_step = None
        strategy = tf.distribute.get_strategy() if tf.distribute.has_strategy() else None
        self._strategy = strategy or distribution_lib.strategy()
        self._divider = self._strategy if distribution_lib.divides(self._strategy) else None
        self._on_servers = hasattr(self._strategy, "servers_of")

    @property
    def distribute_strategy(self):
        """The strategy in whose scope the model was made, or the default one."""
        return self._strategy or tf.distribute.get_strategy()

    def compile(self, *args, contract=None, gradient_norms=False, **kwargs):
        """Keras' compile(); contract: a tf.Contract, or several, that every step keeps.

        gradient_norms: logs the norm of the gradient of each layer, of the last batch, as "gradient_norm/dense"; of replicas,
        that of their sum, which takes one sum more.
        """
        if kwargs.get("run_eagerly") and self._divider is not None:
            raise ValueError(f"run_eagerly: a {type(self._divider).__name__} divides a step that was traced; expected "
                             "run_eagerly=False, or a model that is made outside of the strategy's scope")
        _refuse_own_keras("compile", (args, kwargs))
        self._contract, self._gradient_norms = contract, bool(gradient_norms)
        self.train_function = self.test_function = self.predict_function = None
        super().compile(*args, **kwargs)

    def compile_from_config(self, config):
        """Compiles as a file says; models with a compile() of their own as Keras does."""
        if type(self).compile is not BerthTrainer.compile:
            return super().compile_from_config(config)
        self.compile(**serialization_lib.deserialize_keras_object(config))
        if self.optimizer is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    # What a step does.

    def _forward(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _loss_of(self, x, y, y_pred, sample_weight, training):
        idle = self._idle(training)
        rows = 0 if _core.replica_id() in idle else next(v for v in tree.flatten(x) if v is not None).shape[0]
        several = _core.replica_id() is not None and isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy)
        with losses.part(rows, self._total(training)) if idle or several else contextlib.nullcontext():
            loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
            if tuple(loss.shape) == (0,):  # Keras leaves the loss of no examples as it is; tasks must wait for sums alike
                loss = losses.scaled(tf.reduce_sum(loss))
            self._loss_tracker.update_state(losses.unscaled(loss), sample_weight=rows)
        return loss

    def _aggregate_additional_loss(self, loss):
        return losses.scaled(super()._aggregate_additional_loss(loss))

    def _idle(self, training):
        """The replicas without rows of their own, which compute those of another."""
        step = self.train_function if training else self.test_function
        return getattr(step, "idle", ())

    def _total(self, training):
        """How many examples all tasks have together, where that is known."""
        return getattr(self.train_function if training else self.test_function, "total", None)

    def _metrics_of(self, x, y, y_pred, sample_weight, training):
        if _core.replica_id() in self._idle(training):
            return self.get_metrics_result()
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def train_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self._forward(x, training=True)
            loss = self._loss_of(x, y, y_pred, sample_weight, training=True)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        weights, norms = self.trainable_weights, {}
        if weights:
            gradients = tape.gradient(loss, weights)
            if self._gradient_norms:
                norms = _norms(weights, gradients, self.optimizer.scale_loss(tf.ones([])))
            self.optimizer.apply_gradients(zip(gradients, weights))
        else:
            warnings.warn("The model does not have any trainable weights.")
        return {**self._metrics_of(x, y, y_pred, sample_weight, training=True), **norms}

    def test_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._forward(x, training=False)
        self._loss_of(x, y, y_pred, sample_weight, training=False)
        return self._metrics_of(x, y, y_pred, sample_weight, training=False)

    def predict_step(self, data):
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._forward(x, training=False)

    @property
    def _split(self):
        """The strategy that splits batches; None where a step runs on a whole one."""
        return None if self._on_servers or self._divider is not None else self._strategy

    def _make(self, step, name, strategy=None, joined="mean"):
        distribution_lib.warn_of_unmatched(self)
        own = getattr(step, "__func__", None) is getattr(BerthTrainer, name)
        step = self._named(step)
        if self._on_servers and joined == "mean" and not self.run_eagerly:
            return ScheduledStep(step, f"{self.name}/{name}", self._strategy,
                                 lambda: [*self.variables, *getattr(self.optimizer, "variables", [])])
        return Step(step, f"{self.name}/{name}", self.run_eagerly, self._contract, strategy, self._divider, joined, weighs=own)

    def _named(self, step):
        """The step, with layers named as in summary()."""
        def named(data):
            with steps_of(self, self._divider):
                return step(data)
        return named

    def _of_predict(self):
        """The strategy of predict(): of several tasks each predicts all."""
        several = isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy)
        return None if several else self._split

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = self._make(self.train_step, "train_step", self._split)
        return self.train_function

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._make(self.test_step, "test_step", self._split)
        return self.test_function

    def make_predict_function(self, force=False):
        if self.predict_function is None or force:
            self.predict_function = self._make(self.predict_step, "predict_step", self._of_predict(), "concat")
        return self.predict_function

    # Epochs.

    def _is_own(self, step):
        """Whether a step is the model's class', which may give the model other things than the batch."""
        return getattr(type(self), step) is not getattr(BerthTrainer, step)

    def _build_for(self, epochs, step):
        """Makes variables of the model, its metrics and its optimizer; what this cannot make, the first step makes.

        As in Keras on TensorFlow, without a strategy a step of the model's own makes them itself.
        """
        if self._strategy is None and self._is_own(step):
            return
        first = epochs.first_batch()
        with (contextlib.nullcontext() if self._strategy is None else self._strategy.scope(),
              contextlib.suppress(RuntimeError)):  # a train_step of the model's own need not call the model
            if any(map(is_text, tree.flatten(first))):
                self._build_by_values(tensors(first))
            else:
                self._symbolic_build(data_batch=first)
        undecided = isinstance(self._strategy, tf.distribute.AutoStrategy) and self._strategy.chosen is None
        if undecided and self.optimizer is not None:
            choose_for(self, self._strategy, first)

    def _symbolic_build(self, *args, **kwargs):
        with steps_of(self):
            super()._symbolic_build(*args, **kwargs)

    def _build_by_values(self, batch):
        """What _symbolic_build() does, for texts, which are not traced."""
        x, y, _ = data_adapter_utils.unpack_x_y_sample_weight(batch)
        y_pred = self._forward(x, training=False)
        if self._compile_metrics is not None and not self._compile_metrics.built and y is not None:
            self._compile_metrics.build(y, y_pred)
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def _calls(self, step, epochs, whole, callbacks, kind):
        """Runs an epoch; yields after each call of the engine (first step, last step, results of the last)."""
        begin = getattr(callbacks, f"on_{kind}_batch_begin")
        if epochs.done:
            epochs.done = False
            return
        if isinstance(step, ScheduledStep):
            yield from step.over(epochs, self.steps_per_execution > 1 or _watches_batches(callbacks, kind), begin)
            return
        per_call = self.steps_per_execution
        if per_call == 1 and not (self.run_eagerly or epochs.one_by_one or _watches_batches(callbacks, kind)):
            per_call = None
        if whole is None:
            for first, last, batches in epochs:
                first, last = first + epochs.skipped, last + epochs.skipped
                begin(first)
                out, count = epochs.group(step, *batches, first) if per_call is None else (
                    step(batches, epochs.totals(first, len(batches))), 1)
                yield first, last + count - 1, out
                if epochs.skipped and last + 1 >= epochs.num_batches:
                    break
            return
        epochs.data_adapter.on_epoch_begin()
        for first, last, out in step.over(whole, epochs.order(), epochs.data_adapter.batch_size, per_call, begin):
            yield first, last, out
        epochs.data_adapter.on_epoch_end()

    def _callbacks(self, callbacks, epochs, verbose, count, **options):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        _refuse_own_keras("callbacks", callbacks)
        return callbacks_module.CallbackList(callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=count,
                                             steps=epochs.num_batches, model=self, **options)

    @traceback_utils.filter_traceback
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0,
            steps_per_epoch=None, validation_steps=None, validation_batch_size=None, validation_freq=1):
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn(f"Limiting epochs to {most}")
            epochs = most
        self._eval_epochs = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split)
        batches = Epochs(x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps_per_epoch, shuffle=shuffle,
                         class_weight=class_weight, steps_per_execution=self.steps_per_execution, strategy=self._split)
        self._build_for(batches, "train_step")
        callbacks = self._callbacks(callbacks, batches, verbose, epochs, add_history=True)
        validation = None
        if validation_data is not None:
            validation = dict(zip(("x", "y", "sample_weight"),
                                  data_adapter_utils.unpack_x_y_sample_weight(validation_data)),
                              batch_size=validation_batch_size or batch_size)
        whole = None if self._strategy is not None else batches.rows()
        self.stop_training = False
        self.make_train_function()
        kept = ElasticFit(self, batches)
        if kept.begin(callbacks):
            return self.history
        callbacks.on_train_begin()
        kept.apply()
        training_logs, logs = None, {}
        for epoch in kept.epochs(range(self._initial_epoch or initial_epoch, epochs)):
            logs = kept.epoch_begins(epoch)
            callbacks.on_epoch_begin(epoch)
            with batches.catch_stop_iteration():
                for _, last, logs in self._calls(self.train_function, batches, whole, callbacks, "train"):
                    callbacks.on_train_batch_end(last, logs)
                    kept.step_ends(epoch, last + 1)
                    if self.stop_training:
                        break
            self._last_step = self.train_function
            epoch_logs = dict(self._get_metrics_result_or_logs(logs))
            if validation is not None and self._should_eval(epoch, validation_freq):
                if self._eval_epochs is None:
                    self._eval_epochs = self._for_evaluation(steps=validation_steps, **validation)
                val_logs = self.evaluate(steps=validation_steps, callbacks=callbacks, return_dict=True,
                                         _epochs=self._eval_epochs, **validation)
                epoch_logs.update({f"val_{name}": v for name, v in val_logs.items()})
            callbacks.on_epoch_end(epoch, epoch_logs)
            kept.epoch_ends(epoch)
            training_logs = epoch_logs
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        self._eval_epochs = None
        callbacks.on_train_end(logs=training_logs)
        return self.history

    def _for_evaluation(self, x, y, sample_weight, batch_size, steps):
        batches = Epochs(x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps, shuffle=False,
                         steps_per_execution=self.steps_per_execution, strategy=self._split)
        return batches, None if self._strategy is not None else batches.rows()

    @traceback_utils.filter_traceback
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False, **kwargs):
        self._assert_compile_called("evaluate")
        prepared = kwargs.pop("_epochs", None)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        batches, whole = prepared or self._for_evaluation(x, y, sample_weight, batch_size, steps)
        with contextlib.suppress(NoBatches):  # Keras warns, and goes on without
            self._build_for(batches, "test_step")
        callbacks = self._callbacks(callbacks, batches, verbose, 1)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs = {}
        self.reset_metrics()
        with batches.catch_stop_iteration():
            for _, last, logs in self._calls(self.test_function, batches, whole, callbacks, "test"):
                callbacks.on_test_batch_end(last, logs)
                if self.stop_evaluating:
                    break
        self._last_step = self._last_step or self.test_function
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        batches = Epochs(x, batch_size=batch_size, steps_per_epoch=steps, shuffle=False,
                         steps_per_execution=self.steps_per_execution, strategy=self._of_predict())
        callbacks = self._callbacks(callbacks, batches, verbose, 1)
        self.make_predict_function()
        self.stop_predicting = False
        if not all(layer.built for layer in self._flatten_layers()):
            self(data_adapter_utils.unpack_x_y_sample_weight(tensors(batches.first_batch()))[0])
        callbacks.on_predict_begin()
        results = []
        with batches.catch_stop_iteration():
            for first, last, group in batches:
                callbacks.on_predict_batch_begin(first)
                outs = [self.predict_function([batch]) for batch in group]
                results += outs
                callbacks.on_predict_batch_end(last, {"outputs": _joined(outs)})
                if self.stop_predicting:
                    break
        callbacks.on_predict_end()
        return _joined(results)

    # Single batches.

    def _get_metrics_result_or_logs(self, logs):
        # A step of the model's own need not use the metrics of compile(), which are then never built.
        if self._compile_metrics is not None and not self._compile_metrics.built:
            return logs
        return super()._get_metrics_result_or_logs(logs)

    def _build_on(self, batch, step):
        if self._strategy is None and self._is_own(step):
            return
        with contextlib.nullcontext() if self._strategy is None else self._strategy.scope():
            self._symbolic_build(data_batch=tensors(batch))

    def _on_batch(self, step, batch, return_dict):
        self.reset_metrics()
        logs = pythonify_logs(step([tensors(batch)]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                                 f"Received: sample_weight={sample_weight}, class_weight={class_weight}")
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        self._build_on((x, y, sample_weight), "train_step")
        return self._on_batch(self.make_train_function(), (x, y, sample_weight), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        self._build_on((x, y, sample_weight), "test_step")
        return self._on_batch(self.make_test_function(), (x, y, sample_weight), return_dict)

    def predict_on_batch(self, x):
        out = self.make_predict_function()([tensors((x,))])
        return tree.map_structure(lambda t: np.array(t), out)

    # What ran where.

    def _reported(self):
        step = self._last_step or self.train_function or self.test_function or self.predict_function
        if step is None or not hasattr(step.last, "placement"):
            raise ValueError("nothing has run as a plan yet: call fit(), evaluate() or predict() first, "
                             "without run_eagerly")
        return step.last

    def placement(self):
        """What ran where in the steps that fit() or evaluate() ran last, with times, bytes and transfers."""
        return self._reported().placement()

    def explain(self, op):
        """Why an op of the last steps is where it is, and what would move it."""
        return self._reported().explain(op)

    def _berth_plan(self, strategy, batch):
        """What tf.distribute.Strategy.plan() is asked: of a batch size, or of a batch of data."""
        self._assert_compile_called("plan")
        if strategy is not self._strategy:
            raise ValueError(f"plan: the model is made for {self.distribute_strategy!r}; expected {strategy!r}: make and "
                             "compile it in the scope of the strategy that is asked")
        return plan_of(self, strategy, batch)

    def fits(self, batch, memory=None):
        """Whether a training step on so many examples fits each device, and the largest batch that does: nothing is trained.

        memory: bytes of each device, or a text like "8GiB"; None: what its limit leaves. For a model without keras.Input,
        batch is a batch of data, of which only shapes count.
        """
        self._assert_compile_called("fits")
        return fits(self, self._split, batch, memory)

    def plan_text(self, stage="plan"):
        """The last step function as text: stage "trace", "optimize", "place" or "plan"."""
        return self._reported().plan_text(stage)

    def save_graph(self, path, stage="optimize"):
        """Writes plan_text(stage) to a file, for `berth plan` and `berth place`; after train_on_batch() it is one step."""
        save_text(path, self.plan_text(stage))


def _norms(weights, gradients, scale):
    """Norms of the gradients by layer, without the scale of the loss."""
    squares, pairs = {}, [(w, _core.convert(g, None)) for w, g in zip(weights, gradients) if g is not None]
    sums = [g for _, g in pairs] if _core.replica_id() is None else _core.all_reduce("sum", [g for _, g in pairs])
    for (weight, _), gradient in zip(pairs, sums):
        layer = "gradient_norm/" + weight.path.rpartition("/")[0]
        squares[layer] = squares.get(layer, 0.0) + tf.reduce_sum(tf.square(tf.cast(gradient, "float32")))
    return {layer: tf.sqrt(square) / scale for layer, square in squares.items()}


def _refuse_own_keras(what, given):
    """Objects of berth.keras, as `tf.keras` is where `berth` is imported as `tf`, do not serve the package."""
    for each in tree.flatten(given):
        if getattr(each, "serves_the_package", False):  # such as berth.ray.ReportCheckpoint
            continue
        own = next((c for c in type(each).__mro__ if c.__module__.startswith("berth.keras") or
                    c.__module__ == "berth._core" and c.__name__ in ("Callback", "Metric", "Optimizer")), None)
        if own is not None:
            raise TypeError(f"{what}: {each!r} is of class {own.__name__} of berth.keras, and this model is of the package keras; expected "
                            "one of the package, as keras.callbacks.EarlyStopping (`tf.keras` is the package too in programs "
                            "that `python -m berth SCRIPT` runs)")


def _watches_batches(callbacks, kind):
    """True if a callback, apart from the progress bar, is to be called for each batch."""
    return any(watches_batches(c, kind) for c in callbacks.callbacks if type(c) is not callbacks_module.ProgbarLogger)


def _joined(outs):
    """The predictions of batches as one array, of each output."""
    return tree.map_structure(_joined_leaf, *outs)


def _joined_leaf(*parts):
    arrays = [np.array(p) for p in parts]
    if len(arrays) == 1:
        return arrays[0]
    return np.stack(arrays) if not arrays[0].shape else np.concatenate(arrays, axis=0)
