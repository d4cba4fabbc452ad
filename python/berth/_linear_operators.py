"""The operators of tf.linalg that are made of tensors: full matrices, diagonals, triangles, permutations."""
from berth import _core
from berth._linear_operator import LinearOperator, _turned, conj, dims, kept
from berth._linear_operators_of import LinearOperatorComposition
from berth._matrix_functions import _solve_triangle, solve as _solve
from berth._tensor import convert_to_tensor, float32

_ops, _m, _l = _core.ops, _core.ops.math, _core.ops.linalg


def product(a, b):
    """Two operators, one after the other, as one."""
    if isinstance(a, LinearOperatorIdentity):
        return b
    if isinstance(b, LinearOperatorIdentity):
        return a
    if isinstance(a, LinearOperatorDiag) and isinstance(b, LinearOperatorDiag):
        return LinearOperatorDiag(a.diag * b.diag, is_non_singular=(a.is_non_singular and b.is_non_singular) or None)
    return LinearOperatorComposition([a, b])


class LinearOperatorFullMatrix(LinearOperator):
    """A matrix, or a batch of some, as an operator."""

    def __init__(self, matrix, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorFullMatrix"):
        self._matrix = kept(matrix)
        self._begin(self._matrix.dtype, locals())

    matrix = property(lambda self: self._matrix, doc="The matrix.")

    def _shape(self):
        return self._matrix.shape

    def _to_dense(self):
        return convert_to_tensor(self._matrix)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        a, b = self.to_dense(), _turned(rhs, adjoint_arg)
        if self.is_self_adjoint and self.is_positive_definite:
            lower = _l.cholesky(a)
            return _solve_triangle(lower, _solve_triangle(lower, b), adjoint=True)
        return _solve(a, b, adjoint)


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix, of which the diagonal [..., n] is kept."""

    def __init__(self, diag, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorDiag"):
        self._diag = kept(diag)
        self._begin(self._diag.dtype, locals(), is_square=True, is_self_adjoint=None if self._diag.dtype.is_complex else True)

    diag = property(lambda self: self._diag, doc="The diagonal.")

    def _shape(self):
        return _core.TensorShape([*self._diag.shape, self._diag.shape[-1]])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        d = conj(self._diag_part()) if adjoint else self._diag_part()
        return _ops.expand_dims(d, -1) * _turned(x, adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        d = conj(self._diag_part()) if adjoint else self._diag_part()
        return _turned(rhs, adjoint_arg) / _ops.expand_dims(d, -1)

    def _to_dense(self):
        return _l.diag(self._diag_part())

    def _diag_part(self):
        return convert_to_tensor(self._diag)

    def _determinant(self):
        return _m.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self):
        out = _m.reduce_sum(_m.log(_m.abs(self._diag_part())), -1)
        return _m.cast(out, self.dtype)

    def _adjoint(self):
        return LinearOperatorDiag(conj(self._diag_part()), self.is_non_singular, self.is_self_adjoint, self.is_positive_definite,
                                  True)

    def _inverse(self):
        return LinearOperatorDiag(1 / self._diag_part(), self.is_non_singular, self.is_self_adjoint, self.is_positive_definite,
                                  True)

    def _cholesky(self):
        return LinearOperatorDiag(_m.sqrt(self._diag_part()), is_non_singular=True, is_self_adjoint=True,
                                  is_positive_definite=True, is_square=True)

    def eigvals(self, name="eigvals"):
        """The diagonal."""
        return self._diag_part()

    def cond(self, name="cond"):
        """The largest magnitude of the diagonal over the smallest."""
        size = _m.abs(self._diag_part())
        return _m.cast(_m.reduce_max(size, -1) / _m.reduce_min(size, -1), self.dtype)


class LinearOperatorScaledIdentity(LinearOperatorDiag):
    """An identity times a number, or times a batch of numbers."""

    def __init__(self, num_rows, multiplier, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=True,
                 assert_proper_shapes=False, name="LinearOperatorScaledIdentity"):
        self._rows, self._multiplier = int(num_rows), kept(multiplier)
        if self._rows < 0:
            raise ValueError(f"LinearOperatorScaledIdentity: num_rows is {num_rows}; expected 0 or more")
        self._begin(self._multiplier.dtype, locals(), is_square=True)

    multiplier = property(lambda self: self._multiplier, doc="The number, or numbers.")
    diag = property(lambda self: self._diag_part(), doc="The diagonal.")

    def _shape(self):
        return _core.TensorShape([*self._multiplier.shape, self._rows, self._rows])

    def _diag_part(self):
        return _ops.expand_dims(convert_to_tensor(self._multiplier), -1) + _ops.zeros([self._rows], self.dtype)


class LinearOperatorIdentity(LinearOperatorDiag):
    """The matrix that leaves everything as it is."""

    def __init__(self, num_rows, batch_shape=None, dtype=None, is_non_singular=True, is_self_adjoint=True,
                 is_positive_definite=True,
                 is_square=True, assert_proper_shapes=False, name="LinearOperatorIdentity"):
        self._rows, self._batch = int(num_rows), dims(batch_shape)
        if self._rows < 0:
            raise ValueError(f"LinearOperatorIdentity: num_rows is {num_rows}; expected 0 or more")
        self._begin(dtype or float32, locals(), is_square=True, is_non_singular=True, is_self_adjoint=True,
                    is_positive_definite=True)

    diag = property(lambda self: self._diag_part(), doc="Ones.")

    def _shape(self):
        return _core.TensorShape([*self._batch, self._rows, self._rows])

    def _diag_part(self):
        return _ops.ones([*self._batch, self._rows], self.dtype)

    def _inverse(self):
        return self

    _adjoint = _cholesky = _inverse


class LinearOperatorZeros(LinearOperator):
    """A matrix of zeros."""

    def __init__(self, num_rows, num_columns=None, batch_shape=None, dtype=None, is_non_singular=False, is_self_adjoint=True,
                 is_positive_definite=False, is_square=True, assert_proper_shapes=False, name="LinearOperatorZeros"):
        self._sides = int(num_rows), int(num_rows if num_columns is None else num_columns)
        self._batch = dims(batch_shape)
        if is_self_adjoint and self._sides[0] != self._sides[1]:
            is_self_adjoint = is_square = False
        self._begin(dtype or float32, locals(), is_non_singular=False, is_positive_definite=False)

    def _shape(self):
        return _core.TensorShape([*self._batch, *self._sides])

    def _to_dense(self):
        return _ops.zeros([*self._batch, *self._sides], self.dtype)

    def _adjoint(self):
        return LinearOperatorZeros(self._sides[1], self._sides[0], self._batch, self.dtype,
                                   is_self_adjoint=self.is_square, is_square=self.is_square)

    def _determinant(self):
        return _ops.zeros(self._batch, self.dtype)


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix; what is above the diagonal is not read."""

    def __init__(self, tril, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name="LinearOperatorLowerTriangular"):
        self._tril = kept(tril)
        self._begin(self._tril.dtype, locals(), is_square=True)

    tril = property(lambda self: self._tril, doc="The matrix that it was given.")

    def _shape(self):
        return self._tril.shape

    def _to_dense(self):
        return _l.band_part(convert_to_tensor(self._tril), -1, 0)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return _solve_triangle(self.to_dense(), _turned(rhs, adjoint_arg), adjoint=adjoint)

    def _diag_part(self):
        return _l.diag_part(convert_to_tensor(self._tril))

    def _determinant(self):
        return _m.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self):
        return _m.reduce_sum(_m.log(_m.abs(self._diag_part())), -1)
