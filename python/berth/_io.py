"""tf.io where values are Python's: examples, TFRecord files, file systems, rows of CSV."""
import os
import shutil
from collections import namedtuple

from berth import _core, _remote
from berth._lazy import Lazy
from berth._tensor import as_dtype, convert_to_tensor, float32, int32, int64, refuse, string


class _Feature:
    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in vars(self).items())})"


class FixedLenFeature(_Feature):
    """A feature of a fixed shape: dtype float32, int64 or string; without a default_value it must be there."""

    def __init__(self, shape, dtype, default_value=None):
        self.shape, self.dtype, self.default_value = shape, as_dtype(dtype), default_value

    def _row(self):
        default = self.default_value
        return ["fixed", self.dtype, list(self.shape), None if default is None else convert_to_tensor(
            default, None if hasattr(default, "dtype") else self.dtype)]


class VarLenFeature(_Feature):
    """A list of any length: a SparseTensor."""

    def __init__(self, dtype):
        self.dtype = as_dtype(dtype)

    def _row(self):
        return ["var", self.dtype, [], None]


class RaggedFeature(_Feature):
    """A list of any length: a RaggedTensor, of a single example a tensor [length].

    value_key: the feature that has the values, the name where it is None. partitions divide the values into rows, the
    outermost first, by other features (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds) or by a UniformRowLength.
    """

    RowSplits = namedtuple("RowSplits", "key")
    RowLengths = namedtuple("RowLengths", "key")
    RowStarts = namedtuple("RowStarts", "key")
    RowLimits = namedtuple("RowLimits", "key")
    ValueRowIds = namedtuple("ValueRowIds", "key")
    UniformRowLength = namedtuple("UniformRowLength", "length")

    def __init__(self, dtype, value_key=None, partitions=(), row_splits_dtype=int32, validate=False):
        self.dtype, self.value_key, self.validate = as_dtype(dtype), value_key, validate
        self.partitions, self.row_splits_dtype = list(partitions), as_dtype(row_splits_dtype or int32)
        for p in self.partitions:
            if getattr(RaggedFeature, type(p).__name__, None) is not type(p):
                raise TypeError(f"RaggedFeature: partitions has {p!r}; expected RaggedFeature.RowSplits, RowLengths, RowStarts, "
                                "RowLimits, ValueRowIds or UniformRowLength")

    def _row(self):
        return ["ragged", self.dtype, [], None]

    def _made(self, name, serialized, single):
        from berth import ragged
        key = name if self.value_key is None else self.value_key
        keys = [p.key for p in self.partitions if hasattr(p, "key")]
        found = _parsed(serialized, {**{k: RaggedFeature(int64) for k in keys}, key: RaggedFeature(self.dtype)}, single)
        if single:
            return self._divided(found, found[key])
        rows = [self._divided({k: found[k][i] for k in keys}, found[key][i]) for i in range(serialized.shape[0])]
        made = ragged.stack(rows) if self.partitions and rows else found[key]
        for _ in () if rows else self.partitions:
            made = ragged.RaggedTensor.from_row_splits(made, [0])
        return made.with_row_splits_dtype(self.row_splits_dtype)

    def _divided(self, found, value):
        """The values of one message in the rows that the partitions say."""
        from berth.ragged import RaggedTensor
        for p in reversed(self.partitions):
            if hasattr(p, "length") and not isinstance(value, RaggedTensor):
                value = _core.ops.reshape(value, [-1, p.length, *value.shape[1:]])
                continue
            make = getattr(RaggedTensor, _MAKERS[type(p).__name__])
            value = make(value, found[p.key] if hasattr(p, "key") else p.length)
        return value.with_row_splits_dtype(self.row_splits_dtype) if isinstance(value, RaggedTensor) else value


_MAKERS = {"RowSplits": "from_row_splits", "RowLengths": "from_row_lengths", "RowStarts": "from_row_starts",
           "RowLimits": "from_row_limits", "ValueRowIds": "from_value_rowids", "UniformRowLength": "from_uniform_row_length"}


class SparseFeature(_Feature):
    """The values of one feature at the places that another has, or several have: a SparseTensor [size], or of these sizes."""

    def __init__(self, index_key, value_key, dtype, size, already_sorted=False):
        self.index_key, self.value_key, self.dtype, self.size = index_key, value_key, as_dtype(dtype), size
        self.already_sorted = already_sorted

    def _made(self, name, serialized, single):
        import numpy
        from berth.sparse import SparseTensor
        several = isinstance(self.index_key, (list, tuple))
        keys, sizes = (list(self.index_key), list(self.size)) if several else ([self.index_key], [self.size])
        if len(keys) != len(sizes):
            raise ValueError(f"SparseFeature: {len(keys)} index keys and {len(sizes)} sizes; expected as many")
        wanted = {**dict.fromkeys(keys, VarLenFeature(int64)), self.value_key: VarLenFeature(self.dtype)}
        found = _parsed(serialized, wanted, single)
        values, rows = found[self.value_key], [found[k] for k in keys]
        lead = values.indices.numpy()[:, :-1]
        for key, row in zip(keys, rows):
            if not numpy.array_equal(row.indices.numpy(), values.indices.numpy()):
                raise _core.InvalidArgumentError(f"SparseFeature: '{key}' and '{self.value_key}' have different numbers of "
                                                 "values")
        at = numpy.concatenate([lead, *(row.values.numpy()[:, None] for row in rows)], 1)
        inside = at[:, lead.shape[1]:]
        if len(at) and ((inside < 0) | (inside >= numpy.array(sizes))).any():
            raise _core.InvalidArgumentError(f"SparseFeature: places {inside[:4].tolist()} of '{self.value_key}'; expected "
                                             f"numbers from 0 and below {sizes}")
        order = numpy.arange(len(at)) if self.already_sorted else numpy.lexsort(at.T[::-1])
        return SparseTensor(convert_to_tensor(at[order], int64), convert_to_tensor(values.values._array()[order], self.dtype),
                            [*values.dense_shape.numpy()[:-1].tolist(), *sizes])


class FixedLenSequenceFeature(_Feature):
    """A list of parts of a fixed shape: [length, *shape], in a batch padded with default_value, or 0 or ""."""

    def __init__(self, shape, dtype, allow_missing=False, default_value=None):
        self.shape, self.dtype, self.default_value = shape, as_dtype(dtype), default_value
        self.allow_missing = allow_missing

    def _row(self):
        return ["sequence", self.dtype, list(self.shape), None if self.default_value is None else convert_to_tensor(
            self.default_value, self.dtype)]


def parse_example(serialized, features, example_names=None, name=None):
    """The features of serialized tf.train.Example messages [n], by name: tensors [n, ...], or sparse or ragged ones.

    Of one message, a scalar string, as parse_single_example().
    """
    serialized = convert_to_tensor(serialized)
    return _parsed(serialized, features, not len(serialized.shape))


def parse_single_example(serialized, features, example_names=None, name=None):
    """The same of one message, a scalar string, without the first axis."""
    return _parsed(convert_to_tensor(serialized), features, True)


def _parsed(serialized, features, single):
    plain = {n: f for n, f in features.items() if not hasattr(f, "_made") or (
        isinstance(f, RaggedFeature) and f.value_key is None and not f.partitions)}
    rows = [(name, *feature._row()) for name, feature in plain.items()]
    values, lengths, splits = _core.parse_example(serialized, rows, single) if rows else ({}, {}, {})
    made = {name: _made(kind, values[name], lengths.get(name), splits.get(name), single) for name, kind, *_ in rows}
    for name, feature in plain.items():
        if isinstance(feature, RaggedFeature) and not single:
            made[name] = made[name].with_row_splits_dtype(feature.row_splits_dtype)
    return {name: made[name] if name in made else feature._made(name, serialized, single)
            for name, feature in features.items()}


def _made(kind, value, lengths, splits, single):
    if kind == "ragged" and not single:
        from berth.ragged import RaggedTensor
        return RaggedTensor(value, splits)
    if kind != "var":
        return value
    import numpy
    from berth.sparse import SparseTensor
    array = value._array()
    if single:
        places = numpy.arange(array.shape[0])[:, None]
    else:
        places = numpy.argwhere(numpy.arange(array.shape[1]) < lengths.numpy()[:, None])
    return SparseTensor(convert_to_tensor(places.astype("int64")), convert_to_tensor(array[tuple(places.T)]),
                        list(array.shape))


class TFRecordOptions:
    """compression_type: "", "GZIP" or "ZLIB"; compression_level: 0 to 9."""

    def __init__(self, compression_type="", compression_level=None, **kwargs):
        refuse("TFRecordOptions", **kwargs)
        self.compression_type = compression_type or ""
        self.compression_level = 6 if compression_level is None else compression_level


class TFRecordWriter:
    """Writes records, bytes or scalar strings, to a TFRecord file; a `with` block closes it.

    The file of a URL is written on this machine, and uploaded by close().
    """

    def __init__(self, path, options=None):
        options = TFRecordOptions(options) if isinstance(options, str) or options is None else options
        self._path, self._copy = _remote.plain(path).rstrip("/") or "/", None
        if _remote.is_url(self._path):
            self._copy = os.path.join(_remote.new_folder(self._path), "records")
        self._writer = _core.TFRecordWriter(self._copy or self._path, options.compression_type, options.compression_level)

    def write(self, record):
        """Appends a record."""
        self._writer.write(record.numpy() if hasattr(record, "numpy") else record)

    def flush(self):
        """Hands what is written so far to the file."""
        self._writer.flush()

    def close(self):
        """Ends the file; errors of the disk, or of the upload, are raised here."""
        self._writer.close()
        if self._copy is not None:
            _remote.put(self._copy, self._path)
            shutil.rmtree(os.path.dirname(self._copy))
            self._copy = None

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error is not None and self._copy is not None:  # half a file is none
            self._writer.close()
            shutil.rmtree(os.path.dirname(self._copy))
            self._copy = None
        self.close()


def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, na_value="", select_cols=None,
               name=None):
    """The fields of rows of CSV, a string or strings [n]: a list with a tensor of the same shape per column.

    record_defaults: a dtype, where the field must be there, or the value of those that are empty, or [value].
    """
    import csv
    import numpy
    records = convert_to_tensor(records, string)
    texts = records._array()
    rows = [next(csv.reader([t.decode()], delimiter=field_delim, quoting=csv.QUOTE_MINIMAL if use_quote_delim
                            else csv.QUOTE_NONE), []) for t in texts.ravel()]
    columns = list(range(len(record_defaults))) if select_cols is None else [int(c) for c in select_cols]
    for i, row in enumerate(rows if select_cols is None else []):
        if len(row) != len(columns):
            raise _core.InvalidArgumentError(f"decode_csv: record {i} has {len(row)} fields; expected {len(columns)}, as many as "
                                             "record_defaults; select_cols takes some of them")
    out = []
    for column, default in zip(columns, record_defaults):
        given = None if isinstance(default, _core.DType) else numpy.ravel(
            default._array() if hasattr(default, "_array") else default).tolist()
        dtype = as_dtype(default) if given is None else default.dtype if hasattr(default, "dtype") else (
            convert_to_tensor(given or [0.0]).dtype)
        fields = [row[column] if column < len(row) else None for row in rows]
        if any(f is None for f in fields):
            raise _core.InvalidArgumentError(f"decode_csv: a row has {len(rows[fields.index(None)])} fields; "
                                             f"expected at least {column + 1}")
        out.append(_column(fields, dtype, given, na_value, column, texts.shape))
    return out


def _column(fields, dtype, given, na_value, column, shape):
    import numpy
    kind = str if dtype == string else float if dtype.is_floating else int
    values = []
    for f in fields:
        if f in ("", na_value):
            if not given:
                raise _core.InvalidArgumentError(f"decode_csv: field {column} is empty, and record_defaults has no value")
            values.append(given[0])
            continue
        try:
            values.append(kind(f))
        except ValueError:
            raise _core.InvalidArgumentError(f"decode_csv: field {column} is {f!r}; expected {dtype.name}") from None
    if dtype == string:
        return convert_to_tensor(numpy.array(values, object).reshape(shape), string)
    return convert_to_tensor(numpy.array(values, dtype.as_numpy_dtype).reshape(shape))


def match_filenames_once(pattern, name=None):
    """The sorted names of the files that match a pattern, or any of several: text [n]."""
    import numpy
    from berth import _gfile
    patterns = numpy.ravel(convert_to_tensor(pattern, string)._array()).tolist()
    names = numpy.array(sorted({n.encode() for p in patterns for n in _gfile.glob(p.decode())}), object)
    return convert_to_tensor(names, string)


gfile = Lazy("berth._gfile")


def write_file(filename, contents, name=None):
    """Writes a scalar string to a file, whole or not at all; its folders are made where they are not there."""
    path = convert_to_tensor(filename, string)._array().item().decode() if not isinstance(filename, str) else filename
    if os.path.dirname(path) and not _remote.is_url(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    _core.ops.io.write_file(path, contents)
