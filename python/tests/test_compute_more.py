"""Names that compute and draw, or that TensorFlow has no kernel for on a CPU: against NumPy, formulas, and what draws must obey."""
import berth as tf
import numpy as np
import pytest

X = np.random.default_rng(0).uniform(-1, 1, [3, 4, 6]).astype("float32")


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("lengths, axes", [(None, [0, 2]), ([4, 5], [1, 2]), ([2, 3], [2, 0]), (None, None)])
def test_real_transforms_over_axes_are_those_of_numpy(norm, lengths, axes):
    y = tf.signal.rfftnd(X, lengths, axes, norm)
    np.testing.assert_allclose(y.numpy(), np.fft.rfftn(X, lengths, axes, norm), atol=1e-4)
    back = tf.signal.irfftnd(y, lengths, axes, norm)
    np.testing.assert_allclose(back.numpy(), np.fft.irfftn(y.numpy(), lengths, axes, norm), atol=1e-4)
    assert y.dtype == tf.complex64 and back.dtype == tf.float32
    with pytest.raises(ValueError, match="axes are"):
        tf.signal.rfftnd(X, [1], [0, 1])


def test_approximate_places_are_exact():
    values, places = tf.math.approx_max_k(X, 2, reduction_dimension=1)
    np.testing.assert_allclose(values.numpy(), -np.sort(-X, 1)[:, :2])
    assert places.numpy().tolist() == np.argsort(-X, 1)[:, :2].tolist()
    np.testing.assert_allclose(tf.nn.approx_min_k(X, 3)[0].numpy(), np.sort(X)[..., :3])
    np.testing.assert_allclose(tf.approx_top_k(X, 1, is_max_k=False)[0].numpy(), X.min(-1, keepdims=True))
    with pytest.raises(ValueError, match="recall_target is 0"):
        tf.math.approx_max_k(X, 2, recall_target=0)


def test_gradients_in_traced_functions():
    v = tf.Variable([2.0, 3.0])

    @tf.function
    def f(x):
        y = x * x
        z = tf.reduce_sum(y * y * v)
        return tf.gradients(z, [x, y, v]), tf.gradients([z, y], x, grad_ys=[2.0, None])[0]
    (dx, dy, dv), weighted = f(tf.constant([1.0, 2.0]))
    assert dx.numpy().tolist() == [8.0, 96.0] and dy.numpy().tolist() == [4.0, 24.0] and dv.numpy().tolist() == [1.0, 16.0]
    assert weighted.numpy().tolist() == [18.0, 196.0] and f.experimental_get_tracing_count() == 1
    hessian, = tf.function(lambda x: tf.hessians(tf.reduce_sum(x ** 3) + x[0] * x[1], x))(tf.constant([1.0, 2.0]))
    assert hessian.numpy().tolist() == [[6.0, 1.0], [1.0, 12.0]]
    assert tf.function(lambda x: tf.gradients(x * 2.0, v, unconnected_gradients="zero"))(tf.constant(1.0))[0].numpy().tolist() == [0.0, 0.0]
    for call in (tf.gradients, tf.hessians):
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            call(v, [v])


def test_gradients_of_what_a_trace_makes_of_nothing_are_refused():
    @tf.function
    def f():
        x = tf.random.normal([])
        return tf.gradients(x * x, x)
    with pytest.raises(NotImplementedError, match="make it an argument"):
        f()


def test_candidates():
    labels = tf.constant([[0], [5]], tf.int64)
    for sampler, p in ((tf.random.uniform_candidate_sampler, np.full(8, 1 / 8)),
                       (tf.random.log_uniform_candidate_sampler, np.log1p(1 / np.arange(1.0, 9)) / np.log(9))):
        sampled, true, count = sampler(labels, 1, 4000, False, 8, seed=3)
        assert sampled.dtype == tf.int64 and sampled.shape == [4000]
        np.testing.assert_allclose(np.bincount(sampled.numpy(), minlength=8) / 4000, p, atol=0.03)
        np.testing.assert_allclose(true.numpy()[:, 0], 4000 * p[[0, 5]], rtol=1e-5)
        np.testing.assert_allclose(count.numpy(), 4000 * p[sampled.numpy()], rtol=1e-5)
        once = sampler(labels, 1, 6, True, 8)
        assert len(set(once[0].numpy().tolist())) == 6 and (once[2].numpy() <= 1).all()
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_sampled is 9"):
            sampler(labels, 1, 9, True, 8)
    for _ in range(50):
        sampled = tf.random.learned_unigram_candidate_sampler(tf.constant([[2], [2]], tf.int64), 1, 400, False, 4, seed=1)[0]
    assert np.bincount(sampled.numpy(), minlength=4)[2] > 350  # it has seen class 2 a hundred times


def test_candidates_by_weights(tmp_path):
    labels = tf.constant([[0], [1]], tf.int64)
    path = tmp_path / "words"
    path.write_text("a,1\nb,4\nc,9\n")
    sampled, true, _ = tf.random.fixed_unigram_candidate_sampler(labels, 1, 3000, False, 4, vocab_file=str(path), distortion=0.5,
                                                                 num_reserved_ids=1)
    np.testing.assert_allclose(np.bincount(sampled.numpy(), minlength=4) / 3000, [0, 1 / 6, 2 / 6, 3 / 6], atol=0.04)
    assert np.allclose(true.numpy()[:, 0], [0, 500])
    with pytest.raises(ValueError, match="one of the two"):
        tf.random.fixed_unigram_candidate_sampler(labels, 1, 3, False, 4)


def test_a_model_learns_with_sampled_softmax():
    tf.random.set_seed(1)
    w, b = tf.Variable(tf.zeros([20, 4])), tf.Variable(tf.zeros([20]))
    x, labels = tf.eye(4), tf.constant([[3], [7], [11], [19]])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, labels, x, 8, 20))
        for v, g in zip((w, b), tape.gradient(loss, (w, b))):
            v.assign_sub(0.5 * tf.convert_to_tensor(g))
        return loss
    for _ in range(100):
        step()
    assert tf.argmax(tf.matmul(x, w, transpose_b=True) + b, 1).numpy().tolist() == [3, 7, 11, 19]


@pytest.mark.parametrize("pseudo_random", [True, False])
@pytest.mark.parametrize("overlapping", [True, False])
def test_fractional_pools(pseudo_random, overlapping):
    x = np.random.default_rng(1).normal(size=[2, 11, 13, 3]).astype("float32")
    for pool, reduce in ((tf.nn.fractional_max_pool, np.max), (tf.nn.fractional_avg_pool, np.mean)):
        y, rows, columns = pool(x, [1.0, 1.4, 1.73, 1.0], pseudo_random, overlapping, seed=5)
        assert y.shape == [2, 7, 7, 3] and rows.dtype == tf.int64 and rows.numpy()[0] == 0 and rows.numpy()[-1] == 11
        for ends in (rows.numpy(), columns.numpy()):
            assert set(np.diff(ends)) <= {1, 2}
        again = pool(x, [1.0, 1.4, 1.73, 1.0], pseudo_random, overlapping, seed=5)
        assert (again.output.numpy() == y.numpy()).all()
        for i in range(7):
            for j in range(7):
                part = x[:, rows[i].numpy():rows[i + 1].numpy() + overlapping, columns[j].numpy():columns[j + 1].numpy() + overlapping]
                np.testing.assert_allclose(y[:, i, j].numpy(), reduce(part, (1, 2)), atol=1e-6)
    with pytest.raises(ValueError, match="pooling_ratio is 0.5"):
        tf.nn.fractional_max_pool(x, 0.5)


def test_dropouts_drop_their_share():
    x = tf.ones([100, 100])
    y = tf.nn.experimental.stateless_dropout(x, 0.3, [1, 2])
    assert set(np.round(y.numpy().ravel(), 4)) == {0.0, np.float32(1.4286)} and abs(float(tf.reduce_mean(y)) - 1) < 0.02
    assert (y.numpy() == tf.nn.experimental.stateless_dropout(x, 0.3, [1, 2]).numpy()).all()
    assert (y.numpy() != tf.nn.experimental.stateless_dropout(x, 0.3, [1, 3]).numpy()).any()
    with pytest.raises(ValueError, match="rate is 1"):
        tf.nn.experimental.stateless_dropout(x, 1, [1, 2])
    with pytest.raises(ValueError, match="x is int32"):
        tf.nn.experimental.general_dropout([1], 0.5, tf.random.uniform)


def test_shuffles():
    for most in (0, 1, 6, 7, 100):
        at = tf.random.experimental.index_shuffle(tf.range(most + 1), [3, 4], most)
        assert sorted(at.numpy()) == list(range(most + 1)) and at.dtype == tf.int32
    assert int(tf.random.experimental.index_shuffle(3, [1, 2], 9)) == int(tf.random.experimental.index_shuffle(3, [1, 2], 9))
    x = tf.random.experimental.stateless_shuffle(tf.range(50), seed=[1, 2])
    assert sorted(x.numpy()) == list(range(50)) and x.numpy().tolist() != list(range(50))
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 to max_index"):
        tf.random.experimental.index_shuffle(5, [1, 2], 4)


def test_distorted_boxes():
    boxes = tf.constant([[[0.2, 0.2, 0.6, 0.7]]])
    found = set()
    for seed in range(20):
        begin, size, box = tf.image.stateless_sample_distorted_bounding_box([40, 60, 3], boxes, [seed, 2], 0.5, [0.8, 1.25], [0.1, 0.9])
        (y, x, _), (h, w, c) = begin.numpy(), size.numpy()
        assert 0 <= y <= y + h <= 40 and 0 <= x <= x + w <= 60 and c == -1 and begin.dtype == tf.int32
        np.testing.assert_allclose(box.numpy(), [[[y / 40, x / 60, (y + h) / 40, (x + w) / 60]]], atol=1e-6)
        shared = (min(y + h, 24) - max(y, 8)) * (min(x + w, 42) - max(x, 12))
        assert shared >= 0.5 * 16 * 30 and 0.75 < w / h < 1.35 and 0.1 <= h * w / 2400 <= 0.9
        found.add((y, x, h, w))
    assert len(found) > 10 and tf.slice(tf.ones([40, 60, 3]), begin, size).shape == [h, w, 3]
    whole = tf.image.sample_distorted_bounding_box([8, 8, 3], boxes, min_object_covered=1.0, area_range=[0.01, 0.02])
    assert whole[1].numpy().tolist() == [8, 8, -1]  # nothing covers the box
    with pytest.raises(tf.errors.InvalidArgumentError, match="there are no bounding boxes"):
        tf.image.sample_distorted_bounding_box([8, 8, 3], tf.zeros([1, 0, 4]))


def test_noise_of_glimpses_and_qualities():
    x = tf.fill([1, 4, 4, 1], 7.0)
    y = tf.image.extract_glimpse(x, [4, 4], [[1.0, 1.0]]).numpy()[0, :, :, 0]
    assert (y[:2, :2] == 7).all() and ((0 <= y[2:]) & (y[2:] < 1)).all() and len(set(y[2:].ravel().tolist())) == 8
    picture = tf.cast(tf.random.uniform([16, 16, 3], 0, 255, tf.int32), tf.uint8)
    a, b = (tf.image.stateless_random_jpeg_quality(picture, 20, 90, s) for s in ([1, 2], [1, 2]))
    assert (a.numpy() == b.numpy()).all() and (a.numpy() != picture.numpy()).any() and a.dtype == tf.uint8


def test_shapes_and_bins():
    shape = tf.broadcast_static_shape(tf.TensorShape([None, 1, 4]), tf.TensorShape([3, 1]))
    assert shape.as_list() == [None, 3, 4]
    assert tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([None])).as_list() == [2]
    with pytest.raises(ValueError, match="expected equal lengths"):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected equal lengths"):
        tf.broadcast_dynamic_shape([2], [3])
    assert tf.histogram_fixed_width_bins([1.0], [0.0, 2.0], 4, tf.int64).dtype == tf.int64
    with pytest.raises(tf.errors.InvalidArgumentError, match="the lower end first"):
        tf.histogram_fixed_width_bins([1.0], [2.0, 0.0])


class Doubled(tf.linalg.LinearOperator):
    """Twice the identity, known by what it does alone."""

    def __init__(self, n):
        self._n = n
        super().__init__(tf.float32, is_non_singular=True)

    def _shape(self):
        return tf.TensorShape([self._n, self._n])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return 2.0 * (tf.linalg.adjoint(x) if adjoint_arg else x)


def test_operators_of_ones_own():
    op = Doubled(3)
    assert op.to_dense().numpy().tolist() == (2 * np.eye(3)).tolist() and float(op.determinant()) == 8.0
    assert op.solvevec([2.0, 4.0, 6.0]).numpy().tolist() == [1.0, 2.0, 3.0] and (op @ op).trace().numpy() == 12.0
    assert op.inverse().matvec([2.0, 0.0, 0.0]).numpy().tolist() == [1.0, 0.0, 0.0]


def test_operators_read_variables_and_say_what_is_wrong():
    v = tf.Variable([1.0, 2.0])
    op = tf.linalg.LinearOperatorDiag(v)
    v.assign([3.0, 4.0])
    assert op.matvec([1.0, 1.0]).numpy().tolist() == [3.0, 4.0] and [w is v for w in op.trainable_variables] == [True]
    with tf.GradientTape() as tape:
        y = op.log_abs_determinant()
    assert np.allclose(tape.gradient(y, v).numpy(), [1 / 3, 1 / 4])
    full = tf.linalg.LinearOperatorFullMatrix([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        full.matmul(tf.ones([3, 1]))
    with pytest.raises(TypeError, match="expected float32"):
        full.matmul(tf.ones([2, 1], tf.float64))
    with pytest.raises(ValueError, match="say so when"):
        full.cholesky()
    with pytest.raises(NotImplementedError, match="not known to be self-adjoint"):
        full.eigvals()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive definite"):
        full.assert_positive_definite()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not non-singular"):
        tf.linalg.LinearOperatorFullMatrix([[1.0, 1.0], [1.0, 1.0]]).assert_non_singular()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not equal to its adjoint"):
        tf.linalg.LinearOperatorFullMatrix([[1.0, 1.0], [0.0, 1.0]]).assert_self_adjoint()
    full.assert_non_singular(), full.assert_self_adjoint()
    wide = tf.linalg.LinearOperatorFullMatrix(tf.ones([2, 3]))
    for call in (lambda: wide.solve(tf.ones([2, 1])), wide.determinant):
        with pytest.raises(NotImplementedError, match="expected a square one"):
            call()
    with pytest.raises(ValueError, match="is_self_adjoint is False; expected True"):
        tf.linalg.LinearOperatorDiag([1.0], is_self_adjoint=False)
    with pytest.raises(ValueError, match="as many columns as rows"):
        tf.linalg.LinearOperatorComposition([wide, full])


def test_conjugate_gradients_stop():
    a = tf.linalg.LinearOperatorDiag([1.0, 2.0, 4.0], is_positive_definite=True)
    state = tf.linalg.experimental.conjugate_gradient(a, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(state.x.numpy(), [1, 0.5, 0.25], atol=1e-5)
    assert int(state.i) <= 4 and state.gamma.shape == []
    preconditioned = tf.linalg.experimental.conjugate_gradient(a, [1.0, 1.0, 1.0], preconditioner=a.inverse())
    assert int(preconditioned.i) == 1
    with pytest.raises(ValueError, match="positive definite"):
        tf.linalg.experimental.conjugate_gradient(tf.linalg.LinearOperatorFullMatrix(tf.eye(2)), [1.0, 1.0])


@pytest.mark.parametrize("call, error, says", [
    (lambda: tf.space_to_batch(tf.ones([1, 3, 1]), [2], [[0, 0]]), tf.errors.InvalidArgumentError, "multiples of"),
    (lambda: tf.batch_to_space(tf.ones([3, 2]), [2], [[0, 0]]), tf.errors.InvalidArgumentError, "a multiple of the product"),
    (lambda: tf.nn.dilation2d(X[None], X[0][:, :, None], [1, 1, 1, 1], "SAME", "NCHW", [1, 1, 1, 1]), ValueError, "expected 'NHWC'"),
    (lambda: tf.nn.embedding_lookup_sparse([[1.0]], tf.SparseTensor([[0, 0]], [0], [1, 1]), None, "max"), ValueError, "'max'"),
    (lambda: tf.nn.embedding_lookup_sparse([[1.0]], [[0]], None), TypeError, "expected a SparseTensor"),
    (lambda: tf.linalg.set_diag(tf.ones([3, 3]), [1.0, 2.0]), tf.errors.InvalidArgumentError, r"expected \[3\]"),
    (lambda: tf.linalg.diag_part(tf.ones([3, 3]), k=3), tf.errors.InvalidArgumentError, "k is 3"),
    (lambda: tf.linalg.diag([1.0], align="UP"), ValueError, "align is 'UP'"),
    (lambda: tf.linalg.expm(tf.ones([2, 3])), tf.errors.InvalidArgumentError, "expected square matrices"),
    (lambda: tf.linalg.logm(tf.eye(2)), TypeError, "expected one of complex64"),
    (lambda: tf.linalg.tridiagonal_solve(tf.ones([3, 2]), [1.0, 1.0], perturb_singular=True), NotImplementedError, "perturb_singular"),
    (lambda: tf.signal.dct(X, 5), ValueError, "type is 5"),
    (lambda: tf.signal.dct(X, 1, norm="ortho"), ValueError, "of type 1"),
    (lambda: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0), ValueError, "the edges"),
    (lambda: tf.image.ssim(tf.ones([8, 8, 1]), tf.ones([8, 8, 1]), 1.0), tf.errors.InvalidArgumentError, "at least filter_size, 11"),
    (lambda: tf.image.extract_glimpse(tf.ones([1, 4, 4, 1]), [2, 2], [[0.0, 0.0]], noise="pink"), ValueError, "'pink'"),
    (lambda: tf.math.igamma(1, 2), tf.errors.InvalidArgumentError, "expected a floating dtype"),
    (lambda: tf.sparse.cross([[[1.0]]]), ValueError, "expected whole numbers or strings"),
    (lambda: tf.fingerprint(["a"], method="md5"), ValueError, "'md5'"),
    (lambda: tf.as_string([1], precision=2), tf.errors.InvalidArgumentError, "of floating dtypes only"),
    (lambda: tf.experimental.numpy.gcd(1.0, 2.0), ValueError, "expected whole numbers"),
])
def test_errors_say_what_was_expected(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_initializers_have_their_short_names():
    for short, full in (("glorot_uniform", "GlorotUniform"), ("zeros", "Zeros"), ("variance_scaling", "VarianceScaling")):
        assert getattr(tf.initializers, short) is getattr(tf.keras.initializers, full)
    assert tf.initializers.constant(3.0)([2]).numpy().tolist() == [3.0, 3.0]
