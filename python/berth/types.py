"""tf.types: classes for annotations and protocols."""
import abc as _abc
import typing as _typing

from berth import _core
from berth._concrete import ConcreteFunction
from berth._function import Function
from berth._lazy import Names as _Names


class TraceType(metaclass=_abc.ABCMeta):
    """What obj.__tf_tracing_type__(context) returns: equal ones share the traces of a tf.function."""

    @_abc.abstractmethod
    def is_subtype_of(self, other):
        """True if what has the type `other` may take values of this one."""

    @_abc.abstractmethod
    def most_specific_common_supertype(self, others):
        """The type of all, or None."""

    @_abc.abstractmethod
    def placeholder_value(self, placeholder_context):
        """What the function is traced with."""

    @_abc.abstractmethod
    def __hash__(self):
        pass

    @_abc.abstractmethod
    def __eq__(self, other):
        pass


class SupportsTracingProtocol(metaclass=_abc.ABCMeta):
    """A class with its own TraceType."""

    @_abc.abstractmethod
    def __tf_tracing_type__(self, context):
        pass


TensorLike = _typing.Union[_core.Tensor, _core.Variable, int, float, bool, str, bytes, complex, tuple, list]
experimental = _Names(
    "tf.types.experimental", TraceType=TraceType, SupportsTracingProtocol=SupportsTracingProtocol, TensorLike=TensorLike, Callable=Function,
    ConcreteFunction=ConcreteFunction, GenericFunction=Function, PolymorphicFunction=Function,
    AtomicFunction=ConcreteFunction, distributed=_Names("tf.types.experimental.distributed"))
experimental.distributed._later({"distribute": "PerReplica Mirrored"})
