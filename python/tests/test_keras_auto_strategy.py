"""Models of the package Keras under plans: a plan that is found or read trains as one device does."""
import importlib.util
import json
import os
import subprocess

import pytest
from test_keras_backend import run
from test_keras_pipeline import TRAIN

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")

DEVICES = [f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(4)]
LAYOUTS = [{"variable": name, "axes": axes} for name, axes in (
    ("s/a/kernel", ["", "model"]), ("s/a/bias", ["model"]), ("s/b/kernel", ["model", ""]))]
MODEL = TRAIN + """
def named():
    return keras.Sequential([keras.Input((6,)), L.Dense(32, activation="tanh", name="a"), L.Dense(16, name="b"),
                             L.Dense(8, name="c"), L.Dense(3, name="d")], name="s")
"""


def plan_file(folder, **choice):
    """A plan as ParallelPlan.save() writes it."""
    choice = {"kind": "one device", "devices": DEVICES[:2], "parts": 1, "sharding": "none", "shares": [], "layouts": [],
              "schedule": "1f1b", "micro_batches": 1, "stages": [], **choice}
    numbers = dict.fromkeys(("step_us", "bound_us", "compute_us", "sums_us", "copies_us", "search_seconds"), 1)
    path = folder / "plan.json"
    path.write_text(json.dumps({"format": "berth parallel plan 1", "choice": choice, "batch": 16, "candidates": 1, "others": [],
                                "peak_bytes": [1] * len(choice["devices"]), **numbers}))
    return str(path)


@pytest.mark.parametrize("choice", [
    {"devices": DEVICES[1:2]},
    {"kind": "replicas"},
    {"kind": "replicas", "shares": [20, 12]},
    {"kind": "sharded", "sharding": "gradients"},
    {"kind": "sharded", "sharding": "parameters"},
    {"kind": "divided layers", "parts": 2, "layouts": LAYOUTS},
    {"kind": "divided layers", "parts": 2, "layouts": LAYOUTS, "devices": DEVICES},
    {"kind": "pipeline", "stages": ["c"], "micro_batches": 4},
    {"kind": "pipeline of divided layers", "parts": 2, "layouts": LAYOUTS, "devices": DEVICES, "stages": ["c"],
     "micro_batches": 2},
], ids=lambda c: "-".join(str(v) for k, v in c.items() if k not in ("devices", "layouts")) or "one")
def test_each_kind_of_plan_trains_as_one_device_does(tmp_path, choice):
    run(MODEL + f"check(named, tf.distribute.PlannedStrategy({plan_file(tmp_path, **choice)!r}))", BERTH_SIM="GPUx4")


@pytest.mark.parametrize("options, kind", [
    ("", None),
    ("replicas=False, pipelines=False", "divided layers"),
    ("replicas=False, divided_layers=False", "pipeline"),
])
def test_fit_chooses_and_trains_as_one_device_does(options, kind):
    run(TRAIN + f"""
def wide():
    return keras.Sequential([keras.Input((6,)), *(L.Dense(256, activation="tanh", name=n) for n in "abcde"), L.Dense(3, name="f")])
limit = ", memory_bytes_per_device=3_600_000" if {kind!r} else ""
automatic = eval(f"tf.distribute.AutoStrategy(['/GPU:0', '/GPU:1'], {options}{{limit}})".replace(", , ", ", "))
model = check(wide, automatic)
plan = automatic.chosen.json()
assert plan["choice"]["kind"] == ({kind!r} or plan["choice"]["kind"]), automatic.chosen
assert all(b <= 3_600_000 for b in plan["peak_bytes"]) or not {kind!r}, plan
""", BERTH_SIM="GPUx2")


def test_choose_before_fit_and_refusals():
    run(MODEL + """
automatic = tf.distribute.AutoStrategy(["/GPU:0", "/GPU:1"])
with automatic.scope():
    model = named()
    model.compile("adam", "mse")
def refused(what, said):
    try:
        what()
    except Exception as error:
        assert said in str(error), error
    else:
        raise SystemExit("not refused: " + said)
refused(lambda: model.predict(x[:4], verbose=0), "before anything is chosen")
refused(lambda: model.compile("adam", "mse", run_eagerly=True), "run_eagerly")
assert automatic.choose(model, 16).json()["batch"] == 16
model.fit(x, y, batch_size=16, verbose=0)
assert model.predict(x[:4], verbose=0).shape == (4, 3)
""", BERTH_SIM="GPUx2")


def test_a_graph_file_is_planned_and_the_plan_runs(tmp_path, berth_program):
    graph, plan, cluster = (str(tmp_path / name) for name in ("step.txt", "plan.json", "cluster.json"))
    run(TRAIN + f"""
model = train(blocks)[0]
model.train_on_batch(x[:16], y[:16])
model.save_graph({graph!r})
""")
    with open(cluster, "w") as file:  # layers are slow, and what one device keeps is too much
        json.dump({"devices": [{"name": "GPU", "count": 2, "memory_bytes": 7600}],
                   "classes": [{"name": "GPU", "flops_per_us": 100}],
                   "default_link": {"latency_us": 1, "bandwidth_bytes_per_us": 1000}}, file)
    done = subprocess.run([berth_program, "plan", graph, "--parallel", "--cluster", cluster, "-o", plan, "--json"],
                          text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    with open(plan) as file:
        assert json.load(file) == json.loads(done.stdout)
    found = json.loads(done.stdout)
    assert found["choice"]["kind"] != "one device" and max(found["peak_bytes"]) <= 7600, found
    assert found["bound_us"] <= found["step_us"] * 1.000001 and found["batch"] == 16
    run(TRAIN + f"check(blocks, tf.distribute.PlannedStrategy({plan!r}))", BERTH_SIM="GPUx2")
