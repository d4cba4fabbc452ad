"""tf.raw_ops.FusedBatchNorm and its versions, which the engine computes by other ops."""
from berth import _core
from berth._tensor import convert_to_tensor, float32

_ops, _m = _core.ops, _core.ops.math


def _fused(name, reserves):
    def op(*, x, scale, offset, mean, variance, epsilon=1e-4, exponential_avg_factor=1.0, data_format="NHWC", is_training=True,
           name=None):
        x, scale, offset, mean, variance = (convert_to_tensor(v) for v in (x, scale, offset, mean, variance))
        channels_first = data_format.startswith("NC")
        if not channels_first and not data_format.startswith("N") or len(x.shape) != len(data_format):
            raise ValueError(f"tf.raw_ops.{op.__name__}: data_format is {data_format!r}, x {x.shape}; expected 'NHWC', 'NCHW', 'NDHWC' "
                             "or 'NCDHW' and as many axes")
        rank = len(x.shape)
        axes = [i for i in range(rank) if i != (1 if channels_first else rank - 1)]
        wide = _m.cast(x, scale.dtype)

        def spread(v):
            return _ops.reshape(v, [1, -1] + [1] * (rank - 2)) if channels_first else v
        used, new = (mean, variance), (mean, variance)
        if is_training:
            used = _ops.nn.moments(wide, axes)
            count = _m.cast(_ops.size(x), scale.dtype) / _m.cast(_ops.size(scale), scale.dtype)
            new = used[0], used[1] * (count / _m.maximum(count - 1, 1))
            if exponential_avg_factor != 1:
                new = [o * (1 - exponential_avg_factor) + n * exponential_avg_factor for o, n in zip((mean, variance), new)]
        factor = _m.rsqrt(used[1] + _m.cast(convert_to_tensor(epsilon, float32), scale.dtype)) * scale
        y = (wide - spread(used[0])) * spread(factor) + spread(offset)
        return (_m.cast(y, x.dtype), *new, *used, _ops.zeros([0], scale.dtype))[:3 + reserves]
    op.__name__ = op.__qualname__ = name
    op.__doc__ = (f"({', '.join(['y', 'batch_mean', 'batch_variance', *(f'reserve_space_{i + 1}' for i in range(reserves))])}): "
                  "x normalised by channels: by its own mean and variance, or in inference by those given.")
    return op


FusedBatchNorm, FusedBatchNormV2, FusedBatchNormV3 = (
    _fused("FusedBatchNorm" + version, 3 if version == "V3" else 2) for version in ("", "V2", "V3"))
