"""Losses, metrics, optimizers and their kin: what the engine's table has of keras."""
import functools
import importlib
import json
import types

from berth import _core, _replica_threads
from berth._function import executing_eagerly

_keras = _core.ops.keras
_core.Optimizer.__repr__ = lambda self: f"<Optimizer {self.name}, learning_rate={float(self.learning_rate):.6g}>"
_core.Loss.__repr__ = lambda self: f"<Loss {self.name}>"
_core.Metric.__repr__ = lambda self: f"<Metric {self.name}>"
_core.KerasTensor.__repr__ = lambda self: (
    f"<KerasTensor shape={tuple(self.shape.as_list())}, dtype={self.dtype.name}>")


def _of(name, kind=None):
    source = getattr(_keras, name, None)
    if source is None:
        return {}
    return {k: v for k, v in vars(source).items()
            if isinstance(v, types.BuiltinFunctionType) and not k.startswith("_")}


def _application(make):
    @functools.wraps(make)
    def application(*args, weights=None, input_shape=None, **kwargs):
        if weights is not None:
            raise ValueError(f"{make.__name__}: weights is {weights!r}; expected None, and model.load_weights(path) afterwards")
        if input_shape is not None:
            height, width, kwargs["channels"] = input_shape
            if height != width:
                raise ValueError(f"{make.__name__}: input_shape is {tuple(input_shape)}; expected a square")
            kwargs["image_size"] = height
        return importlib.import_module("berth.keras.models").wrapped(make(*args, **kwargs))
    return application


losses = _of("losses")
metrics = _of("metrics")


def _optional(make):
    """In Keras None is the default of what an optimizer does not do."""
    @functools.wraps(make)
    def made(*args, **kwargs):
        return make(*args, **{k: v for k, v in kwargs.items() if v is not None})
    return made


optimizers = {k: _optional(v) for k, v in _of("optimizers").items() if k != "schedules"}
schedules = {k: v for k, v in vars(_keras.optimizers.schedules).items()
             if isinstance(v, types.BuiltinFunctionType)}
initializers = _of("initializers")
regularizers = _of("regularizers")
constraints = _of("constraints")
activations = _of("activations")
applications = {name: _application(make) if name[0].isupper() else make for name, make in _of("applications").items()}
utils = _of("utils")

# Keras' short names.
for _names in (losses, metrics):
    for _short, _long in (("MSE", "mean_squared_error"), ("MAE", "mean_absolute_error"),
                          ("MAPE", "mean_absolute_percentage_error"),
                          ("MSLE", "mean_squared_logarithmic_error"), ("KLD", "kl_divergence")):
        if _long in losses:
            _names.setdefault(_short, losses[_long])
            _names.setdefault(_short.lower(), losses[_long])
for _short, _long in (("l1", "L1"), ("l2", "L2"), ("l1_l2", "L1L2")):
    if _long in regularizers:
        regularizers.setdefault(_short, regularizers[_long])


def _to_categorical(x, num_classes=None):
    """Class numbers [...] as rows of zeros with a one, float32 [..., num_classes]; an array."""
    import numpy
    x = numpy.asarray(x, dtype="int64")
    if x.ndim > 1 and x.shape[-1] == 1:
        x = x.reshape(x.shape[:-1])
    classes = int(x.max()) + 1 if num_classes is None else num_classes
    return numpy.eye(classes, dtype="float32")[x]


utils["to_categorical"] = _to_categorical


def _set_random_seed(seed):
    """Sets the seed of all random numbers of the engine."""
    _core.set_seed(seed)


utils["set_random_seed"] = _set_random_seed


# Optimizers: Keras' attributes and methods over the engine's handle.
def _apply_gradients(self, grads_and_vars, name=None):
    """Updates each variable by its gradient: pairs (gradient, variable)."""
    pairs = list(grads_and_vars)
    self.apply([g for g, _ in pairs], [v for _, v in pairs])
    return _engine_iterations(self)


_handle = _core.Optimizer
_engine_apply, _engine_build = _handle.apply, _handle.build
_engine_rate, _engine_iterations, _engine_variables = (_handle.learning_rate, _handle.iterations,
                                                       _handle.variables)
_last_variables = {}


def _iterations(self):
    """How many updates were made: of gradients that are added up, one per so many calls."""
    config = json.loads(_core.part_config(self))["config"]
    config = config.get("inner_optimizer", {}).get("config", config)
    steps = config.get("gradient_accumulation_steps") or 1
    return _engine_iterations(self) // steps if steps > 1 else _engine_iterations(self)


def _apply(self, grads, trainable_variables=None):
    """Updates variables by gradients, one for each."""
    if _replica_threads.current():
        raise NotImplementedError("an update by an optimizer of the engine in a replica that runs op by op, as its function reads a "
                                  "value: read it from what run() returns, or use the package Keras")
    _engine_apply(self, list(grads), list(trainable_variables))


def _build(self, variables):
    """Makes the slots of variables."""
    _engine_build(self, list(variables))


_handle.apply = _apply
_handle.apply_gradients = _apply_gradients
_handle.build = _build


def _rate(self):
    """The variable, or what the schedule says of the next step."""
    schedule = self.schedule()
    return _engine_rate(self) if schedule is None else schedule(_engine_iterations(self))


def _set_rate(self, rate):
    if self.schedule() is not None or isinstance(rate, _core.LearningRateSchedule):
        raise TypeError("learning_rate: a schedule sets the rate of an optimizer that was made with it, and stays; "
                        "expected a number, for an optimizer that was made with a number")
    self.set_learning_rate(float(rate))


_handle.learning_rate = property(_rate, _set_rate)
_handle.lr = _handle.learning_rate
_handle.iterations = property(_iterations)
_handle.variables = property(lambda self: _engine_variables(self), doc="Iterations, learning rate and slots.")

_metric_variables = _core.Metric.variables
_core.Metric.variables = property(lambda self: _metric_variables(self), doc="The variables of the metric.")
_core.Metric.reset_states = _core.Metric.reset_state


def _metric_call(self, *args, **kwargs):
    self.update_state(*args, **kwargs)
    # While a function is traced there is no value yet; most metrics read theirs on the host.
    return self.result() if executing_eagerly() else None


_core.Metric.__call__ = _metric_call
