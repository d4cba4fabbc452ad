"""tf.linalg.LinearOperator: matrices that are known by what they do."""
from berth import _core
from berth._lazy import Lazy
from berth._matrix_functions import solve as _solve
from berth._module import Module
from berth._tensor import as_dtype, convert_to_tensor, int32

_ops, _m, _l = _core.ops, _core.ops.math, _core.ops.linalg
_np = Lazy("numpy")
_made, _of = Lazy("berth._linear_operators"), Lazy("berth._linear_operators_of")


def kept(value, dtype=None):
    """A tensor of what an operator is made of; variables stay, so that they are read when it works."""
    return value if isinstance(value, _core.Variable) else convert_to_tensor(value, dtype)


def adjoint(x):
    """Matrices the other way round, and conjugated."""
    return _l.adjoint(x) if x.dtype.is_complex else _l.matrix_transpose(x)


def conj(x):
    return _m.conj(x) if x.dtype.is_complex else x


def dims(shape):
    """A shape as a list of numbers."""
    return [] if shape is None else [int(n) for n in (shape if not hasattr(shape, "numpy") else shape.numpy())]


class LinearOperator(Module):
    """A matrix [..., m, n], or a batch of some; classes of it say how they multiply, solve and what is known of them.

    A class of your own has _shape(), and _matmul(x, adjoint, adjoint_arg) or _to_dense(); what it leaves out follows
    from the full matrix. The is_... are promises: None where nobody knows.
    """

    def __init__(self, dtype, graph_parents=None, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None,
                 is_square=None, name=None, parameters=None):
        super().__init__(name=None)
        if is_positive_definite and is_non_singular is False:
            raise ValueError("is_positive_definite is True, is_non_singular False; expected no False: such a matrix has an "
                             "inverse")
        if is_square is False and (is_non_singular or is_self_adjoint or is_positive_definite):
            raise ValueError("is_square is False; expected no other True, of which each says that the matrix is square")
        self._dtype = as_dtype(dtype)
        self._hints = {"non_singular": True if is_positive_definite else is_non_singular, "self_adjoint": is_self_adjoint,
                       "positive_definite": is_positive_definite,
                       "square": True if is_non_singular or is_self_adjoint or is_positive_definite else is_square}
        self._label, self._parameters = name or type(self).__name__, dict(parameters or {})

    def _begin(self, dtype, given, **known):
        """The constructor of Berth's own classes: `given` are their arguments, `known` is what is so in any case."""
        parameters = {k: v for k, v in given.items() if k not in ("self", "__class__")}
        hints = {k: v for k, v in parameters.items() if k.startswith("is_") and k != "is_diag_update_positive"}
        for hint, value in known.items():
            if value is not None and hints.get(hint) is not None and hints[hint] != value:
                raise ValueError(f"{type(self).__name__}: {hint} is {hints[hint]}; expected {value}, which such an operator "
                                 "is, or None")
            hints[hint] = hints.get(hint) if value is None else value
        LinearOperator.__init__(self, dtype, name=given["name"], parameters=parameters, **hints)

    # What classes may say.

    def _shape(self):
        raise NotImplementedError(f"{type(self).__name__}: there is no _shape(); expected one that returns a TensorShape")

    def _to_dense(self):
        eye = _m.cast(_ops.eye(self.domain_dimension), self.dtype)
        return self._matmul(_ops.broadcast_to(eye, [*self.batch_shape, *eye.shape]))

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return _ops.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return _solve(self.to_dense(), _turned(rhs, adjoint_arg), adjoint)

    def _diag_part(self):
        return _l.diag_part(self.to_dense())

    def _trace(self):
        return _m.reduce_sum(self.diag_part(), -1)

    def _determinant(self):
        return _l.det(self.to_dense())

    def _log_abs_determinant(self):
        return _l.slogdet(self.to_dense())[1]

    def _inverse(self):
        return _of.LinearOperatorInversion(self)

    def _adjoint(self):
        return self if self.is_self_adjoint else _of.LinearOperatorAdjoint(self)

    # What they are asked.

    name = property(lambda self: self._label, doc="The name that it was given, or that of its class.")
    dtype = property(lambda self: self._dtype, doc="The dtype of its elements.")
    parameters = property(lambda self: dict(self._parameters), doc="What it was made with.")
    graph_parents = property(lambda self: [], doc="An empty list: nothing is kept of a graph.")
    is_non_singular = property(lambda self: self._hints["non_singular"], doc="Whether it has an inverse; None: not known.")
    is_self_adjoint = property(lambda self: self._hints["self_adjoint"], doc="Whether it equals its adjoint; None: not known.")
    is_positive_definite = property(lambda self: self._hints["positive_definite"],
                                    doc="Whether x A x is positive for every x; None: not known.")
    shape = property(lambda self: self._shape(), doc="The shape of the full matrices.")
    batch_shape = property(lambda self: self._shape()[:-2], doc="The shape without the last two axes.")
    tensor_rank = property(lambda self: len(self._shape()), doc="The number of axes of the full matrices.")
    domain_dimension = property(lambda self: self._shape()[-1], doc="The number of columns.")
    range_dimension = property(lambda self: self._shape()[-2], doc="The number of rows.")
    H = property(lambda self: self.adjoint(), doc="adjoint().")

    @property
    def is_square(self):
        """Whether it has as many rows as columns."""
        known = self._shape()
        return known[-1] == known[-2] if len(known) >= 2 and None not in (known[-1], known[-2]) else self._hints["square"]

    def shape_tensor(self, name="shape_tensor"):
        """The shape as a tensor."""
        return convert_to_tensor(self.shape.as_list(), int32)

    def batch_shape_tensor(self, name="batch_shape_tensor"):
        """batch_shape as a tensor."""
        return convert_to_tensor(_np.asarray(self.batch_shape.as_list(), "int32"))

    def tensor_rank_tensor(self, name="tensor_rank_tensor"):
        """tensor_rank as a tensor."""
        return convert_to_tensor(self.tensor_rank, int32)

    def domain_dimension_tensor(self, name="domain_dimension_tensor"):
        """The number of columns as a tensor."""
        return convert_to_tensor(self.domain_dimension, int32)

    def range_dimension_tensor(self, name="range_dimension_tensor"):
        """The number of rows as a tensor."""
        return convert_to_tensor(self.range_dimension, int32)

    def _fits(self, what, x, adjoint, adjoint_arg, rows):
        x = convert_to_tensor(x, self.dtype) if not hasattr(x, "dtype") else convert_to_tensor(x)
        if x.dtype != self.dtype:
            raise TypeError(f"{self.name}.{what}: the argument is {x.dtype.name}; expected {self.dtype.name}, the operator's "
                            "dtype")
        wanted = self.range_dimension if adjoint == rows else self.domain_dimension
        given = x.shape[-1 if adjoint_arg else -2]
        if given != wanted:
            raise ValueError(f"{self.name}.{what}: the operator is {self.shape}, the argument {x.shape}; Dimensions {wanted} and "
                             f"{given} are not compatible")
        return x

    def matmul(self, x, adjoint=False, adjoint_arg=False, name="matmul"):
        """The operator times x [..., n, k], or times another operator; either may be turned round first."""
        if isinstance(x, LinearOperator):
            left, right = self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x
            return _made.product(left, right)
        return self._matmul(self._fits("matmul", x, adjoint, adjoint_arg, True), adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other):
        return self.matmul(other)

    def matvec(self, x, adjoint=False, name="matvec"):
        """The operator times vectors [..., n]."""
        return _as_vector(self.matmul, convert_to_tensor(x), adjoint)

    def solve(self, rhs, adjoint=False, adjoint_arg=False, name="solve"):
        """x with A x = rhs [..., n, k], of square operators; of another operator the product with the inverse."""
        if self.is_non_singular is False:
            raise NotImplementedError(f"{self.name}.solve: the operator is known to have no inverse")
        if self.is_square is False:
            raise NotImplementedError(f"{self.name}.solve: the operator is {self.shape}; expected a square one")
        if isinstance(rhs, LinearOperator):
            left, right = self.adjoint() if adjoint else self, rhs.adjoint() if adjoint_arg else rhs
            return _made.product(left.inverse(), right)
        return self._solve(self._fits("solve", rhs, adjoint, adjoint_arg, False), adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs, adjoint=False, name="solve"):
        """x with A x = rhs for vectors [..., n]."""
        return _as_vector(self.solve, convert_to_tensor(rhs), adjoint)

    def to_dense(self, name="to_dense"):
        """The full matrices."""
        return self._to_dense()

    def diag_part(self, name="diag_part"):
        """The main diagonals, [..., n]."""
        return self._diag_part()

    def trace(self, name="trace"):
        """The sums of the main diagonals."""
        return self._trace()

    def determinant(self, name="det"):
        """The determinants."""
        self._must_be_square("determinant")
        return self._determinant()

    def log_abs_determinant(self, name="log_abs_det"):
        """The logarithms of the magnitudes of the determinants."""
        self._must_be_square("log_abs_determinant")
        return self._log_abs_determinant()

    def _must_be_square(self, what):
        if self.is_square is False:
            raise NotImplementedError(f"{self.name}.{what}: the operator is {self.shape}; expected a square one")

    def adjoint(self, name="adjoint"):
        """The operator the other way round, and conjugated."""
        return self._adjoint()

    def inverse(self, name="inverse"):
        """The inverse as an operator."""
        if self.is_square is False or self.is_non_singular is False:
            raise ValueError(f"{self.name}.inverse: the operator is {self.shape}, or known to have no inverse; expected one "
                             "that has")
        return self._inverse()

    def cholesky(self, name="cholesky"):
        """The lower triangular operator L with L L^H = A, of one that is known to be self-adjoint and positive definite."""
        if not (self.is_self_adjoint and self.is_positive_definite):
            raise ValueError(f"{self.name}.cholesky: the operator is not known to be self-adjoint and positive definite; say "
                             "so when it is made")
        return self._cholesky()

    def _cholesky(self):
        return _made.LinearOperatorLowerTriangular(_l.cholesky(self.to_dense()), is_non_singular=True, is_square=True)

    def eigvals(self, name="eigvals"):
        """The eigenvalues, in order, of an operator that is known to be self-adjoint."""
        if not self.is_self_adjoint:
            raise NotImplementedError(f"{self.name}.eigvals: the operator is not known to be self-adjoint; say so when it is "
                                      "made")
        return _l.eigvalsh(self.to_dense())

    def cond(self, name="cond"):
        """The largest singular value over the smallest."""
        s = _l.svd(self.to_dense(), compute_uv=False)[0]
        return _m.reduce_max(s, -1) / _m.reduce_min(s, -1)

    def add_to_tensor(self, x, name="add_to_tensor"):
        """The full matrices plus x."""
        return self.to_dense() + convert_to_tensor(x, self.dtype)

    def _assert(self, what, holds):
        if not bool(holds):
            raise _core.InvalidArgumentError(f"{self.name}: the operator is not {what}")

    def assert_non_singular(self, name="assert_non_singular"):
        """Raises an InvalidArgumentError of an operator that has no inverse in its dtype."""
        s = _l.svd(self.to_dense(), compute_uv=False)[0]
        self._assert("non-singular", _m.reduce_all(_m.reduce_min(s, -1) > _m.reduce_max(s, -1) * float(
            _np.finfo(s.dtype.as_numpy_dtype).eps)))

    def assert_self_adjoint(self, name="assert_self_adjoint"):
        """Raises an InvalidArgumentError of an operator that is another the other way round."""
        a = self.to_dense()
        self._assert("equal to its adjoint", _np.allclose(a.numpy(), adjoint(a).numpy(), rtol=1e-5, atol=1e-6))

    def assert_positive_definite(self, name="assert_positive_definite"):
        """Raises an InvalidArgumentError of an operator for which some x A x is not positive."""
        a = self.to_dense()
        self._assert("positive definite", _m.reduce_all(_l.eigvalsh(0.5 * (a + adjoint(a))) > 0))

    def __repr__(self):
        return f"<{type(self).__name__} {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


def _turned(x, is_adjoint):
    return adjoint(x) if is_adjoint else x


def _as_vector(function, x, is_adjoint):
    out = function(_ops.expand_dims(x, -1), is_adjoint)
    return _ops.squeeze(out, [len(out.shape) - 1])
