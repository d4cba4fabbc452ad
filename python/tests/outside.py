#!/usr/bin/env python3
"""Runs twenty tutorials and guides of TensorFlow's documentation under `python -m berth`.

    python/tests/outside.py DOCS [--only WORD] [--python PYTHON] [--tensorflow] [--seconds 600]

DOCS is a checkout, or a bare clone, of github.com/tensorflow/docs. The programs were named before any
was run. A notebook becomes a script of its cells: lines that call the shell or IPython (! and %) are
left away, and so are cells that its authors mark "no_execute". Data sets are drawn, and small; the one program
that counts on MNIST's 60,000 pictures gets as many. Prints a line for each program; exits with 1 if
fewer than the 15 that must run do. --tensorflow runs them under TensorFlow itself, to compare.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

PROGRAMS = """tutorials/quickstart/beginner tutorials/quickstart/advanced tutorials/keras/classification
tutorials/keras/save_and_load tutorials/images/cnn tutorials/customization/basics
tutorials/customization/custom_layers tutorials/distribute/custom_training guide/basics guide/tensor
guide/variable guide/autodiff guide/intro_to_graphs guide/intro_to_modules guide/basic_training_loops
guide/function guide/gpu guide/tensor_slicing guide/checkpoint guide/mixed_precision""".split()
FULL = ("guide/mixed_precision",)
MUST = 15


def notebook(docs, name):
    path = f"site/en/{name}.ipynb"
    if (docs / path).exists():
        return (docs / path).read_text()
    done = subprocess.run(["git", "-C", str(docs), "show", f"HEAD:{path}"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{docs} has no {path}: {done.stderr.strip()}")
    return done.stdout


def script_of(text):
    """The code of a notebook; a comment before each cell says which it is."""
    out = []
    for number, cell in enumerate(json.loads(text)["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or "no_execute" in source:
            continue
        lines = [line if line.lstrip()[:1] not in ("!", "%") else "pass" for line in source.split("\n")]
        out += [f"# cell {number}", *lines]
    return "\n".join(out) + "\n"


def draw_data(folder, train=6000, test=1000):
    """MNIST, Fashion-MNIST and CIFAR-10 files: digit d is a bar in row 2 d + 4."""
    import numpy as np
    rng = np.random.default_rng(0)

    def write_idx(path, array):
        with open(path, "wb") as out:
            out.write(struct.pack(">I", 0x0800 | array.ndim) + struct.pack(f">{array.ndim}I", *array.shape))
            out.write(array.tobytes())
    for split, n in (("train", train), ("t10k", test)):
        y = rng.integers(0, 10, n).astype("uint8")
        x = rng.integers(0, 40, (n, 28, 28)).astype("uint8")
        x[np.arange(n), 2 * y + 4] = 250
        for place in (folder, folder / "fashion-mnist"):
            place.mkdir(exist_ok=True)
            write_idx(place / f"{split}-images-idx3-ubyte", x)
            write_idx(place / f"{split}-labels-idx1-ubyte", y)
    cifar = folder / "cifar-10-batches-bin"
    cifar.mkdir()
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        y = rng.integers(0, 10, 400).astype("uint8")
        x = rng.integers(0, 40, (400, 3, 32, 32)).astype("uint8")
        x[np.arange(400), :, 2 * y + 4] = 250
        (cifar / f"{name}.bin").write_bytes(np.concatenate([y[:, None], x.reshape(400, -1)], 1).tobytes())


def run(options, name, data):
    """(runs to its end, last line of the error)."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / (name.replace("/", "_") + ".py")
        path.write_text(script_of(notebook(options.docs, name)))
        if options.keep:
            (options.keep / path.name).write_text(path.read_text())
        command = [options.python, *([] if options.tensorflow else ["-m", "berth"]), path.name]
        env = {**os.environ, "BERTH_DATA": str(data), "MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "3"}
        try:
            done = subprocess.run([str(c) for c in command], cwd=folder, env=env, capture_output=True, text=True,
                                  timeout=options.seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False, f"longer than {options.seconds} s"
        if options.keep:
            (options.keep / (path.name + ".log")).write_text(done.stdout + done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        at = [line.split("line ")[1].split(",")[0] for line in lines if f'{path.name}"' in line and "line " in line]
        where = f"line {at[-1]}: " if at else ""
        return done.returncode == 0, where + (lines[-1] if lines else f"exit status {done.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("docs", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tensorflow", action="store_true")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--data", type=pathlib.Path, help="where the drawn data are kept")
    parser.add_argument("--keep", type=pathlib.Path, help="where scripts and what they print go")
    options = parser.parse_args()
    options.docs = options.docs.resolve()
    with tempfile.TemporaryDirectory() as made:
        data = (options.data or pathlib.Path(made)).resolve()
        if not (data / "cifar-10-batches-bin").exists():
            data.mkdir(exist_ok=True)
            draw_data(data)
            (data / "full").mkdir()
            draw_data(data / "full", 60000, 10000)
        good = 0
        names = [n for n in PROGRAMS if options.only in n]
        for name in names:
            fine, why = run(options, name, data / "full" if name in FULL else data)
            good += fine
            print(f"{name}: {'yes' if fine else 'no: ' + why}", flush=True)
    print(f"{good} of {len(names)} run to their end")
    if not options.only and not options.tensorflow and good < MUST:
        sys.exit(1)


if __name__ == "__main__":
    main()
