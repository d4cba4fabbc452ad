"""tf.dtypes."""
from berth._core import DType
from berth._tensor import (as_dtype, bfloat16, bool, complex64, complex128, double, float16, float32,
                           float64, half, int8, int16, int32, int64, string, uint8, uint16, uint32, uint64)
from berth._core import ops as _ops

cast = _ops.math.cast
complex = _ops.math.complex


def saturate_cast(value, dtype, name=None):
    """tf.saturate_cast(): numbers in another dtype, those outside of its range as the nearest that it has."""
    from berth import _more
    return _more.saturate_cast(value, dtype)
