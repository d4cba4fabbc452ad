"""keras.Variable: holds a variable of Berth, made where the open device scope and strategy say."""
import contextlib
import threading

import berth as tf
from berth import _core
from berth._control import init_scope
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.stateless_scope import in_stateless_scope

from keras_berth.src import distribution_lib

# What no rule is given for, such as weights and slots of optimizers, is the same in all replicas.
_AGGREGATION = {"none": 3, "sum": 1, "mean": 2, "only_first_replica": 3}
_SYNCHRONIZATION = {"auto": 0, "none": 1, "on_write": 2, "on_read": 3}


_scopes = threading.local()  # .without: in without_metrics(); .slots: in slots()


@contextlib.contextmanager
def without_metrics():
    """Inside, on this thread, nothing is added to variables of which each replica has its own."""
    _scopes.without = True
    try:
        yield
    finally:
        _scopes.without = False


@contextlib.contextmanager
def slots():
    """Inside, on this thread, variables are an optimizer's, for others: a strategy may divide them."""
    _scopes.slots = True
    try:
        yield
    finally:
        _scopes.slots = False


@contextlib.contextmanager
def slot_scope(like=None):
    """Inside, variables are where `like` is; without it, where the strategy puts them."""
    scope = _core.SlotScope(like)
    scope.enter()
    try:
        yield
    finally:
        scope.leave()


class Variable(KerasVariable):
    """A variable of Keras; its `value` outside of stateless scopes is a tf.Variable."""

    def _initialize_with_initializer(self, initializer):
        with init_scope():  # an optimizer or a layer is built in the first call of a function
            make = super()._initialize_with_initializer
            _core.with_room(self._path, lambda: make(initializer))

    def _initialize(self, value):
        if isinstance(value, _core.Variable):
            self._value = value
            return
        if isinstance(value, _core.Tensor) and value.dtype.name != self._dtype:
            value = _core.ops.cast(value, self._dtype)
        strategy = None if _core.has_strategy() else distribution_lib.strategy()
        with init_scope(), contextlib.nullcontext() if strategy is None else strategy.scope():
            # A step that is divided has one of each variable, metrics included.
            divided = _core.has_strategy() and distribution_lib.divides(tf.distribute.get_strategy())
            slot = divided and getattr(_scopes, "slots", False)
            with slot_scope() if slot else contextlib.nullcontext():
                self._value = _core.make_variable(
                    value, trainable=self._trainable, name=self._path, dtype=self._dtype,
                    synchronization=0 if divided else _SYNCHRONIZATION[self._synchronization],
                    aggregation=_AGGREGATION[self._aggregation])
            if _core.has_strategy():
                distribution_lib.lay_out(self)

    def _direct_assign(self, value):
        self._value.assign(value)

    def _convert_to_tensor(self, value, dtype=None):
        from keras_berth.src.ops.core import dense_tensor
        return dense_tensor(value, dtype)

    def _updated(self, name, value):
        """assign_add() and assign_sub() in one op."""
        if in_stateless_scope() or self._value is None:
            return getattr(super(), name)(value)
        if self._synchronization == "on_read" and getattr(_scopes, "without", False):
            return self._value.read_value()
        value = self._convert_to_tensor(value, self._dtype)
        if tuple(value.shape) not in (self._shape, ()):
            return getattr(super(), name)(value)
        getattr(self._value, name)(value)
        return self._value.read_value()

    def assign_add(self, value):
        return self._updated("assign_add", value)

    def assign_sub(self, value):
        return self._updated("assign_sub", value)

    def numpy(self):
        from keras_berth.src.ops.core import convert_to_numpy
        return convert_to_numpy(self.value)

    def __array__(self, dtype=None, copy=None):
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __berth_tensor__(self):
        return self.value
