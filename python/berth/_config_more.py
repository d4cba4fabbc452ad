"""tf.config.experimental where Berth has one way of doing it."""
from berth import _core

_said = {"tf32": True, "synchronous": None}


def enable_op_determinism():
    """Nothing is left to do: the same program on the same devices always gives the same bits (docs/distribute.md).

    Seeds of random numbers are the program's: tf.keras.utils.set_random_seed() sets them.
    """


def get_device_details(device):
    """What is known of a PhysicalDevice: device_name of a GPU; nothing of others."""
    if not isinstance(device, _core.PhysicalDevice):
        raise ValueError(f"get_device_details: {device!r} is no device; expected one of tf.config.list_physical_devices()")
    return {"device_name": device.name} if device.device_type == "GPU" else {}


def enable_tensor_float_32_execution(enabled):
    """Accepted as TensorFlow does: kernels compute float32 in float32, which is more exact than what this allows."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enable_tensor_float_32_execution: enabled is {enabled!r}; expected True or False")
    _said["tf32"] = enabled


def tensor_float_32_execution_enabled():
    """What enable_tensor_float_32_execution() said last; True before."""
    return _said["tf32"]


def set_synchronous_execution(enable):
    """Accepted as TensorFlow does: results are waited for where they are read."""
    _said["synchronous"] = enable


def get_synchronous_execution():
    """What set_synchronous_execution() said last; True before."""
    return True if _said["synchronous"] is None else bool(_said["synchronous"])
