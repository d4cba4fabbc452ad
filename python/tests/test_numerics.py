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


def test_dump_debug_info_writes_what_tensorboard_reads(tmp_path):
    writer = tf.debugging.experimental.enable_dump_debug_info(str(tmp_path), tensor_debug_mode="concise_health")
    try:
        tf.math.log(tf.constant([1.0, -1.0]))
        writer.FlushExecutionFiles()
    finally:
        tf.debugging.experimental.disable_dump_debug_info()
    kinds = {p.suffix for p in tmp_path.iterdir()}
    assert kinds == {".metadata", ".source_files", ".stack_frames", ".graphs", ".execution", ".graph_execution_traces"}
    execution = next(p for p in tmp_path.iterdir() if p.suffix == ".execution").read_bytes()
    assert b"Log" in execution and b"test_numerics.py" in execution
    size = len(execution)
    tf.math.log(tf.constant([1.0]))
    assert next(p for p in tmp_path.iterdir() if p.suffix == ".execution").stat().st_size == size
    with pytest.raises(tf.errors.InvalidArgumentError, match="FULL_HEALTH"):
        tf.debugging.experimental.enable_dump_debug_info(str(tmp_path), tensor_debug_mode="ALL")
