"""tf.data."""
import collections as _collections
import itertools

from berth import _core, _remote
from berth._frames import hide_in
from berth._data_options import AutoShardPolicy as _AutoShardPolicy, DatasetSpec, IteratorSpec, Options, ThreadingOptions
from berth._lazy import Names as _Names
from berth._not_tensors import NotATensor as _NotATensor
from berth._structure import LEAF, flatten, has_composite, in_order, leaves_along as _leaves_along, pack, present
from berth._tensor import TensorSpec, convert_to_tensor, refuse, say_missing as _say_missing

AUTOTUNE = _core.AUTOTUNE
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


class Dataset(_NotATensor):
    """A pipeline of elements (tf.data.Dataset). Transforms return new ones."""

    __getattr__ = _say_missing

    __berth_advice__ = "its elements are made of tensors: iterate over it, or call op(element) in a map() of it"

    def __init__(self, handle, form):
        self.__dict__["__berth__"], self._form = handle, form

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """Elements that are the slices of tensors along their first axis."""
        leaves, form = flatten(_nested(tensors))
        if has_composite(form):
            from berth import _composite_data
            return _composite_data.slices(tensors)
        return Dataset(_core.Dataset.from_tensor_slices([convert_to_tensor(v) for v in leaves]),
                       form)

    @staticmethod
    def from_tensors(tensors, name=None):
        """One element: the tensors as they are."""
        leaves, form = present(_nested(tensors))
        return Dataset(_core.Dataset.from_tensors([convert_to_tensor(v) for v in leaves]), form)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None,
                       output_signature=None, name=None):
        """Elements of generator(), a function that returns an iterable."""
        if output_signature is None:
            from berth._composite_data import specs_of
            output_signature = specs_of(output_types, output_shapes)
        leaves, form = flatten(output_signature, lambda v: isinstance(v, TensorSpec))
        specs = [(None if s.shape.rank is None else s.shape, s.dtype) for s in leaves]

        def leaves_of(value):
            return [convert_to_tensor(v.numpy() if hasattr(v, "numpy") and v.dtype != d else v, d)
                    for v, (_, d) in zip(_leaves_along(form, value), specs)]

        begun = []
        if any(s is None for s, _ in specs):  # the first element says how many axes there are
            from berth._described import first_of
            first, source = first_of(lambda: generator(*(args or ())), leaves_of)
            begun.append((first, source))
            specs = [([None] * len(first[0][i].shape) if s is None and first else s or (), d)
                     for i, (s, d) in enumerate(specs)]

        def begin():
            first, source = begun.pop() if begun else ([], iter(generator(*(args or ()))))

            def step():
                if first:
                    return first.pop()
                try:
                    return leaves_of(next(source))
                except StopIteration:
                    return None
            return step

        return Dataset(_core.Dataset.from_generator(begin, specs), form)

    @staticmethod
    def range(*args, output_type=None, name=None):
        """The numbers from start to stop, int64 scalars, as Python's range()."""
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (tuple(args) + (1,))[:3]
        return Dataset(_core.Dataset.range(start, stop, step), flatten(0)[1])._of_type(output_type)

    def _of_type(self, dtype):
        if dtype is None or dtype == _core.int64:
            return self
        return self.map(lambda x: _core.ops.math.cast(x, dtype))

    @staticmethod
    def zip(*datasets, name=None):
        """Elements of several side by side, in the tuples and dictionaries that they are given in."""
        given = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], (tuple, list, dict)) else datasets
        parts, form = flatten(tuple(given) if isinstance(given, list) else given)
        return Dataset(_core.Dataset.zip([d.__berth__ for d in parts]), pack(form, [d._form for d in parts]))

    def _same(self, handle):
        return Dataset(handle, self._form)

    def map(self, map_func, num_parallel_calls=None, deterministic=None, name=None):
        """Elements map_func(*element); traced once, op by op where that cannot be."""
        from berth import _described
        from berth._function import Function, call_converted
        forms, described = [], []
        first = []  # an element whose result said the structure, and that result, until it is asked for

        def run(*element):
            out, form = present(_result(call_converted(map_func, *element)))
            if not forms:
                forms.append(form)
            return [convert_to_tensor(v) for v in out]

        traced = run if _debug else Function(run, name="map")
        if not _debug:
            traced.of_a_map = True

        def call(leaves):
            if described and first and _equal(first[0][0], leaves):
                try:
                    return first.pop()[1]
                except IndexError:
                    pass  # another thread has it
            try:
                out = traced(*_arguments(self._form, leaves))
            except _core.OpError as error:
                if described:
                    raise
                return _described.instead(self, lambda x: run(*_arguments(self._form, x)), error)
            untraced = bool(_debug) or traced._untraced
            _core.note_plan(not untraced)
            if untraced and not described and not first:  # a second element may come before the transform is described
                first.append((leaves, out))
            return out

        handle = self.__berth__.map(call, 0 if num_parallel_calls is None else num_parallel_calls,
                                    deterministic is not False)
        out = self._shaped(handle, forms, lambda x: run(*_arguments(self._form, x)))
        described.append(True)
        return out

    def _shaped(self, handle, forms, run, state=()):
        """The result of a transform, whose structure an element says, or a trace."""
        from berth import _described
        return _described.shaped(self, handle, forms, run, state)

    def filter(self, predicate, name=None):
        """The elements for which predicate(*element) holds."""
        return self._same(self.__berth__.filter(self._test("filter", predicate)))

    def take_while(self, predicate, name=None):
        """The elements before the first for which predicate(*element) does not hold."""
        return self._same(self.__berth__.take_while(self._test("take_while", predicate)))

    def _test(self, name, predicate):
        def test(leaves):
            holds = predicate(*_arguments(self._form, leaves))
            if not isinstance(holds, bool) and not convert_to_tensor(holds).dtype.is_bool:
                raise TypeError(f"{name}: the predicate returns {holds!r}; expected a bool, such as that of x > 0")
            return holds
        return test

    def _on_elements(self, fn):
        return lambda leaves: fn(*_arguments(self._form, leaves))

    def _of_datasets(self, fn, make):
        """A transform by a function from an element to a data set, whose structure the first has."""
        forms = []

        def call(leaves):
            made = fn(*_arguments(self._form, leaves))
            if not isinstance(made, Dataset):
                raise TypeError(f"the function must return a tf.data.Dataset, not {made!r}")
            forms.append(made._form)
            return made.__berth__

        handle = make(call)
        handle.element_spec()  # calls it once
        return Dataset(handle, forms[0] if forms else self._form)

    def flat_map(self, map_func, name=None):
        """The elements of the data sets map_func(*element), one data set after the other."""
        return self._of_datasets(map_func, self.__berth__.flat_map)

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None,
                   deterministic=None, name=None):
        """The elements of the data sets map_func(*element), of cycle_length at a time in turns."""
        return self._of_datasets(map_func, lambda call: self.__berth__.interleave(
            call, AUTOTUNE if cycle_length is None else int(cycle_length), block_length or 1,
            0 if num_parallel_calls is None else num_parallel_calls, deterministic is not False))

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Data sets of `size` neighbours: an iterable, for flat_map() and batch()."""
        return Windows(self, int(size), None if shift is None else int(shift), int(stride),
                       drop_remainder)

    def unique(self, name=None):
        """The elements without those that came before."""
        return self._same(self.__berth__.unique())

    def scan(self, initial_state, scan_func, name=None):
        """Elements of state, element = scan_func(state, element)."""
        leaves, state_form = flatten(initial_state)
        forms = []

        def step(state, element):
            new, out = scan_func(pack(state_form, state), pack(self._form, element))
            out, form = present(_result(out))
            forms.append(form)
            return ([convert_to_tensor(v) for v in flatten(new)[0]],
                    [convert_to_tensor(v) for v in out])

        leaves = [convert_to_tensor(v) for v in leaves]
        n = len(leaves)
        return self._shaped(self.__berth__.scan(leaves, step), forms, lambda x: step(x[:n], x[n:])[1], leaves)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
        """The elements of reduce_func(key, window): windows of elements with one key; window_size_func(key): how many of it."""
        forms = []
        size_of = window_size_func and (lambda key: int(window_size_func(convert_to_tensor(key, _core.int64))))

        def reduced(key, handle):
            made = reduce_func(convert_to_tensor(key, _core.int64), Dataset(handle, self._form))
            forms.append(made._form)
            return made.__berth__

        handle = self.__berth__.group_by_window(self._on_elements(key_func), reduced, int(window_size or 0), size_of)
        handle.element_spec()
        return Dataset(handle, forms[0] if forms else self._form)

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes,
                                  padded_shapes=None, padding_values=None,
                                  pad_to_bucket_boundary=False, no_padding=False,
                                  drop_remainder=False, name=None):
        """Padded batches of elements of similar lengths: a bucket between each two boundaries."""
        if no_padding:
            raise NotImplementedError("bucket_by_sequence_length: ragged batches are not in Python yet")
        return self._same(self.__berth__.bucket_by_sequence_length(
            self._on_elements(element_length_func), list(bucket_boundaries),
            list(bucket_batch_sizes), *self._padding(padded_shapes, padding_values),
            pad_to_bucket_boundary, drop_remainder))

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        """Pairs (class, element), some left out so that classes have the distribution target_dist."""
        handle = self.__berth__.rejection_resample(
            self._on_elements(class_func), [float(p) for p in target_dist],
            [float(p) for p in initial_dist or []], seed)
        out, dtype = Dataset(handle, (flatten(0)[1], self._form)), self.map(class_func).element_spec.dtype
        return out if dtype == _core.int64 else out.map(lambda c, element: (_core.ops.math.cast(c, dtype), element))

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size of the same rows."""
        sizes = [int(n) for n in batch_size] if isinstance(batch_size, (list, tuple)) else [
            int(batch_size)]
        return self._same(self.__berth__.rebatch(sizes, drop_remainder))

    def ignore_errors(self, log_warning=False, name=None):
        """The elements without those whose computation fails."""
        return self._same(self.__berth__.ignore_errors(log_warning))

    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
        """The same elements, which the first pass writes to files at path and later ones read."""
        refuse("snapshot", reader_func=reader_func, shard_func=shard_func)
        return self._same(self.__berth__.snapshot(str(path)))

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        """Writes all elements to a folder, for Dataset.load(); compression: None or "GZIP"."""
        from berth import _saved_data
        refuse("save", shard_func=shard_func, checkpoint_args=checkpoint_args)
        _saved_data.save(self, _remote.plain(path), compression)

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None):
        """The dataset that save() wrote; NotFoundError of another folder."""
        from berth import _saved_data
        refuse("load", reader_func=reader_func)
        made = _saved_data.load(_remote.plain(path))
        if element_spec is not None and flatten(element_spec)[0] != flatten(made.element_spec)[0]:
            raise ValueError(f"Dataset.load: the elements are {made.element_spec}, not {element_spec}")
        return made

    def get_single_element(self, name=None):
        """Returns the only element."""
        found = list(self.take(2))
        if len(found) != 1:
            raise _core.InvalidArgumentError(
                f"get_single_element: the data set has {'no' if not found else 'more than one'} element")
        return found[0]

    @staticmethod
    def counter(start=0, step=1, dtype=None, name=None):
        """The numbers start, start + step, ..., without end."""
        return Dataset(_core.Dataset.counter(start, step), flatten(0)[1])._of_type(dtype)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Random int64 numbers from 0 to 2^32 - 1, without end."""
        return Dataset(_core.Dataset.random(seed, bool(rerandomize_each_iteration)), flatten(0)[1])

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False,
                             rerandomize_each_iteration=None):
        """Elements of several data sets, each time of one that is drawn with these weights."""
        refuse("sample_from_datasets", rerandomize_each_iteration=rerandomize_each_iteration)
        return datasets[0]._same(_core.Dataset.sample_from_datasets(
            [d.__berth__ for d in datasets], [float(w) for w in weights or []], seed,
            stop_on_empty_dataset))

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Elements of several data sets, each time of the one that choice_dataset numbers."""
        return datasets[0]._same(_core.Dataset.choose_from_datasets(
            [d.__berth__ for d in datasets], choice_dataset.__berth__, stop_on_empty_dataset))

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """The names of the files that match a pattern, or any of a list; of URLs as of paths."""
        given = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
        given = [_remote.plain(p) for p in given]
        if any(map(_remote.is_url, given)):
            from berth import _gfile
            found = {p: _gfile.glob(p) for p in given}
            for pattern in (p for p in given if not found[p]):
                raise _core.NotFoundError(f"list_files: no file matches {pattern!r}; check the folder")
            names = sorted({n for some in found.values() for n in some})
            made = Dataset.from_tensor_slices(convert_to_tensor(names))
            return made if shuffle is False else made.shuffle(len(names), seed)
        return Dataset(_core.list_files(given, shuffle is not False, seed), flatten(0)[1])

    def _padding(self, shapes, values):
        """Shapes and values per component, in the engine's order."""
        flat_shapes = []
        if shapes is not None:
            def walk(form, given):
                if isinstance(form, dict):
                    for k in in_order(form):
                        walk(form[k], given[k])
                elif isinstance(form, (list, tuple)):
                    for f, g in zip(form, given):
                        walk(f, g)
                else:
                    flat_shapes.append([int(given)] if isinstance(given, int) else list(given))
            walk(self._form, shapes)
        specs = self.__berth__.element_spec()
        given, form = flatten(values)
        flat_values = [] if values is None else [
            convert_to_tensor(v, None if hasattr(v, "dtype") else d) for v, (_, d) in zip(
                given * len(specs) if form is LEAF else given, specs)]  # one value is for all
        return flat_shapes, flat_values

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None,
              name=None):
        """Batches of batch_size elements, stacked along a new first axis; the last may be smaller."""
        if has_composite(self._form):
            from berth import _composite_data
            return _composite_data.batched(self, int(batch_size), drop_remainder)
        return self._same(self.__berth__.batch(int(batch_size), drop_remainder))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None,
                     drop_remainder=False, name=None):
        """Batches of elements that are padded to a common shape."""
        return self._same(self.__berth__.padded_batch(
            int(batch_size), drop_remainder, *self._padding(padded_shapes, padding_values)))

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype=_core.int64, name=None):
        """batch() of elements with sizes that differ, which come together as RaggedTensors."""
        from berth import _composite_data
        made = _composite_data.batched(self, int(batch_size), drop_remainder, ragged=True)
        return made if row_splits_dtype == _core.int64 else made.map(
            lambda *batch: _composite_data.with_row_splits_dtype(batch, row_splits_dtype))

    def sparse_batch(self, batch_size, row_shape, name=None):
        """Batches of tensors as SparseTensors [batch, *row_shape]; elements may be smaller than row_shape."""
        from berth import _composite_data
        return _composite_data.sparse_batched(self, int(batch_size), row_shape)

    def unbatch(self, name=None):
        """The rows of batches, one by one."""
        if has_composite(self._form):
            from berth import _composite_data
            return _composite_data.unbatched(self)
        return self._same(self.__berth__.unbatch())

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        """The elements in random order, drawn from a buffer of buffer_size."""
        return self._same(self.__berth__.shuffle(int(buffer_size), seed,
                                                 reshuffle_each_iteration is not False))

    def repeat(self, count=None, name=None):
        """The elements count times; without a count for ever."""
        return self._same(self.__berth__.repeat(-1 if count is None else int(count)))

    def take(self, count, name=None):
        """The first count elements; -1: all."""
        return self._same(self.__berth__.take(int(count)))

    def skip(self, count, name=None):
        """The elements after the first count."""
        return self._same(self.__berth__.skip(int(count)))

    def shard(self, num_shards, index, name=None):
        """Every num_shards-th element, from the one with number index."""
        return self._same(self.__berth__.shard(num_shards, index))

    def concatenate(self, dataset, name=None):
        """The elements of this data set, then those of another."""
        return self._same(self.__berth__.concatenate(dataset.__berth__))

    def enumerate(self, start=0, name=None):
        """Pairs (number, element), numbers int64 from start."""
        return Dataset(self.__berth__.enumerate(start), (flatten(0)[1], self._form))

    def cache(self, filename="", name=None):
        """The same elements, which the first pass keeps in memory, or in the file."""
        return self._same(self.__berth__.cache(str(filename)))

    def prefetch(self, buffer_size, name=None):
        """The same elements, up to buffer_size of which are made ahead."""
        return self._same(self.__berth__.prefetch(int(buffer_size)))

    def apply(self, transformation_func):
        """transformation_func(this data set)."""
        return transformation_func(self)

    def with_options(self, options, name=None):
        """The dataset with options for the tasks of a strategy."""
        policy = options.experimental_distribute.auto_shard_policy
        made = self._same(_core.with_policy(self.__berth__, int(policy or 0)))
        made._options = options
        return made

    def options(self):
        """What with_options() gave this data set, else the defaults."""
        return getattr(self, "_options", None) or Options()

    def reduce(self, initial_state, reduce_func, name=None):
        """The state after reduce_func(state, element) for each element."""
        def tensors(value, like):
            leaves, form = flatten(value)
            return pack(form, [convert_to_tensor(v, d) for v, d in zip(leaves, like or [None] * len(leaves), strict=True)])
        state = tensors(initial_state, None)
        dtypes = [v.dtype for v in flatten(state)[0]]
        for element in self:
            state = tensors(reduce_func(state, element), dtypes)
        return state

    def cardinality(self):
        """The number of elements, int64: -1 without end, -2 if it is not known."""
        return convert_to_tensor(self.__berth__.cardinality(), _core.int64)

    def __len__(self):
        n = self.__berth__.cardinality()
        if n < 0:
            raise TypeError("the length of this dataset is infinite or not known")
        return n

    @property
    def element_spec(self):
        """The specs of an element, in its structure."""
        return pack(self._form, [TensorSpec(s, d) for s, d in self.__berth__.element_spec()])

    def explain(self):
        """The slow stage, and the transforms with what each has done: what AUTOTUNE chose, waits, bytes, time."""
        from berth._placement import Report
        return Report(self.__berth__.explain())

    def __repr__(self):
        from berth._data_options import shown_name
        return f"<{shown_name(self)} element_spec={self.element_spec!r}>"

    def __iter__(self):
        return Iterator(self.__berth__, lambda leaves: pack(self._form, leaves))

    def as_numpy_iterator(self):
        """An iterator over elements with arrays in place of tensors."""
        return NumpyIterator(self.__berth__, lambda leaves: pack(self._form, [v.numpy() for v in leaves]), self.element_spec)


class Iterator:
    """One pass over a data set; several threads may call next()."""

    __getattr__ = _say_missing

    def __init__(self, handle, element_of):
        self.__berth__, self._pass, self._element_of = handle, handle.pass_(), element_of
        self._ended, self._left = False, None

    def __iter__(self):
        return self

    def __next__(self):
        if _core.traces_loop():
            from berth._function import NeedsValues
            raise NeedsValues("an iterator of a data set is read inside a tf.function, whose trace would keep the element")
        leaves, self._left = self._left, None
        if leaves is None and not self._ended:
            leaves = self._pass.next()
        if leaves is None:
            raise StopIteration
        return self._element_of(leaves)

    def _each(self, call, most, seconds):
        """Has call(pass, most, seconds) of the engine use elements; an element that it leaves is the next."""
        if self._left is not None or self._ended:
            return 0, [], None
        calls, results, form, self._ended, self._left = call(self._pass, most, seconds)
        return calls, results, form

    def next(self):
        """The next element; StopIteration at the end."""
        return self.__next__()

    def __repr__(self):
        return f"<Iterator element_spec={self.element_spec!r}>"

    def get_next(self, name=None):
        """The next element; OutOfRangeError at the end."""
        for element in self:
            return element
        raise _core.OutOfRangeError("the data set has no more elements")

    def get_next_as_optional(self):
        """The next element, or none at the end, as a tf.experimental.Optional."""
        return Optional(*itertools.islice(self, 1))

    @property
    def element_spec(self):
        """The specs of an element, in its structure."""
        return self._element_of([TensorSpec(s, d) for s, d in self.__berth__.element_spec()])


class NumpyIterator(Iterator):
    """An iterator of a data set that gives arrays in place of tensors; see Dataset.as_numpy_iterator()."""

    @property
    def element_spec(self):
        """The specs of an element, in its structure."""
        return self._spec

    def __init__(self, handle, element_of, spec):
        super().__init__(handle, element_of)
        self._spec = spec


class Optional:
    """A value, or none (tf.experimental.Optional)."""

    def __init__(self, *value, spec=None):
        self._value, self._spec = value, spec

    @classmethod
    def from_value(cls, value):
        """An Optional that has a value."""
        leaves, form = flatten(value)
        return cls(pack(form, [convert_to_tensor(v) for v in leaves]))

    @staticmethod
    def empty(element_spec=None):
        """An Optional without a value; element_spec says what it would be."""
        return Optional(spec=element_spec)

    @property
    def element_spec(self):
        """The spec of the value, in its structure."""
        if not self._value:
            return self._spec
        leaves, form = flatten(self._value[0])
        return pack(form, [TensorSpec(v.shape, v.dtype) for v in leaves])

    def has_value(self, name=None):
        """Whether there is a value, bool []."""
        return convert_to_tensor(len(self._value) == 1)

    def get_value(self, name=None):
        """The value; InvalidArgumentError where there is none."""
        if not self._value:
            raise _core.InvalidArgumentError("this Optional has no value: ask has_value() first")
        return self._value[0]


class Windows:
    """What Dataset.window() makes: data sets of neighbours."""

    def __init__(self, parent, *options):
        self._parent, self._options = parent, options

    def _parts(self, handle):
        """A window as the arguments of a function: a data set per component of a tuple."""
        form = self._parent._form
        if isinstance(form, (tuple, dict)):
            whole = Dataset(handle, form)
            if isinstance(form, dict):
                return ({k: whole.map(lambda e, k=k: e[k]) for k in form},)
            return tuple(whole.map(lambda *e, i=i: e[i]) for i in range(len(form)))
        return (Dataset(handle, form),)

    def flat_map(self, map_func, name=None):
        """The elements of map_func(window), window by window."""
        forms = []

        def call(handle):
            made = map_func(*self._parts(handle))
            forms.append(made._form)
            return made.__berth__

        handle = self._parent.__berth__.window(*self._options, call)
        handle.element_spec()
        return Dataset(handle, forms[0] if forms else self._parent._form)

    def take(self, count, name=None):
        """The first `count` windows, -1: all."""
        return _Some(self._parent, self.batch().take(count))

    def skip(self, count, name=None):
        """The windows after the first `count`."""
        return _Some(self._parent, self.batch().skip(count))

    def batch(self, batch_size=None, drop_remainder=False, name=None):
        """Each window as one element, its elements on top of each other."""
        refuse("windows.batch", drop_remainder=drop_remainder,
               batch_size=None if batch_size == self._options[0] else batch_size)
        return self._parent._same(self._parent.__berth__.window(*self._options, None))

    def _of_batch(self, batch):
        return self._parts(_core.Dataset.from_tensor_slices(flatten(batch)[0]))

    def __iter__(self):
        for batch in self.batch():
            made = self._of_batch(batch)
            yield made[0] if len(made) == 1 else made

    def map(self, map_func, name=None):
        """Elements map_func(window), whose results are data sets or tensors: iterate over them."""
        return _Mapped(self, map_func)


class _Some(Windows):
    """Some of the windows, each kept as a batch."""

    def __init__(self, parent, batches):
        self._parent, self._batches = parent, batches

    def batch(self, batch_size=None, drop_remainder=False, name=None):
        return self._batches

    def flat_map(self, map_func, name=None):
        return self._batches.flat_map(lambda *batch: map_func(*self._of_batch(batch if len(batch) > 1 else batch[0])))


class _Mapped:
    """Windows that a function has been applied to."""

    def __init__(self, windows, fn):
        self._windows, self._fn = windows, fn

    def __iter__(self):
        for window in self._windows:
            yield self._fn(*window) if isinstance(window, tuple) else self._fn(window)


def _files(filenames):
    if isinstance(filenames, Dataset):
        return filenames.__berth__
    if hasattr(filenames, "numpy"):
        import numpy
        filenames = numpy.asarray(filenames.numpy(), dtype=object).ravel().tolist()
    elif isinstance(filenames, (str, bytes)) or hasattr(filenames, "__fspath__"):
        filenames = [filenames]
    names = [_remote.plain(f) for f in filenames]
    _remote.expect(names)
    return names


class TextLineDataset(Dataset):
    """The lines of files, one after the other."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None,
                 name=None):
        super().__init__(_core.text_lines(_files(filenames), compression_type or "",
                                          num_parallel_reads or 0), flatten(0)[1])


class TFRecordDataset(Dataset):
    """The records of TFRecord files."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None,
                 name=None):
        super().__init__(_core.tf_records(_files(filenames), compression_type or "",
                                          num_parallel_reads or 0), flatten(0)[1])


class FixedLengthRecordDataset(Dataset):
    """Records of so many bytes."""

    def __init__(self, filenames, record_bytes, header_bytes=None, footer_bytes=None,
                 buffer_size=None, compression_type=None, num_parallel_reads=None, name=None):
        super().__init__(_core.fixed_records(
            _files(filenames), int(record_bytes), header_bytes or 0, footer_bytes or 0,
            compression_type or "", num_parallel_reads or 0), flatten(0)[1])


class CsvDataset(Dataset):
    """Rows of CSV files: a tuple with a scalar per column. Its place is tf.data.experimental."""

    def __init__(self, filenames, record_defaults, compression_type=None, buffer_size=None,
                 header=False, field_delim=",", use_quote_delim=True, na_value="", select_cols=None,
                 exclude_cols=None):
        form = tuple(flatten(0)[1] for _ in record_defaults)
        super().__init__(_core.csv(
            _files(filenames), list(record_defaults), header, field_delim, [int(c) for c in select_cols or []],
            [int(c) for c in exclude_cols or []], compression_type or "", use_quote_delim, na_value), form)


def _nested(value):
    """Tuples and dictionaries are structures here; a list or a range is a tensor."""
    if isinstance(value, range):
        return convert_to_tensor(value)
    if isinstance(value, list):
        import numpy  # a list of arrays keeps their dtype
        arrays = value and all(isinstance(v, numpy.ndarray) for v in value)
        return convert_to_tensor(numpy.asarray(value) if arrays else value)
    if isinstance(value, tuple):
        parts = [_nested(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return type(value)((k, _nested(v)) for k, v in value.items())
    return value


def _result(value):
    """What the function of a map returned: the outer list is a tuple."""
    return _nested(tuple(value) if isinstance(value, list) else value)


def _equal(some, others):
    """True of elements with the same values, NaN equal to NaN."""
    def seen(t):
        value = t.numpy()
        return value if isinstance(value, bytes) else value.tolist() if t.dtype == _core.string else value.tobytes()
    return all(a.dtype == b.dtype and a.shape == b.shape and seen(a) == seen(b) for a, b in zip(some, others))


def _arguments(form, leaves):
    element = pack(form, leaves)
    return element if isinstance(element, tuple) else (element,)


def make_csv_dataset(file_pattern, batch_size, column_names=None, column_defaults=None, label_name=None,
                     select_columns=None, field_delim=",", use_quote_delim=True, na_value="", header=True,
                     num_epochs=None, shuffle=True, shuffle_buffer_size=10000, shuffle_seed=None,
                     prefetch_buffer_size=None, num_parallel_reads=None, sloppy=False,
                     num_rows_for_inference=100, compression_type=None, ignore_errors=False):
    """Batches of CSV files: dictionaries of columns [batch_size], with label_name pairs of that and the label."""
    defaults = [v if isinstance(v, _core.DType) else convert_to_tensor(v) for v in column_defaults or []]
    handle, names = _core.make_csv(_remote.matching(_files(file_pattern)), int(batch_size), {
        "column_names": column_names, "column_defaults": defaults, "label_name": label_name,
        "select_columns": select_columns, "field_delim": field_delim, "use_quote_delim": use_quote_delim,
        "na_value": na_value, "header": header, "num_epochs": -1 if num_epochs is None else num_epochs,
        "shuffle": shuffle, "shuffle_buffer_size": shuffle_buffer_size, "shuffle_seed": shuffle_seed,
        "prefetch_buffer_size": prefetch_buffer_size, "num_parallel_reads": num_parallel_reads,
        "num_rows_for_inference": num_rows_for_inference, "compression_type": compression_type})
    form = _collections.OrderedDict((n, LEAF) for n in names if n != label_name)
    # The engine has the columns in the order of the file, the leaves of a dictionary that of their names.
    order = [names.index(n) for n in in_order(form)] + ([] if label_name is None else [names.index(label_name)])
    made = Dataset(handle, tuple(LEAF for _ in names)).map(lambda *columns: tuple(columns[i] for i in order))
    made = Dataset(made.__berth__, (form, LEAF) if label_name is not None else form)
    return made.ignore_errors() if ignore_errors else made


hide_in(Dataset, Iterator, Windows, TextLineDataset, TFRecordDataset, FixedLengthRecordDataset, CsvDataset)

from berth import _data_experimental as _more  # noqa: E402  its functions are of Dataset

_debug = []  # what enable_debug_mode() puts in


def _enable_debug_mode():
    """From now on the functions of data sets are called op by op, for debuggers. Before the first data set."""
    _debug.append(True)


experimental = _Names(
    "tf.data.experimental", AUTOTUNE=AUTOTUNE, AutoShardPolicy=_AutoShardPolicy, CsvDataset=CsvDataset,
    make_csv_dataset=make_csv_dataset, Optional=Optional, INFINITE_CARDINALITY=INFINITE_CARDINALITY, UNKNOWN_CARDINALITY=UNKNOWN_CARDINALITY,
    enable_debug_mode=_enable_debug_mode,
    **{n: v for n, v in vars(_more).items() if callable(v) and not n.startswith("_") and n not in (
        "Dataset", "TensorSpec", "convert_to_tensor", "flatten", "pack")})
experimental._later({
    "_data_options": "AutotuneAlgorithm AutotuneOptions DistributeOptions ExternalStatePolicy OptimizationOptions ServiceOptions "
                     "ThreadingOptions",
    "_data_readers": "DatasetInitializer Reducer SqlDataset TFRecordWriter dense_to_sparse_batch group_by_reducer "
                     "index_table_from_dataset make_batched_features_dataset pad_to_cardinality parse_example_dataset "
                     "table_from_dataset"})
