"""tf.errors."""
from berth._core import (AbortedError, AlreadyExistsError, CancelledError, DataLossError,
                         DeadlineExceededError, FailedPreconditionError, InternalError,
                         InvalidArgumentError, NotFoundError, OpError, OutOfRangeError,
                         PermissionDeniedError, ResourceExhaustedError, UnavailableError,
                         UnimplementedError, UnknownError)



class OperatorNotAllowedInGraphError(TypeError):
    """Python asks for a value that a traced function does not have; for programs that catch TensorFlow's error."""

    def __init__(self, message=""):
        super().__init__(message)


class UnauthenticatedError(OpError):
    """A task that does not know the secret of its cluster; for programs that catch TensorFlow's error."""

    def __init__(self, message=""):
        super().__init__(message)


__all__ = [name for name in dir() if name.endswith("Error")]
