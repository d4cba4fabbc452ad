"""What ends: loops that are left, the interpreter, Ctrl-C, objects that are dropped."""
import gc
import importlib
import os
import threading

import berth as tf
import numpy as np
import pytest

TOOLS = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "differentials")


@pytest.mark.parametrize("way", [
    "loop", "iterator", "busy iterator", "sleeping iterator", "fit with callbacks", "threads of functions",
    "sys.exit in map", "fork", "interrupted loop", "interrupted sleep", "interrupted function",
    "interrupted py_function", "written at the end"])
def test_ways_of_leaving(way, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    assert importlib.import_module("leaving").leave(way, 3) is None


def test_threads_share_an_iterator():
    n = 2000
    for it in (iter(tf.data.Dataset.range(n).map(lambda x: x * 2).prefetch(2)),
               tf.data.Dataset.range(n).as_numpy_iterator()):
        parts = [[] for _ in range(8)]

        def work(part, it=it):
            for e in it:
                part.append(int(e))
        threads = [threading.Thread(target=work, args=(p,)) for p in parts]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        seen = sorted(sum(parts, []))
        assert seen in (list(range(n)), list(range(0, 2 * n, 2)))
    with pytest.raises(StopIteration):
        next(it)
    with pytest.raises(tf.errors.OutOfRangeError):
        iter(tf.data.Dataset.range(0)).get_next()


def interrupts(tensors):
    raise KeyboardInterrupt("mine")


def test_what_ends_a_program_stays_what_it_is():
    d, spec = tf.data.Dataset.range(4), tf.TensorSpec([], tf.int64)

    def generator():
        yield 1
        raise KeyboardInterrupt("mine")

    def eager(v):
        return tf.py_function(interrupts, [v], tf.int64)  # also called while the structure is found out

    called = tf.function(lambda v: tf.py_function(interrupts, [v], spec))
    for broken in (lambda: d.map(eager), lambda: d.map(eager).prefetch(2), lambda: d.map(eager, 2),
                   lambda: d.map(called).ignore_errors(), lambda: d.map(called, 2).prefetch(2),
                   lambda: d.filter(interrupts).batch(2),
                   lambda: tf.data.Dataset.from_generator(generator, output_signature=spec).prefetch(1)):
        with pytest.raises(KeyboardInterrupt, match="mine"):
            list(broken())
        assert list(d.as_numpy_iterator()) == [0, 1, 2, 3]  # and nothing comes later
    with pytest.raises(KeyboardInterrupt, match="mine"):
        called(tf.constant(1, tf.int64))


SIZE = 1 << 18  # floats: 1 MiB


def constant():
    return tf.constant(np.ones(SIZE, "float32"))


def a_function():
    v = constant()
    tf.function(lambda x: x + v[0])(1.0)


def a_method():
    class Own(tf.Module):
        def __init__(self):
            self.v = constant()
            self.other = tf.function(self.step)

        @tf.function
        def step(self, x):
            return tf.py_function(lambda a: a + self.v[0], [x + self.v[0]], tf.TensorSpec([], tf.float32))

    own = Own()
    own.step(tf.constant(1.0)), own.other(tf.constant(1.0))


def shared_method(own=[]):  # noqa: B006  one class for all
    if not own:
        class Own:
            @tf.function
            def step(self, x):
                return x + self.v[0]
        own.append(Own)
    made = own[0]()
    made.v = constant()
    made.step(tf.constant(1.0))


def a_map():
    v = constant()
    it = iter(tf.data.Dataset.range(3).map(lambda x: tf.cast(x, tf.float32) + v[0]).filter(
        lambda x: x < v[1] * 9).prefetch(1))
    next(it)


def a_generator():
    v = constant()

    def generator():
        while True:
            yield v[:2]
    next(iter(tf.data.Dataset.from_generator(
        generator, output_signature=tf.TensorSpec([2], tf.float32)).prefetch(2)))


def a_call_of_python():
    v = constant()
    tf.function(lambda x: tf.numpy_function(lambda a: a + v.numpy()[0], [x], tf.TensorSpec([], tf.float32)))(1.0)


def a_gradient():
    v = tf.Variable(constant())

    @tf.custom_gradient
    def own(x):
        return x * v[0], lambda dy, variables=None: (dy * v[0], [None] * len(variables))
    x = tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = own(x)
    tape.gradient(y, x)
    tape.me = tape


def a_model():
    v = constant()

    class Own(tf.keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=[SIZE], name="w")

        def call(self, x):
            return x * self.w[0] + v[0]

    class Seen(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.v = v

    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(2,)), Own(), tf.keras.layers.Dense(1)])
    model.compile("sgd", lambda t, p: tf.reduce_mean((t - p) ** 2 * v[0]))
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0, callbacks=[Seen()])


def a_strategy():
    v = constant()
    s = tf.distribute.MirroredStrategy(["/CPU:0"])
    s.run(lambda x: x + v[0], args=(tf.constant(1.0),))
    f = tf.function(lambda x: s.run(lambda y: y + v[0], args=(x,)))
    f(tf.constant(1.0))


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize("make", [a_function, a_method, shared_method, a_map, a_generator, a_call_of_python,
                                  a_gradient, a_model, a_strategy])
def test_what_is_dropped_leaves_no_constants(make):
    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for _ in range(10):
        make()
    gc.collect()
    before = rss()
    for turn in range(40):
        make()
        if turn % 5 == 4:
            gc.collect()
    assert rss() - before < 10 << 20  # the constants are 40 MiB
