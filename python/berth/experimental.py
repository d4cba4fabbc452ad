"""tf.experimental."""
from berth import _core
from berth._core import ops as _ops


class dlpack:
    @staticmethod
    def from_dlpack(value):
        import numpy
        return _core.convert(numpy.from_dlpack(value), None)

    @staticmethod
    def to_dlpack(tensor):
        return tensor.__dlpack__()
