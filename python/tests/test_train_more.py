"""tf.train beside checkpoints, and what saves before a machine is taken away. The numbers are TensorFlow 2.21's."""
import os
import signal
import subprocess
import sys
import threading
import time

import berth as tf
import numpy as np
import pytest


def test_averages_of_variables():
    v, w = tf.Variable([1.0, 2.0], name="w"), tf.Variable(3.0)
    e = tf.train.ExponentialMovingAverage(0.9)
    e.apply([v, w])
    v.assign([3.0, 4.0])
    e.apply([v, w])
    np.testing.assert_allclose(e.average(v), [1.2, 2.2], rtol=1e-6)
    assert float(e.average(w)) == 3 and e.average(tf.Variable(1.0)) is None
    assert e.average_name(v) == "w/ExponentialMovingAverage" and list(e.variables_to_restore())[0] == e.average_name(v)
    few = tf.train.ExponentialMovingAverage(0.9, num_updates=3)
    few.apply([v])
    v.assign([5.0, 5.0])
    few.apply([v])
    np.testing.assert_allclose(few.average(v), [3 + 2 * 9 / 13, 4 + 9 / 13], rtol=1e-6)
    for wrong in (tf.constant(1.0), tf.Variable(1)):
        with pytest.raises(TypeError, match="ExponentialMovingAverage"):
            e.apply([wrong])

    @tf.function
    def step():
        v.assign_add([1.0, 1.0])
        few.apply([v])
    step()
    np.testing.assert_allclose(few.average(v), np.array([4.3846154, 4.6923075]) * 4 / 13 + np.array([6, 6]) * 9 / 13, rtol=1e-6)


def test_folders_of_checkpoints(tmp_path):
    step = tf.Variable(4)
    checkpoint = tf.train.Checkpoint(step=step, parts=[tf.Variable(1.0)])
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None
    paths = [checkpoint.save(str(tmp_path / "ck")) for _ in range(2)]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[1] and state.all_model_checkpoint_paths == paths
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0.1)) == paths[1:]
    assert list(tf.train.checkpoints_iterator(str(tmp_path / "no"), timeout=0, timeout_fn=lambda: True)) == []
    view = tf.train.CheckpointView(paths[1])
    assert sorted(view.children(0)) == ["parts", "step"] and len(view.descendants()) == 4
    assert view.match(checkpoint)[view.children(0)["step"]] is step
    other = tf.train.Checkpoint(more=tf.Variable(2.0), step=step)
    found, lost, new = view.diff(other)
    assert len(found) == 2 and len(lost) == 2 and new == [other.more]
    assert sorted(tf.train.TrackableView(checkpoint).children(checkpoint)) == ["parts", "step"]
    assert len(tf.train.TrackableView(checkpoint).descendants()) == 4


def test_state_of_python_in_checkpoints(tmp_path):
    class State(tf.train.experimental.PythonState):
        value = b"first"

        def serialize(self):
            return self.value

        def deserialize(self, string_value):
            self.value = string_value
    state = State()
    checkpoint = tf.train.Checkpoint(state=state, step=tf.Variable(1))
    path = checkpoint.save(str(tmp_path / "ck"))
    state.value = b"another, longer"
    checkpoint.restore(path).assert_consumed()
    assert state.value == b"first"
    state.value = b""
    checkpoint.restore(checkpoint.save(str(tmp_path / "ck")))
    assert state.value == b""


def test_threads_that_end_together():
    coordinator, turns = tf.train.Coordinator(), []

    def work():
        while not coordinator.should_stop():
            turns.append(1)
            time.sleep(0.001)
            if len(turns) > 5:
                coordinator.request_stop()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    coordinator.join(threads)
    assert coordinator.joined and coordinator.should_stop()
    coordinator.clear_stop()

    def fails():
        with coordinator.stop_on_exception():
            raise ValueError("of a thread")
    thread = threading.Thread(target=fails)
    coordinator.register_thread(thread)
    thread.start()
    with pytest.raises(ValueError, match="of a thread"):
        coordinator.join()
    late, stuck = tf.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=stuck.wait, daemon=True)
    thread.start()
    assert not late.wait_for_stop(0.01)
    late.request_stop(tf.errors.OutOfRangeError("the end"))
    with pytest.raises(RuntimeError, match="still run"):
        late.join([thread], stop_grace_period_secs=0.01)
    stuck.set()


PREEMPTED = """
import os, signal, sys
import berth as tf
step = tf.Variable(0)
checkpoint = tf.train.Checkpoint(step=step)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(None, checkpoint, sys.argv[1])
print("begins at", handler.total_run_calls, int(step), flush=True)
def train():
    step.assign_add(1)
    if int(step) == 3:
        os.kill(os.getpid(), signal.SIGTERM)
while handler.total_run_calls < 5:
    handler.run(train)
print("ends at", int(step))
"""


def test_a_preempted_program_goes_on_where_it_was(tmp_path):
    first, second = (subprocess.run([sys.executable, "-c", PREEMPTED, str(tmp_path)], capture_output=True, text=True)
                     for _ in range(2))
    assert first.returncode == 143 and first.stdout == "begins at 0 0\n", first.stderr
    assert second.returncode == 0 and second.stdout == "begins at 3 3\nends at 5\n", second.stderr


def test_notices_of_preemption(tmp_path):
    told, ends = [False, False, True], []
    config = tf.distribute.experimental.TerminationConfig(lambda: told.pop(0), lambda: ends.append(handler.total_run_calls),
                                                          save_fn=lambda: ends.append("saved"))
    handler = tf.distribute.experimental.PreemptionCheckpointHandler(
        None, tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1)), str(tmp_path), 1), termination_config=config)
    for _ in range(3):
        assert handler.run(lambda x: x + 1, 1) == 2
    assert ends == ["saved", 3]
    before = signal.getsignal(signal.SIGTERM)
    try:
        watcher = tf.distribute.experimental.PreemptionWatcher()
        assert watcher.preemption_message is None
        os.kill(os.getpid(), signal.SIGTERM)
        watcher.block_until_worker_exit()
        assert "SIGTERM" in watcher.preemption_message
    finally:
        signal.signal(signal.SIGTERM, before)
    with pytest.raises(ValueError, match="needs checkpoint_dir"):
        tf.distribute.experimental.PreemptionCheckpointHandler(None, tf.train.Checkpoint())
