#!/usr/bin/env python3
"""Prints docs/python-names.md: which names of TensorFlow and Keras there are, are planned, or never come.

    python -P names.py API_DIR    with berth installed; API_DIR has the lists of names (name, kind,
                                  arguments)
"""
import glob
import os
import sys

import berth

# Names that will not come, by the first rule that fits, and why.
NEVER = [
    ("tf.feature_column", "columns of estimators: Keras' preprocessing layers take their place"),
    ("tf.estimator", "gone from TensorFlow itself"),
    ("tf.compat", "version 1"),
    ("tf.raw_ops", "ops have one form"),
    ("tf.lite", "another run-time"),
    ("tf.tpu", "no TPUs"),
    ("tf.xla", "there is no XLA behind Berth; its plans are compiled by itself"),
    ("tf.mlir", "there is no MLIR behind Berth"),
    ("tf.quantization", "of TensorFlow Lite"),
    ("tf.dtensor", "strategies and plans place and split"),
    ("tf.experimental.dtensor", "strategies and plans place and split"),
    ("tf.experimental.numpy", "NumPy itself, whose arrays tensors take and give"),
    ("tf.experimental.tensorrt", "another run-time"),
    ("tf.tools", "tools of TensorFlow's own build"),
    ("tf.types", "types of annotations: the stubs have them"),
    ("tf.test", "test cases of TensorFlow's own"),
    ("tf.queue", "version 1: tf.data"),
    ("tf.graph_util", "version 1"),
    ("tf.Graph", "version 1: tf.function"),
    ("tf.Operation", "version 1: tf.function"),
    ("tf.control_dependencies", "effects keep program order"),
    ("tf.init_scope", "version 1"),
    ("tf.no_gradient", "version 1"),
    ("tf.sysconfig", "flags for building against TensorFlow"),
    ("tf.data.experimental.service", "a service of its own"),
    ("keras.src", "Keras' own parts"),
    ("keras.tree", "structures are flattened inside"),
    ("keras.legacy", "older forms"),
    ("keras.quantizers", "of Keras' quantised layers"),
    ("keras.export", "another run-time"),
    ("keras.distillation", "a recipe, not an engine's part"),
]


def rows(path):
    with open(path) as lines:
        next(lines)
        for line in lines:
            name, kind, _ = (line.rstrip("\n") + "\t\t").split("\t")[:3]
            if kind in ("function", "class") and "._" not in name:
                yield name


def there(name):
    """True when the package has the name."""
    value = berth
    parts = name.split(".")
    for part in parts[1:] if parts[0] == "tf" else parts:
        try:
            value = getattr(value, part)
        except AttributeError:
            return False
    return True


def never(name):
    return next((why for start, why in NEVER if name == start or name.startswith(start + ".")), None)


def table(path):
    have, planned, counts = {}, {}, {}
    for name in rows(path):
        why = never(name)
        if why is not None:
            counts[why] = counts.get(why, 0) + 1
            continue
        module, _, last = name.rpartition(".")
        (have if there(name) else planned).setdefault(module, []).append(last)
    total = sum(map(len, have.values())), sum(map(len, planned.values()))
    print(f"There: {total[0]}; planned: {total[1]}; never: {sum(counts.values())}.\n")
    print("| module | there | planned |\n|---|---|---|")
    for module in sorted(set(have) | set(planned)):
        missing = " ".join(f"`{n}`" for n in sorted(planned.get(module, [])))
        print(f"| `{module}` | {len(have.get(module, []))} | {missing or 'none'} |")
    print()


def main():
    print("# Names of TensorFlow and Keras\n")
    print("Printed by `python/names.py`, from the public names of functions and classes of TensorFlow 2.21 "
          "and\nKeras 3.15; a test compares this page with the package. What is planned is an "
          "`AttributeError` today that\nnames its nearest neighbours.\n")
    for start, title in (("tensorflow", "TensorFlow"), ("keras", "Keras")):
        for path in glob.glob(os.path.join(sys.argv[1], start + "-*.tsv")):
            print(f"## {title}\n")
            table(path)
    print("## Never\n\n| names | why |\n|---|---|")
    for start, why in NEVER:
        print(f"| `{start}` | {why} |")


if __name__ == "__main__":
    main()
