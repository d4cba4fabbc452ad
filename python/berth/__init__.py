"""Berth: an engine that trains neural networks and shows where things run.

    import berth as tf

TensorFlow's names and argument names, on Berth's engine. What the engine has
and TensorFlow lacks stands beside them: tf.config.set_placement_policy("auto"),
function.placement(), model.explain("dense").
"""
import atexit as _atexit
import os as _os
import sys as _sys
import types as _types

from berth import _core
from berth._core import DType, Tensor, Variable

_core._add_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
_atexit.register(_core._begin_to_end)
_os.register_at_fork(after_in_child=_core._after_fork_in_child)

from berth import _classes, _tensor, _members  # noqa: E402  complete the classes above
from berth._tensor import (AnyShape as TensorShape, constant, convert_to_tensor, is_tensor, TensorSpec, TypeSpec, IndexedSlices,  # noqa: E402
                           float16, float32, float64, bfloat16, int8, int16, int32, int64, uint8, uint16,
                           uint32, uint64,
                           complex64, complex128, string, bool, as_dtype, half, double)
from berth._late_names import LATE as _LATE  # noqa: E402
from berth._modules import install as _install, later as _later  # noqa: E402

_install(globals())

_core._set_url_hooks(lambda url: _url_files().fetch(url), lambda: _url_files().settle())


def _url_files():
    from berth import _remote
    return _remote


from berth import dtypes, errors, config, random, experimental  # noqa: E402
from berth._gradient import GradientTape, UnconnectedGradients, device  # noqa: E402
from berth._function import function, cond, while_loop, executing_eagerly  # noqa: E402
from berth._ops import *  # noqa: E402,F401,F403  where TensorFlow's form differs
from berth._lazy import Names as _Names  # noqa: E402
from berth._module import Module  # noqa: E402
from berth import _strings  # noqa: E402

_strings.install(strings)  # noqa: F821
_strings.take_text(globals())
del (linspace, sequence_mask, sign, complex, truncatediv, truncatemod, unstack, argsort, scatter_nd, ensure_shape, one_hot,  # noqa: F821
     tensor_scatter_nd_update, tensor_scatter_nd_add, tensor_scatter_nd_sub, tensor_scatter_nd_max,  # noqa: F821  which have
     tensor_scatter_nd_min)  # noqa: F821  another form
for _path, _sources in _LATE.items():
    _later(globals()[_path], _sources)
math.special = _Names("tf.math.special", _late={  # noqa: F821
    "_bessel": "bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1",
    "_special": "dawsn expint fresnel_cos fresnel_sin spence"}, **{
        n: getattr(math, n) for n in ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e")})  # noqa: F821
nn.experimental = _Names("tf.nn.experimental", _late={"_nn_more": "general_dropout stateless_dropout"})  # noqa: F821
linalg.experimental = _Names("tf.linalg.experimental", _late={"_matrix_functions": "conjugate_gradient"})  # noqa: F821
eig, eigvals = linalg.eig, linalg.eigvals  # noqa: F821
math.argmax, math.argmin, math.reduce_mean, linalg.einsum = argmax, argmin, reduce_mean, einsum  # noqa: F405,F821
math.divide = math.truediv = realdiv = divide  # noqa: F405
__version__ = "0.1.0"
version = _Names("tf.version", VERSION=__version__, GIT_VERSION="", COMPILER_VERSION="", GRAPH_DEF_VERSION=2474,
                 GRAPH_DEF_VERSION_MIN_CONSUMER=0, GRAPH_DEF_VERSION_MIN_PRODUCER=0)
newaxis = None


# Imported when they are used first.
_LATER = ("audio", "autodiff", "autograph", "compat", "data", "debugging", "distribute", "keras", "lookup", "nest", "profiler", "ragged",
          "raw_ops", "saved_model", "sets", "sparse", "summary", "sysconfig", "test", "train", "types")
_OF_KERAS = ("losses", "metrics", "optimizers", "initializers")
# Names that stand in one of those, or in a hidden one.
_ALSO = {"losses": "keras.losses", "metrics": "keras.metrics", "optimizers": "keras.optimizers",
         "initializers": "keras.initializers", "Assert": "debugging.Assert",
         "SparseTensor": "sparse.SparseTensor", "TensorArray": "_arrays.TensorArray", "TensorArraySpec": "_arrays.TensorArraySpec",
         "DeviceSpec": "_device_spec.DeviceSpec", "VariableSynchronization": "distribute.VariableSynchronization",
         "VariableAggregation": "distribute.VariableAggregation", "RaggedTensor": "ragged.RaggedTensor",
         "RaggedTensorSpec": "ragged.RaggedTensorSpec", "SparseTensorSpec": "sparse.SparseTensorSpec",
         "type_spec_from_value": "_extension.type_spec_from_value",
         "Contract": "_placement.Contract", "explain": "_placement.explain", "placement": "_placement.placement",
         "plan": "_placement.plan", "custom_gradient": "_host.custom_gradient", "load_op_library": "_host.load_op_library",
         "numpy_function": "_host.numpy_function", "py_function": "_host.py_function", "case": "_control.case",
         "switch_case": "_control.switch_case", "map_fn": "_control.map_fn", "foldl": "_control.foldl",
         "foldr": "_control.foldr", "scan": "_control.scan", "recompute_grad": "_control.recompute_grad",
         "name_scope": "_control.name_scope", "vectorized_map": "_control.vectorized_map",
         "init_scope": "_control.init_scope", "control_dependencies": "_control.control_dependencies",
         "complex": "_arguments.complex", "truncatediv": "_arguments.truncatediv", "truncatemod": "_arguments.truncatemod",
         "unstack": "_arguments.unstack", "argsort": "_arguments.argsort", "scatter_nd": "_arguments.scatter_nd",
         "ensure_shape": "_arguments.ensure_shape", "one_hot": "_arguments.one_hot",
         "tensor_scatter_nd_update": "_arguments.tensor_scatter_nd_update",
         "tensor_scatter_nd_add": "_arguments.tensor_scatter_nd_add",
         "tensor_scatter_nd_sub": "_arguments.tensor_scatter_nd_sub",
         "tensor_scatter_nd_max": "_arguments.tensor_scatter_nd_max",
         "tensor_scatter_nd_min": "_arguments.tensor_scatter_nd_min",
         "constant_initializer": "_forms.constant_initializer", "Graph": "_absent.Graph", "Operation": "_absent.Operation",
         "no_gradient": "_absent.no_gradient", "RegisterGradient": "_absent.RegisterGradient",
         "ones_initializer": "keras.initializers.Ones",
         "zeros_initializer": "keras.initializers.Zeros",
         "random_normal_initializer": "keras.initializers.RandomNormal",
         "random_uniform_initializer": "keras.initializers.RandomUniform",
         "linspace": "_forms.linspace", "sequence_mask": "_forms.sequence_mask", "sign": "_forms.sign",
         "saturate_cast": "_more.saturate_cast", "dynamic_partition": "_more.dynamic_partition",
         "dynamic_stitch": "_more.dynamic_stitch", "parallel_stack": "_more.parallel_stack",
         "unravel_index": "_more.unravel_index", "shape_n": "_more.shape_n", "tuple": "_more.tuple",
         "get_static_value": "_more.get_static_value", "is_symbolic_tensor": "_more.is_symbolic_tensor",
         "as_string": "_as_string.as_string", "batch_to_space": "_space_to_batch.batch_to_space",
         "space_to_batch": "_space_to_batch.space_to_batch", "space_to_batch_nd": "_space_to_batch.space_to_batch_nd",
         "required_space_to_batch_paddings": "_space_to_batch.required_space_to_batch_paddings",
         "extract_volume_patches": "_space_to_batch.extract_volume_patches",
         "broadcast_static_shape": "_shapes_more.broadcast_static_shape",
         "broadcast_dynamic_shape": "_shapes_more.broadcast_dynamic_shape",
         "histogram_fixed_width_bins": "_shapes_more.histogram_fixed_width_bins",
         "edit_distance": "_sparse_embedding.edit_distance", "approx_top_k": "_nn_more.approx_top_k",
         "fingerprint": "_crosses.fingerprint", "gradients": "_gradients.gradients", "hessians": "_gradients.hessians",
         "grad_pass_through": "_gradients.grad_pass_through", "guarantee_const": "_gradients.guarantee_const",
         "matrix_square_root": "_matrix_functions.matrix_square_root", "rfftnd": "_signal_more.rfftnd",
         "irfftnd": "_signal_more.irfftnd", "fftnd": "_signal_more.fftnd", "ifftnd": "_signal_more.ifftnd",
         "reverse_sequence": "_more.reverse_sequence", "inside_function": "_function.inside_function", "assert_equal": "debugging.assert_equal",
         "assert_greater": "debugging.assert_greater", "assert_less": "debugging.assert_less",
         "assert_rank": "debugging.assert_rank",
         "IndexedSlicesSpec": "_data_options.IndexedSlicesSpec", "NoneTensorSpec": "_data_options.NoneTensorSpec",
         "OptionalSpec": "_data_options.OptionalSpec",
         "AggregationMethod": "_around.AggregationMethod", "CriticalSection": "_around.CriticalSection",
         "get_logger": "_around.get_logger", "variable_creator_scope": "_around.variable_creator_scope",
         "nondifferentiable_batch_function": "_around.nondifferentiable_batch_function",
         "register_tensor_conversion_function": "_around.register_tensor_conversion_function",
         "get_current_name_scope": "_control.get_current_name_scope",
         "make_tensor_proto": "_tensor_proto.make_tensor_proto", "make_ndarray": "_tensor_proto.make_ndarray"}


def __getattr__(name):
    import importlib
    if name in _LATER:
        return importlib.import_module(f"berth.{name}")
    if name in _ALSO:
        module, *rest = _ALSO[name].split(".")
        value = importlib.import_module(f"berth.{module}")
        for part in rest:
            value = getattr(value, part)
        if name not in _OF_KERAS:
            globals()[name] = value
        return value
    raise AttributeError(_tensor.unknown_name("berth", name, {**globals(), **dict.fromkeys(_LATER), **_ALSO}))


class _Package(_types.ModuleType):
    """Its modules say more of names that they lack; import sets them as attributes."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if isinstance(value, _types.ModuleType) and not name.startswith("_"):
            _tensor.name_missing(value)


_sys.modules[__name__].__class__ = _Package
for _name in ("config", "dtypes", "errors", "experimental", "random"):
    _tensor.name_missing(globals()[_name])


def __dir__():
    return sorted([*globals(), *_LATER, *_ALSO])


if _os.environ.get("KERAS_BACKEND") == "berth":
    from keras_berth import hook as _hook  # Keras' releases have no plug-ins yet
    _hook.install()
