"""Losses of 50 steps against Keras': keras_parity.py wrote the fixture under TensorFlow 2.21."""
import os
import sys

import numpy as np
import pytest

FOLDER = os.path.dirname(__file__)
NAMES = ("mlp", "cnn", "lstm", "transformer", "functional", "subclassed")


@pytest.fixture(scope="module")
def parity():
    """The script as a module, with its imports of tensorflow answered as `python -m berth` does."""
    from berth.__main__ import _Answer
    answer = _Answer(own_keras=True)
    sys.meta_path.insert(0, answer)
    sys.path.insert(0, FOLDER)
    try:
        import keras_parity
        yield keras_parity
    finally:
        sys.path.remove(FOLDER)
        sys.meta_path.remove(answer)
        for name in [n for n in sys.modules if n.split(".")[0] in ("tensorflow", "keras")]:
            del sys.modules[name]


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_those_of_keras(parity, name):
    kept = np.load(os.path.join(FOLDER, "keras_parity.npz"))
    model = parity.MODELS[name]()
    parity.start(model, kept, name)
    wanted = kept[f"{name}/losses"]
    np.testing.assert_allclose(parity.losses(model, name), wanted, rtol=0, atol=1e-4)
    assert abs(wanted[-1] - wanted[0]) > 0.005 and len(wanted) == parity.STEPS
