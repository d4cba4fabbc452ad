"""Real Keras on Berth: numbers of rows that neither batches nor replicas divide give what one device gives."""
import importlib.util

import numpy as np
import pytest
from test_keras_backend import run
from test_parameter_servers import Cluster

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")

FOUND = """
class Rows(keras.utils.PyDataset):
    def __init__(self, n, size):
        super().__init__()
        self.n, self.size = n, size
    def __len__(self):
        return -(-self.n // self.size)
    def __getitem__(self, i):
        return x[i * self.size:min(self.n, (i + 1) * self.size)], y[i * self.size:min(self.n, (i + 1) * self.size)]
weights = r.rand(200).astype("float32")
signature = tf.TensorSpec([None, 20]), tf.TensorSpec([None], tf.int32)
def sliced(n, size, *more):
    return tf.data.Dataset.from_tensor_slices((x[:n], y[:n], *(v[:n] for v in more))).batch(size)
KINDS = {
    "arrays": lambda n, size: (x[:n], y[:n]),
    "dataset": lambda n, size: (sliced(n, size),),
    "weights": lambda n, size: (sliced(n, size, weights),),
    "unknown size": lambda n, size: (tf.data.Dataset.from_generator(
        lambda: (Rows(n, size)[i] for i in range(-(-n // size))), output_signature=signature),),
    "repeated": lambda n, size: (sliced(n, size).repeat(),),
    "distributed": lambda n, size: (strategy.experimental_distribute_dataset(sliced(n, size)) if strategy else sliced(n, size),),
    "PyDataset": lambda n, size: (Rows(n, size),)}
def found(n, size, kind):
    # The history of two epochs, what evaluate() gives, and of predict() the shape and the sum.
    keras.utils.set_random_seed(1)
    with strategy.scope() if strategy else keras.name_scope("alone"):
        m = keras.Sequential([keras.Input((20,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(2)])
        m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
                  weighted_metrics=["accuracy"] if kind == "weights" else None)
    steps, size_of = -(-n // size) if kind == "repeated" else None, {"batch_size": size} if kind == "arrays" else {}
    h = m.fit(*KINDS[kind](n, size), epochs=2, shuffle=False, steps_per_epoch=steps, verbose=0, **size_of).history
    e = m.evaluate(*KINDS[kind](n, size), steps=steps, verbose=0, **size_of)
    p = m.predict(KINDS[kind](n, size)[0], steps=steps, verbose=0, **size_of)
    return [*(v for values in h.values() for v in values), *e, p.shape[0], float(np.abs(p).sum()), int(m.optimizer.iterations)]
"""


def test_odd_batches_of_replicas():
    run(FOUND + """
# The last batch has rows for all replicas, for some, and the first one not even that.
cases = [(n, size, kind) for kind in KINDS for n, size in ((21, 8), (17, 8))]
cases += [(n, size, kind) for kind in KINDS for n, size in ((5, 2), (1, 8))]
strategy, expected = None, {}
for case in cases:
    expected[case] = found(*case)
for n in (2, 3):
    strategy = tf.distribute.MirroredStrategy([f"/GPU:{i}" for i in range(n)])
    for case in cases if n == 2 else [c for c in cases if c[2] in ("arrays", "weights")]:
        np.testing.assert_allclose(found(*case), expected[case], rtol=1e-4, err_msg=f"{n} replicas, {case}")
""", BERTH_SIM="GPUx3")


CASES = """
# The last task has no row of the last batch of 17, and none of any batch of 1.
for case in ((21, 8, "dataset"), (17, 8, "dataset"), (17, 8, "weights"), (1, 8, "dataset")):
    print("found", *(f"{v:.5f}" for v in found(*case)))
"""


def test_odd_batches_of_tasks(tmp_path):
    def numbers(out):
        return [float(v) for line in out.splitlines() if line.startswith("found") for v in line.split()[1:]]
    from test_keras_training import WORKERS
    with Cluster(tmp_path, WORKERS + FOUND + CASES + "strategy.leave()\n", workers=2, ps=0, options=()) as cluster:
        for i in range(2):
            status, out = cluster.ended("worker", i)
            assert status == 0, out
    np.testing.assert_allclose(numbers(out), numbers(run("strategy = None" + FOUND + CASES)), rtol=1e-3)
