"""Keras' package in a script of TensorFlow's (`python -m berth`): layers in maps of tf.data, what a function builds."""
import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
START = """
import keras, numpy as np, tensorflow as tf
from keras import layers
x = np.arange(2 * 4 * 6 * 3, dtype="f").reshape(2, 4, 6, 3)
def ones(layer, **kwargs):  # of each element alone, and of a batch
    data = tf.data.Dataset.from_tensor_slices(x)
    return ([tuple(v.shape) for v in data.map(lambda v: layer(v, **kwargs))][0],
            [tuple(v.shape) for v in data.batch(2).map(lambda v: layer(v, **kwargs))][0])
"""


def run(script, tmp_path, **environment):
    path = tmp_path / "script.py"
    path.write_text(START + textwrap.dedent(script))
    done = subprocess.run([sys.executable, "-m", "berth", str(path)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "KERAS_BACKEND": "berth", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_layers_of_pictures_work_in_a_map(tmp_path):
    run("""
    assert ones(layers.Rescaling(2.0)) == ((4, 6, 3), (2, 4, 6, 3))
    assert ones(layers.Resizing(3, 5)) == ((3, 5, 3), (2, 3, 5, 3))
    assert ones(layers.Equalization()) == ((4, 6, 3), (2, 4, 6, 3))
    for made in (layers.RandomFlip(seed=1), layers.RandomRotation(0.1, seed=1), layers.RandomZoom(0.2, seed=1),
                 layers.RandomElasticTransform(seed=1), layers.RandomErasing(seed=1)):
        assert ones(made, training=True) == ((4, 6, 3), (2, 4, 6, 3)), made
    assert ones(layers.RandomCrop(2, 3, seed=1), training=True) == ((2, 3, 3), (2, 2, 3, 3))
    resized = next(iter(tf.data.Dataset.from_tensors(x).map(layers.Resizing(2, 3))))
    np.testing.assert_allclose(resized[0, :, :, 0], [[10.5, 16.5, 22.5], [46.5, 52.5, 58.5]])
    mixed = next(iter(tf.data.Dataset.from_tensors({"images": x, "labels": np.eye(2, dtype="f")}).map(
        lambda d: layers.MixUp(seed=1)(d, training=True))))
    np.testing.assert_allclose(np.sum(mixed["labels"], 1), 1, rtol=1e-6)
    """, tmp_path)


def test_layers_of_texts_and_numbers_work_in_a_map(tmp_path):
    run("""
    texts = tf.data.Dataset.from_tensor_slices(["a cat sat", "the dog ran far", "cat and dog"] * 4)
    vectors = layers.TextVectorization(max_tokens=20, output_sequence_length=5)
    vectors.adapt(texts)
    assert next(iter(texts.batch(3).map(vectors))).numpy().tolist() == [
        [9, 3, 5, 0, 0], [4, 2, 6, 7, 0], [3, 8, 2, 0, 0]]
    known = layers.StringLookup()
    known.adapt(["a cat sat", "cat and dog"])
    assert next(iter(texts.batch(3).map(known))).numpy().tolist() == [2, 0, 1]
    assert next(iter(texts.batch(3).map(layers.Hashing(7)))).numpy().tolist() == [4, 2, 2]
    numbers = tf.data.Dataset.range(6).batch(6)
    assert next(iter(numbers.map(layers.IntegerLookup(vocabulary=[1, 3, 5])))).numpy().tolist() == [0, 1, 0, 2, 0, 3]
    assert next(iter(numbers.map(layers.Discretization(bin_boundaries=[1.0, 3.0])))).numpy().tolist() == [0, 1, 1, 2, 2, 2]
    """, tmp_path)


def test_a_function_builds_an_optimizer_and_layers_in_its_first_call(tmp_path):
    run("""
    model, other = keras.Sequential([layers.Dense(4), layers.Dense(1)]), keras.Sequential([layers.Dense(4), layers.Dense(1)])
    optimizer, eager = keras.optimizers.Adam(0.1), keras.optimizers.Adam(0.1)
    batch = x.reshape(4, 36) / 100
    def step(model, optimizer, batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(batch) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
        return loss
    traced = tf.function(lambda batch: step(model, optimizer, batch))
    traced(batch)
    assert len(optimizer.variables) == 2 + 2 * 4 and len(model.weights) == 4
    other(batch)
    for a, b in zip(other.weights, model.weights):
        a.assign(b)
    eager.build(other.trainable_weights)
    for a, b in zip(eager.variables, optimizer.variables):
        a.assign(b)
    np.testing.assert_allclose([traced(batch) for _ in range(5)], [step(other, eager, batch) for _ in range(5)], rtol=1e-5)
    assert traced.experimental_get_tracing_count() == 1
    """, tmp_path)


def test_functions_of_tensorflow_take_variables_of_keras(tmp_path):
    run("""
    v, rows = keras.Variable(np.arange(6, dtype="f").reshape(2, 3)), keras.Variable(np.array([1, 0], "int32"))
    n = v.numpy()
    for mine, expected in [
            (tf.cast(v, tf.int32), n.astype(int)), (tf.matmul(tf.ones((1, 2)), v), n.sum(0, keepdims=True)),
            (tf.add(v, 1.0), n + 1), (tf.reshape(v, [-1]), n.ravel()), (tf.gather(v, rows), n[::-1]),
            (tf.maximum(v, 2.0), np.maximum(n, 2)), (tf.where(v > 2.0, v, 0.0), np.where(n > 2, n, 0)),
            (tf.clip_by_value(v, 1.0, 3.0), np.clip(n, 1, 3)), (tf.argmax(v, 1), [2, 2]), (tf.expand_dims(v, 0), n[None]),
            (tf.pad(v, [[1, 1], [0, 0]]), np.pad(n, [[1, 1], [0, 0]])), (tf.nn.moments(v, [0])[0], n.mean(0)),
            (tf.concat([v, v], 0), np.concatenate([n, n])), (tf.stack([v, v]), np.stack([n, n])),
            (tf.function(lambda a: tf.tile(a, [1, 2]))(v), np.tile(n, [1, 2]))]:
        np.testing.assert_allclose(mine, expected)
    assert tf.is_tensor(v) and tf.cast(v, tf.int32).dtype == tf.int32
    class Count(keras.metrics.Metric):  # whose result is a variable
        def __init__(self):
            super().__init__()
            self.count = self.add_variable(shape=(), initializer="zeros", name="count")
        def update_state(self, y_true, y_pred, sample_weight=None):
            self.count.assign_add(1.0)
        def result(self):
            return self.count
    class Own(keras.Model):  # whose step makes what it needs, and does not call the model
        def __init__(self):
            super().__init__()
            self.inner = keras.Sequential([layers.Dense(2), layers.Dense(1)])
        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.inner(data) ** 2)
            gradients = tape.gradient(loss, self.inner.trainable_weights)
            self.optimizer.apply(gradients, self.inner.trainable_weights)
            return {"loss": loss}
    own = Own()
    own.compile(keras.optimizers.Adam(0.1))
    losses = own.fit(tf.data.Dataset.from_tensor_slices(x.reshape(8, 18) / 100).batch(4), epochs=4, verbose=0).history["loss"]
    assert losses == sorted(losses, reverse=True) and len(losses) == 4
    import warnings
    plain = keras.Sequential([layers.Dense(1)])
    plain.compile("sgd", "mse", metrics=[Count()])
    history = plain.fit(np.ones((10, 3), "f"), np.ones((10, 1), "f"), batch_size=2, epochs=2, verbose=0).history
    assert history["count"] == [5.0, 5.0]
    empty = tf.data.Dataset.from_tensor_slices((np.ones((0, 3), "f"), np.ones((0, 1), "f"))).batch(2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        logs = plain.fit(np.ones((10, 3), "f"), np.ones((10, 1), "f"), validation_data=empty, verbose=0).history
    assert set(logs) == {"loss", "count"} and any("ran out of data" in str(w.message) for w in said)
    try:
        plain.fit(empty, verbose=0)
    except ValueError as error:
        assert "no batches" in str(error)
    else:
        assert False
    """, tmp_path)


def test_checkpoints_hold_models_and_optimizers_of_keras(tmp_path):
    run("""
    import os
    data, targets = np.random.default_rng(0).random((32, 4)).astype("f"), np.ones((32, 1), "f")
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.scale = layers.Dense(3), layers.Dense(1), tf.Variable(2.0)
        def call(self, v):
            return self.b(tf.nn.tanh(self.a(v))) * self.scale
    def made():
        model, optimizer = Own(), keras.optimizers.Adam(0.01)
        model.compile(optimizer, "mse")
        model(data)
        return model, optimizer, tf.Variable(0, dtype=tf.int64)
    model, optimizer, step = made()
    model.fit(data, targets, epochs=2, verbose=0)
    model.scale.assign(5.0)
    step.assign(7)
    path = tf.train.Checkpoint(step=step, optimizer=optimizer, net=model).save("FOLDER/point")
    other, its, count = made()
    tf.train.Checkpoint(step=count, optimizer=its, net=other).restore(path).assert_existing_objects_matched()
    assert (int(count), int(its.iterations), float(other.scale)) == (7, 2, 5.0)
    same = [m.fit(data, targets, shuffle=False, epochs=2, verbose=0).history["loss"] for m in (model, other)]
    assert same[0] == same[1]
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), "FOLDER/kept", max_to_keep=2)
    for _ in range(3):
        manager.save()
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-2", "ckpt-3"]
    """.replace("FOLDER", str(tmp_path)), tmp_path)


def test_each_batch_of_a_dataset_in_python_is_seen_once(tmp_path):
    run("""
    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return 12
        def __getitem__(self, i):
            return np.full((2, 1), i, "f"), np.zeros((2, 1), "f")
    def numbers():
        for i in range(100):
            yield np.full((2, 1), i, "f"), np.zeros((2, 1), "f")
    class Seen(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.total = 0.0
        def on_train_batch_end(self, batch, logs=None):
            seen.append(round(logs["loss"] * (batch + 1) - self.total))
            self.total = logs["loss"] * (batch + 1)
    import contextlib
    for strategy in (None, tf.distribute.MirroredStrategy(["/CPU:0"])):
        with strategy.scope() if strategy else contextlib.nullcontext():
            model = keras.Sequential([keras.Input((1,)), layers.Dense(1, kernel_initializer="ones", trainable=False)])
            model.compile("sgd", "mae")
        for options in ({}, {"workers": 2}, {"workers": 3, "max_queue_size": 3}):
            seen = []
            model.fit(Rows(**options), epochs=2, shuffle=False, verbose=0, callbacks=[Seen()])
            assert seen == 2 * list(range(12)), (strategy, options, seen)
            seen = []
            model.fit(Rows(**options), epochs=2, shuffle=True, verbose=0, callbacks=[Seen()])
            assert sorted(seen[:12]) == sorted(seen[12:]) == list(range(12)), (strategy, options, seen)
        seen = []
        model.fit(numbers(), epochs=2, steps_per_epoch=4, verbose=0, callbacks=[Seen()])
        assert seen == list(range(8)), seen
    """, tmp_path)


def test_weights_of_classes_and_texts_reach_datasets(tmp_path):
    run("""
    data, y = np.random.default_rng(0).random((32, 4)).astype("f"), np.arange(32) % 2
    for targets, n, loss in ((y[:, None].astype("f"), 1, "mse"), (np.eye(2, dtype="f")[y], 2, "mse"),
                             (y, 2, keras.losses.SparseCategoricalCrossentropy(from_logits=True))):
        model = keras.Sequential([keras.Input((4,)), layers.Dense(n, kernel_initializer="ones")])
        model.compile(keras.optimizers.SGD(0.0), loss)
        a, b = (model.fit(*given, verbose=0, class_weight={0: 1.0, 1: 3.0}).history["loss"] for given in (
            (tf.data.Dataset.from_tensor_slices((data, targets)).batch(32),), (data, targets)))
        np.testing.assert_allclose(a, b, rtol=1e-6)
    vectors = layers.TextVectorization(output_sequence_length=3)
    vectors.adapt(["a b", "b c"])
    text = keras.Input((), dtype="string")
    model = keras.Model(text, vectors(text))
    assert model.predict(tf.constant(["a b c", "c"]), verbose=0).tolist() == [[4, 2, 3], [3, 0, 0]]
    plain = keras.Sequential([layers.Dense(1)])
    plain.compile("sgd", "mse")
    plain.fit(data, y, verbose=0, callbacks=[keras.callbacks.TensorBoard("FOLDER/board", histogram_freq=1)])
    import os
    assert b"graph_keras_model" in b"".join(open("FOLDER/board/train/" + f, "rb").read() for f in os.listdir("FOLDER/board/train"))
    """.replace("FOLDER", str(tmp_path)), tmp_path)


def test_two_replicas_train_as_one_device_does(tmp_path):
    # What losses, optimizers and steps of one's own compute in replicas adds up to the whole batch.
    run("""
    import contextlib
    r = np.random.default_rng(0)
    data, weights = r.random((20, 4)).astype("f"), np.linspace(0.5, 1.5, 20).astype("f")
    y = (data.sum(1, keepdims=True) > 2).astype("f")
    class Own(keras.Model):
        def __init__(self, net):
            super().__init__()
            self.net = net
        def call(self, v, training=None):
            return self.net(v)
        def train_step(self, batch):
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=batch[1], y_pred=self(batch[0], training=True))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {}
    def net(**options):
        made = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="tanh", **options), layers.Dense(1)])
        for i, v in enumerate(made.trainable_weights):
            v.assign(np.cos(np.arange(int(np.prod(v.shape))) + i).reshape(v.shape) * 0.5)
        return made
    sgd = lambda **options: keras.optimizers.SGD(0.1, **options)
    rows = tf.data.Dataset.from_tensor_slices
    cases = [
        dict(x=rows((data, y)).batch(7)), dict(x=rows((data, y, weights)).batch(7)), dict(loss="sum"),
        dict(make=lambda: Own(net())), dict(make=lambda: Own(net()), x=rows((data, y)).batch(7)),
        dict(optimizer=lambda: sgd(use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=2)),
        dict(optimizer=lambda: sgd(gradient_accumulation_steps=2)), dict(optimizer=lambda: sgd(global_clipnorm=0.05)),
        dict(make=lambda: net(kernel_regularizer="l2", activity_regularizer="l1")), dict(sample_weight=weights),
        dict(class_weight={0: 1.0, 1: 3.0}), dict(x=rows((data, y)).batch(6), class_weight={0: 1.0, 1: 3.0})]
    def trained(strategy, make=net, optimizer=sgd, loss="sum_over_batch_size", x=None, **options):
        with strategy.scope() if strategy else contextlib.nullcontext():
            model = make()
            model.compile(optimizer() if loss != "sum" else keras.optimizers.SGD(0.005),
                          keras.losses.MeanSquaredError(reduction=loss), metrics=["mae"])
        given = (x,) if x is not None else (data, y)
        options |= {} if x is not None else {"batch_size": 8, "shuffle": False}
        losses = model.fit(*given, epochs=2, verbose=0, **options).history.get("loss", [])
        return [*losses, *model.evaluate(data, y, batch_size=7, verbose=0), *model.predict(data[:1], verbose=0).ravel(),
                *np.concatenate([w.ravel() for w in model.get_weights()])]
    for case in cases:
        one, two = trained(None, **case), trained(tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"]), **case)
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=1e-6, err_msg=str(case))
    strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
    numbers = np.arange(7, dtype="f").reshape(7, 1)
    for batch in strategy.experimental_distribute_dataset(rows(numbers).batch(7)):  # 4 and 3 of them
        losses = strategy.run(lambda v: tf.nn.compute_average_loss(tf.reduce_sum(v, -1)), args=(batch,))
        assert float(strategy.reduce("sum", losses, axis=None)) == 3.0
    """, tmp_path, BERTH_SIM="GPUx2")


def test_words_are_counted_within_a_model(tmp_path):
    run("""
    texts, y = tf.constant(["a b b", "c", "b c", ""]), tf.constant([1, 0, 1, 0])
    words = ["b", "c", "a"]
    counts = np.array([[0, 2, 0, 1], [0, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]], "f")  # the first: words that are not there
    weights = {"multi_hot": np.minimum(counts, 1), "count": counts, "tf_idf": counts * [0, 0.5, 2, 4]}
    for mode, want in weights.items():
        given = {"idf_weights": [0.5, 2, 4]} if mode == "tf_idf" else {}
        layer = layers.TextVectorization(output_mode=mode, vocabulary=words, **given)
        np.testing.assert_allclose(layer(texts), want, rtol=1e-6)
        rows = tf.strings.split(texts)
        np.testing.assert_allclose(layers.StringLookup(output_mode=mode, vocabulary=words, **given)(rows), want, rtol=1e-6)
        model = keras.Sequential([layer, layers.Dense(1, activation="sigmoid", kernel_initializer="zeros")])
        model.compile("sgd", "binary_crossentropy")
        data = tf.data.Dataset.from_tensor_slices((texts, y)).batch(2)
        losses = model.fit(data, epochs=3, verbose=0).history["loss"]
        assert losses[2] < losses[0] and np.isclose(losses[0], np.log(2), rtol=0.05), losses
        assert model.predict(texts, verbose=0).shape == (4, 1)
    """, tmp_path)


def test_scripts_compare_the_version_of_tensorflow(tmp_path):
    run("""
    import berth
    numbers = [int(n) for n in tf.__version__.split("+")[0].split(".")]
    assert numbers >= [2, 8] and tf.version.VERSION == tf.__version__ and berth.__version__ in tf.__version__
    """, tmp_path)
