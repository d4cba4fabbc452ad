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
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench/peers/python"
MODULES = {"berth": "berth", "tensorflow": "tensorflow", "torch": "torch", "jax": "jax.numpy"}


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


# ---------------------------------------------------------------- the rows

class Rows:
    def __init__(self, options):
        self.options = options
        self.pythons = {"berth": options.python}
        for peer in ("tensorflow", "torch", "jax"):
            python = options.peers / peer / "bin/python"
            if python.exists():
                self.pythons[peer] = python

    def run(self, command):
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "",
               "OMP_NUM_THREADS": str(self.options.cores)}
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env,
                              timeout=600)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
        return lines

    def in_turns(self, what, frameworks, rounds=None):
        """{framework: values of the rounds}; a peer that cannot is left away."""
        values = {}
        for _ in range(rounds or self.options.rounds):
            for framework in frameworks:
                if framework not in self.pythons:
                    continue
                try:
                    line = self.run([self.pythons[framework], __file__, "--measure", what, framework,
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
             "step of mlp cnn gpt": rows.steps}
    for name, part in parts.items():
        if not options.only or any(word in name for word in options.only.split()):
            part()


if __name__ == "__main__":
    main()
