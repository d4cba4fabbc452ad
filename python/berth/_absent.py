"""Classes that programs name, to ask what a value is, and of which Berth has none: to make one is an error."""
from berth import _core
from berth._never import NEVER
from berth.distribute import Strategy


def _class(path, base=object):
    why = next(why for start, why in NEVER if path == start)

    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"Berth has no {path}: {why}")
    return type(path.rpartition(".")[2], (base,), {"__init__": refuse, "__doc__": f"Nothing is one: {why}.", "__module__": "berth"})


TPUStrategy = _class("tf.distribute.TPUStrategy", Strategy)
TPUClusterResolver = _class("tf.distribute.cluster_resolver.TPUClusterResolver")
Graph, Operation = _class("tf.Graph"), _class("tf.Operation")


def _not_of_the_engine(what, op_type):
    if not isinstance(op_type, str):
        raise TypeError(f"{what}: op_type must be the name of an op, not {op_type!r}")
    if op_type in _core.op_names():
        raise NotImplementedError(f"{what}: the op {op_type} of the engine has its own rule; tf.custom_gradient gives a function one")


def no_gradient(op_type):
    """Says that an op of a library has none, which is so from the start; NotImplementedError of the engine's ops."""
    _not_of_the_engine("tf.no_gradient", op_type)


class RegisterGradient:
    """A decorator of the gradient of an op that another library has; NotImplementedError of the engine's ops.

    Ops that tf.load_op_library() loads bring their gradients along.
    """

    def __init__(self, op_type):
        _not_of_the_engine("tf.RegisterGradient", op_type)

    def __call__(self, f):
        return f
