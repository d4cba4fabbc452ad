"""Checkpoints, modules, and classes of Keras that users derive theirs from."""
import os

import berth as tf
import numpy as np
import pytest
from berth import keras

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = X @ np.array([[1.0], [2.0], [-1.0], [0.5]], "float32")


def net():
    model = keras.Sequential([keras.layers.Dense(8, activation="relu", input_shape=(4,)),
                              keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


def test_training_goes_on_from_a_checkpoint(tmp_path):
    tf.random.set_seed(0)
    model, step = net(), tf.Variable(0)
    model.fit(X, Y, verbose=0, shuffle=False)
    step.assign(7)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, step=step)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    assert path.endswith("ckpt-1") and tf.train.latest_checkpoint(str(tmp_path)) == path
    expected = model.fit(X, Y, verbose=0, epochs=2, shuffle=False).history["loss"]

    again, other = net(), tf.Variable(0)
    restored = tf.train.Checkpoint(model=again, optimizer=again.optimizer, step=other)
    status = restored.restore(path)
    status.assert_existing_objects_matched()
    assert int(other) == 7 and int(restored.save_counter) == 1
    got = again.fit(X, Y, verbose=0, epochs=2, shuffle=False).history["loss"]
    np.testing.assert_array_equal(got, expected)


def test_managers_keep_the_last(tmp_path):
    v = tf.Variable(1.0)
    called = []
    folder = str(tmp_path / "runs")
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=2,
                                         init_fn=lambda: called.append(1))
    assert manager.latest_checkpoint is None
    assert manager.restore_or_initialize() is None and called == [1]
    for i in range(3):
        v.assign(float(i))
        manager.save()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-2", "ckpt-3"]
    v.assign(9.0)
    tf.train.Checkpoint(v=v).restore(manager.checkpoints[0]).expect_partial()
    assert float(v) == 1
    assert manager.save(checkpoint_number=12).endswith("ckpt-12")
    assert [name for name, _ in tf.train.list_variables(folder)] == ["v"]
    assert float(tf.train.load_variable(folder, "v")) == 1


def test_what_does_not_fit_is_said(tmp_path):
    v = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(v=v).write(str(tmp_path / "one"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="v"):
        tf.train.Checkpoint(v=tf.Variable([1.0])).read(path)
    with pytest.raises(tf.errors.FailedPreconditionError, match="w"):
        tf.train.Checkpoint(v=v, w=tf.Variable(1.0)).read(path).assert_consumed()
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.Checkpoint(v=v).restore(str(tmp_path / "nothing"))
    assert tf.train.Checkpoint(v=v).restore(None).expect_partial() is not None
    with pytest.raises(TypeError, match="holds no variables"):
        tf.train.Checkpoint(n=3).save(str(tmp_path / "n"))
    with pytest.raises(AttributeError, match="has no object 'weights'"):
        tf.train.Checkpoint(v=v).weights


class Linear(tf.Module):
    def __init__(self, n):
        super().__init__()
        self.w = tf.Variable(tf.ones([n, 2]), name="w")
        self.rest = [tf.Variable(tf.zeros([2]), name="b"), {"scale": tf.Variable(3.0, trainable=False)}]
        self.inner = None

    @tf.function
    def __call__(self, x):
        return (x @ self.w + self.rest[0]) * self.rest[1]["scale"]


def test_modules_hold_variables(tmp_path):
    m = Linear(3)
    m.inner = Linear(2)
    assert len(m.variables) == 6 and len(m.trainable_variables) == 4 and m.submodules == (m.inner,)
    assert m(tf.ones([1, 3])).numpy().tolist() == [[9, 9]]
    path = tf.train.Checkpoint(m=m).save(str(tmp_path / "m"))
    for v in m.variables:
        v.assign(v * 0.0)
    tf.train.Checkpoint(m=m).restore(path).assert_consumed()
    assert m(tf.ones([1, 3])).numpy().tolist() == [[9, 9]]


class Huberish(keras.losses.Loss):
    def __init__(self, delta=1.0, **kwargs):
        super().__init__(**kwargs)
        self.delta = delta

    def call(self, y_true, y_pred):
        error = tf.abs(y_true - y_pred)
        return tf.reduce_mean(tf.where(error < self.delta, 0.5 * error ** 2,
                                       self.delta * (error - 0.5 * self.delta)), axis=-1)


class WithinOne(keras.metrics.Metric):
    def __init__(self, name="within_one", **kwargs):
        super().__init__(name=name, **kwargs)
        self.hits = self.add_weight(name="hits", initializer="zeros")
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        near = tf.cast(tf.abs(y_true - y_pred) < 1.0, tf.float32)
        if sample_weight is not None:
            near = near * sample_weight
        self.hits.assign_add(tf.reduce_sum(near))
        self.seen.assign_add(tf.cast(tf.size(near), tf.float32))

    def result(self):
        return self.hits / self.seen


def test_losses_of_ones_own():
    y, p = np.array([[0.0], [0.0]], "float32"), np.array([[0.5], [3.0]], "float32")
    assert float(Huberish()(y, p)) == pytest.approx((0.125 + 2.5) / 2)
    assert Huberish(reduction="none")(y, p).numpy().tolist() == [0.125, 2.5]
    assert float(Huberish(reduction="sum")(y, p, sample_weight=[1.0, 2.0])) == 5.125
    own, engines = net(), net()
    own.set_weights(engines.get_weights())
    own.compile("sgd", Huberish())
    engines.compile("sgd", keras.losses.Huber())
    logs = [m.fit(X, Y, epochs=2, shuffle=False, verbose=0).history["loss"] for m in (own, engines)]
    np.testing.assert_allclose(logs[0], logs[1], rtol=1e-5)
    assert isinstance(Huberish(), keras.losses.Loss) and isinstance(keras.losses.Huber(), keras.Loss)


def test_metrics_of_ones_own():
    m = WithinOne()
    m.update_state(tf.constant([0.0, 0.0]), tf.constant([0.5, 2.0]))
    assert float(m.result()) == 0.5 and len(m.variables) == 2
    m.reset_state()
    assert float(m(tf.constant([0.0]), tf.constant([0.5]))) == 1
    model = net()
    model.compile("adam", "mse", metrics=[WithinOne()])
    logs = model.fit(X, Y, epochs=3, verbose=0, validation_data=(X, Y)).history
    expected = np.mean(np.abs(model.predict(X) - Y) < 1)
    assert logs["val_within_one"][-1] == pytest.approx(expected)
    assert model.evaluate(X, Y)[1] == pytest.approx(expected)
    assert any(isinstance(k, WithinOne) for k in model.metrics)
    assert isinstance(keras.metrics.Mean(), keras.metrics.Metric)


def test_metrics_and_losses_in_a_loop_of_ones_own():
    model, loss_fn, seen = net(), Huberish(), WithinOne()
    optimizer, mean = keras.optimizers.SGD(0.05), keras.metrics.Mean()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            p = model(x, training=True)
            loss = loss_fn(y, p)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                      model.trainable_variables))
        mean.update_state(loss)
        seen.update_state(y, p)
        return loss

    losses = [float(step(tf.constant(X), tf.constant(Y))) for _ in range(30)]
    assert losses[-1] < losses[0] and float(mean.result()) == pytest.approx(np.mean(losses), rel=1e-5)
    assert 0 < float(seen.result()) < 1


def test_checkpoints_wait_for_modules(tmp_path):
    class Layer(tf.Module):
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.zeros([x.shape[-1]]))
            return self.w * x

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

    net, step = Net(), tf.Variable(3)
    net.layer(tf.ones([2]))
    net.layer.w.assign([1.0, 2.0])
    path = tf.train.Checkpoint(net=net, step=step).save(str(tmp_path / "c"))
    net, step = Net(), tf.Variable(0)
    checkpoint = tf.train.Checkpoint(net=net, step=step)
    status = checkpoint.restore(path)
    assert int(step) == 3 and status.deferred == ["net/layer/w"] and status.restored == ["step"]
    assert net.layer(tf.ones([2])).numpy().tolist() == [1, 2]
    assert checkpoint.save(str(tmp_path / "c")).endswith("-2")


def test_checkpoints_of_checkpoints_give_later_parts_their_values(tmp_path):
    part = tf.train.Checkpoint()
    part.listed = [tf.Variable(1.0)]
    part.listed.append(tf.Variable(2.0))
    part.mapped = {"two": part.listed[1]}
    path = tf.train.Checkpoint(part=part, x=tf.Variable(3.0)).save(str(tmp_path / "c"))
    assert dict(tf.train.list_variables(path)) == {"part/listed/0": [], "part/listed/1": [], "x": []}
    part, x = tf.train.Checkpoint(listed=[]), tf.Variable(0.0)
    tf.train.Checkpoint(part=part, x=x).restore(path).assert_existing_objects_matched()
    first, second = tf.Variable(0.0), tf.Variable(0.0)
    part.listed.append(first)
    part.listed.append(second)
    assert (float(x), float(first), float(second)) == (3, 1, 2)
    again = tf.train.Checkpoint()
    tf.train.Checkpoint(part=again).restore(path).expect_partial()
    again.listed = [tf.Variable(0.0)]
    assert float(again.listed[0]) == 1


def saved(path, **parts):
    return tf.train.Checkpoint(**parts).save(str(path / "c"))


class Made(tf.Module):
    def __init__(self, value=None):
        super().__init__()
        if value is not None:
            self.v = tf.Variable(value)


LATE = {
    "variable": (lambda: tf.Variable(3.0), lambda: tf.Variable(0.0), lambda part: part),
    "dictionary": (lambda: {"a": tf.Variable(3.0)}, lambda: {"a": tf.Variable(0.0)}, lambda part: part["a"]),
    "list": (lambda: [tf.Variable(3.0)], lambda: [tf.Variable(0.0)], lambda part: part[0]),
    "module": (lambda: Made(3.0), lambda: Made(0.0), lambda part: part.v),
    "checkpoint": (lambda: tf.train.Checkpoint(v=tf.Variable(3.0)), lambda: tf.train.Checkpoint(v=tf.Variable(0.0)),
                   lambda part: part.v),
}


@pytest.mark.parametrize("kind", LATE)
def test_attributes_that_come_after_restore_get_their_values(tmp_path, kind):
    made, later, value = LATE[kind]
    path = saved(tmp_path, part=made())
    checkpoint = tf.train.Checkpoint()
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match="unused: 'part"):
        status.assert_consumed()
    checkpoint.part = later()
    assert float(value(checkpoint.part)) == 3.0 and status.assert_consumed() is status
    again = checkpoint.save(str(tmp_path / "d"))
    other = tf.train.Checkpoint(part=later())
    other.restore(again).assert_consumed()
    assert float(value(other.part)) == 3.0 and int(other.save_counter) == 2


def test_assertions_of_a_restore_are_those_of_tensorflow(tmp_path):
    one, two = lambda: tf.Variable(0.0), lambda: {"v": tf.Variable(3.0), "w": tf.Variable(1.0)}
    path = saved(tmp_path, **two())
    less = tf.train.Checkpoint(v=one()).restore(path)
    assert less.unused == ["w"] and less.assert_existing_objects_matched() is less
    with pytest.raises(AssertionError, match="unused: 'w'"):
        less.assert_consumed()
    more = tf.train.Checkpoint(v=one(), w=one(), x=one()).restore(path)
    for check in (more.assert_consumed, more.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match="missing: 'x'"):
            check()
    assert more.expect_partial() is more and more.assert_nontrivial_match() is more
    late = tf.train.Checkpoint(v=one(), w=one())
    status = late.restore(path).assert_consumed()
    late.x = one()  # which the checkpoint lacks
    with pytest.raises(AssertionError, match="missing: 'x'"):
        status.assert_existing_objects_matched()
    late.v = tf.Variable(7.0)  # in place of another: it stays as it is
    assert float(late.v) == 7.0
    written = tf.train.Checkpoint(v=one()).write(str(tmp_path / "w"))
    with pytest.raises(AssertionError, match="save_counter"):
        tf.train.Checkpoint(v=one()).restore(written).assert_consumed()
    tf.train.Checkpoint(v=one()).read(written).assert_consumed()
    for name in ("assert_consumed", "assert_existing_objects_matched", "assert_nontrivial_match"):
        with pytest.raises(AssertionError):
            getattr(tf.train.Checkpoint(v=one()).restore(None), name)()


def test_values_that_wait_for_a_module_are_not_consumed(tmp_path):
    path = saved(tmp_path, m=Made(4.0))
    module = Made()
    status = tf.train.Checkpoint(m=module).restore(path)
    assert status.deferred == ["m/v"] and status.assert_existing_objects_matched() is status
    with pytest.raises(AssertionError, match="waiting: 'm/v'"):
        status.assert_consumed()
    module.v = tf.Variable(0.0)
    assert float(module.v) == 4.0 and status.assert_consumed() is status


def test_texts_and_numbers_are_attributes_that_are_not_saved(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(3.0), w=tf.Variable(1.0))
    checkpoint.note = "run 7"
    del checkpoint.w
    path = checkpoint.save(str(tmp_path / "c"))
    assert checkpoint.note == "run 7" and [n for n, _ in tf.train.list_variables(path)] == ["v"]
    with pytest.raises(ValueError, match="'n' is 3, which holds no variables"):
        tf.train.Checkpoint(n=3)
