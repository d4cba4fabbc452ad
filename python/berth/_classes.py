"""What help() and inspect.signature() say of the engine's classes and errors."""
from berth import _core
from berth._tensor import AnyShape


class _Signature:
    """The signature of a function as that of a class; made when it is asked for."""

    def __init__(self, cls, of):
        self._cls, self._of = cls, of

    def __get__(self, instance, owner):
        if instance is not None or owner is not self._cls:
            raise AttributeError("__signature__")
        import inspect
        return inspect.signature(self._of)


def describe(cls, doc, of=lambda: None):
    """Gives a class a docstring and the signature of a function."""
    cls.__doc__, cls.__signature__ = doc, _Signature(cls, of)


describe(_core.DType, "An element type, such as tf.float32: name, size in bytes, min, max; made by tf.as_dtype().")
describe(_core.Tensor, "An array on a device, which does not change: shape, dtype, device; made by ops and tf.constant().")
describe(_core.TensorShape, "The lengths of dimensions, None where one is not known; of a list, a number or another shape.",
         lambda dims: None)
describe(AnyShape, _core.TensorShape.__doc__, lambda dims: None)
describe(_core.Variable, "A tensor that can be assigned. initial_value: a tensor, array, number, list, or a function that "
                         "returns one. It lives in the scope of tf.device where it is made.",
         lambda initial_value, trainable=True, name="Variable", dtype=None, synchronization=0, aggregation=0: None)
describe(_core.LogicalDevice, "A device of the program: name, device_type; from tf.config.list_logical_devices().")
describe(_core.PhysicalDevice, "A device of the machine: name, device_type; from tf.config.list_physical_devices().")
describe(_core.LogicalDeviceConfiguration, 'A part of a physical device: memory_limit in MiB (None: no limit), for CPUs '
                                           'cores ("0-3") and the number of workers (0: one for each core).',
         lambda memory_limit=None, cores="", workers=0: None)
for _name, _doc in {
        "OpError": "Any error of the engine.",
        "CancelledError": "What ran was interrupted.",
        "UnknownError": "An error without a class of its own, such as one of a function of the user's.",
        "InvalidArgumentError": "A value, shape or dtype that does not fit; a ValueError, too.",
        "DeadlineExceededError": "Something took longer than it was given.",
        "NotFoundError": "A file, name or device that does not exist.",
        "AlreadyExistsError": "Something that is made a second time.",
        "PermissionDeniedError": "A file or folder that may not be read or written.",
        "ResourceExhaustedError": "Memory, or another resource, is used up; the text says whose and how much.",
        "FailedPreconditionError": "A call that something else had to come before.",
        "AbortedError": "What ran was ended because of another task.",
        "OutOfRangeError": "The end of the data, or a place outside.",
        "UnimplementedError": "Something that Berth does not do.",
        "InternalError": "An error of Berth itself: please report it.",
        "UnavailableError": "A task or a service that does not answer.",
        "DataLossError": "A file that is damaged."}.items():
    describe(getattr(_core, _name), _doc, lambda message="": None)
