"""python -m berth [--own-keras] (SCRIPT.py | -m MODULE) [ARGS]: runs a script or module of TensorFlow's as it is.

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
            compat = importlib.import_module("berth.compat")
            made = types.ModuleType(spec.name)
            vars(made).update({name: value for name, value in vars(compat).items() if not name.startswith("_")})
            made.v1, made.v2 = importlib.import_module("berth._compat_v1"), _TensorFlow(self._own_keras)
            return made
        if own == "berth.compat.v1":
            return importlib.import_module("berth._compat_v1")
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
    of_module = arguments[:1] == ["-m"]
    if of_module:
        del arguments[0]
    if not arguments:
        sys.exit("usage: python -m berth [--own-keras] (SCRIPT.py | -m MODULE) [ARGS]")
    sys.meta_path.insert(0, _Answer(own_keras or not _has_keras()))
    if of_module:
        sys.argv, sys.path[0] = arguments, os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
