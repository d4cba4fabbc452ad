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


_joined = []  # the strategy over the tasks of initialize()


def initialize(job_addresses=None, num_processes=None, process_id=None):
    """Joins the tasks of these addresses, or those that the launcher's environment names (docs/cluster.md)."""
    resolver = None
    if job_addresses is not None:
        addresses = job_addresses.split(",")
        if process_id is None or num_processes not in (None, len(addresses)):
            raise ValueError(f"initialize: {len(addresses)} addresses, num_processes={num_processes}, process_id={process_id}; "
                             "expected the address of each process, and which of them this is")
        spec = tf.train.ClusterSpec({"worker": addresses})
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=int(process_id))
    _joined[:] = [tf.distribute.MultiWorkerMirroredStrategy(resolver)]


def num_processes():
    """One: tasks have the same data, of which the strategy cuts batches, so Keras need not part them."""
    return 1


def process_id():
    return 0


_strategies = {}


def strategy():
    """The strategy of keras.distribution's DataParallel, where one over several devices or tasks is set; else None."""
    from keras.src.distribution import distribution_lib
    chosen = distribution_lib.distribution()
    if not isinstance(chosen, distribution_lib.DataParallel):
        return None
    if _joined and _joined[0].num_replicas_in_sync > _joined[0].__berth__.replicas_here:
        return _joined[0]
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
