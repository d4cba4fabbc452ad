"""Datasets of Ray as datasets of Berth."""
import numpy as np
import pyarrow as pa

from berth import _core
from berth._tensor import TensorSpec, as_dtype, convert_to_tensor
from berth._data_options import AutoShardPolicy
from berth.data import Dataset, Options


def dataset(shard, *columns, batch_size, drop_remainder=False, prefetch_batches=1, local_shuffle_buffer_size=None,
            local_shuffle_seed=None):
    """The batches of ray.train.get_dataset_shard(), or of any DataIterator or Dataset of Ray, as a berth.data.Dataset.

    Elements are tuples of the columns in the order given, one column by itself, and without columns a dictionary of all.
    batch_size: rows of a step of all workers together, as in fit under a strategy; every worker reads batches of this size
    from its own shard, and a step takes a part of each worker's batch, so that each row is used once.
    Each pass reads the shard anew; where Ray splits a dataset, all workers must begin a pass before one of them gets a row.

    What is copied: nothing of numbers and fixed-shape tensors whose batch lies in one block of Ray: the tensors are views of
    Arrow's buffers in Ray's object store, which keeps the block while a tensor (or what cache() or shuffle() hold) needs
    it. Batches that span blocks, rows of a local shuffle, booleans, which Arrow has as bits, and text are copied once.
    Raises ValueError for columns that are missing, have nulls, or whose rows have several shapes.
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"berth.ray.dataset: batch_size={batch_size!r}; expected a number of rows, 1 or more")
    if not hasattr(shard, "iter_batches") or not hasattr(shard, "schema"):
        raise TypeError(f"berth.ray.dataset: got a {type(shard).__name__}; expected what ray.train.get_dataset_shard(name) "
                        "returns, or a ray.data.Dataset")
    schema = shard.schema()
    if schema is None:
        raise ValueError("berth.ray.dataset: the dataset has no schema, so it is empty; expected rows")
    types = dict(zip(schema.names, schema.types))
    names = columns or tuple(schema.names)
    for name in names:
        if name not in types:
            raise ValueError(f"berth.ray.dataset: there is no column {name!r}; the dataset has {', '.join(schema.names)}")
    specs = [_spec(name, types[name]) for name in names]

    def batches():
        for batch in shard.iter_batches(batch_size=batch_size, batch_format="numpy", drop_last=drop_remainder,
                                        prefetch_batches=prefetch_batches, local_shuffle_seed=local_shuffle_seed,
                                        local_shuffle_buffer_size=local_shuffle_buffer_size):
            tensors = [tensor_of(name, batch[name], spec) for name, spec in zip(names, specs)]
            yield _packed(names, columns, tensors)

    made = Dataset.from_generator(batches, output_signature=_packed(names, columns, specs))
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    return made.with_options(options)


def _packed(names, columns, values):
    if not columns:
        return dict(zip(names, values))
    return values[0] if len(values) == 1 else tuple(values)


def _spec(name, kind):
    """The spec of a batch of a column of an Arrow type."""
    shape = ()
    if isinstance(kind, pa.ExtensionType) and hasattr(kind, "shape"):
        shape, kind = tuple(kind.shape), getattr(kind, "scalar_type", None) or kind.value_type
        if any(d is None for d in shape):
            raise ValueError(f"berth.ray.dataset: the rows of column {name!r} have several shapes; expected one: pad them "
                             "in map_batches() of Ray")
    if not isinstance(kind, pa.DataType) or pa.types.is_nested(kind):
        raise ValueError(f"berth.ray.dataset: column {name!r} is of type {kind}; expected numbers, truth values, text, or "
                         "tensors of one shape (map_batches() that returns arrays of NumPy makes them)")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return TensorSpec([None, *shape], _core.string)
    try:
        return TensorSpec([None, *shape], as_dtype(np.dtype(kind.to_pandas_dtype())))
    except (NotImplementedError, TypeError) as error:
        raise ValueError(f"berth.ray.dataset: column {name!r} is of type {kind}, which no tensor has; cast it in "
                         "map_batches() of Ray") from error


def tensor_of(name, array, spec):
    """The array as a tensor: over its own memory where it is numbers in row-major order; else a copy."""
    if spec.dtype == _core.string:
        return convert_to_tensor(array)
    if array.dtype != np.dtype(spec.dtype.as_numpy_dtype) or array.shape[1:] != tuple(spec.shape[1:]):
        raise ValueError(f"berth.ray.dataset: a batch of column {name!r} is {array.dtype}{list(array.shape)}, the dataset's "
                         f"schema says {spec.dtype.name}{list(spec.shape)}; nulls make it so: fill them in map_batches() of Ray")
    if array.dtype == bool or not array.flags.c_contiguous or not array.size:
        return convert_to_tensor(array)
    return _core.from_dlpack(array)
