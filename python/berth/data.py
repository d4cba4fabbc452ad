"""tf.data."""
import types as _types

from berth import _core
from berth._structure import flatten, pack
from berth._tensor import TensorSpec, convert_to_tensor

AUTOTUNE = _core.AUTOTUNE
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


class Dataset:
    """A pipeline of elements (tf.data.Dataset). Transforms return new ones."""

    def __init__(self, handle, form):
        self.__dict__["__berth__"], self._form = handle, form

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        leaves, form = flatten(_tuples(tensors))
        return Dataset(_core.Dataset.from_tensor_slices([convert_to_tensor(v) for v in leaves]),
                       form)

    @staticmethod
    def from_tensors(tensors, name=None):
        leaves, form = flatten(tensors)
        return Dataset(_core.Dataset.from_tensors([convert_to_tensor(v) for v in leaves]), form)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None,
                       output_signature=None, name=None):
        """Elements of generator(), a function that returns an iterable."""
        if output_signature is None:
            types, form = flatten(output_types)
            shapes = [None] * len(types)
            if output_shapes is not None:
                shapes = output_shapes if isinstance(output_shapes, (list, tuple)) and len(
                    types) > 1 else [output_shapes]
            specs = [((), t) if s is None else (s, t) for s, t in zip(shapes, types)]
        else:
            leaves, form = flatten(output_signature)
            specs = [(s.shape, s.dtype) for s in leaves]

        def begin():
            source = iter(generator(*(args or ())))

            def step():
                try:
                    value = next(source)
                except StopIteration:
                    return None
                leaves = flatten(value)[0]
                if len(leaves) != len(specs):
                    leaves = [value]
                return [convert_to_tensor(v, d) for v, (_, d) in zip(leaves, specs)]
            return step

        return Dataset(_core.Dataset.from_generator(begin, specs), form)

    @staticmethod
    def range(*args, output_type=None, name=None):
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (tuple(args) + (1,))[:3]
        return Dataset(_core.Dataset.range(start, stop, step), flatten(0)[1])

    @staticmethod
    def zip(*datasets, name=None):
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], (tuple, list)) else datasets
        return Dataset(_core.Dataset.zip([d.__berth__ for d in parts]),
                       tuple(d._form for d in parts))

    def _same(self, handle):
        return Dataset(handle, self._form)

    def map(self, map_func, num_parallel_calls=None, deterministic=None, name=None):
        from berth._function import Function, call_converted
        forms = []

        def run(*element):
            out, form = flatten(call_converted(map_func, *element))
            forms.append(form)
            return [convert_to_tensor(v) for v in out]

        traced = Function(run, name="map")

        def call(leaves):
            return traced(*_arguments(self._form, leaves))

        handle = self.__berth__.map(call, 0 if num_parallel_calls is None else num_parallel_calls,
                                    deterministic is not False)
        handle.element_spec()  # traces, so that the structure is known
        return Dataset(handle, forms[0] if forms else self._form)

    def filter(self, predicate, name=None):
        return self._same(self.__berth__.filter(
            lambda leaves: predicate(*_arguments(self._form, leaves))))

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None,
              name=None):
        return self._same(self.__berth__.batch(int(batch_size), drop_remainder))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None,
                     drop_remainder=False, name=None):
        return self._same(self.__berth__.padded_batch(int(batch_size), drop_remainder))

    def unbatch(self, name=None):
        return self._same(self.__berth__.unbatch())

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        return self._same(self.__berth__.shuffle(int(buffer_size), seed,
                                                 reshuffle_each_iteration is not False))

    def repeat(self, count=None, name=None):
        return self._same(self.__berth__.repeat(-1 if count is None else int(count)))

    def take(self, count, name=None):
        return self._same(self.__berth__.take(int(count)))

    def skip(self, count, name=None):
        return self._same(self.__berth__.skip(int(count)))

    def shard(self, num_shards, index, name=None):
        return self._same(self.__berth__.shard(num_shards, index))

    def concatenate(self, dataset, name=None):
        return self._same(self.__berth__.concatenate(dataset.__berth__))

    def enumerate(self, start=0, name=None):
        return Dataset(self.__berth__.enumerate(start), (flatten(0)[1], self._form))

    def cache(self, filename="", name=None):
        return self._same(self.__berth__.cache(str(filename)))

    def prefetch(self, buffer_size, name=None):
        return self._same(self.__berth__.prefetch(int(buffer_size)))

    def apply(self, transformation_func):
        return transformation_func(self)

    def with_options(self, options, name=None):
        return self

    def reduce(self, initial_state, reduce_func, name=None):
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state

    def cardinality(self):
        return convert_to_tensor(self.__berth__.cardinality(), _core.int64)

    def __len__(self):
        n = self.__berth__.cardinality()
        if n < 0:
            raise TypeError("the length of this dataset is infinite or not known")
        return n

    @property
    def element_spec(self):
        return pack(self._form, [TensorSpec(s, d) for s, d in self.__berth__.element_spec()])

    def explain(self):
        """The transforms with what each has done: what AUTOTUNE chose, waits, bytes."""
        return self.__berth__.explain()

    def __iter__(self):
        one = self.__berth__.pass_()
        while (leaves := one.next()) is not None:
            yield pack(self._form, leaves)

    def as_numpy_iterator(self):
        for element in self:
            leaves, form = flatten(element)
            yield pack(form, [v.numpy() for v in leaves])


def _tuples(value):
    """Lists of tensors' slices are one tensor; tuples and dictionaries are structures."""
    import numpy
    if isinstance(value, list):
        return numpy.asarray(value)
    if isinstance(value, tuple):
        return tuple(_tuples(v) for v in value)
    if isinstance(value, dict):
        return {k: _tuples(v) for k, v in value.items()}
    return value


def _arguments(form, leaves):
    element = pack(form, leaves)
    return element if isinstance(element, tuple) else (element,)


class Options:
    """Accepted as TensorFlow does; pipelines of one task need none."""

    def __init__(self):
        self.experimental_distribute = _types.SimpleNamespace(auto_shard_policy=None)
        self.deterministic = None


experimental = _types.SimpleNamespace(AUTOTUNE=AUTOTUNE)
