"""tf.dtypes."""
from berth._core import DType
from berth._tensor import (as_dtype, bfloat16, bool, complex64, complex128, double, float16, float32,
                           float64, half, int8, int16, int32, int64, string, uint8, uint16, uint32, uint64)


def cast(x, dtype, name=None):
    """tf.cast(): the values in another dtype."""
    import berth
    return berth.cast(x, dtype)


def complex(real, imag, name=None):
    """tf.complex(): the complex numbers with these parts."""
    import berth
    return berth.complex(real, imag)


def saturate_cast(value, dtype, name=None):
    """tf.saturate_cast(): numbers in another dtype, those outside of its range as the nearest that it has."""
    import berth
    return berth.saturate_cast(value, dtype)
