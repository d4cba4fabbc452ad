"""The version of this package."""
from keras_berth import __version__  # noqa: F401
