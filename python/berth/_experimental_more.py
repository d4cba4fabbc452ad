"""tf.experimental where Berth has one way of doing it."""
import contextlib


@contextlib.contextmanager
def async_scope():
    """A block as any other: ops run ahead of the program in any case, and errors are raised where results are read."""
    yield


def async_clear_error():
    """Nothing is left to do: an error belongs to the results that it made impossible."""


@contextlib.contextmanager
def function_executor_type(executor_type):
    """A block in which functions run as TensorFlow's executor of this name would; Berth has one. None, "" or a name."""
    if executor_type is not None and not isinstance(executor_type, str):
        raise TypeError(f"function_executor_type: {executor_type!r}; expected a name, or None")
    yield


def enable_strict_mode():
    """Makes warnings of Python that say what is deprecated errors."""
    import warnings
    warnings.filterwarnings("error", category=DeprecationWarning, module="berth")
