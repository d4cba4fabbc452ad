"""tf.keras.datasets: read by the engine, given as arrays."""
import contextlib as _contextlib
import os as _os
import tempfile as _tempfile

from berth import _core
from berth._lazy import Names as _Names


def _mnist(path="mnist.npz"):
    """((x_train, y_train), (x_test, y_test)), uint8; digits are read from BERTH_DATA or fetched."""
    return _core.load_mnist()


@_contextlib.contextmanager
def _folder(name):
    """A folder with what the engine reads of imdb or reuters.

    The file that Keras publishes has arrays of Python objects: it is converted, beside it
    where that is possible. What a file of another checksum would run is not known.
    """
    from berth import _plain_npz
    path = _core.find_sequences(name)
    folder = _os.path.dirname(path)
    if path.endswith("-plain.npz") or not _plain_npz.is_published(path):
        yield folder
    elif _os.access(folder, _os.W_OK):
        _plain_npz.convert(path, f"{folder}/{name}-plain.npz")
        yield folder
    else:
        with _tempfile.TemporaryDirectory() as folder:
            _plain_npz.convert(path, f"{folder}/{name}-plain.npz")
            yield folder


def _sequences(num_words=None, skip_top=0, maxlen=None, seed=113, start_char=1, oov_char=2,
               index_from=3):
    import numpy
    options = {"num_words": num_words, "skip_top": skip_top, "maxlen": maxlen, "seed": seed,
               "start_char": start_char, "oov_char": oov_char, "index_from": index_from}

    def lists(part):
        x = numpy.empty(len(part[0]), dtype=object)
        x[:] = part[0]
        return x, part[1]
    return options, lists


def _imdb(path="imdb.npz", **options):
    """((x_train, y_train), (x_test, y_test)): lists of numbers of words, and labels."""
    options, lists = _sequences(**options)
    with _folder("imdb") as options["data_dir"]:
        train, test = _core.load_imdb(options)
    return lists(train), lists(test)


def _reuters(path="reuters.npz", test_split=0.2, **options):
    """The same of newswires."""
    options, lists = _sequences(**options)
    with _folder("reuters") as options["data_dir"]:
        train, test = _core.load_reuters(options, test_split)
    return lists(train), lists(test)


def _california(version="large", path="california_housing.npz", test_split=0.2, seed=113):
    """((x_train, y_train), (x_test, y_test)) of houses and their prices."""
    return _core.load_california_housing(version, test_split, seed)


def _columns(parts):
    """Labels as [n, 1], which is how Keras has those of CIFAR."""
    return tuple((x, y.reshape(-1, 1)) for x, y in parts)


def _fashion_mnist():
    """((x_train, y_train), (x_test, y_test)): uint8 [n, 28, 28] and numbers of ten kinds of clothes."""
    return _core.load_fashion_mnist()


def _cifar10():
    """((x_train, y_train), (x_test, y_test)): uint8 [n, 32, 32, 3] and numbers of ten classes [n, 1]."""
    return _columns(_core.load_cifar10())


def _cifar100(label_mode="fine"):
    """((x_train, y_train), (x_test, y_test)): uint8 [n, 32, 32, 3] and numbers of 100 "fine" or 20 "coarse" classes."""
    return _columns(_core.load_cifar100(label_mode))


fashion_mnist = _Names("tf.keras.datasets.fashion_mnist", load_data=_fashion_mnist)
cifar10 = _Names("tf.keras.datasets.cifar10", load_data=_cifar10)
cifar100 = _Names("tf.keras.datasets.cifar100", load_data=_cifar100)
imdb = _Names("tf.keras.datasets.imdb", load_data=_imdb)
reuters = _Names("tf.keras.datasets.reuters", load_data=_reuters)
california_housing = _Names("tf.keras.datasets.california_housing", load_data=_california)
mnist = _Names("tf.keras.datasets.mnist", load_data=_mnist)
