"""Ops against NumPy, from one table: a function, its arguments, and what NumPy gives."""
import berth as tf
import numpy as np
import pytest

RNG = np.random.default_rng(2)
X = RNG.uniform(0.1, 0.9, (3, 4)).astype("float32")
Y = RNG.uniform(0.1, 0.9, (4, 2)).astype("float32")
I = np.array([2, 0], dtype="int32")

TABLE = [
    (tf.matmul, (X, Y), {}, X @ Y),
    (tf.linalg.matmul, (X, X), {"transpose_b": True}, X @ X.T),
    (tf.reduce_sum, (X,), {"axis": 0}, X.sum(0)),
    (tf.reduce_mean, (X,), {"axis": [0, 1], "keepdims": True}, X.mean(keepdims=True)),
    (tf.reduce_max, (X,), {"axis": -1}, X.max(-1)),
    (tf.reduce_prod, (X,), {}, X.prod()),
    (tf.math.reduce_std, (X,), {}, X.std()),
    (tf.argmax, (X,), {"axis": 1}, X.argmax(1)),
    (tf.argmin, (X, 0), {}, X.argmin(0)),
    (tf.exp, (X,), {}, np.exp(X)),
    (tf.math.log, (X,), {}, np.log(X)),
    (tf.sqrt, (X,), {}, np.sqrt(X)),
    (tf.tanh, (X,), {}, np.tanh(X)),
    (tf.nn.relu, (X - 0.5,), {}, np.maximum(X - 0.5, 0)),
    (tf.nn.softmax, (X,), {"axis": 0}, np.exp(X) / np.exp(X).sum(0)),
    (tf.maximum, (X, 0.5), {}, np.maximum(X, 0.5)),
    (tf.where, (X > 0.5, X, -X), {}, np.where(X > 0.5, X, -X)),
    (tf.clip_by_value, (X, 0.2, 0.4), {}, np.clip(X, 0.2, 0.4)),
    (tf.reshape, (X, [2, -1]), {}, X.reshape(2, -1)),
    (tf.transpose, (X,), {"perm": [1, 0]}, X.T),
    (tf.concat, ([X, X],), {"axis": 1}, np.concatenate([X, X], 1)),
    (tf.stack, ([X, X],), {"axis": 2}, np.stack([X, X], 2)),
    (tf.expand_dims, (X, 1), {}, X[:, None]),
    (tf.squeeze, (X[None],), {"axis": 0}, X),
    (tf.tile, (X, [2, 1]), {}, np.tile(X, (2, 1))),
    (tf.gather, (X, I), {"axis": 0}, X[I]),
    (tf.one_hot, (I, 3), {}, np.eye(3, dtype="float32")[I]),
    (tf.pad, (X, [[1, 0], [0, 2]]), {}, np.pad(X, ((1, 0), (0, 2)))),
    (tf.reverse, (X, [0]), {}, X[::-1]),
    (tf.cast, (X * 10, tf.int32), {}, (X * 10).astype("int32")),
    (tf.range, (5,), {}, np.arange(5, dtype="int32")),
    (tf.range, (1, 2, 0.25), {}, np.arange(1, 2, 0.25, dtype="float32")),
    (tf.linspace, (0.0, 1.0, 5), {}, np.linspace(0, 1, 5, dtype="float32")),
    (tf.eye, (3,), {}, np.eye(3, dtype="float32")),
    (tf.zeros, ([2, 3],), {"dtype": tf.int64}, np.zeros((2, 3), "int64")),
    (tf.fill, ([2], 7.0), {}, np.full(2, 7, "float32")),
    (tf.cumsum, (X,), {"axis": 1}, X.cumsum(1)),
    (tf.einsum, ("ij,jk->ik", [X, Y]), {}, X @ Y),
    (tf.tensordot, (X, Y, 1), {}, np.tensordot(X, Y, 1)),
    (tf.bitwise.bitwise_and, (I, 2), {}, I & 2),
    (tf.sort, (X,), {"axis": -1}, np.sort(X, -1)),
    (tf.shape, (X,), {}, np.array([3, 4], "int32")),
    (tf.math.angle, (np.array([1j, -1], "complex64"),), {}, np.angle(np.array([1j, -1]))),
]


@pytest.mark.parametrize("fn, args, options, expected", TABLE,
                         ids=[f"{i}-{row[0].__name__}" for i, row in enumerate(TABLE)])
def test_ops_give_what_numpy_gives(fn, args, options, expected):
    out = fn(*args, **options).numpy()
    assert out.shape == np.shape(expected)
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-6)


def test_names_of_tensorflow_and_positions_are_one():
    a = tf.reduce_sum(input_tensor=X, axis=1, keepdims=True, name="ignored")
    np.testing.assert_array_equal(a.numpy(), tf.reduce_sum(X, 1, True).numpy())


def test_errors_name_the_line_and_the_argument():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"MatMul.*test_ops\.py:\d+"):
        tf.matmul(X, X)
    with pytest.raises(TypeError, match="has no argument 'axes'.*axis"):
        tf.reduce_sum(X, axes=1)
    with pytest.raises(TypeError, match="needs the argument 'b'"):
        tf.matmul(X)


def test_errors_speak_python():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"write tf\.cast"):
        tf.ones([2]) + tf.ones([2], tf.float64)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"model\.compile\(optimizer=\.\.\., loss="):
        model.fit(X, X)


def test_every_function_of_the_engine_says_what_is_missing():
    """No function crashes without arguments: it gives a value or names what it needs."""
    import types
    from berth import _core

    def walk(module, seen):
        for name, value in vars(module).items():
            if isinstance(value, types.ModuleType) and value not in seen:
                seen.append(value)
                walk(value, seen)
            elif isinstance(value, types.BuiltinFunctionType):
                if name in ("plot_model",) or module.__name__.endswith("applications"):
                    continue
                try:
                    value()
                except (TypeError, tf.errors.OpError):
                    pass

    walk(_core.ops, [])


def test_seeds_repeat():
    tf.random.set_seed(5)
    a = tf.random.normal([4]).numpy()
    tf.random.set_seed(5)
    np.testing.assert_array_equal(a, tf.random.normal([4]).numpy())
    assert not np.array_equal(a, tf.random.normal([4]).numpy())


@pytest.mark.parametrize("size, step, rate, padding", [(3, 1, 1, "VALID"), (3, 2, 1, "SAME"), (2, 3, 2, "SAME")])
def test_patches_of_pictures(size, step, rate, padding):
    x = np.random.default_rng(0).random((2, 7, 6, 2)).astype("float32")
    got = tf.image.extract_patches(x, [1, size, size, 1], [1, step, step, 1], [1, rate, rate, 1], padding).numpy()
    span = (size - 1) * rate + 1
    if padding == "SAME":
        more = [max((-(-n // step) - 1) * step + span - n, 0) for n in (7, 6)]
        x = np.pad(x, [(0, 0), *[(m // 2, m - m // 2) for m in more], (0, 0)])
    rows, columns = ((n - span) // step + 1 for n in x.shape[1:3])
    assert got.shape == (2, rows, columns, size * size * 2)
    for i in range(rows):
        for j in range(columns):
            window = x[:, i * step:i * step + span:rate, j * step:j * step + span:rate]
            np.testing.assert_array_equal(got[:, i, j], window.reshape(2, -1))
