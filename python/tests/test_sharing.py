"""Arrays over the memory of tensors, and tensors over that of arrays: shown by addresses."""
import ctypes
import gc
import os
import subprocess

import berth as tf
import ml_dtypes
import numpy as np
import pytest

dlpack = tf.experimental.dlpack
DTYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "int16", "uint16", "uint32", "uint64", "bool", "complex64", "complex128")


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_and_buffers_are_the_memory_of_the_tensor(name):
    want = np.arange(6).reshape(2, 3).astype(name)
    t = tf.constant(want)
    views = [np.asarray(t), np.asarray(memoryview(t)), np.from_dlpack(t), t.__array__()]
    assert len({address(v) for v in views}) == 1
    for v in views:
        np.testing.assert_array_equal(v, want)
        assert v.dtype == want.dtype and not v.flags.writeable
    with pytest.raises(ValueError):
        views[0][0, 0] = 1


def test_a_view_keeps_the_memory():
    t = tf.constant(np.full(100_000, 3.0, "float32"))
    view = np.asarray(t)
    del t
    gc.collect()
    tf.ones([100_000]) * 7.0  # what was free is written
    assert (view == 3).all()


def test_numpy_and_array_give_copies_that_can_be_written():
    t = tf.constant([1.0, 2.0])
    for own in (t.numpy(), np.array(t), np.asarray(t, dtype="float64"), np.asarray(tf.Variable(t))):
        own += 1
        assert t.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="without a copy"):
        t.__array__(dtype="float64", copy=False)


def test_a_view_of_a_variables_value_does_not_change_with_it():
    v = tf.Variable(np.zeros(1000, "float32"))
    view = np.asarray(v.read_value())
    v.assign_add(tf.ones([1000]))
    assert (view == 0).all() and (np.asarray(v) == 1).all()


def test_bfloat16_is_shared_with_ml_dtypes():
    t = tf.cast([1.5, 2.5], tf.bfloat16)
    view = np.asarray(t)
    assert view.dtype == ml_dtypes.bfloat16 and view.tolist() == [1.5, 2.5]
    assert address(view) == address(np.asarray(t))


def test_what_has_no_numbers_has_no_buffer():
    for t in (tf.constant(["a"]), tf.zeros([0, 3]), tf.cast([1.0], tf.bfloat16)):
        with pytest.raises(BufferError):
            memoryview(t)
    assert np.asarray(tf.zeros([0, 3])).shape == (0, 3) and np.asarray(tf.constant(["a"])).tolist() == [b"a"]
    with pytest.raises(TypeError, match="not writable"):
        (ctypes.c_float * 2).from_buffer(tf.ones([2]))


def test_a_tensor_of_another_device_is_copied(run_script):
    done = run_script("""
import numpy as np, tensorflow as tf
with tf.device("/GPU:0"):
    t = tf.ones([4]) * 2.0
print(t.device[-5:], np.asarray(t).tolist(), memoryview(t)[3], np.from_dlpack(t).tolist())
""", simulate="GPUx1")
    assert done.stdout.split("\n")[0] == "GPU:0 [2.0, 2.0, 2.0, 2.0] 2.0 [2.0, 2.0, 2.0, 2.0]", done.stderr


def test_constants_of_arrays_are_copies_because_arrays_change():
    x = np.zeros(100_000, "float32")
    t = tf.constant(x)
    x[:] = 1
    assert float(tf.reduce_sum(t)) == 0
    x.flags.writeable = False  # its owner can take that back
    t = tf.constant(x)
    x.flags.writeable = True
    x[:] = 2
    assert float(t[0]) == 1


def test_constants_over_memory_that_nobody_writes_are_no_copies():
    data = np.arange(100_000, dtype="float32").tobytes()
    array = np.frombuffer(data, "float32").reshape(100, 1000)
    t = tf.constant(array)
    assert address(np.asarray(t)) == address(array)
    again = tf.convert_to_tensor(np.asarray(t))
    assert address(np.asarray(again)) == address(array)
    np.testing.assert_array_equal(tf.constant(array.T).numpy(), array.T)  # another order: a copy
    del data, array, t
    gc.collect()
    assert float(again[99, 999]) == 99_999


def test_from_dlpack_shares_both_ways_with_numpy():
    x = np.zeros((3, 4), "int64")
    t = dlpack.from_dlpack(x)
    x[1, 2] = 5  # asked for: the array is the tensor's memory
    assert int(t[1, 2]) == 5 and address(np.asarray(t)) == address(x)
    np.testing.assert_array_equal(dlpack.from_dlpack(x.T).numpy(), x.T)
    capsule = dlpack.to_dlpack(tf.constant([1.0, 2.0]))
    assert dlpack.from_dlpack(capsule).numpy().tolist() == [1.0, 2.0]
    v = tf.Variable(dlpack.from_dlpack(x))
    v.assign_add(tf.ones_like(v))
    assert x[0, 0] == 0
    with pytest.raises(TypeError, match="__dlpack__"):
        dlpack.from_dlpack([1, 2])


class OnGpu:
    """CuPy's side of the protocol: an array on a GPU that is copied to the host when asked."""

    def __init__(self, copies):
        self.copies, self.asked = copies, []

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append(dl_device)
        if not self.copies:
            raise BufferError("cannot export to another device")
        return np.arange(3.0).__dlpack__(max_version=max_version)


def test_arrays_on_a_gpu_are_asked_for_a_copy_on_the_host():
    x = OnGpu(True)
    assert dlpack.from_dlpack(x).numpy().tolist() == [0, 1, 2] and x.asked == [(1, 0)]
    with pytest.raises(ValueError, match="cupy.asnumpy"):
        dlpack.from_dlpack(OnGpu(False))


PEERS = os.environ.get("BERTH_PEERS", "")
EXCHANGE = {"torch": """
import numpy as np, torch
t = tf.constant(np.arange(6, dtype="float32").reshape(2, 3))
x = torch.from_dlpack(t)
assert x.data_ptr() == np.asarray(t).ctypes.data and x.tolist() == t.numpy().tolist()
back = tf.experimental.dlpack.from_dlpack(x + 1)
y = torch.zeros(5, dtype=torch.bfloat16)
b = tf.experimental.dlpack.from_dlpack(y)
y += 2
assert b.dtype == tf.bfloat16 and tf.cast(b, tf.float32).numpy().tolist() == [2] * 5
assert torch.from_dlpack(b).data_ptr() == y.data_ptr()
assert tf.constant(y.float()).numpy().tolist() == [2] * 5
""", "jax": """
import numpy as np, jax, jax.numpy as jnp
t = tf.constant(np.arange(65536, dtype="float32"))
x = jax.dlpack.from_dlpack(t)
assert x.shape == (65536,) and float(x[7]) == 7
y = jnp.arange(65536, dtype="float32") * 2
b = tf.experimental.dlpack.from_dlpack(y)
assert np.asarray(b).ctypes.data == y.unsafe_buffer_pointer()
c = tf.constant(y)  # arrays of JAX never change
assert np.asarray(c).ctypes.data == y.unsafe_buffer_pointer() and float(c[2]) == 4
"""}


@pytest.mark.parametrize("peer", EXCHANGE)
def test_memory_is_shared_with_peers(peer, tmp_path):
    python = os.path.join(PEERS, peer, "bin", "python")
    if not PEERS or not os.path.exists(python):
        pytest.skip("BERTH_PEERS is no folder with an environment " + peer)
    here = os.path.dirname(os.path.dirname(tf.__file__))
    done = subprocess.run([python, "-c", f"import sys; sys.path.insert(0, {here!r})\nimport berth as tf\n"
                           + EXCHANGE[peer]], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
