"""tf.data.experimental: readers of files and databases, tables of data sets, groups that are reduced."""
import numpy as np
from berth import _core
from berth._structure import LEAF, flatten, pack
from berth._tensor import TensorSpec, as_dtype, convert_to_tensor, int64, refuse, string


class Reducer:
    """For group_by_reducer(): init_func(key) -> state, reduce_func(state, element) -> state, finalize_func(state) -> element."""

    def __init__(self, init_func, reduce_func, finalize_func):
        self._parts = init_func, reduce_func, finalize_func

    init_func = property(lambda self: self._parts[0], doc="key -> state.")
    reduce_func = property(lambda self: self._parts[1], doc="(state, element) -> state.")
    finalize_func = property(lambda self: self._parts[2], doc="state -> element.")


def group_by_reducer(key_func, reducer):
    """For apply(): an element for each key, an int64 of key_func(element), in the order of keys: its reducer's result."""
    def apply(dataset):
        from berth import _composite_data

        def elements():
            states = {}
            for element in dataset:
                parts = element if isinstance(element, tuple) else (element,)
                key = convert_to_tensor(key_func(*parts))
                if key.dtype != int64 or len(key.shape):
                    raise ValueError(f"group_by_reducer: key_func returned {key.dtype.name} {key.shape}; expected an int64 "
                                     "scalar")
                number = int(key)
                if number not in states:
                    states[number] = reducer.init_func(key)
                states[number] = reducer.reduce_func(states[number], *parts)
            for number in sorted(states):
                state = states[number]
                yield reducer.finalize_func(*state) if isinstance(state, tuple) else reducer.finalize_func(state)
        return _composite_data._of(elements)
    return apply


def dense_to_sparse_batch(batch_size, row_shape):
    """For apply(): batches of tensors of at most row_shape as SparseTensors."""
    return lambda d: d.sparse_batch(batch_size, row_shape)


def pad_to_cardinality(cardinality, mask_key="valid"):
    """For apply() to a data set of dictionaries: zeros until there are so many elements; mask_key says which are real."""
    def apply(dataset):
        count, spec = int(dataset.cardinality()), dataset.element_spec
        if not isinstance(spec, dict):
            raise ValueError(f"pad_to_cardinality: the elements are {spec}; expected dictionaries, which the mask becomes a "
                             "part of")
        if not 0 <= count <= cardinality:
            raise ValueError(f"pad_to_cardinality: the data set has {count} elements (-1: without end, -2: not known); "
                             f"expected 0 to {cardinality}")
        leaves, form = flatten(spec)
        sizes = [[n or 0 for n in s.shape] for s in leaves]
        empty = pack(form, [convert_to_tensor(np.full(n, b"", object) if s.dtype == string else np.zeros(
            n, s.dtype.as_numpy_dtype), s.dtype) for s, n in zip(leaves, sizes)])

        def marked(real):
            return lambda e: {**e, mask_key: convert_to_tensor(real)}
        from berth.data import Dataset
        rest = Dataset.from_tensors(empty).repeat(cardinality - count).map(marked(False))
        return dataset.map(marked(True)).concatenate(rest) if count < cardinality else dataset.map(marked(True))
    return apply


def parse_example_dataset(features, num_parallel_calls=1, deterministic=None):
    """For apply() to batches of serialized tf.train.Example: dictionaries of their features, as tf.io.parse_example()."""
    def apply(dataset):
        from berth._io import parse_example
        return dataset.map(lambda text: parse_example(text, features), num_parallel_calls, deterministic)
    return apply


def make_batched_features_dataset(file_pattern, batch_size, features, reader=None, label_key=None, reader_args=None,
                                  num_epochs=None, shuffle=True, shuffle_buffer_size=10000, shuffle_seed=None,
                                  prefetch_buffer_size=None, reader_num_threads=None, parser_num_threads=None,
                                  sloppy_ordering=False, drop_final_batch=False):
    """Batches of the features of files of tf.train.Example: dictionaries, with label_key pairs of that and the label.

    reader: a class of data sets that takes a file, else TFRecordDataset. sloppy_ordering: the order may vary.
    """
    from berth.data import AUTOTUNE, Dataset, TFRecordDataset
    make = TFRecordDataset if reader is None else reader
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    threads = 1 if reader_num_threads is None else reader_num_threads
    data = files.interleave(lambda name: make(name, *(reader_args or ())), threads if threads > 0 else AUTOTUNE, 1,
                            threads if threads > 1 or threads == AUTOTUNE else None, not sloppy_ordering)
    data = data.shuffle(shuffle_buffer_size, shuffle_seed) if shuffle else data
    data = data.repeat(num_epochs).batch(batch_size, drop_final_batch or num_epochs is None)
    data = data.apply(parse_example_dataset(features, 2 if parser_num_threads is None else parser_num_threads))
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"make_batched_features_dataset: label_key is {label_key!r}; expected one of {sorted(features)}")
        data = data.map(lambda e: ({k: v for k, v in e.items() if k != label_key}, e[label_key]))
    return data.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


class TFRecordWriter:
    """Writes the elements of a data set of scalar texts to a TFRecord file."""

    def __init__(self, filename, compression_type=None):
        self._path, self._packing = filename, compression_type

    def write(self, dataset):
        """Writes all elements."""
        from berth._io import TFRecordWriter as Writer
        from berth.data import Dataset
        spec = dataset.element_spec if isinstance(dataset, Dataset) else None
        if not isinstance(spec, TensorSpec) or spec.dtype != string or len(spec.shape):
            raise TypeError(f"tf.data.experimental.TFRecordWriter: the elements are {spec or dataset!r}; expected scalar texts")
        with Writer(self._path, self._packing or "") as out:
            for element in dataset:
                out.write(element)


def _sql_dataset():
    from berth.data import Dataset

    class SqlDataset(Dataset):
        """The rows of a query to a database of SQLite: tuples of scalars of output_types."""

        def __init__(self, driver_name, data_source_name, query, output_types):
            if driver_name != "sqlite":
                raise _core.InvalidArgumentError(f"SqlDataset: driver_name is {driver_name!r}; expected 'sqlite'")
            types = tuple(as_dtype(t) for t in output_types)

            def rows():
                import contextlib
                import sqlite3
                try:
                    with contextlib.closing(sqlite3.connect(f"file:{data_source_name}?mode=ro", uri=True)) as base:
                        found = base.execute(str(query))
                        if len(found.description) != len(types):
                            raise _core.InvalidArgumentError(f"SqlDataset: the query has {len(found.description)} columns and "
                                                             f"output_types {len(types)}")
                        for row in found:
                            yield tuple(_cell(v, t) for v, t in zip(row, types))
                except sqlite3.Error as error:
                    raise _core.UnknownError(f"SqlDataset: {error}: {query}") from None
            made = Dataset.from_generator(rows, output_signature=tuple(TensorSpec([], t) for t in types))
            super().__init__(made.__berth__, tuple(LEAF for _ in types))
    SqlDataset.__qualname__ = "SqlDataset"
    return SqlDataset


def _cell(value, dtype):
    if dtype == string:
        return convert_to_tensor(b"" if value is None else value if isinstance(value, bytes) else str(value).encode(), string)
    return convert_to_tensor(np.asarray(0 if value is None else value).astype(dtype.as_numpy_dtype))


class DatasetInitializer:
    """The pairs (key, value) of a data set, for a tf.lookup.StaticHashTable."""

    def __init__(self, dataset):
        spec = dataset.element_spec
        if not isinstance(spec, tuple) or len(spec) != 2:
            raise ValueError(f"DatasetInitializer: the elements are {spec}; expected pairs of a key and a value")
        self.dataset, self.key_dtype, self.value_dtype = dataset, spec[0].dtype, spec[1].dtype

    def _pairs(self):
        for key, value in self.dataset:
            yield key.numpy(), value.numpy()

    def initialize(self, table):
        """Fills a table, which calls this when it is made."""
        from berth.lookup import _Initializer
        _Initializer.initialize(self, table)


def table_from_dataset(dataset=None, num_oov_buckets=0, vocab_size=None, default_value=None, hasher_spec=None,
                       key_dtype=string, name=None):
    """A table of the pairs (key, value) of a data set, the first vocab_size of them.

    Other keys give default_value (-1), or with num_oov_buckets a number after the values, which must be int64.
    """
    from berth import lookup
    refuse("table_from_dataset", hasher_spec=hasher_spec)
    if num_oov_buckets and default_value is not None:
        raise ValueError("table_from_dataset: num_oov_buckets and default_value are given; expected one of them")
    if dataset is None or num_oov_buckets < 0:
        raise ValueError(f"table_from_dataset: dataset={dataset!r}, num_oov_buckets={num_oov_buckets}; expected a data set and "
                         "0 or more")
    pairs = DatasetInitializer(dataset if vocab_size is None else dataset.take(vocab_size))
    if pairs.key_dtype != as_dtype(key_dtype) and not (pairs.key_dtype.is_integer and as_dtype(key_dtype).is_integer):
        raise TypeError(f"table_from_dataset: the keys are {pairs.key_dtype.name}; key_dtype is {as_dtype(key_dtype).name}")
    if num_oov_buckets:
        return lookup.StaticVocabularyTable(pairs, num_oov_buckets)
    missing = default_value if default_value is not None else b"" if pairs.value_dtype == string else -1
    return lookup.StaticHashTable(pairs, missing)


def index_table_from_dataset(dataset=None, num_oov_buckets=0, vocab_size=None, default_value=-1, hasher_spec=None,
                             key_dtype=string, name=None):
    """A table from the elements of a data set to their numbers, int64; other keys give default_value, or a bucket after them."""
    if dataset is None:
        raise ValueError("index_table_from_dataset: dataset is None; expected a data set of keys")
    pairs = dataset.enumerate().map(lambda i, key: (key, i))
    missing = None if num_oov_buckets else default_value
    return table_from_dataset(pairs, num_oov_buckets, vocab_size, missing, hasher_spec, key_dtype)


def __getattr__(name):
    if name != "SqlDataset":
        raise AttributeError(name)
    globals()[name] = _sql_dataset()
    return globals()[name]
