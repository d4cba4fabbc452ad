"""Partners of bench/ops: elementwise ops, reductions, arrays, indexing and products.

A partner is a function of dtype and side that returns the call to time.
"""
import math

FLOATS = ("float32",)
WITHIN = ("asin", "acos", "atanh", "erfinv", "ndtri")


def values(np, dtype, shape, low=0, high=0):
    """As in bench/ops/rows.cc."""
    rng = np.random.default_rng(1)
    if low == high:
        low, high = (0.5, 2.5) if dtype == "float32" else (1, 1000)
    u = rng.uniform(low, high, shape)
    if dtype == "bool":
        return u > (low + high) / 2
    return u.astype(dtype)


def places(np, dtype, shape, below):
    return np.random.default_rng(2).integers(0, below, shape).astype(dtype)


def limits(name):
    """Of the inputs of a row."""
    if name in WITHIN:
        return 0.1, 0.9
    return (1.1, 2.5) if name in ("acosh", "zeta") else (0, 0)


def image(side):
    """[n, h, w, c], as in bench/ops/rows.cc."""
    return (1, 8, 8, 16) if side < 100 else (16, 32, 32, 64) if side < 2000 else (64, 48, 48, 64)


class Partners(dict):
    """By name. `wrap` makes the framework's tensor of a NumPy array."""

    def __init__(self, np, wrap):
        super().__init__()
        self.np, self.wrap = np, wrap

    def put(self, name, fn, *inputs, types=None):
        """`inputs`: functions of dtype and side."""
        def make(dtype, side):
            if types and dtype not in types:
                return None
            made = [i(dtype, side) for i in inputs]
            made = [self.wrap(m) if isinstance(m, self.np.ndarray) else m for m in made]
            return lambda: fn(*made)
        self[name] = make

    def square(self, low=0, high=0):
        return lambda d, n: values(self.np, d, (n, n), low, high)

    def flat(self):
        return lambda d, n: values(self.np, d, (n * n,))

    def same(self, name, fn, arity=1, types=None):
        """Ops of tensors [side, side]."""
        self.put(name, fn, *[self.square(*limits(name))] * arity, types=types)

    def places(self, shape, below, dtype="int64"):
        return lambda d, n: places(self.np, dtype or d, shape(n), below(n))

    def const(self, fn):
        return lambda d, n: fn(n)

    def definite(self):
        def make(d, n):
            a = values(self.np, "float32", (n, n), -0.5, 0.5)
            return a @ a.T + n * self.np.eye(n, dtype="float32")
        return make

    def definites(self):
        def make(d, n):
            a = self.definite()("float32", 16)
            return self.np.tile(a, (max(n * n // 256, 1), 1, 1))
        return make


def by_axis(p, name, fn, whole=None, **more):
    if whole:
        p.same(name, whole, **more)
    for axis in (0, 1):
        p.same(f"{name}_{axis}", lambda x, axis=axis: fn(x, axis), **more)


def moves(p, concat, stack, split, roll, tile, flip, copy):
    for axis in (0, 1):
        p.same(f"concat_{axis}", lambda x, y, a=axis: concat((x, y), a), 2)
        p.same(f"stack_{axis}", lambda x, y, a=axis: stack((x, y), a), 2)
        p.same(f"reverse_{axis}", lambda x, a=axis: copy(flip(x, a)))
        p.same(f"roll_{axis}", lambda x, a=axis: roll(x, 7, a))
        p.same(f"tile_{axis}", lambda x, a=axis: tile(x, (1, 2) if a else (2, 1)))
        p.same(f"split_{axis}", lambda x, a=axis: [copy(t) for t in split(x, 2, a)])
    p.same("copy", copy)


def numpy_ops(np):
    p = Partners(np, lambda x: x)
    floats = {"sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos",
              "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "asinh": "arcsinh",
              "acosh": "arccosh", "atanh": "arctanh", "exp": "exp", "expm1": "expm1", "log": "log",
              "log1p": "log1p", "sqrt": "sqrt", "tanh": "tanh", "floor": "floor", "ceil": "ceil",
              "round": "rint", "rint": "rint", "reciprocal": "reciprocal", "is_nan": "isnan",
              "is_inf": "isinf", "is_finite": "isfinite"}
    for name, at in floats.items():
        p.same(name, getattr(np, at), types=FLOATS)
    for name in ("negative", "abs", "sign", "square", "invert", "logical_not"):
        p.same(name, getattr(np, name))
    pairs = {"pow": "power", "atan2": "arctan2", "divide": "divide", "nextafter": "nextafter",
             "floordiv": "floor_divide", "floormod": "remainder", "truncatemod": "fmod",
             **{n: n for n in ("add subtract multiply maximum minimum greater greater_equal less "
                               "less_equal equal not_equal bitwise_and bitwise_or bitwise_xor "
                               "left_shift right_shift logical_and logical_or").split()}}
    for name, at in pairs.items():
        p.same(name, getattr(np, at), 2)
    for name in ("float32", "float64", "int32", "int64", "bool"):
        p.same("cast_" + name, lambda x, to=name: x.astype(to))
    for name, fn in {"mean": np.mean, "max": np.max, "min": np.min, "all": np.all,
                     "any": np.any}.items():
        by_axis(p, "reduce_" + name, fn, fn)
    for name, fn in {"sum": np.sum, "prod": np.prod}.items():
        by_axis(p, "reduce_" + name, lambda x, a, fn=fn: fn(x, axis=a, dtype=x.dtype),
                lambda x, fn=fn: fn(x, dtype=x.dtype))
    by_axis(p, "argmax", np.argmax)
    by_axis(p, "argmin", np.argmin)
    by_axis(p, "cumsum", lambda x, a: np.cumsum(x, a, dtype=x.dtype))
    by_axis(p, "cumprod", lambda x, a: np.cumprod(x, a, dtype=x.dtype))
    by_axis(p, "cumulative_logsumexp", np.logaddexp.accumulate, types=FLOATS)
    p.put("where", np.where, lambda d, n: values(np, "bool", (n, n)), p.square(), p.square())
    p.same("add_n", lambda x, y, z: x + y + z, 3)
    p.same("squared_difference", lambda x, y: (x - y) ** 2, 2)
    complexes = (lambda d, n: values(np, d, (n, n)) + 1j * values(np, d, (n, n)).astype("f4"),)
    for name, fn in {"complex_abs": np.abs, "angle": np.angle, "conj": np.conj,
                     "real": lambda x: x.real.copy(), "imag": lambda x: x.imag.copy()}.items():
        p.put(name, fn, lambda d, n: complexes[0](d, n).astype("complex64"), types=FLOATS)
    copy = np.ascontiguousarray
    moves(p, np.concatenate, np.stack, lambda x, n, a: np.split(x, n, a), np.roll, np.tile,
          np.flip, lambda x: np.array(x, order="C"))
    p.same("transpose", lambda x: copy(x.T))
    p.put("transpose_0213", lambda x: copy(x.transpose(0, 2, 1, 3)),
          lambda d, n: values(np, d, image(n)), types=FLOATS)
    p.same("pad", lambda x: np.pad(x, ((1, 1), (2, 2))))
    p.same("pad_value", lambda x: np.pad(x, ((1, 1), (2, 2)), constant_values=1))
    p.same("mirror_pad", lambda x: np.pad(x, 3, mode="reflect"))
    p.same("slice", lambda x: copy(x[1:-1, 2:-2]))
    p.same("strided_slice", lambda x: copy(x[::2, 1::2]))
    for axis, shape in ((0, lambda n: (1, n)), (1, lambda n: (n, 1))):
        p.put(f"broadcast_{axis}", lambda x: copy(np.broadcast_to(x, (x.size, x.size))),
              lambda d, n, shape=shape: values(np, d, shape(n)))
    p.put("fill", lambda n, d: np.full((n, n), 1, d), p.const(lambda n: n), lambda d, n: d)
    p.put("range", lambda n, d: np.arange(n * n, dtype=d), p.const(lambda n: n), lambda d, n: d)
    p.put("linspace", lambda n: np.linspace(0, 1, n * n, dtype="f4"), p.const(lambda n: n),
          types=FLOATS)
    rng = np.random.default_rng(3)
    p.put("random_uniform", lambda n: rng.random((n, n), dtype="f4"), p.const(lambda n: n),
          types=FLOATS)
    p.put("random_normal", lambda n: rng.standard_normal((n, n), dtype="f4"),
          p.const(lambda n: n), types=FLOATS)
    p.put("random_int", lambda n, d: rng.integers(0, 1000, (n, n), d), p.const(lambda n: n),
          lambda d, n: d, types=("int32", "int64"))
    p.same("zeros_like", np.zeros_like)
    p.same("ones_like", np.ones_like)
    p.same("matmul", lambda x, y: x @ y, 2, types=FLOATS)
    p.same("matmul_tn", lambda x, y: x.T @ y, 2, types=FLOATS)
    p.same("matmul_nt", lambda x, y: x @ y.T, 2, types=FLOATS)
    batch = lambda d, n: values(np, d, (max(n * n // 4096, 1), 64, 64))
    p.put("matmul_batched", lambda x, y: x @ y, batch, batch, types=FLOATS)
    lin = np.linalg
    for name, fn in {"cholesky": lin.cholesky, "inverse": lin.inv, "determinant": lin.det}.items():
        p.put(name, fn, p.definite(), types=FLOATS)
        p.put(name + "_batched", fn, p.definites(), types=FLOATS)
    for name, fn in {"log_determinant": lin.slogdet, "qr": lin.qr, "eigh": lin.eigh, "eig": lin.eig,
                     "svd": lambda x: lin.svd(x, full_matrices=False)}.items():
        p.put(name, fn, p.definite(), types=FLOATS)
    p.put("solve", lin.solve, p.definite(), lambda d, n: values(np, d, (n, 8)), types=FLOATS)
    p.put("sort", np.sort, p.flat())
    p.same("sort_1", lambda x: np.sort(x, axis=1))
    p.put("argsort", lambda x: np.argsort(x, kind="stable"), p.flat())
    p.same("argsort_1", lambda x: np.argsort(x, axis=1, kind="stable"))
    line = lambda d, n: np.sort(values(np, d, (n,)))
    p.put("lower_bound", lambda s, v: np.searchsorted(s, v, "left"), line, p.flat())
    p.put("upper_bound", lambda s, v: np.searchsorted(s, v, "right"), line, p.flat())

    def inverse_permutation(x):
        out = np.empty_like(x)
        out[x] = np.arange(x.size, dtype=x.dtype)
        return out
    p.put("invert_permutation", inverse_permutation,
          lambda d, n: np.random.default_rng(1).permutation(n * n).astype(d),
          types=("int32", "int64"))
    p.put("unique", lambda x: np.unique(x, return_inverse=True), p.flat())
    p.put("unique_with_counts",
          lambda x: np.unique(x, return_inverse=True, return_counts=True), p.flat())
    p.put("where_indices", np.argwhere, lambda d, n: values(np, "bool", (n, n)).astype(d))
    rows = p.places(lambda n: (n,), lambda n: n)
    for axis in (0, 1):
        p.put(f"gather_{axis}", lambda x, i, a=axis: np.take(x, i, a), p.square(), rows)
    pairs_of = p.places(lambda n: (n * n // 2, 2), lambda n: n)
    p.put("gather_nd", lambda x, i: x[i[:, 0], i[:, 1]], p.square(), pairs_of)
    return p


def torch_ops(np, torch):
    p = Partners(np, torch.from_numpy)
    f, special, aten = torch.nn.functional, torch.special, torch.ops.aten
    for name in ("sin cos tan asin acos atan sinh cosh asinh acosh atanh exp expm1 log log1p sqrt "
                 "rsqrt erf erfc lgamma digamma tanh sigmoid floor ceil round reciprocal").split():
        p.same(name, getattr(torch, name), types=FLOATS)
    for name, fn in {"rint": torch.round, "relu6": f.relu6, "gelu": f.gelu, "elu": f.elu,
                     "selu": f.selu, "softplus": f.softplus, "softsign": f.softsign,
                     "i0e": torch.special.i0e, "i1e": torch.special.i1e,
                     "is_nan": torch.isnan, "is_inf": torch.isinf, "is_finite": torch.isfinite,
                     "erfinv": torch.erfinv, "ndtri": special.ndtri,
                     "gelu_tanh": lambda x: f.gelu(x, approximate="tanh")}.items():
        p.same(name, fn, types=FLOATS)
    p.put("leaky_relu", f.leaky_relu, p.square(-2, 2), types=FLOATS)
    for name in ("relu", "negative", "abs", "sign", "square", "logical_not"):
        p.same(name, getattr(torch, name))
    p.same("invert", torch.bitwise_not)
    pairs = {"floordiv": "floor_divide", "floormod": "remainder", "truncatemod": "fmod",
             "equal": "eq", "not_equal": "ne", "left_shift": "bitwise_left_shift",
             "right_shift": "bitwise_right_shift",
             **{n: n for n in ("pow divide atan2 nextafter xlogy add subtract multiply maximum "
                               "minimum greater greater_equal less less_equal bitwise_and "
                               "bitwise_or bitwise_xor logical_and logical_or").split()}}
    for name, at in pairs.items():
        p.same(name, getattr(torch, at), 2)
    p.same("xlog1py", special.xlog1py, 2, types=FLOATS)
    p.same("zeta", special.zeta, 2, types=FLOATS)
    p.same("polygamma", lambda x: torch.polygamma(1, x), types=FLOATS)
    p.same("truncatediv", lambda x, y: torch.div(x, y, rounding_mode="trunc"), 2)
    p.same("relu_grad", lambda dy, x: aten.threshold_backward(dy, x, 0), 2, types=FLOATS)
    p.same("gelu_grad", aten.gelu_backward, 2, types=FLOATS)
    p.same("squared_difference", lambda x, y: (x - y).square(), 2)
    p.same("add_n", lambda x, y, z: x + y + z, 3)
    for name in ("float32", "float64", "int32", "int64", "bool"):
        p.same("cast_" + name, lambda x, to=getattr(torch, name): x.to(to))
    for name, fn in {"max": torch.amax, "min": torch.amin, "mean": torch.mean, "all": torch.all,
                     "any": torch.any}.items():
        by_axis(p, "reduce_" + name, fn, lambda x, fn=fn: fn(x, (0, 1)))
    by_axis(p, "reduce_sum", lambda x, a: torch.sum(x, a, dtype=x.dtype),
            lambda x: torch.sum(x, dtype=x.dtype))
    by_axis(p, "reduce_prod", lambda x, a: torch.prod(x, a, dtype=x.dtype),
            lambda x: torch.prod(x, dtype=x.dtype))
    by_axis(p, "argmax", torch.argmax)
    by_axis(p, "argmin", torch.argmin)
    by_axis(p, "cumsum", lambda x, a: torch.cumsum(x, a, dtype=x.dtype))
    by_axis(p, "cumprod", lambda x, a: torch.cumprod(x, a, dtype=x.dtype))
    by_axis(p, "cumulative_logsumexp", torch.logcumsumexp, types=FLOATS)
    p.put("where", torch.where, lambda d, n: values(np, "bool", (n, n)), p.square(), p.square())
    p.same("complex", torch.complex, 2, types=FLOATS)
    complexes = lambda d, n: (values(np, d, (n, n)) * np.complex64(1 + 1j)).astype("complex64")
    for name, fn in {"complex_abs": torch.abs, "angle": torch.angle,
                     "conj": torch.conj_physical, "real": lambda x: x.real.clone(),
                     "imag": lambda x: x.imag.clone()}.items():
        p.put(name, fn, complexes, types=FLOATS)
    moves(p, torch.cat, torch.stack, lambda x, n, a: x.chunk(n, a), torch.roll,
          lambda x, n: x.tile(n), lambda x, a: x.flip(a), torch.clone)
    p.same("transpose", lambda x: x.t().contiguous())
    p.put("transpose_0213", lambda x: x.permute(0, 2, 1, 3).contiguous(),
          lambda d, n: values(np, d, image(n)), types=FLOATS)
    for axis in (0, 1):
        p.put(f"unstack_{axis}", lambda x, a=axis: [t.clone() for t in x.unbind(a)],
              lambda d, n, a=axis: values(np, d, (n * n // 4, 4) if a else (4, n * n // 4)))
        p.same(f"split_sizes_{axis}", lambda x, a=axis: [
            t.contiguous().clone() for t in x.split([8, x.shape[a] - 8], a)])
        p.put(f"broadcast_{axis}",
              lambda x: x.expand(x.numel(), x.numel()).contiguous(),
              lambda d, n, a=axis: values(np, d, (n, 1) if a else (1, n)))
        p.same(f"sum_like_{axis}",
               lambda x, a=axis: torch.sum(x, a, keepdim=True, dtype=x.dtype))
    p.same("pad", lambda x: f.pad(x, (2, 2, 1, 1)))
    p.same("pad_value", lambda x: f.pad(x, (2, 2, 1, 1), value=1))
    p.same("mirror_pad", lambda x: f.pad(x[None], (3, 3, 3, 3), mode="reflect"))
    p.same("slice", lambda x: x[1:-1, 2:-2].contiguous())
    p.same("strided_slice", lambda x: x[::2, 1::2].contiguous())

    def strided_update(x, v):
        x = x.clone()
        x[::2, 1::2] = v
        return x
    p.put("strided_slice_update", strided_update, p.square(),
          lambda d, n: values(np, d, (n // 2, n // 2)))

    def strided_grad(v):
        x = torch.zeros(v.shape[0] * 2, v.shape[1] * 2, dtype=v.dtype)
        x[::2, 1::2] = v
        return x
    p.put("strided_slice_grad", strided_grad, lambda d, n: values(np, d, (n // 2, n // 2)))
    p.put("bias_add", torch.add, p.square(), lambda d, n: values(np, d, (n,)))
    p.same("bias_add_grad", lambda x: torch.sum(x, 0, dtype=x.dtype))
    kind = lambda d, n: getattr(torch, d)
    size = p.const(lambda n: n)
    p.put("fill", lambda n, d: torch.full((n, n), 1, dtype=d), size, kind)
    p.put("range", lambda n, d: torch.arange(n * n, dtype=d), size, kind)
    p.put("linspace", lambda n: torch.linspace(0, 1, n * n), size, types=FLOATS)
    p.put("float_range", lambda n: torch.arange(0, n * n / 2, 0.5), size, types=FLOATS)
    p.put("random_uniform", lambda n: torch.rand(n, n), size, types=FLOATS)
    p.put("random_normal", lambda n: torch.randn(n, n), size, types=FLOATS)
    p.put("random_truncated",
          lambda n: torch.nn.init.trunc_normal_(torch.empty(n, n)), size, types=FLOATS)
    p.put("random_int", lambda n, d: torch.randint(0, 1000, (n, n), dtype=d), size, kind,
          types=("int32", "int64"))
    p.same("zeros_like", torch.zeros_like)
    p.same("ones_like", torch.ones_like)
    p.same("dropout", lambda x: torch.native_dropout(x, 0.5, True), types=FLOATS)
    p.put("dropout_grad", lambda dy, m: aten.native_dropout_backward(dy, m, 2.0), p.square(),
          lambda d, n: values(np, "bool", (n, n)), types=FLOATS)
    p.same("categorical", lambda x: torch.multinomial(torch.softmax(x, 1), 1), types=FLOATS)
    p.put("one_hot", lambda i: f.one_hot(i, i.numel()).to(torch.float32),
          p.places(lambda n: (n,), lambda n: n), types=("int64",))
    p.same("matmul", lambda x, y: x @ y, 2, types=FLOATS + ("int32", "int64"))
    p.same("matmul_tn", lambda x, y: x.t() @ y, 2, types=FLOATS)
    p.same("matmul_nt", lambda x, y: x @ y.t(), 2, types=FLOATS)
    batch = lambda d, n: values(np, d, (max(n * n // 4096, 1), 64, 64))
    p.put("matmul_batched", torch.bmm, batch, batch, types=FLOATS)
    p.put("einsum", lambda a, b: torch.einsum("nij,njk->nik", a, b),
          lambda d, n: values(np, d, (max(n // 32, 1), n, 32)),
          lambda d, n: values(np, d, (max(n // 32, 1), 32, 32)), types=FLOATS)
    lin = torch.linalg
    for name, fn in {"cholesky": lin.cholesky, "inverse": lin.inv, "determinant": lin.det}.items():
        p.put(name, fn, p.definite(), types=FLOATS)
        p.put(name + "_batched", fn, p.definites(), types=FLOATS)
    for name, fn in {"log_determinant": lin.slogdet, "qr": lin.qr, "eigh": lin.eigh, "eig": lin.eig,
                     "lu": lin.lu_factor, "svd": lambda x: lin.svd(x, full_matrices=False)}.items():
        p.put(name, fn, p.definite(), types=FLOATS)
    right = lambda d, n: values(np, d, (n, 8))
    p.put("solve", lin.solve, p.definite(), right, types=FLOATS)
    p.put("triangular_solve", lambda a, b: lin.solve_triangular(a, b, upper=False), p.definite(),
          right, types=FLOATS)
    torch_indexing(p, np, torch)
    return p


def torch_indexing(p, np, torch):
    p.put("sort", lambda x: torch.sort(x)[0], p.flat())
    p.same("sort_1", lambda x: torch.sort(x, 1)[0])
    p.put("argsort", lambda x: torch.argsort(x, stable=True), p.flat())
    p.same("argsort_1", lambda x: torch.argsort(x, dim=1, stable=True))
    p.put("top_10", lambda x: torch.topk(x, 10)[0], p.flat())
    p.same("top_10_1", lambda x: torch.topk(x, 10)[0])
    line = lambda d, n: np.sort(values(np, d, (n,)))
    p.put("lower_bound", torch.searchsorted, line, p.flat())
    p.put("upper_bound", lambda s, v: torch.searchsorted(s, v, right=True), line, p.flat())
    p.put("unique", lambda x: torch.unique(x, return_inverse=True), p.flat())
    p.put("unique_with_counts",
          lambda x: torch.unique(x, return_inverse=True, return_counts=True), p.flat())
    p.put("where_indices", torch.nonzero, lambda d, n: values(np, "bool", (n, n)).astype(d))
    rows = p.places(lambda n: (n,), lambda n: n)
    for axis in (0, 1):
        p.put(f"gather_{axis}", lambda x, i, a=axis: torch.index_select(x, a, i), p.square(), rows)
        p.put(f"gather_grad_{axis}",
              lambda dy, i, a=axis: torch.zeros_like(dy).index_add_(a, i, dy), p.square(), rows)
    p.put("gather_nd", lambda x, i: x[i[:, 0], i[:, 1]], p.square(),
          p.places(lambda n: (n * n // 2, 2), lambda n: n))
    p.put("scatter_nd", lambda i, v: torch.zeros_like(v).index_add_(0, i, v), rows, p.square())

    def copied(fn):
        return lambda x, i, v: fn(x.clone(), i, v)
    for name, fn in {"update": lambda x, i, v: x.index_copy_(0, i, v),
                     "add": lambda x, i, v: x.index_add_(0, i, v),
                     "sub": lambda x, i, v: x.index_add_(0, i, v, alpha=-1),
                     "mul": lambda x, i, v: x.index_reduce_(0, i, v, "prod"),
                     "min": lambda x, i, v: x.index_reduce_(0, i, v, "amin"),
                     "max": lambda x, i, v: x.index_reduce_(0, i, v, "amax")}.items():
        if name != "mul":
            p.put("scatter_" + name, copied(fn), p.square(), rows, p.square())
        p.put("variable_scatter_" + name, fn, p.square(), rows, p.square(), types=FLOATS)
    for name, reduce in {"sum": None, "prod": "prod", "min": "amin", "max": "amax"}.items():
        def segment(x, ids, reduce=reduce):
            out = torch.zeros(x.shape[0] // 4, x.shape[1], dtype=x.dtype)
            if reduce is None:
                return out.index_add_(0, ids, x)
            return out.index_reduce_(0, ids, x, reduce, include_self=False)
        p.put("segment_" + name, segment, p.square(),
              p.places(lambda n: (n,), lambda n: max(n // 4, 1)))
