"""AutoGraph: Python's control flow on tensors, against the same function run eagerly."""
import linecache
import sys
import traceback

import berth as tf
import numpy as np
import pytest


def absolute(x):
    if x < 0.0:
        return -x
    return x


def clipped(x):
    if x > 2.0:
        y = 2.0
        n = 1
    elif x < -2.0:
        y = -2.0
        n = 1
    else:
        y = x
        n = 1
    return y * n


def collatz(x):
    n = tf.cast(x, tf.int32)
    turns = 0
    while n != 1 and n > 0:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        turns += 1
    return turns


def powers(x):
    total = 0.0
    for i in tf.range(5):
        if i % 2 == 1:
            continue
        total += x ** tf.cast(i, tf.float32)
        if total > 30.0:
            break
    return total


def first_above(x):
    best = x
    for v in tf.stack([x, x * 2.0, x * 4.0, x * 8.0]):
        best = v
        if v > 5.0:
            break
    return best


def set_in_the_loop(x):
    for v in tf.stack([x, x + 1.0]):
        last = v * 10.0
    return last


def ternary_and_not(x):
    inside = not (x < -1.0 or x > 1.0)
    return (x if inside and x != 0.5 else x * 3.0) + (1.0 if not inside else 0.0)


def helper(x, n):
    for _ in tf.range(n):
        x = x * 2.0
    return x


def calls_others(x):
    return helper(absolute(x), 3) + (lambda v: v if v > 1.0 else 0.0)(x)


def over_a_list(x):
    total = x
    for factor in [1.0, 2.0, 3.0]:
        total += factor * x
        if total > 4.0:
            break
    return total


def structures(x):
    state = {"a": x, "b": (x, [x + 1.0])}
    while state["a"] < 10.0:
        state = {"a": state["a"] * 2.0 + 1.0, "b": (state["a"], [state["b"][1][0] + 1.0])}
        if state["a"] < 0.0:
            break
    return state["a"] + state["b"][0] + state["b"][1][0]


FUNCTIONS = [absolute, clipped, powers, first_above, set_in_the_loop, ternary_and_not, calls_others,
             over_a_list]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_traced_functions_give_what_python_gives(fn):
    traced = tf.function(fn)
    for x in (-3.0, -0.25, 0.5, 1.0, 2.5, 7.0):
        expected = float(fn(tf.constant(x)))
        assert float(traced(tf.constant(x))) == pytest.approx(expected, rel=1e-6), x
    assert traced.experimental_get_tracing_count() == 1


def test_structures_and_integers_go_through_loops():
    traced = tf.function(structures)
    for x in (0.0, 3.0, 20.0):
        assert float(traced(tf.constant(x))) == float(structures(tf.constant(x)))
    f = tf.function(collatz)
    assert [int(f(tf.constant(float(n)))) for n in (1, 6, 7)] == [0, 8, 16]


@pytest.mark.parametrize("fn", [absolute, clipped, powers, first_above, calls_others, over_a_list],
                         ids=lambda f: f.__name__)
def test_gradients_go_through_branches_and_loops(fn):
    """Against differences of the function as Python runs it."""
    traced = tf.function(fn)
    for at in (-3.0, 1.3, 1.75):
        x = tf.Variable(at)
        with tf.GradientTape() as tape:
            y = traced(x)
        grad = tape.gradient(y, x)
        h = 1e-2
        slope = (float(fn(tf.constant(at + h))) - float(fn(tf.constant(at - h)))) / (2 * h)
        assert (0.0 if grad is None else float(grad)) == pytest.approx(slope, rel=2e-3, abs=1e-3), at


def test_tapes_inside_of_traced_functions():
    @tf.function
    def grad(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = powers(x)
        return tape.gradient(y, x)

    # 1 + x^2 + x^4
    assert float(grad(tf.constant(1.5))) == pytest.approx(2 * 1.5 + 4 * 1.5 ** 3, rel=1e-5)


def test_variables_change_in_branches():
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        if x > 0.0:
            v.assign_add(x)
        else:
            v.assign(0.0)
        while v < 10.0 and x > 0.0:
            v.assign(v * 2.0)

    f(tf.constant(2.0))
    assert float(v) == 12
    f(tf.constant(-1.0))
    assert float(v) == 0


def test_attributes_are_state():
    class Counter:
        def __init__(self):
            self.total = tf.constant(0.0)

        @tf.function
        def add(self, values):
            total = self.total
            for v in values:
                if v > 0.0:
                    total += v
            return total

    assert float(Counter().add(tf.constant([1.0, -2.0, 3.0]))) == 4


def test_lengths_that_are_not_known():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        total, n = 0.0, 0
        for v in x:
            total += v
            n += 1
        for _ in range(len(x)):
            total += 1.0
        return total, n

    for k in (1, 4):
        total, n = f(tf.ones([k]))
        assert float(total) == 2 * k and int(n) == k
    assert f.experimental_get_tracing_count() == 1


def test_ranges_of_tensors():
    @tf.function
    def f(n):
        total = 0
        for i in tf.range(n):
            total += i
        for i in range(n, 0, -2):
            total += 100 * i
        return total

    for n in (0, 4, 5):
        expected = sum(range(n)) + 100 * sum(range(n, 0, -2))
        assert int(f(tf.constant(n))) == expected
    assert f.experimental_get_tracing_count() == 1


def test_python_decides_what_no_tensor_decides():
    seen = []

    @tf.function
    def f(x, flag):
        for i in range(3):
            seen.append(i)
            if flag and i == 1:
                break
        return x if flag else -x

    assert float(f(tf.constant(2.0), True)) == 2 and seen == [0, 1]
    assert float(f(tf.constant(2.0), False)) == -2 and seen == [0, 1, 0, 1, 2]
    f(tf.constant(3.0), True)
    assert f.experimental_get_tracing_count() == 2


def test_layers_and_steps_have_control_flow():
    class Gate(tf.keras.layers.Layer):
        def call(self, x):
            if tf.reduce_sum(x) > 0.0:
                return x * 2.0
            else:
                return x * 0.0

    model = tf.keras.Sequential([Gate()])
    out = tf.function(lambda x: model(x))
    assert float(out(tf.ones([1, 1]))[0, 0]) == 2
    assert float(out(-tf.ones([1, 1]))[0, 0]) == 0

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)
            self.gate = Gate()

        def call(self, x):
            return self.gate(self.dense(x))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            grads = tape.gradient(loss, self.trainable_variables)
            if loss > 1e6:
                loss = loss * 0.0
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
            return {"loss": loss}

    net = Net()
    net.compile("sgd", "mse")
    x = np.ones((16, 2), "float32")
    logs = net.fit(x, np.full((16, 1), 1e9, "float32"), verbose=0, batch_size=16).history
    assert logs["loss"] == [0.0]


def test_maps_of_datasets_have_control_flow():
    d = tf.data.Dataset.range(6).map(lambda i: i * 10 if i % 2 == 0 else -i)
    assert [int(v) for v in d] == [0, -1, 20, -3, 40, -5]


def test_errors_stand_at_the_users_line():
    @tf.function
    def f(x):
        if x[0, 0] > 0.0:
            y = tf.matmul(x, tf.ones([5, 5]))  # THE LINE
        else:
            y = x
        return y

    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        f(tf.ones([2, 3]))
    line = next(i for i, t in enumerate(linecache.getlines(__file__), 1) if "# THE LINE\n" in t)
    assert f"test_autograph.py:{line}" in str(e.value)
    frames = traceback.extract_tb(e.value.__traceback__)
    assert any(t.filename == __file__ and t.lineno == line and t.name == "f" for t in frames)


@pytest.mark.parametrize("text, message", [
    ("if x > 0.0:\n        y = x", "'y' is a tensor where the condition holds and not set"),
    ("if x > 0.0:\n        y = x\n    else:\n        y = tf.cast(x, tf.int32)",
     "'y' is float32 where the condition holds and int32 where it does not"),
    ("y = x\n    while y > 0.0:\n        y = 'text'", "'y' is a tensor before the loop and 'text'"),
    ("y = x\n    for i in tf.range(3):\n        if y > 1.0:\n            return y", "a value is returned"),
])
def test_what_cannot_be_staged_is_said(text, message, tmp_path):
    path = tmp_path / "odd_script.py"
    path.write_text(f"import berth as tf\n@tf.function\ndef f(x):\n    {text}\n    return y\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    with pytest.raises((ValueError, TypeError), match=message):
        space["f"](tf.constant(1.0))


def test_assertions_and_other_builtins():
    @tf.function
    def f(x):
        assert x.shape[0] == 3, "three"
        return float(tf.reduce_sum(x)) + float(int(x[0]))

    assert float(f(tf.constant([1.5, 2.0, 3.0]))) == 7.5


def test_do_not_convert_leaves_a_function_alone():
    @tf.autograph.experimental.do_not_convert
    def plain(x):
        return 1.0 if x > 0.0 else 2.0

    # Python decides, which needs values: the functions run op by op.
    for f in (tf.function(lambda x: plain(x)), tf.function(absolute, autograph=False)):
        f(tf.constant(1.0))
        assert "op by op" in f.plan_text() and f.experimental_get_tracing_count() == 0
    assert float(tf.function(lambda x: plain(x))(tf.constant(-1.0))) == 2.0
    assert "ag__.if_stmt" in tf.autograph.to_code(absolute)


def test_loop_options_bound_a_loop():
    @tf.function
    def f(x):
        while x < 100.0:
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
            x = x * 2.0
        return x

    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = f(x)
    assert float(y) == 8 and float(tape.gradient(y, x)) == 8


def test_straight_functions_do_not_load_it(run_script):
    done = run_script("""
import sys
import tensorflow as tf
v = tf.Variable(2.0)
model = tf.keras.Sequential([tf.keras.layers.Dense(2)])

@tf.function
def f(x):
    return tf.reduce_sum(tf.nn.relu(x) * v + model(x))

f(tf.ones([1, 2]))
assert "malt" not in sys.modules

@tf.function
def g(x):
    if x > 0.0:
        return x
    return -x

assert float(g(tf.constant(-2.0))) == 2 and "malt" in sys.modules
""")
    assert done.returncode == 0, done.stderr
    assert sys.modules.get("tensorflow") is None


def test_lambdas_of_one_line_with_the_same_arguments():
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = tf.function(lambda x: x + 1.0 if x > 0.0 else x), tf.function(lambda x: x * 2.0 if x > 0.0 else -x)
        inner = tf.function(lambda x: (lambda x: x + 1.0 if x > 0.0 else x)(x) * (2.0 if x > 5.0 else 3.0))
        table = {"\u00e9": tf.function(lambda x: x if x > 0.0 else -x), "b": tf.function(lambda x: 7.0 * x if x < 5.0 else x)}
        assert [float(f(tf.constant(v))) for f in (one, other) for v in (3.0, -3.0)] == [4, -3, 6, 3]
        assert [float(inner(tf.constant(v))) for v in (1.0, 7.0)] == [6, 16]
        assert [float(f(tf.constant(2.0))) for f in table.values()] == [2, 14]


def test_functions_made_in_loops_see_the_last_values():
    @tf.function
    def made(x):
        found = []
        for i in range(3):
            found.append(lambda: i)
        n = 0
        while n < 3:
            k = n * 10
            found.append(lambda: k)
            n += 1
        for i in range(2):
            found.append(lambda i=i: i)
        i = 7
        return [f() for f in found], x

    assert [int(v) for v in made(1.0)[0]] == [7, 7, 7, 20, 20, 20, 0, 1]

    @tf.function
    def traced(n):
        total = tf.constant(0)
        for i in tf.range(n):
            half = total + i
            total = tf.cond(half > 2, lambda: half, lambda: half + 1)
            total = (lambda v: v + i)(total)
        return total

    assert int(traced(tf.constant(4))) == int(traced.python_function(tf.constant(4)))
