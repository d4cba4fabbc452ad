"""The options of data sets, and specs of data sets and their iterators."""
import enum

from berth._tensor import TypeSpec


class AutoShardPolicy(enum.IntEnum):
    """How the tasks of a strategy share a dataset (docs/data.md)."""
    OFF, AUTO, FILE, DATA, HINT = -1, 0, 1, 2, 3


class AutotuneAlgorithm(enum.Enum):
    """Which way AUTOTUNE goes in TensorFlow; Berth has one (docs/data.md)."""
    DEFAULT, HILL_CLIMB, GRADIENT_DESCENT, MAX_PARALLELISM, STAGE_BASED = range(5)


class ExternalStatePolicy(enum.Enum):
    """What happens to state outside of a data set that is saved."""
    WARN, IGNORE, FAIL = 0, 1, 2


class _Group:
    """Options that have names and types; others are an error."""

    _types = {}

    def __init__(self):
        for name, (_, default) in self._types.items():
            self.__dict__[name] = default() if isinstance(default, type) else default

    def __setattr__(self, name, value):
        if name not in self._types:
            raise AttributeError(f"{type(self).__name__} has no option '{name}'; it has {', '.join(self._types)}")
        kind = self._types[name][0]
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{type(self).__name__}.{name} is {value!r}; expected {getattr(kind, '__name__', 'a number')}")
        self.__dict__[name] = value

    def __eq__(self, other):
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None


def _all(kind, names):
    return {name: (kind, None) for name in names.split()}


class AutotuneOptions(_Group):
    """Accepted as TensorFlow does: AUTOTUNE measures, and takes no more than the machine has."""

    _types = {"autotune_algorithm": (AutotuneAlgorithm, None), **_all(int, "cpu_budget initial_parallelism min_parallelism "
                                                                           "ram_budget"),
              "enabled": (bool, None)}


class DistributeOptions(_Group):
    """auto_shard_policy says how the tasks of a strategy share a data set."""

    _types = {"auto_shard_policy": (AutoShardPolicy, AutoShardPolicy.AUTO), "num_devices": (int, None)}


class OptimizationOptions(_Group):
    """Accepted as TensorFlow does: no transform is fused or moved, and the elements are the same."""

    _types = _all(bool, "apply_default_optimizations filter_fusion filter_parallelization inject_prefetch map_and_batch_fusion "
                  "map_and_filter_fusion map_fusion map_parallelization noop_elimination parallel_batch seq_interleave_prefetch "
                  "shuffle_and_repeat_fusion")


class ThreadingOptions(_Group):
    """Accepted as TensorFlow does: data sets share the threads of the process, tf.config.threading sets those of an op."""

    _types = _all(int, "max_intra_op_parallelism private_threadpool_size")


class ServiceOptions(_Group):
    """Accepted as TensorFlow does; there is no service of data (docs/data.md)."""

    _types = _all(bool, "pinned")


class Options(_Group):
    """For Dataset.with_options(): experimental_distribute.auto_shard_policy says how tasks share a dataset.

    The others are accepted as TensorFlow does, and change nothing.
    """

    _types = {"experimental_distribute": (DistributeOptions, DistributeOptions), "autotune": (AutotuneOptions, AutotuneOptions),
              "experimental_optimization": (OptimizationOptions, OptimizationOptions),
              "threading": (ThreadingOptions, ThreadingOptions), "experimental_threading": (ThreadingOptions, ThreadingOptions),
              "experimental_service": (ServiceOptions, ServiceOptions),
              "experimental_external_state_policy": (ExternalStatePolicy, None),
              **_all(bool, "deterministic experimental_deterministic experimental_slack experimental_symbolic_checkpoint "
                     "experimental_warm_start"), **_all((str, list), "dataset_name framework_type")}

    def merge(self, options):
        """These options with those that another has set."""
        made = Options()
        for source in (self, options):
            for name, value in vars(source).items():
                if isinstance(value, _Group):
                    found = {n: v for n, v in vars(value).items() if v != value._types[n][1]}
                    vars(getattr(made, name)).update(found)
                elif value is not None:
                    setattr(made, name, value)
        return made


class _ElementSpec(TypeSpec):
    """A spec that says what the elements are."""

    def __init__(self, element_spec):
        self._spec = element_spec

    @classmethod
    def from_value(cls, value):
        """The spec of a value."""
        return cls(value.element_spec)

    element_spec = property(lambda self: self._spec, doc="The specs of an element, in its structure.")

    def is_compatible_with(self, spec_or_value):
        """True of a value, or of the spec of one, with these elements."""
        return getattr(spec_or_value, "element_spec", None) == self._spec

    def __eq__(self, other):
        return type(other) is type(self) and other._spec == self._spec

    def __hash__(self):
        return hash(type(self).__name__)

    def __repr__(self):
        return f"{type(self).__name__}({self._spec!r})"


# What TensorFlow shows of data sets whose transform has another name.
_SHOWN = {"from_tensor_slices": "_TensorSliceDataset", "from_generator": "_FlatMapDataset", "cache": "CacheDataset",
          "enumerate": "_ZipDataset"}


def shown_name(dataset):
    """The name of a class of TensorFlow's, by the last transform: _BatchDataset."""
    import re
    last = re.search(r"^  (\w+)", dataset.__berth__.explain(), re.M)
    if last is None:
        return type(dataset).__name__
    return _SHOWN.get(last[1], f"_{last[1].title().replace('_', '')}Dataset")


class DatasetSpec(_ElementSpec):
    """What the elements of a data set are; dataset_shape must be (), one data set."""

    def __init__(self, element_spec, dataset_shape=()):
        if tuple(dataset_shape) != ():
            raise NotImplementedError(f"DatasetSpec: dataset_shape is {dataset_shape!r}; expected (), the shape of one data set")
        super().__init__(element_spec)

    @property
    def value_type(self):
        """tf.data.Dataset."""
        from berth.data import Dataset
        return Dataset


class IteratorSpec(_ElementSpec):
    """What the elements of an iterator of a data set are."""

    @property
    def value_type(self):
        """tf.data.Iterator."""
        from berth.data import Iterator
        return Iterator


class OptionalSpec(_ElementSpec):
    """What the value of an Optional is, if there is one."""

    @classmethod
    def from_value(cls, value):
        """The spec of an Optional that has a value."""
        from berth._extension import type_spec_from_value
        return cls(type_spec_from_value(value.get_value()))

    def is_compatible_with(self, spec_or_value):
        """True of such an Optional, an empty one, or the spec of one."""
        if isinstance(spec_or_value, self.value_type):
            return not spec_or_value._value or OptionalSpec.from_value(spec_or_value) == self
        return spec_or_value == self

    @property
    def value_type(self):
        """tf.experimental.Optional."""
        from berth.data import Optional
        return Optional


class NoneTensorSpec(TypeSpec):
    """The spec of None in a structure."""

    value_type = type(None)

    def is_compatible_with(self, spec_or_value):
        """True of None, and of this spec."""
        return spec_or_value is None or isinstance(spec_or_value, NoneTensorSpec)

    def __eq__(self, other):
        return isinstance(other, NoneTensorSpec)

    def __hash__(self):
        return hash(NoneTensorSpec)

    def __repr__(self):
        return "NoneTensorSpec()"


class IndexedSlicesSpec(TypeSpec):
    """The shape of the tensor that rows are of, their dtype, and that of their places."""

    def __init__(self, shape=None, dtype=None, indices_dtype=None, dense_shape_dtype=None, indices_shape=None):
        from berth._tensor import TensorSpec, as_dtype, float32, int64
        self._shape, self._dtype = TensorSpec(shape).shape, as_dtype(float32 if dtype is None else dtype)
        self._indices_dtype = as_dtype(int64 if indices_dtype is None else indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorSpec([None] if indices_shape is None else indices_shape).shape

    @classmethod
    def from_value(cls, value):
        """The spec of IndexedSlices."""
        shape = [None, *value.values.shape.as_list()[1:]] if value.dense_shape is None else value.shape
        return cls(shape, value.dtype, value.indices.dtype, None if value.dense_shape is None else value.dense_shape.dtype,
                   value.indices.shape)

    shape = property(lambda self: self._shape, doc="The shape of the tensor that these are rows of.")
    dtype = property(lambda self: self._dtype, doc="The dtype of the values.")

    @property
    def value_type(self):
        """tf.IndexedSlices."""
        from berth._tensor import IndexedSlices
        return IndexedSlices

    def is_compatible_with(self, spec_or_value):
        """True of IndexedSlices, or of the spec of some, of this dtype and a shape that fits."""
        other = spec_or_value if isinstance(spec_or_value, IndexedSlicesSpec) else IndexedSlicesSpec.from_value(spec_or_value)
        return (other._dtype, other._indices_dtype) == (self._dtype, self._indices_dtype) and self._shape.is_compatible_with(
            other._shape)

    def _key(self):
        return (self._dtype, self._indices_dtype, self._dense_shape_dtype, repr(self._shape), repr(self._indices_shape))

    def __eq__(self, other):
        return isinstance(other, IndexedSlicesSpec) and other._key() == self._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"IndexedSlicesSpec{self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape}"
