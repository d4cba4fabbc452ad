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


_LATER = {"Optional": "data", "DynamicRaggedShape": "_ragged_shape", "RowPartition": "_ragged_shape",
          **dict.fromkeys(("ExtensionType", "BatchableExtensionType", "ExtensionTypeSpec", "extension_type"), "_extension"),
          **dict.fromkeys(("dispatch_for_api", "dispatch_for_unary_elementwise_apis",
                           "dispatch_for_binary_elementwise_apis", "dispatch_for_binary_elementwise_assert_apis",
                           "unregister_dispatch_for"), "_dispatch"),
          **dict.fromkeys(("async_scope", "async_clear_error", "function_executor_type", "enable_strict_mode"),
                          "_experimental_more")}


def __getattr__(name):
    import importlib
    if name == "numpy":
        return importlib.import_module("berth.experimental.numpy")
    if name in _LATER:
        return getattr(importlib.import_module(f"berth.{_LATER[name]}"), name)
    if name.startswith("__"):
        raise AttributeError(name)
    from berth._tensor import unknown_name
    raise AttributeError(unknown_name("berth.experimental", name, globals()))
