"""keras.layers.Normalization."""
import numpy as np

from berth._tensor import convert_to_tensor
from berth.keras.layers import Layer


class Normalization(Layer):
    """(x - mean) / sqrt(variance) along `axis`, by statistics that adapt() takes of data, or that are given.

    axis None: one mean and variance of all. invert: the other way round.
    """

    def __init__(self, axis=-1, mean=None, variance=None, invert=False, *, input_shape=None, name=None, dtype=None,
                 trainable=True):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        if (mean is None) != (variance is None):
            raise ValueError("Normalization: mean and variance are given together")
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        self.invert, self._input_shape = invert, input_shape
        self._given = None if mean is None else (np.asarray(mean, "float32"), np.asarray(variance, "float32"))
        self.mean = self.variance = None
        self._sums = None
        if self._given is not None and not self.axis:
            self._set(*self._given)

    def _kept(self, rank):
        return [a % rank for a in self.axis]

    def _set(self, mean, variance):
        self.mean, self.variance = convert_to_tensor(mean), convert_to_tensor(variance)

    def adapt(self, data):
        """Takes mean and variance of an array or tensor [n, ...], or of a Dataset of batches."""
        batches = data if hasattr(data, "element_spec") else [data]
        n = total = square = 0
        for batch in batches:
            x = np.asarray(batch if not hasattr(batch, "numpy") else batch.numpy(), "float64")
            kept = self._kept(x.ndim)
            over = tuple(i for i in range(x.ndim) if i not in kept)
            n += np.prod([x.shape[i] for i in over])
            total, square = total + x.sum(over, keepdims=True), square + (x * x).sum(over, keepdims=True)
        mean = total / n
        mean, variance = mean.astype("float32"), (square / n - mean * mean).astype("float32")
        if not self.axis:
            mean, variance = mean.reshape(()), variance.reshape(())
        self._set(mean, variance)

    def build(self, input_shape):
        """Makes the variables for a shape of inputs."""
        shape = list(input_shape)
        if self.mean is None and self._given is not None:
            kept = self._kept(len(shape))
            like = [shape[i] if i in kept else 1 for i in range(len(shape))]
            self._set(*(np.broadcast_to(v, [shape[i] for i in sorted(kept)]).reshape(like) for v in self._given))

    def call(self, inputs):
        """(inputs - mean) / standard deviation."""
        if self.mean is None:
            raise ValueError("Normalization: call adapt(data) first, or give mean and variance")
        x = inputs if hasattr(inputs, "dtype") and inputs.dtype.is_floating else _float(inputs)
        deviation = np.maximum(np.sqrt(self.variance.numpy()), 1e-7)
        return x * deviation + self.mean if self.invert else (x - self.mean) / deviation

    def compute_output_shape(self, input_shape):
        """The shape of the inputs."""
        return input_shape

    def get_config(self):
        """The arguments of the constructor."""
        given = {} if self.mean is None else {"mean": self.mean.numpy().ravel().tolist(),
                                              "variance": self.variance.numpy().ravel().tolist()}
        return {"name": self.name, "axis": list(self.axis) or None, "invert": self.invert, **given}


def _float(x):
    from berth import cast
    return cast(convert_to_tensor(x), "float32")
