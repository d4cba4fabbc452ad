#!/usr/bin/env python3
"""The rows of the Python package: Berth and its peers called from Python, in turns.

    bench/python_rows.py [--python build/python/bin/python] [--peers build/peers] [--rounds 3]
                         [--seconds 1] [--cores 2] [--only TEXT] [--bin build/release/bin]

Prints a JSON line per row. Each number is measured in a process of its own, under the interpreter
of its framework; the processes of a row run in turns, and best is compared with best. `ratio` is
how many times as good as the peer Berth is. Steps are those of bench/peers/python: Berth runs
tensorflow_step.py itself, under `python -m berth`.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench/peers/python"
MODULES = {"berth": "berth", "tensorflow": "tensorflow", "torch": "torch", "jax": "jax.numpy"}
# The package Keras by what it computes with; "berth" is berth.keras.
BACKENDS = {"keras": "berth", "tensorflow": "tensorflow", "torch": "torch", "jax": "jax"}


# ---------------------------------------------------------------- measured in a process of its own

def per_call(call, seconds):
    """Best seconds of one call, over blocks of about 10 ms."""
    for _ in range(200):
        call()
    begin = time.perf_counter()
    for _ in range(200):
        call()
    inner = max(10, int(10e-3 / ((time.perf_counter() - begin) / 200)))
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        best = min(best, (time.perf_counter() - begin) / inner)
    return best


def load(framework):
    import importlib
    return importlib.import_module(MODULES[framework])


def measure_add(framework, seconds):
    lib = load(framework)
    values = [1.0, 2.0, 3.0, 4.0]
    a = {"torch": getattr(lib, "tensor", None), "jax": getattr(lib, "asarray", None)}.get(
        framework, getattr(lib, "constant", None))(values)
    return per_call(lambda: a + a, seconds)


def measure_function(framework, seconds):
    """A traced function of two ops on 4 floats."""
    lib = load(framework)
    a = lib.constant([1.0, 2.0, 3.0, 4.0])
    f = lib.function(lambda x: lib.tanh(x * x))
    return per_call(lambda: f(a), seconds)


def measure_import(framework, seconds):
    """Seconds of the import, in this fresh process, and the peak memory after it in MiB."""
    begin = time.perf_counter()
    load(framework)
    took = time.perf_counter() - begin
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_fit(framework, seconds):
    """Mean seconds per epoch of fit, with the network of examples/digits."""
    tf = load(framework)
    keras = tf.keras
    layers = keras.layers
    (x, y), _ = keras.datasets.mnist.load_data()
    x, y = (x / 255.0).astype("float32")[..., None], y.astype("int32")
    model = keras.Sequential([
        layers.Conv2D(32, (3, 3), activation="relu", input_shape=x.shape[1:]),
        layers.MaxPooling2D((2, 2)), layers.Conv2D(64, (3, 3), activation="relu"),
        layers.MaxPooling2D((2, 2)), layers.Flatten(), layers.Dropout(0.25),
        layers.Dense(128, activation="relu"), layers.Dropout(0.3), layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])

    class Seconds(keras.callbacks.Callback):
        epochs = []

        def on_epoch_begin(self, epoch, logs=None):
            self.begin = time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            self.epochs.append(time.perf_counter() - self.begin)

    model.fit(x, y, batch_size=64, epochs=10, verbose=0, callbacks=[Seconds()])
    return sum(Seconds.epochs) / len(Seconds.epochs)


def keras_of(framework):
    """berth.keras, or the package Keras on a backend."""
    if framework == "berth":
        return load("berth").keras
    os.environ["KERAS_BACKEND"] = BACKENDS[framework]
    if framework == "keras":
        load("berth")
    import keras
    return keras


def mlp(keras):
    """MLP 784-128-10, batch 64."""
    layers = keras.layers
    return keras.Sequential([keras.Input((784,)), layers.Dense(128, activation="relu"), layers.Dense(10)]), (784,), 64


def cnn(keras):
    layers = keras.layers
    return keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(10)]), (28, 28, 1), 64


def transformer(keras):
    """Two blocks of width 128 over 64 places of a sequence, batch 16."""
    layers = keras.layers
    x = start = keras.Input((64, 128))
    for _ in range(2):
        y = layers.MultiHeadAttention(4, 32)(layers.LayerNormalization()(x), layers.LayerNormalization()(x))
        x = layers.Add()([x, y])
        y = layers.Dense(128)(layers.Dense(512, activation="relu")(layers.LayerNormalization()(x)))
        x = layers.Add()([x, y])
    return keras.Model(start, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))), (64, 128), 16


def fit_seconds(framework, make, seconds, strategy=None):
    """Best seconds of a step of fit() of arrays, over epochs of about half a second."""
    import numpy
    keras = keras_of(framework)
    with strategy().scope() if strategy else contextlib.nullcontext():
        model, shape, batch = make(keras)
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    rng, steps, best = numpy.random.RandomState(0), 64, 1e9

    def epochs(count):
        x = rng.rand(steps * batch, *shape).astype("float32")
        y = rng.randint(0, 10, steps * batch).astype("int32")
        begin = time.perf_counter()
        model.fit(x, y, batch_size=batch, epochs=count, verbose=0)
        return (time.perf_counter() - begin) / count

    epochs(3)
    steps *= 4 if strategy else max(1, round(0.3 / epochs(2)))  # tasks take equally many
    epochs(1)
    left, end = 8, time.perf_counter() + seconds
    while left > 0 if strategy else time.perf_counter() < end:
        best, left = min(best, epochs(1)), left - 1
    return best / steps


def measure_fit_mlp(framework, seconds):
    return fit_seconds(framework, mlp, seconds)


def measure_fit_cnn(framework, seconds):
    return fit_seconds(framework, cnn, seconds)


def measure_fit_transformer(framework, seconds):
    return fit_seconds(framework, transformer, seconds)


def measure_workers_mlp(framework, seconds):
    """The same in each of two tasks."""
    return fit_seconds(framework, mlp, seconds, lambda: load("berth").distribute.MultiWorkerMirroredStrategy())


def measure_resnet_build(framework, seconds):
    """Best seconds to build ResNet50 with random weights, after one that imports what it needs."""
    keras, best, end = keras_of(framework), 1e9, time.perf_counter() + seconds
    keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3))
    while best == 1e9 or time.perf_counter() < end:
        keras.backend.clear_session()
        begin = time.perf_counter()
        keras.applications.ResNet50(weights=None)
        best = min(best, time.perf_counter() - begin)
    return best


# ---------------------------------------------------------------- the rows

class Rows:
    def __init__(self, options):
        self.options = options
        self.pythons = {"berth": options.python, "keras": options.python}
        for peer in ("tensorflow", "torch", "jax"):
            python = options.peers / peer / "bin/python"
            if python.exists():
                self.pythons[peer] = python

    def run(self, command):
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
               "OMP_NUM_THREADS": str(self.options.cores)}
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env,
                              timeout=600)
        found = (re.sub(r"^\[[\w:]+\] ", "", line) for line in done.stdout.splitlines())  # the task that berth launch names
        lines = [json.loads(line) for line in found if line.startswith("{")]
        if not lines:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
        return lines

    def in_turns(self, what, frameworks, rounds=None, before=()):
        """{framework: values of the rounds}; a peer that cannot is left away."""
        values = {}
        for _ in range(rounds or self.options.rounds):
            for framework in frameworks:
                if framework not in self.pythons:
                    continue
                try:
                    line = self.run([*before, self.pythons[framework], __file__, "--measure", what, framework,
                                     "--seconds", self.options.seconds])[-1]
                    values.setdefault(framework, []).append(line["value"])
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{what}, {framework}: {error}", file=sys.stderr)
        return {f: v for f, v in values.items() if v}

    def row(self, name, must, **values):
        if self.options.only in name:
            print(json.dumps({"row": name, "must": must, **values}), flush=True)

    def calls(self, name, what, frameworks=tuple(MODULES)):
        best = {f: min(v) for f, v in self.in_turns(what, frameworks).items()}
        own = best.pop("berth")
        micro = {f"{f}_us": round(v * 1e6, 3) for f, v in best.items()}
        if best and what == "add":
            self.row(name + ", fastest peer", 1.0, us=round(own * 1e6, 3), **micro,
                     ratio=round(min(best.values()) / own, 2))
        if "tensorflow" in best:
            self.row(name + ", TensorFlow", 4.0, us=round(own * 1e6, 3), **micro,
                     ratio=round(best["tensorflow"] / own, 2))

    def imports(self):
        got = self.in_turns("import", ["berth", "tensorflow"], 5)
        best = {f: [min(column) for column in zip(*v)] for f, v in got.items()}
        for i, (name, must) in enumerate((("import, s", "0.2 s"), ("memory after import, MiB", 5))):
            values = {f: round(v[i], 3) for f, v in best.items()}
            self.row(name, must, **values,
                     ratio=round(values["tensorflow"] / values["berth"], 1) if "tensorflow" in values else None)

    def wheel(self):
        for path in sorted((ROOT / "build/wheels").glob("berth-*.whl")):
            self.row("size of the wheel, MB", "60", mb=round(path.stat().st_size / 1e6, 1))

    def fit(self):
        """The same network, data and batches in C++ (examples/digits) and in Python."""
        digits, draw = self.options.bin / "digits", self.options.bin / "draw_digits"
        if not digits.exists() or not draw.exists():
            return
        own, other = [], []
        with tempfile.TemporaryDirectory() as drawn:
            if "BERTH_DATA" not in os.environ:
                subprocess.run([draw, drawn], check=True)
                os.environ["BERTH_DATA"] = drawn
            for _ in range(self.options.rounds):
                own += [v for v in self.in_turns("fit", ["berth"], 1).get("berth", [])]
                lines = subprocess.run([digits, "--epochs", "10", "--batch-size", "64", "--json"],
                                       text=True, capture_output=True).stdout
                other.append(json.loads(lines.splitlines()[-1])["seconds_per_epoch"])
        if own and other:
            self.row("fit of digits over C++", 1.05, python_s=round(min(own), 4),
                     cpp_s=round(min(other), 4), times=round(min(own) / min(other), 3))

    def keras(self):
        """Real Keras on Berth over berth.keras, and Keras on other backends over it."""
        for model in ("mlp", "cnn", "transformer"):
            best = {f: min(v) for f, v in self.in_turns(f"fit_{model}", ["berth", *BACKENDS]).items()}
            own, real = best.pop("berth", None), best.pop("keras", None)
            if not own or not real:
                continue
            self.row(f"Keras fit of arrays, {model}: over berth.keras", 1.10, keras_us=round(real * 1e6, 1),
                     berth_us=round(own * 1e6, 1), times=round(real / own, 3))
            if best:
                peer = min(best, key=best.get)
                self.row(f"Keras fit of arrays, {model}: another backend over Berth", 1.1, keras_us=round(real * 1e6, 1),
                         **{f"{f}_us": round(v * 1e6, 1) for f, v in best.items()}, fastest=peer,
                         ratio=round(best[peer] / real, 2))
        best = {f: min(v) for f, v in self.in_turns("resnet_build", list(BACKENDS)).items()}
        if real := best.pop("keras", None):
            self.row("Keras ResNet50(weights=None): time to build", 1.0, seconds=round(real, 3),
                     **{f"{f}_s": round(v, 3) for f, v in best.items()},
                     **{f"over_{f}": round(real / v, 2) for f, v in best.items()})
        launched = [self.options.bin / "berth", "launch", "--workers", "2", "--"]
        best = {f: min(v) for f, v in self.in_turns("workers_mlp", ["berth", "keras"], before=launched).items()}
        if len(best) == 2:
            self.row("Keras on two workers, mlp: over berth.keras", 1.10, keras_us=round(best["keras"] * 1e6, 1),
                     berth_us=round(best["berth"] * 1e6, 1), times=round(best["keras"] / best["berth"], 3))

    def steps(self):
        for model in ("mlp", "cnn", "gpt"):
            if self.options.only and self.options.only not in f"step of {model}":
                continue
            best, variant = {}, {}
            for _ in range(self.options.rounds):
                for framework, python in self.pythons.items():
                    script = PEERS / f"{'tensorflow' if framework == 'berth' else framework}_step.py"
                    command = [python, *(["-m", "berth", "--own-keras"] if framework == "berth" else []), script,
                               "--model", model, "--cores", self.options.cores,
                               "--seconds", self.options.seconds]
                    try:
                        lines = [line for line in self.run(command) if "best_us" in line]
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        print(f"{model}, {framework}: {error}", file=sys.stderr)
                        continue
                    for line in lines:
                        if line["best_us"] < best.get(framework, 1e18):
                            best[framework], variant[framework] = line["best_us"], line["variant"]
            own = best.pop("berth", None)
            if own and best:
                peer = min(best, key=best.get)
                self.row(f"step of {model}", 1.0, us=own, variant=variant["berth"],
                         **{f"{f}_us": v for f, v in best.items()}, fastest=f"{peer}, {variant[peer]}",
                         ratio=round(best[peer] / own, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "build/python/bin/python")
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / "build/peers")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "FRAMEWORK"))
    options = parser.parse_args()
    if options.measure:
        what, framework = options.measure
        value = globals()[f"measure_{what}"](framework, options.seconds)
        print(json.dumps({"value": value}))
        return
    rows = Rows(options)
    parts = {"eager add": lambda: rows.calls("eager add of 4 floats", "add"),
             "traced function": lambda: rows.calls("traced function of two ops", "function",
                                                   ("berth", "tensorflow")),
             "import memory": rows.imports, "size of the wheel": rows.wheel, "fit of digits": rows.fit,
             "Keras fit of arrays mlp cnn transformer ResNet50 workers": rows.keras,
             "step of mlp cnn gpt": rows.steps}
    for name, part in parts.items():
        if not options.only or any(word in name for word in options.only.split()):
            part()


if __name__ == "__main__":
    main()
