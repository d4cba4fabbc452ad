"""The operators of tf.linalg that are made of others: products, inverses, low ranks."""
from berth import _core
from berth._lazy import Lazy
from berth._linear_operator import LinearOperator, _turned, adjoint as turn, conj, kept
from berth._matrix_functions import solve as _solve
from berth._tensor import convert_to_tensor

_ops, _m, _l = _core.ops, _core.ops.math, _core.ops.linalg
_np = Lazy("numpy")


def _all(operators, hint):
    """True if all operators are known to be so; None if not."""
    return True if all(getattr(o, hint) for o in operators) else None


def _several(what, operators):
    operators = list(operators)
    if not operators:
        raise ValueError(f"{what}: operators is an empty list; expected one operator at least")
    if len({o.dtype.name for o in operators}) > 1:
        raise TypeError(f"{what}: the operators are {[o.dtype.name for o in operators]}; expected one dtype")
    return operators


def _batch(operators):
    return list(_np.broadcast_shapes(*[tuple(o.batch_shape) for o in operators]))


class LinearOperatorAdjoint(LinearOperator):
    """Another operator the other way round, and conjugated."""

    def __init__(self, operator, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        self._operator = operator
        name = name or f"{operator.name}_adjoint"
        self._begin(operator.dtype, locals(), is_non_singular=operator.is_non_singular, is_self_adjoint=operator.is_self_adjoint,
                    is_positive_definite=operator.is_positive_definite, is_square=operator.is_square)

    operator = property(lambda self: self._operator, doc="The other operator.")

    def _shape(self):
        s = self._operator.shape
        return _core.TensorShape([*s[:-2], s[-1], s[-2]])

    def _to_dense(self):
        return turn(self._operator.to_dense())

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._operator._matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._operator._solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _diag_part(self):
        return conj(self._operator.diag_part())

    def _determinant(self):
        return conj(self._operator.determinant())

    def _log_abs_determinant(self):
        return self._operator.log_abs_determinant()

    def _adjoint(self):
        return self._operator


class LinearOperatorInversion(LinearOperator):
    """The inverse of another operator."""

    def __init__(self, operator, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        if operator.is_square is False or operator.is_non_singular is False:
            raise ValueError(f"LinearOperatorInversion: {operator.name} is {operator.shape}, or known to have no inverse; "
                             "expected one that has")
        self._operator = operator
        name = name or f"{operator.name}_inv"
        self._begin(operator.dtype, locals(), is_non_singular=True, is_self_adjoint=operator.is_self_adjoint,
                    is_positive_definite=operator.is_positive_definite, is_square=True)

    operator = property(lambda self: self._operator, doc="The other operator.")

    def _shape(self):
        return self._operator.shape

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._operator._solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._operator._matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self):
        return 1 / self._operator.determinant()

    def _log_abs_determinant(self):
        return -self._operator.log_abs_determinant()

    def _inverse(self):
        return self._operator


class LinearOperatorComposition(LinearOperator):
    """Operators one after the other: the last comes first."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        self._operators = _several("LinearOperatorComposition", operators)
        for a, b in zip(self._operators, self._operators[1:]):
            if a.domain_dimension != b.range_dimension:
                raise ValueError(f"LinearOperatorComposition: {a.name} is {a.shape}, the next {b.shape}; expected as many "
                                 "columns as rows")
        name = name or "_o_".join(o.name for o in self._operators)
        self._begin(self._operators[0].dtype, locals(), is_non_singular=_all(self._operators, "is_non_singular"))

    operators = property(lambda self: self._operators, doc="The operators.")

    def _shape(self):
        return _core.TensorShape([*_batch(self._operators), self._operators[0].range_dimension,
                                  self._operators[-1].domain_dimension])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = _turned(x, adjoint_arg)
        for operator in self._operators if adjoint else self._operators[::-1]:
            x = operator.matmul(x, adjoint=adjoint)
        return x

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        x = _turned(rhs, adjoint_arg)
        for operator in self._operators[::-1] if adjoint else self._operators:
            x = operator.solve(x, adjoint=adjoint)
        return x

    def _determinant(self):
        if not all(o.is_square for o in self._operators):
            return super()._determinant()
        out = self._operators[0].determinant()
        for operator in self._operators[1:]:
            out = out * operator.determinant()
        return out

    def _log_abs_determinant(self):
        if not all(o.is_square for o in self._operators):
            return super()._log_abs_determinant()
        return sum([o.log_abs_determinant() for o in self._operators[1:]], self._operators[0].log_abs_determinant())


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators, which is never made."""

    def __init__(self, operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, is_square=None,
                 name=None):
        self._operators = _several("LinearOperatorKronecker", operators)
        name = name or "_x_".join(o.name for o in self._operators)
        self._begin(self._operators[0].dtype, locals(), **{h: _all(self._operators, h) for h in (
            "is_non_singular", "is_self_adjoint", "is_positive_definite")})

    operators = property(lambda self: self._operators, doc="The operators.")

    def _shape(self):
        sides = [int(_np.prod([o.shape[a] for o in self._operators])) for a in (-2, -1)]
        return _core.TensorShape([*_batch(self._operators), *sides])

    def _over(self, what, x, adjoint):
        """Each operator on its part of the rows, which come to the front one by one."""
        batch, k = x.shape.as_list()[:-2], x.shape[-1]
        done = 1
        for operator in self._operators:
            wanted = operator.range_dimension if adjoint == (what == "matmul") else operator.domain_dimension
            rest = x.shape[-2] // wanted
            x = getattr(operator, what)(_ops.reshape(x, [*batch, wanted, rest * x.shape[-1]]), adjoint=adjoint)
            batch, made = x.shape.as_list()[:-2], x.shape[-2]
            # [made, rest, done * k] -> [rest, made * done * k]: what is done goes to the end
            x = _ops.reshape(x, [*batch, made, rest, -1])
            b = len(batch)
            x = _ops.transpose(x, [*range(b), b + 1, b, b + 2])
            done *= made
            x = _ops.reshape(x, [*batch, rest, -1])
        # [1, made_last * ... * made_first * k] -> [made_first, ..., made_last, k]
        sides = [o.domain_dimension if adjoint == (what == "matmul") else o.range_dimension for o in self._operators]
        b, n = len(batch), len(sides)
        x = _ops.reshape(x, [*batch, *sides[::-1], k])
        return _ops.reshape(_ops.transpose(x, [*range(b), *range(b + n - 1, b - 1, -1), b + n]), [*batch, done, k])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._over("matmul", _turned(x, adjoint_arg), adjoint)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._over("solve", _turned(rhs, adjoint_arg), adjoint)

    def _determinant(self):
        out = None
        for o in self._operators:
            part = _m.pow(o.determinant(), convert_to_tensor(self.domain_dimension // o.domain_dimension, o.dtype))
            out = part if out is None else out * part
        return out

    def _log_abs_determinant(self):
        parts = [o.log_abs_determinant() * (self.domain_dimension // o.domain_dimension) for o in self._operators]
        return sum(parts[1:], parts[0])


class LinearOperatorLowRankUpdate(LinearOperator):
    """base_operator + u diag(diag_update) v^H with narrow u, v [..., n, k]; solved by way of k x k matrices."""

    def __init__(self, base_operator, u, diag_update=None, v=None, is_diag_update_positive=None, is_non_singular=None,
                 is_self_adjoint=None, is_positive_definite=None, is_square=None, name="LinearOperatorLowRankUpdate"):
        self._base, self._u = base_operator, kept(u)
        self._v = self._u if v is None else kept(v)
        self._update = None if diag_update is None else kept(diag_update)
        known = {}
        if v is None and (diag_update is None or is_diag_update_positive) and base_operator.is_positive_definite:
            known = {"is_positive_definite": True, "is_non_singular": True}
        if v is None and base_operator.is_self_adjoint and not base_operator.dtype.is_complex:
            known["is_self_adjoint"] = True
        self._positive = diag_update is None or is_diag_update_positive
        self._begin(base_operator.dtype, locals(), **known)

    base_operator = property(lambda self: self._base, doc="The operator before the update.")
    u = property(lambda self: self._u, doc="The left factor.")
    v = property(lambda self: self._v, doc="The right factor.")
    diag_update = property(lambda self: self._update, doc="The numbers between both, or None.")
    is_diag_update_positive = property(lambda self: self._positive, doc="Whether those are known to be positive.")

    def _shape(self):
        shapes = [self._base.shape, self._u.shape, self._v.shape]
        return _core.TensorShape([*_np.broadcast_shapes(*[tuple(s[:-2]) for s in shapes]), *self._base.shape[-2:]])

    def _between(self, x, is_adjoint=False):
        if self._update is None:
            return x
        d = convert_to_tensor(self._update)
        return _ops.expand_dims(conj(d) if is_adjoint else d, -1) * x

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x, (u, v) = _turned(x, adjoint_arg), (self._v, self._u) if adjoint else (self._u, self._v)
        return self._base.matmul(x, adjoint=adjoint) + _ops.matmul(u, self._between(_ops.matmul(v, x, adjoint_a=True), adjoint))

    def _middle(self, adjoint=False):
        """The k x k matrix 1 / diag_update + v^H base^-1 u."""
        u, v = (self._v, self._u) if adjoint else (self._u, self._v)
        k = self._u.shape[-1]
        d = _ops.ones([k], self.dtype) if self._update is None else 1 / convert_to_tensor(self._update)
        return _l.diag(conj(d) if adjoint else d) + _ops.matmul(v, self._base.solve(u, adjoint=adjoint), adjoint_a=True)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        u, v = (self._v, self._u) if adjoint else (self._u, self._v)
        y = self._base.solve(_turned(rhs, adjoint_arg), adjoint=adjoint)
        inner = _solve(self._middle(adjoint), _ops.matmul(v, y, adjoint_a=True))
        return y - self._base.solve(_ops.matmul(u, inner), adjoint=adjoint)

    def _determinant(self):
        out = _l.det(self._middle()) * self._base.determinant()
        return out if self._update is None else out * _m.reduce_prod(self._update, -1)

    def _log_abs_determinant(self):
        out = _l.slogdet(self._middle())[1] + self._base.log_abs_determinant()
        return out if self._update is None else out + _m.reduce_sum(_m.log(_m.abs(self._update)), -1)
