"""keras.distribution on Berth: which devices there are, and data parallelism over them."""
import berth as tf


def list_devices(device_type=None):
    """Names such as "gpu:0" of the devices; without a type accelerators, or CPUs where there are none."""
    names = [(d.device_type.lower(), d.name.rsplit(":", 1)[-1]) for d in tf.config.list_logical_devices()]
    wanted = device_type.lower() if device_type else next((k for k, _ in names if k != "cpu"), "cpu")
    return [f"{kind}:{number}" for kind, number in names if kind == wanted]


def get_device_count(device_type=None):
    """How many devices list_devices() names."""
    return len(list_devices(device_type))


def initialize(job_addresses=None, num_processes=None, process_id=None):
    """Nothing: the tasks of a cluster are those that the launcher's environment names (docs/cluster.md)."""


def num_processes():
    return 1


def process_id():
    return 0


_strategies = {}


def strategy():
    """The strategy of keras.distribution's DataParallel, where one over several devices is set; else None."""
    from keras.src.distribution import distribution_lib
    chosen = distribution_lib.distribution()
    if not isinstance(chosen, distribution_lib.DataParallel):
        return None
    names = [str(d) for d in chosen.device_mesh.devices.flatten()]
    if len(names) < 2:
        return None
    if id(chosen) not in _strategies:
        devices = ["/{}:{}".format(*n.upper().split(":")) for n in names]
        _strategies[id(chosen)] = chosen, tf.distribute.MirroredStrategy(devices)
    return _strategies[id(chosen)][1]


def distribute_value(value, layout):
    """The value: how variables are spread is the strategy's affair."""
    return value


distribute_tensor = distribute_variable = distribute_value


def _to_backend_mesh(device_mesh):
    return device_mesh


def _to_backend_layout(tensor_layout):
    if tensor_layout.device_mesh is None:
        raise ValueError("Cannot create sharding when device mesh is not set for TensorLayout.")
    return tensor_layout
