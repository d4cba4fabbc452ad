"""tf.compat: texts as bytes or str, sizes of shapes, names of version 1 whose form is the same."""
import datetime as _datetime
import importlib as _importlib
import numbers as _numbers
import os as _os

import numpy as _np

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "dimension_at_index", "dimension_value", "forward_compatibility_horizon",
           "forward_compatible", "path_to_str"]

bytes_or_text_types = (bytes, str)
integral_types, real_types = (_numbers.Integral, _np.integer), (_numbers.Real, _np.integer, _np.floating)
complex_types = (_numbers.Complex, _np.number)


def as_bytes(bytes_or_text, encoding="utf-8"):
    """The bytes of a str, or of bytes."""
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if not isinstance(bytes_or_text, bytes_or_text_types):
        raise TypeError(f"expected bytes or a str, not {bytes_or_text!r}")
    return bytes_or_text.encode(encoding) if isinstance(bytes_or_text, str) else bytes_or_text


def as_text(bytes_or_text, encoding="utf-8"):
    """The str of bytes, or of a str."""
    if not isinstance(bytes_or_text, bytes_or_text_types):
        raise TypeError(f"expected bytes or a str, not {bytes_or_text!r}")
    return bytes_or_text.decode(encoding) if isinstance(bytes_or_text, bytes) else bytes_or_text


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    """The str of bytes, or str() of another value."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


def dimension_value(dimension):
    """The size itself, an int or None: shapes have no others."""
    return dimension


def dimension_at_index(shape, index):
    """The size of an axis, None where it or their number is not known."""
    return None if shape.rank is None else shape[index]


def path_to_str(path):
    """The str of a path, or what was given."""
    return _os.fspath(path) if hasattr(path, "__fspath__") else path


def forward_compatible(year, month, day):
    """True: what is written now need not be read by an older Berth."""
    _datetime.date(year, month, day)
    return True


class forward_compatibility_horizon:
    """A block of which nothing differs, as in tests of TensorFlow."""

    def __init__(self, year, month, day):
        _datetime.date(year, month, day)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def __getattr__(name):
    if name == "v1":
        return _importlib.import_module("berth._compat_v1")
    if name == "v2":
        return _importlib.import_module("berth")
    from berth._tensor import unknown_name
    raise AttributeError(unknown_name("berth.compat", name, globals()))
