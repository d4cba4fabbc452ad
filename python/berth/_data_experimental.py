"""tf.data.experimental: functions on data sets, and those for apply()."""
from berth import _core
from berth._structure import flatten, pack
from berth._tensor import TensorSpec, convert_to_tensor
from berth.data import AUTOTUNE, Dataset, _nested


def Counter(start=0, step=1, dtype=_core.int64):
    """start, start + step, ... without end."""
    return Dataset.counter(start, step, dtype)


def enumerate_dataset(start=0):
    """For apply(): pairs of a number, from start on, and the element."""
    return lambda d: d.enumerate(start)


def unique():
    """For apply(): the different elements."""
    return lambda d: d.unique()


def get_single_element(dataset):
    """The only element; InvalidArgumentError where there are none or several."""
    return dataset.get_single_element()


def cardinality(dataset):
    """The number of elements, an int64 scalar; INFINITE_CARDINALITY, UNKNOWN_CARDINALITY."""
    return dataset.cardinality()


def assert_cardinality(expected_cardinality):
    """For apply(): says how many elements there are, which is checked."""
    return lambda d: d._same(d.__berth__.assert_cardinality(expected_cardinality))


def ignore_errors(log_warning=False):
    """For apply(): leaves out the elements that are errors, with a warning if asked for."""
    return lambda d: d.ignore_errors(log_warning)


def prefetch_to_device(device, buffer_size=AUTOTUNE):
    """For apply(), last: elements are on a device, or on their way, before they are needed."""
    return lambda d: d._same(d.__berth__.prefetch_to_device(device, buffer_size))


def copy_to_device(target_device, source_device="/cpu:0"):
    """For apply(): elements are copied to a device."""
    return lambda d: d._same(d.__berth__.copy_to_device(target_device))


def dense_to_ragged_batch(batch_size, drop_remainder=False, row_splits_dtype=_core.int64):
    """For apply(): batches of elements of different lengths, as RaggedTensors."""
    return lambda d: d.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    """For apply(): map(), then batch()."""
    return lambda d: d.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    """For apply(): shuffle(), then repeat()."""
    return lambda d: d.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(map_func, cycle_length, block_length=1, **options):
    """For apply(): interleave()."""
    return lambda d: d.interleave(map_func, cycle_length, block_length)


def from_list(elements, name=None):
    """The elements of a list, which have one structure."""
    if not isinstance(elements, list) or not elements:
        raise ValueError(f"from_list: elements is {elements!r}; expected a list with an element at least")
    first, *others = [[convert_to_tensor(v) for v in flatten(_nested(e))[0]] for e in elements]
    shapes = [v.shape for v in first]
    for leaves in others:
        shapes = [s.most_specific_compatible_shape(v.shape) for s, v in zip(shapes, leaves)]
    spec = pack(flatten(_nested(elements[0]))[1], [TensorSpec(s, v.dtype) for s, v in zip(shapes, first)])
    return Dataset.from_generator(lambda: iter(elements), output_signature=spec)


def get_structure(dataset_or_iterator):
    """The element_spec of a data set or an iterator."""
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator):
    """The next element as an Optional, which is empty at the end."""
    return iterator.get_next_as_optional()


def at(dataset, index):
    """The element of this number."""
    return next(iter(dataset.skip(int(index))))


def save(dataset, path, compression=None, shard_func=None):
    """Writes the elements into a folder, for load()."""
    dataset.save(path, compression, shard_func)


def load(path, element_spec=None, compression=None, reader_func=None):
    """The data set that save() wrote."""
    return Dataset.load(path, element_spec, compression, reader_func)


def _for_apply(name):
    def made(*args, **options):
        return lambda d: getattr(d, name)(*args, **options)
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"For apply(): Dataset.{name}() with the same arguments."
    return made


for _name in ("bucket_by_sequence_length", "group_by_window", "scan", "snapshot", "take_while", "rejection_resample",
              "unbatch"):
    globals()[_name] = _for_apply(_name)
choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets
RandomDataset = Dataset.random
