"""The batches of an epoch: of arrays as row numbers, of all else one by one, the next made while one is used."""
import threading

import numpy as np
from berth import _core
from berth._structure import present
from berth._tensor import TensorSpec
from berth.distribute import DistributedDataset, MultiWorkerMirroredStrategy
from berth.sparse import SparseTensor, to_dense
from keras.src import tree
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.data_adapters.data_adapter import DataAdapter
from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

from keras_berth.src.ops.core import convert_to_tensor
from keras_berth.src.ops.sparse import SPARSE

_MOST_BYTES = 4 << 30  # of arrays that are copied into tensors as a whole


def tensors(batch):
    """A batch with tensors in place of arrays, also of other frameworks; None stays."""
    return tree.map_structure(lambda v: v if v is None else convert_to_tensor(_dense(v)), batch)


def _dense(v):
    """What NumPy takes: sparse tensors of SciPy, JAX and TensorFlow, and tensors that need a copy off their device."""
    if isinstance(v, (np.ndarray, _core.Tensor, *SPARSE)):
        return v
    if type(v).__name__ == "SparseTensor":
        out = np.zeros(v.shape, v.dtype.as_numpy_dtype)
        out[tuple(np.array(v.indices).T)] = np.array(v.values)
        return out
    if hasattr(v, "toarray"):
        return v.toarray()
    if hasattr(v, "todense"):
        return np.asarray(v.todense())
    if hasattr(v, "detach"):
        return v.detach().cpu().numpy()
    return v


def is_text(v):
    """True of a tensor or an array of strings."""
    return (isinstance(v, _core.Tensor) and v.dtype == _core.string) or (
        isinstance(v, np.ndarray) and (v.dtype.kind in "SU" or v.dtype == object and v.size and isinstance(
            v.flat[0], (str, bytes))))


def _seed(strategy=None):
    """What an order of rows is drawn from, in all tasks what the first draws."""
    seed = int(np.random.randint(2 ** 31))
    if isinstance(strategy, MultiWorkerMirroredStrategy):
        seed = int(strategy.gather(_core.convert([seed], None), 0)[0])
    return seed


def _batched(rows, size, seed):
    """Batches of the rows of arrays, in the order of the seed; None: as they are."""
    return (rows if seed is None else rows.shuffle(len(rows), seed=seed)).batch(size)


def _texts(x, y, sample_weight, options):
    """The data set of batches of texts, which Keras' adapters of arrays do not take."""
    from berth.data import Dataset
    rows = Dataset.from_tensor_slices(tuple(v for v in (x, y, sample_weight) if v is not None))
    return _batched(rows, options.get("batch_size") or 32, _seed() if options.get("shuffle") else None)


def _weighted(batch, class_weight):
    """(x, y) of a dataset with the weight of each y's class."""
    x, y, weight = (*batch, None, None)[:3]
    if weight is not None:
        raise ValueError("class_weight and sample_weight cannot be given at the same time")
    if y is None or isinstance(y, (dict, list, tuple)):
        raise ValueError("class_weight is for models with a single output")
    table = _core.convert([class_weight.get(c, 1.0) for c in range(max(class_weight) + 1)], "float32")
    if len(y.shape) > 1:
        y = _core.ops.argmax(y, -1) if y.shape[-1] > 1 else _core.ops.squeeze(y, [-1])
    return x, batch[1], _core.ops.gather(table, _core.ops.cast(y, "int32"))


class _DatasetAdapter(DataAdapter):
    """The batches of a tf.data.Dataset of Berth."""

    def __init__(self, dataset):
        self._dataset = dataset

    def get_numpy_iterator(self):
        return iter(self._dataset)

    @property
    def num_batches(self):
        split = isinstance(self._dataset, DistributedDataset)
        n = int((self._dataset._dataset if split else self._dataset).cardinality())
        return n if n >= 0 else None

    batch_size = has_partial_batch = partial_batch_size = None


class NoBatches(ValueError):
    """Data without a first batch."""


class Epochs(EpochIterator):
    """Keras' iterator over epochs, which also takes Berth's datasets."""

    def __init__(self, x, y=None, sample_weight=None, strategy=None, **options):
        from berth.data import Dataset
        if any(map(is_text, tree.flatten(x))):
            x, y, sample_weight = _texts(x, y, sample_weight, options), None, None
        if any(isinstance(v, SparseTensor) for v in tree.flatten(x)):  # Keras' adapters of arrays do not take them
            x = tree.map_structure(lambda v: to_dense(v).numpy() if isinstance(v, SparseTensor) else v, x)
        self._own = x if isinstance(x, (Dataset, DistributedDataset)) else None
        if self._own is not None:
            if y is not None or sample_weight is not None:
                raise ValueError("a dataset has targets and weights in its elements: leave out y and sample_weight")
            if class_weight := options.pop("class_weight", None):
                if isinstance(x, DistributedDataset):
                    raise ValueError("class_weight is given with a distributed dataset; map weights into its elements")
                self._own = x.map(lambda *batch: _weighted(batch, class_weight))
            x = np.zeros((1, 1))
        super().__init__(x, y, sample_weight, **options)
        if self._own is not None:
            self.data_adapter = _DatasetAdapter(self._own)
            self._num_batches = self.data_adapter.num_batches
        self._strategy = strategy
        self._whole = self._spec = self._reading = None
        self.one_by_one = False  # a call of the engine is one step
        self.done = False  # the epoch that begins has no batches left
        self.seed, self.skipped, self._from = None, 0, None  # of the order of rows; batches that are done already

    def _get_iterator(self):
        if self._strategy is not None:
            return _Pass(self._distributed, self._strategy)
        if self._own is not None:
            return _Pass(lambda: self._own)
        return _Ahead(map(tensors, self.data_adapter.get_numpy_iterator()))

    def _enumerate_iterator(self):
        for first, last, self._reading in super()._enumerate_iterator():
            yield first, last, self._reading

    def totals(self, first, count):
        """How many examples all tasks have together of each of some batches; None where that is not known."""
        if self._whole is None:
            return [None] * count
        size, n = self.data_adapter.batch_size, self.data_adapter._num_samples
        return [min(size, n - i * size) for i in range(first, first + count)]

    def group(self, step, batch, first):
        """Runs a step for a batch, and for more of the epoch where the engine reads them; returns (results of the last, steps)."""
        total, = self.totals(first, 1)
        if not isinstance(self._reading, _Pass) or not step.may_read(self._reading.iterator):
            return step([batch], [total]), 1
        left = [n for n in (self.num_batches and self.num_batches - first,
                            self._num_batches and self._num_batches - self._steps_seen + 1,
                            total and max(1, self.data_adapter._num_samples // self.data_adapter.batch_size - first)) if n]
        out, count = step.group(batch, self._reading.iterator, min(left, default=1 << 40), total)
        for _ in range(count - 1):
            next(self._epoch_iterator)
        return out, count

    def _distributed(self):
        """The data set of the batches of an epoch for a strategy."""
        from berth.data import Dataset
        self._strategy.__berth__.start_shares()
        if self._own is not None:
            return self._own
        if self._whole is None and self._spec is None:
            self._whole = self.rows()
        if self._whole is None:
            if self._spec is None:
                self._spec = tree.map_structure(lambda t: TensorSpec([None, *t.shape[1:]], t.dtype), tensors(self.first_batch()))
            batches = Dataset.from_generator(lambda: iter(self.data_adapter.get_numpy_iterator()),
                                             output_signature=self._spec)
        else:
            leaves, form = present(self._whole)
            rows = Dataset(_core.Dataset.from_tensor_slices(leaves), form)
            self.seed = _seed(self._strategy) if self.data_adapter._shuffle else None
            self.skipped = 0
            if self._from is not None:
                self.skipped, self.seed = self._from
                self._from = None
            batches = _batched(rows, self.data_adapter.batch_size, self.seed).skip(self.skipped)
        return batches

    def skip(self, batches, seed):
        """The next epoch goes on after so many batches of the order of a seed. False: these are not rows of arrays."""
        if self._own is None and self._whole is None:
            self._whole = self.rows()
        if self._whole is None:
            return False
        if batches < self.num_batches:
            self._from = batches, seed
        else:
            self.done = True
            if self.data_adapter._shuffle:
                _seed(self._strategy)  # the one that the epoch had drawn
        return True

    def first_batch(self):
        """A batch to see shapes of, of which none is lost."""
        adapter = self.data_adapter
        if isinstance(adapter, PyDatasetAdapter):  # its workers would go on from the second
            return adapter._standardize_batch(adapter.py_dataset[0])
        for batch in getattr(self._own, "__berth_whole__", self._own) if self._own is not None else (
                adapter.get_numpy_iterator()):
            return batch
        raise NoBatches("the dataset has no batches: it is empty, or a batch with drop_remainder=True is larger than it")

    def rows(self):
        """The arrays as tensors, where all batches are rows of them; else None."""
        adapter = self.data_adapter
        if type(adapter) is not ArrayDataAdapter or self.steps_per_epoch or adapter._shuffle == "batch":
            return None
        leaves = [v for v in tree.flatten(adapter._inputs) if v is not None]
        if sum(getattr(v, "nbytes", 0) for v in leaves) > _MOST_BYTES or not adapter._num_samples:
            return None
        sliceable = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")
        n = adapter._num_samples
        whole = tree.map_structure(lambda s: tensors(s.convert_to_numpy(s[0:n])), sliceable, none_is_leaf=False)
        if any(t is not None and t.dtype == _core.string for t in tree.flatten(whole)):
            return None
        return whole

    def order(self):
        """The row numbers of an epoch, int32 [samples]."""
        n = self.data_adapter._num_samples
        return (np.random.permutation(n) if self.data_adapter._shuffle else np.arange(n)).astype("int32")


class _Pass:
    """A pass over a data set of the engine, which begins when its first element is asked for; for a strategy a batch has a
    part for each replica."""

    def __init__(self, dataset, strategy=None):
        self._dataset, self._strategy, self.iterator = dataset, strategy, None

    def __iter__(self):
        return self

    def __next__(self):
        if self.iterator is None:
            data = self._dataset()
            if self._strategy is not None and not isinstance(data, DistributedDataset):
                data = self._strategy.experimental_distribute_dataset(data)
            self.iterator = iter(data)
        return next(self.iterator)


class _Ahead:
    """An iterator whose next element is made on a thread while one is used."""

    def __init__(self, elements):
        self._elements, self._next, self._thread = elements, None, None

    def __iter__(self):
        return self

    def _make(self):
        try:
            self._next = next(self._elements), None
        except BaseException as error:  # raised where the element is asked for
            self._next = None, error

    def __next__(self):
        if self._thread is None:
            self._make()
        else:
            self._thread.join()
        element, error = self._next
        if error is not None:
            self._elements = iter(())
            self._thread = None
            raise error
        self._thread = threading.Thread(target=self._make, daemon=True)
        self._thread.start()
        return element
