"""tf.config: which devices there are and how they are set up."""
import os as _os
import types as _types

from berth._core import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice
from berth._core import config as _engine
from berth._frames import exported as _exported

_config = _types.SimpleNamespace(**_exported({n: v for n, v in vars(_engine).items() if not n.startswith("_")}))
globals().update(vars(_config))


def set_visible_devices(devices, device_type=""):
    """Makes only these physical devices become devices; one, or a list of them."""
    given = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    _config.set_visible_devices([d for d in given if d is not None], device_type or "")


def set_logical_device_configuration(device, logical_devices):
    """Splits a physical device; CPU devices for which there are too few cores share them."""
    parts = list(logical_devices)
    if device.device_type == "CPU" and len(parts) > len(_os.sched_getaffinity(0)) and not any(p.cores for p in parts):
        for part in parts:
            part.shared = True
    _config.set_logical_device_configuration(device, parts)


experimental = _types.SimpleNamespace(
    **{**vars(_config), "set_visible_devices": set_visible_devices,
       "set_logical_device_configuration": set_logical_device_configuration},
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    set_virtual_device_configuration=set_logical_device_configuration,
    get_virtual_device_configuration=_config.get_logical_device_configuration,
    set_synchronous_execution=lambda enable: None)
threading = _types.SimpleNamespace(
    set_intra_op_parallelism_threads=_config.set_intra_op_parallelism_threads,
    get_intra_op_parallelism_threads=_config.get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads=_config.set_inter_op_parallelism_threads,
    get_inter_op_parallelism_threads=_config.get_inter_op_parallelism_threads)

optimizer = _types.SimpleNamespace(  # every plan is compiled and optimized: accepted as TensorFlow does
    set_jit=lambda enabled: None, get_jit=lambda: "", set_experimental_options=lambda options: None,
    get_experimental_options=dict)

_eager = [False]


def run_functions_eagerly(run_eagerly):
    """Makes tf.function run op by op, for debuggers."""
    _eager[0] = bool(run_eagerly)


def functions_run_eagerly():
    return _eager[0]
