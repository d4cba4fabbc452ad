"""Models: sequential, functional, subclassed, with steps and callbacks of one's own."""
import berth as tf
import numpy as np
import pytest
from berth import keras

RNG = np.random.default_rng(3)
X = RNG.normal(size=(256, 8)).astype("float32")
Y = (X[:, :4].sum(1) > 0).astype("int64")


def classifier():
    tf.random.set_seed(1)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu", input_shape=(8,)),
                              keras.layers.Dense(2)])
    model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.02),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    return model


def test_a_sequential_model_learns():
    model = classifier()
    history = model.fit(X, Y, epochs=8, verbose=0, validation_split=0.25)
    assert history.history["loss"][-1] < history.history["loss"][0] / 2
    assert set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    loss, accuracy = model.evaluate(X, Y)
    assert accuracy > 0.9 and model.predict(X).shape == (256, 2)
    assert model.count_params() == 8 * 16 + 16 + 16 * 2 + 2


def test_the_loss_is_that_of_numpy():
    model = classifier()
    logits = model(X).numpy()
    p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    assert model.evaluate(X, Y)[0] == pytest.approx(-p[np.arange(256), Y].mean(), rel=1e-5)


def test_datasets_and_generators_feed_fit():
    model = classifier()
    d = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(256, seed=1).batch(32).prefetch(2)
    model.fit(d, epochs=2, verbose=0, validation_data=d)

    def batches():
        for i in range(0, 256, 32):
            yield X[i:i + 32], Y[i:i + 32]

    assert model.fit(batches(), verbose=0).history["loss"][0] < 1


def test_a_functional_model_has_two_inputs():
    a, b = keras.Input(shape=(4,), name="a"), keras.Input(shape=(4,), name="b")
    joined = keras.layers.concatenate([keras.layers.Dense(3, activation=tf.nn.tanh)(a), b])
    model = keras.Model(inputs=[a, b], outputs=keras.layers.Dense(1)(joined))
    model.compile("sgd", "mse")
    y = X.sum(1, keepdims=True)
    by_name = model.fit({"a": X[:, :4], "b": X[:, 4:]}, y, verbose=0, epochs=3).history["loss"]
    assert by_name[-1] < by_name[0]
    assert model.predict([X[:, :4], X[:, 4:]]).shape == (256, 1)


class Scaled(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.inner = keras.layers.Dense(units, use_bias=False)

    def build(self, input_shape):
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="scale")

    def call(self, x, training=False):
        return self.inner(x * self.scale) + (1.0 if training else 0.0)


def test_layers_of_ones_own():
    layer = Scaled(3)
    out = layer(X)
    np.testing.assert_allclose(out.numpy(), X @ layer.inner.kernel.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer(X, training=True).numpy(), out.numpy() + 1, rtol=1e-4, atol=1e-5)
    assert [w.name.split("/")[-1] for w in layer.trainable_variables] == ["scale", "kernel"]
    model = keras.Sequential([Scaled(4), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    losses = model.fit(X, X[:, :1], epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.parts = [keras.layers.Dense(8, activation="relu"), Scaled(2)]

    def call(self, x, training=False):
        for part in self.parts:
            x = part(x, training=training)
        return x


class OwnStep(Net):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss, "twice": loss * 2}


def test_subclassed_models_with_and_without_a_step():
    for kind in (Net, OwnStep):
        tf.random.set_seed(2)
        model = kind()
        model.compile(keras.optimizers.Adam(0.02),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        logs = model.fit(X, Y, epochs=6, verbose=0).history
        assert logs["loss"][-1] < logs["loss"][0]
    np.testing.assert_allclose(logs["twice"], np.multiply(logs["loss"], 2), rtol=1e-5)


def test_steps_of_ones_own_equal_the_engines():
    losses = []
    for kind in (Net, OwnStep):
        tf.random.set_seed(2)
        model = kind()
        model.compile(keras.optimizers.SGD(0.05),
                      keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        losses.append(model.fit(X, Y, epochs=2, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_callbacks_see_and_stop():
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(logs["loss"])

        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                self.model.stop_training = True

    history = classifier().fit(X, Y, epochs=9, batch_size=64, verbose=0, callbacks=[
        Watch(), keras.callbacks.EarlyStopping(monitor="loss", patience=5)])
    assert len(history.epoch) == 2 and len(seen) == 8 and all(v > 0 for v in seen)


def test_what_a_callback_throws_ends_fit():
    class Fails(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        classifier().fit(X, Y, verbose=0, callbacks=[Fails()])


def test_models_are_saved_and_loaded(tmp_path):
    model = classifier()
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model.safetensors")
    again = keras.models.load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    other = classifier()
    model.save_weights(str(tmp_path / "w.safetensors"))
    other.load_weights(str(tmp_path / "w.safetensors"))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_optimizers_metrics_and_losses_stand_alone():
    v = tf.Variable([1.0, 2.0])
    keras.optimizers.SGD(learning_rate=0.5).apply_gradients([(tf.constant([1.0, 1.0]), v)])
    np.testing.assert_allclose(v.numpy(), [0.5, 1.5])
    m = keras.metrics.Mean()
    m.update_state([1.0, 2.0, 6.0])
    assert float(m.result()) == 3
    assert float(keras.losses.MeanSquaredError()([[1.0]], [[3.0]])) == 4
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    assert float(schedule(10)) == pytest.approx(0.05)


def test_errors_name_the_line_of_the_script():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_keras\.py:\d+"):
        classifier().fit(X[:5], Y, verbose=0)


def test_operators_join_values_of_a_functional_model():
    x = keras.Input((8,))
    a, b = keras.layers.Dense(4, name="a")(x), keras.layers.Dense(4, name="b")(x)
    model = keras.Model(x, (a + b) * 2.0 - a / (1.0 + b * b))
    kernel = [model.get_layer(n).get_weights()[0] for n in "ab"]
    p, q = X @ kernel[0], X @ kernel[1]
    np.testing.assert_allclose(model.predict(X), (p + q) * 2 - p / (1 + q * q), rtol=1e-4, atol=1e-5)


def test_variables_that_are_attributes_train():
    class Line(keras.Model):
        def __init__(self):
            super().__init__()
            self.w, self.b = tf.Variable(5.0), tf.Variable(0.0)

        def call(self, x):
            return x * self.w + self.b

    model = Line()
    assert [float(v) for v in model.trainable_variables] == [5, 0]
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(X[:, :1], 3 * X[:, :1] + 2, epochs=20, verbose=0)
    assert abs(float(model.w) - 3) < 0.1 and abs(float(model.b) - 2) < 0.1


def test_several_inputs_go_to_attention_by_position_or_name():
    layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)
    q, v = tf.constant(X[None, :4]), tf.constant(X[None, 4:9])
    np.testing.assert_array_equal(layer(q, v).numpy(), layer(q, value=v, key=v).numpy())
    with pytest.raises(TypeError, match="use_causal"):
        layer(q, v, use_causal=True)


def test_a_checkpoint_of_each_epoch_is_asked_for_in_keras_words(tmp_path):
    path = str(tmp_path / "{epoch}.safetensors")
    classifier().fit(X, Y, epochs=2, verbose=0, callbacks=[
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq="epoch")])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.safetensors", "2.safetensors"]


def test_the_rate_of_a_schedule_is_that_of_the_next_step():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile(keras.optimizers.SGD(keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])), "mse")
    x = np.ones((2, 2), "float32")
    assert float(model.optimizer.learning_rate) == 0.5
    model.fit(x, x[:, :1], batch_size=1, verbose=0)
    assert float(model.optimizer.learning_rate) == 0.25
    model.optimizer.iterations.assign(0)
    assert float(model.optimizer.learning_rate) == 0.5
    with pytest.raises(TypeError, match="a schedule sets the rate"):
        model.optimizer.learning_rate = 0.1
    model.compile(keras.optimizers.SGD(0.5), "mse")
    history = model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))]).history
    np.testing.assert_allclose(history["learning_rate"], [0.1, 0.05])


@pytest.mark.parametrize("shape", ((4, 18), (4, 9, 2), (4, 3, 3, 2)))
def test_batch_normalization_moves_by_the_variance_of_the_batch(shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    layer = keras.layers.BatchNormalization(momentum=0.0)
    layer(x, training=True)
    np.testing.assert_allclose(layer.moving_variance.numpy(), x.reshape(-1, shape[-1]).var(0), rtol=1e-5)


def test_two_numbers_are_rows_and_columns():
    x, layers = tf.ones([1, 6, 6, 1]), keras.layers
    assert layers.ZeroPadding2D((1, 2))(x).shape == (1, 8, 10, 1)
    assert layers.ZeroPadding2D(((0, 1), (2, 0)))(x).shape == (1, 7, 8, 1)
    assert layers.Cropping2D((1, 2))(x).shape == layers.Cropping2D(((1, 1), [2, 2]))(x).shape == (1, 4, 2, 1)
    assert layers.ZeroPadding1D((1, 2))(x[0]).shape == (6, 9, 1)
    assert layers.ZeroPadding3D((1, (0, 2), 0))(x[..., None]).shape == (1, 8, 8, 1, 1)


def test_a_step_that_reads_values_runs_op_by_op():
    class Step(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense, self.seen = tf.keras.layers.Dense(1), tf.keras.metrics.Mean(name="seen")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            self.seen.update_state(loss)
            return {"loss": loss, "seen": self.seen.result()}

    model = Step()
    model.compile(tf.keras.optimizers.SGD(0.1))
    before = tf.debugging.diagnostic_counts().get("untraced", 0)
    x = np.random.default_rng(0).normal(size=(32, 2)).astype("float32")
    history = model.fit(x, x[:, :1], epochs=4, batch_size=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0] and history["seen"][-1] > 0
    assert tf.debugging.diagnostic_counts()["untraced"] == before + 1


def test_backups_after_some_batches(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    x = np.ones((8, 2), "float32")
    for every in (5, "epoch"):
        model.fit(x, x[:, :1], batch_size=1, verbose=0, callbacks=[
            tf.keras.callbacks.BackupAndRestore(str(tmp_path), save_freq=every)])
    with pytest.raises(ValueError, match="save_freq"):
        tf.keras.callbacks.BackupAndRestore(str(tmp_path), save_freq=0)
