"""tf.errors."""
from berth._core import (AbortedError, AlreadyExistsError, CancelledError, DataLossError,
                         DeadlineExceededError, FailedPreconditionError, InternalError,
                         InvalidArgumentError, NotFoundError, OpError, OutOfRangeError,
                         PermissionDeniedError, ResourceExhaustedError, UnavailableError,
                         UnimplementedError, UnknownError)

__all__ = [name for name in dir() if name.endswith("Error")]
