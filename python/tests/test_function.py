"""Tapes, traced functions and control flow."""
import gc
import threading

import berth as tf
import numpy as np
import pytest


def test_gradients_have_the_structure_of_their_sources():
    w, b = tf.Variable([[2.0]]), tf.Variable(1.0)
    x = tf.constant([[3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x @ w) * b
    grads = tape.gradient(y, {"w": w, "rest": (b, x)})
    assert float(grads["w"]) == 3 and float(grads["rest"][0]) == 6
    assert float(grads["rest"][1]) == 2


def test_tapes_nest_and_end():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        first = inner.gradient(y, x)
    assert float(first) == 27 and float(outer.gradient(first, x)) == 18
    with pytest.raises(tf.errors.FailedPreconditionError):
        inner.gradient(y, x)
    with tf.GradientTape() as tape:
        y = x * 2.0
    assert tape.gradient(y, tf.Variable(1.0)) is None


def test_functions_trace_once_per_signature():
    traced = []

    @tf.function
    def f(x, scale=2.0):
        traced.append(tuple(x.shape))
        return {"y": x * scale, "n": tf.reduce_sum(x)}

    for _ in range(3):
        out = f(tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(out["y"].numpy(), [2, 4])
    assert float(out["n"]) == 3 and traced == [(2,)]
    f(tf.constant([1.0, 2.0, 3.0]))
    f(tf.constant([1.0, 2.0]), scale=3.0)
    assert len(traced) == 3 and f.experimental_get_tracing_count() == 3


def test_functions_write_variables_and_are_differentiated():
    v = tf.Variable(1.0)

    @tf.function
    def f(x):
        v.assign_add(1.0)
        return x * v

    x = tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = f(x)
    assert float(y) == 8 and float(tape.gradient(y, x)) == 2 and float(v) == 2


def test_input_signatures_take_any_length():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return tf.reduce_sum(x)

    assert float(f([1.0, 2.0])) == 3 and float(f(tf.ones([5]))) == 5
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(ValueError):
        f(tf.ones([2, 2]))


def test_methods_keep_their_own_traces():
    class Counter:
        def __init__(self, by):
            self.by = tf.Variable(by)

        @tf.function
        def __call__(self, x):
            return x + self.by

    a, b = Counter(1.0), Counter(10.0)
    assert float(a(tf.constant(1.0))) == 2 and float(b(tf.constant(1.0))) == 11


def test_control_flow_on_tensors():
    @tf.function
    def f(x):
        y = tf.cond(x > 0.0, lambda: x * 2.0, lambda: x - 1.0)
        i, total = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + y),
                                 (tf.constant(0), tf.constant(0.0)))
        return total

    assert float(f(tf.constant(3.0))) == 24 and float(f(tf.constant(-1.0))) == -8
    assert f.experimental_get_tracing_count() == 1


def test_what_a_trace_throws_comes_out():
    class Odd(Exception):
        pass

    @tf.function
    def f(x):
        raise Odd("on purpose")

    with pytest.raises(Odd, match="on purpose"):
        f(tf.constant(1.0))


def test_reports_say_where_ops_ran():
    f = tf.function(lambda x: tf.reduce_sum(tf.nn.relu(x @ x)))
    f(tf.ones([4, 4]))
    assert "CPU:0" in f.placement() and "MatMul" in f.plan_text("optimize")
    with tf.device("/CPU:0"):
        assert tf.constant(1.0).device.endswith("CPU:0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="malformed"):
        with tf.device("nonsense::"):
            pass


def test_steps_leave_nothing_behind():
    v = tf.Variable(tf.ones([64]))

    @tf.function
    def step(x):
        v.assign_add(x)
        return tf.reduce_sum(v)

    x = tf.ones([64])

    def some(n):
        for _ in range(n):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(v * x)
            tape.gradient(y, v)
            step(x)
        gc.collect()
        return tf.config.get_memory_info("CPU:0")["current"]

    before = some(200)
    assert some(2000) <= before


def test_concrete_functions_are_saved_and_loaded(tmp_path):
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.by = tf.Variable([2.0, 3.0])

        @tf.function
        def __call__(self, x):
            return {"out": x * self.by}

    module = Scale()
    concrete = tf.function(module.__call__.python_function).get_concrete_function(
        tf.TensorSpec([None, 2], tf.float32))
    assert concrete.inputs[0].shape == [None, 2]
    assert [n.op for n in concrete.graph.node if n.op == "Mul"] == ["Mul"]
    np.testing.assert_array_equal(concrete(tf.ones([3, 2]))["out"].numpy(), [[2, 3]] * 3)
    module(tf.ones([1, 2]))
    tf.saved_model.save(module, tmp_path / "saved")
    module.by.assign([0.0, 0.0])  # what was saved stays
    loaded = tf.saved_model.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded(tf.constant([[1.0, 2.0]]))["out"].numpy(), [[2, 6]])
    with pytest.raises(ValueError, match="no saved trace takes"):
        loaded(tf.constant([1, 2]))


def test_a_tape_knows_what_it_watches():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        y = a * a * b
    assert [v.name for v in tape.watched_variables()] == [a.name]
    assert float(tape.gradient(y, a)) == 4


def test_saved_modules_keep_their_variables(tmp_path):
    module = tf.Module()
    module.v, module.inner = tf.Variable([1.0, 2.0]), tf.Module()
    module.inner.w = tf.Variable(tf.cast(3.5, tf.bfloat16), trainable=False)
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    assert loaded.v.numpy().tolist() == [1, 2] and loaded.v.trainable and not loaded.inner.w.trainable
    assert loaded.inner.w.dtype == tf.bfloat16 and float(loaded.inner.w) == 3.5
    module.f = tf.function(lambda x: x * module.v, input_signature=[tf.TensorSpec([], tf.float32)])
    module.g = tf.function(lambda x: x[x > 1])
    module.g(tf.constant([1, 2]))
    tf.saved_model.save(module, tmp_path / "n")
    again = tf.saved_model.load(tmp_path / "n")
    assert again.f(tf.constant(2.0)).numpy().tolist() == [2, 4] and list(again.signatures) == ["serving_default"]
    with pytest.raises(ValueError, match="has no variables"):
        tf.saved_model.save(tf.Module(), tmp_path / "o")


def test_threads_trace_at_the_same_time():
    together = threading.Barrier(4)
    seen = []

    def user(n):
        def body(x):
            together.wait(30)  # all are traced now
            seen.append(tf.executing_eagerly())
            if n % 2:
                together.wait(30)
            return x * n
        return tf.function(body, autograph=False)

    def work(n):
        eager = [tf.executing_eagerly()]
        if n % 2 == 0:
            together.wait(30)  # while others are traced, this thread is not
            eager.append(tf.executing_eagerly())
            together.wait(30)
            results.append(n)
        else:
            results.append(int(user(n)(tf.constant(n))))
        seen_eager.extend(eager + [tf.executing_eagerly()])

    results, seen_eager = [], []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert sorted(results) == [0, 1, 2, 9]
    assert seen == [False, False] and all(seen_eager)


def test_stateless_draws_take_a_seed_that_a_trace_does_not_know(capfd):
    draws = [lambda s: tf.random.stateless_uniform([5], s), lambda s: tf.random.stateless_normal([2, 3], s),
             lambda s: tf.random.stateless_truncated_normal([5], s, 1.0, 2.0),
             lambda s: tf.random.stateless_uniform([5], s, 0, 100, dtype=tf.int32),
             lambda s: tf.random.stateless_shuffle(tf.range(9), s)]
    for draw in draws:
        traced = tf.function(draw)
        for seed in ([1, 2], [7, 2], [2 ** 40, 3]):
            drawn = traced(tf.constant(seed, tf.int64)).numpy().tolist()
            assert drawn == traced(tf.constant(seed, tf.int64)).numpy().tolist() == draw(seed).numpy().tolist()
    picks = tf.function(lambda s: tf.random.stateless_categorical(tf.constant([[0.0, 1.0, 2.0]]), 3000, s))
    counts = np.bincount(picks(tf.constant([1, 2])).numpy()[0]) / 3000
    assert np.allclose(counts, [0.09, 0.245, 0.665], atol=0.04)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"the key is \[3\]; expected \[2\]"):
        tf.function(draws[0])(tf.constant([1, 2, 3]))
    assert "untraced" not in capfd.readouterr().err
