"""What programs for TensorFlow do that tutorials do not: each was refused here, or had another result."""
import numpy as np
import pytest

import berth as tf


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.int32, tf.complex64, tf.bool])
@pytest.mark.parametrize("make", [tf.convert_to_tensor, tf.constant, lambda v, dtype: tf.Variable(v, dtype=dtype)])
def test_lists_with_tensors_take_the_dtype_that_is_asked_for(make, dtype):
    one = tf.constant(1, tf.int64)
    for value in ([one, one], [[one, one], [one, one]], [tf.Variable(1.0), one]):
        made = make(value, dtype=dtype)
        assert made.dtype == dtype and np.all(made.numpy() == 1), value
    mixed = tf.convert_to_tensor([1.5, one, np.float32(2)], tf.float64)
    assert mixed.dtype == tf.float64 and mixed.numpy().tolist() == [1.5, 1, 2]


def test_lists_with_tensors_take_the_dtype_in_traced_functions():
    @tf.function
    def f(x):
        return tf.convert_to_tensor([-x[0], x[1]], tf.float32), tf.convert_to_tensor([x[0], x[1]])
    asked, plain = f(tf.constant([1, 2]))
    assert asked.dtype == tf.float32 and asked.numpy().tolist() == [-1, 2] and plain.dtype == tf.int32


@pytest.mark.parametrize("first, parse", [
    ("a", lambda x: tf.strings.to_number(x)),
    ("0", lambda x: tf.debugging.check_numerics(1.0 / tf.strings.to_number(x), "zero"))])
def test_a_map_whose_first_element_has_an_error_is_made(first, parse):
    data = tf.data.Dataset.from_tensor_slices([first, "1", "2"]).map(parse)
    assert data.element_spec == tf.TensorSpec((), tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(data)
    assert len(list(data.ignore_errors())) == 2
    assert [b.shape[0] for b in data.ignore_errors().batch(2)] == [2]


def test_a_traced_map_whose_elements_all_have_errors_is_made():
    data = tf.data.Dataset.from_tensors(0.0).map(lambda x: tf.debugging.check_numerics(1.0 / x, "zero"))
    assert list(data.ignore_errors()) == []


def test_a_map_that_no_element_describes_is_refused_at_once():
    with pytest.raises(tf.errors.NotFoundError, match="cannot open"):
        tf.data.Dataset.from_tensor_slices(["/nowhere", "/neither"]).map(tf.io.read_file)
    with pytest.raises(Exception, match="no_such_thing"):
        tf.data.Dataset.range(3).map(lambda x: x.no_such_thing)


def test_an_error_of_a_generator_is_raised_where_it_is_read():
    def fails():
        raise KeyError("later")
        yield 1
    data = tf.data.Dataset.from_generator(fails, output_types=tf.int32).repeat().batch(2)
    with pytest.raises(Exception, match="later"):
        next(iter(data))


def test_variables_keep_their_constraint():
    v = tf.Variable(5.0, constraint=lambda x: tf.clip_by_value(x, 0, 1))
    assert v.constraint(v).numpy() == 1 and tf.Variable(1.0).constraint is None


def test_tables_tell_their_default():
    keys = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    assert tf.lookup.StaticHashTable(keys, -1).default_value.numpy() == -1
    many = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.5, 1.0])
    assert many.default_value.numpy().tolist() == [0.5, 1.0]


def test_elements_of_sparse_tensors_know_their_number_of_axes():
    data = tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense([[0, 1, 0], [2, 0, 3]]))
    assert data.element_spec.shape.rank == 1 and data.batch(2).element_spec.shape.rank == 2
    assert [tf.sparse.to_dense(e).numpy().tolist() for e in data] == [[0, 1, 0], [2, 0, 3]]


def test_questions_about_bytes_are_tensors():
    for ask in (tf.io.is_jpeg, tf.image.is_jpeg):
        assert not ask(b"x").numpy() and ask(b"\xff\xd8\xff").numpy()


def test_limits_and_classes_of_dtypes():
    assert tf.string.as_numpy_dtype is object
    assert float(tf.bfloat16.max) == float(tf.cast(tf.bfloat16.max, tf.bfloat16)) == -float(tf.bfloat16.min)


def test_draws_have_the_defaults_of_tensorflow():
    drawn = tf.random.stateless_parameterized_truncated_normal([1000], [1, 2]).numpy()
    assert abs(drawn).max() <= 2 and drawn.std() > 0.5
    tf.random.set_seed(None)
    assert tf.random.normal([4]).numpy().tolist() != tf.random.normal([4]).numpy().tolist()


def test_files_and_scopes_take_what_programs_give(tmp_path):
    with tf.io.TFRecordWriter(f"{tmp_path}/r.tfrecords/") as writer:
        writer.write(b"x")
    assert list(tf.data.TFRecordDataset(f"{tmp_path}/r.tfrecords").as_numpy_iterator()) == [b"x"]
    assert tf.device("/CPU:0")._device_name == "/CPU:0" and tf.version.GRAPH_DEF_VERSION > 0


def test_numpy_behavior_promotes_beside_numbers_of_python():
    import subprocess
    import sys
    code = """
import berth as tf, berth.experimental.numpy as tnp
tnp.experimental_enable_numpy_behavior()
a = tf.range(3)
for made, dtype, values in ((a + 1.5, "float64", [1.5, 2.5, 3.5]), (1.5 - a, "float64", [1.5, 0.5, -0.5]), (a * 2j, "complex128", [0, 2j, 4j]),
                            (a > 1.5, "bool", [False, False, True]), (1.5 < a, "bool", [False, False, True]), (a == 1.5, "bool", [False] * 3),
                            (a <= 1, "bool", [True, True, False]), (a + 1, "int32", [1, 2, 3])):
    assert made.dtype.name == dtype and made.numpy().tolist() == values, (made, dtype)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
