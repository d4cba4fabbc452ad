"""tf.raw_ops: the ops of the engine that have TensorFlow's names and arguments, which are given by name."""
import ast as _ast
import inspect as _inspect
import sys as _sys

from berth import _core
from berth._tensor import convert_to_tensor as _convert, name_missing as _name_missing

# Each op, with TensorFlow's defaults of its arguments.
_OPS = """
Abs Acos Acosh AddN AddV2 All(keep_dims=False) Any(keep_dims=False) Asin Asinh AssignAddVariableOp
AssignSubVariableOp Atan Atan2 Atanh AvgPool BesselI0e BesselI1e BiasAdd Bitcast BitwiseAnd BitwiseOr BitwiseXor
BroadcastTo Cast Ceil Cholesky ConcatV2 Conj Conv2D(explicit_paddings=[];dilations=[1,1,1,1]) Cos Cosh
Cumprod(exclusive=False;reverse=False) Cumsum(exclusive=False;reverse=False)
CumulativeLogsumexp(exclusive=False;reverse=False) DepthwiseConv2dNative(explicit_paddings=[];dilations=[1,1,1,1])
Digamma DivNoNan Elu Equal Erf Erfc Erfinv Exp ExpandDims Expm1 Floor FloorDiv FloorMod GatherNd
GatherV2(batch_dims=0) Greater GreaterEqual Identity InTopKV2 Invert InvertPermutation IsFinite IsInf IsNan
LRN(depth_radius=5;bias=1;alpha=1;beta=0.5) LeakyRelu(alpha=0.2) LeftShift Less LessEqual Lgamma Log Log1p
LogMatrixDeterminant LogSoftmax LogicalAnd LogicalNot LogicalOr LowerBound(out_type=int32) Lu(output_idx_type=int32)
MatMul(transpose_a=False;transpose_b=False) MatrixDeterminant MatrixInverse(adjoint=False)
MatrixSolve(adjoint=False) MatrixTriangularSolve(lower=True;adjoint=False) Max(keep_dims=False) MaxPool
MaxPoolWithArgmax Maximum Mean(keep_dims=False) Min(keep_dims=False) Minimum MirrorPad Mul MulNoNan Ndtri Neg
NotEqual OnesLike Pack(axis=0) Pad PadV2 Pow Prod(keep_dims=False) Qr(full_matrices=False) Rank(out_type=int32)
RealDiv Reciprocal Relu Relu6 Reshape ResourceApplyAdam(use_nesterov=False) ResourceApplyGradientDescent
ResourceApplyKerasMomentum(use_nesterov=False) ResourceApplyMomentum(use_nesterov=False) ResourceApplyRMSProp
ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul ResourceScatterSub
ResourceScatterUpdate ReverseV2 RightShift Rint Roll Round Rsqrt ScatterNd SelectV2 SelfAdjointEigV2(compute_v=True)
Selu Shape(out_type=int32) Sigmoid Sign Sin Sinh Size(out_type=int32) Slice Softmax SoftmaxCrossEntropyWithLogits
SparseSoftmaxCrossEntropyWithLogits Split Sqrt Square SquaredDifference Squeeze(axis=[]) StopGradient Sub
Sum(keep_dims=False) Svd(compute_uv=True;full_matrices=False) Tan Tanh TensorScatterAdd TensorScatterMax
TensorScatterMin TensorScatterSub TensorScatterUpdate Tile TopKV2(sorted=True) Transpose TruncateDiv TruncateMod
Unpack(axis=0) UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum
UpperBound(out_type=int32) Xdivy Xlog1py Xlogy ZerosLike
""".split()
_LISTS = {"AddN", "ConcatV2", "Pack"}  # their first argument is a list of tensors
_WRITTEN = {"resource", "var", "accum", "m", "v", "ms", "mom"}  # arguments that are variables
_OWN = {"all_axes", "shared", "groups"}  # attributes that TensorFlow's ops do not have
# Arguments that the engine has no use for, and the values that they may have.
_FIXED = {"data_format": ("NHWC",), "use_cudnn_on_gpu": (True, False), "grad_a": (False,), "grad_b": (False,),
          "Truncate": (False,), "explicit_paddings": ([],), "incompatible_shape_error": (True,),
          "bad_indices_policy": ("",), "index_type": (_core.int32, "int32"), "Targmax": (_core.int64, "int64"),
          "include_batch_in_index": (False,), "use_locking": (True, False)}


def _default(text):
    return getattr(_core, text) if text in ("int32", "int64") else _ast.literal_eval(text)


def _attribute(value):
    """A tensor or an array, where the engine has numbers that a plan knows, as those."""
    if isinstance(value, (_core.Tensor, _core.Variable)):
        value = value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


def _input(key, value):
    return value._handle() if key in _WRITTEN and isinstance(value, _core.Variable) else _convert(value)


def _call(name, given):
    inputs, attributes, _, _ = _core.op_schema(name)
    for key in [k for k in given if k not in inputs and k not in attributes]:
        if (value := given.pop(key)) not in _FIXED.get(key, ()):
            raise TypeError(f"tf.raw_ops.{name}: {key}={value!r} is not there; it has {', '.join(inputs + attributes)}")
    missing = [k for k in inputs if k not in given]
    if missing:
        raise TypeError(f"tf.raw_ops.{name}: the arguments {missing} are missing")
    values = list(map(_convert, given[inputs[0]])) if name in _LISTS else [_input(k, given[k]) for k in inputs]
    out = _core.call_op(name, values, {k: _attribute(v) for k, v in given.items() if k in attributes})
    return out if not isinstance(out, list) else out[0] if len(out) == 1 else tuple(out)


def _made(word):
    name, _, defaults = word.rstrip(")").partition("(")
    defaults = {k: _default(v) for k, v in (part.split("=") for part in defaults.split(";") if part)}
    inputs, attributes, _, text = _core.op_schema(name)

    def op(*, name=None, **arguments):
        return _call(op.__name__, {**defaults, **arguments})

    named = [_inspect.Parameter(k, _inspect.Parameter.KEYWORD_ONLY, default=defaults.get(k, _inspect.Parameter.empty))
             for k in inputs + [a for a in attributes if a not in _OWN]]
    op.__name__ = op.__qualname__ = name
    op.__doc__ = text or f"The op {name}, by the names of its arguments."
    op.__signature__ = _inspect.Signature(
        named + [_inspect.Parameter("name", _inspect.Parameter.KEYWORD_ONLY, default=None)])
    return op


globals().update({op.__name__: op for op in map(_made, _OPS)})
from berth._fused_norm import FusedBatchNorm, FusedBatchNormV2, FusedBatchNormV3  # noqa: E402,F401
_name_missing(_sys.modules[__name__])
