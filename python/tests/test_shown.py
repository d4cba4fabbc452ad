"""What one sees of objects and of errors: reprs, and tracebacks of the user's frames."""
import traceback

import berth as tf
import numpy as np
import pytest

layers = tf.keras.layers


def trained():
    model = tf.keras.Sequential([layers.Dense(1, input_shape=(2,))], name="line")
    model.compile("sgd", "mse")
    return model, model.fit(np.zeros((4, 2), "f"), np.zeros((4, 1), "f"), epochs=2, verbose=0)


def test_objects_say_what_they_are():
    model, history = trained()
    double = tf.function(lambda x: x * 2)
    double(tf.ones([2]))
    double(tf.ones([3]))
    data = tf.data.Dataset.range(3).batch(2)
    of_int64 = "element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)"
    expected = {
        layers.Dense(3, name="last"): "<Dense name=last, built=False>",
        model: "<Sequential name=line, built=True>",
        history: "<History epochs=2, last: loss=0>",
        model.optimizer: "<Optimizer sgd, learning_rate=0.01>",
        double: "<tf.function <lambda>, traces=2>",
        tf.function(lambda x: x, input_signature=[tf.TensorSpec([2])]):
            "<tf.function <lambda>, traces=0, input_signature=[TensorSpec(shape=(2,), dtype=tf.float32, name=None)]>",
        data: f"<_BatchDataset {of_int64}>",
        iter(data): f"<Iterator {of_int64}>",
        tf.keras.Input((3,)): "<KerasTensor shape=(None, 3), dtype=float32>",
        tf.keras.losses.MeanSquaredError(): "<Loss mean_squared_error>",
        tf.keras.metrics.Mean(name="m"): "<Metric m>",
        tf.train.Checkpoint(model=model, step=tf.Variable(1)): "<Checkpoint of model, step>",
        tf.distribute.MirroredStrategy(["/CPU:0"]): "<MirroredStrategy replicas=1, devices here: CPU:0>",
    }
    for value, text in expected.items():
        assert repr(value) == text


def test_a_layer_of_ones_own_that_is_half_made_has_a_repr():
    class Half(layers.Layer):
        def __init__(self):
            self.shown = repr(self)
            super().__init__()
    assert Half().shown == "<Half, not initialised>"


def user(x):
    return tf.matmul(x, x)


class Own(layers.Layer):
    def call(self, x):
        return user(x)


WRONG = {
    "function": lambda: tf.function(user)(tf.ones([2, 3])),
    "nested": lambda: tf.function(lambda x: tf.function(user)(x))(tf.ones([2, 3])),
    "converted": lambda: tf.function(lambda x: user(x) if tf.reduce_sum(x) > 0 else x)(tf.ones([2, 3])),
    "layer": lambda: Own()(tf.ones([2, 3])),
    "model": lambda: tf.keras.Sequential([Own()])(tf.ones([2, 3])),
    "map": lambda: tf.data.Dataset.from_tensors(np.ones((2, 3), "f")).map(user),
    "fit": lambda: trained()[0].fit(np.zeros((4, 3)), np.zeros((4, 1))),
}


def frames(call):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call()
    return [(f.filename, f.name) for f in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("name", WRONG)
def test_tracebacks_show_the_users_frames(name):
    here, package = [], []
    for file, function in frames(WRONG[name]):
        (package if "/berth/" in file or "/malt/" in file else here).append(function)
    calls = {"nested": 2, "model": 2}.get(name, 1)
    assert len(package) <= calls, package
    if name not in ("fit", "map"):
        assert here[-1] == "user"


def test_all_frames_can_be_seen():
    assert tf.debugging.is_traceback_filtering_enabled()
    few = len(frames(WRONG["function"]))
    tf.debugging.disable_traceback_filtering()
    try:
        assert not tf.debugging.is_traceback_filtering_enabled()
        assert len(frames(WRONG["function"])) > few + 2
    finally:
        tf.debugging.enable_traceback_filtering()
    assert len(frames(WRONG["function"])) == few


class Block(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.up, self.down = layers.Dense(8, name="up"), layers.Dense(4, name="down")

    def call(self, x):
        return tf.sin(x) + self.down(self.up(x))


class Stack(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.blocks = [Block(name="first"), Block(name="second")]

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def test_ops_in_layers_of_ones_own_have_their_path():
    stack = Stack(name="stack3")
    f = tf.function(lambda x: tf.cos(stack(x)))
    f(tf.ones([2, 4]))
    names = [o.op for o in f.placement().ops] + [s for o in f.placement().ops for s in o.sources]
    for name in ("stack3/first/up/MatMul", "stack3/second/down/BiasAdd", "stack3/first/Sin", "Cos"):
        assert name in names, names
    model = tf.keras.Sequential([tf.keras.Input((4,)), Block(name="block3"), layers.Dense(1, name="last")])
    model.compile("sgd", "mse")
    model.fit(np.zeros((4, 4), "f"), np.zeros((4, 1), "f"), verbose=0)
    report = model.placement()
    assert report.device_of("block3/up/MatMul") == report.device_of("last/MatMul") != ""


def test_reports_are_text_and_objects():
    import pickle
    f = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)))
    f(tf.ones([64, 64]))
    report, why = f.placement(), f.explain("MatMul")
    assert isinstance(report, str) and "placement of" in report and report._repr_html_().startswith("<div>")
    assert report.steps == 1 and report.device_of("MatMul").endswith("CPU:0") and report.device_of("none") == ""
    assert report.transfer_bytes() == report.fallback_bytes() == 0 and report.transfers == []
    assert report.devices[0].peak_bytes == report.peak_bytes() == report.peak_bytes("CPU:0") >= 64 * 64 * 4
    assert {o.type for o in report.ops} >= {"MatMul"} and report.verdicts == []
    assert isinstance(why, str) and why.device.endswith("CPU:0") and why.rule and why.chain[0].text
    assert pickle.loads(pickle.dumps(report)) == report
    untraced = tf.function(lambda x: x[x > 1])
    untraced(tf.constant([1, 2]))
    assert "op by op" in untraced.placement()
    with pytest.raises(tf.errors.FailedPreconditionError, match="op by op"):
        untraced.placement().device_of("x")


def test_plans_of_strategies_are_objects():
    strategy = tf.distribute.OneDeviceStrategy("/CPU:0")
    with strategy.scope():
        model, _ = trained()
    plan = strategy.plan(model, 8)
    assert isinstance(plan, str) and plan.batch == 8 and plan.replicas[0].examples == 8 and plan.too_small == []


TOO_SMALL = """
import berth as tf
tf.config.set_simulated_devices("GPUx1")
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("GPU")[0], [tf.config.LogicalDeviceConfiguration(memory_limit=24)])
strategy = tf.distribute.OneDeviceStrategy("/GPU:0")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1024, "relu", input_shape=(8,)), tf.keras.layers.Dense(4)])
    model.compile("sgd", "sparse_categorical_crossentropy")
plan = strategy.plan(model, 20000)
assert "does not fit GPU:0 (" in plan and " of 24 MiB)" in plan and len(plan.too_small) == 1, plan
most = plan.largest_batch
assert str(most) in plan and not strategy.plan(model, most).too_small and strategy.plan(model, most + 1).too_small, plan
"""


def test_a_plan_that_does_not_fit_says_which_batch_does(run_script):
    done = run_script(TOO_SMALL)
    assert done.returncode == 0, done.stderr


VERDICT = """
import time
import berth as tf

def slow(x):
    time.sleep(0.002)
    return x

@tf.function
def step(x):
    return tf.numpy_function(slow, [tf.matmul(x, x)], tf.TensorSpec([8, 8], tf.float32))

for _ in range(5):
    step(tf.ones([8, 8]))
assert "Python on CPU:0: PyFunction" in step.placement().verdicts[0], step.placement()
assert step.placement().verdicts[0] in step.placement()

@tf.function
def turns(x):
    for _ in tf.range(500):
        x = x + 1
        x = x * 0.5
    return x

for _ in range(5):
    turns(tf.ones([2]))
assert any("runs of ops of less than" in v for v in turns.placement().verdicts), turns.placement()
"""

READ = """
import berth as tf
step = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)))
for _ in range(10):
    float(step(tf.ones([8, 8])))
assert any("a value was read from GPU:0" in v for v in step.placement().verdicts), step.placement()
again = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x)))
losses = [again(tf.ones([8, 8])) for _ in range(10)]
print(float(losses[-1]))
assert not again.placement().verdicts, again.placement()
"""

WAITS = """
import time
import numpy as np
import berth as tf

def slowly(x):
    time.sleep(0.004)
    return x

data = tf.data.Dataset.from_tensor_slices(np.ones((80, 4), "f")).map(
    lambda x: tf.ensure_shape(tf.numpy_function(slowly, [x], tf.float32), [4])).batch(4).map(
    lambda x: (x, x[:, :1])).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(data, epochs=2, verbose=0)
assert history.input_seconds[0] > history.seconds[0] / 2
assert any("waiting for input" in v and "slow stage of the pipeline is map (script.py:10)" in v
           for v in model.placement().verdicts), model.placement()
"""


@pytest.mark.parametrize("script, simulate", [(VERDICT, ""), (READ, "GPUx1"), (WAITS, "")], ids=["ops", "read", "input"])
def test_verdicts(run_script, script, simulate):
    done = run_script(script, simulate)
    assert done.returncode == 0, done.stderr
    if script is WAITS:
        assert done.stderr.count("lint input-bound: fit (script.py:15)") == 1


LACKS = """
import berth as tf
f = tf.function(lambda x: tf.matmul(tf.sin(tf.matmul(x, x)), x))
with tf.device("/GPU:0"):
    x = tf.ones([256, 256])
f(x)
"""


def test_an_op_that_a_gpu_lacks_is_a_lint_with_its_bytes(run_script):
    done = run_script(LACKS, "GPUx1", BERTH_SIM_MISSING="Sin")
    assert done.returncode == 0 and "lint kernel-missing:" in done.stderr, done.stderr
    assert 'Sin "Sin" (script.py:3) runs on CPU:0, for GPU:0 has no kernel' in done.stderr and "512 KiB" in done.stderr
