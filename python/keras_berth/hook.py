"""Makes Keras releases without plug-ins import this backend: six files of Keras get a branch as they are imported.

Keras picks its backend in closed chains of `if`. Each place is looked for by its text, which must occur once.
In six further files a fault of Keras is mended where its text is found.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import sys

from keras_berth import TESTED

# By module: the text before which the branch goes, and the branch; in one module two.
_EDITS = {
    "keras.src.backend": ('elif backend() == "jax":\n', (
        'elif backend() == "berth":\n'
        "    from keras_berth.src import *  # noqa: F403\n"
        "    from keras_berth.src.variable import Variable as BackendVariable\n")),
    "keras.src.layers.layer": ('elif backend.backend() == "jax":\n    from', (
        'elif backend.backend() == "berth":\n'
        "    from keras_berth.src.layer import BerthLayer as BackendLayer\n")),
    "keras.src.models.model": ('elif backend.backend() == "jax":\n    from', (
        'elif backend.backend() == "berth":\n'
        "    from keras_berth.src.trainer import BerthTrainer as Trainer\n")),
    "keras.src.export.saved_model": ('elif backend.backend() == "jax":\n    from', (
        'elif backend.backend() == "berth":\n'
        "    from keras_berth.src.export import BerthExportArchive as BackendSavedModelExportArchive\n")),
    "keras.src.utils.backend_utils": ('        if self._backend == "jax":\n', (
        '        if self._backend == "berth":\n'
        '            return getattr(importlib.import_module("keras_berth.src"), name)\n'),
        '    if "tensorflow" in sys.modules:\n', (  # Berth by that name (python -m berth) has no graphs of TensorFlow
            '    if getattr(sys.modules.get("tensorflow"), "is_berth", False):\n'
            "        return False\n")),
    "keras.src.optimizers.optimizer": ('elif backend.backend() == "jax":\n    from', (
        'elif backend.backend() == "berth":\n'
        "    from keras_berth.src.optimizer import BerthOptimizer as BackendOptimizer\n")),
}

# By module: the text of a fault, and what mends it.
_MENDED = {
    # Promotion of 64 bits to 32 is what JAX does; a model of float64 would compute in float32 without a word.
    "keras.src.backend.common.dtypes": (
        'config.backend() == "tensorflow"', 'config.backend() in ("berth", "tensorflow")'),
    # The optimizer was built for no variables, and the first step after it failed.
    "keras.src.legacy.saving.legacy_h5_format": (
        "model.optimizer.build(model._trainable_variables)", "model.optimizer.build(model.trainable_variables)"),
    "keras.src.layers.normalization.batch_normalization": (  # moments() of all replicas is there
        'if synchronized and backend.backend() != "tensorflow":', 'if synchronized and backend.backend() not in ("berth", "tensorflow"):'),
    # profile_batch is for backends that have a profiler.
    "keras.src.callbacks.tensorboard": (
        'if backend.backend() not in ("jax", "tensorflow"):', 'if backend.backend() not in ("jax", "tensorflow", "berth"):'),
    # Files of URLs were TensorFlow's alone.
    "keras.src.utils.module_utils": (
        'gfile = LazyModule("tensorflow.io.gfile", pip_name="tensorflow")', 'gfile = LazyModule("berth._gfile", pip_name="berth")'),
    "keras.src.export.tfsm_layer": (  # folders of Berth are read as such
        '        if backend.backend() != "tensorflow":\n',
        '        global tf\n'
        '        if backend.backend() == "berth":\n'
        "            import berth as tf\n"
        '        elif backend.backend() != "tensorflow":\n'),
    # A weight for each example is one for all of its losses, whatever their rank.
    "keras.src.losses.loss": (
        "        values = values * sample_weight\n",
        "        if len(sample_weight.shape) == 1 < len(values.shape):\n"
        "            sample_weight = ops.reshape(sample_weight, (-1,) + (1,) * (len(values.shape) - 1))\n"
        "        values = values * sample_weight\n"),
}


def edited(name, text):
    """The source of a module of Keras with the branch for this backend; ImportError where its place is not clear."""
    if name in _MENDED:
        return text.replace(*_MENDED[name])
    edits = _EDITS[name]
    for place, branch in zip(edits[::2], edits[1::2]):
        if text.count(place) != 1:
            raise ImportError(f"KERAS_BACKEND=berth: {name} of this Keras has {text.count(place)} places for a backend "
                              f"where 1 is expected; keras_berth is tested with Keras {', '.join(TESTED)}")
        text = text.replace(place, branch + place)
    return text


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of Keras from its edited source, which is not cached."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        text = importlib.util.decode_source(self.get_data(path))
        return compile(edited(fullname, text), path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name not in _EDITS and name not in _MENDED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install():
    """Registers the finder, once; Keras that knows plug-ins (its backend/__init__.py imports by name) needs none."""
    if any(isinstance(f, _Finder) for f in sys.meta_path) or "keras.src.backend" in sys.modules:
        return
    keras = importlib.machinery.PathFinder.find_spec("keras")
    if keras is None or _has_plugins(keras):
        return
    sys.meta_path.insert(0, _Finder())


def _has_plugins(keras):
    import os
    path = os.path.join(os.path.dirname(keras.origin or ""), "src", "backend", "__init__.py")
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as file:
        return "import_module(" in file.read()
