#!/usr/bin/env python3
"""Rows of Ray: a step of two workers over the same under `berth launch`, and how long a change of the group takes.

ray_rows.py --berth build/release/bin/berth [--only step|killed|grown] [--rounds 3]: by a Python with berth[ray]. Prints
lines of JSON:
  ray_step    over_launch: best step of the rounds under Ray over that under `berth launch`; ray_us, launch_us
  ray_killed  seconds: from kill -9 of a worker to the end of the first step of the group that replaces it
  ray_grown   seconds: from a node that Ray has to the end of the first step of two workers; Ray looks each second
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

STEPS = 200  # of a round


def model_and_data(tf, np):
    """An MLP of about a million parameters, and 10 batches of 256."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu", input_shape=(784,)),
                                 tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.RandomState(0)
    return model, rng.rand(2560, 784).astype("float32"), rng.randint(0, 10, 2560).astype("int32")


def best_step_us():
    """The best of 5 passes, in us per step; the same in both launchers."""
    import berth as tf
    import numpy as np
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model, x, y = model_and_data(tf, np)
    fit = {"batch_size": 256, "shuffle": False, "verbose": 0}
    model.fit(x, y, epochs=2, **fit)
    best = min(sum(model.fit(x, y, epochs=STEPS // 10, **fit).seconds) for _ in range(5)) / STEPS * 1e6
    return best


def under_launch(berth):
    """best_step_us() of worker 0 under `berth launch`."""
    text = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import ray_rows\n" \
           "print('us', ray_rows.best_step_us())"
    done = subprocess.run([berth, "launch", "--workers", "2", "--", sys.executable, "-c", text], text=True, check=True,
                          stdout=subprocess.PIPE)
    return float(next(x.split()[-1] for x in done.stdout.splitlines() if x.startswith("[worker:0] us ")))


def step(options):
    import ray
    from berth.ray import BerthTrainer
    from ray.train import RunConfig, ScalingConfig
    launch, on_ray = [], []
    for _ in range(options.rounds):
        launch.append(under_launch(options.berth))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        with tempfile.TemporaryDirectory() as folder:
            on_ray.append(BerthTrainer(best_step_us, scaling_config=ScalingConfig(num_workers=2),
                                       run_config=RunConfig(storage_path=folder)).fit().return_value)
        ray.shutdown()
    print(json.dumps({"bench": "ray_step", "over_launch": min(on_ray) / min(launch), "ray_us": on_ray, "launch_us": launch}),
          flush=True)


def changing(config):
    """Trains epochs of a step until the group was changed; writes when, and when the first step after it had ended."""
    import berth as tf
    import numpy as np
    from berth.ray import ReportCheckpoint
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model, x, y = model_and_data(tf, np)
    callback = ReportCheckpoint(model)
    first, began = callback.restore(), time.time()
    for epoch in range(first, 1000):
        if config["kill"] and epoch == 3 and first == 0 and strategy.task_id == 1:
            with open(config["file"], "w", encoding="utf-8") as out:
                out.write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        done = first > 0 and strategy.num_replicas_in_sync == 2
        model.fit(x[:256], y[:256], batch_size=256, epochs=epoch + 1, initial_epoch=epoch, shuffle=False, verbose=0,
                  callbacks=[] if done else [callback])
        if done:
            return began, time.time()
    return None


def killed(options):
    import ray
    from berth.ray import BerthTrainer
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "at")
        result = BerthTrainer(changing, train_loop_config={"kill": True, "file": file},
                              scaling_config=ScalingConfig(num_workers=2),
                              run_config=RunConfig(storage_path=folder, failure_config=FailureConfig(max_failures=3))).fit()
        with open(file, encoding="utf-8") as text:
            at = float(text.read())
    ray.shutdown()
    began, ended = result.return_value
    print(json.dumps({"bench": "ray_killed", "seconds": ended - at, "to_training_function": began - at}), flush=True)


def grown(options):
    import ray
    from berth.ray import BerthTrainer
    from ray.cluster_utils import Cluster
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        fit = pool.submit(BerthTrainer(
            changing, train_loop_config={"kill": False},
            scaling_config=ScalingConfig(num_workers=(1, 2), elastic_resize_monitor_interval_s=1),
            run_config=RunConfig(storage_path=folder, failure_config=FailureConfig(max_failures=3))).fit)
        while not fit.done() and not any(n.startswith("checkpoint") for _, names, _ in os.walk(folder) for n in names):
            time.sleep(0.1)
        node = None
        while sum(n["Alive"] for n in ray.nodes()) < 2 and not fit.done():
            if node is None or node.dead_processes():  # one that starts too slowly ends itself
                node = cluster.add_node(num_cpus=1, wait=False)  # the main thread alone can
            time.sleep(0.02)
        at = time.time()
        result = fit.result()
    ray.shutdown()
    cluster.shutdown()
    began, ended = result.return_value
    print(json.dumps({"bench": "ray_grown", "seconds": ended - at, "to_training_function": began - at}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/bin/berth")
    parser.add_argument("--only", choices=["step", "killed", "grown"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # as much of the processor as under `berth launch`
    for name, row in (("step", step), ("killed", killed), ("grown", grown)):
        if options.only in (None, name):
            row(options)


if __name__ == "__main__":
    main()
