"""Loss and Metric: classes that users derive theirs from."""
import re
import types

from berth import _core
from berth._frames import hide_in
from berth._function import call_converted
from berth._tensor import refuse


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class _IsEngines(type):
    """isinstance() holds for the engine's own as well."""

    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value) or (
            cls in (Loss, Metric) and isinstance(value, cls._engine))


class Loss(metaclass=_IsEngines):
    """A loss of one's own: override call(y_true, y_pred), which returns a value per sample."""

    _engine = _core.Loss

    def __init__(self, name=None, reduction="sum_over_batch_size", dtype=None):
        refuse(type(self).__name__, dtype=None if dtype in (None, "float32") else dtype)
        self.name = name or _snake(type(self).__name__)
        self.reduction = "none" if reduction is None else str(reduction).lower().rsplit(".", 1)[-1]
        if self.reduction == "auto":
            self.reduction = "sum_over_batch_size"

    def get_config(self):
        """The arguments that make an equal loss, for files."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config):
        """The loss that a config describes."""
        return cls(**config)

    def call(self, y_true, y_pred):
        """The loss of each sample, [batch]; a loss of one's own overrides it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method call(self, y_true, y_pred)")

    @property
    def __berth__(self):
        return _core.own_loss(self.name, lambda t, p: call_converted(self.call, t, p), self.reduction)

    def __call__(self, y_true, y_pred, sample_weight=None):
        return self.__berth__(y_true, y_pred, sample_weight)


class Metric(metaclass=_IsEngines):
    """A metric of one's own: override update_state() and result(); variables by add_weight()."""

    _engine = _core.Metric

    def __init__(self, dtype=None, name=None):
        if isinstance(dtype, str) and name is None and dtype not in ("float32", "float64"):
            name = dtype  # Metric("name"), as in Keras 2
        self.name = name or _snake(type(self).__name__)
        self.dtype = "float32"
        self.__berth__ = _core.own_metric(self, self.name)

    def get_config(self):
        """The arguments that make an equal metric, for files."""
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config):
        """The metric that a config describes."""
        return cls(**config)

    def add_weight(self, shape=(), initializer=None, dtype=None, name=None, **kwargs):
        """Makes a float32 variable that reset_state() sets to zero."""
        if isinstance(shape, str):  # add_weight("total", ...), as in Keras 2
            name, shape = shape, kwargs.get("shape", ())
        refuse("add_weight", dtype=None if dtype is None or dtype == _core.float32 else dtype)
        v = _core.add_metric_variable(self.__berth__, name or "variable", list(shape or ()))
        if initializer not in (None, "zeros"):
            values = initializer(v.shape) if callable(initializer) else _core.ops.ones(
                v.shape) if initializer == "ones" else None
            if values is None:
                raise ValueError(f"add_weight: the initializer of a metric is 'zeros', 'ones' or a "
                                 f"function of the shape, not {initializer!r}")
            v.assign(values)
        return v

    add_variable = add_weight

    def update_state(self, *args, **kwargs):
        """Takes a batch into account; a metric of one's own overrides it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method update_state()")

    def result(self):
        """The value of all batches so far; a metric of one's own overrides it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method result()")

    def _update_of_engine(self, values, weight):
        kwargs = {} if weight is None else {"sample_weight": weight}
        call_converted(self.update_state, *values, **kwargs)

    def reset_state(self):
        """Sets the variables to zero."""
        for v in self.variables:
            v.assign(_core.ops.zeros(v.shape, v.dtype))

    def reset_states(self):
        """reset_state()."""
        self.reset_state()

    @property
    def variables(self):
        """The variables of the metric."""
        return self.__berth__.variables

    weights = variables

    def __call__(self, *args, **kwargs):
        self.update_state(*args, **kwargs)
        return self.result()


class MeanOf(Metric):
    """The mean of what a function gives for each sample: compile(metrics=[function])."""

    def __init__(self, function):
        super().__init__(name=function.__name__)
        self.function = function
        self.total, self.count = self.add_weight(name="total"), self.add_weight(name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        values = _core.ops.math.cast(call_converted(self.function, y_true, y_pred), _core.float32)
        weight = _core.ops.ones_like(values) if sample_weight is None else _core.ops.broadcast_to(
            sample_weight, _core.ops.shape(values))
        self.total.assign_add(_core.ops.math.reduce_sum(values * weight))
        self.count.assign_add(_core.ops.math.reduce_sum(weight))

    def result(self):
        return _core.ops.math.divide_no_nan(self.total.read_value(), self.count.read_value())


def metric_of(value):
    """A metric, the name of one, or a function of (y_true, y_pred) as a metric."""
    if isinstance(value, types.BuiltinFunctionType):
        return value.__name__
    return MeanOf(value) if isinstance(value, types.FunctionType) else value


class Reduction:
    """How a loss makes one number of many (keras.losses.Reduction)."""

    AUTO = SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    SUM, NONE = "sum", "none"


def owner(metric):
    """The object of Python for a metric of the engine."""
    own = _core.owner_of_metric(metric)
    return metric if own is None else own


hide_in(Loss, Metric)


class DatasetCreator:
    """A function from a tf.distribute.InputContext to a data set, which fit calls, once per input pipeline."""

    def __init__(self, dataset_fn, input_options=None):
        if not callable(dataset_fn):
            raise TypeError(f"DatasetCreator of a {type(dataset_fn).__name__}; expected a function from an InputContext to a "
                            "tf.data.Dataset")
        self.dataset_fn, self.input_options = dataset_fn, input_options

    def __call__(self, *args, **kwargs):
        from berth.data import Dataset
        made = self.dataset_fn(*args, **kwargs)
        if not isinstance(made, Dataset):
            raise TypeError(f"DatasetCreator: the function returns a {type(made).__name__}; expected a tf.data.Dataset")
        return made
