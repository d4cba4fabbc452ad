"""Timelines and event files."""
import glob
import gzip
import json
import struct

import berth as tf
import numpy as np
import pytest


@tf.function
def squares(x):
    return tf.matmul(x, x)


def test_a_recording_has_plans_eager_ops_and_names(tmp_path):
    x = tf.ones([16, 16])
    squares(x)
    with tf.profiler.experimental.Profile(str(tmp_path)) as profile:
        for step in range(3):
            with tf.profiler.experimental.Trace("train", step_num=step):
                squares(x)
        x + 1.0
    events = profile.timeline.events()
    assert [e[1] for e in events if e[0] == "annotations"] == [f"train (step_num={i})" for i in range(3)]
    matmuls = [e for e in events if e[2] == "MatMul"]
    assert len(matmuls) == 3 and all("CPU:0" in e[0] and "test_profiler.py:" in e[3] for e in matmuls)
    assert sum(e[:2] == ("eager ops", "AddV2") for e in events) == 1
    # What TensorBoard looks for.
    file, = glob.glob(str(tmp_path / "plugins/profile/*/*.trace.json.gz"))
    with gzip.open(file, "rt") as trace:
        names = [e["name"] for e in json.load(trace)["traceEvents"]]
    assert names.count("train (step_num=1)") == 1
    plane, = glob.glob(str(tmp_path / "plugins/profile/*/*.xplane.pb"))
    with open(plane, "rb") as space:
        assert b"/host:CPU" in space.read()
    html = profile.timeline._repr_html_()
    assert html.startswith("<svg") and html.count("<rect") == len(events)


def test_simulated_devices_have_a_scale_of_their_own(run_script):
    done = run_script("""
import re
import berth as tf

@tf.function
def both(x):
    with tf.device("/GPU:0"):
        y = x @ x
    with tf.device("/CPU:0"):
        return y + 1.0

x = tf.ones([64, 64])
both(x)
with tf.profiler.experimental.Profile("logs") as profile:
    both(x)
html = profile.timeline._repr_html_()
assert "GPU:0 (simulated time)" in html, html
assert re.search(r"[.\\d]+ ms and [.\\d]+ ms \\(simulated time\\)", html), html
edges = [float(x) + float(w) for x, w in re.findall(r'<rect x="([.\\d]+)" y="\\d+" width="([.\\d]+)"', html)]
assert max(edges) <= 1001, edges
""", simulate="GPUx1")
    assert done.returncode == 0, done.stderr


def test_recordings_do_not_nest():
    tf.profiler.experimental.start()
    with pytest.raises(tf.errors.AlreadyExistsError, match="tf.profiler.experimental.stop"):
        tf.profiler.experimental.start()
    tf.profiler.experimental.stop()
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.profiler.experimental.stop()


def test_fit_is_recorded_step_by_step():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse")
    x, y = np.ones((32, 3), "float32"), np.ones((32, 2), "float32")
    with tf.profiler.experimental.Profile() as profile:
        model.fit(x, y, batch_size=8, epochs=2, verbose=0)
    lines = {e[3].rsplit(":", 1)[0] for e in profile.timeline.events() if "CPU:0" in e[0]}
    assert any("test_profiler.py" in line for line in lines)


def records(path):
    """The events of a file of TensorBoard: length, checksum, data, checksum."""
    with open(path, "rb") as file:
        data = file.read()
    out = []
    while data:
        length, = struct.unpack("<Q", data[:8])
        out.append(data[12:12 + length])
        data = data[16 + length:]
    return out


def test_summaries_are_events_of_tensorboard(tmp_path):
    assert not tf.summary.scalar("nowhere", 1.0, step=0)
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=4):
        assert tf.summary.scalar("loss", 0.25)
        tf.summary.histogram("weights", np.arange(10.0), step=5)
        tf.summary.image("picture", np.zeros((1, 4, 5, 3)), step=5)
        tf.summary.text("note", "hello", step=5)
        with tf.summary.record_if(False):
            tf.summary.scalar("skipped", 1.0)
    with pytest.raises(ValueError, match="step="):
        with writer.as_default():
            tf.summary.scalar("loss", 1.0)
    file, = tmp_path.iterdir()
    events = records(file)
    assert b"brain.Event:2" in events[0] and len(events) == 5
    # Field 2 of an event is its step; tag and value of a scalar are fields 1 and 2 of field 1 of field 5.
    assert b"\x10\x04" in events[1] and b"\x0a\x04loss\x15" + struct.pack("<f", 0.25) in events[1]
    assert b"weights" in events[2] and b"\x89PNG" in events[3] and b"hello" in events[4]


def test_the_graph_of_a_function_is_exported(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    tf.summary.trace_on(graph=True)
    squares(tf.ones([2, 2]))
    with writer.as_default():
        tf.summary.trace_export("squares", step=0)
    file, = tmp_path.iterdir()
    assert b"MatMul" in records(file)[-1]


def test_tensorboard_profiles_batches(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,))])
    model.compile("sgd", "mse")
    x = np.ones((64, 3), "float32")
    model.fit(x, np.ones((64, 4), "float32"), batch_size=8, verbose=0,
              callbacks=[tf.keras.callbacks.TensorBoard(str(tmp_path), profile_batch=(2, 4))])
    files = list((tmp_path / "plugins" / "profile").glob("*/*.xplane.pb"))
    assert len(files) == 1 and files[0].stat().st_size > 100


def test_diff_run_names_the_first_op_that_differs(tmp_path, berth_program):
    import subprocess

    def record(name, last):
        shift = [tf.constant(v) for v in (1.0, 1.0, last)]
        options = tf.profiler.experimental.ProfilerOptions(checksums=True)
        with tf.profiler.experimental.Profile(options=options) as profile:
            x = tf.ones([8, 8])
            for step in range(3):
                tf.reduce_sum(tf.matmul(x, x) * shift[step])
        path = str(tmp_path / name)
        profile.timeline.write(path)
        return path

    one, same, other = record("a.pftrace", 1.0), record("b.pftrace", 1.0), record("c.pftrace", 2.0)
    equal = subprocess.run([berth_program, "diff-run", one, same], capture_output=True, text=True)
    assert equal.returncode == 0 and "equal bits" in equal.stdout, equal.stdout + equal.stderr
    differ = subprocess.run([berth_program, "diff-run", one, other], capture_output=True, text=True)
    assert differ.returncode == 1 and "Mul (test_profiler.py:" in differ.stdout, differ.stdout + differ.stderr
    assert "step 3" in differ.stdout
