"""Holders of memory: by tensor and line, at the peak, in a file; model.fits()."""
import json
import subprocess
import sys

import berth as tf
import numpy as np
import pytest


def run(program, **env):
    import os
    return subprocess.run([sys.executable, "-c", program], env={**os.environ, **env}, capture_output=True, text=True,
                          timeout=120)


def test_holders_name_the_op_and_its_line():
    x = tf.ones([600, 600])
    y = tf.matmul(x, x)
    mine = [h for h in tf.config.get_memory_holders("CPU:0") if h.name == "MatMul" and "test_memory.py" in h.line]
    assert mine and mine[0].bytes >= 600 * 600 * 4 and mine[0].blocks >= 1
    assert tf.config.experimental.get_memory_usage("CPU:0") >= y.numpy().nbytes
    assert "MatMul (test_memory.py:" in tf.config.memory_report()


def test_the_peak_is_kept_while_it_is_tracked():
    tf.config.track_memory_peaks(True)
    try:
        tf.config.experimental.reset_memory_stats("CPU:0")
        x = tf.ones([2000, 1000])
        y = tf.exp(x)
        del y
        held = tf.config.get_memory_holders("CPU:0", peak=True)
        assert any(h.name == "Exp" and h.bytes >= 8_000_000 for h in held)
        assert not any(h.name == "Exp" and h.bytes >= 8_000_000 for h in tf.config.get_memory_holders("CPU:0"))
    finally:
        tf.config.track_memory_peaks(False)


def test_a_full_device_writes_a_snapshot_where_it_is_asked(tmp_path):
    program = """
import berth as tf
gpu = tf.config.list_physical_devices("GPU")[0]
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=8)])
with tf.device("/GPU:0"):
    kept = tf.exp(tf.zeros([1024, 512]))
    try:
        tf.zeros([4096, 1024])
    except tf.errors.ResourceExhaustedError as error:
        print(error)
"""
    path = str(tmp_path / "oom.json")
    out = run(program, BERTH_SIM="GPUx1", BERTH_MEMORY_SNAPSHOT=path)
    assert f"berth report {path}" in out.stdout, out.stdout + out.stderr
    with open(path, encoding="utf-8") as file:
        snapshot = json.load(file)
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    assert any(b.get("holder") == "Exp" and b["line"] for b in blocks)
    assert sum(b["bytes"] for b in blocks) == snapshot["reserved_bytes"]
    plain = run(program, BERTH_SIM="GPUx1")
    assert "BERTH_MEMORY_SNAPSHOT=FILE.json" in plain.stdout, plain.stdout + plain.stderr


def test_snapshots_can_be_written_at_any_time(tmp_path):
    path = tmp_path / "now.json"
    tf.config.write_memory_snapshot("CPU:0", path)
    assert json.loads(path.read_text())["memory_snapshot"] == "CPU:0"
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be written"):
        tf.config.write_memory_snapshot("CPU:0", tmp_path / "no" / "such.json")


def test_a_leak_report_names_what_is_alive_at_the_end():
    out = run("import berth as tf\nkept = tf._kept = tf.exp(tf.zeros([1024, 1024]))\n"
              "import ctypes\nctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))", BERTH_LEAK_REPORT="1")
    assert "CPU:0:" in out.stderr and "Exp" in out.stderr, out.stderr


def _model():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu", input_shape=(8,)),
                                 tf.keras.layers.Dense(4)])
    model.compile("sgd", "mse")
    return model


def test_fits_finds_the_largest_batch():
    model = _model()
    report = model.fits(20000, memory="24MiB")
    assert not report and 0 < report.largest_batch < 20000
    assert model.fits(report.largest_batch, memory=24 << 20)
    assert not model.fits(report.largest_batch + 1, memory=24 << 20)
    assert report.memory[0].bytes >= report.memory[-1].bytes
    assert "does not fit" in repr(report)
    with pytest.raises(ValueError, match="8GiB"):
        model.fits(8, memory="much")


def test_gradient_norms_are_logged():
    model = _model()
    model.compile("sgd", "mse", gradient_norms=True)
    x, y = np.ones((16, 8), "float32"), np.zeros((16, 4), "float32")
    history = model.fit(x, y, epochs=2, verbose=0).history
    norms = [n for n in history if n.startswith("gradient_norm/")]
    assert len(norms) == 2 and all(v > 0 for n in norms for v in history[n])
