"""What functions of several replicas may do with values: read them, decide by them, call NumPy, meet, write, update."""
import pytest

START = """
import numpy as np
import berth as tf
tf.config.set_device_list("CPUx2")
strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"])
x = strategy.experimental_distribute_values_from_function(lambda c: tf.constant(c.replica_id_in_sync_group + 1.0))
here = tf.distribute.get_replica_context

def of(value):
    return [float(v) for v in strategy.experimental_local_results(value)]

def ways(fn, want, inner=True):
    def called(*args):
        return strategy.run(fn, args)
    found = [of(strategy.run(fn, (x,))), of(strategy.run(fn, (x,))), of(tf.function(called)(x)), of(tf.function(called)(x))]
    found += [of(strategy.run(tf.function(fn), (x,)))] if inner else []
    assert all(f == want for f in found), (fn, found, want)
"""

SCRIPTS = {
    "reads": """
ways(lambda x: x if float(x) > 1.5 else -x, [-1, 2])
def decides(x):
    if x > 1.5:
        return x
    return -x
ways(decides, [-1, 2])
def loops(x):
    y = x
    while y < 5:
        y = y * 2
    return y
ways(loops, [8, 8])
ways(lambda x: tf.constant(np.float32(x.numpy() ** 2)), [1, 4])
ways(lambda x: [10.0, 20.0, 30.0][int(x)] * x, [20, 60])
ways(lambda x: x + float(x.numpy()) * here().replica_id_in_sync_group, [1, 4])
""",
    "meets": """
def twice(x):
    f = x.numpy()
    if f > 1:
        x = x * 3
    y = here().all_reduce("SUM", x)
    if float(y) > 5:
        y = here().all_reduce("MEAN", y + x)
    return y
ways(twice, [10.5, 10.5])
def both(x):
    if x.numpy() > 1.5:
        return here().all_reduce("SUM", x)
    return here().all_reduce("SUM", x)
ways(both, [3, 3])
ways(lambda x: here().all_gather(tf.reshape(x, [1]) * x.numpy(), 0)[1], [4, 4])
ways(lambda x: here().merge_call(lambda s, y: s.reduce("SUM", y, axis=None), (x * x.numpy(),)), [5, 5])
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = here().all_reduce("SUM", x * x.numpy()) * x
    return tape.gradient(loss, x)
ways(slope, [5 + 3 * 1, 5 + 3 * 2])
""",
    "writes": """
with strategy.scope():
    total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    own = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
    fixed = tf.Variable(0.0)
def add(x):
    x.numpy()
    total.assign_add(x)
    own.assign_add(x)
    return own.read_value()
assert of(strategy.run(add, (x,))) == [1, 2]
assert float(total) == 3 and float(own) == 3
assert of(strategy.run(add, (x,))) == [2, 4]
assert float(total) == 6 and float(own) == 6
assert of(strategy.run(lambda: own + total)) == [8, 10]  # the copies are equal
try:
    strategy.run(lambda x: fixed.assign(x.numpy()), (x,))
except ValueError as error:
    assert "its aggregation is NONE" in str(error)
else:
    raise AssertionError
""",
    "errors": """
def boom(x):
    if x.numpy() > 1.5:
        raise ValueError("boom")
    return here().all_reduce("SUM", x)
def alone(x):
    return here().all_reduce("SUM", x) if x.numpy() > 1.5 else x
def others(x):
    return here().all_reduce("SUM", x) if x.numpy() > 1.5 else here().all_gather(x[None], 0)
for fn, text in ((boom, "boom"), (alone, "where replica 0 has ended; expected the same calls"), (others, "where another calls")):
    for _ in range(2):
        try:
            strategy.run(fn, (x,))
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(fn)
""",
    "trains": """
with strategy.scope():
    w = tf.Variable(1.0)
    optimizer = OPTIMIZERS.SGD(0.1)
losses = []
def step(x):
    with tf.GradientTape() as tape:
        loss = (w * x - 3.0) ** 2
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    losses.append(float(loss))
    return loss
assert of(strategy.run(step, (x,))) == [4, 1]
assert sorted(losses)[-2:] == [1, 4] and abs(float(w) - (1 + 0.1 * (2 * 2 * 1 + 2 * 1 * 2))) < 1e-6, float(w)
"""}


@pytest.mark.parametrize("name", SCRIPTS)
def test_functions_of_replicas_that_need_values(run_script, name):
    done = run_script(START + SCRIPTS[name].replace("OPTIMIZERS", "__import__('keras').optimizers"), own_keras=name != "trains")
    assert done.returncode == 0, done.stderr


def test_optimizers_of_the_engine_say_that_they_need_a_trace(run_script):
    done = run_script(START + SCRIPTS["trains"].replace("OPTIMIZERS", "tf.keras.optimizers"))
    assert "NotImplementedError: an update by an optimizer of the engine in a replica that runs op by op" in done.stderr
