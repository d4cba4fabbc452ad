"""keras.distribution on Berth: which devices there are, and data and model parallelism over them."""
import re
import warnings

import berth as tf
from berth import _core


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


def divides(strategy):
    """Whether a strategy divides traced steps on whole batches, by layers or by examples; others run replicas."""
    kinds = tf.distribute.PipelineStrategy, tf.distribute.ModelParallel, tf.distribute.AutoStrategy, tf.distribute.PlannedStrategy
    return isinstance(strategy, kinds) or getattr(strategy, "sharding", "none") != "none"


_strategies = {}


def strategy():
    """The strategy of keras.distribution's distribution, where one over several devices or tasks is set; else None."""
    from keras.src.distribution import distribution_lib
    chosen = distribution_lib.distribution()
    if isinstance(chosen, distribution_lib.ModelParallel):
        return _model_parallel(chosen)
    if not isinstance(chosen, distribution_lib.DataParallel):
        return None
    if _joined and _joined[0].num_replicas_in_sync > _joined[0].__berth__.replicas_here:
        return _joined[0]
    return _made(chosen, tf.distribute.MirroredStrategy)


def _made(chosen, make):
    """The strategy of a distribution, made once; None for one device."""
    names = [str(d) for d in chosen.device_mesh.devices.flatten()]
    if len(names) < 2:
        return None
    if id(chosen) not in _strategies:
        _strategies[id(chosen)] = chosen, make(["/{}:{}".format(*n.upper().split(":")) for n in names])
    return _strategies[id(chosen)][1]


def _model_parallel(chosen):
    """Layouts are those that Keras finds for each variable, lay_out()."""
    if _joined:
        raise NotImplementedError("keras.distribution.ModelParallel: layers are divided over devices of one process; expected "
                                  "DataParallel after keras.distribution.initialize()")
    mesh = chosen.device_mesh
    if chosen.num_model_replicas == mesh.devices.size:  # no device has a part of a layer
        return _made(chosen, tf.distribute.MirroredStrategy)
    axes = list(zip(mesh.axis_names, mesh.shape))
    return _made(chosen, lambda devices: tf.distribute.ModelParallel(
        tf.distribute.LayoutMap(tf.distribute.Mesh(axes, devices)), batch_dim_name=chosen.batch_dim_name))


def lay_out(variable):
    """Divides a variable that was made in an open ModelParallel as its layout says: its own, or that of the map."""
    from keras.src.distribution import distribution_lib
    strategy = tf.distribute.get_strategy()
    planned = isinstance(strategy, tf.distribute.PlannedStrategy)
    if getattr(strategy, "layout_map", None) is None and not planned:
        return
    chosen = distribution_lib.distribution()
    if variable._layout is None and isinstance(chosen, distribution_lib.ModelParallel):
        variable._layout = chosen.get_tensor_layout(variable.path)
    if variable._layout is not None:
        axes = [name or "" for name in getattr(variable._layout, "axes", variable._layout)]
        if any(axes):
            _core.lay_out(strategy.__berth__, variable._value, axes)
        return
    axis = _core.split_axis(variable._value)  # by the strategy's own map
    if axis >= 0 and planned:
        variable._layout = tuple("model" if d == axis else None for d in range(len(variable.shape)))
    elif axis >= 0:
        names = strategy.layout_map.mesh.dim_names
        divides = next(n for n in names if n != strategy.batch_dim_name and strategy.layout_map.mesh.dim_size(n) > 1)
        variable._layout = tuple(divides if d == axis else None for d in range(len(variable.shape)))


def warn_of_unmatched(model):
    """Says which keys of a layout map of Keras match no variable of a model: what they meant is whole on each device."""
    from keras.src.distribution import distribution_lib
    chosen = distribution_lib.distribution()
    if not isinstance(chosen, distribution_lib.ModelParallel):
        return
    paths = [v.path for v in model.variables]
    for key in chosen._layout_map:
        if not any(key == path or re.fullmatch(key, path) for path in paths):
            warnings.warn(f"ModelParallel: the key {key!r} of the layout map matches no variable of {model.name!r}; expected "
                          "the path of one, or a regular expression for the whole of it", stacklevel=2)


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
