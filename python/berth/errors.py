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


__all__ = [name for name in dir() if name.endswith("Error")]

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS = range(8, 16)
UNAUTHENTICATED = 16
__all__ += [name for name in dir() if name.isupper()]


def _init(self, *args, node_def=None, op=None, message=None, error_code=None):
    """The message alone, or as in TensorFlow (node_def, op, message); of an OpError error_code, too."""
    if len(args) > 1:
        node_def, op, *rest = args
        message, error_code = (*rest, *(message, error_code)[len(rest):])[:2]
    elif args:
        message = args[0]
    BaseException.__init__(self, *(() if message is None else (message,)))
    self._of = node_def, op, error_code


def _described(error, i):
    return error.__dict__.get("_of", (None, None, None))[i]


OpError.__init__ = _init
OpError.message = property(lambda self: str(self.args[0]) if self.args else "", doc="What went wrong, and where.")
OpError.node_def = property(lambda self: _described(self, 0), doc="What the program gave; the engine says it in the message.")
OpError.op = property(lambda self: _described(self, 1), doc="What the program gave; the engine says it in the message.")
OpError.error_code = property(lambda self: self._code if _described(self, 2) is None else _described(self, 2),
                              doc="Its number, such as tf.errors.NOT_FOUND.")
OpError.experimental_payloads = property(lambda self: {}, doc="Empty.")
OpError._code = UNKNOWN
for _name in __all__:
    _code = globals().get("".join("_" + c if c.isupper() else c for c in _name[:-5])[1:].upper())
    if _name.endswith("Error") and isinstance(_code, int):
        globals()[_name]._code = _code
