"""What each op gives, by NumPy: name in berth -> rows (arguments, options, expected).

The expected values are NumPy's, the math module's, or a short formula written here. Images,
convolutions and pooling are small enough for plain loops.
"""
import math

import numpy as np

RNG = np.random.default_rng(5)
A = RNG.uniform(0.1, 0.9, (3, 4)).astype("float32")
B = RNG.uniform(0.1, 0.9, (3, 4)).astype("float32")
S = RNG.normal(size=(3, 4)).astype("float32")
BIG = (S * 3).astype("float32")
I = np.array([[7, -3, 2, 9], [1, 5, -8, 4]], "int32")
J = np.array([[2, 2, -5, 4], [3, -2, 3, 1]], "int32")
P = np.abs(I) + 1
T = I > 1
F = np.array([[True, False, False, True], [True, True, False, False]])
M = (RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)).astype("float32")
SPD = (M @ M.transpose(0, 2, 1)).astype("float32")
V = RNG.normal(size=(2, 3)).astype("float32")
C = (RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))).astype("complex64")
X4 = RNG.normal(size=(2, 5, 6, 3)).astype("float32")
RGB = RNG.uniform(0, 1, (4, 6, 3)).astype("float32")
SEG = np.array([0, 0, 1, 3], "int32")
ROWS4 = RNG.normal(size=(4, 3)).astype("float32")
SPECIAL = np.array([1.5, np.inf, -np.inf, np.nan, -0.0], "float32")
each = lambda f: np.vectorize(f, otypes=[np.float64])  # noqa: E731
softmax = lambda x, axis=-1: (e := np.exp(x - x.max(axis, keepdims=True))) / e.sum(axis, keepdims=True)  # noqa: E731
sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
norm_cdf = lambda x: 0.5 * (1 + each(math.erf)(x / math.sqrt(2)))  # noqa: E731


def bisected(f, low, high):
    """The inverse of a growing function of one number."""
    def inverse(y):
        a, b = low, high
        for _ in range(80):
            m = (a + b) / 2
            a, b = (m, b) if f(m) < y else (a, m)
        return (a + b) / 2
    return each(inverse)


def hurwitz(s, q):
    """zeta(s, q) by Euler and Maclaurin."""
    n = 12
    return (sum((q + k) ** -s for k in range(n)) + (q + n) ** (1 - s) / (s - 1) + (q + n) ** -s / 2
            + s * (q + n) ** (-s - 1) / 12 - s * (s + 1) * (s + 2) * (q + n) ** (-s - 3) / 720)


def digamma(x):
    return -sum(1 / (x + k) for k in range(20)) + math.log(x + 20) - 1 / (2 * (x + 20)) - 1 / (
        12 * (x + 20) ** 2)


def windows(x, size, stride, same):
    """(output position, slices) of each window over the two middle axes, with zeros around."""
    pads, out = [], []
    for n in x.shape[1:3]:
        o = -(-n // stride) if same else (n - size) // stride + 1
        total = max((o - 1) * stride + size - n, 0) if same else 0
        pads.append((total // 2, total - total // 2))
        out.append(o)
    return pads, out


def conv(x, w, stride=1, same=False):
    pads, (h, b) = windows(x, w.shape[0], stride, same)
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    k = w.shape[0]
    return np.stack([np.stack([np.tensordot(x[:, i * stride:i * stride + k, j * stride:j * stride + k],
                                            w, 3) for j in range(b)], 1) for i in range(h)], 1)


def pool(x, size, stride, how):
    _, (h, b) = windows(x, size, stride, False)
    return np.stack([np.stack([how(x[:, i * stride:i * stride + size, j * stride:j * stride + size],
                                   (1, 2)) for j in range(b)], 1) for i in range(h)], 1)


def segments(how, empty, sorted_ids=True, n=4):
    return np.stack([how(ROWS4[SEG == k], 0) if (SEG == k).any() else np.full(3, empty) for k in range(n)])


def scattered(how):
    x = A.copy()
    how(x, (np.array([0, 2]),), np.ones((2, 4), "float32") * 0.5)
    return x


W3 = RNG.normal(size=(3, 3, 3, 4)).astype("float32")
D3 = RNG.normal(size=(3, 3, 3, 2)).astype("float32")
SHIFTED = [[0], [2]], np.ones((2, 4), "float32") * 0.5
MEAN, VARIANCE = S.mean(-1, keepdims=True), S.var(-1, keepdims=True)
LABELS = np.array([2, 0, 1], "int32")
LOGP = np.log(softmax(S))
YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617],
                [0.114, -0.32134392, 0.31119955]], "float32")

TABLE = {
    # elementwise, one argument
    **{f"math.{n}": [((x,), {}, f(x.astype("float64")))] for n, x, f in (
        ("abs", S, np.abs), ("acos", A, np.arccos), ("acosh", A + 1, np.arccosh), ("asin", A, np.arcsin),
        ("asinh", S, np.arcsinh), ("atan", S, np.arctan), ("atanh", A, np.arctanh), ("ceil", BIG, np.ceil),
        ("cos", BIG, np.cos), ("cosh", S, np.cosh), ("erf", S, each(math.erf)), ("erfc", S, each(math.erfc)),
        ("erfinv", A, bisected(math.erf, -5, 5)), ("erfcinv", A, bisected(lambda x: -math.erfc(x), -5, 5)),
        ("exp", S, np.exp), ("expm1", S, np.expm1), ("floor", BIG, np.floor), ("lgamma", A * 5, each(math.lgamma)),
        ("log", A, np.log), ("log1p", A, np.log1p), ("log_sigmoid", S, lambda x: np.log(sigmoid(x))),
        ("ndtri", A, bisected(lambda x: norm_cdf(x), -8, 8)), ("negative", S, np.negative),
        ("reciprocal", A, np.reciprocal), ("rint", BIG, np.rint), ("round", BIG, np.round),
        ("rsqrt", A, lambda x: x ** -0.5), ("sigmoid", BIG, sigmoid), ("sign", S, np.sign), ("sin", BIG, np.sin),
        ("sinh", S, np.sinh), ("softplus", BIG, lambda x: np.log1p(np.exp(x))),
        ("softsign", S, lambda x: x / (1 + np.abs(x))), ("sqrt", A, np.sqrt), ("square", S, np.square),
        ("tan", S, np.tan), ("tanh", S, np.tanh), ("digamma", A * 5, each(digamma)),
        ("zero_fraction", np.array([0, 1, 0, 2.0], "float32"), lambda x: np.mean(x == 0)),
        ("l2_normalize", S, lambda x: x / np.sqrt((x ** 2).sum())))},
    "math.erfcinv": [((A,), {}, bisected(lambda x: -math.erfc(x), -5, 5)(-A.astype("float64")))],
    "math.is_finite": [((SPECIAL,), {}, np.isfinite(SPECIAL))],
    "math.is_inf": [((SPECIAL,), {}, np.isinf(SPECIAL))],
    "math.is_nan": [((SPECIAL,), {}, np.isnan(SPECIAL))],
    "math.reciprocal_no_nan": [((np.array([0, 4.0], "float32"),), {}, np.array([0, 0.25]))],
    "math.logical_not": [((T,), {}, ~T)],
    "math.cast": [((BIG, "int32"), {}, BIG.astype("int32")), ((I, "float64"), {}, I.astype("float64")),
                  ((T, "float32"), {}, T.astype("float32"))],
    # complex
    "math.angle": [((C,), {}, np.angle(C))], "math.conj": [((C,), {}, C.conj())],
    "math.imag": [((C,), {}, C.imag)], "math.real": [((C,), {}, C.real)],
    "math.complex": [((A, B), {}, A + 1j * B)],
    # elementwise, two arguments, with broadcasting
    **{f"math.{n}": [((x, y), {}, f(x, y)), ((x, y[:1]), {}, f(x, y[:1])), ((x[:, :1], y), {}, f(x[:, :1], y))]
       for n, x, y, f in (
        ("add", S, A, np.add), ("subtract", S, A, np.subtract), ("multiply", S, A, np.multiply),
        ("divide", S, A, np.divide), ("maximum", S, A, np.maximum), ("minimum", S, A, np.minimum),
        ("pow", A, S, np.power), ("atan2", S, A, np.arctan2), ("squared_difference", S, A, lambda a, b: (a - b) ** 2),
        ("equal", I, J, np.equal), ("not_equal", I, J, np.not_equal), ("less", I, J, np.less),
        ("less_equal", I, J, np.less_equal), ("greater", I, J, np.greater), ("greater_equal", I, J, np.greater_equal),
        ("logical_and", T, F, np.logical_and), ("logical_or", T, F, np.logical_or),
        ("logical_xor", T, F, np.logical_xor), ("floordiv", I, J, np.floor_divide), ("floormod", I, J, np.mod),
        ("mod", I, J, np.mod), ("truncatediv", I, J, lambda a, b: np.trunc(a / b).astype("int32")),
        ("truncatemod", I, J, np.fmod), ("nextafter", S, A, np.nextafter),
        ("xdivy", S, A, np.divide), ("xlogy", S, A, lambda a, b: a * np.log(b)),
        ("xlog1py", S, A, lambda a, b: a * np.log1p(b)), ("zeta", A + 2, B + 1, hurwitz))},
    "math.divide_no_nan": [((A, np.zeros_like(A)), {}, np.zeros_like(A)), ((A, B), {}, A / B)],
    "math.multiply_no_nan": [((SPECIAL, np.zeros(5, "float32")), {}, np.zeros(5))],
    "math.scalar_mul": [((2.0, S), {}, 2 * S)],
    "math.add_n": [(([A, B, S],), {}, A + B + S)], "math.accumulate_n": [(([A, B],), {}, A + B)],
    "math.polygamma": [((np.ones_like(A), A + 1), {}, hurwitz(2.0, A.astype("float64") + 1))],
    # reductions
    **{f"math.{n}": [((x,), {}, f(x)), ((x,), {"axis": 0}, f(x, axis=0)),
                     ((x,), {"axis": [-1], "keepdims": True}, f(x, axis=-1, keepdims=True))] for n, x, f in (
        ("reduce_sum", S, np.sum), ("reduce_mean", S, np.mean), ("reduce_max", S, np.max), ("reduce_min", S, np.min),
        ("reduce_prod", S, np.prod), ("reduce_std", S, np.std), ("reduce_variance", S, np.var),
        ("reduce_all", F, np.all), ("reduce_any", F, np.any), ("count_nonzero", J - 2, np.count_nonzero),
        ("reduce_euclidean_norm", S, lambda x, **o: np.sqrt(np.sum(x * x, **o))),
        ("reduce_logsumexp", S, lambda x, **o: np.log(np.sum(np.exp(x), **o))))},
    "math.argmax": [((S, 1), {}, S.argmax(1))], "math.argmin": [((S, 0), {}, S.argmin(0))],
    "math.cumsum": [((S,), {"axis": 1}, S.cumsum(1)), ((S,), {"axis": 0, "exclusive": True}, S.cumsum(0) - S),
                    ((S,), {"axis": 0, "reverse": True}, S[::-1].cumsum(0)[::-1])],
    "math.cumprod": [((S,), {"axis": 1}, S.cumprod(1))],
    "math.cumulative_logsumexp": [((S,), {"axis": 1}, np.logaddexp.accumulate(S, 1))],
    # bits
    "bitwise.bitwise_and": [((I, J), {}, I & J)], "bitwise.bitwise_or": [((I, J), {}, I | J)],
    "bitwise.bitwise_xor": [((I, J), {}, I ^ J)], "bitwise.invert": [((I,), {}, ~I)],
    "bitwise.left_shift": [((P, 2), {}, P << 2)], "bitwise.right_shift": [((P, 1), {}, P >> 1)],
    # linear algebra
    "matmul": [((M, M), {}, M @ M), ((M, M), {"transpose_a": True}, M.transpose(0, 2, 1) @ M),
               ((A, B), {"transpose_b": True}, A @ B.T)],
    "einsum": [(("bij,bjk->bik", [M, M]), {}, M @ M), (("ij->ji", [A]), {}, A.T)],
    "tensordot": [((A, B.T, 1), {}, A @ B.T), ((A, B, [[1], [1]]), {}, A @ B.T)],
    "linalg.matvec": [((M, V), {}, (M @ V[..., None])[..., 0])],
    "linalg.matrix_transpose": [((M,), {}, M.transpose(0, 2, 1))],
    "linalg.det": [((M,), {}, np.linalg.det(M))], "linalg.inv": [((M,), {}, np.linalg.inv(M))],
    "linalg.solve": [((M, V[..., None]), {}, np.linalg.solve(M, V[..., None]))],
    "linalg.cholesky": [((SPD,), {}, np.linalg.cholesky(SPD))],
    "linalg.cholesky_solve": [((np.linalg.cholesky(SPD), V[..., None]), {}, np.linalg.solve(SPD, V[..., None]))],
    "linalg.triangular_solve": [((np.tril(M), V[..., None]), {}, np.linalg.solve(np.tril(M), V[..., None]))],
    "linalg.trace": [((M,), {}, np.trace(M, axis1=1, axis2=2))],
    "linalg.diag": [((V,), {}, np.stack([np.diag(v) for v in V]))],
    "linalg.diag_part": [((M,), {}, np.diagonal(M, axis1=1, axis2=2))],
    "linalg.band_part": [((M, 0, -1), {}, np.triu(M)), ((M, -1, 0), {}, np.tril(M))],
    "linalg.cross": [((V, V[::-1]), {}, np.cross(V, V[::-1]))],
    "linalg.norm": [((S,), {}, np.sqrt((S ** 2).sum())), ((S,), {"ord": 1, "axis": 1}, np.abs(S).sum(1))],
    "linalg.global_norm": [(([A, B],), {}, np.sqrt((A ** 2).sum() + (B ** 2).sum()))],
    "math.bessel_i0": [((S,), {}, np.i0(S))], "math.bessel_i0e": [((S,), {}, np.i0(S) * np.exp(-np.abs(S)))],
    # making and shaping
    "zeros": [(([2, 3],), {}, np.zeros((2, 3), "float32"))], "ones": [(([2], "int32"), {}, np.ones(2, "int32"))],
    "zeros_like": [((I,), {}, np.zeros_like(I))], "ones_like": [((S,), {}, np.ones_like(S))],
    "fill": [(([2, 2], 3.5), {}, np.full((2, 2), 3.5, "float32"))],
    "eye": [((2,), {"num_columns": 3}, np.eye(2, 3, dtype="float32"))],
    "linspace": [((0.0, 2.0, 5), {}, np.linspace(0, 2, 5, dtype="float32"))],
    "range": [((2, 9, 3), {}, np.arange(2, 9, 3, "int32"))],
    "reshape": [((A, [2, -1]), {}, A.reshape(2, -1))], "rank": [((A,), {}, np.int32(2))],
    "size": [((A,), {}, np.int32(12))], "shape": [((A,), {}, np.array([3, 4], "int32"))],
    "transpose": [((M, [2, 0, 1]), {}, M.transpose(2, 0, 1)), ((A,), {}, A.T)],
    "expand_dims": [((A, -1), {}, A[..., None])], "squeeze": [((A[None],), {}, A)],
    "concat": [(([A, B], 0), {}, np.concatenate([A, B], 0))], "stack": [(([A, B], 1), {}, np.stack([A, B], 1))],
    "tile": [((A, [2, 1]), {}, np.tile(A, (2, 1)))], "repeat": [((A, 2, 0), {}, np.repeat(A, 2, 0))],
    "broadcast_to": [((A[:1], [3, 4]), {}, np.broadcast_to(A[:1], (3, 4)))],
    "pad": [((A, [[1, 0], [0, 2]]), {"constant_values": 7}, np.pad(A, ((1, 0), (0, 2)), constant_values=7)),
            ((A, [[1, 1], [2, 2]]), {"mode": "REFLECT"}, np.pad(A, ((1, 1), (2, 2)), mode="reflect"))],
    "reverse": [((A, [1]), {}, A[:, ::-1])], "roll": [((A, 1, 0), {}, np.roll(A, 1, 0))],
    "split": [((A, 2, 1), {}, (A[:, :2], A[:, 2:])), ((A, [1, 2]), {}, (A[:1], A[1:]))],
    "unstack": [((A,), {"axis": 1}, tuple(A.T))],
    "meshgrid": [(([[1, 2], [3, 4, 5]],), {}, tuple(np.meshgrid([1, 2], [3, 4, 5])))],
    "math.top_k": [((S, 2), {}, (-np.sort(-S)[:, :2], np.argsort(-S)[:, :2]))],
    "unique": [(([5, 3, 5],), {}, (np.array([5, 3]), np.array([0, 1, 0])))],
    "slice": [((A, [1, 0], [2, 3]), {}, A[1:3, :3])], "identity": [((A,), {}, A)],
    "stop_gradient": [((A,), {}, A)], "ensure_shape": [((A, [3, None]), {}, A)],
    "sort": [((S,), {"axis": 0}, np.sort(S, 0)), ((S,), {"direction": "DESCENDING"}, -np.sort(-S))],
    "argsort": [((S,), {}, np.argsort(S))],
    "where": [((S > 0, A, B), {}, np.where(S > 0, A, B)), ((S > 0,), {}, np.argwhere(S > 0))],
    "one_hot": [((LABELS, 4), {}, np.eye(4, dtype="float32")[LABELS])],
    "boolean_mask": [((A, S > 0), {}, A[S > 0])],
    "sequence_mask": [(([1, 3], 4), {}, np.arange(4) < np.array([[1], [3]]))],
    "invert_permutation": [(([2, 0, 1],), {}, np.argsort([2, 0, 1]))],
    "bincount": [(([1, 1, 3],), {}, np.bincount([1, 1, 3]))],
    "searchsorted": [((np.sort(A), B), {}, np.stack([np.searchsorted(a, b) for a, b in zip(np.sort(A), B)]))],
    "histogram_fixed_width": [((A, [0.0, 1.0]), {"nbins": 5}, np.histogram(A, 5, (0, 1))[0])],
    "clip_by_value": [((S, -0.5, 0.5), {}, np.clip(S, -0.5, 0.5))],
    "clip_by_norm": [((S, 1.0), {}, S / np.sqrt((S ** 2).sum()))],
    # gathering and scattering
    "gather": [((A, [2, 0]), {}, A[[2, 0]]), ((A, [1]), {"axis": 1}, A[:, [1]])],
    "gather_nd": [((A, [[0, 1], [2, 3]]), {}, A[[0, 2], [1, 3]])],
    "scatter_nd": [(([[1], [3]], [5.0, 6.0], [5]), {}, np.array([0, 5, 0, 6, 0], "float32"))],
    "tensor_scatter_nd_add": [((A, *SHIFTED), {}, scattered(np.add.at))],
    "tensor_scatter_nd_sub": [((A, *SHIFTED), {}, scattered(np.subtract.at))],
    "tensor_scatter_nd_max": [((A, *SHIFTED), {}, scattered(np.maximum.at))],
    "tensor_scatter_nd_min": [((A, *SHIFTED), {}, scattered(np.minimum.at))],
    "tensor_scatter_nd_update": [((A, *SHIFTED), {}, scattered(lambda x, i, v: x.__setitem__(i, v)))],
    "in_top_k": [((LABELS, S, 2), {}, np.array([(S[i] > S[i, k]).sum() < 2 for i, k in enumerate(LABELS)]))],
    **{f"{kind}segment_{n}": [((ROWS4, SEG, *([] if kind == "" else [4])), {}, segments(f, empty))]
       for kind, empties in (("", dict(sum=0, mean=0, prod=1, max=0, min=0)),
                             ("unsorted_", dict(sum=0, mean=0, prod=1, max=np.finfo("float32").min,
                                                min=np.finfo("float32").max)))
       for n, f, empty in ((n, f, empties[n]) for n, f in dict(
           sum=np.sum, mean=np.mean, prod=np.prod, max=np.max, min=np.min).items())},
    # networks
    "nn.relu": [((S,), {}, np.maximum(S, 0))], "nn.relu6": [((S * 6,), {}, np.clip(S * 6, 0, 6))],
    "nn.elu": [((S,), {}, np.where(S > 0, S, np.expm1(S)))],
    "nn.selu": [((S,), {}, 1.0507009873554805 * np.where(S > 0, S, 1.6732632423543772 * np.expm1(S)))],
    "nn.leaky_relu": [((S,), {}, np.where(S > 0, S, 0.2 * S))],
    "nn.gelu": [((S,), {}, S * norm_cdf(S))], "nn.silu": [((S,), {}, S * sigmoid(S))],
    "nn.swish": [((S,), {}, S * sigmoid(S))],
    "nn.mish": [((S,), {}, S * np.tanh(np.log1p(np.exp(S))))],
    "nn.hard_sigmoid": [((BIG,), {}, np.clip(BIG / 6 + 0.5, 0, 1))],
    "nn.hard_swish": [((BIG,), {}, BIG * np.clip(BIG / 6 + 0.5, 0, 1))],
    "nn.softmax": [((S,), {}, softmax(S)), ((S,), {"axis": 0}, softmax(S, 0))],
    "nn.log_softmax": [((S,), {}, LOGP)],
    "nn.l2_loss": [((S,), {}, (S ** 2).sum() / 2)], "nn.bias_add": [((S, A[0]), {}, S + A[0])],
    "nn.softmax_cross_entropy_with_logits": [((softmax(A), S), {}, -(softmax(A) * LOGP).sum(1))],
    "nn.sparse_softmax_cross_entropy_with_logits": [((LABELS, S), {}, -LOGP[np.arange(3), LABELS])],
    "nn.sigmoid_cross_entropy_with_logits": [((A, S), {}, np.log1p(np.exp(S)) - A * S)],
    "nn.weighted_cross_entropy_with_logits": [
        ((A, S, 2.0), {}, -2 * A * np.log(sigmoid(S)) - (1 - A) * np.log(1 - sigmoid(S)))],
    "nn.log_poisson_loss": [((A, S), {}, np.exp(S) - A * S)],
    "nn.moments": [((S, [0]), {}, (S.mean(0), S.var(0)))],
    "nn.embedding_lookup": [((A, LABELS), {}, A[LABELS])],
    "nn.layer_norm": [((S, np.ones(4, "float32"), np.zeros(4, "float32")), {},
                       (S - MEAN) / np.sqrt(VARIANCE + 1e-3))],
    "nn.conv2d": [((X4, W3, 1, "VALID"), {}, conv(X4, W3)), ((X4, W3, 2, "SAME"), {}, conv(X4, W3, 2, True))],
    "nn.conv1d": [((X4[:, :, 0], W3[0], 1, "VALID"), {}, conv(
        np.pad(X4[:, :, :1].transpose(0, 2, 1, 3), [(0, 0), (1, 1), (0, 0), (0, 0)]),
        np.stack([0 * W3[0], W3[0], 0 * W3[0]]))[:, 0])],
    "nn.depthwise_conv2d": [((X4, D3, [1, 1, 1, 1], "VALID"), {}, np.stack(
        [conv(X4[..., c:c + 1], D3[:, :, c:c + 1, m:m + 1])[..., 0] for c in range(3) for m in range(2)], -1))],
    "nn.max_pool2d": [((X4, 2, 2, "VALID"), {}, pool(X4, 2, 2, np.max))],
    "nn.avg_pool2d": [((X4, 3, 1, "VALID"), {}, pool(X4, 3, 1, np.mean))],
    "nn.max_pool1d": [((X4[:, :, 0], 2, 2, "VALID"), {}, np.stack([X4[:, i:i + 2, 0].max(1) for i in (0, 2)], 1))],
    # images
    "image.flip_left_right": [((RGB,), {}, RGB[:, ::-1])], "image.flip_up_down": [((RGB,), {}, RGB[::-1])],
    "image.rot90": [((RGB,), {}, np.rot90(RGB))], "image.transpose": [((RGB,), {}, RGB.transpose(1, 0, 2))],
    "image.adjust_brightness": [((RGB, 0.1), {}, RGB + 0.1)],
    "image.adjust_contrast": [((RGB, 2.0), {}, (RGB - RGB.mean((0, 1))) * 2 + RGB.mean((0, 1)))],
    "image.adjust_gamma": [((RGB, 0.5), {}, RGB ** 0.5)],
    "image.crop_to_bounding_box": [((RGB, 1, 2, 2, 3), {}, RGB[1:3, 2:5])],
    "image.pad_to_bounding_box": [((RGB, 1, 2, 6, 9), {}, np.pad(RGB, ((1, 1), (2, 1), (0, 0))))],
    "image.central_crop": [((RGB, 0.5), {}, RGB[1:3, 1:5])],
    "image.resize_with_crop_or_pad": [((RGB, 2, 8), {}, np.pad(RGB[1:3], ((0, 0), (1, 1), (0, 0))))],
    "image.grayscale_to_rgb": [((RGB[..., :1],), {}, np.repeat(RGB[..., :1], 3, -1))],
    "image.rgb_to_grayscale": [((RGB,), {}, (RGB @ np.array([0.2989, 0.587, 0.114], "float32"))[..., None])],
    "image.rgb_to_yiq": [((RGB,), {}, RGB @ YIQ)],
    "image.per_image_standardization": [((RGB,), {}, (RGB - RGB.mean()) / max(RGB.std(), 1 / math.sqrt(72)))],
    "image.convert_image_dtype": [((np.array([0, 51, 255], "uint8"), "float32"), {}, np.array([0, 0.2, 1]))],
    # text
    "strings.lower": [((["Ab"],), {}, np.array([b"ab"], object))],
    "strings.upper": [((["Ab"],), {}, np.array([b"AB"], object))],
    "strings.strip": [((["  a "],), {}, np.array([b"a"], object))],
    "strings.length": [((["abc", ""],), {}, np.array([3, 0]))],
    "strings.join": [(([["a", "b"], ["c", "d"]],), {}, np.array([b"ac", b"bd"], object))],
    "strings.to_number": [((["1.5", "-2"],), {}, np.array([1.5, -2], "float32"))],
    "strings.as_string": [(([1, 20],), {}, np.array([b"1", b"20"], object))],
    "strings.substr": [((["hello"], 1, 3), {}, np.array([b"ell"], object))],
    "strings.regex_replace": [((["a1b2"], "[0-9]", "_"), {}, np.array([b"a_b_"], object))],
    "strings.regex_full_match": [((["aa", "ab"], "a+"), {}, np.array([True, False]))],
}
