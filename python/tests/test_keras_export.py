"""model.export(), keras.export.ExportArchive and TFSMLayer of Keras on Berth, and what a saved module holds; values are TensorFlow's."""
import os
import subprocess
import sys

import berth as tf

PRELUDE = """
import berth as tf, keras, numpy as np
from keras import layers
X = np.random.default_rng(1).normal(size=(6, 8)).astype("float32")
def fixed(model):
    draw = np.random.default_rng(0)
    model.set_weights([abs(draw.normal(size=w.shape)) * .1 for w in model.get_weights()])
    return model
m = fixed(keras.Sequential([keras.Input((8,)), layers.Dense(4), layers.BatchNormalization(), layers.Dense(1)]))
"""


def run(text, folder):
    """What a script prints, in a process of its own, whose Keras is on Berth."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + text], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "KERAS_BACKEND": "berth"})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_exported_models_serve(tmp_path):
    assert run("""
m.export("a", verbose=False)
l = tf.saved_model.load("a")
np.testing.assert_allclose(l.serve(X).numpy().ravel(), [.0694, .0695, .0687, .0414, .0801, .0436], atol=1e-4)
print(sorted(l.signatures), len(l.variables), len(l.trainable_variables))
served, = l.signatures["serving_default"](tf.constant(X[:2])).values()
np.testing.assert_allclose(served.numpy().ravel(), [.0694, .0695], atol=1e-4)
layer = layers.TFSMLayer("a", call_endpoint="serve")
np.testing.assert_allclose(keras.Sequential([keras.Input((8,)), layer]).predict(X[:2], verbose=0).ravel(), [.0694, .0695], atol=1e-4)
print(len(layer.weights))
a, b = keras.Input((8,), name="a"), keras.Input((3,), name="b")
f = fixed(keras.Model({"a": a, "b": b}, {"o": layers.Dense(2)(layers.concatenate([a, b]))}))
f.export("b")
out = tf.saved_model.load("b").serve({"a": X[:2], "b": X[:2, :3]})["o"]
np.testing.assert_allclose(out.numpy().ravel(), [.0672, .2258, .0956, .0814], atol=1e-4)
""", tmp_path)[:2] == ["['serve', 'serving_default'] 8 6", "8"]


def test_archives_have_endpoints_of_their_own(tmp_path):
    assert run("""
archive = keras.export.ExportArchive()
archive.track(m)
archive.add_endpoint("infer", lambda x: m.call(x, training=False), input_signature=[keras.InputSpec(shape=(None, 8), dtype="float32")])
archive.add_endpoint("double", lambda x: m(x) * 2, input_signature=[tf.TensorSpec((None, 8), tf.float32)])
@tf.function
def total(x):
    return tf.reduce_sum(m(x))
total(tf.constant(X))
archive.add_endpoint("total", total)
archive.add_variable_collection("mine", m.trainable_variables)
archive.write_out("c", verbose=False)
l = tf.saved_model.load("c")
np.testing.assert_allclose(l.infer(X[:2]).numpy().ravel(), [.0694, .0695], atol=1e-4)
np.testing.assert_allclose(l.double(X[:2]).numpy().ravel(), [.1388, .1391], atol=1e-4)
np.testing.assert_allclose(float(l.total(tf.constant(X))), .3727, atol=1e-4)
print(sorted(l.signatures), len(l.mine), len(archive.variables))
for bad in (lambda: archive.add_endpoint("total", total), lambda: archive.add_endpoint("q", m.call), lambda: archive.track(3),
            lambda: keras.export.ExportArchive().write_out("d"), lambda: archive.add_variable_collection("v", 3),
            lambda: archive.add_variable_collection("v", [3]), lambda: keras.Sequential([layers.Dense(2)]).export("e"),
            lambda: archive.add_endpoint("r", tf.function(lambda x: x))):
    try:
        bad()
    except ValueError as error:
        print(str(error)[:24])
""", tmp_path) == ["['double', 'infer', 'serving_default', 'total'] 6 8", "Endpoint name 'total' is", "If the `fn` argument pro",
                   "Invalid resource type. E", "No endpoints have been s", "Expected `variables` to ", "Expected all elements in",
                   "The model provided has n", "The provided tf.function"]


class Holder(tf.Module):
    def __init__(self):
        super().__init__()
        self.lists, self.named = [tf.Variable(1.0), tf.Variable(2.0)], {"a": tf.Variable(3.0)}
        self.pair, self.one = (tf.Variable(4.0), tf.Variable(4.5)), tf.Variable(5.0)
        self.same, self.deep, self.inner = self.one, [[tf.Variable(6.0)], {"k": tf.Variable(7.0)}], tf.Module()
        self.inner.w = [tf.Variable(8.0)]

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def add(self, x):
        self.one.assign_add(x)
        return x + self.lists[1] + self.one


def test_saved_modules_hold_variables_as_they_did(tmp_path):
    tf.saved_model.save(Holder(), tmp_path)
    l = tf.saved_model.load(tmp_path)
    assert [float(v) for v in l.lists] == [1, 2] and float(l.named["a"]) == 3 and [float(v) for v in l.pair] == [4, 4.5]
    assert l.same is l.one and float(l.deep[0][0]) == 6 and float(l.deep[1]["k"]) == 7 and float(l.inner.w[0]) == 8
    assert float(l.add(1.0)) == 9 and float(l.add(tf.constant(1.0))) == 10 and float(l.same) == 7
    assert len(l.variables) == 9
