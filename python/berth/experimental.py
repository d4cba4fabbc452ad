"""tf.experimental."""
from berth import _core

_HOST = (1, 3)  # DLPack's kinds of devices: memory of the host, and such that CUDA has pinned


class dlpack:
    """Tensors that share memory with arrays of PyTorch, JAX, CuPy, NumPy."""

    @staticmethod
    def from_dlpack(value):
        """Returns a tensor over the memory of an array, or of the capsule of one. Writes to the
        array change the tensor."""
        kind = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else _HOST[0]
        if kind not in _HOST:
            try:
                value = value.__dlpack__(dl_device=(_HOST[0], 0), max_version=(1, 0))
            except (TypeError, BufferError, ValueError, RuntimeError) as error:
                raise ValueError("from_dlpack: the array is in memory of another device, and its library does "
                                 "not copy it to the host (cupy.asnumpy(x), x.cpu()): " + str(error)) from error
        return _core.from_dlpack(value)

    @staticmethod
    def to_dlpack(tensor):
        """Returns a capsule over the memory of the tensor. Nobody may write to it."""
        return tensor.__dlpack__()


def __getattr__(name):
    if name == "Optional":
        from berth.data import Optional
        return Optional
    if name.startswith("__"):
        raise AttributeError(name)
    from berth._tensor import unknown_name
    raise AttributeError(unknown_name("berth.experimental", name, globals()))
