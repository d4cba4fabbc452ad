"""tf.keras.datasets: read by the engine, given as arrays."""
import types as _types

from berth import _core


def _mnist(path="mnist.npz"):
    """((x_train, y_train), (x_test, y_test)), uint8; digits are read from BERTH_DATA or fetched."""
    return _core.load_mnist()


mnist = _types.SimpleNamespace(load_data=_mnist)
