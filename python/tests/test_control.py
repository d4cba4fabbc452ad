"""Structures, branches and functions over elements; data sets that are read from files."""
import struct

import berth as tf
import numpy as np
import pytest


def test_nests():
    nest = {"b": [1, (2,)], "a": 3}
    assert tf.nest.flatten(nest) == [3, 1, 2]
    assert tf.nest.map_structure(lambda v: v * 10, nest) == {"a": 30, "b": [10, (20,)]}
    assert tf.nest.pack_sequence_as(nest, [0, 4, 5]) == {"a": 0, "b": [4, (5,)]}
    assert tf.nest.is_nested(()) and not tf.nest.is_nested(tf.constant(1.0))
    tf.nest.assert_same_structure([1, (2,)], [3, (4,)])
    with pytest.raises(ValueError):
        tf.nest.assert_same_structure([1, 2], [1])
    with pytest.raises(TypeError):
        tf.nest.map_structure(max, [1, 2], (1, 2))


def test_cases():
    def pick(i):
        return tf.switch_case(i, [lambda: tf.constant(10.0), lambda: tf.constant(20.0)],
                              default=lambda: tf.constant(-1.0))

    def size(x):
        return tf.case([(x < 1.0, lambda: tf.constant("small")), (x < 10.0, lambda: tf.constant("mid"))],
                       default=lambda: tf.constant("large"))

    for fn in (pick, tf.function(pick)):
        assert [float(fn(tf.constant(i))) for i in (0, 1, 5)] == [10, 20, -1]
    assert [size(tf.constant(v)).numpy() for v in (0.0, 5.0, 50.0)] == [b"small", b"mid", b"large"]


def test_functions_over_elements():
    x = np.arange(6, dtype="float32").reshape(3, 2)
    for wrap in (lambda f: f, tf.function):
        np.testing.assert_array_equal(wrap(lambda v: tf.map_fn(tf.reduce_sum, v))(tf.constant(x)), x.sum(1))
        np.testing.assert_array_equal(wrap(lambda v: tf.scan(lambda a, b: a + b, v))(tf.constant(x)),
                                      x.cumsum(0))
        np.testing.assert_array_equal(wrap(lambda v: tf.foldl(lambda a, b: a - b, v))(tf.constant(x)),
                                      x[0] - x[1] - x[2])
    a, b = tf.map_fn(lambda p: (p[0] + p[1], p[0]), (x, x))
    np.testing.assert_array_equal(a, x * 2)
    np.testing.assert_array_equal(tf.foldr(lambda s, v: s * 10.0 + v, tf.constant([1.0, 2.0, 3.0])),
                                  321)


def test_recompute_grad_gives_the_same():
    w = tf.Variable([[0.5, -1.0], [2.0, 0.25]])

    def block(x):
        return tf.tanh(tf.tanh(x @ w) @ w)

    grads = []
    for fn in (block, tf.recompute_grad(block)):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(fn(tf.ones([3, 2])))
        grads.append(tape.gradient(y, w).numpy())
    np.testing.assert_array_equal(grads[0], grads[1])


def test_pictures_are_read_and_written(tmp_path):
    picture = np.random.default_rng(0).integers(0, 255, (5, 7, 3)).astype("uint8")
    path = str(tmp_path / "p.png")
    tf.io.write_file(path, tf.io.encode_png(picture))
    np.testing.assert_array_equal(tf.io.decode_png(tf.io.read_file(path)).numpy(), picture)
    np.testing.assert_array_equal(tf.io.decode_raw(tf.constant([b"\x01\x02"]), tf.uint8).numpy(), [[1, 2]])


def test_clothes_are_read(tmp_path, run_script):
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    for split, n in (("train", 4), ("t10k", 2)):
        for kind, shape in (("images-idx3", (n, 28, 28)), ("labels-idx1", (n,))):
            with open(folder / f"{split}-{kind}-ubyte", "wb") as out:
                out.write(struct.pack(">I", 0x0800 | len(shape)) + struct.pack(f">{len(shape)}I", *shape))
                out.write(np.full(shape, 3, "uint8").tobytes())
    done = run_script("""
import tensorflow as tf
(x, y), (xt, yt) = tf.keras.datasets.fashion_mnist.load_data()
assert x.shape == (4, 28, 28) and y.tolist() == [3] * 4 and len(xt) == 2
""", BERTH_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_rates_follow_a_schedule():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(tf.optimizers.SGD(0.5), tf.losses.MeanSquaredError())
    schedule = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    logs = model.fit(np.ones((4, 2)), np.ones((4, 1)), epochs=3, verbose=0, callbacks=[schedule]).history
    assert logs["learning_rate"] == [0.25, 0.125, 0.0625]


def test_names_in_two_places():
    assert tf.losses is tf.keras.losses and tf.metrics is tf.keras.metrics
    assert float(tf.zeros_initializer()([1])[0]) == 0
    with tf.name_scope("part") as name:
        assert name == "part/"
    np.testing.assert_allclose(tf.math.softmax([0.0, 0.0]), [0.5, 0.5])
    assert float(tf.truediv(1.0, 4.0)) == 0.25
