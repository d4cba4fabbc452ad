"""tf.config: which devices there are and how they are set up."""
import os as _os
import types as _types
import typing as _typing

from berth._core import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice
from berth._core import config as _engine
from berth._frames import hiding as _hiding
from berth._lazy import Names as _Names


def _of_type(listed, device_type):
    # Of types that only other machines have, such as "TPU", there is none.
    return listed(device_type or "") if device_type in (None, "", "CPU", "GPU") else [
        d for d in listed("") if d.device_type == device_type]


@_hiding
def list_physical_devices(device_type=None):
    """What the machine has: a list of PhysicalDevice, of one type ("CPU", "GPU") or of all; of other types none."""
    return _of_type(_engine.list_physical_devices, device_type)


@_hiding
def list_logical_devices(device_type=None):
    """What the program has: a list of LogicalDevice, of one type or of all. Makes the devices."""
    return _of_type(_engine.list_logical_devices, device_type)


@_hiding
def get_visible_devices(device_type=None):
    """The physical devices that become devices, of one type or of all."""
    return _of_type(_engine.get_visible_devices, device_type)


@_hiding
def set_visible_devices(devices, device_type=None):
    """Makes only these physical devices become devices; one, or a list. FailedPreconditionError once there are devices."""
    given = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    _engine.set_visible_devices([d for d in given if d is not None], device_type or "")


@_hiding
def get_memory_growth(device):
    """Whether a GPU takes memory as it needs it (True, the default) or all of it at once."""
    return _engine.get_memory_growth(device)


@_hiding
def set_memory_growth(device, enable):
    """Has a physical GPU take memory as it needs it, or all at once. FailedPreconditionError once there are devices."""
    _engine.set_memory_growth(device, enable)


@_hiding
def get_logical_device_configuration(device):
    """The parts that a physical device is split into, a list of LogicalDeviceConfiguration."""
    return _engine.get_logical_device_configuration(device)


@_hiding
def set_logical_device_configuration(device, logical_devices):
    """Splits a physical device: each LogicalDeviceConfiguration becomes a device (memory in MiB, cores "0-3").

    CPU devices for which there are too few cores share them.
    """
    parts = list(logical_devices)
    if device.device_type == "CPU" and len(parts) > len(_os.sched_getaffinity(0)) and not any(p.cores for p in parts):
        for part in parts:
            part.shared = True
    _engine.set_logical_device_configuration(device, parts)


@_hiding
def set_device_list(devices):
    """Splits the CPU into as many devices as "CPUx2" says, with its cores shared out."""
    _engine.set_device_list(devices)


@_hiding
def set_simulated_devices(devices):
    """Adds simulated devices, "GPUx2": memory of their own, kernels of the CPU, times of their own clock."""
    _engine.set_simulated_devices(devices)


@_hiding
def set_soft_device_placement(enabled):
    """Whether an op that cannot run where it was asked for runs elsewhere, with a warning; else it is an error."""
    _engine.set_soft_device_placement(enabled)


@_hiding
def get_soft_device_placement():
    """Whether an op that cannot run where it was asked for runs elsewhere."""
    return _engine.get_soft_device_placement()


@_hiding
def set_placement_policy(name):
    """Who places traced functions: "" the rules, "auto" the planner (docs/planner.md); "fit": the rules,
    and steps that do not fit a device compute results again (docs/how-to/will-it-fit.md)."""
    _engine.set_placement_policy(name)


@_hiding
def set_device_policy(device_policy):
    """What eager ops do with inputs on another device: "silent" copies (as None), "warn", "explicit" is an error."""
    _engine.set_device_policy(device_policy)


@_hiding
def get_device_policy():
    """What eager ops do with inputs on another device: "silent", "warn" or "explicit"."""
    return _engine.get_device_policy()


@_hiding
def get_memory_info(device):
    """Bytes on a device ("GPU:0"): a dictionary of current, peak, reserved and limit (0: none)."""
    return _engine.get_memory_info(device)


@_hiding
def get_memory_usage(device):
    """Bytes in use on a device: "current" of get_memory_info()."""
    return _engine.get_memory_info(device)["current"]


class MemoryHolder(_typing.NamedTuple):
    """What holds memory: an op's results, a variable, a value in a plan; line: "file:line", "" where it is unknown."""

    name: str
    line: str
    bytes: int
    blocks: int


@_hiding
def get_memory_holders(device, peak=False):
    """What holds memory of a device, a list of MemoryHolder, the largest first: now, or when most was in use.

    The peak is noted while track_memory_peaks(True) holds, within 1 %.
    """
    return [MemoryHolder(*row) for row in _engine.get_memory_holders(device, bool(peak))]


@_hiding
def track_memory_peaks(enabled):
    """Notes from now on, or no longer, who held memory when most was in use; BERTH_LEAK_REPORT=1 begins it, too."""
    _engine.track_memory_peaks(bool(enabled))


@_hiding
def memory_report():
    """get_memory_holders() of every device as text. BERTH_LEAK_REPORT=1 prints it when the process ends."""
    return _engine.memory_report()


@_hiding
def set_memory_snapshot(path):
    """Where a full device writes every block with its line, for `berth report`.

    None: where BERTH_MEMORY_SNAPSHOT says, else beside the file of BERTH_PROFILE, else nowhere.
    """
    _engine.set_memory_snapshot("" if path is None else _os.fspath(path))


@_hiding
def write_memory_snapshot(device, path):
    """Writes such a file now."""
    _engine.write_memory_snapshot(device, _os.fspath(path))


@_hiding
def reset_memory_stats(device):
    """Sets the peak of get_memory_info() to what is in use."""
    _engine.reset_memory_stats(device)


@_hiding
def reset_device_error(device):
    """Clears the error of a device that has failed, so that it accepts work again."""
    _engine.reset_device_error(device)


@_hiding
def set_intra_op_parallelism_threads(num_threads):
    """The threads of a CPU device that share one op; 0: one for each core."""
    _engine.set_intra_op_parallelism_threads(num_threads)


@_hiding
def get_intra_op_parallelism_threads():
    """The threads of a CPU device that share one op; 0: one for each core."""
    return _engine.get_intra_op_parallelism_threads()


@_hiding
def set_inter_op_parallelism_threads(num_threads):
    """The ops of a CPU device that may run beside each other; 0: as the engine chooses."""
    _engine.set_inter_op_parallelism_threads(num_threads)


@_hiding
def get_inter_op_parallelism_threads():
    """The ops of a CPU device that may run beside each other; 0: as the engine chooses."""
    return _engine.get_inter_op_parallelism_threads()


_said = {"jit": "", "options": {}}


def _set_jit(enabled):
    """Accepted as TensorFlow does: every traced function is compiled by Berth itself."""
    _said["jit"] = "autoclustering" if enabled is True else enabled or ""


def _get_jit():
    """What set_jit() said last."""
    return _said["jit"]


def _set_experimental_options(options):
    """Accepted as TensorFlow does: every plan is optimized."""
    _said["options"].update(options)


def _get_experimental_options():
    """What set_experimental_options() said."""
    return dict(_said["options"])


_all = {n: v for n, v in globals().items() if not n.startswith("_")}
experimental = _Names(
    "tf.config.experimental", **_all, VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    set_virtual_device_configuration=set_logical_device_configuration,
    get_virtual_device_configuration=get_logical_device_configuration)
experimental._later({"_config_more": "enable_op_determinism get_device_details enable_tensor_float_32_execution "
                                     "tensor_float_32_execution_enabled set_synchronous_execution get_synchronous_execution"})
threading = _Names("tf.config.threading", **{n: v for n, v in _all.items() if n.endswith("_threads")})
optimizer = _Names(
    "tf.config.optimizer", set_jit=_set_jit, get_jit=_get_jit, set_experimental_options=_set_experimental_options,
    get_experimental_options=_get_experimental_options)

_eager = [False]
_checks = [False]
_dumps = [False]


def _check_numerics(on):
    _checks[0] = on


def _dump_debug_info(on):
    _dumps[0] = on


def run_functions_eagerly(run_eagerly):
    """Makes tf.function run op by op, for debuggers."""
    _eager[0] = bool(run_eagerly)


def functions_run_eagerly():
    """Whether tf.function runs op by op."""
    return _eager[0] or _checks[0] or _dumps[0]


experimental_run_functions_eagerly, experimental_functions_run_eagerly = run_functions_eagerly, functions_run_eagerly
