"""Names around the computation: derivatives forward, training, configuration. The numbers are TensorFlow 2.21's."""
import os
import struct
import threading

import berth as tf
import numpy as np
import pytest


def test_forward_derivatives():
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as acc:
        y = tf.sin(x) * x
        z = tf.reduce_sum(y)
    slope = np.array([1, 0.5]) * (np.cos([1, 2]) * [1, 2] + np.sin([1, 2]))
    np.testing.assert_allclose(acc.jvp(y), slope, rtol=1e-5)
    np.testing.assert_allclose(acc.jvp(z), slope.sum(), rtol=1e-5)
    assert acc.jvp(tf.constant(1.0)) is None and float(acc.jvp(tf.constant(1.0), "zero")) == 0
    assert [v is None for v in acc.jvp([y, tf.constant(2)])] == [False, True]
    assert acc.jvp(x).numpy().tolist() == [1, 0.5]
    for primals, tangents, says in [(x, tf.constant(1.0), "has shape"), ([x, x], [x, x], "twice"), ([x], [x, x], "one for each"),
                                    (tf.constant([1]), tf.constant([1]), "floating")]:
        with pytest.raises(ValueError, match=says):
            tf.autodiff.ForwardAccumulator(primals, tangents)


def test_forward_derivatives_of_gradients_and_the_other_way_round():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.autodiff.ForwardAccumulator(v, tf.ones([2, 2])) as acc:
        with tf.autodiff.GradientTape() as tape:
            loss = tf.reduce_sum(v ** 3)
        g = tape.gradient(loss, v)
    assert acc.jvp(g).numpy().tolist() == [[6, 12], [18, 24]]
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as acc:
            y = x ** 3
        j = acc.jvp(y)
    assert tape.gradient(j, x).numpy().tolist() == [6, 12]
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as outer:
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as inner:
            y = x ** 3
        j = inner.jvp(y)
    assert outer.jvp(j).numpy().tolist() == [6, 12]
    assert outer.jvp(inner.jvp(y)).numpy().tolist() == [6, 12]  # asked for when both are closed
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as acc:
            y = x ** 3
    assert tape.gradient(acc.jvp(y), x).numpy().tolist() == [6, 12]
    assert acc.jvp(y).numpy().tolist() == [3, 12]  # the tape has ended

    @tf.function
    def third(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as p:
            with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as q:
                with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as r:
                    y = x ** 4
        return p.jvp(q.jvp(r.jvp(y)))
    assert third(x).numpy().tolist() == [24, 48]

    @tf.function
    def f(x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = tf.tanh(x)
        return acc.jvp(y)
    np.testing.assert_allclose(f(x, tf.constant([1.0, 2.0])), [0.41997433, 0.14130163], rtol=1e-5)
    z = tf.constant([1 + 2j, .5 - 1j])
    with tf.autodiff.ForwardAccumulator(z, tf.constant([1j, 2 + 0j])) as acc:
        y = z * z * (1 + 3j)
    assert acc.jvp(y).numpy().tolist() == [-10 - 10j, 14 + 2j]


def test_scopes_of_names_and_variables():
    assert tf.get_current_name_scope() == ""
    with tf.name_scope("a") as a:
        with tf.name_scope("b") as b:
            assert (a, b, tf.get_current_name_scope()) == ("a/", "a/b/", "a/b")
        with tf.name_scope("x/") as x:
            assert (x, tf.get_current_name_scope()) == ("x/", "x")
    asked = []

    def frozen(next_creator, **kwargs):
        asked.append(kwargs["name"])
        return next_creator(**{**kwargs, "trainable": False})
    with tf.variable_creator_scope(frozen):
        v = tf.Variable(1.0, name="q")
        with tf.variable_creator_scope(lambda make, **given: asked.append("inner") or make(**given)):
            assert isinstance(tf.Variable(2.0, name="r"), tf.Variable)
    assert asked == ["q", "inner", "r"] and not v.trainable and tf.Variable(1.0).trainable and isinstance(v, tf.Variable)


def test_conversions_of_classes():
    class Quantity:
        def __init__(self, values):
            self.values = values
    tf.register_tensor_conversion_function(Quantity, lambda value, dtype=None, name=None, as_ref=False: tf.constant(value.values))
    assert tf.add(Quantity([1.0, 2.0]), tf.constant([1.0, 1.0])).numpy().tolist() == [2, 3]
    tf.register_tensor_conversion_function(
        Quantity, lambda value, **_: NotImplemented if len(value.values) > 1 else tf.constant(7.0), priority=50)
    assert float(tf.convert_to_tensor(Quantity([1.0]))) == 7 and float(tf.reduce_sum(Quantity([3.0, 4.0]))) == 7
    with pytest.raises(TypeError, match="of your own"):
        tf.register_tensor_conversion_function(int, lambda *_, **__: None)


def test_critical_sections():
    section, n = tf.CriticalSection(), tf.Variable(0)

    def add():
        n.assign(n + 1)
        return n.read_value()
    threads = [threading.Thread(target=lambda: [section.execute(add) for _ in range(20)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert int(n) == 80
    assert int(tf.function(lambda: section.execute(add))()) == 81
    with pytest.raises(ValueError, match="for ever"):
        section.execute(lambda: section.execute(add))


def test_calls_that_become_one():
    sizes = []

    @tf.nondifferentiable_batch_function(1, 4, 200000, allowed_batch_sizes=[2, 4])
    def squares(x):
        sizes.append(x.shape[0])
        return x * x
    assert squares(tf.constant([2.0])).numpy().tolist() == [4] and sizes == [2]
    found = {}
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, squares(tf.constant([float(i)])).numpy().tolist()))
               for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: [i * i] for i in range(4)}
    assert squares(tf.range(6.0)).numpy().tolist() == [0, 1, 4, 9, 16, 25]
    with pytest.raises(tf.errors.InvalidArgumentError, match="one first axis"):
        squares(tf.constant(1.0))


def test_configuration():
    c = tf.config.experimental
    c.enable_op_determinism()
    assert c.tensor_float_32_execution_enabled() and c.get_synchronous_execution()
    c.enable_tensor_float_32_execution(False)
    c.set_synchronous_execution(False)
    assert not c.tensor_float_32_execution_enabled() and not c.get_synchronous_execution()
    c.enable_tensor_float_32_execution(True)
    c.set_synchronous_execution(True)
    assert c.get_device_details(tf.config.list_physical_devices("CPU")[0]) == {}
    tf.config.experimental_run_functions_eagerly(True)
    assert tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    assert tf.get_logger().name == "berth" and tf.AggregationMethod.DEFAULT == 0
    assert issubclass(tf.errors.UnauthenticatedError, tf.errors.OpError)
    assert issubclass(tf.errors.OperatorNotAllowedInGraphError, TypeError)


def test_the_strategy_of_a_program():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert tf.distribute.get_strategy() is strategy
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()


def records(folder):
    """The records of the files of events in a folder."""
    for name in sorted(os.listdir(folder)):
        data, at = (folder / name).read_bytes(), 0
        while at < len(data):
            size, = struct.unpack_from("<Q", data, at)
            yield data[at + 12:at + 12 + size]
            at += 16 + size


def test_summaries_of_sounds_and_graphs(tmp_path):
    f = tf.function(lambda x: tf.tanh(x))
    graph = f.get_concrete_function(tf.TensorSpec([2])).graph
    assert tf.summary.audio("s", tf.zeros([1, 4, 1]), 8000, step=1) is False
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=3):
        assert tf.summary.audio("sound", tf.zeros([2, 4, 1]), 8000, description="quiet") and tf.summary.graph(graph)
        assert tf.summary.experimental.write_raw_pb(b"\x0a\x03\x0a\x01q", step=5)
        with pytest.raises(ValueError, match="samples, channels"):
            tf.summary.audio("sound", tf.zeros([4]), 8000)
    writer.close()
    found = list(records(tmp_path))
    sound = next(r for r in found if b"sound" in r)
    assert sound.count(b"RIFF") == 2 and b"audio" in sound and b"quiet" in sound and sound[9:11] == b"\x10\x03"
    assert any(r.endswith(b"\x2a\x05\x0a\x03\x0a\x01q") and r[9:11] == b"\x10\x05" for r in found)
    with pytest.raises(TypeError, match="graph of a concrete function"):
        tf.summary.graph(3)


@pytest.mark.parametrize("make, name, says", [
    (lambda: tf.data.Dataset.range(2), "make_one_shot_iterator", r"iter\(dataset\)"),
    (lambda: tf.data.Dataset.range(2), "shufle", "near it: shuffle"),
    (lambda: iter(tf.data.Dataset.range(2)), "output_types", "element_spec"),
    (lambda: tf.distribute.OneDeviceStrategy("/cpu:0"), "experimental_run_v2", r"run\(\)"),
    (lambda: tf.function(lambda x: x), "function_spec", "input_signature"),
    (lambda: tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([])), "function_def", "graph"),
    (lambda: tf.ragged.constant([[1]]), "to_lists", "near it: to_list"),
    (lambda: tf.SparseTensor([[0]], [1.0], [1]), "numpy", "to_dense"),
    (lambda: tf.random.Generator.from_seed(1), "uniform_full", "uniform_full_int")],
    ids="dataset near iterator strategy function concrete ragged sparse generator".split())
def test_members_that_are_missing_say_what_to_do(make, name, says):
    value = make()
    with pytest.raises(AttributeError, match=says):
        getattr(value, name)
    assert not hasattr(value, name) and not hasattr(value, "_hidden")


def test_asserts_of_own_types():
    class Wrapped(tf.experimental.ExtensionType):
        value: tf.Tensor
    seen = []

    @tf.experimental.dispatch_for_binary_elementwise_assert_apis(Wrapped, Wrapped)
    def handler(assert_func, x, y):
        seen.append(1)
        return assert_func(x.value, y.value)
    tf.debugging.assert_equal(Wrapped([1, 2]), Wrapped([1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_less(Wrapped([1, 2]), Wrapped([1, 2]))
    assert len(seen) == 2
    tf.experimental.unregister_dispatch_for(handler)


def test_small_names(capsys):
    with tf.experimental.async_scope(), tf.experimental.function_executor_type("x"):
        tf.experimental.async_clear_error()
    tf.autograph.trace("now", 1)
    assert capsys.readouterr().out == "now 1\n"
    assert tf.autograph.experimental.Feature.ALL.value == "ALL"
    assert tf.types.experimental.distributed.PerReplica is not None
