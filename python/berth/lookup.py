"""tf.lookup: tables from keys to values, on the host."""
from berth import _core
from berth._core import Variable
from berth._lazy import Lazy, Names as _Names
from berth._structure import Composite
from berth._tensor import as_dtype, convert_to_tensor, int64, string

_np = Lazy("numpy")


class TextFileIndex:
    """What a TextFileInitializer takes of a line."""
    WHOLE_LINE, LINE_NUMBER = -2, -1


class _Initializer:
    def initialize(self, table):
        """Fills a table, which calls this when it is made."""
        for key, value in self._pairs():
            if table._map.setdefault(key, value) != value:
                raise _core.InvalidArgumentError(
                    f"the table has key {key!r} twice, with the values {table._map[key]!r} and {value!r}")


class KeyValueTensorInitializer(_Initializer):
    """The keys and values of a table."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self.keys, self.values = convert_to_tensor(keys, key_dtype), convert_to_tensor(values, value_dtype)
        self.key_dtype, self.value_dtype = self.keys.dtype, self.values.dtype

    def _pairs(self):
        if not hasattr(self, "keys"):  # a class of the user's, of no keys
            return ()
        return zip(self.keys.numpy().ravel().tolist(), self.values.numpy().ravel().tolist())


class TextFileInitializer(_Initializer):
    """Keys and values of the lines of a file: whole lines, their numbers, or columns between delimiters."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None,
                 value_index_offset=0):
        self._path, self._columns, self._most = filename, (key_index, value_index), vocab_size
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._delimiter, self._offset = delimiter, value_index_offset

    def _pairs(self):
        path = self._path.numpy().decode() if hasattr(self._path, "numpy") else str(self._path)
        with open(path, "rb") as file:
            lines = file.read().splitlines()[:self._most]
        for number, line in enumerate(lines):
            yield tuple(self._part(line, number, column, dtype) for column, dtype in zip(
                self._columns, (self.key_dtype, self.value_dtype)))

    def _part(self, line, number, column, dtype):
        if column == TextFileIndex.LINE_NUMBER:
            return number + self._offset
        part = line if column == TextFileIndex.WHOLE_LINE else line.split(self._delimiter.encode())[column]
        return part if dtype == string else float(part) if dtype.is_floating else int(part)


class _Table:
    """A dictionary with one value for what it lacks."""

    def __init__(self, key_dtype, value_dtype, default_value, name=None):
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        default = convert_to_tensor(default_value, self.value_dtype)._array()
        self._default = default if default.shape else default.item()
        self._map, self.name = {}, name or type(self).__name__.lower()

    default_value = property(lambda self: convert_to_tensor(self._default, self.value_dtype),
                             doc="The value of keys that are not there, a tensor.")

    def size(self, name=None):
        """How many keys there are, int64 []."""
        return convert_to_tensor(len(self._map), int64)

    def lookup(self, keys, name=None):
        """The values of keys, in their shape; the default of those that are not there."""
        if isinstance(keys, Composite):
            return keys.with_flat_values(self.lookup(keys.flat_values)) if hasattr(keys, "flat_values") else \
                keys.with_values(self.lookup(keys.values))
        keys = keys if hasattr(keys, "dtype") and hasattr(keys, "numpy") else convert_to_tensor(keys, self.key_dtype)
        if keys.dtype != self.key_dtype:
            raise TypeError(f"lookup: the keys are {keys.dtype.name}; the table's are {self.key_dtype.name}")
        found = self._values(convert_to_tensor(keys)._array().ravel().tolist())
        shape = [*keys.shape.as_list(), *_np.shape(self._default)]
        kind = object if self.value_dtype == string else self.value_dtype.as_numpy_dtype
        return convert_to_tensor(_np.asarray(found, dtype=kind).reshape(shape), self.value_dtype)

    __getitem__ = lookup

    def export(self, name=None):
        """(keys, values), in no order."""
        kind = object if self.key_dtype == string else self.key_dtype.as_numpy_dtype
        keys = convert_to_tensor(_np.asarray(list(self._map), dtype=kind), self.key_dtype)
        values = list(self._map.values())
        kind = object if self.value_dtype == string else self.value_dtype.as_numpy_dtype
        return keys, convert_to_tensor(_np.asarray(values, dtype=kind).reshape([-1, *_np.shape(self._default)]), self.value_dtype)

    def _values(self, keys):
        get, default = self._map.get, self._default
        return [get(k, default) for k in keys]

    def _saved_as(self):
        """What a Checkpoint saves: nothing of what does not change."""
        return []

    def __repr__(self):
        return f"<{type(self).__name__} of {len(self._map)} {self.key_dtype.name} -> {self.value_dtype.name}>"


class StaticHashTable(_Table):
    """A table that does not change, with a default for keys that it lacks."""

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value, name)
        initializer.initialize(self)


class StaticVocabularyTable(_Table):
    """Texts or numbers to int64; what it lacks is spread over num_oov_buckets by its hash."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None, experimental_is_anonymous=False):
        if num_oov_buckets < 1 and initializer is None:
            raise ValueError("StaticVocabularyTable: expected an initializer, or num_oov_buckets of 1 or more")
        kind = initializer.key_dtype if initializer is not None else string
        super().__init__(lookup_key_dtype or kind, int64, -1, name)
        if initializer is not None:
            initializer.initialize(self)
        self._buckets, self._known = int(num_oov_buckets), len(self._map)

    def size(self, name=None):
        """The number of keys and of buckets."""
        return convert_to_tensor(self._known + self._buckets, int64)

    def _values(self, keys):
        return [self._value(k) for k in keys]

    def _value(self, key):
        if key in self._map or not self._buckets:
            return self._map.get(key, -1)
        text = key if isinstance(key, bytes) else str(key).encode()
        return self._known + int(_core.ops.strings.to_hash_bucket_fast(convert_to_tensor([text]), self._buckets).numpy()[0])


class MutableHashTable(_Table):
    """A table that grows: insert() and remove()."""

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True,
                 experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype, default_value, name)
        self._saved = None  # variables of the keys and values, after a Checkpoint asked for them

    @property
    def _map(self):
        if self._held is None:  # the variables have it since a Checkpoint asked, which may have restored them
            keys, values = (v.numpy() for v in self._saved)
            self._held = dict(zip(keys.tolist(), values.tolist() if values.ndim == 1 else list(values)))
        return self._held

    @_map.setter
    def _map(self, value):
        self._held = value

    def _saved_as(self):
        """What a Checkpoint saves and restores, by name; a tf.Module does not count it as variables."""
        found = self.export()
        if self._saved is None:
            self._saved = [Variable(v, trainable=False, shape=[None, *v.shape.as_list()[1:]]) for v in found]
        for variable, value in zip(self._saved, found):
            variable.assign(value)
        self._held = None
        return list(zip(("table-keys", "table-values"), self._saved))

    def insert(self, keys, values, name=None):
        """Sets the values of keys."""
        keys, values = convert_to_tensor(keys, self.key_dtype), convert_to_tensor(values, self.value_dtype)
        rows = values.numpy().reshape([-1, *_np.shape(self._default)])
        self._map.update(zip(keys.numpy().ravel().tolist(), rows.tolist() if rows.ndim == 1 else list(rows)))

    def remove(self, keys, name=None):
        """Takes keys out, as far as they are there."""
        for key in convert_to_tensor(keys, self.key_dtype).numpy().ravel().tolist():
            self._map.pop(key, None)

    erase = remove


class DenseHashTable(MutableHashTable):
    """A MutableHashTable; empty_key and deleted_key cannot be inserted."""

    def __init__(self, key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets=None,
                 name="MutableDenseHashTable", checkpoint=True, experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype, default_value, name)
        self._no_keys = {convert_to_tensor(k, self.key_dtype).numpy().ravel()[0] for k in (empty_key, deleted_key)} \
            if self.key_dtype != string else set()

    def insert(self, keys, values, name=None):
        """Sets the values of keys."""
        if self._no_keys & set(convert_to_tensor(keys, self.key_dtype).numpy().ravel().tolist()):
            raise _core.InvalidArgumentError(f"insert: {sorted(self._no_keys)} mark places that are free, and cannot be inserted")
        super().insert(keys, values)


experimental = _Names("tf.lookup.experimental", MutableHashTable=MutableHashTable, DenseHashTable=DenseHashTable)
