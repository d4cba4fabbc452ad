"""Traced functions that need sizes and values; expected values are those of NumPy or of TensorFlow 2.21."""
import io
import threading

import berth as tf
import numpy as np
import pytest

X = np.arange(12, dtype="int32").reshape(4, 3)


def ran_as_a_plan(f):
    return "op by op" not in f.plan_text()


SIZES = {
    "zeros": (lambda x: tf.zeros(tf.shape(x)), np.zeros((4, 3))),
    "zeros of one": (lambda x: tf.zeros([tf.shape(x)[0], 2]), np.zeros((4, 2))),
    "reshape": (lambda x: tf.reshape(x, [tf.shape(x)[1], -1]), X.reshape(3, 4)),
    "reshape whole": (lambda x: tf.reshape(x, tf.concat([tf.shape(x)[1:], [2, 2]], 0)), X.reshape(3, 2, 2)),
    "computed": (lambda x: tf.ones([tf.shape(x)[0] * 2 - 1]), np.ones(7)),
    "size": (lambda x: tf.reshape(x, [tf.size(x)]), X.ravel()),
    "rank": (lambda x: tf.reduce_sum(x, axis=tf.rank(x) - 1), X.sum(1)),
    "range": (lambda x: tf.range(tf.shape(x)[0]), np.arange(4)),
    "range of floats": (lambda x: tf.range(tf.cast(tf.shape(x)[0], tf.float32)), np.arange(4.0)),
    "a tensor, too": (lambda x: x * tf.shape(x)[0], X * 4),
    "tile": (lambda x: tf.tile(x, [tf.shape(x)[1], 1]), np.tile(X, (3, 1))),
    "slice": (lambda x: x[:tf.shape(x)[0] - 1], X[:3]),
    "int": (lambda x: x + int(tf.shape(x)[1]), X + 3),
    "normal": (lambda x: tf.random.normal((tf.shape(x)[0], 2)) * 0, np.zeros((4, 2))),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_numbers_in_a_trace(name):
    fn, expected = SIZES[name]
    f = tf.function(fn)
    np.testing.assert_array_equal(f(X).numpy(), expected)
    assert ran_as_a_plan(f) and f.experimental_get_tracing_count() == 1


def test_sizes_are_numbers_in_a_branch_and_a_loop():
    @tf.function
    def f(x, more):
        n = tf.shape(x)[0]
        if more:
            y = tf.ones([n * 2])
        else:
            y = tf.zeros([2 * n])
        for _ in tf.range(n):
            y += tf.ones([n + n])
        return y

    np.testing.assert_array_equal(f(X, tf.constant(True)).numpy(), np.full(8, 5.0))
    np.testing.assert_array_equal(f(X, tf.constant(False)).numpy(), np.full(8, 4.0))
    assert ran_as_a_plan(f)


def test_open_dimensions_get_a_trace_for_each_size():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def f(x):
        return tf.concat([x, tf.zeros([tf.shape(x)[0], 1])], 1)

    for n in (2, 5, 2):
        assert f(np.ones((n, 3), "float32")).shape == (n, 4)
    assert ran_as_a_plan(f)
    with pytest.raises(TypeError):
        f(np.ones((2, 4), "float32"))


PLACES = {
    "x[i]": (lambda x, i: x[i], lambda i: X[i]),
    "x[i, :]": (lambda x, i: x[i, :], lambda i: X[i]),
    "x[:, i]": (lambda x, i: x[:, i], lambda i: X[:, i]),
    "x[..., i]": (lambda x, i: x[..., i], lambda i: X[:, i]),
    "x[i, i]": (lambda x, i: x[i, i], lambda i: X[i, i]),
    "x[i][i]": (lambda x, i: x[i][i], lambda i: X[i, i]),
    "x[None, i]": (lambda x, i: x[None, i], lambda i: X[None, i]),
    "x[i, None, 1:]": (lambda x, i: x[i, None, 1:], lambda i: X[i, None, 1:]),
    "slice": (lambda x, i: tf.slice(x, [tf.abs(i), 0], [1, -1]), lambda i: X[abs(i):abs(i) + 1]),
}


@pytest.mark.parametrize("name", PLACES)
def test_tensors_are_places_in_a_plan(name):
    fn, expected = PLACES[name]
    f = tf.function(fn)
    for i in (0, 2, -1):
        np.testing.assert_array_equal(f(X, tf.constant(i)).numpy(), expected(i))
    assert ran_as_a_plan(f) and f.experimental_get_tracing_count() == 1


VALUES = {
    "x[:i]": (lambda x, i: x[:i], X[:2]),
    "x[i:i + 1]": (lambda x, i: x[i:i + 1], X[2:3]),
    "x[mask]": (lambda x, i: x[x > 3], X[X > 3]),
    "boolean_mask": (lambda x, i: tf.boolean_mask(x, x[:, 0] > 3), X[2:]),
    "where": (lambda x, i: tf.where(x > 9), [[3, 1], [3, 2]]),
    "unique": (lambda x, i: tf.unique(tf.reshape(x // 6, [-1]))[0], [0, 1]),
    "range(i)": (lambda x, i: tf.reduce_sum(tf.range(i)), 1),
    "zeros": (lambda x, i: tf.zeros([i, 2]), np.zeros((2, 2))),
    "tile": (lambda x, i: tf.tile(x, [i, 1]), np.tile(X, (2, 1))),
    "text": (lambda x, i: tf.strings.length(tf.strings.join(["a", tf.strings.as_string(i)])), 2),
    "numpy": (lambda x, i: x + i.numpy(), X + 2),
    "repeat": (lambda x, i: tf.repeat(x[:, 0], tf.stack([i, 0, 1, i])), [0, 0, 6, 9, 9]),
    "sequence_mask": (lambda x, i: tf.sequence_mask(i), [True, True]),
    "a loop that grows": (lambda x, i: tf.while_loop(
        lambda k, y: k < i, lambda k, y: (k + 1, tf.concat([y, y], 0)), [tf.constant(0), tf.ones([1])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])[1], np.ones(4)),
    "numpy_function": (lambda x, i: tf.numpy_function(lambda a: a[:2], [x], tf.int32), X[:2]),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_needs_values_runs_op_by_op(name):
    fn, expected = VALUES[name]
    f = tf.function(fn)
    for _ in range(3):
        np.testing.assert_array_equal(f(X, tf.constant(2)).numpy(), expected)
    assert not ran_as_a_plan(f)
    assert "op by op" in f.placement() and "op by op" in f.explain("x")


def test_op_by_op_is_a_lint_and_has_gradients():
    before = tf.debugging.diagnostic_counts().get("untraced", 0)
    v = tf.Variable(3.0)

    @tf.function
    def f(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 1.0)) * v

    for _ in range(3):
        with tf.GradientTape() as tape:
            y = f(tf.constant([1.0, 2.0, 4.0]))
    assert float(y) == 18 and float(tape.gradient(y, v)) == 6
    assert tf.debugging.diagnostic_counts()["untraced"] == before + 1


def test_a_function_inside_another_makes_the_outer_run_op_by_op():
    inner = tf.function(lambda x: x[x > 5])
    outer = tf.function(lambda x: tf.size(inner(x * 2)))
    assert int(outer(X)) == 9 and not ran_as_a_plan(outer)


def test_errors_of_the_user_stay_errors():
    @tf.function
    def f(x):
        return tf.zeros([int(x)]) @ tf.zeros([3, 3])

    with pytest.raises(tf.errors.InvalidArgumentError, match="MatMul"):
        f(tf.constant(2))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(lambda x: tf.reshape(x, [5, 5]))(X)


def test_contracts_hold_op_by_op():
    f = tf.function(lambda x: x[x > 5] + 1, contract=tf.Contract(stays_on="/GPU:7"))
    with pytest.raises(tf.errors.OpError, match="contract"):
        f(X)


def test_variables_are_made_by_the_first_call():
    class Scale(tf.Module):
        v = w = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(3.0)
                self.w = tf.Variable(tf.random.normal([]))
            return self.v * x + 0.0 * self.w

    scale = Scale()
    assert [float(scale(tf.constant(2.0))) for _ in range(3)] == [6.0] * 3
    assert scale.__call__.experimental_get_tracing_count() == 1
    scale.v.assign(1.0)
    assert float(scale(tf.constant(2.0))) == 2.0


def test_variables_of_each_call_are_an_error():
    @tf.function
    def f(x):
        return tf.Variable(1.0) * x

    assert float(f(tf.constant(2.0))) == 2.0
    with pytest.raises(ValueError, match="f: each call makes variables"):
        f(tf.constant(2.0))


def test_a_loop_over_a_data_set():
    @tf.function
    def total(data):
        s = tf.constant(0.0)
        for x, y in data:
            if y > 1:
                s += x
        return s

    data = tf.data.Dataset.from_tensor_slices((np.arange(4, dtype="float32"), np.arange(4)))
    assert float(total(data)) == 5.0


def test_iterators_are_read_by_each_run():
    it = iter(tf.data.Dataset.range(6))

    @tf.function
    def step(it):
        return next(it) * 10

    assert [int(step(it)) for _ in range(3)] == [0, 10, 20]

    @tf.function
    def rest():
        total = tf.constant(0, tf.int64)
        for x in it:
            total += x
        return total

    assert int(rest()) == 3 + 4 + 5
    strategy = tf.distribute.OneDeviceStrategy("/CPU:0")
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))

    @tf.function
    def total():
        s = tf.constant(0, tf.int64)
        for x in data:
            s += tf.reduce_sum(strategy.run(lambda v: v * 2, args=(x,)))
        return s

    assert [int(total()) for _ in range(2)] == [12, 12]


def test_loops_grow_where_shape_invariants_say_so():
    @tf.function
    def f(n):
        x, i = tf.ones([1]), 0
        while i < n:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, x * 2.0], 0)
            i += 1
        return x

    assert f(tf.constant(2)).numpy().tolist() == [1, 2, 2, 4]
    assert f(tf.constant(0)).numpy().tolist() == [1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="after a turn"):
        tf.function(lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.concat([x, x], 0)),
                                          [tf.constant(0), tf.ones([1])]))()


def test_print_runs_whenever_the_function_does(capsys, tmp_path):
    path = f"file://{tmp_path}/log"

    @tf.function
    def f(x):
        tf.print("x", x, {"a": x + 1}, output_stream=path)
        tf.print("seen")
        return x

    f(tf.constant([1.0, 2.5]))
    f(tf.constant([0.1, 3.0]))
    assert (tmp_path / "log").read_text() == "x [1 2.5] {'a': [2 3.5]}\nx [0.1 3] {'a': [1.1 4]}\n"
    assert capsys.readouterr().err == "seen\nseen\n" and ran_as_a_plan(f)
    out = io.StringIO()
    tf.print(tf.range(10), tf.constant("s"), tf.constant([True]), [tf.constant(1), 2], sep="|", output_stream=out)
    tf.print(tf.range(7), summarize=-1, end="", output_stream=out)
    assert out.getvalue() == '[0 1 2 ... 7 8 9]|"s"|[1]|[1, 2]\n[0 1 2 3 4 5 6]'


def test_what_a_tensor_array_gave_away_is_zeros():
    ta = tf.TensorArray(tf.float32, 3)
    for i in range(3):
        ta = ta.write(i, [i + 1.0, 2.0])
    assert ta.read(1).numpy().tolist() == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 1 was read before"):
        ta.read(1)
    assert ta.stack().numpy().tolist() == [[1, 2], [0, 0], [3, 2]] and ta.gather([1]).numpy().tolist() == [[0, 0]]
    assert ta.read(0).numpy().tolist() == [1, 2] and ta.concat().numpy().tolist() == [0, 0, 0, 0, 3, 2]
    kept = tf.TensorArray(tf.float32, 1, clear_after_read=False).write(0, 4.0)
    assert [float(kept.read(0)) for _ in range(2)] == [4, 4] and kept.stack().numpy().tolist() == [4]


def test_tensor_arrays():
    ta = tf.TensorArray(tf.float32, size=2, dynamic_size=True)
    ta = ta.write(0, 1.0).write(1, 2.0).write(2, 4.0)
    assert int(ta.size()) == 3 and ta.stack().numpy().tolist() == [1, 2, 4]
    assert float(ta.read(1)) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="clear_after_read"):
        ta.read(1)
    with pytest.raises(tf.errors.OutOfRangeError, match="dynamic_size"):
        tf.TensorArray(tf.int32, 1).write(1, 3)
    rows = tf.TensorArray(tf.int32, 4, clear_after_read=False).unstack(X)
    assert rows.gather([2, 0]).numpy().tolist() == X[[2, 0]].tolist()
    assert rows.concat().numpy().tolist() == X.ravel().tolist()
    parts = tf.TensorArray(tf.int32, 2).split(X, [1, 3])
    assert parts.read(1).shape == (3, 3)
    plan = tf.function(lambda x: tf.TensorArray(tf.int32, 4).unstack(x).stack())
    assert plan(X).numpy().tolist() == X.tolist() and ran_as_a_plan(plan)

    @tf.function
    def squares(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            ta = ta.write(i, i * i)
        return ta.stack()

    assert squares(tf.constant(4)).numpy().tolist() == [0, 1, 4, 9]
    assert squares(tf.constant(2)).numpy().tolist() == [0, 1]

    @tf.function
    def fibonacci(n):
        ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True).unstack([0.0, 1.0])
        for i in range(2, n):
            ta = ta.write(i, ta.read(i - 1) + ta.read(i - 2))
        return ta.stack()

    assert fibonacci(7).numpy().tolist() == [0, 1, 1, 2, 3, 5, 8] and ran_as_a_plan(fibonacci)

    @tf.function
    def multiples(x):
        turn = lambda i, t: (i + 1, t.write(i, tf.cast(i, tf.float32) * x))
        return tf.while_loop(lambda i, _: i < 3, turn, [0, tf.TensorArray(tf.float32, size=3)])[1].stack()

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = multiples(x)
    assert y.numpy().tolist() == [0, 2, 4] and float(tape.gradient(y, x)) == 3


def test_specs_of_unknown_rank():
    spec = tf.TensorSpec(None, tf.float32)
    assert spec.shape.rank is None and spec == tf.TensorSpec(None) and spec != tf.TensorSpec([])
    f = tf.function(lambda x: tf.reduce_sum(x), input_signature=[spec])
    assert float(f(np.ones((2, 2), "float32"))) == 4 and float(f(np.float32(3))) == 3
    with pytest.raises(TypeError):
        f(tf.constant([1]))


def test_jacobians():
    x = tf.constant([1.0, 2.0, 3.0])
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * 2.0
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), np.diag([4.0, 8.0, 12.0]))
    with tf.GradientTape() as tape:
        z = tf.matmul([[1.0, 10.0]], w)
    j = tape.jacobian(z, {"w": w, "x": [tf.Variable(1.0)]})
    expected = np.zeros((1, 2, 2, 2))
    for k in range(2):
        expected[0, k, :, k] = [1, 10]
    np.testing.assert_allclose(j["w"].numpy(), expected)
    assert j["x"] == [None]
    b = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(b)
        y = tf.stack([b[:, 0] * b[:, 1], b[:, 0], b[:, 1] ** 2], 1)
    np.testing.assert_allclose(tape.batch_jacobian(y, b).numpy(),
                               [[[2, 1], [1, 0], [0, 4]], [[4, 3], [1, 0], [0, 8]]])
    with pytest.raises(tf.errors.FailedPreconditionError):
        tape.gradient(y, b)

    @tf.function
    def hessian(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(x ** 3)
            g = inner.gradient(y, x)
        return outer.jacobian(g, x)

    np.testing.assert_allclose(hessian(x).numpy(), np.diag([6.0, 12.0, 18.0]), rtol=1e-6)


def test_tapes_pause():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        with tape.stop_recording():
            z = y * 2.0
        u = y + x
    assert float(tape.gradient(y, x)) == 6 and tape.gradient(z, x) is None and float(tape.gradient(u, x)) == 7


def test_functions_of_python_as_decorators():
    @tf.py_function(Tout=tf.float32)
    def double(x):
        return x * 2

    assert float(double(tf.constant(2.0))) == 4
    assert tf.function(lambda x: double(x) + 1)(tf.constant([1.0, 2.0])).numpy().tolist() == [3, 5]


def test_parts_of_variables_are_assigned():
    v, a = tf.Variable(tf.zeros([3, 2])), np.zeros((3, 2), "float32")
    v[1, :].assign([1.0, 2.0])
    a[1] = [1, 2]
    v[:2, 0].assign_add([5, 6])
    a[:2, 0] += [5, 6]
    v[-1].assign_sub(tf.ones([2]))
    a[-1] -= 1
    np.testing.assert_array_equal(v.numpy(), a)

    @tf.function
    def f(i):
        v[i, 1].assign(9.0)
        return v[i]

    np.testing.assert_array_equal(f(tf.constant(0)).numpy(), [5, 9])
    a[0, 1] = 9
    np.testing.assert_array_equal(v.numpy(), a)
    with pytest.raises(tf.errors.OpError):
        v[0].assign([1.0, 2.0, 3.0])


def test_generators_follow_from_their_seed():
    g, h = tf.random.Generator.from_seed(3), tf.random.Generator.from_seed(3)
    first, second = g.normal([4]).numpy(), g.normal([4]).numpy()
    assert (first != second).any() and (h.normal([4]).numpy() == first).all()
    h.reset_from_seed(3)
    h.skip(1)
    assert (h.normal([4]).numpy() == second).all()
    again = tf.random.Generator.from_state(h.state)
    assert (again.uniform([5]).numpy() == h.uniform([5]).numpy()).all()
    whole = g.uniform([1000], 2, 5, tf.int32).numpy()
    assert set(whole) == {2, 3, 4}
    one, other = g.split(2)
    assert (one.normal([4]).numpy() != other.normal([4]).numpy()).any()
    f = tf.function(lambda: g.normal([4], mean=100.0))
    a, b = f().numpy(), f().numpy()
    assert (a != b).any() and abs(a.mean() - 100) < 10 and ran_as_a_plan(f)
    tf.random.set_global_generator(g)
    assert tf.random.get_global_generator() is g


def test_repeats_are_numbers_lists_or_tensors():
    a = np.array([[1, 2], [3, 4]])
    for repeats, axis in ((2, None), (2, 1), ([1, 2], 0), ([1, 0, 2, 1], None)):
        for given in (repeats, tf.constant(repeats)):
            assert tf.repeat(a, given, axis=axis).numpy().tolist() == np.repeat(a, repeats, axis).tolist()


def test_meshgrid_takes_tensors_one_by_one():
    a, b = tf.meshgrid(tf.range(2), tf.range(3), indexing="ij")
    want = np.meshgrid(range(2), range(3), indexing="ij")
    assert a.numpy().tolist() == want[0].tolist() and b.numpy().tolist() == want[1].tolist()


def test_text_of_values_and_the_time():
    assert tf.strings.format("x {} of {}", (tf.constant([1, 2]), tf.constant("a"))).numpy() == b'x [1 2] of "a"'
    with pytest.raises(ValueError, match="1 placeholders"):
        tf.strings.format("{}", [1, 2])
    f = tf.function(lambda: tf.timestamp())
    first = float(f())
    assert 0 <= float(f()) - first < 60 and abs(first - float(tf.timestamp())) < 60 and ran_as_a_plan(f)


def test_a_size_at_the_end_of_a_long_chain_of_ops():
    def long(x):
        for _ in range(50_000):
            x = x + 1
        return tf.zeros([x])

    shapes, before = [], threading.stack_size(4 << 20)
    try:
        work = threading.Thread(target=lambda: shapes.append(tf.function(long, autograph=False)(tf.constant(0)).shape))
        work.start()
        work.join()
    finally:
        threading.stack_size(before)
    assert shapes == [(50_000,)]


@tf.function
def above_one(x):
    return x[x > 1]


def test_a_concrete_function_calls_and_a_file_says_what_to_do_where_values_are_needed(tmp_path):
    concrete = above_one.get_concrete_function(tf.TensorSpec([None], tf.int32))
    assert concrete(tf.constant([1, 2, 3])).numpy().tolist() == [2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="call above_one itself, which runs op by op, or keep what"):
        concrete.save(str(tmp_path / "graph"))

    class Own(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([3], tf.int32)])
        def of(self, x):
            return x[x > 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a file is a trace: call of itself"):
        tf.saved_model.save(Own(), str(tmp_path / "module"))


REPLICAS = """
import berth as tf
strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
sums = strategy.run(lambda x: tf.reduce_sum(x[x > 1]), args=(tf.constant([1.0, 2.0]),))
print([float(v) for v in strategy.experimental_local_results(sums)], [v.device[-5:] for v in sums.values])
"""


def test_several_replicas_run_op_by_op_where_values_are_needed(run_script):
    done = run_script(REPLICAS, "GPUx2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 2.0] ['GPU:0', 'GPU:1']\n"


def test_functions_take_and_give_tensor_arrays():
    stack = tf.function(lambda array: array.stack())
    array = tf.TensorArray(tf.float32, 2, clear_after_read=False).unstack(tf.ones([2]))
    assert stack(array).numpy().tolist() == [1, 1]
    assert stack(array.unstack([2.0, 3.0])).numpy().tolist() == [2, 3] and stack.experimental_get_tracing_count() == 1
    made = tf.function(lambda x: tf.TensorArray(tf.float32, 3, element_shape=[]).write(1, x))(4.0)
    assert made.stack().numpy().tolist() == [0, 4, 0]
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(stack(tf.TensorArray(tf.float32, 2).unstack(x * x)))
    assert tape.gradient(y, x).numpy().tolist() == [2, 4]


def test_specs_of_tensor_arrays():
    # As TensorFlow 2.21 says them.
    spec, array = tf.TensorArraySpec([3], tf.float32, True, False), tf.TensorArray(tf.float32, 2).unstack(tf.ones([2, 3]))
    assert repr(spec) == "TensorArraySpec(TensorShape([3]), tf.float32, True, False)" and spec.value_type is tf.TensorArray
    assert spec == tf.TensorArraySpec([3], tf.float32, True, False) and isinstance(spec, tf.TypeSpec)
    assert tf.type_spec_from_value(array) == tf.TensorArraySpec.from_value(array) == tf.TensorArraySpec(None, tf.float32)
    assert spec.is_compatible_with(tf.TensorArraySpec([None], tf.float32, True, False)) and not spec.is_compatible_with(array)
    assert tf.TensorArraySpec([3]).is_compatible_with(array) and not tf.TensorArraySpec(dtype=tf.int32).is_compatible_with(array)
    stack = tf.function(lambda a: a.stack(), input_signature=[tf.TensorArraySpec([3])])
    assert stack(array).shape == [2, 3]
    with pytest.raises(TypeError, match="dtype=int32.* does not fit its TensorArraySpec"):
        stack(tf.TensorArray(tf.int32, 2))
