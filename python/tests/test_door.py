"""What values become on their way in: dtypes, text, subscripts, structures, arguments, logs."""
import collections
import copy
import gzip
import json

import berth as tf
import numpy as np
import pytest


def shown(t):
    values = t.numpy()
    return t.dtype.name, values if isinstance(values, bytes) else values.tolist()


@pytest.mark.parametrize("value, dtype, expected", [
    (np.float64(1.1), "float64", 1.1), ([np.float64(1.1), 2], "float64", [1.1, 2.0]), ([2, np.float64(1.5)], "float32", [2, 1.5]),
    ([1, 2.5], "float32", [1, 2.5]), ([np.int64(3)], "int32", [3]), ([1, 2**31], "int64", [1, 2**31]),
    (np.array([1, 2], ">i4"), "int32", [1, 2]), (np.array([1.5], ">f8"), "float64", [1.5]),
    (np.array([[1, 2], [3, 4]], ">f4").T[::-1], "float32", [[2, 4], [1, 3]]), (b"a\0\0", "string", b"a\0\0"),
    (["a\0", b"\0"], "string", [b"a\0", b"\0"]), (np.array([b"a\0"], object), "string", [b"a\0"]), ([[], []], "float32", [[], []]),
    ([1j, 1], "complex128", [1j, 1]), ([[True], [np.bool_(False)]], "bool", [[True], [False]])])
def test_values_have_the_dtypes_of_tensorflow(value, dtype, expected):
    assert shown(tf.constant(value)) == (dtype, expected)
    if dtype != "string":
        assert shown(tf.Variable(value)) == (dtype, expected)


@pytest.mark.parametrize("value, dtype, text", [
    (["a", 1], None, "one kind"), ([True, 1], None, "one kind"), ([1, None], None, "one kind"), (1j, "float32", "float32"),
    (1.5, "int32", "int32"), (1, "bool", "bool"), ("a", "int32", "int32"), (1, "string", "string"), (2**64, None, "64 bits"),
    (np.array(["2020"], "M8[Y]"), None, "datetime64"), ([[1], [2, 3]], None, "equal lengths"),
    (np.array([1, 2], object), None, "text")])
def test_values_that_fit_no_tensor_are_errors_that_say_so(value, dtype, text):
    with pytest.raises((TypeError, ValueError), match=text):
        tf.constant(value, dtype)


def test_a_list_within_itself_is_an_error():
    cyclic = []
    cyclic.append(cyclic)
    with pytest.raises((TypeError, ValueError), match="lists within lists"):
        tf.constant(cyclic)


def test_text_without_utf8_keeps_the_class_of_its_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\\xff"):
        tf.strings.to_number(tf.constant(b"\xff"))
    with pytest.raises(UnicodeEncodeError):
        tf.constant("\ud800")
    assert shown(tf.constant([], tf.string)) == ("string", [])


def test_arrays_beside_a_tensor_take_its_dtype():
    f, i = tf.ones(2), tf.constant([1, 2])
    assert shown(f + np.ones(2)) == shown(np.ones(2) + f) == ("float32", [2, 2])
    assert shown(np.float64(1.5) * f) == ("float32", [1.5, 1.5])
    assert shown(i + np.array([1, 2], "uint64")) == ("int32", [2, 4])
    assert shown(i == np.array([1, 3], object)) == ("bool", [True, False])
    assert shown(tf.maximum(np.ones(2), f)) == ("float32", [1, 1])
    assert shown(tf.concat([np.ones(1), f], 0)) == ("float32", [1, 1, 1])
    assert shown(tf.add(np.float64(2), np.float64(3))) == ("float64", 5)
    assert shown(f + True) == ("float32", [2, 2]) and shown(~i) == ("int32", [-2, -3])
    for other in (2**31, np.array([0.5, 1]), np.array(["2020"] * 2, "M8[Y]"), [1.5, 2]):
        with pytest.raises((TypeError, ValueError)):
            i + other
        with pytest.raises((TypeError, ValueError)):
            i == other  # noqa: B015
    assert (i == None) is False  # noqa: E711
    v = tf.Variable(tf.zeros(2))
    assert shown(v.assign(np.array([1, 2], ">f8")).read_value()) == ("float32", [1, 2])
    with pytest.raises(TypeError):
        hash(i)
    assert {i.ref(): 1}[i.ref()] == 1


@pytest.mark.parametrize("key", [1.9, "1", True, slice(None, 1.5), np.float64(1), (0, 1.0)])
def test_subscripts_are_whole_numbers(key):
    with pytest.raises((TypeError, ValueError)):
        tf.constant([[1, 2], [3, 4]])[key]


def test_lists_are_tensors_in_data_sets():
    slices, whole = tf.data.Dataset.from_tensor_slices, tf.data.Dataset.from_tensors
    assert slices([2.0, 3.0]).element_spec.dtype == tf.float32 and slices([2, 3]).element_spec.dtype == tf.int32
    assert slices(([[1], [2]], ["a\0", "b"])).element_spec[0].shape.as_list() == [1]
    assert [v.numpy() for _, v in slices(([1, 2], ["a\0", "b"]))] == [b"a\0", b"b"]
    assert whole([[1, 2], [3, 4]]).element_spec.shape.as_list() == [2, 2]
    made = tf.data.Dataset.range(1).map(lambda x: {"b": [x, x], "a": 1.5})
    assert list(made.element_spec) == ["b", "a"] and made.element_spec["b"].shape.as_list() == [2]
    assert made.element_spec["a"].dtype == tf.float32 and [int(v) for v in next(iter(made))["b"]] == [0, 0]


def test_data_sets_without_elements_know_their_structure():
    r = tf.data.Dataset.range
    a = tf.data.Dataset.zip((r(0), r(3))).map(lambda a, b: a * b)
    assert [int(x) for x in a.concatenate(r(3))] == [0, 1, 2] and a.element_spec.dtype == tf.int64
    b = r(0).scan(tf.constant(1.0), lambda s, x: (s, (s, x)))
    assert [s.dtype for s in b.element_spec] == [tf.float32, tf.int64]


def test_structures_keep_order_and_class():
    c = tf.constant
    assert list(tf.function(lambda x: {"z": x, "a": x + 1})(c(1)).items()) == [("z", 1), ("a", 2)]
    assert type(tf.function(lambda d: d)(collections.OrderedDict(x=c(1)))) is collections.OrderedDict


def test_ranges_are_lists_of_functions_and_tensors_of_data_sets():
    made = tf.function(lambda: {"a": range(2)})()["a"]
    assert [int(v) for v in made] == [0, 1] and isinstance(made, list)
    assert tf.nest.flatten([range(2), 5]) == [0, 1, 5]
    assert [v.shape for v in tf.data.Dataset.from_tensors(range(3))] == [[3]]
    assert [int(v) for v in tf.data.Dataset.from_tensor_slices(range(3))] == [0, 1, 2]
    one = tf.data.Dataset.from_generator(lambda: iter([(np.arange(2),)]), tf.float32)
    assert [v.shape for v in one] == [[1, 2]]
    assert int(tf.reduce_mean(np.zeros(0, "int16"))) == 0


def test_reduce_retracing_opens_dimensions_that_differ():
    for reduces, traces in ((False, 4), (True, 2)):
        f = tf.function(lambda x: tf.reduce_sum(x), reduce_retracing=reduces)
        assert [int(f(tf.ones(n, tf.int32))) for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
        assert f.experimental_get_tracing_count() == traces


def test_arguments_have_effects(tmp_path):
    with gzip.open(tmp_path / "c.csv.gz", "wt") as f:
        f.write("1.0,2.0\n")
    rows = tf.data.experimental.CsvDataset(str(tmp_path / "c.csv.gz"), [tf.float32, tf.float32], compression_type="GZIP")
    assert [float(v) for v in next(iter(rows))] == [1, 2]
    np.testing.assert_array_equal(tf.einsum("ij,jk->ik", tf.ones([2, 3]), tf.ones([3, 2])), np.full((2, 2), 3))
    with pytest.raises(ValueError, match="shape invariant"):
        tf.function(lambda: tf.while_loop(lambda x: True, lambda x: x, [tf.ones(2)], [tf.TensorShape([3])]))()
    model = dense()
    with pytest.raises(ValueError, match="batch_size is 0"):
        model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=0)
    whole = model.test_on_batch(np.ones((2, 2)), np.array([[0.0], [2.0]]))
    assert model.test_on_batch(np.ones((2, 2)), np.array([[0.0], [2.0]]), sample_weight=np.array([0.0, 3.0])) == 3 * whole
    with pytest.raises(NotImplementedError, match="reader_func"):
        tf.data.Dataset.range(1).snapshot(str(tmp_path), reader_func=len)
    with pytest.raises(AttributeError, match="dtype of TensorFlow"):
        tf.int4


def dense():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(2,))])
    model.compile("sgd", "mse")
    return model


def test_models_take_doubles_bools_and_whole_numbers():
    model = dense()
    model.set_weights([np.ones((2, 1)), np.ones(1, int)])
    for dtype, expected in (("float64", 3), ("bool", 3), (">i2", 3), ("uint8", 3)):
        assert model.predict(np.ones((1, 2), dtype), verbose=0).tolist() == [[expected]]
    data = tf.data.Dataset.from_tensor_slices((np.ones((4, 2)), np.ones((4, 1)))).batch(2)
    assert {"loss", "val_loss"} <= model.fit(data, validation_data=data, verbose=0).history.keys()


def test_an_epoch_that_runs_out_of_data_ends(capfd):
    batches = []

    class Counts(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            batches.append(batch)
    data = tf.data.Dataset.from_tensor_slices((np.ones((6, 2), "float32"), np.ones((6, 1), "float32"))).batch(2)
    dense().fit(data, epochs=2, steps_per_epoch=5, verbose=0, callbacks=[Counts()])
    assert batches == [0, 1, 2] * 2 and "ended after 3 of the 5 steps" in capfd.readouterr().err


def test_logs_of_a_batch_are_its_own():
    seen, kept, reads = [], [], []
    looks = [str, lambda x: x.copy(), lambda x: list(x.values()), json.dumps, dict, copy.copy, lambda x: {**x}, lambda x: x | {}]

    class Looks(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch < len(looks):
                seen.append(looks[batch](logs))
            kept.append(logs)
            self.last = logs["loss"]
            reads.append(self.last)
    x = np.arange(24, dtype="float32").reshape(12, 2) / 24
    model = dense()
    model.fit(x, np.ones((12, 1)), batch_size=1, shuffle=False, verbose=0, callbacks=[Looks()])
    assert len({logs["loss"] for logs in kept}) == 12 and [logs["loss"] for logs in kept] == reads
    assert all("loss" in look if not isinstance(look, list) else len(look) == 1 for look in seen)

    class Keeps(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            kept.append(logs)
    del kept[:]
    dense().fit(x, np.ones((12, 1)), batch_size=1, shuffle=False, verbose=0, callbacks=[Keeps()])
    assert [logs["loss"] for logs in kept] == reads


def test_constants_go_to_the_device_of_a_scope(run_script):
    assert run_script("""
import berth as tf, numpy as np
with tf.device("/GPU:1"):
    made = [tf.constant(np.ones(3, "float32")), tf.constant([1, 2], tf.int64), tf.constant(1.5, tf.float64),
            tf.convert_to_tensor(np.arange(3)), tf.Variable(np.ones(3)), tf.constant(np.array(2))]
print({t.device[-5:] for t in made}, tf.constant(np.ones(3)).device[-5:])
""", simulate="GPUx2").stdout.strip() == "{'GPU:1'} CPU:0"


def test_every_argument_has_an_effect_or_a_reason():
    import importlib
    import os
    import sys
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/differentials"))
    arguments = importlib.import_module("arguments")
    (unread, _), (same, _) = arguments.ignored(), arguments.without_effect()
    assert unread == [] and same == []


def test_skipped_weights_are_warned_of(tmp_path, capfd):
    def model(units):
        made = tf.keras.Sequential([tf.keras.layers.Dense(units, name="a", input_shape=(2,)), tf.keras.layers.Dense(2, name="b")])
        made.predict(np.ones((1, 2)), verbose=0)
        return made
    model(3).save_weights(str(tmp_path / "w.weights.h5"))
    with pytest.warns(UserWarning, match="keeps its values"):
        model(4).load_weights(str(tmp_path / "w.weights.h5"), skip_mismatch=True)
    model(3).save_weights(str(tmp_path / "w"))
    model(4).load_weights(str(tmp_path / "w"), skip_mismatch=True)
    assert "1 of the model's 4 weights were loaded" in capfd.readouterr().err


def test_steps_that_fit_would_not_call_are_refused():
    class Stepping(tf.keras.Sequential):
        def train_step(self, data):
            return {"loss": tf.constant(0.0)}
    with pytest.raises(NotImplementedError, match="Stepping has a train_step"):
        Stepping([tf.keras.layers.Dense(1)]).compile("sgd", "mse")


def test_a_bad_label_leaves_a_model_on_accelerators_as_it_was(run_script):
    done = run_script("""
import numpy as np, tensorflow as tf
x, y = np.random.rand(64, 4).astype("float32"), np.zeros(64, "int32")
with tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]).scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
before = model.get_weights()
y[40] = 2
for call in (lambda: model.fit(x, y, batch_size=64, verbose=0), lambda: model.evaluate(x, y, batch_size=64, verbose=0)):
    try:
        call()
    except tf.errors.InvalidArgumentError as e:
        assert "label 2 in row 40 of y" in str(e), e
    assert all((a == b).all() for a, b in zip(before, model.get_weights()))
y[40] = 1
print("loss", model.fit(x, y, verbose=0).history["loss"][0] > 0, tf.config.reset_device_error("GPU:0"))
""", simulate="GPUx2")
    assert done.returncode == 0 and "loss True None" in done.stdout, done.stderr


def test_names_inside_tensorflow_are_refused_by_their_name(run_script):
    for name in ("tensorflow.python.eager", "tensorflow.nonsense"):
        done = run_script(f"import {name}")
        assert f"No module named '{'.'.join(name.split('.')[:2])}'" in done.stderr, done.stderr
