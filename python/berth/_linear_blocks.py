"""The operators of tf.linalg that are blocks of others."""
from berth import _core
from berth._lazy import Lazy
from berth._linear_operator import LinearOperator, _turned
from berth._linear_operators_of import _all, _batch, _several
from berth._tensor import convert_to_tensor

_ops = _core.ops
_np = Lazy("numpy")


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """Blocks of operators, row by row, up to the diagonal: [[a], [b, c], ...]."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorBlockLowerTriangular"):
        self._operators = [list(row) for row in operators]
        if any(len(row) != i + 1 for i, row in enumerate(self._operators)):
            raise ValueError(f"{name}: the rows have {[len(r) for r in self._operators]} operators; expected 1, 2, ...")
        flat = _several(name, [o for row in self._operators for o in row])
        self._begin(flat[0].dtype, locals(), is_non_singular=_all([r[-1] for r in self._operators], "is_non_singular"))

    operators = property(lambda self: self._operators, doc="The operators, row by row.")

    def _diagonal(self):
        return [row[-1] for row in self._operators]

    def _block(self, i, j):
        return self._operators[i][j] if j <= i else None

    def _shape(self):
        sides = [sum(o.shape[a] for o in self._diagonal()) for a in (-2, -1)]
        return _core.TensorShape([*_batch([o for row in self._operators for o in row]), *sides])

    def _cut(self, x, axis):
        """Rows of x by blocks; a list of blocks as it is."""
        sizes = [o.shape[axis] for o in self._diagonal()]
        ends = _np.cumsum(sizes).tolist()
        return [x[..., end - size:end, :] for size, end in zip(sizes, ends)]

    def _join(self, parts):
        """Blocks of rows as one; those that lack the batch get it."""
        batch = list(_np.broadcast_shapes(*[tuple(p.shape[:-2]) for p in parts]))
        return _ops.concat([_ops.broadcast_to(p, [*batch, *p.shape[-2:]]) for p in parts], -2)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        parts = self._cut(_turned(x, adjoint_arg), -2 if adjoint else -1)
        out = []
        for i in range(len(parts)):
            blocks = [(self._block(j, i) if adjoint else self._block(i, j), p) for j, p in enumerate(parts)]
            terms = [b.matmul(p, adjoint=adjoint) for b, p in blocks if b is not None]
            out.append(sum(terms[1:], terms[0]))
        return self._join(out)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        parts, done = self._cut(_turned(rhs, adjoint_arg), -1 if adjoint else -2), {}
        for i in range(len(parts))[::-1 if adjoint else 1]:
            left = parts[i]
            for j, x in done.items():
                block = self._block(j, i) if adjoint else self._block(i, j)
                left = left if block is None else left - block.matmul(x, adjoint=adjoint)
            done[i] = self._diagonal()[i].solve(left, adjoint=adjoint)
        return self._join([done[i] for i in sorted(done)])

    def _blocks_of(self, function, x, axis, adjoint, adjoint_arg):
        """A list of blocks in, a list of blocks out."""
        if not isinstance(x, (list, tuple)):
            return function(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        joined = self._join([_turned(convert_to_tensor(v), adjoint_arg) for v in x])
        return self._cut(function(joined, adjoint=adjoint), axis)

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        """The operator times x [..., n, k], times a list of blocks of x, or times another operator."""
        return self._blocks_of(super().matmul, x, -1 if adjoint else -2, adjoint, adjoint_arg)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        """x with A x = rhs [..., n, k], or of a list of blocks of rhs."""
        return self._blocks_of(super().solve, rhs, -2 if adjoint else -1, adjoint, adjoint_arg)

    def _determinant(self):
        parts = [o.determinant() for o in self._diagonal()]
        return _ops.identity(_product(parts))

    def _log_abs_determinant(self):
        parts = [o.log_abs_determinant() for o in self._diagonal()]
        return sum(parts[1:], parts[0])


def _product(parts):
    out = parts[0]
    for part in parts[1:]:
        out = out * part
    return out


class LinearOperatorBlockDiag(LinearOperatorBlockLowerTriangular):
    """Operators along the diagonal, zeros elsewhere."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=True,
                 name=None):
        self._operators = _several("LinearOperatorBlockDiag", operators)
        name = name or "_ds_".join(o.name for o in self._operators)
        if is_square and not all(o.is_square is not False for o in self._operators):
            is_square = None
        self._begin(self._operators[0].dtype, locals(), **{h: _all(self._operators, h) for h in (
            "is_non_singular", "is_self_adjoint", "is_positive_definite")})

    operators = property(lambda self: self._operators, doc="The operators.")

    def _diagonal(self):
        return self._operators

    def _block(self, i, j):
        return self._operators[i] if i == j else None

    def _shape(self):
        return _core.TensorShape([*_batch(self._operators), *[sum(o.shape[a] for o in self._operators) for a in (-2, -1)]])
