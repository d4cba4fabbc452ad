"""Names that compute, against what TensorFlow 2.21 printed: compute_names.py wrote the fixture."""
import os

import berth as tf
import compute_names as table
import numpy as np
import pytest

KEPT = np.load(os.path.join(os.path.dirname(__file__), "compute_names.npz"))


def wanted(start):
    out = []
    while f"{start}/{len(out)}" in KEPT:
        out.append(KEPT[f"{start}/{len(out)}"])
    return out


def as_array(value):
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return array.astype("S") if array.dtype == object else array


def compare(name, out, start):
    known = wanted(start)
    assert len(out) == len(known)
    tol = table.COARSE.get(name, 2e-5)
    for i, (a, b) in enumerate(zip(map(as_array, out), known)):
        assert a.shape == b.shape and (a.dtype == b.dtype or a.dtype.kind == "S"), (i, a.dtype, b.dtype, a.shape, b.shape)
        if a.dtype.kind in "Sbiu":
            assert a.tolist() == b.tolist(), i
        else:
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol, err_msg=f"result {i}")


@pytest.mark.parametrize("name", table.CASES)
def test_results(name):
    fn, arrays = table.CASES[name]
    compare(name, table.flat(fn(tf, *map(tf.constant, arrays))), name)


@pytest.mark.parametrize("name", table.CASES)
def test_traced(name):
    fn, arrays = table.CASES[name]
    traced = tf.function(lambda *args: [tf.convert_to_tensor(v) for v in table.flat(fn(tf, *args))], autograph=False)
    compare(name, traced(*map(tf.constant, arrays)), name)
    assert (traced.experimental_get_tracing_count() == 0) == (name in table.ON_THE_HOST)


@pytest.mark.parametrize("name", sorted(table.GRADIENTS))
def test_gradients(name):
    compare(name, table.gradients(tf, name), f"{name}/gradient")
