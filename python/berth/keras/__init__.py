"""tf.keras: layers, models and their training, with Keras' names."""
import sys as _sys
import types as _types

from berth import _core
from berth._classes import describe as _describe
from berth._frames import hiding as _hiding
from berth._modules import later as _later
from berth._tensor import name_missing, refuse, unknown_name
from berth.keras import _own, _parts
from berth.keras import layers, callbacks, models
from berth.keras.models import Model, Sequential, Input
from berth.keras.layers import Layer

KerasTensor = _core.KerasTensor


def _module(name, values):
    made = _types.ModuleType(f"berth.keras.{name}")
    vars(made).update(values)
    _sys.modules[made.__name__] = made
    return name_missing(made)


losses = _module("losses", {**_parts.losses, "Loss": _own.Loss, "Reduction": _own.Reduction})
metrics = _module("metrics", {**_parts.metrics, "Metric": _own.Metric})
optimizers = _module("optimizers", _parts.optimizers)
optimizers.schedules = _module("optimizers.schedules", _parts.schedules)
optimizers.legacy = optimizers
initializers = _module("initializers", _parts.initializers)
for _name in """constant glorot_normal glorot_uniform he_normal he_uniform identity lecun_normal lecun_uniform ones orthogonal
        random_normal random_uniform truncated_normal variance_scaling zeros""".split():
    setattr(initializers, _name, _parts.initializers[_name.title().replace("_", "")])  # their short names
regularizers = _module("regularizers", _parts.regularizers)
constraints = _module("constraints", _parts.constraints)
activations = _module("activations", _parts.activations)
applications = _module("applications", _parts.applications)


def _preprocessing(mode):
    def preprocess_input(x, data_format=None):
        refuse("preprocess_input", data_format=None if data_format == "channels_last" else data_format)
        if isinstance(x, KerasTensor) and mode == "tf":  # between the layers of a functional model
            return x / 127.5 - 1.0
        return _parts.applications["preprocess_input"](x, mode=mode)
    preprocess_input.__doc__ = f"Pictures [batch, height, width, 3] of 0 to 255 as the models want them: mode {mode!r}."
    return preprocess_input


for _name, _mode, _models in (
        ("mobilenet", "tf", "MobileNet"), ("mobilenet_v2", "tf", "MobileNetV2"), ("xception", "tf", "Xception"),
        ("resnet", "caffe", "ResNet50 ResNet101 ResNet152"), ("resnet50", "caffe", "ResNet50"), ("vgg16", "caffe", "VGG16"),
        ("vgg19", "caffe", "VGG19"), ("resnet_v2", "tf", "ResNet50V2 ResNet101V2 ResNet152V2"),
        ("densenet", "torch", "DenseNet121 DenseNet169 DenseNet201")):
    setattr(applications, _name, _module(f"applications.{_name}", {
        **{n: _parts.applications[n] for n in _models.split()},
        "preprocess_input": _preprocessing(_mode)}))
utils = _module("utils", _parts.utils)
_later(utils, {
    "keras._files": "get_file", "keras._folders": "image_dataset_from_directory text_dataset_from_directory",
    "keras._pictures": "load_img img_to_array array_to_img save_img pad_sequences",
    "keras.saving": "register_keras_serializable get_registered_name get_registered_object get_custom_objects "
                    "CustomObjectScope custom_object_scope serialize_keras_object deserialize_keras_object"})
preprocessing = _module("preprocessing", {"image": _module("preprocessing.image", {}),
                                          "sequence": _module("preprocessing.sequence", {})})
_later(preprocessing, {"keras._folders": "image_dataset_from_directory text_dataset_from_directory"})
_later(preprocessing.image, {"keras._pictures": "load_img img_to_array array_to_img save_img"})
_later(preprocessing.sequence, {"keras._pictures": "pad_sequences"})
utils.experimental = _module("utils.experimental", {"DatasetCreator": _own.DatasetCreator})


@_hiding
def set_global_policy(policy):
    """The dtypes of layers that are made from now on: a Policy or its name, such as "mixed_float16"."""
    _core.set_global_policy(policy)


@_hiding
def global_policy():
    """The Policy of layers that are made now."""
    return _core.global_policy()


_describe(KerasTensor, "A value of a functional model, which has a shape and a dtype; made by Input() and by layers.")
_describe(_core.Optimizer, "What updates variables by gradients: apply_gradients(pairs); made by tf.keras.optimizers.")
_describe(_core.DTypePolicy, 'The dtypes of a layer: compute_dtype and variable_dtype. name: "float32", "mixed_float16", '
                            '"mixed_bfloat16", ...', lambda name: None)
mixed_precision = _module("mixed_precision", {
    "set_global_policy": set_global_policy, "global_policy": global_policy, "Policy": _core.DTypePolicy,
    "LossScaleOptimizer": _parts.optimizers["LossScaleOptimizer"]})
Loss, Metric, Optimizer = _own.Loss, _own.Metric, _core.Optimizer
from berth.keras import datasets  # noqa: E402

from berth.keras._normalization import Normalization  # noqa: E402

layers.Normalization = Normalization
for _part in (layers, callbacks, models, datasets):
    name_missing(_part)


del set_global_policy, global_policy


def __getattr__(name):
    if name == "saving":  # imported when it is used first
        import importlib
        return name_missing(importlib.import_module("berth.keras.saving"))
    raise AttributeError(unknown_name("berth.keras", name, globals()))
