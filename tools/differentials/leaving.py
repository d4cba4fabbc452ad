"""The ways of leaving: each script is run --count times, two at a time; it has to end by itself, soon
and with the status that Python gives it, whatever threads of the engine do meanwhile."""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

START = """
import os, sys, threading, time
import numpy as np
import berth as tf
number = int(sys.argv[1])
def gen():
    while True:
        yield np.float32([1, 1]), np.float32([1])
def busy():
    while True:
        sum(i * i for i in range(1000000))
        yield np.float32([1, 1]), np.float32([1])
def asleep():
    yield np.float32([1, 1]), np.float32([1])
    time.sleep(600)
def source(g=gen):
    return tf.data.Dataset.from_generator(g, output_signature=(
        tf.TensorSpec([2], tf.float32), tf.TensorSpec([1], tf.float32)))
def model():
    m = tf.keras.Sequential([tf.keras.layers.Dense(8, input_shape=(2,)), tf.keras.layers.Dense(1)])
    m.compile("sgd", "mse")
    return m
class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        sum(range(1000))
x, y = np.ones((640, 2), "f"), np.ones((640, 1), "f")
def a_little():
    time.sleep(0.0007 * (number % 13))
def daemon(fn):
    threading.Thread(target=fn, daemon=True).start()
def interrupt_soon():
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    threading.Timer(0.02 + 0.003 * (number % 13), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
def served(fn, generator=gen):  # a cluster in this process, whose workers have things to do
    import socket
    free = [socket.socket() for _ in range(2)]
    for s in free: s.bind(("localhost", 0))
    spec = tf.train.ClusterSpec(dict(zip(("worker", "ps"), ([f"localhost:{s.getsockname()[1]}"] for s in free))))
    for s in free: s.close()
    for job in spec.jobs: tf.distribute.Server(spec, job, 0)
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.SimpleClusterResolver(spec))
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    it = iter(coordinator.create_per_worker_dataset(lambda: source(generator)))
    return strategy, coordinator, [coordinator.schedule(fn, args=(it,)) for _ in range(50)]
@tf.function
def taken(it):
    return tf.reduce_sum(next(it)[0])
@tf.function
def endless(n):
    while n > 0:
        n += 0
    return n
@tf.function
def calls_python(v):
    for _ in tf.range(100):
        v += tf.py_function(lambda a: a * 0.0 + 1.0, [v], tf.TensorSpec([], tf.float32))
    return v
"""
# What the script does; its status, unless that is 0.
WAYS = {
    "loop": ("for _ in range(20):\n    for e in source().prefetch(4):\n        break",),
    "loop of parallel map": (
        "for _ in range(10):\n    for e in source().map(lambda a, b: a + b, 4).batch(2).prefetch(2):\n        break",),
    "loop of interleave": (
        "for _ in range(10):\n    for e in tf.data.Dataset.range(9).interleave(lambda i: source().map(\n"
        "            lambda a, b: tf.py_function(lambda v: v, [a], tf.float32)), 3, 1, 3).prefetch(2):\n        break",),
    "iterator": ("it = iter(source().batch(2).prefetch(4)); next(it); a_little()",),
    "iterator of map": ("it = iter(source().map(lambda a, b: a + b, 4).prefetch(4)); next(it); a_little()",),
    "iterator of a strategy": ("s = tf.distribute.MirroredStrategy(['/CPU:0']); it = iter("
                               "s.experimental_distribute_dataset(source().batch(2).prefetch(4))); next(it)",),
    "busy iterator": ("it = iter(source(busy).prefetch(4)); next(it); a_little()",),
    "sleeping iterator": ("it = iter(source(asleep).prefetch(4)); next(it); a_little()",),
    "generator": ("def outer():\n    for e in source().prefetch(4):\n        yield e\ng = outer(); next(g); a_little()",),
    "cycle": ("class A: pass\na = A(); a.me = a; a.it = iter(source().prefetch(4)); next(a.it); del a; a_little()",),
    "exception": ("for e in source().prefetch(4):\n    a_little(); raise ValueError('mine')", 1),
    "kept exception": ("try:\n    for e in source().prefetch(4):\n        raise ValueError('mine')\n"
                       "except ValueError as e:\n    kept = e", 0),
    "sys.exit": ("for e in source().prefetch(4):\n    a_little(); sys.exit(7)", 7),
    "sys.exit in map": ("for e in source().map(lambda a, b: tf.py_function(lambda v: sys.exit(7), [a], tf.float32))"
                        ".prefetch(2):\n    pass", 7),
    "sys.exit in a thread": ("t = threading.Thread(target=lambda: [sys.exit(1) for e in source().prefetch(4)])\n"
                             "t.start(); t.join()",),
    "os._exit": ("it = iter(source().prefetch(4)); next(it); a_little(); os._exit(5)", 5),
    "fit": ("daemon(lambda: model().fit(x, y, epochs=10**6, verbose=0)); time.sleep(0.3); a_little()",),
    "fit with callbacks": ("daemon(lambda: model().fit(x, y, epochs=10**6, verbose=0, callbacks=[Slow()]))\n"
                           "time.sleep(0.3); a_little()",),
    "fit of a generator": ("daemon(lambda: model().fit(source().batch(8).prefetch(2), epochs=10**6, verbose=0,\n"
                           "    steps_per_epoch=100)); time.sleep(0.3); a_little()",),
    "fit left by a callback": ("class Stop(Slow):\n    def on_epoch_end(self, epoch, logs=None):\n        raise KeyError('mine')\n"
                               "model().fit(source().batch(8).prefetch(2), steps_per_epoch=9, verbose=0, "
                               "callbacks=[Stop()])", 1),
    "threads of functions": ("def work():\n    while True:\n        calls_python(tf.constant(0.0)).numpy()\n"
                             "for _ in range(3): daemon(work)\ntime.sleep(0.2); a_little()",),
    "threads of loops": ("def work():\n    for e in source().prefetch(2): e[0].numpy()\n"
                         "for _ in range(3): daemon(work)\ntime.sleep(0.1); a_little()",),
    "atexit": ("import atexit\nit = iter(source().prefetch(4))\natexit.register(lambda: next(it)); next(it)",),
    "__del__": ("class A:\n    def __init__(self): self.it = iter(source().prefetch(4)); self.v = tf.ones([2])\n"
                "    def __del__(self):\n        (self.v + 1.0).numpy()\n        try: next(self.it)\n"
                "        except Exception: pass\na = A(); next(a.it); sys.modules['kept'] = a",),
    "fork": ("it = iter(source().prefetch(4)); next(it); pid = os.fork()\nif pid == 0:\n    del it; sys.exit(0)\n"
             "assert os.waitpid(pid, 0)[1] == 0",),
    "interrupted loop": ("interrupt_soon()\nfor e in source().map(lambda a, b: a + b).prefetch(4): pass", -2),
    "interrupted sleep": ("interrupt_soon()\nfor e in source(asleep).prefetch(4): pass", -2),
    "sys.exit while a generator sleeps": ("for e in source(asleep).prefetch(4):\n    a_little(); sys.exit(7)", 7),
    # Traced first: CPython drops an interrupt that comes while it ends the lock of an import.
    "interrupted function": (
        "endless.get_concrete_function(tf.constant(1)); interrupt_soon()\nendless(tf.constant(1))", -2),
    "interrupted shuffle": ("interrupt_soon()\nfor e in tf.data.Dataset.range(10**12).map(lambda v: v).shuffle(10**9): pass", -2),
    "interrupted py_function": ("interrupt_soon()\nwhile True: calls_python(tf.constant(0.0))", -2),
    "interrupted fit": ("interrupt_soon()\nmodel().fit(source().batch(8).prefetch(2), steps_per_epoch=10**9, verbose=0)", -2),
    "parameter servers": ("s, c, r = served(taken); a_little()",),
    "parameter servers of a busy generator": ("s, c, r = served(taken, busy); r[0].get(); a_little()",),
    "parameter servers of a sleeping generator": ("s, c, r = served(taken, asleep); r[0].get(); a_little()",),
    "parameter servers, exception": ("s, c, r = served(taken); r[0].get(); raise ValueError('mine')", 1),
    "parameter servers, os._exit": ("s, c, r = served(taken); r[0].get(); a_little(); os._exit(5)", 5),
    "parameter servers, a thread waits": (
        "s, c, r = served(taken, asleep)\ndef waits():\n    try: c.join()\n    except tf.errors.FailedPreconditionError: pass\n"
        "daemon(waits); r[0].get(); a_little()",),
    "parameter servers, interrupted": ("s, c, r = served(taken, asleep); r[0].get(); interrupt_soon(); c.join()", -2),
    "parameter servers let go": ("s, c, r = served(taken); r[0].get(); del s, c, r; a_little()",),
    "written at the end": (
        "folder = sys.argv[2]; w = tf.summary.create_file_writer(folder)\nwith w.as_default(): tf.summary.scalar('a', 1.0, step=1)\n"
        "c = tf.train.Checkpoint(v=tf.Variable(tf.ones([1000])))\nc.write(folder + '/c', "
        "options=tf.train.CheckpointOptions(enable_async=True))",),
}
GRAMMAR = "the ways:\n" + "\n".join(WAYS)
SECONDS = 60  # of which it needs one


def leave(way, number):
    """None, or what was wrong with one run."""
    text, status = (*WAYS[way], 0)[:2]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "way.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(START + text + "\n")
        try:
            # CPython 3.12 and later warn of any fork() beside threads.
            done = subprocess.run([sys.executable, "-W", "ignore:This process:DeprecationWarning", path,
                                   str(number), folder], capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"has not ended within {SECONDS} s"
        files = os.listdir(folder)
    if done.returncode != status:
        return f"status {done.returncode}, not {status}: {done.stderr[-1500:]}"
    said = [line for line in done.stderr.splitlines() if line and not line.startswith("berth: lint input-bound")]
    if status == 0 and said:
        return f"said: {done.stderr[-1500:]}"
    if way == "written at the end" and not ("c.safetensors" in files and any("tfevents" in f for f in files)):
        return f"wrote {files}"
    return None


def main(args):
    names = list(WAYS) if args.only is None else [list(WAYS)[args.only]]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for way in names:
            runs = [(n, r) for n, r in enumerate(pool.map(lambda n, w=way: leave(w, n + args.seed),
                                                          range(args.count))) if r]
            wrong += len(runs)
            print(f"{way}: {len(runs)} of {args.count} runs wrong", flush=True)
            for n, r in runs[:2]:
                print(f"  run {n + args.seed}: {r}", flush=True)
    print(f"leaving: {len(names) * args.count} cases, {wrong} wrong, 0 refused")
    return 1 if wrong else 0
