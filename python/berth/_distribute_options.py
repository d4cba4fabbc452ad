"""Options of tf.distribute, and what functions of its users are told."""
import collections as _collections
import enum as _enum


class CrossDeviceOps:
    """Accepted as TensorFlow does: how gradients are added follows from devices and links."""

    def __init__(self, num_packs=1, reduce_to_device=None, accumulation_fn=None):
        pass


class NcclAllReduce(CrossDeviceOps):
    """Accepted; see CrossDeviceOps."""


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Accepted; see CrossDeviceOps."""


class ReductionToOneDevice(CrossDeviceOps):
    """Accepted; see CrossDeviceOps."""


class CommunicationImplementation(_enum.Enum):
    """Accepted as TensorFlow does: between tasks there is one."""
    AUTO, RING, NCCL = "AUTO", "RING", "NCCL"


class CommunicationOptions:
    """How tasks exchange gradients: in packs of so many bytes (0: 4 MiB), and how long a step may take (None: any time)."""

    def __init__(self, bytes_per_pack=0, timeout_seconds=None, implementation=CommunicationImplementation.AUTO):
        if bytes_per_pack < 0:
            raise ValueError(f"bytes_per_pack is {bytes_per_pack}; expected at least 0")
        self.bytes_per_pack, self.timeout_seconds, self.implementation = bytes_per_pack, timeout_seconds, implementation


class InputReplicationMode(_enum.Enum):
    """Which of them calls the function of distribute_datasets_from_function(); here it is one per task."""
    PER_WORKER, PER_REPLICA = "PER_WORKER", "PER_REPLICA"


class InputOptions(_collections.namedtuple("InputOptions", [
        "experimental_fetch_to_device", "experimental_replication_mode", "experimental_place_dataset_on_device",
        "experimental_per_replica_buffer_size"], defaults=[True, InputReplicationMode.PER_WORKER, False, 1])):
    """Accepted as TensorFlow does: the strategy splits batches and copies them ahead."""


class RunOptions(_collections.namedtuple("RunOptions", [
        "experimental_enable_dynamic_batch_size", "experimental_bucketizing_dynamic_shape", "experimental_xla_options"],
        defaults=[True, False, None])):
    """Accepted as TensorFlow does: run() traces its function for the sizes that it gets."""


class ValueContext:
    """What the function of experimental_distribute_values_from_function() is told."""

    def __init__(self, replica_id_in_sync_group=0, num_replicas_in_sync=1):
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync
