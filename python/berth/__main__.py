"""python -m berth [--own-keras] SCRIPT.py [ARGS]: runs a script of TensorFlow's as it is.

For that run `import tensorflow` means Berth. `keras` and `tf.keras` are the package Keras on Berth where it is
installed, as in TensorFlow; without it, or with --own-keras, they are berth.keras.
"""
import importlib
import importlib.abc
import importlib.util
import os
import runpy
import sys
import types

import berth

# What Keras computes with, whatever its backend, where it meets tensors of `tensorflow`: in a map of tf.data, on texts.
_FOR_TENSORFLOW = ("keras.src.backend.tensorflow", "keras.src.backend.tensorflow.core")
_OF_KERAS = ("keras", "losses", "metrics", "optimizers", "initializers")


def _as_text(bytes_or_text, encoding="utf-8"):
    return bytes_or_text.decode(encoding) if isinstance(bytes_or_text, bytes) else str(bytes_or_text)


def _as_bytes(bytes_or_text, encoding="utf-8"):
    return bytes_or_text if isinstance(bytes_or_text, bytes) else str(bytes_or_text).encode(encoding)


class _TensorFlow(types.ModuleType):
    """Berth, but for its version, which scripts compare, and what is Keras'."""

    is_berth = True
    __version__ = f"2.21.0+berth.{berth.__version__}"  # whose names these are

    def __init__(self, own_keras):
        super().__init__("tensorflow")
        self._own_keras = own_keras
        self.version = types.SimpleNamespace(**{**vars(berth.version), "VERSION": self.__version__})

    def __getattr__(self, name):
        if name == "compat":
            return importlib.import_module("tensorflow.compat")
        if name not in _OF_KERAS or self._own_keras:
            return getattr(berth, name)
        keras = importlib.import_module("keras._tf_keras.keras")
        return keras if name == "keras" else getattr(keras, name)

    def __dir__(self):
        return dir(berth)


class _Version1(types.ModuleType):
    """tf.compat.v1, of which berth._compat_v1 has the functions."""

    def __getattr__(self, name):
        from berth import _compat_v1
        if name.startswith("_") or not hasattr(_compat_v1, name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(_compat_v1, name)


class _Answer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of tensorflow, and of keras where that is Berth's own."""

    def __init__(self, own_keras):
        self._tops = ("tensorflow", "keras") if own_keras else ("tensorflow",)
        self._own_keras = own_keras

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self._tops and name not in _FOR_TENSORFLOW:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        if spec.name in _FOR_TENSORFLOW:
            return importlib.import_module("keras_berth.src")
        own = spec.name.replace("tensorflow", "berth", 1)
        own = own.replace("keras", "berth.keras", 1) if own.startswith("keras") else own
        own = own.replace("berth.python.", "berth.").replace("berth.compat.v2", "berth")
        if own == "berth.compat":
            made = types.ModuleType(spec.name)
            made.v1 = _Version1(f"{spec.name}.v1")  # the messages that scripts for version 2 fill in, and what Keras calls
            made.v1.ConfigProto = types.SimpleNamespace
            made.v1.SummaryMetadata = lambda: types.SimpleNamespace(plugin_data=types.SimpleNamespace())
            made.v2 = _TensorFlow(self._own_keras)
            made.as_text = made.as_str = _as_text
            made.as_bytes = _as_bytes
            return made
        if own == "berth.compat.v1":
            return sys.modules["tensorflow.compat"].v1
        if own == "berth":
            return _TensorFlow(self._own_keras)
        if not self._own_keras:
            own = own.replace("berth.keras", "keras._tf_keras.keras", 1)
        try:
            return importlib.import_module(own)
        except ModuleNotFoundError as e:
            if not own.startswith(e.name or " "):
                raise  # one of the module's own imports
            raise ModuleNotFoundError(f"No module named '{spec.name}': Berth answers for TensorFlow's public names alone "
                                      "(docs/python-names.md lists them)", name=spec.name) from None

    def exec_module(self, module):
        pass


def _has_keras():
    """True if Keras is installed; its backend is then Berth."""
    if importlib.util.find_spec("keras") is None or os.environ.setdefault("KERAS_BACKEND", "berth") != "berth":
        return False
    from keras_berth import hook
    hook.install()
    return True


def main():
    arguments = sys.argv[1:]
    own_keras = arguments[:1] == ["--own-keras"]
    if own_keras:
        del arguments[0]
    if not arguments:
        sys.exit("usage: python -m berth [--own-keras] SCRIPT.py [ARGS]")
    sys.meta_path.insert(0, _Answer(own_keras or not _has_keras()))
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
