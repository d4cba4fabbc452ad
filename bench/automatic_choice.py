#!/usr/bin/env python3
"""The automatic choice of a strategy against the best of 20 plans by hand, by the clock.

    python -m berth --own-keras bench/automatic_choice.py [mlp cnn transformer embedding] [--steps 3]

Prints a JSON line per model: `over_best` is the time of a step under AutoStrategy over the best of the plans of
bench/hand/parallel_plans.json, which were written without the search; must 1.03, aim below 1 for half of the models.
Devices are four simulated GPUs with the real clock, the last half as fast. `declared_over_measured`: the step as one
of the fast devices declares it, over the same on one core; under 4 the row is skipped, for cores would decide.
"""
import argparse
import json
import os
import pathlib
import tempfile
import time

SPEEDS = "0.0002,0.0002,0.0002,0.0001"
os.environ.update(BERTH_SIM="GPUx4", BERTH_SIM_CLOCK="real", BERTH_SIM_SPEEDS=os.environ.get("BERTH_SIM_SPEEDS", SPEEDS))

import numpy as np  # noqa: E402

import berth as tf  # noqa: E402

L = tf.keras.layers
PLANS = pathlib.Path(__file__).resolve().parent / "hand/parallel_plans.json"
BATCH = 64


def mlp():
    x = tf.keras.Input((256,))
    h = x
    for i in range(8):
        h = L.Dense(256, activation="relu", name=f"layer_{i}")(h)
    return x, L.Dense(10, name="out")(h), np.ones((BATCH, 256), "f")


def cnn():
    x = tf.keras.Input((16, 16, 3))
    h = x
    for i, filters in enumerate((16, 16, 32, 32)):
        h = L.Conv2D(filters, 3, padding="same", strides=2 if i == 2 else 1, activation="relu", name=f"layer_{i}")(h)
    return x, L.Dense(10, name="out")(L.Flatten(name="flat")(h)), np.ones((BATCH, 16, 16, 3), "f")


def transformer():
    x = tf.keras.Input((32,), dtype="int32")
    h = L.Embedding(64, 64, name="layer_0")(x)
    for i in range(1, 4):
        n = L.LayerNormalization(name=f"layer_{i}")(h)
        h = L.Add(name=f"add_{i}")([h, L.MultiHeadAttention(4, 16, name=f"attention_{i}")(n, n)])
        n = L.Dense(256, activation="gelu", name=f"up_{i}")(L.LayerNormalization(name=f"norm_{i}")(h))
        h = L.Add(name=f"sum_{i}")([h, L.Dense(64, name=f"down_{i}")(n)])
    return x, L.Dense(10, name="out")(L.Flatten(name="flat")(h)), np.arange(BATCH * 32).reshape(BATCH, 32) % 64


def embedding():
    x = tf.keras.Input((16,), dtype="int32")
    h = L.Flatten(name="flat")(L.Embedding(4096, 32, name="layer_0")(x))
    for i in range(1, 4):
        h = L.Dense(256, activation="relu", name=f"layer_{i}")(h)
    return x, L.Dense(10, name="out")(h), np.arange(BATCH * 16).reshape(BATCH, 16) % 4096


def step_seconds(make, strategy, steps):
    """The fastest step of some, after one that compiles."""
    with strategy.scope():
        inputs, outputs, x = make()
        model = tf.keras.Model(inputs, outputs)
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = tf.constant(x), tf.constant(np.arange(BATCH) % 10)
    times = []
    for _ in range(steps + 1):
        begin = time.perf_counter()
        model.train_on_batch(x, y)
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def planned(choice):
    """The strategy of a plan by hand, whose devices are numbers."""
    full = {"kind": "one device", "parts": 1, "sharding": "none", "shares": [], "layouts": [], "schedule": "1f1b",
            "micro_batches": 1, "stages": [], **choice}
    full["devices"] = [f"/job:localhost/replica:0/task:0/device:GPU:{d}" for d in choice["devices"]]
    full["layouts"] = [{"variable": name, "axes": axes} for name, axes in choice.get("layouts", {}).items()]
    unknown = dict.fromkeys(("step_us", "bound_us", "compute_us", "sums_us", "copies_us", "search_seconds", "candidates"), 0)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"format": "berth parallel plan 1", "choice": full, "batch": BATCH, "others": [],
                   "peak_bytes": [0] * len(full["devices"]), **unknown}, file)
        file.flush()
        return tf.distribute.PlannedStrategy(file.name)


def row(name, make, plans, steps):
    one_core = step_seconds(make, tf.distribute.OneDeviceStrategy("/CPU:0"), steps)
    one_device = step_seconds(make, tf.distribute.OneDeviceStrategy("/GPU:0"), steps)
    if one_device < 4 * one_core:
        return {"bench": "automatic_choice", "model": name, "skipped": "declared times are under 4 times those of a core",
                "declared_over_measured": one_device / one_core}
    by_hand = [step_seconds(make, planned(p), steps) for p in plans]
    best = int(np.argmin(by_hand))
    automatic = tf.distribute.AutoStrategy([f"/GPU:{d}" for d in range(4)])
    ours = step_seconds(make, automatic, steps)
    return {"bench": "automatic_choice", "model": name, "over_best": ours / by_hand[best], "must": 1.03,
            "step_ms": 1e3 * ours, "predicted_ms": automatic.chosen.json()["step_us"] / 1e3, "chosen": str(automatic.chosen).split(", batch")[0],
            "best_ms": 1e3 * by_hand[best], "best": plans[best], "plans": len(plans),
            "declared_over_measured": one_device / one_core}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    hand = json.loads(PLANS.read_text())
    for m in args.models or list(hand):
        print(json.dumps(row(m, globals()[m], hand[m], args.steps)), flush=True)
