"""Calls of names of TensorFlow that compute, whose results are compared with TensorFlow's.

    python compute_names.py --write compute_names.npz   under TensorFlow: results and gradients anew

A case is a function of tf and of arrays. Cases of `GRADIENTS` are differentiated, too, by their floating arrays, and all but
those of `ON_THE_HOST` are traced without values.
"""
import sys

import numpy as np

CASES, GRADIENTS, ON_THE_HOST, COARSE = {}, set(), set(), {}


def case(name, *arrays, grad=True, host=False, tol=None):
    def keep(fn):
        CASES[name] = fn, arrays
        if grad:
            GRADIENTS.add(name)
        if host:
            ON_THE_HOST.add(name)
        if tol:
            COARSE[name] = tol
        return fn
    return keep


def r(*shape, seed=0, dtype="float32", low=-1.0, high=1.0):
    """Random numbers."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(dtype)


def spd(n, seed=0, dtype="float32"):
    """A symmetric, positive definite matrix."""
    a = r(n, n, seed=seed, dtype="float64")
    return (a @ a.T + n * np.eye(n)).astype(dtype)


def flat(value):
    """The tensors of a result, in order."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    if hasattr(value, "dense_shape"):
        return [value.indices, value.values, value.dense_shape]
    if hasattr(value, "row_splits"):
        return [value.flat_values, value.row_splits]
    return [value]


def weights(shape):
    """What results are multiplied with before they are summed and differentiated."""
    return np.cos(np.arange(int(np.prod(shape)), dtype="float64")).reshape(shape)


def gradients(tf, name):
    """The gradients of the weighted sum of a case's floating results by its floating arrays."""
    fn, arrays = CASES[name]
    inputs = [tf.constant(a) for a in arrays]
    by = [t for t in inputs if t.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(by)
        total = 0.0
        for out in flat(fn(tf, *inputs)):
            if hasattr(out, "dtype") and out.dtype.is_complex:
                out = tf.math.real(out) + 2.0 * tf.math.imag(out)
            if hasattr(out, "dtype") and out.dtype.is_floating:
                total += tf.reduce_sum(tf.cast(out, tf.float64) * weights(out.shape))
    return tape.gradient(total, by, unconnected_gradients="zero")


def main(path):
    import tensorflow as tf
    kept = {}
    for name, (fn, arrays) in CASES.items():
        try:
            for i, out in enumerate(flat(fn(tf, *map(tf.constant, arrays)))):
                array = np.asarray(out)
                kept[f"{name}/{i}"] = array.astype("S") if array.dtype == object else array
            for i, g in enumerate(gradients(tf, name) if name in GRADIENTS else []):
                kept[f"{name}/gradient/{i}"] = tf.convert_to_tensor(g).numpy()
        except Exception as error:
            print(name, type(error).__name__, str(error)[:300])
    np.savez_compressed(path, **kept)


# tf.nn

@case("batch_normalization", r(3, 5), r(5, seed=1), r(5, seed=2, low=0.5), r(5, seed=3), r(5, seed=4))
def _(tf, x, m, v, o, s):
    return (tf.nn.batch_normalization(x, m, v, o, s, 0.001), tf.nn.batch_normalization(x, m, v, None, s, 0.001),
            tf.nn.batch_normalization(x, m, v, o, None, 0.001),
            tf.nn.batch_norm_with_global_normalization(tf.reshape(x, [1, 1, 3, 5]), m, v, o, s, 0.01, True))


@case("lrn and crelu", r(2, 3, 3, 7))
def _(tf, x):
    return tf.nn.lrn(x, 2, 1.5, 0.3, 0.7), tf.nn.crelu(x), tf.nn.crelu(x, axis=1)


@case("moments", r(3, 4, 2), r(3, 4, 1, seed=1, low=0.1))
def _(tf, x, w):
    count, mean, squares, shift = tf.nn.sufficient_statistics(x, [0, 1], shift=0.3)
    return (tf.nn.weighted_moments(x, [0, -2], w), tf.nn.weighted_moments(x, [1], w, keepdims=True),
            count, mean, squares, shift, tf.nn.normalize_moments(count, mean, squares, shift),
            tf.nn.sufficient_statistics(x, [2], keepdims=True)[:3])


@case("weighted_moments of halves", r(6, 3, dtype="float16"), np.float16([1, 2, 1, 1, 3, 1]).reshape(6, 1), grad=False, tol=3e-3)
def _(tf, x, w):
    return tf.nn.weighted_moments(x, [0], w)


@case("labels", np.int32([[1, 1, 2, 2, 1], [3, 3, 3, 0, 1], [5, 6, 6, 6, 6]]), np.int32([5, 4, 1]), grad=False, host=True)
def _(tf, labels, lengths):
    return tf.nn.collapse_repeated(labels, lengths), tf.nn.ctc_unique_labels(labels)


@case("isotonic_regression", r(3, 6), host=True)
def _(tf, x):
    return tf.nn.isotonic_regression(x), tf.nn.isotonic_regression(x, decreasing=False, axis=0)


@case("sampled losses", r(9, 4), r(9, seed=1), r(3, 4, seed=2), np.int64([[0, 3], [2, 8], [5, 1]]), np.int64([3, 5, 1, 7]),
      r(3, 2, seed=3, low=0.1), r(4, seed=4, low=0.1))
def _(tf, w, b, x, labels, sampled, true_count, count):
    values = sampled, true_count, count
    return (tf.nn.sampled_softmax_loss(w, b, labels, x, 4, 9, 2, values), tf.nn.nce_loss(w, b, labels, x, 4, 9, 2, values),
            tf.nn.sampled_softmax_loss([w[:5], w[5:]], b, labels[:, :1], x, 4, 9, 1, (sampled, true_count[:, :1], count),
                                       remove_accidental_hits=False),
            tf.nn.nce_loss(w, b, labels, x, 4, 9, 2, values, remove_accidental_hits=True))


@case("candidates", np.int64([[0, 3], [2, 8]]), np.int64([3, 5, 1, 2]), grad=False, host=True)
def _(tf, labels, sampled):
    same = tf.random.uniform_candidate_sampler(labels, 2, 9, True, 9)
    return (tf.nn.compute_accidental_hits(labels, sampled, 2), tf.random.all_candidate_sampler(labels, 2, 9, True),
            tf.random.log_uniform_candidate_sampler(labels, 2, 5, False, 9)[1],
            tf.random.uniform_candidate_sampler(labels, 2, 5, False, 9)[1:],
            tf.nn.fixed_unigram_candidate_sampler(labels, 2, 5, False, 9, unigrams=[1., 2., 3., 4., 5., 4., 3., 2., 1.],
                                                  distortion=0.5)[1],
            tf.sort(same[0]))


def _sparse(tf, rows, values, shape):
    return tf.SparseTensor(np.int64(rows), values, np.int64(shape))


@case("embedding_lookup_sparse", r(6, 3), r(6, seed=1, low=0.1), host=True)
def _(tf, table, w):
    at = [[0, 0], [0, 1], [1, 0], [3, 0], [3, 2], [3, 3]]
    ids = _sparse(tf, at, np.int64([1, 3, 0, 5, 5, 2]), [5, 4])
    some = _sparse(tf, at, np.int64([1, -1, 0, 5, 5, 2]), [5, 4])
    ws = tf.SparseTensor(np.int64(at), w, np.int64([5, 4]))
    return ([tf.nn.embedding_lookup_sparse(table, ids, s, combiner=c) for s in (None, ws) for c in ("sum", "mean", "sqrtn")],
            tf.nn.embedding_lookup_sparse([table[:3], table[3:]], ids, None, max_norm=0.5),
            tf.nn.safe_embedding_lookup_sparse(table, some), tf.nn.safe_embedding_lookup_sparse(table, some, ws, "sum", 4),
            tf.nn.safe_embedding_lookup_sparse(table, some, ws, "sqrtn"))


@case("blocks", r(2, 5, 7, 3))
def _(tf, x):
    pads, crops = tf.required_space_to_batch_paddings([5, 7], [2, 3], [[0, 1], [2, 0]])
    y = tf.space_to_batch(x, [2, 3], pads)
    return (pads, crops, y, tf.batch_to_space(y, [2, 3], [[0, 1], [1, 0]]), tf.nn.space_to_batch(x[:, :4], [2], [[0, 0]]),
            tf.space_to_batch_nd(x, [5], [[0, 0]]), tf.required_space_to_batch_paddings([5], [3]))


@case("dilated windows", r(2, 7, 6, 2), r(3, 2, 2, 4, seed=1))
def _(tf, x, f):
    def conv(v, axes, padding):
        return tf.nn.conv2d(v, f, 1, padding)
    return ([tf.nn.atrous_conv2d(x, f, 2, p) for p in ("SAME", "VALID")],
            [tf.nn.with_space_to_batch(x, [2, 3], p, conv, [3, 2], [1, 2]) for p in ("SAME", "VALID")],
            tf.nn.with_space_to_batch(x, [1, 1], "SAME", conv))


@case("atrous_conv2d_transpose", r(2, 7, 6, 4), r(3, 2, 2, 4, seed=1))
def _(tf, x, f):
    return tf.nn.atrous_conv2d_transpose(x, f, [2, 7, 6, 2], 2, "SAME")


@case("morphology", r(2, 6, 7, 2), r(3, 2, 2, seed=1))
def _(tf, x, f):
    return (tf.nn.dilation2d(x, f, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 2, 1]),
            tf.nn.erosion2d(x, f, [1, 1, 1, 1], "VALID", "NHWC", [1, 2, 1, 1]))


@case("depthwise gradients", r(2, 6, 7, 3), r(3, 2, 3, 2, seed=1), r(2, 3, 4, 6, seed=2))
def _(tf, x, f, dy):
    return (tf.nn.depthwise_conv2d_backprop_input([2, 6, 7, 3], f, dy, [1, 2, 2, 1], "SAME"),
            tf.nn.depthwise_conv2d_backprop_filter(x, [3, 2, 3, 2], dy, [1, 2, 2, 1], "SAME"))


@case("extract_volume_patches", r(1, 4, 5, 3, 2), grad=False)
def _(tf, x):
    return (tf.extract_volume_patches(x, [1, 2, 2, 1, 1], [1, 1, 2, 1, 1], "VALID"),
            tf.extract_volume_patches(x, [1, 3, 2, 2, 1], [1, 2, 2, 1, 1], "SAME"))


@case("dropout at its ends", r(3, 4))
def _(tf, x):
    return (tf.nn.experimental.stateless_dropout(x, 0, [1, 2]), tf.nn.experimental.general_dropout(
        x, 0.4, lambda shape, dtype: tf.reshape(tf.range(12, dtype=dtype), shape) / 12.0),
            tf.nn.experimental.general_dropout(x, 0.25, lambda shape, dtype: tf.cast(tf.reshape([0.1, 0.5, 0.9], [3, 1]), dtype),
                                               [None, 1]))


# Top

@case("edit_distance", np.int64([1, 2, 3, 4, 7]), np.int64([1, 3, 4, 4]), grad=False, host=True)
def _(tf, a, b):
    h = _sparse(tf, [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 0], [1, 0, 0]], a, [2, 2, 3])
    t = _sparse(tf, [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]], b, [2, 2, 2])
    return tf.edit_distance(h, t), tf.edit_distance(h, t, normalize=False)


@case("bins", np.float32([-1, 0, 1.5, 2, 5, 15]), grad=False)
def _(tf, x):
    return (tf.histogram_fixed_width_bins(x, [0.0, 5.0], nbins=5), tf.histogram_fixed_width_bins(x, [1.0, 4.0], 3))


@case("broadcast shapes", np.int32([2, 1]), np.int32([3, 1, 4]), grad=False, host=True)
def _(tf, a, b):
    return tf.broadcast_dynamic_shape(a, b), tf.constant(tf.broadcast_static_shape(tf.TensorShape([2, 1]),
                                                                                   tf.TensorShape([5])).as_list())


@case("fingerprint", np.int32([[1, 2], [3, 4]]), grad=False, host=True)
def _(tf, x):
    return tf.fingerprint(["hello", "",
                           "a longer text of more than sixty-four bytes, so that all of the hash is used"]), tf.fingerprint(x), \
        tf.fingerprint([["a", "b"], ["c", "d"]])


@case("as_string", np.float32([1.5, -2.25]), grad=False, host=True)
def _(tf, x):
    return (tf.as_string(x), tf.as_string(x, precision=3, width=8), tf.as_string([3, -10], width=4, fill="0"),
            tf.as_string(x > 0.0),
            tf.strings.as_string(x, shortest=True), tf.as_string(x * 1e8, scientific=True, precision=2),
            tf.as_string(["ab"], width=4),
            tf.as_string([1 + 2j], shortest=True), tf.as_string([3], width=4, fill="-"))


@case("gradients of others", r(3, 2))
def _(tf, x):
    return tf.grad_pass_through(tf.round)(x * 3.0)


# tf.linalg

@case("diagonals", r(2, 3, 4), r(2, 2, 3, seed=1), r(2, 3, seed=2))
def _(tf, x, band, one):
    sides = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
    return ([tf.linalg.diag_part(x, k=(-1, 2), padding_value=9.0, align=a) for a in sides], tf.linalg.diag_part(x, k=-2),
            tf.linalg.diag_part(x), [tf.linalg.diag(band, k=(-1, 0), align=a) for a in sides],
            tf.linalg.diag(one, k=1), tf.linalg.diag(one), tf.linalg.diag(one, k=-1, num_rows=5, padding_value=2.0),
            tf.linalg.diag(band, k=(0, 1), num_rows=3, num_cols=4),
            [tf.linalg.set_diag(x, band, k=(1, 2), align=a) for a in sides], tf.linalg.set_diag(x, one),
            tf.linalg.set_diag(x, one[:, :2], k=-1), tf.linalg.tensor_diag(one),
            tf.linalg.tensor_diag_part(tf.linalg.tensor_diag(one)))


@case("normalize", r(3, 4), grad=True)
def _(tf, x):
    return tf.linalg.normalize(x), tf.linalg.normalize(x, ord=1, axis=1), tf.linalg.normalize(x, axis=0)


@case("expm", r(2, 4, 4) * 3, r(3, 3, dtype="float64") * 0.1, tol=2e-5)
def _(tf, x, y):
    return tf.linalg.expm(x), tf.linalg.expm(y)


@case("sqrtm", spd(4), spd(5, dtype="float64"), grad=False, tol=2e-5)
def _(tf, x, y):
    return tf.linalg.sqrtm(x), tf.linalg.sqrtm(y), tf.matrix_square_root(y + tf.constant(np.triu(np.ones([5, 5])))), \
        tf.linalg.sqrtm(tf.complex(y, tf.linalg.diag(tf.linalg.diag_part(y))))


@case("logm", spd(4, dtype="float64"), grad=False, tol=1e-7)
def _(tf, y):
    return tf.linalg.logm(tf.complex(y, 0.3 * y))


@case("logm of complex64", spd(4), grad=False, tol=2e-5)
def _(tf, y):
    return tf.linalg.logm(tf.complex(y, 0.1 * y))


@case("tridiagonal", r(2, 3, 5), r(2, 5, 2, seed=1), r(2, 5, seed=2))
def _(tf, d, b, v):
    d = d + [[0.0], [3.0], [0.0]]
    seq = [d[:, 0, :-1], d[:, 1], d[:, 2, 1:]]
    return (tf.linalg.tridiagonal_solve(d, b), tf.linalg.tridiagonal_solve(d, v), tf.linalg.tridiagonal_matmul(d, b),
            tf.linalg.tridiagonal_solve(seq, b, "sequence"),
            tf.linalg.tridiagonal_solve(d, tf.transpose(b, [0, 2, 1]), transpose_rhs=True))


@case("banded_triangular_solve", r(2, 3, 5), r(2, 5, 2, seed=1))
def _(tf, d, b):
    return (tf.linalg.banded_triangular_solve(d + [[3.0], [0.0], [0.0]], b),
            tf.linalg.banded_triangular_solve(d + [[0.0], [0.0], [3.0]], b, lower=False),
            tf.linalg.banded_triangular_solve(d + [[3.0], [0.0], [0.0]], b, adjoint=True))


@case("eigh_tridiagonal", r(6, dtype="float64"), r(5, seed=1, dtype="float64"), grad=False, host=True)
def _(tf, a, b):
    return (tf.linalg.eigh_tridiagonal(a, b), tf.linalg.eigh_tridiagonal(a, b, select="i", select_range=[1, 3]),
            tf.abs(tf.linalg.eigh_tridiagonal(a, b, eigvals_only=False)[1]))


@case("conjugate_gradient", spd(4), r(4, seed=1), tol=1e-4)
def _(tf, a, b):
    op = tf.linalg.LinearOperatorFullMatrix(a, is_self_adjoint=True, is_positive_definite=True)
    return tf.linalg.experimental.conjugate_gradient(op, b, tol=1e-6).x


def about(tf, op, x, square=True, self_adjoint=False):
    """What is asked of every operator."""
    n = op.shape[-1]
    out = [op.to_dense(), op.matmul(x), op.matvec(x[..., 0]), op.diag_part(), op.add_to_tensor(tf.ones(op.shape, op.dtype)),
           op.adjoint().to_dense(), op.shape_tensor(), op.batch_shape_tensor(), op.domain_dimension_tensor(),
           op.tensor_rank_tensor()]
    if square:
        out += [op.trace(), op.solve(x), op.solvevec(x[..., 0]), op.matmul(x, adjoint=True), op.solve(x, adjoint=True),
                op.determinant(),
                op.log_abs_determinant(), op.inverse().to_dense(), op.matmul(tf.linalg.matrix_transpose(x), adjoint_arg=True)]
    return out


@case("LinearOperatorFullMatrix", spd(3), r(3, 2, seed=1), r(2, 3, 4, seed=2), tol=1e-4)
def _(tf, a, x, wide):
    L = tf.linalg.LinearOperatorFullMatrix
    return about(tf, L(a), x), L(wide).to_dense(), L(wide).matmul(tf.ones([4, 1]))


@case("LinearOperatorFullMatrix that is positive", spd(3), r(3, 2, seed=1), grad=False, tol=1e-4)
def _(tf, a, x):
    op = tf.linalg.LinearOperatorFullMatrix(a, is_self_adjoint=True, is_positive_definite=True)
    return about(tf, op, x), op.cholesky().to_dense(), op.eigvals(), op.cond()


@case("LinearOperatorDiag", r(2, 3, low=0.5), r(3, 2, seed=1), tol=1e-4)
def _(tf, d, x):
    op = tf.linalg.LinearOperatorDiag(d, is_positive_definite=True)
    return about(tf, op, x), op.cholesky().to_dense(), (op @ op).to_dense(), op.cond()


@case("LinearOperatorIdentity", r(3, 2), r(2, seed=1, low=0.5), tol=1e-4)
def _(tf, x, m):
    return (about(tf, tf.linalg.LinearOperatorIdentity(3), x), about(tf, tf.linalg.LinearOperatorIdentity(3, batch_shape=[2]), x),
            about(tf, tf.linalg.LinearOperatorScaledIdentity(3, m), x))


@case("LinearOperatorZeros", r(3, 2), grad=False)
def _(tf, x):
    return (about(tf, tf.linalg.LinearOperatorZeros(4, 3, is_square=False, is_self_adjoint=False), x, False),
            tf.linalg.LinearOperatorZeros(3).determinant())


@case("LinearOperatorLowerTriangular", spd(3), r(3, 2, seed=1), tol=1e-4)
def _(tf, a, x):
    return about(tf, tf.linalg.LinearOperatorLowerTriangular(a), x)


@case("LinearOperatorHouseholder", r(3), r(3, 2, seed=1), tol=1e-4)
def _(tf, v, x):
    return about(tf, tf.linalg.LinearOperatorHouseholder(v), x)


@case("LinearOperatorPermutation", r(4, 2), np.int32([2, 0, 3, 1]))
def _(tf, x, p):
    op = tf.linalg.LinearOperatorPermutation(p)
    return op.to_dense(), op.matmul(x), op.solve(x), op.matmul(x, adjoint=True), op.determinant(), op.log_abs_determinant()


@case("LinearOperatorToeplitz", np.float32([3, 1, 0.5]), np.float32([3, -1, 0.2]), r(3, 2, seed=1), tol=1e-4)
def _(tf, c, row, x):
    return about(tf, tf.linalg.LinearOperatorToeplitz(c, row), x)


@case("LinearOperatorTridiag", r(3, 4), r(4, 2, seed=1), tol=1e-4)
def _(tf, d, x):
    d = d + [[0.0], [3.0], [0.0]]
    return about(tf, tf.linalg.LinearOperatorTridiag(d), x), about(
        tf, tf.linalg.LinearOperatorTridiag([d[0], d[1], d[2]], diagonals_format="sequence"), x)


@case("LinearOperatorComposition", spd(3), r(3, low=0.5), r(3, 2, seed=1), tol=1e-3)
def _(tf, a, d, x):
    L = tf.linalg
    op = L.LinearOperatorComposition([L.LinearOperatorFullMatrix(a), L.LinearOperatorDiag(d), L.LinearOperatorLowerTriangular(a)])
    return about(tf, op, x), L.LinearOperatorFullMatrix(a).matmul(L.LinearOperatorDiag(d)).to_dense()


@case("LinearOperatorKronecker", spd(2), spd(3), r(6, 2, seed=1), tol=1e-3)
def _(tf, a, b, x):
    F = tf.linalg.LinearOperatorFullMatrix
    op = tf.linalg.LinearOperatorKronecker([F(a), F(b)])
    more = tf.linalg.LinearOperatorKronecker([F(tf.stack([b, b + 1.0])), F(r(2, 1)), F(a)])
    return about(tf, op, x), more.to_dense(), more.matmul(x), more.shape_tensor()


@case("LinearOperatorBlocks", spd(2), spd(3), r(3, 2, seed=2), r(5, 2, seed=1), tol=1e-3)
def _(tf, a, b, c, x):
    F = tf.linalg.LinearOperatorFullMatrix
    diag = tf.linalg.LinearOperatorBlockDiag([F(a), F(tf.stack([b, b + 1.0]))])
    low = tf.linalg.LinearOperatorBlockLowerTriangular([[F(a)], [F(c), F(b)]])
    return about(tf, diag, x), [low.to_dense(), low.matmul(x), low.solve(x), low.determinant(), low.log_abs_determinant(),
                                low.matmul([x[:2], x[2:]]), low.solve([x[:2], x[2:]]), low.matmul(x, adjoint=True),
                                low.solve(x, adjoint=True)]


@case("LinearOperatorAdjoint and Inversion", spd(3), r(3, 2, seed=1), tol=1e-3)
def _(tf, a, x):
    a = a + tf.constant([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    op = tf.linalg.LinearOperatorFullMatrix(a)
    return about(tf, tf.linalg.LinearOperatorAdjoint(op), x), about(tf, tf.linalg.LinearOperatorInversion(op), x)


@case("LinearOperatorLowRankUpdate", r(4, low=1.0, high=2.0), r(4, 2, seed=1), r(2, seed=2, low=0.5), r(4, 2, seed=3),
      r(4, 3, seed=4), tol=1e-3)
def _(tf, d, u, update, v, x):
    base = tf.linalg.LinearOperatorDiag(d, is_positive_definite=True)
    return (about(tf, tf.linalg.LinearOperatorLowRankUpdate(base, u, update, is_diag_update_positive=True), x),
            about(tf, tf.linalg.LinearOperatorLowRankUpdate(base, u, update, v), x))


@case("LinearOperatorCirculant", r(4, low=0.5), r(2, 3, seed=1, low=0.5), r(4, 2, seed=2), r(6, 1, seed=3), grad=False, tol=1e-4)
def _(tf, s, s2, x, y):
    one = tf.linalg.LinearOperatorCirculant(tf.complex(s, s * 0.5))
    real = tf.linalg.LinearOperatorCirculant(tf.constant([2.0, 1.0, 0.5, 1.0]), input_output_dtype=tf.float32)
    two = tf.linalg.LinearOperatorCirculant2D(s2)
    three = tf.linalg.LinearOperatorCirculant3D(tf.reshape(s2, [1, 2, 3]))
    c, cy = tf.cast(x, tf.complex64), tf.cast(y, tf.complex64)
    return ([one.to_dense(), one.matmul(c), one.solve(c), one.matmul(c, adjoint=True), one.trace(), one.determinant(),
             one.log_abs_determinant(), one.diag_part(), one.convolution_kernel()], real.matmul(x), real.to_dense(),
             two.matmul(cy),
            two.to_dense(), three.solve(cy), three.trace())


# tf.math

_A = np.float64([0.01, 0.5, 1.0, 2.5, 10.0, 80.0, 1000.0])


@case("igamma", np.repeat(_A, 6), np.outer(_A, [0.01, 0.5, 0.99, 1.01, 2.0, 5.0]).ravel(), tol=1e-9)
def _(tf, a, x):
    return tf.math.igamma(a, x), tf.math.igammac(a, x)


@case("igamma of float32", np.float32([0.5, 3, 20, 300]), np.float32([0.7, 2, 25, 290]), grad=False, tol=2e-4)
def _(tf, a, x):
    return tf.math.igamma(a, x), tf.math.igammac(a, x), tf.math.igamma([0.0, 1.0, -1.0, 2.0, 1.0], [1.0, 0.0, 1.0, -1.0, np.inf])


@case("betainc", np.float64([0.1, 0.5, 2, 20, 300, 0.3, 1, 50, 0.05]), np.float64([0.2, 3, 2, 5, 200, 40, 1, 0.1, 0.01]),
      np.float64([0.3, 0.9, 0.5, 0.85, 0.62, 0.001, 0.25, 0.999, 0.7]), grad=False, tol=1e-9)
def _(tf, a, b, x):
    return tf.math.betainc(a, b, x), tf.math.betainc(tf.constant([1.0, -1.0, 2.0, 2.0]), tf.constant([2.0, 1.0, 3.0, 3.0]),
                                                     tf.constant([0.0, 0.5, 1.5, 1.0]))


@case("betainc by x", np.float64([0.3, 0.9, 0.5]), tol=1e-8)
def _(tf, x):
    return tf.math.betainc(tf.constant([0.5, 3.0, 20.0], tf.float64), tf.constant([2.0, 0.4, 21.0], tf.float64), x)


_X = np.float64([1e-6, 0.01, 0.3, 1, 2.2, 3.5, 7, 12, 24, 26, 60])


@case("special functions", _X, tol=1e-7)
def _(tf, x):
    return [getattr(tf.math.special, n)(x) for n in """bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0
    bessel_y1
            dawsn expint fresnel_cos fresnel_sin spence""".split()]


@case("special functions at their ends", np.float32([-3, -0.5, 0]), grad=False, tol=1e-5)
def _(tf, x):
    return [getattr(tf.math.special, n)(x) for n in """bessel_j0 bessel_j1 bessel_k0 bessel_k1e bessel_y0 dawsn expint
            fresnel_cos fresnel_sin spence""".split()]


@case("unsorted_segment_sqrt_n", r(4, 3), np.int32([2, 0, 2, 2]))
def _(tf, x, ids):
    return tf.math.unsorted_segment_sqrt_n(x, ids, 4)


@case("sobol_sample", np.float32([0]), grad=False)
def _(tf, _):
    return tf.math.sobol_sample(53, 300)[-9:], tf.math.sobol_sample(4, 5, skip=1000, dtype=tf.float64), tf.math.sobol_sample(1, 2)


# tf.signal

@case("dct", r(2, 8), r(3, 5, seed=1, dtype="float64"), tol=1e-4)
def _(tf, x, y):
    return ([f(v, t) for f in (tf.signal.dct, tf.signal.idct) for v in (x, y) for t in (1, 2, 3, 4)],
            [f(x, t, norm="ortho") for f in (tf.signal.dct, tf.signal.idct) for t in (2, 3, 4)],
            tf.signal.dct(x, 2, n=5), tf.signal.dct(x, 2, n=11))


@case("mdct", r(2, 40), tol=1e-4)
def _(tf, x):
    a, b = tf.signal.mdct(x, 8), tf.signal.mdct(x, 12, window_fn=None, pad_end=True, norm="ortho")
    return a, b, tf.signal.inverse_mdct(a), tf.signal.inverse_mdct(b, window_fn=None, norm="ortho")


@case("transforms over axes", r(2, 4, 5, 6), tol=1e-4, grad=False)
def _(tf, x):
    y = tf.signal.rfft3d(x)
    return y, tf.signal.irfft3d(y), tf.signal.irfft3d(y, [4, 5, 6]), tf.signal.rfft3d(x, [4, 6, 8])


@case("mel", r(3, 20, seed=1))
def _(tf, x):
    return (tf.signal.linear_to_mel_weight_matrix(10, 33, 16000, 60.0, 7000.0), tf.signal.linear_to_mel_weight_matrix(),
            tf.signal.mfccs_from_log_mel_spectrograms(x))


# tf.image

@case("ssim", r(2, 40, 36, 3, low=0.0), r(2, 40, 36, 3, seed=1, low=0.0), tol=1e-3)
def _(tf, a, b):
    return (tf.image.ssim(a, b, 1.0),
            tf.image.ssim(a, 0.5 * a + 0.5 * b, 1.0, filter_size=5, filter_sigma=1.0, return_index_map=True),
            tf.image.ssim_multiscale(a, 0.8 * a + 0.2 * b, 1.0, filter_size=3, power_factors=(0.2, 0.3, 0.5)))


@case("ssim of bytes", np.random.default_rng(0).integers(0, 255, [20, 17, 1]).astype("uint8"), grad=False, tol=1e-4)
def _(tf, a):
    return tf.image.ssim(a, tf.roll(a, 1, 0), 255)


@case("draw_bounding_boxes", r(2, 9, 11, 3), r(2, 3, 4, seed=1, low=0.0), grad=False)
def _(tf, x, boxes):
    lo, hi = tf.minimum(boxes[..., :2], boxes[..., 2:]), tf.maximum(boxes[..., :2], boxes[..., 2:])
    boxes = tf.concat([lo, hi], -1)
    out = tf.concat([boxes[:, :1] - [0.3, 0.0, 0.0, 0.0], boxes[:, 1:2] + [0.0, 0.0, 0.0, 0.7], boxes[:, 2:]], 1)
    return (tf.image.draw_bounding_boxes(x, boxes, [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]),
            tf.image.draw_bounding_boxes(x, out, None),
            tf.image.draw_bounding_boxes(x[..., :1], boxes, None))


def _boxes(n, seed):
    a = np.random.default_rng(seed).uniform(0, 1, [n, 2])
    return np.concatenate([a, a + np.random.default_rng(seed + 1).uniform(0.1, 0.5, [n, 2])], 1).astype("float32")


@case("suppression", _boxes(14, 0), r(14, seed=5, low=0.0), grad=False, host=True)
def _(tf, boxes, scores):
    overlaps = np.abs(np.sin(np.arange(196.0))).reshape(14, 14).astype("float32")
    return (tf.image.non_max_suppression_with_scores(boxes, scores, 8, 0.3), tf.image.non_max_suppression_with_scores(
        boxes, scores, 10, 0.9, 0.1, 0.4), tf.image.non_max_suppression_with_scores(boxes, scores, 10, 0.3, 0.2, 0.1),
            tf.image.non_max_suppression_overlaps(overlaps, scores, 6, 0.6, 0.05))


@case("combined_non_max_suppression", np.stack([_boxes(10, 1), _boxes(10, 2)])[:, :, None], r(2, 10, 3, low=0.0), grad=False,
      host=True)
def _(tf, boxes, scores):
    f = tf.image.combined_non_max_suppression
    return (f(boxes, scores, 3, 7, 0.3, 0.2), f(tf.tile(boxes, [1, 1, 3, 1]), scores, 2, 20, 0.5, 0.6, pad_per_class=True),
            f(boxes, scores, 3, 5, clip_boxes=False))


@case("extract_glimpse", r(2, 7, 9, 2), np.float32([[0.2, -0.3], [1.0, 0.9]]), grad=False)
def _(tf, x, at):
    return [tf.image.extract_glimpse(x, [4, 3], at * s, centered=c, normalized=n, noise="zero")
            for c in (True, False) for n, s in ((True, 1.0), (False, 4.0))]


# tf.experimental.numpy

@case("numpy", r(3, 4, dtype="float64"), np.int64([[12, 18, 0], [7, -21, 5]]), np.int64([[8, 27, 4], [49, 14, 0]]))
def _(tf, x, i, j):
    n = tf.experimental.numpy
    nan = tf.where(x > 0.5, np.nan, x)
    return (n.append(x, x[:1], 0), n.append(i, [[3.0]]), n.bitwise_not(i), n.compress([True, False, True], x, 0),
            n.diag_indices(3, 2),
            n.diagflat(x[:2, :2], 1), n.divmod(i, 5), n.flatten(i), n.gcd(i, j), n.lcm(i, j), n.geomspace(1.0, 100.0, 5),
            n.iscomplex(x),
            n.isreal(x), n.isneginf(x / 0.0), n.isposinf(x / 0.0), n.logaddexp2(x, x + 1.0), n.nanmean(nan),
            n.nanmean(nan, axis=0, keepdims=True),
            n.nansum(nan, axis=1), n.nanprod(nan), n.nextafter(x, x + 1.0), n.polyval([1.0, 2.0, 3.0], x), n.ptp(x, axis=1),
            n.ptp(i),
            n.signbit(x), n.sinc(x), n.ix_([0, 2], [1, 3, 2]))


# tf.sparse, tf.ragged, tf.random

@case("crosses", np.int64([[1, 2], [3, 4]]), grad=False, host=True)
def _(tf, x):
    words = tf.constant([["a", "bb"], ["c", "d"]])
    sparse = tf.SparseTensor(np.int64([[0, 0], [1, 0], [1, 1]]), tf.constant(["x", "y", "z"]), np.int64([2, 2]))
    ragged = tf.ragged.constant([["p"], ["q", "r", "s"]])
    return (tf.sparse.cross([words, x, sparse]), tf.sparse.cross([words, sparse], separator="-"),
            tf.sparse.cross_hashed([words, x]),
            tf.sparse.cross_hashed([words, x, sparse], num_buckets=1000, hash_key=77), tf.ragged.cross([ragged, words]),
            tf.ragged.cross_hashed([ragged, words], num_buckets=100),
            tf.ragged.cross_hashed([ragged, tf.ragged.constant([[5], [6, 7]])]))


@case("sampled_addmm", r(3, 4), r(4, 5, seed=1), r(3, seed=2))
def _(tf, a, b, values):
    return tf.sparse.sampled_addmm([[0, 1], [2, 4], [1, 0]], values, [3, 5], a, b, beta=0.5, alpha=2.0)[:2]


if __name__ == "__main__":
    main(sys.argv[sys.argv.index("--write") + 1])
