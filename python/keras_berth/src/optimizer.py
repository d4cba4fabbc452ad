"""The base of Keras' optimizers on Berth: gradients summed over replicas, and updates that the engine has as one op."""
import contextlib

import berth as tf
from berth import _core, _replica_threads
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.optimizers import base_optimizer

from keras_berth.src import distribution_lib
from keras_berth.src.layer import is_divided
from keras_berth.src.ops.sparse import SPARSE
from keras_berth.src.variable import slot_scope, slots

_ops = _core.ops


class BerthOptimizer(base_optimizer.BaseOptimizer):
    def add_variable_from_reference(self, reference_variable, *args, **kwargs):
        """A slot is where its variable is."""
        held = getattr(reference_variable, "_value", None)
        apart = isinstance(held, _core.Variable) and not _core.has_strategy() and distribution_lib.strategy() is None
        with slot_scope(held) if apart else contextlib.nullcontext(), slots():
            return super().add_variable_from_reference(reference_variable, *args, **kwargs)

    def apply_gradients(self, grads_and_vars):
        """Steps that depend on a condition are made once for all replicas, which do not meet inside of one.

        So are those of replicas that run op by op.
        """
        grads_and_vars = list(grads_and_vars)
        if replica := _replica_threads.current():
            replica.apply([g for g, _ in grads_and_vars], lambda sums: super(BerthOptimizer, self).apply_gradients(
                [(g, v) for g, (_, v) in zip(sums, grads_and_vars)]))
            return self.iterations
        if not is_divided():  # a step on a whole batch
            _core.check_update_context([getattr(v, "_value", v) for _, v in grads_and_vars])
        conditional = self.gradient_accumulation_steps or self.use_ema or hasattr(self, "inner_optimizer")
        if _core.replica_id() is None or not conditional:
            return super().apply_gradients(grads_and_vars)
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        sums = _core.all_reduce("sum", [_core.convert(g, None) for g, _ in pairs])

        def once(strategy, *grads):
            super(BerthOptimizer, self).apply_gradients([(g.values[0], v) for g, (_, v) in zip(grads, pairs)])

        tf.distribute.get_replica_context().merge_call(once, args=tuple(sums))
        return self.iterations

    def apply(self, grads, trainable_variables=None):
        """What all replicas compute alike of the summed gradients each writes to its own copies."""
        writes = _core.EqualWrites()
        writes.enter()
        try:
            return super().apply(grads, trainable_variables)
        finally:
            writes.leave()

    def _var_key(self, variable):
        """Objects of Python that stand for one tf.Variable have one key."""
        return ("tf", variable._serial()) if isinstance(variable, _core.Variable) else super()._var_key(variable)

    def assign(self, variable, value):
        _written("assign", variable, value)

    def assign_add(self, variable, value):
        _written("assign_add", variable, value)

    def assign_sub(self, variable, value):
        _written("assign_sub", variable, value)

    def _backend_apply_gradients(self, grads, trainable_variables):
        if _core.replica_id() is not None:
            grads = _core.all_reduce("sum", [_core.convert(g, None) for g in grads])
        super()._backend_apply_gradients(grads, trainable_variables)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        update = None if in_stateless_scope() else _fused(self)
        if update is None or any(isinstance(g, SPARSE) for g in grads) or not all(map(_can_be_updated, trainable_variables)):
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        for grad, v in zip(grads, trainable_variables):
            grad = grad if isinstance(grad, _core.Tensor) else _core.convert(grad, v.dtype)
            update(self, v, grad if grad.dtype.name == v.dtype else _ops.cast(grad, v.dtype),
                   _ops.cast(_core.convert(learning_rate, None), v.dtype))


def _written(name, variable, value):
    """Writes a variable. The values of all replicas are equal here, so a tf.Variable without an aggregation takes one."""
    if _core.replica_id() is None or not isinstance(variable, _core.Variable):
        getattr(variable, name)(value)
        return
    tf.distribute.get_replica_context().merge_call(
        lambda _, v: getattr(variable, name)(v.values[0]), args=(_core.convert(value, variable.dtype),))


def _can_be_updated(v):
    """Whether it is a variable of Keras, of a dtype that the ops of updates have, and nothing stands for its value."""
    return hasattr(v, "_value") and v.dtype in ("float32", "float64") and v.value is v._value


def _fused(optimizer):
    """The function that updates a variable as an optimizer of Keras does, in one op; None of others."""
    from keras.src.optimizers import adam, sgd
    step = type(optimizer).update_step
    if step is adam.Adam.update_step and not optimizer.amsgrad:
        return _adam
    return _sgd if step is sgd.SGD.update_step else None


def _call(op, variables, values, **attrs):
    _core.call_op(op, [v._value._handle() for v in variables] + values, attrs)


def _adam(optimizer, variable, grad, rate):
    at, dtype = optimizer._get_variable_index(variable), variable.dtype
    step = _ops.cast(_core.convert(optimizer.iterations + 1, None), dtype)
    betas = [_core.convert(b, dtype) for b in (optimizer.beta_1, optimizer.beta_2)]
    _call("ResourceApplyAdam", [variable, optimizer._momentums[at], optimizer._velocities[at]],
          [*(_ops.pow(b, step) for b in betas), rate, *betas, _core.convert(optimizer.epsilon, dtype), grad])


def _sgd(optimizer, variable, grad, rate):
    if optimizer.momentum == 0:
        _call("ResourceApplyGradientDescent", [variable], [rate, grad])
        return
    _call("ResourceApplyKerasMomentum", [variable, optimizer.momentums[optimizer._get_variable_index(variable)]],
          [rate, grad, _core.convert(optimizer.momentum, variable.dtype)], use_nesterov=optimizer.nesterov)
