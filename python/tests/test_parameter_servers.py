"""Parameter servers: a chief, workers and servers as processes of one script, and all of them in one process."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

import berth as tf
import pytest

LIMIT = 120


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """The tasks of a script, each a process; all have ended when the block has."""

    def __init__(self, folder, text, workers=1, ps=1, options=("-m", "berth", "--own-keras")):
        path = folder / "script.py"
        path.write_text(text)
        chief = [("chief", 0)] if ps else []  # without servers it is one of the workers
        tasks = [*chief, *(("worker", i) for i in range(workers)), *(("ps", i) for i in range(ps))]
        cluster = {}
        for (job, _), port in zip(tasks, free_ports(len(tasks))):
            cluster.setdefault(job, []).append(f"127.0.0.1:{port}")
        self.tasks, self._start = {}, lambda task: subprocess.Popen(
            [sys.executable, *options, str(path)], cwd=folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, "BERTH_DEVICES": "CPUx1", "TF_CONFIG": json.dumps(
                {"cluster": cluster, "task": {"type": task[0], "index": task[1]}})})
        for task in tasks:
            self.start(*task)

    def start(self, job, index):
        self.tasks[job, index] = self._start((job, index))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.tasks.values():
            process.kill()
            process.wait()
            process.stdout.close()

    def ended(self, job="chief", index=0):
        """(status, output) of a task."""
        process = self.tasks[job, index]
        out, _ = process.communicate(timeout=LIMIT)
        if "libberth_rpc.so, which cannot be opened" in out:
            pytest.skip("this package is without the library of several processes")
        return process.returncode, out

    def all_ended_well(self):
        status, out = self.ended()
        assert status == 0, out
        for task in self.tasks:
            if task != ("chief", 0):
                assert self.ended(*task)[0] == 0, (task, self.ended(*task))
        return out


# As TensorFlow's guide has it: one script, in which workers and servers join() their Server.
HEAD = """
import os
import tensorflow as tf
import numpy as np
cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if cluster_resolver.task_type in ("worker", "ps"):
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    server = tf.distribute.Server(cluster_resolver.cluster_spec(), job_name=cluster_resolver.task_type,
                                  task_index=cluster_resolver.task_id, protocol=cluster_resolver.rpc_layer or "grpc",
                                  start=True)
    server.join()
"""

LOOP = HEAD + """
strategy = tf.distribute.ParameterServerStrategy(
    cluster_resolver, variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2))
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
assert (strategy.num_workers, strategy.num_parameter_servers, strategy.num_replicas_in_sync) == (2, 2, 1)
with strategy.scope():
    w = tf.Variable([[2.0], [3.0], [4.0]], name="w")
    count = tf.Variable(0, dtype=tf.int64, trainable=False)
    sgd = tf.keras.optimizers.SGD(0.5)

def dataset_fn(context):
    d = tf.data.Dataset.range(100).shard(context.num_input_pipelines, context.input_pipeline_id)
    return d.map(lambda i: {"x": tf.cast(i, tf.float32), "n": i}).batch(2).repeat()

@tf.function
def per_worker_dataset_fn():
    return strategy.distribute_datasets_from_function(dataset_fn)

dataset = coordinator.create_per_worker_dataset(per_worker_dataset_fn)
assert dataset.element_spec["n"].dtype == tf.int64
iterator = iter(dataset)
traces = []

@tf.function
def step(iterator, by):
    traces.append(1)
    def replica(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * by)
        sgd.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        count.assign_add(tf.reduce_sum(batch["n"]))
        return loss
    batch = next(iterator)
    loss = strategy.run(replica, args=(batch,))
    return {"loss": strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None), "n": batch["n"]}

results = [coordinator.schedule(step, args=(iterator,), kwargs={"by": tf.constant(0.25)}) for _ in range(16)]
coordinator.join()
assert coordinator.done() and all(r.done() for r in results) and len(traces) == 1, traces
np.testing.assert_allclose(w.numpy(), [[0.0], [1.0], [2.0]], atol=1e-6)
got = coordinator.fetch(results)
seen = np.concatenate([g["n"] for g in got])
assert isinstance(got[0]["loss"], np.floating) and results[0].get()["n"].dtype == tf.int64
assert int(count) == seen.sum() and len(strategy.servers_of(w)) == 2

@tf.function
def two(iterator):  # elements of one worker are of one shard
    a, b = next(iterator), next(iterator)
    return tf.concat([a["n"], b["n"]], 0)

for r in [coordinator.schedule(two, args=(iter(dataset),)) for _ in range(3)]:
    n = r.fetch()
    assert len(n) == 4 and len(set(n % 2)) == 1 and (np.diff(n) == 2).all(), n

average = coordinator.schedule(lambda it: tf.nn.compute_average_loss(next(it)["x"]), args=(iter(dataset),))
assert average.fetch() in (1.0, 2.0)  # of 0 and 2, or 1 and 3: batches of a size that the trace does not know

values = tf.distribute.experimental.coordinator.PerWorkerValues([tf.constant(10), tf.constant(20)])
assert {int(coordinator.schedule(lambda v: v + 1, args=(values,)).fetch()) for _ in range(9)} <= {11, 21}
resource = coordinator.create_per_worker_resource(lambda: tf.constant([1.0, 2.0]) * 3.0)
assert coordinator.schedule(tf.reduce_sum, args=(resource,)).fetch() == 9

w.assign(tf.zeros([3, 1]))
assert coordinator.schedule(lambda: tf.reduce_sum(w)).fetch() == 0
for wrong in (dataset, results[0]):
    try:
        coordinator.schedule(step, args=(wrong,), kwargs={"by": tf.constant(0.25)})
    except (TypeError, ValueError) as e:
        print(e)
    else:
        raise AssertionError
print(coordinator.statistics()["failed"], "failed")
"""


def test_one_script_runs_in_all_tasks(tmp_path):
    with Cluster(tmp_path, LOOP, workers=2, ps=2) as cluster:
        out = cluster.all_ended_well()
    assert out.endswith("0 failed\n") and "expected iter(dataset)" in out and "fetch() them" in out, out


REGISTERED = """
import os
import tensorflow as tf
import numpy as np

def made_there(context):
    def gen():
        for i in range(context.input_pipeline_id, 1000, context.num_input_pipelines):
            yield i, os.getpid()
    return tf.data.Dataset.from_generator(gen, output_signature=(tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int64)))

def broken(context):
    return tf.data.Dataset.range(3).map(lambda i: tf.py_function(lambda v: {0: 5}[int(v)], [i], tf.TensorSpec([], tf.int64)))

tf.distribute.register_dataset("numbers", made_there)
tf.distribute.register_dataset("broken", broken)
strategy = tf.distribute.ParameterServerStrategy()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
iterator = iter(coordinator.create_per_worker_dataset("numbers"))

@tf.function
def three(iterator):
    return [next(iterator) for _ in range(3)]

seen = []
for r in [coordinator.schedule(three, args=(iterator,)) for _ in range(8)]:
    (a, pid), (b, _), (c, _) = r.fetch()
    assert pid != os.getpid() and b - a == c - b == 2, (a, b, c)
    seen += [a, b, c]
assert len(set(seen)) == 24
iterator = iter(coordinator.create_per_worker_dataset("broken"))
try:
    for _ in range(6):
        coordinator.schedule(lambda it: next(it), args=(iterator,))
    coordinator.join()
except Exception as e:
    print(type(e).__name__, e)
try:
    coordinator.create_per_worker_dataset("others")
except tf.errors.NotFoundError as e:
    print(e)
"""


def test_workers_read_data_sets_by_themselves(tmp_path):
    with Cluster(tmp_path, REGISTERED, workers=2) as cluster:
        out = cluster.all_ended_well()
    assert "KeyError" in out and "worker:" in out and 'no dataset "others"' in out and "tf.distribute.register_" in out, out


FIT = """
import tensorflow as tf
import numpy as np
import sys
x = np.random.RandomState(0).rand(64, 8).astype("float32")
y = x.sum(axis=1, keepdims=True)

def model_of():
    tf.random.set_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu", input_shape=(8,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model

def dataset_fn(context):
    assert context.get_per_replica_batch_size(16) == 16
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat()

strategy = tf.distribute.experimental.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver(),
    variable_partitioner=lambda shape, dtype: [min(2, shape[0])] + [1] * (len(shape) - 1))
with strategy.scope():
    model = model_of()
other = model_of()
other.set_weights(model.get_weights())
creator = tf.keras.utils.experimental.DatasetCreator(dataset_fn)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), "saved", max_to_keep=2)
for m, data in ((model, creator), (other, dataset_fn(tf.distribute.InputContext()))):
    m.history_of = m.fit(data, epochs=3, steps_per_epoch=4, verbose=0, validation_data=(x, y)).history
manager.save()
for key, values in model.history_of.items():
    np.testing.assert_allclose(values, other.history_of[key], rtol=1e-5, err_msg=key)
for a, b in zip(model.get_weights(), other.get_weights()):
    np.testing.assert_allclose(a, b, atol=1e-5)
np.testing.assert_allclose(model.predict(x), other.predict(x), atol=1e-5)
before = model.get_weights()
assert model.fit(x, y, batch_size=16, verbose=0, shuffle=False).history["loss"][0] < model.history_of["loss"][0]
assert any((a != b).any() for a, b in zip(before, model.get_weights()))
tf.train.Checkpoint(model=model).restore(manager.latest_checkpoint)
for a, b in zip(before, model.get_weights()):
    np.testing.assert_array_equal(a, b)
np.testing.assert_allclose(model.evaluate(creator, steps=4, verbose=0), other.evaluate(x, y, batch_size=16, verbose=0), rtol=1e-5)
print("equal")
"""


def test_fit_is_that_of_one_device(tmp_path):
    with Cluster(tmp_path, FIT, workers=1, ps=2) as cluster:
        out = cluster.all_ended_well()
    assert out.endswith("equal\n"), out


FAILS = HEAD + """
strategy = tf.distribute.ParameterServerStrategy(cluster_resolver, closure_timeout_seconds=30, worker_timeout_seconds=3)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
v = tf.Variable(1.0)

@tf.function
def add(x):
    v.assign_add(tf.gather([1.0, 2.0], x))

@tf.function
def values(x):
    return x[x > 0]

coordinator.schedule(add, args=(tf.constant(1),))
coordinator.join()
print("added", float(v), flush=True)
"""


def test_errors_of_functions_are_raised_by_join(tmp_path):
    with Cluster(tmp_path, FAILS + """
for wrong in (lambda: (coordinator.schedule(add, args=(tf.constant(7),)), coordinator.join()),
              lambda: coordinator.schedule(values, args=(tf.constant([1.0]),)),
              lambda: coordinator.schedule(lambda: next(iter(coordinator.create_per_worker_dataset(lambda: 3)))),
              lambda: tf.distribute.coordinator.ClusterCoordinator(tf.distribute.get_strategy())):
    try:
        wrong()
    except Exception as e:
        print(type(e).__name__, e)
coordinator.schedule(add, args=(tf.constant(0),))
coordinator.join()
print(float(v))
raise KeyError("mine")
""") as cluster:
        status, out = cluster.ended()
        assert status == 1 and out.rstrip().endswith("KeyError: 'mine'"), out
        assert [cluster.ended(*task)[0] for task in (("worker", 0), ("ps", 0))] == [0, 0]
    assert "InvalidArgumentError worker:0: " in out and "\n4.0\n" in out, out
    assert "NotImplementedError schedule: values cannot be traced" in out, out
    assert "TypeError create_per_worker_dataset: the function returns a int" in out, out
    assert "ValueError ClusterCoordinator of a Strategy" in out, out


LOST = FAILS + """
import sys
try:
    for _ in range(10 ** 6):
        coordinator.schedule(add, args=(tf.constant(0),)).get()
except (tf.errors.UnavailableError, tf.errors.CancelledError) as e:
    print(type(e).__name__)
try:
    coordinator.join()
except tf.errors.UnavailableError as e:
    print("lost:", e, flush=True)
"""


@pytest.mark.parametrize("job, says", [("worker", "all workers were lost"), ("ps", "parameter server ps:0")])
def test_a_task_that_dies_is_named(tmp_path, job, says):
    with Cluster(tmp_path, LOST) as cluster:
        assert "added" in cluster.tasks["chief", 0].stdout.readline()
        time.sleep(0.3)
        cluster.tasks[job, 0].send_signal(signal.SIGKILL)
        status, out = cluster.ended()
        assert status == 0 and "lost: " in out and says in out, out


def test_what_a_lost_worker_had_runs_on_another(tmp_path):
    with Cluster(tmp_path, FAILS + """
import os
while not os.path.exists("killed"):
    coordinator.schedule(add, args=(tf.constant(0),))
    coordinator.join()
before = float(v)
for _ in range(20):
    coordinator.schedule(add, args=(tf.constant(0),))
coordinator.join()
print("gained", float(v) - before >= 20, coordinator.statistics()["done"] >= 20)
""", workers=2) as cluster:
        assert "added" in cluster.tasks["chief", 0].stdout.readline()
        cluster.tasks["worker", 1].kill()
        cluster.tasks["worker", 1].wait()
        (tmp_path / "killed").touch()
        status, out = cluster.ended()
    assert status == 0 and out.endswith("gained True True\n"), out


def test_a_server_can_be_interrupted(tmp_path):
    with Cluster(tmp_path, "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + FAILS +
                 "import time\ntime.sleep(600)\n") as cluster:
        assert "added" in cluster.tasks["chief", 0].stdout.readline()
        cluster.tasks["ps", 0].send_signal(signal.SIGINT)
        status, out = cluster.ended("ps", 0)
        assert status == -signal.SIGINT and "KeyboardInterrupt" in out, out


IN_ONE = """
import tensorflow as tf
import socket
ports = [socket.socket() for _ in range(3)]
for s in ports:
    s.bind(("localhost", 0))
names = [f"localhost:{s.getsockname()[1]}" for s in ports]
for s in ports:
    s.close()
spec = tf.train.ClusterSpec({"worker": names[:2], "ps": names[2:]})
for job, n in (("worker", 2), ("ps", 1)):
    for i in range(n):
        server = tf.distribute.Server(spec, job_name=job, task_index=i, protocol="grpc")
assert server.target == "grpc://" + names[2]
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc"))
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    v = tf.Variable(1.0)

@tf.function
def add(x):
    return v.assign_add(x)

for i in range(20):
    r = coordinator.schedule(add, args=(tf.constant(0.5),))
coordinator.join()
print(float(v), strategy)
"""


def test_all_tasks_in_one_process(run_script):
    done = run_script(IN_ONE)
    if "libberth_rpc.so, which cannot be opened" in done.stderr:
        pytest.skip("this package is without the library of several processes")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "11.0 <ParameterServerStrategy workers=2, servers=1>\n"


def test_resolvers():
    resolvers = tf.distribute.cluster_resolver
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"], "ps": {1: "c:1"}})
    assert spec.as_dict() == {"worker": ["a:1", "b:1"], "ps": {1: "c:1"}} and spec.task_indices("ps") == [1]
    assert spec.job_tasks("ps") == [None, "c:1"] and spec.num_tasks("ps") == 1
    simple = resolvers.SimpleClusterResolver(spec, task_type="worker", task_id=1, rpc_layer="grpc")
    assert (simple.task_type, simple.task_id, simple.environment) == ("worker", 1, "")
    assert simple.master() == "" and simple.master("ps", 1) == "grpc://c:1"
    assert isinstance(simple, resolvers.ClusterResolver) and simple.num_accelerators() == {}
    if "TF_CONFIG" not in os.environ:
        nothing = resolvers.TFConfigClusterResolver()
        assert (nothing.task_type, nothing.task_id, nothing.master()) == (None, None, "") and not nothing.cluster_spec()
    more = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["d:1"], "chief": ["e:1"]}))
    union = resolvers.UnionResolver(simple, more)
    assert union.cluster_spec().as_dict() == {"worker": ["a:1", "b:1", "d:1"], "ps": {1: "c:1"}, "chief": ["e:1"]}
    assert (union.task_type, union.task_id, union.rpc_layer) == ("worker", 1, "grpc")
    clash = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"ps": {1: "f:1"}}))
    with pytest.raises(ValueError, match="ps:1 is in two"):
        resolvers.UnionResolver(simple, clash).cluster_spec()
    with pytest.raises(TypeError, match="ClusterSpec"):
        resolvers.SimpleClusterResolver({"worker": ["a:1"]})
    with pytest.raises(AttributeError, match="will not: it asks Kubernetes"):
        resolvers.KubernetesClusterResolver
    with pytest.raises(ValueError, match="not all of its tasks are Servers of this process"):
        tf.distribute.ParameterServerStrategy(more.__class__(tf.train.ClusterSpec({"worker": ["x:1"], "ps": ["y:1"]})))
    with pytest.raises(ValueError, match="job 'chief'; expected a worker or ps"):
        tf.distribute.Server({"chief": ["a:1"], "worker": ["b:1"]}, "chief").join()
    with pytest.raises(ValueError, match="no job_name; expected one of .'chief', 'worker'"):
        tf.distribute.Server({"chief": ["a:1"], "worker": ["b:1"]})
    with pytest.raises(ValueError, match="no chief.*berth launch"):
        tf.distribute.ParameterServerStrategy()


def test_a_step_of_slurm(run_script):
    done = run_script("""
import tensorflow as tf
r = tf.distribute.cluster_resolver.SlurmClusterResolver({"chief": 1, "ps": 1, "worker": 2}, rpc_layer="grpc")
print(r.cluster_spec().as_dict(), r.get_task_info(), r.master())
""", SLURM_PROCID="2", SLURM_LOCALID="0", SLURM_STEP_NUM_TASKS="4", SLURM_STEP_TASKS_PER_NODE="2(x2)",
                      SLURM_STEP_NODELIST="n[1-2]", SLURM_STEP_NUM_NODES="2", SLURM_NODEID="1", SLURMD_NODENAME="n2")
    assert done.stdout == ("{'chief': ['n1:8888'], 'ps': ['n1:8889'], 'worker': ['n2:8888', 'n2:8889']} ('worker', 0) "
                           "grpc://n2:8888\n"), done.stderr


def test_partitioners():
    p = tf.distribute.experimental.partitioners
    assert p.FixedShardsPartitioner(3)(tf.TensorShape([10, 3]), tf.float32) == [3, 1]
    assert p.MinSizePartitioner(min_shard_bytes=4, max_shards=2)(tf.TensorShape([6, 1]), tf.float32) == [2, 1]
    assert p.MaxSizePartitioner(max_shard_bytes=4)(tf.TensorShape([6, 1]), tf.float32) == [6, 1]
    assert p.MaxSizePartitioner(4, max_shards=2)([6, 1], tf.float32, axis=0) == [2, 1]
    assert issubclass(p.MinSizePartitioner, p.Partitioner)
    with pytest.raises(ValueError, match="num_shards is 0"):
        p.FixedShardsPartitioner(0)


def test_device_specs():
    spec = tf.DeviceSpec.from_string("/job:worker/replica:0/task:3/device:GPU:1")
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == ("worker", 0, 3, "GPU", 1)
    assert spec.to_string() == "/job:worker/replica:0/task:3/device:GPU:1"
    assert tf.DeviceSpec.from_string("cpu:0") == tf.DeviceSpec(device_type="CPU", device_index=0)
    assert tf.DeviceSpec(job="ps", device_type="GPU").to_string() == "/job:ps/device:GPU:*"
    assert tf.DeviceSpec(job="ps", task=0).make_merged_spec(tf.DeviceSpec(task=1, device_type="CPU")).to_string() == (
        "/job:ps/task:1/device:CPU:*")
    assert spec.replace(task=None).to_string() == "/job:worker/replica:0/device:GPU:1" and len({spec, spec.replace()}) == 1
    with tf.device(tf.DeviceSpec(device_type="CPU", device_index=0)):
        assert "CPU:0" in tf.constant(1.0).device
    with pytest.raises(ValueError, match="unknown part 'jobs:x'"):
        tf.DeviceSpec.from_string("/jobs:x")


def test_names_of_tensorflow():
    d = tf.distribute
    assert d.ReduceOp("SUM") is d.ReduceOp.SUM
    assert d.ReduceOp.from_variable_aggregation(tf.VariableAggregation.MEAN) is d.ReduceOp.MEAN
    assert d.InputOptions(experimental_fetch_to_device=False).experimental_per_replica_buffer_size == 1
    assert d.RunOptions().experimental_enable_dynamic_batch_size
    assert d.experimental.CollectiveHints(bytes_per_pack=9, timeout_seconds=2.0).bytes_per_pack == 9
    assert d.experimental.ParameterServerStrategy is d.ParameterServerStrategy
    assert issubclass(d.ParameterServerStrategy, d.Strategy)
    assert d.experimental.coordinator.ClusterCoordinator is d.coordinator.ClusterCoordinator
    value = d.get_strategy().reduce(d.ReduceOp.SUM, tf.constant(2.0), axis=None)
    assert float(value) == 2 and isinstance(d.MirroredStrategy(["/CPU:0"]), d.Strategy)
    with pytest.raises(NotImplementedError, match="no TPUs"):
        d.TPUStrategy()


ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def test_the_program_of_the_page(tmp_path):
    with open(os.path.join(ROOT, "docs", "cluster.md")) as file:
        text = file.read().split("```python\n")[1].split("```")[0]
    with Cluster(tmp_path, text + "print(w.numpy())", workers=2) as cluster:
        assert "[" in cluster.all_ended_well()


def test_the_example(tmp_path):
    with open(os.path.join(ROOT, "examples", "python", "parameter_server.py")) as file:
        text = file.read()
    with Cluster(tmp_path, text, workers=2, ps=2) as cluster:
        out = cluster.all_ended_well()
    assert "workers=2, servers=2" in out and "'/job:ps/task:0', '/job:ps/task:1'" in out, out
    losses = [float(line.split()[-1]) for line in out.splitlines() if line.startswith("epoch")]
    assert len(losses) == 3 and losses[2] < 0.1, out  # 0.69 at the beginning
