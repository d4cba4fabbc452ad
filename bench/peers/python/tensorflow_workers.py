"""A training step of two workers in TensorFlow: MultiWorkerMirroredStrategy, a core each."""
import json
import os
import socket
import subprocess
import sys

import common

args = common.parse()
WORKERS, BATCH = 2, 256  # of all workers together


def work(rank):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[rank % len(cores)]])
    common.use_cores(1)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    layers = tf.keras.layers
    with strategy.scope():
        if args.model == "cnn":
            model = tf.keras.Sequential([
                layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"),
                layers.MaxPooling2D(), layers.Conv2D(64, 3, activation="relu"),
                layers.MaxPooling2D(), layers.Flatten(), layers.Dense(10)])
            shape = (BATCH // WORKERS, 28, 28, 1)
        else:
            model = tf.keras.Sequential([
                layers.Input((784,)), layers.Dense(512, activation="relu"),
                layers.Dense(512, activation="relu"), layers.Dense(10)])
            shape = (BATCH // WORKERS, 784)
        weights = model.trainable_variables
    x = tf.random.uniform(shape)
    y = tf.random.uniform((BATCH // WORKERS,), maxval=10, dtype=tf.int64)

    def replica(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            loss = tf.reduce_sum(losses) / BATCH
        gradients = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        for w, g in zip(weights, context.all_reduce("sum", gradients)):
            w.assign_sub(0.01 * g)
        return loss

    @tf.function
    def step():
        return strategy.run(replica, (x, y))

    times = common.measure_fixed(lambda: step().numpy(), 2 if args.model == "cnn" else 20, 12)
    if rank == 0:
        common.report_times("tensorflow", tf.__version__, args, "multi_worker_2_workers", times)


def main():
    if "TF_CONFIG" in os.environ:
        work(json.loads(os.environ["TF_CONFIG"])["task"]["index"])
        return
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    tasks = [subprocess.Popen([sys.executable, *sys.argv], env={
        **os.environ, "TF_CONFIG": json.dumps({
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": i}})}) for i in range(WORKERS)]
    sys.exit(max(t.wait() for t in tasks))


if __name__ == "__main__":
    main()
