"""Forks, sub-interpreters, Ctrl-C, threads: what surrounds a program."""
import os
import signal
import subprocess
import sys
import threading
import time

import berth as tf
import numpy as np
import pytest


def run(text, **options):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, **options)


FORK = """
import os, sys
import berth as tf
{before}
pid = os.fork()
if pid == 0:
    try:
        print(float(tf.reduce_sum(tf.ones([3]) + 1.0)))
    except tf.errors.FailedPreconditionError as e:
        print("refused:", e)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
print("parent", float(tf.reduce_sum(tf.ones([3]))))
"""


def test_a_fork_after_import_computes():
    done = run(FORK.format(before=""))
    assert done.stdout.splitlines() == ["6.0", "parent 3.0"], done.stderr


def test_a_fork_after_work_is_an_error_that_says_what_to_do():
    done = run(FORK.format(before="tf.ones([3]) + 1.0"))
    refused, parent = done.stdout.splitlines()
    assert refused.startswith("refused:") and "spawn" in refused and parent == "parent 3.0", done.stderr


def test_sub_interpreters_are_refused():
    done = run("import sys\n"
               "try: import _interpreters as s\n"
               "except ImportError: import _xxsubinterpreters as s\n"
               "i = s.create()\n"
               "s.run_string(i, f'import sys; sys.path[:] = {sys.path!r}\\ntry: import berth\\n'\n"
               "             'except ImportError as e: print(e, flush=True)')\n"
               "s.destroy(i)\nimport berth\nprint(berth.ones([2]).shape)\n")
    # Later versions of CPython refuse by themselves.
    says = "main interpreter" if sys.version_info < (3, 12) else "does not support loading in subinterpreters"
    assert says in done.stdout and "(2,)" in done.stdout, done.stdout + done.stderr


LONG = """
import numpy as np, berth as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(8, input_shape=(4,))])
model.compile("sgd", "mse")
x = np.ones((512, 4), "float32")
print("begin", flush=True)
try:
    model.fit(x, np.ones((512, 8), "float32"), epochs=1000000, verbose=0)
except KeyboardInterrupt:
    model.fit(x, np.ones((512, 8), "float32"), epochs=1, verbose=0)
    print("stopped", bool(np.isfinite(model.predict(x)).all()))
"""


def test_control_c_ends_fit_after_a_batch_and_the_model_goes_on():
    # Jobs in the background of a shell begin with an interrupt that is ignored.
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        try:
            assert process.stdout.readline() == "begin\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out == "stopped True\n" and process.returncode == 0


def test_python_goes_on_while_the_engine_works():
    x = tf.ones([6000, 6000])
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        # One call of the engine after the other, until one lasted long enough to be seen from aside.
        for n in range(500, 6001, 500):
            part = x[:n, :n]
            before = time.perf_counter()
            tf.matmul(part, part)
            after = time.perf_counter()
            if after - before > 0.2:
                break
    finally:
        done.set()
        thread.join()
    assert len([t for t in ticks if before < t < after]) > 3


def test_threads_train_models_of_their_own():
    x = np.linspace(-1, 1, 64).reshape(32, 2).astype("float32")
    results = {}

    def train(seed):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,), kernel_initializer="zeros")])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        model.fit(x, x[:, :1], epochs=20, verbose=0, shuffle=False)
        results[seed] = model.get_weights()[0].tolist()
    threads = [threading.Thread(target=train, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 and all(r == results[0] for r in results.values())


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_ten_thousand_steps_do_not_grow_slow():
    """Steps by tapes, functions and fit; cycles through them are collected."""
    import gc
    v = tf.Variable(tf.ones([8, 8]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, v) ** 2)
        v.assign_sub(1e-6 * tape.gradient(loss, v))
        return loss

    class Cycle:
        def __init__(self):
            self.tape = tf.GradientTape(persistent=True)
            self.tape.owner = self
            with self.tape:
                self.y = v * 2.0
            self.f = tf.function(lambda x: x + self.y)

    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    x = tf.ones([4, 8])

    def work(n):
        for i in range(n):
            step(x)
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(v * x[0])
            tape.gradient(y, v)
            if i % 100 == 0:
                c = Cycle()
                c.f(tf.ones([8, 8]))
        gc.collect()
    work(2000)
    before = rss()
    work(10000)
    assert rss() - before < 4 << 20
