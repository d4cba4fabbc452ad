"""Circulant operators of tf.linalg, which Fourier transforms make diagonal."""
from berth import _core
from berth._lazy import Lazy
from berth._linear_operator import LinearOperator, _turned, kept
from berth._tensor import complex64, complex128, convert_to_tensor, float64

_ops, _m, _s = _core.ops, _core.ops.math, _core.ops.signal
_np = Lazy("numpy")


class _Circulant(LinearOperator):
    """The matrix that a transform over `depth` axes makes diagonal."""

    def _init(self, depth, given):
        self._spectrum, self._depth = kept(given["spectrum"]), depth
        if len(self._spectrum.shape) < depth:
            raise ValueError(f"{type(self).__name__}: the spectrum is {self._spectrum.shape}; expected {depth} axes at least")
        self._begin(given["input_output_dtype"], given, is_square=True,
                    is_self_adjoint=None if self._spectrum.dtype.is_complex else True)

    spectrum = property(lambda self: self._spectrum, doc="The eigenvalues, by frequency.")
    block_depth = property(lambda self: self._depth, doc="How many axes the transform has.")
    block_shape = property(lambda self: self._spectrum.shape[-self._depth:], doc="The lengths of those.")

    def _shape(self):
        n = int(_np.prod(self.block_shape.as_list()))
        return _core.TensorShape([*self._spectrum.shape[:-self._depth], n, n])

    def _kind(self):
        return complex128 if self.dtype in (complex128, float64) else complex64

    def _values(self):
        return _m.cast(convert_to_tensor(self._spectrum), self._kind())

    def _transform(self, name, x):
        return getattr(_s, name + ("" if self._depth == 1 else f"{self._depth}d"))(x)

    def _real(self, x):
        return x if self.dtype.is_complex else _m.cast(_m.real(x), self.dtype)

    def _filtered(self, x, values):
        # The rows of x are blocks of space; columns go before them.
        rank = len(x.shape)
        x = _ops.transpose(_m.cast(x, self._kind()), [*range(rank - 2), rank - 1, rank - 2])
        lead = x.shape.as_list()[:-1]
        x = self._transform("fft", _ops.reshape(x, [*lead, *self.block_shape]))
        values = _ops.expand_dims(values, len(values.shape) - self._depth)
        y = self._transform("ifft", x * values)
        y = _ops.reshape(y, [*y.shape.as_list()[:-self._depth], self.domain_dimension])
        rank = len(y.shape)
        return self._real(_ops.transpose(y, [*range(rank - 2), rank - 1, rank - 2]))

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        values = self._values()
        return self._filtered(_turned(x, adjoint_arg), _m.conj(values) if adjoint else values)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        values = self._values()
        return self._filtered(_turned(rhs, adjoint_arg), 1 / (_m.conj(values) if adjoint else values))

    def _axes(self):
        rank = len(self._spectrum.shape)
        return list(range(rank - self._depth, rank))

    def _trace(self):
        return self._real(_m.reduce_sum(self._values(), self._axes()))

    def _diag_part(self):
        n = self.domain_dimension
        return _ops.expand_dims(self._trace(), -1) / n + _ops.zeros([n], self.dtype)

    def _determinant(self):
        return self._real(_m.reduce_prod(self._values(), self._axes()))

    def _log_abs_determinant(self):
        out = _m.reduce_sum(_m.log(_m.abs(self._values())), self._axes())
        return _m.cast(out, self.dtype)

    def convolution_kernel(self, name="convolution_kernel"):
        """What the operator convolves with: the transform of the spectrum back."""
        return self._real(self._transform("ifft", self._values()))

    def assert_hermitian_spectrum(self, name="assert_hermitian_spectrum"):
        """Raises an InvalidArgumentError of a spectrum whose kernel is not real."""
        kernel = self._transform("ifft", self._values())
        self._assert("real", _np.allclose(_m.imag(kernel).numpy(), 0, atol=1e-5))


class LinearOperatorCirculant(_Circulant):
    """A convolution of vectors that goes round in a ring, by its spectrum [..., n]."""

    def __init__(self, spectrum, input_output_dtype=complex64, is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None,
                 is_square=True, name="LinearOperatorCirculant"):
        self._init(1, locals())


class LinearOperatorCirculant2D(_Circulant):
    """A convolution of planes that goes round at their edges, by its spectrum [..., height, width]."""

    def __init__(self, spectrum, input_output_dtype=complex64, is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None,
                 is_square=True, name="LinearOperatorCirculant2D"):
        self._init(2, locals())


class LinearOperatorCirculant3D(_Circulant):
    """A convolution of volumes that goes round at their faces, by its spectrum [..., depth, height, width]."""

    def __init__(self, spectrum, input_output_dtype=complex64, is_non_singular=None, is_self_adjoint=None,
                 is_positive_definite=None,
                 is_square=True, name="LinearOperatorCirculant3D"):
        self._init(3, locals())
