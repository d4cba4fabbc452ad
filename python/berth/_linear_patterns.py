"""The operators of tf.linalg whose matrices have a pattern: reflections, permutations, equal or few diagonals."""
from berth import _core
from berth._lazy import Lazy
from berth._linear_operator import LinearOperator, _turned, conj, kept
from berth._matrix_functions import _compact, _dense, tridiagonal_matmul
from berth._tensor import convert_to_tensor, float32

_ops, _m, _l = _core.ops, _core.ops.math, _core.ops.linalg
_np = Lazy("numpy")


class LinearOperatorHouseholder(LinearOperator):
    """The reflection at the hyperplane that an axis [..., n] is perpendicular to."""

    def __init__(self, reflection_axis, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorHouseholder"):
        self._axis = kept(reflection_axis)
        self._begin(self._axis.dtype, locals(), is_non_singular=True, is_self_adjoint=True, is_square=True,
                    is_positive_definite=False)

    reflection_axis = property(lambda self: self._axis, doc="The axis.")

    def _shape(self):
        return _core.TensorShape([*self._axis.shape, self._axis.shape[-1]])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        v, x = convert_to_tensor(self._axis), _turned(x, adjoint_arg)
        v = _ops.expand_dims(v / _m.cast(_m.sqrt(_m.reduce_sum(_m.square(_m.abs(v)), -1, True)), v.dtype), -1)
        return x - 2 * v * _m.reduce_sum(conj(v) * x, -2, True)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self):
        return -_ops.ones(self.batch_shape, self.dtype)

    def _log_abs_determinant(self):
        return _ops.zeros(self.batch_shape, self.dtype)

    def _inverse(self):
        return self


class LinearOperatorPermutation(LinearOperator):
    """The matrix whose row i has its one in column perm[i]: [..., n] whole numbers."""

    def __init__(self, perm, dtype=float32, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorPermutation"):
        self._perm = kept(perm)
        if not self._perm.dtype.is_integer:
            raise TypeError(f"LinearOperatorPermutation: perm is {self._perm.dtype.name}; expected whole numbers")
        self._begin(dtype, locals(), is_non_singular=True, is_square=True)

    perm = property(lambda self: self._perm, doc="The columns of the ones.")

    def _shape(self):
        return _core.TensorShape([*self._perm.shape, self._perm.shape[-1]])

    def _to_dense(self):
        return _m.cast(_m.equal(_ops.expand_dims(convert_to_tensor(self._perm), -1),
                                _ops.range(0, self._perm.shape[-1], 1, self._perm.dtype)), self.dtype)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._matmul(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _log_abs_determinant(self):
        return _ops.zeros(self.batch_shape, self.dtype)


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with equal elements along each diagonal, of its first column and its first row."""

    def __init__(self, col, row, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorToeplitz"):
        self._col, self._row = kept(col), kept(row)
        self._begin(self._row.dtype, locals(), is_square=True)

    col = property(lambda self: self._col, doc="The first column.")
    row = property(lambda self: self._row, doc="The first row.")

    def _shape(self):
        batch = _np.broadcast_shapes(tuple(self._col.shape[:-1]), tuple(self._row.shape[:-1]))
        return _core.TensorShape([*batch, self._row.shape[-1], self._row.shape[-1]])

    def _to_dense(self):
        batch, n = self.batch_shape.as_list(), self._row.shape[-1]
        col, row = (_ops.broadcast_to(convert_to_tensor(v), [*batch, n]) for v in (self._col, self._row))
        at = _np.arange(n)[:, None] - _np.arange(n)  # col[at], or row[-at]
        both = _ops.gather(_ops.concat([col, row], -1), _np.where(at >= 0, at, n - at).ravel().astype("int32"), axis=len(batch))
        return _ops.reshape(both, [*batch, n, n])


class LinearOperatorTridiag(LinearOperator):
    """A matrix with three diagonals."""

    def __init__(self, diagonals, diagonals_format="compact", is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None,
                 is_square=None, name="LinearOperatorTridiag"):
        if diagonals_format not in ("compact", "sequence", "matrix"):
            raise ValueError(f"LinearOperatorTridiag: diagonals_format is {diagonals_format!r}; expected 'compact', "
                             "'sequence' or 'matrix'")
        self._diagonals = [kept(d) for d in diagonals] if diagonals_format == "sequence" else kept(diagonals)
        self._format = diagonals_format
        self._begin((self._diagonals[0] if diagonals_format == "sequence" else self._diagonals).dtype, locals(), is_square=True)

    diagonals = property(lambda self: self._diagonals, doc="The diagonals, in the form that it was given.")
    diagonals_format = property(lambda self: self._format, doc='"compact", "sequence" or "matrix".')

    def _three(self):
        return _compact("LinearOperatorTridiag", self._diagonals, self._format)

    def _shape(self):
        if self._format == "matrix":
            return self._diagonals.shape
        known = self._diagonals[1].shape if self._format == "sequence" else self._diagonals.shape
        n = known[-1]
        return _core.TensorShape([*known[:-1 if self._format == "sequence" else -2], n, n])

    def _to_dense(self):
        return _dense(self._three())

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = _turned(x, adjoint_arg)
        return tridiagonal_matmul(self._three(), x) if not adjoint else _ops.matmul(self.to_dense(), x, adjoint_a=True)
