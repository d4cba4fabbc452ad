"""What one sees of objects and of errors: reprs, and tracebacks of the user's frames."""
import traceback

import berth as tf
import numpy as np
import pytest

layers = tf.keras.layers


def trained():
    model = tf.keras.Sequential([layers.Dense(1, input_shape=(2,))], name="line")
    model.compile("sgd", "mse")
    return model, model.fit(np.zeros((4, 2), "f"), np.zeros((4, 1), "f"), epochs=2, verbose=0)


def test_objects_say_what_they_are():
    model, history = trained()
    double = tf.function(lambda x: x * 2)
    double(tf.ones([2]))
    double(tf.ones([3]))
    data = tf.data.Dataset.range(3).batch(2)
    of_int64 = "element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)"
    expected = {
        layers.Dense(3, name="last"): "<Dense name=last, built=False>",
        model: "<Sequential name=line, built=True>",
        history: "<History epochs=2, last: loss=0>",
        model.optimizer: "<Optimizer sgd, learning_rate=0.01>",
        double: "<tf.function <lambda>, traces=2>",
        tf.function(lambda x: x, input_signature=[tf.TensorSpec([2])]):
            "<tf.function <lambda>, traces=0, input_signature=[TensorSpec(shape=(2,), dtype=tf.float32, name=None)]>",
        data: f"<Dataset {of_int64}>",
        iter(data): f"<Iterator {of_int64}>",
        tf.keras.Input((3,)): "<KerasTensor shape=(None, 3), dtype=float32>",
        tf.keras.losses.MeanSquaredError(): "<Loss mean_squared_error>",
        tf.keras.metrics.Mean(name="m"): "<Metric m>",
        tf.train.Checkpoint(model=model, step=tf.Variable(1)): "<Checkpoint of model, step>",
        tf.distribute.MirroredStrategy(["/CPU:0"]): "<MirroredStrategy replicas=1, devices here: CPU:0>",
    }
    for value, text in expected.items():
        assert repr(value) == text


def test_a_layer_of_ones_own_that_is_half_made_has_a_repr():
    class Half(layers.Layer):
        def __init__(self):
            self.shown = repr(self)
            super().__init__()
    assert Half().shown == "<Half, not initialised>"


def user(x):
    return tf.matmul(x, x)


class Own(layers.Layer):
    def call(self, x):
        return user(x)


WRONG = {
    "function": lambda: tf.function(user)(tf.ones([2, 3])),
    "nested": lambda: tf.function(lambda x: tf.function(user)(x))(tf.ones([2, 3])),
    "converted": lambda: tf.function(lambda x: user(x) if tf.reduce_sum(x) > 0 else x)(tf.ones([2, 3])),
    "layer": lambda: Own()(tf.ones([2, 3])),
    "model": lambda: tf.keras.Sequential([Own()])(tf.ones([2, 3])),
    "map": lambda: tf.data.Dataset.from_tensors(np.ones((2, 3), "f")).map(user),
    "fit": lambda: trained()[0].fit(np.zeros((4, 3)), np.zeros((4, 1))),
}


def frames(call):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call()
    return [(f.filename, f.name) for f in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("name", WRONG)
def test_tracebacks_show_the_users_frames(name):
    here, package = [], []
    for file, function in frames(WRONG[name]):
        (package if "/berth/" in file or "/malt/" in file else here).append(function)
    calls = {"nested": 2, "model": 2}.get(name, 1)
    assert len(package) <= calls, package
    if name not in ("fit", "map"):
        assert here[-1] == "user"


def test_all_frames_can_be_seen():
    assert tf.debugging.is_traceback_filtering_enabled()
    few = len(frames(WRONG["function"]))
    tf.debugging.disable_traceback_filtering()
    try:
        assert not tf.debugging.is_traceback_filtering_enabled()
        assert len(frames(WRONG["function"])) > few + 2
    finally:
        tf.debugging.enable_traceback_filtering()
    assert len(frames(WRONG["function"])) == few
