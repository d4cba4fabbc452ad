"""berth.ray: what is decided without Ray, and groups of workers on a Ray cluster of this machine."""
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from berth import _ray_plan as plan

LIMIT = 600  # seconds, of a machine that has much else to do
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None,
                               reason="Ray is not installed: pip install 'berth[ray]'")


# ---- without Ray

def test_workers_of_ray_become_tasks():
    at = ["10.0.0.1:5001", "10.0.0.2:5001", "10.0.0.2:5002"]
    one = json.loads(plan.tf_config(plan.cluster("multi-worker", at), *plan.task("multi-worker", 2)))
    assert one["cluster"] == {"worker": at} and one["task"] == {"type": "worker", "index": 2}
    jobs = plan.cluster("parameter-server", at, ["10.0.0.3:7"])
    assert jobs == {"chief": at[:1], "worker": at[1:], "ps": ["10.0.0.3:7"]}
    assert [plan.task("parameter-server", r) for r in range(3)] == [("chief", 0), ("worker", 0), ("worker", 1)]
    assert plan.address("fd00::1", 80) == "[fd00::1]:80" and plan.address("h", 80) == "h:80"


def test_the_engine_reads_the_description(monkeypatch):
    import berth as tf
    jobs = plan.cluster("parameter-server", ["10.0.0.1:1", "10.0.0.2:1"], ["10.0.0.1:2"])
    monkeypatch.setenv("TF_CONFIG", plan.tf_config(jobs, "worker", 0))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 0)
    assert resolver.cluster_spec().as_dict() == jobs


@pytest.mark.parametrize("arguments, word", [
    (("mirrored", None, 2), "expected 'multi-worker' or 'parameter-server'"),
    (("multi-worker", 1, 2), "parameter_servers=1 has no effect"),
    (("parameter-server", 0, 2), "expected a number of servers"),
    (("parameter-server", 1, 1), "worker 0 is the chief")])
def test_clusters_that_cannot_work_are_refused(arguments, word):
    with pytest.raises(ValueError, match=word):
        plan.check(*arguments)


def test_secrets_differ_and_are_not_shown():
    one, other = plan.new_secret(), plan.new_secret()
    assert len(one) == 64 and one != other and one not in repr([one]) and f"{one}" != repr(one)


def test_variables_of_other_launchers_stay_behind():
    got = plan.environment({"HOME": "/h", "TF_CONFIG": "old", "SLURM_PROCID": "3"}, TF_CONFIG="new", BERTH_DEVICES=None)
    assert got == {"HOME": "/h", "TF_CONFIG": "new"}


def test_options_of_the_launcher(capsys):
    o = plan.launch_options(["--address", "auto", "--workers", "2", "--ps", "1", "--evaluator", "--", "prog", "--ps", "9"])
    assert o.command == ["prog", "--ps", "9"] and (o.workers, o.ps, o.cpus) == (2, 1, 1)
    assert plan.tasks_of(o) == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    assert [plan.decides_the_end(o, job) for job in ("chief", "worker", "ps")] == [True, False, False]
    for arguments, word in (
            (["--address", "auto", "--cores", "all", "--", "prog"], "--cores"), (["--address", "auto"], "no program"),
            (["--", "prog"], "--address"), (["--address", "auto", "--workers", "0", "--", "prog"], "--workers 0"),
            (["--address", "auto", "--grace", "-1", "--", "prog"], "--grace"), (["--address", "auto", "stray", "--", "p"], "stray")):
        with pytest.raises(SystemExit) as error:
            plan.launch_options(arguments)
        assert error.value.code == 2 and word in capsys.readouterr().err


def test_without_ray_the_error_says_what_to_install():
    text = ("import sys\nsys.modules['ray'] = None\nimport berth\n"
            "try:\n    import berth.ray\nexcept ImportError as e:\n    print(e)")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=LIMIT)
    assert "pip install 'berth[ray]'" in done.stdout, done
    done = subprocess.run([sys.executable, "-c", "import berth, sys; print('ray' in sys.modules)"], capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.stdout == "False\n", done


# ---- with Ray

def started(start):
    """What start() returns, which starts Ray: that gives up after 30 s, which a machine with much else to do exceeds.

    Workers get the functions of this file by value, and as much of the processor as other processes.
    """
    import ray.cloudpickle
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    os.environ.setdefault("RAY_worker_niceness", "0")
    end = time.monotonic() + LIMIT
    while True:
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error) or time.monotonic() > end:
                raise
            ray.shutdown()
            for thread in os.listdir("/proc/self/task"):  # Ray leaves what it started
                with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as children:
                    for pid in children.read().split():
                        os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(scope="module")
def sessions():
    """The folder of what Ray leaves, which goes at the end."""
    with tempfile.TemporaryDirectory(prefix="berth-ray-", ignore_cleanup_errors=True) as folder, pytest.MonkeyPatch.context() as m:
        m.setenv("RAY_TMPDIR", folder)
        yield folder


@pytest.fixture(scope="module")
def cluster(sessions):
    """A Ray cluster of two CPUs."""
    import ray
    yield started(lambda: ray.init(num_cpus=2, include_dashboard=False))
    ray.shutdown()


def points():
    x = np.random.RandomState(0).rand(64, 8).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def made(tf):
    """A model of Berth's Keras whose weights are known."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh", input_shape=(8,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.02), "mse")
    model.set_weights([np.linspace(-1, 1, w.size, dtype="float32").reshape(w.shape) for w in model.get_weights()])
    return model


def alone(epochs):
    """(losses, weights) of one process."""
    import berth as tf
    model = made(tf)
    history = model.fit(*points(), batch_size=16, epochs=epochs, shuffle=False, verbose=0).history
    return history["loss"], model.get_weights()


def loop(config):
    """Trains with a checkpoint after every epoch. config: epochs; kill_at: the epoch in which worker 1 kills itself, once."""
    import berth as tf
    from berth.ray import ReportCheckpoint
    marker = os.path.join(config["folder"], "killed")

    class Die(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == config.get("kill_at") and strategy.task_id == 1 and not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = made(tf)
    callback = ReportCheckpoint(model)
    first = callback.restore()
    history = model.fit(*points(), batch_size=16, epochs=config["epochs"], initial_epoch=first, shuffle=False, verbose=0,
                        callbacks=[callback, Die()]).history
    return {"first": first, "loss": history["loss"], "weights": model.get_weights(), "size": strategy.num_replicas_in_sync,
            "restarts": os.environ["BERTH_RESTART_COUNT"], "cores": sorted(os.sched_getaffinity(0)),
            "secret": os.environ["BERTH_CLUSTER_SECRET"] in "".join(_commands())}


def _commands():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                yield file.read()
        except OSError:
            continue


def run_config(folder, failures=0):
    from ray.train import FailureConfig, RunConfig
    return RunConfig(storage_path=str(folder), name="run", failure_config=FailureConfig(max_failures=failures))


def workers(n, **options):
    from ray.train import ScalingConfig
    return ScalingConfig(num_workers=n, **options)


@needs_ray
def test_two_workers_train_what_one_process_trains(cluster, tmp_path):
    from berth.ray import BerthTrainer, placements
    trainer = BerthTrainer(loop, train_loop_config={"epochs": 4, "folder": str(tmp_path)}, scaling_config=workers(2),
                           run_config=run_config(tmp_path), trace=True)
    assert trainer.backend_config.secret not in repr(trainer.backend_config) + str(trainer.backend_config.to_dict())
    result = trainer.fit()
    losses, weights = alone(4)
    got = result.return_value
    assert got["size"] == 2 and not got["secret"] and got["first"] == 0
    np.testing.assert_allclose(got["loss"], losses, rtol=1e-5)
    for a, b in zip(got["weights"], weights):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert len(got["cores"]) == 1 or len(os.sched_getaffinity(0)) == 1
    assert result.metrics["epoch"] == 4 and result.metrics["loss"] == pytest.approx(losses[-1], rel=1e-5)
    assert sorted(result.placements) == ["worker:0", "worker:1"] and "CPU:0" in result.placements["worker:1"]
    assert placements(result.path) == result.placements
    assert sorted(result.traces) == ["worker:0", "worker:1"] and all(os.path.getsize(p) > 100 for p in result.traces.values())


@needs_ray
def test_a_killed_worker_is_replaced(cluster, tmp_path):
    from berth.ray import BerthTrainer
    result = BerthTrainer(loop, train_loop_config={"epochs": 5, "folder": str(tmp_path), "kill_at": 2},
                          scaling_config=workers(2), run_config=run_config(tmp_path, failures=2)).fit()
    got = result.return_value
    # Ray takes reports every 2 s, one at a time: the second may have been lost with the worker.
    assert os.path.exists(tmp_path / "killed") and got["restarts"] == "1" and got["first"] in (1, 2), got
    losses, weights = alone(5)
    np.testing.assert_allclose(got["loss"], losses[got["first"]:], rtol=1e-5)
    for a, b in zip(got["weights"], weights):
        np.testing.assert_allclose(a, b, atol=1e-5)


@needs_ray
def test_keras_on_berth_trains_on_ray(cluster, tmp_path):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed: pip install 'berth[keras]'")
    from berth.ray import BerthTrainer

    def keras_loop():
        os.environ["KERAS_BACKEND"] = "berth"
        from keras_berth import hook
        hook.install()
        import berth as tf
        import keras
        from berth.ray import ReportCheckpoint
        with tf.distribute.MultiWorkerMirroredStrategy().scope():
            model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
            model.compile(keras.optimizers.Adam(0.02), "mse")
        model.set_weights([np.linspace(-1, 1, w.size, dtype="float32").reshape(w.shape) for w in model.get_weights()])
        callback = ReportCheckpoint(model)
        history = model.fit(*points(), batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[callback]).history
        first = ReportCheckpoint(model).restore()
        return history["loss"], first

    result = BerthTrainer(keras_loop, scaling_config=workers(2), run_config=run_config(tmp_path)).fit()
    losses, first = result.return_value
    np.testing.assert_allclose(losses, alone(2)[0], rtol=1e-5)
    assert first == 2 and sorted(result.placements) == ["worker:0", "worker:1"]


@needs_ray
def test_every_row_is_seen_once_and_not_copied(cluster, tmp_path):
    import ray
    from berth.ray import BerthTrainer, dataset
    rows = ray.data.range(96, override_num_blocks=4).map_batches(
        lambda b: {"id": b["id"], "x": np.stack([b["id"]] * 3, 1).astype("float32"), "even": b["id"] % 2 == 0})

    def read():
        import ray.train
        shard = ray.train.get_dataset_shard("train")
        seen = []
        for _ in range(2):
            ids = []
            for i, x, even in dataset(shard, "id", "x", "even", batch_size=7):
                assert x.shape[1:] == (3,) and x.dtype.name == "float32" and even.dtype.name == "bool"
                assert (x.numpy()[:, 2] == i.numpy()).all() and (even.numpy() == (i.numpy() % 2 == 0)).all()
                ids += i.numpy().tolist()
            seen.append(ids)
        path = os.path.join(str(tmp_path), f"{ray.train.get_context().get_world_rank()}.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(seen, out)

    # What reads needs a CPU of Ray beside the workers.
    BerthTrainer(read, scaling_config=workers(2, resources_per_worker={"CPU": 0.5}), run_config=run_config(tmp_path), datasets={"train": rows}).fit()
    seen = [json.loads((tmp_path / f"{r}.json").read_text()) for r in range(2)]
    for epoch in range(2):
        assert sorted(seen[0][epoch] + seen[1][epoch]) == list(range(96))
        assert seen[0][epoch] and seen[1][epoch]


@needs_ray
def test_fit_trains_on_shards(cluster, tmp_path):
    import ray
    from berth.ray import BerthTrainer
    x, y = (np.repeat(v[:1], 64, axis=0) for v in points())  # equal rows: their order, which Ray chooses, changes nothing
    rows = ray.data.from_items([{"x": a, "y": b} for a, b in zip(x, y)])

    def train():
        import berth as tf
        import ray.train
        from berth.ray import dataset
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with strategy.scope():
            model = made(tf)
        data = dataset(ray.train.get_dataset_shard("train"), "x", "y", batch_size=64)
        return model.fit(data, epochs=3, verbose=0).history["loss"]

    result = BerthTrainer(train, scaling_config=workers(2, resources_per_worker={"CPU": 0.5}), datasets={"train": rows},
                          run_config=run_config(tmp_path)).fit()
    import berth as tf
    # A worker's batch is its 32 rows, half of which it takes for a step: two steps of 32 rows per epoch.
    wanted = made(tf).fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(result.return_value, wanted, rtol=1e-4)


@needs_ray
def test_tensors_are_views_of_batches(cluster):
    import ray
    from berth.ray import _data, dataset
    size = 1 << 20  # small objects are not in the store
    rows = ray.data.from_numpy(np.arange(size, dtype="float32").reshape(-1, 4)).materialize()
    batch = next(iter(rows.iterator().iter_batches(batch_size=8, batch_format="numpy")))["data"]
    t = _data.tensor_of("data", batch, _data._spec("data", rows.schema().types[0]))
    assert np.asarray(t).ctypes.data == batch.ctypes.data and (t.numpy() == np.arange(32).reshape(8, 4)).all()
    store = [[int(x, 16) for x in line.split()[0].split("-")] for line in open("/proc/self/maps") if "plasma" in line]
    batches = [b["data"] for b in dataset(rows, batch_size=1 << 14)]
    inside = [any(begin <= np.asarray(b).ctypes.data < end for begin, end in store) for b in batches]
    assert sum(inside) >= len(inside) - 2 > 8, inside  # all but what spans blocks
    assert (np.concatenate([b.numpy() for b in batches]) == np.arange(size).reshape(-1, 4)).all()


@needs_ray
def test_columns_that_are_no_tensors_are_refused(cluster):
    import ray
    from berth.ray import dataset
    rows = ray.data.from_items([{"a": 1, "b": "x", "c": [1, 2]}, {"a": None, "b": "y", "c": [3]}])
    assert [b.numpy().tolist() for b in dataset(rows, "b", batch_size=2)] == [[b"x", b"y"]]
    with pytest.raises(ValueError, match="no column 'z'"):
        dataset(rows, "z", batch_size=2)
    with pytest.raises(ValueError, match="batch_size=0"):
        dataset(rows, "a", batch_size=0)
    with pytest.raises(ValueError, match="column 'c'"):
        dataset(rows, "c", batch_size=2)
    with pytest.raises(Exception, match="nulls"):
        list(dataset(rows, "a", batch_size=2))
    with pytest.raises(TypeError, match="get_dataset_shard"):
        dataset([1], batch_size=2)


@needs_ray
def test_parameter_servers_are_actors(cluster, tmp_path):
    from berth.ray import BerthTrainer

    def train():
        import berth as tf
        from berth.ray import ReportCheckpoint
        strategy = tf.distribute.ParameterServerStrategy()
        with strategy.scope():
            model = made(tf)
        callback = ReportCheckpoint(model)
        first = callback.restore()
        history = model.fit(*points(), batch_size=16, epochs=3, initial_epoch=first, shuffle=False, verbose=0,
                            callbacks=[callback]).history
        return history["loss"], strategy.num_workers, strategy.num_parameter_servers

    result = BerthTrainer(train, scaling_config=workers(2), run_config=run_config(tmp_path), strategy="parameter-server").fit()
    losses, computing, servers = result.return_value
    assert (computing, servers) == (1, 1) and result.metrics["epoch"] == 3
    np.testing.assert_allclose(losses, alone(3)[0], rtol=1e-5)
    assert "ps" in result.placements["chief:0"]
    end = time.monotonic() + LIMIT
    while any("ParameterServer" in c and "ray::" in c for c in _commands()) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any("ParameterServer" in c and "ray::" in c for c in _commands())


@needs_ray
def test_wrong_trainers_are_refused():
    from berth.ray import BerthConfig, BerthTrainer, CheckpointManager, ReportCheckpoint
    for options, word in ((dict(strategy="none"), "strategy='none'"), (dict(cores="0-1"), "cores='0-1'"),
                          (dict(resources_per_server={"CPU": 1}), "resources_per_server"),
                          (dict(scaling_config=workers(0)), "num_workers=0"), (dict(parameter_servers=1), "parameter_servers=1"),
                          (dict(scaling_config=workers(1, use_tpu=True, resources_per_worker={"TPU": 1})), "use_tpu=True"),
                          (dict(scaling_config=workers(1, topology="2x2")), "topology='2x2'"),
                          (dict(scaling_config=workers((1, 2)), strategy="parameter-server"), "worker 0 is the chief")):
        with pytest.raises(ValueError, match=word):
            BerthTrainer(loop, **options)
    for options, error, word in ((dict(backend_config=BerthConfig()), TypeError, "makes its backend_config"),
                                 (dict(banana=1), TypeError, "banana"),
                                 (dict(scaling_config={"num_workers": 2}), TypeError, "scaling_config is a dict"),
                                 (dict(run_config={}), TypeError, "run_config is a dict"),
                                 (dict(resume_from_checkpoint=1), DeprecationWarning, "resume_from_checkpoint"),
                                 (dict(metadata={}), DeprecationWarning, "metadata")):
        with pytest.raises(error, match=word):
            BerthTrainer(loop, **options)
    for options, word in ((dict(strategy="none"), "strategy='none'"), (dict(cores="none"), "cores='none'"),
                          (dict(strategy="parameter-server", parameter_servers=0), "parameter_servers=0")):
        with pytest.raises(ValueError, match=word):
            BerthConfig(**options)
    with pytest.raises(TypeError, match="tf.train.Checkpoint"):
        CheckpointManager(3)
    with pytest.raises(ValueError, match="every=0"):
        ReportCheckpoint(None, every=0)


PROGRAM = """
import json, os, signal, sys
task = json.loads(os.environ["TF_CONFIG"])["task"]
print("task", task["type"], task["index"], len(os.environ["BERTH_CLUSTER_SECRET"]), os.environ.get("BERTH_DEVICES"))
if task["type"] == "worker":
    import berth as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    total = strategy.reduce("SUM", tf.constant(task["index"] + 1.0), axis=None)
    print("sum", float(total), flush=True)
    if task["index"] == 1 and sys.argv[1] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    strategy.leave()
sys.exit(int(sys.argv[1]) if task["index"] == 1 else 0)
"""


def launch(cluster, *arguments, cwd=None, begin=subprocess.run, **options):
    """What `berth launch --ray` does with these arguments, or python -m berth.ray where BERTH names no program."""
    berth = os.environ.get("BERTH")
    start = [berth, "launch", "--ray"] if berth else [sys.executable, "-m", "berth.ray", "--address"]
    if begin is subprocess.run:
        options["timeout"] = LIMIT
    return begin([*start, cluster.address_info["gcs_address"], *arguments], cwd=cwd, text=True, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, env={**os.environ, "BERTH_PYTHON": sys.executable}, **options)


@needs_ray
@pytest.mark.parametrize("end, code", [("0", 0), ("7", 7), ("dies", 137)])
def test_berth_launch_runs_programs_on_ray(cluster, tmp_path, end, code):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = launch(cluster, "--workers", "2", "--devices", "CPUx1", "--grace", "60", "--", sys.executable, "program.py", end,
                  cwd=tmp_path)
    if code == 137:  # the dead task is named, or the one that waited for it
        assert done.returncode in (1, 137) and "worker:1 ended with status 137" in done.stderr, done
    else:
        assert done.returncode == code, done
    for i in range(2):
        assert f"[worker:{i}] task worker {i} 64 CPUx1\n" in done.stdout and f"[worker:{i}] sum 3.0\n" in done.stdout, done
    assert (f"worker:1 ended with status {code}" in done.stderr) == (code != 0), done


def _idx(path, kind, array):
    """Writes an array of bytes as MNIST's files are."""
    path.write_bytes(bytes([0, 0, 8, kind]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes())


@needs_ray
def test_berth_launch_runs_a_program_in_cpp_on_ray(cluster, tmp_path):
    digits = os.path.join(os.path.dirname(os.environ.get("BERTH", "")), "digits")
    if not os.path.exists(digits):
        pytest.skip("the example digits is not beside the program that BERTH names")
    labels = np.arange(192, dtype="uint8") % 10
    _idx(tmp_path / "images", 3, np.repeat(labels * 20, 28 * 28).reshape(-1, 28, 28))
    _idx(tmp_path / "labels", 1, labels)

    def run(*arguments):
        return launch(cluster, "--workers", "2", "--devices", "CPUx1", "--grace", "60", "--", digits, "--strategy", "multi-worker",
                      "--images", *arguments, "--labels", "labels", "--holdout", "64", "--epochs", "1", "--json", cwd=tmp_path)
    done = run("images")
    assert done.returncode == 0 and "Epoch 1/1" in done.stdout and "test accuracy" in done.stdout, done
    assert "[worker:1]" in done.stdout, done
    done = run("absent")
    assert done.returncode not in (0, 127) and "absent" in done.stderr and "ended with status" in done.stderr, done


@needs_ray
def test_berth_launch_says_what_cannot_run_on_ray(cluster, tmp_path):
    done = launch(cluster, "--workers", "1", "--", "/none/program", cwd=tmp_path)
    assert done.returncode == 127 and "[worker:0] berth launch: /none/program: No such file" in done.stderr, done
    done = subprocess.run([sys.executable, "-m", "berth.ray", "--address", cluster.address_info["gcs_address"], "--workers", "2",
                           "--cpus", "2", "--start", "3", "--", "true"], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1 and "of 2 tasks have not started within 3 s" in done.stderr, done


@needs_ray
def test_a_signal_to_berth_launch_ends_the_tasks_on_ray(cluster, tmp_path):
    text = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(3600)"
    run = launch(cluster, "--workers", "2", "--", sys.executable, "-c", text, begin=subprocess.Popen)
    pids = [int(run.stdout.readline().split()[-1]) for _ in range(2)]
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=LIMIT)
    assert run.returncode == 143
    end = time.monotonic() + LIMIT
    while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(os.path.exists(f"/proc/{p}") for p in pids)


# Last: it ends the cluster of the others.
@needs_ray
def test_a_group_grows(sessions, tmp_path):
    import ray
    from berth.ray import BerthTrainer
    from ray.cluster_utils import Cluster

    def train():
        import berth as tf
        from berth.ray import CheckpointManager
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        size = strategy.num_replicas_in_sync
        with strategy.scope():
            steps = tf.Variable(0.0)
        manager = CheckpointManager(tf.train.Checkpoint(steps=steps))
        sizes = json.loads(manager.restore().get("sizes", "[]"))
        assert float(steps) == len(sizes), (steps, sizes)
        end = time.monotonic() + LIMIT
        while not (size == 2 and sizes.count(2) == 3):
            assert time.monotonic() < end, "the group has not grown"
            total = strategy.reduce("SUM", tf.constant(1.0), axis=None)
            steps.assign_add(total / size)
            sizes.append(int(total))
            manager.report({"size": size}, sizes=json.dumps(sizes))
        return sizes

    ray.shutdown()
    cluster = started(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}))
    try:
        ray.init(address=cluster.address)
        trainer = BerthTrainer(train, scaling_config=workers((1, 2), elastic_resize_monitor_interval_s=1),
                               run_config=run_config(tmp_path, failures=2))
        with ThreadPoolExecutor(1) as pool:  # Ray adds nodes in the main thread alone
            fit = pool.submit(trainer.fit)
            while not list(tmp_path.glob("run/checkpoint*")) and not fit.done():
                time.sleep(0.1)
            node = None
            while sum(n["Alive"] for n in ray.nodes()) < 2 and not fit.done():
                if node is None or node.dead_processes():  # one that starts too slowly ends itself
                    node = cluster.add_node(num_cpus=1, wait=False)
                time.sleep(0.1)
            sizes = fit.result().return_value
        assert sizes[0] == 1 and sizes[-3:] == [2, 2, 2] and sorted(sizes) == sizes, sizes
    finally:
        ray.shutdown()
        cluster.shutdown()
