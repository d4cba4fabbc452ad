"""tf.debugging.enable_check_numerics: the first op that makes a NaN or an infinity, with its line and inputs."""
import numpy as np
import pytest

import berth as tf


@pytest.fixture
def checked():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def test_an_eager_op_says_what_its_inputs_were(checked):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^Log.*test_numerics.py:\d+.*1 Inf among 2.*0 to 2"):
        tf.math.log(tf.constant([0.0, 2.0])) * 3.0
    assert float(tf.math.log(tf.constant(1.0))) == 0


def test_the_first_op_of_a_function_is_named(checked):
    @tf.function
    def f(x):
        y = tf.exp(x)
        return tf.reduce_sum(y - y)

    with pytest.raises(tf.errors.InvalidArgumentError, match="^Exp"):
        f(tf.constant([1.0, 1000.0]))
    assert float(f(tf.constant([1.0]))) == 0


def test_a_step_of_fit_is_looked_into(checked):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 3), "f"), np.ones((8, 1), "f")
    model.fit(x, y, verbose=0)
    x[5, 1] = np.inf
    with pytest.raises(tf.errors.InvalidArgumentError, match="MatMul.*and 1 Inf"):
        model.fit(x, y, verbose=0)


def test_nobody_checks_afterwards():
    tf.debugging.enable_check_numerics()
    tf.debugging.disable_check_numerics()
    assert np.isneginf(tf.math.log(tf.constant(0.0)).numpy())
