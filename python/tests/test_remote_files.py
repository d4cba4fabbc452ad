"""Files of URLs: checkpoints, logs and data sets by fsspec, whole or not at all, through faults and cuts."""
import importlib.util
import json
import os
import subprocess
import sys
import threading

import berth as tf
import numpy as np
import pytest
from berth import _remote, keras

fsspec = pytest.importorskip("fsspec", reason="needs the package fsspec")
from remote_files import Faulty, Proxy  # noqa: E402
from remote_fixtures import X, Y, _count, faulty, moto, names, net, no_faults, url  # noqa: E402, F401

HERE = os.path.dirname(os.path.abspath(__file__))


# ---------------------------------------------------------------- checkpoints

def test_a_checkpoint_comes_back_from_a_url(url):
    v, step = tf.Variable([1.0, 2.0]), tf.Variable(7)
    checkpoint = tf.train.Checkpoint(v=v, step=step)
    path = checkpoint.save(f"{url}/ckpt")
    assert path == f"{url}/ckpt-1"
    checkpoint.sync()
    assert names(url) == ["ckpt-1.json", "ckpt-1.safetensors"]
    v.assign([3.0, 4.0])
    assert checkpoint.save(f"{url}/ckpt") == f"{url}/ckpt-2"
    assert tf.train.latest_checkpoint(url) == f"{url}/ckpt-2"  # waits for its own uploads
    for number, expected in ((1, [1.0, 2.0]), (2, [3.0, 4.0])):
        other = tf.Variable([0.0, 0.0])
        again = tf.train.Checkpoint(v=other, step=tf.Variable(0))
        again.restore(f"{url}/ckpt-{number}").assert_consumed()
        assert other.numpy().tolist() == expected and int(again.save_counter) == number
    assert dict(tf.train.list_variables(url)) == {"step": [], "v": [2]}
    assert tf.train.load_variable(path, "v").tolist() == [1.0, 2.0]
    assert tf.train.load_checkpoint(url).get_tensor("v").tolist() == [3.0, 4.0]


def test_write_replaces_the_one_that_has_the_path(url):
    v = tf.Variable(0.0)
    checkpoint = tf.train.Checkpoint(v=v)
    for value in (1.0, 2.0, 3.0):
        v.assign(value)
        assert checkpoint.write(f"{url}/best") == f"{url}/best"
    v.assign(9.0)
    checkpoint.read(f"{url}/best").assert_consumed()
    assert float(v) == 3
    assert len(names(url)) == 2
    # Another process has none of these files here.
    tf.train.Checkpoint(v=tf.Variable(4.0)).write(f"{url}/best")
    assert tf.train.latest_checkpoint(url) == f"{url}/best"
    assert float(tf.train.load_variable(f"{url}/best", "v")) == 4
    assert len(names(url)) == 2


def test_what_comes_later_gets_its_value_from_a_url(url):
    tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable([2.0, 3.0])).save(f"{url}/ckpt")
    late = tf.train.Checkpoint(a=tf.Variable(0.0))
    late.restore(tf.train.latest_checkpoint(url)).expect_partial()
    late.save(f"{url}/other")  # the copy of the first stays
    late.sync()
    late.b = tf.Variable([0.0, 0.0])
    assert late.b.numpy().tolist() == [2.0, 3.0]


def test_managers_keep_the_last_at_a_url(url):
    v, called = tf.Variable(1.0), []

    def manager():
        return tf.train.CheckpointManager(tf.train.Checkpoint(v=v), url, max_to_keep=2,
                                          init_fn=lambda: called.append(1))
    one = manager()
    assert one.latest_checkpoint is None and one.restore_or_initialize() is None and called == [1]
    for i in range(4):
        v.assign(float(i))
        assert one.save() == f"{url}/ckpt-{i + 1}"
    one.sync()
    assert one.checkpoints == [f"{url}/ckpt-3", f"{url}/ckpt-4"] and one.latest_checkpoint == one.checkpoints[-1]
    assert names(url) == [f"ckpt-{n}.{end}" for n in (3, 4) for end in ("json", "safetensors")]
    v.assign(9.0)
    two = manager()
    assert two.checkpoints == one.checkpoints
    assert two.restore_or_initialize() == f"{url}/ckpt-4" and float(v) == 3
    v.assign(5.0)
    assert two.save() == f"{url}/ckpt-5"
    two.sync()
    assert names(url) == [f"ckpt-{n}.{end}" for n in (4, 5) for end in ("json", "safetensors")]
    # One that begins anew without a restore replaces what has its numbers, whole.
    v.assign(6.0)
    three = manager()
    assert three.save(checkpoint_number=4) == f"{url}/ckpt-4"
    three.sync()
    assert float(tf.train.load_variable(f"{url}/ckpt-4", "v")) == 6


def test_a_manager_counts_steps_at_a_url(url):
    v, step = tf.Variable(1.0), tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), url, step_counter=step, checkpoint_interval=10)
    assert manager.save() == f"{url}/ckpt-1"
    step.assign(5)
    assert manager.save() is None
    step.assign(10)
    assert manager.save() == f"{url}/ckpt-2"


def test_values_go_up_before_the_manifest_and_what_is_old_goes_last(faulty):
    v = tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), faulty, max_to_keep=1)
    for _ in range(2):
        manager.save()
    manager.sync()
    assert [c for c in Faulty.log if c[0] != "get"] == [
        ("put", "ckpt-1.safetensors"), ("put", "ckpt-1.json"), ("put", "ckpt-2.safetensors"), ("put", "ckpt-2.json"),
        ("rm", "ckpt-1.json"), ("rm", "ckpt-1.safetensors")]


@pytest.mark.parametrize("kind", ["manager", "write"])
def test_a_reader_never_sees_half_of_a_checkpoint(faulty, kind, tmp_path):
    import shutil
    root, kept = os.path.join(os.environ["FAULTY_ROOT"], faulty[len("faulty://"):]), []

    def watch():  # what a reader would find before each call
        if os.path.isdir(root):
            kept.append(shutil.copytree(root, tmp_path / f"seen{len(kept)}"))
    v, w = tf.Variable(0.0), tf.Variable([0.0] * 1000)
    checkpoint = tf.train.Checkpoint(v=v, w=w)
    manager = tf.train.CheckpointManager(checkpoint, faulty, max_to_keep=1)
    Faulty.watch = watch
    for i in range(1, 4):
        v.assign(float(i))
        w.assign([float(i)] * 1000)
        manager.save(checkpoint_number=1 + i % 2) if kind == "manager" else checkpoint.write(f"{faulty}/best")
    manager.sync()
    checkpoint.sync()
    Faulty.watch = None
    seen = []
    for folder in [*kept, root]:
        path = tf.train.latest_checkpoint(str(folder))
        if path is not None:
            one, other = tf.Variable(0.0), tf.Variable([0.0] * 1000)
            tf.train.Checkpoint(v=one, w=other).read(path).assert_consumed()
            assert other.numpy().tolist() == [float(one)] * 1000
            seen.append(int(one))
        else:
            assert not seen  # once there is one, there always is
    assert seen == sorted(seen) and set(seen) == {1, 2, 3}


# ---------------------------------------------------------------- faults

def test_faults_that_pass_are_tried_again(faulty):
    v = tf.Variable(5.0)
    Faulty.faults = [ConnectionResetError("cut"), TimeoutError("slow"), OSError(5, "InternalError"),
                     FileNotFoundError("The specified upload does not exist"), None,
                     ConnectionError("cut")]
    checkpoint = tf.train.Checkpoint(v=v)
    checkpoint.save(f"{faulty}/ckpt")
    checkpoint.sync()
    assert not Faulty.faults
    v.assign(0.0)
    Faulty.faults = [TimeoutError("slow")]
    checkpoint.restore(f"{faulty}/ckpt-1").assert_consumed()
    assert float(v) == 5


def test_an_upload_that_fails_is_an_error_of_the_next_save(faulty):
    v = tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), faulty, max_to_keep=1)
    manager.save()
    manager.sync()
    v.assign(2.0)
    Faulty.faults = [ConnectionError("cut")] * _remote.TRIES
    path = manager.save()
    with pytest.raises(tf.errors.UnavailableError) as error:
        manager.save()
    for part in (faulty, "ckpt-2.safetensors", "cut", f"tried {_remote.TRIES} times", "those before it are still there",
                 "try again"):
        assert part in str(error.value)
    assert tf.train.latest_checkpoint(faulty) == f"{faulty}/ckpt-1"
    v.assign(3.0)
    assert manager.save() == f"{faulty}/ckpt-3"  # and brings up what is missing
    manager.sync()
    assert path not in manager.checkpoints and names(faulty) == ["ckpt-3.json", "ckpt-3.safetensors"]


def test_sync_raises_the_error_of_an_upload_once(faulty):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    Faulty.faults = [PermissionError("denied")]
    checkpoint.save(f"{faulty}/ckpt")
    with pytest.raises(tf.errors.PermissionDeniedError, match="denied.*credentials"):
        checkpoint.sync()
    checkpoint.sync()
    assert len(Faulty.log) == 1  # that is not tried again


def test_training_goes_on_while_a_checkpoint_goes_up(faulty):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    Faulty.hold = threading.Event()
    checkpoint.save(f"{faulty}/ckpt")
    v.assign(2.0)  # not in it
    assert names(faulty) == []
    second = threading.Thread(target=checkpoint.save, args=(f"{faulty}/ckpt",))
    second.start()  # one at a time: this one waits
    second.join(0.2)
    assert second.is_alive()
    Faulty.hold.set()
    second.join(60)
    checkpoint.sync()
    assert [float(tf.train.load_variable(f"{faulty}/ckpt-{n}", "v")) for n in (1, 2)] == [1, 2]


def test_asynchronous_saves_go_up_too(url):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(3.0))
    path = checkpoint.save(f"{url}/ckpt", options=tf.train.CheckpointOptions(enable_async=True))
    checkpoint.sync()
    assert float(tf.train.load_variable(path, "v")) == 3


def test_a_damaged_checkpoint_gives_way_to_the_one_before(faulty):
    v = tf.Variable(1.0)

    def manager():
        return tf.train.CheckpointManager(tf.train.Checkpoint(v=v), faulty)
    one = manager()
    for i in (1.0, 2.0, 3.0):
        v.assign(i)
        one.save()
    one.sync()
    root = os.path.join(os.environ["FAULTY_ROOT"], faulty[len("faulty://"):])
    with open(f"{root}/ckpt-3.safetensors", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    os.remove(f"{root}/ckpt-2.safetensors")
    assert manager().restore_or_initialize() == f"{faulty}/ckpt-1" and float(v) == 1
    os.remove(f"{root}/ckpt-1.safetensors")
    with pytest.raises((tf.errors.DataLossError, tf.errors.NotFoundError), match="faulty://"):
        manager().restore_or_initialize()


CUT = """
import sys
sys.path.insert(0, {here!r})
from remote_files import Faulty
import berth as tf
v = tf.Variable([float({value})] * 1000)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), {url!r}, max_to_keep=3)
print(manager.restore_or_initialize(), float(v[0]))
v.assign([float({value})] * 1000)
manager.save()
manager.sync()
Faulty.die_at = {die_at!r}
v.assign([float({value} + 1)] * 1000)
manager.save()
"""


@pytest.mark.parametrize("die_at", ["ckpt-2.safetensors", "ckpt-2.json"])
def test_a_program_that_dies_in_an_upload_goes_on_from_the_checkpoint_before(faulty, die_at):
    def run(value, die_at=None):
        script = CUT.format(here=HERE, url=faulty, value=value, die_at=die_at)
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    first = run(1, die_at)
    assert first.returncode == 9, first.stderr
    assert tf.train.latest_checkpoint(faulty) == f"{faulty}/ckpt-1"
    if die_at.endswith("json"):
        assert "ckpt-2.safetensors" in names(faulty)  # a leftover
    again = run(10)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split() == [f"{faulty}/ckpt-1", "1.0"]
    assert names(faulty) == [f"ckpt-{n}.{end}" for n in (1, 2, 3) for end in ("json", "safetensors")]
    assert float(tf.train.load_variable(faulty, "v")[0]) == 11  # a program that ends waits for its uploads


FOLDER = """
import os, sys
from berth import _remote
print(_remote.new_folder("s3://bucket/x"), flush=True)
if "{end}" == "dies":
    os._exit(9)
sys.stdin.read()
"""


def test_what_a_killed_process_left_here_is_deleted_by_the_next(tmp_path):
    there = tmp_path / "temporary"

    def begin(end):
        process = subprocess.Popen([sys.executable, "-c", FOLDER.format(end=end)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        return process, os.path.dirname(process.stdout.readline().strip())
    (there / "berth-urls-not-a-folder").write_text("")
    alive, kept = begin("lives")
    dead, left = begin("dies")
    assert dead.wait(300) == 9 and os.path.isdir(left)
    other, own = begin("lives")
    assert not os.path.exists(left) and os.path.isdir(kept) and os.path.isdir(own)
    for process in (alive, other):
        process.communicate("", timeout=300)
        assert process.returncode == 0
    assert sorted(os.listdir(there)) == ["berth-urls-not-a-folder"]


def test_the_next_save_deletes_what_a_cut_upload_left(faulty):
    root = os.path.join(os.environ["FAULTY_ROOT"], faulty[len("faulty://"):])
    os.makedirs(root)
    for name in ("ckpt-7.safetensors", "ckpt-8-00001-of-00002.safetensors", "weights.safetensors"):
        with open(f"{root}/{name}", "wb") as file:
            file.write(b"x" * 100)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), faulty)
    assert manager.latest_checkpoint is None and manager.restore_or_initialize() is None
    manager.save()
    manager.sync()
    assert names(faulty) == ["ckpt-1.json", "ckpt-1.safetensors", "weights.safetensors"]


# ---------------------------------------------------------------- fit

class Stop(keras.callbacks.Callback):
    """Ends fit with an error in an epoch."""

    def __init__(self, epoch):
        self._epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self._epoch:
            raise RuntimeError("stop")


def test_fit_goes_on_from_backups_at_a_url(url):
    def fit(*callbacks, epochs=4):
        tf.random.set_seed(1)
        model = net()
        history = model.fit(X, Y, epochs=epochs, batch_size=16, verbose=0, callbacks=list(callbacks)).history
        return model.get_weights(), history["loss"]
    expected = fit()
    with pytest.raises(RuntimeError, match="stop"):
        fit(keras.callbacks.BackupAndRestore(f"{url}/b"), Stop(2))
    for upload in list(_remote._pending):
        if isinstance(upload, _remote.Uploads):
            upload.join()
    assert any(n.startswith("backup-") and n.endswith(".json") for n in names(f"{url}/b"))
    tf.random.set_seed(7)
    weights, losses = fit(keras.callbacks.BackupAndRestore(f"{url}/b"), Stop(99))
    for one, other in zip(weights, expected[0]):
        np.testing.assert_array_equal(one, other)
    assert losses == expected[1]
    assert names(f"{url}/b") == []  # as in a folder: fit has ended
    fit(keras.callbacks.BackupAndRestore(f"{url}/b", delete_checkpoint=False, save_freq=2))
    assert len(names(f"{url}/b")) == 2


def test_the_end_of_fit_raises_the_error_of_an_upload(faulty):
    class Break(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            Faulty.faults = [ConnectionError("cut")] * 1000
    with pytest.raises(tf.errors.UnavailableError, match="cut"):
        net().fit(X, Y, epochs=1, verbose=0, callbacks=[
            keras.callbacks.BackupAndRestore(faulty, delete_checkpoint=False), Break()])


NOTICE = """
import os, signal, sys
sys.path.insert(0, {here!r})
import remote_files
import berth as tf
import numpy as np
keras = tf.keras
x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
class Notice(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if {notice} and batch == 5:
            os.kill(os.getpid(), signal.SIGTERM)
tf.random.set_seed(1)
model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])
model.compile("adam", "mse")
model.fit(x, x[:, :1], epochs=2, batch_size=8, verbose=0, callbacks=[
    Notice(), keras.callbacks.BackupAndRestore({url!r}, save_before_preemption=True)])
print(model.get_weights()[0].tobytes().hex())
"""


def test_a_notice_uploads_before_the_process_ends(faulty):
    def run(notice, url=faulty):
        script = NOTICE.format(here=HERE, url=url, notice=notice)
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    first = run(True)
    assert first.returncode == 143, first.stderr
    assert [n for n in names(faulty) if n.endswith(".json")]
    again, whole = run(False), run(False, faulty + "-other")
    assert again.returncode == whole.returncode == 0, again.stderr
    assert again.stdout == whole.stdout


TASK = """
import os, sys
sys.path.insert(0, {here!r})
from remote_files import Faulty
import berth as tf
import numpy as np
keras = tf.keras
x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == {stop}:
            [u.join() for u in list(tf.train._remote._pending) if hasattr(u, "join")]
            os._exit(7)
tf.random.set_seed(1)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])
    model.compile("adam", "mse")
history = model.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(16), epochs=4, verbose=0, callbacks=[
    keras.callbacks.ModelCheckpoint({url!r} + "/models/{{epoch}}", save_weights_only=True),
    keras.callbacks.TensorBoard({url!r} + "/logs"),
    keras.callbacks.BackupAndRestore({url!r} + "/backup", delete_checkpoint=False), Stop()]).history
print(len(history["loss"]), model.get_weights()[0].tobytes().hex(), [n for what, n in Faulty.log if what == "put"])
"""


def tasks(stop, url):
    """Both tasks' (exit status, output, errors)."""
    import socket
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    workers = [f"127.0.0.1:{s.getsockname()[1]}" for s in free]
    for s in free:
        s.close()
    script = TASK.format(here=HERE, stop=stop, url=url)
    run = [subprocess.Popen([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={
        **os.environ, "TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}})})
        for i in range(2)]
    out = [p.communicate(timeout=300) for p in run]
    return [(p.returncode, *o) for p, o in zip(run, out)]


def test_of_several_tasks_those_write_that_write_in_folders_and_all_restore(faulty):
    first = tasks(2, faulty)
    assert 7 in [status for status, *_ in first], first
    assert any(n.startswith("backup-") for n in names(f"{faulty}/backup"))
    assert any(n.startswith("task_1/backup-") for n in names(f"{faulty}/backup"))
    again = tasks(99, faulty)
    assert [status for status, *_ in again] == [0, 0], again
    whole = tasks(99, faulty + "-whole")
    (epochs, weights, sent), (_, others, sent_1) = [out.split(maxsplit=2) for _, out, _ in again]
    assert epochs == "4" and weights == others == whole[0][1].split()[1]
    assert "safetensors" in sent and "tfevents" in sent
    assert "tfevents" not in sent_1 and "'4.safetensors'" not in sent_1 and "backup-" in sent_1
    assert names(f"{faulty}/models")[-1] == "4.safetensors"


def test_model_checkpoints_go_to_a_url(url):
    model = net()
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[
        keras.callbacks.ModelCheckpoint(url + "/w-{epoch:02d}.weights.h5", save_weights_only=True),
        keras.callbacks.ModelCheckpoint(url + "/best", monitor="loss", save_best_only=True)])
    assert set(names(url)) == {"w-01.weights.h5", "w-02.weights.h5", "best.safetensors"}
    other = net()
    other.load_weights(url + "/w-02.weights.h5")
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
    np.testing.assert_array_equal(keras.models.load_model(url + "/best").predict(X), model.predict(X))


def test_logs_go_to_a_url(url):
    net().fit(X, Y, epochs=2, verbose=0, validation_data=(X, Y), callbacks=[keras.callbacks.TensorBoard(f"{url}/fit")])
    assert {n.split("/")[0] for n in names(f"{url}/fit")} == {"train", "validation"}
    writer = tf.summary.create_file_writer(f"{url}/own")
    with writer.as_default():
        tf.summary.scalar("x", 0.5, step=1)
    writer.close()
    (name,) = names(f"{url}/own")
    assert "tfevents" in name
    records = [r.numpy() for r in tf.data.TFRecordDataset(f"{url}/own/{name}")]
    assert len(records) == 2 and b"x" in records[1]


def test_profiles_go_to_a_url(url):
    with tf.profiler.experimental.Profile(url):
        tf.linalg.matmul(tf.ones([4, 4]), tf.ones([4, 4]))
    assert any(n.endswith(".xplane.pb") for n in names(url))


# ---------------------------------------------------------------- data and models

def write(url, text):
    with tf.io.gfile.GFile(url, "w") as file:
        file.write(text)


def test_records_and_lines_are_written_and_read(url):
    for i in range(3):
        with tf.io.TFRecordWriter(f"{url}/r{i}.tfrecord") as writer:
            for j in range(4):
                writer.write(f"{i}{j}".encode())
        write(f"{url}/t{i}.txt", f"a{i}\nb{i}\n")
    with tf.io.TFRecordWriter(f"{url}/z.gz", "GZIP") as writer:
        writer.write(b"packed")
    records = [f"{url}/r{i}.tfrecord" for i in range(3)]
    expected = [f"{i}{j}".encode() for i in range(3) for j in range(4)]
    assert [r.numpy() for r in tf.data.TFRecordDataset(records)] == expected
    turns = [r.numpy() for r in tf.data.TFRecordDataset(records, num_parallel_reads=3)]
    assert turns == [f"{i}{j}".encode() for j in range(4) for i in range(3)]
    assert [r.numpy() for r in tf.data.TFRecordDataset(f"{url}/z.gz", "GZIP")] == [b"packed"]
    listed = tf.data.Dataset.list_files(f"{url}/t*.txt", shuffle=False)
    assert [n.numpy().decode().rsplit("/", 1)[-1] for n in listed] == ["t0.txt", "t1.txt", "t2.txt"]
    for lines in (tf.data.TextLineDataset(listed), listed.interleave(tf.data.TextLineDataset, cycle_length=1)):
        assert [t.numpy() for t in lines] == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
    assert tf.io.read_file(f"{url}/t1.txt").numpy() == b"a1\nb1\n"
    assert len(tf.io.matching_files(f"{url}/*.txt").numpy()) == 3
    write(f"{url}/rows.csv", "size,word\n1.5,one\n2.5,two\n")
    rows = tf.data.experimental.CsvDataset(f"{url}/rows.csv", [0.0, tf.string], header=True)
    assert [(float(a), b.numpy()) for a, b in rows] == [(1.5, b"one"), (2.5, b"two")]
    batches = tf.data.experimental.make_csv_dataset(f"{url}/rows.csv", 2, num_epochs=1, shuffle=False)
    assert next(iter(batches))["size"].numpy().tolist() == [1.5, 2.5]
    assert tf.data.FixedLengthRecordDataset(f"{url}/t0.txt", 3).as_numpy_iterator().next() == b"a0\n"


def test_an_iterator_over_urls_goes_on_in_another_process(faulty):
    for i in range(2):
        write(f"{faulty}/t{i}.txt", "".join(f"{i}{j}\n" for j in range(5)))
    files = [f"{faulty}/t{i}.txt" for i in range(2)]
    it = iter(tf.data.TextLineDataset(files))
    for _ in range(7):
        next(it)
    path = tf.train.Checkpoint(data=it).write(f"{faulty}/ckpt")
    _remote._copies.clear()  # as elsewhere
    other = iter(tf.data.TextLineDataset(files))
    tf.train.Checkpoint(data=other).read(path).assert_consumed()
    assert [t.numpy() for t in other] == [b"12", b"13", b"14"]


def test_a_file_that_changed_is_fetched_again_and_one_that_did_not_is_not(faulty):
    write(f"{faulty}/t.txt", "one\n")
    lines = tf.data.TextLineDataset(f"{faulty}/t.txt")
    for _ in range(2):
        assert [t.numpy() for t in lines] == [b"one"]
    assert [c for c in Faulty.log if c[0] == "get"] == [("get", "t.txt")]
    write(f"{faulty}/t.txt", "another\n")
    assert [t.numpy() for t in lines] == [b"another"]


def test_half_a_file_is_none(url):
    with pytest.raises(RuntimeError), tf.io.TFRecordWriter(f"{url}/r") as writer:
        writer.write(b"x")
        raise RuntimeError
    with pytest.raises(RuntimeError), tf.io.gfile.GFile(f"{url}/t", "w") as file:
        file.write("x")
        raise RuntimeError
    assert names(url) == []


def test_datasets_and_functions_are_saved(url):
    data = tf.data.Dataset.from_tensor_slices({"a": np.arange(5), "b": np.ones((5, 2), "float32")})
    data.save(f"{url}/data")
    again = tf.data.Dataset.load(f"{url}/data")
    assert again.element_spec == data.element_spec
    assert [int(e["a"]) for e in again] == [0, 1, 2, 3, 4]
    with pytest.raises(tf.errors.NotFoundError, match="expected a folder of Dataset.save"):
        tf.data.Dataset.load(f"{url}/none")

    class Scaled(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(3.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def run(self, x):
            return x * self.w
    tf.saved_model.save(Scaled(), f"{url}/model")
    assert tf.saved_model.contains_saved_model(f"{url}/model") and not tf.saved_model.contains_saved_model(f"{url}/data")
    assert float(tf.saved_model.load(f"{url}/model").run(tf.constant(2.0))) == 6


@pytest.mark.parametrize("end", [".keras", ".h5", ""])
def test_models_are_saved(url, end):
    model = net()
    model.fit(X, Y, verbose=0)
    model.save(f"{url}/m{end}")
    np.testing.assert_array_equal(keras.models.load_model(f"{url}/m{end}").predict(X), model.predict(X))
    with pytest.raises((FileExistsError, tf.errors.AlreadyExistsError)):
        model.save(f"{url}/m{end}", overwrite=False)
    ending = ".weights.h5" if end else ".safetensors"
    model.save_weights(f"{url}/w{ending}")
    other = net()
    other.load_weights(f"{url}/w{ending}")
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


REAL_KERAS = """
import os, sys
os.environ["KERAS_BACKEND"] = "berth"
sys.path.insert(0, {here!r})
import remote_files
import berth as tf
import keras
import numpy as np
x = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(1)])
model.build((None, 4))
model.compile("adam", "mse")
url = {url!r}
model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[
    keras.callbacks.BackupAndRestore(url + "/backup", delete_checkpoint=False),
    keras.callbacks.ModelCheckpoint(url + "/e-{{epoch}}.keras")])
model.save(url + "/m.keras")
model.save_weights(url + "/m.weights.h5")
again = keras.models.load_model(url + "/m.keras")
np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
again = keras.models.load_model(url + "/e-1.keras")
again.load_weights(url + "/m.weights.h5")
np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
resumed = keras.models.clone_model(model)
resumed.compile("adam", "mse")
losses = resumed.fit(x, x[:, :1], epochs=3, verbose=0, callbacks=[
    keras.callbacks.BackupAndRestore(url + "/backup")]).history["loss"]
assert len(losses) == 1, losses
checkpoint = tf.train.Checkpoint(model=model)
path = checkpoint.save(url + "/ckpt")
checkpoint.sync()
tf.train.Checkpoint(model=again).restore(path).expect_partial()
print("fine", sorted(n for n in tf.io.gfile.listdir(url)))
"""


def test_keras_itself_takes_urls(faulty):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("needs the package keras")
    script = REAL_KERAS.format(here=HERE, url=faulty)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0 and "fine" in run.stdout, run.stderr
    assert "'e-1.keras', 'e-2.keras'" in run.stdout
