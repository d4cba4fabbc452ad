"""Text in functions that move elements, in tensor arrays, in branches and as tf.print() writes it; the values are TensorFlow 2.21's."""
import collections
import io
import os

import berth as tf
import numpy as np
import pytest


@pytest.mark.parametrize("name, call, wanted", [
    ("pad", lambda: tf.pad(tf.constant(["a"]), [[0, 2]], constant_values="p"), [b"a", b"p", b"p"]),
    ("pad, default", lambda: tf.pad(tf.constant(["a"]), [[1, 0]]), [b"", b"a"]),
    ("dynamic_stitch", lambda: tf.dynamic_stitch([[1], [0, 2]], [["b"], ["a", "c"]]), [b"a", b"b", b"c"]),
    ("reverse_sequence", lambda: tf.reverse_sequence(tf.constant([["a", "b", "c"]]), [2], seq_axis=1), [[b"b", b"a", b"c"]]),
    ("strided_slice", lambda: tf.strided_slice(tf.constant(["a", "b", "c"]), [0], [3], [2]), [b"a", b"c"]),
    ("shuffle", lambda: tf.sort(tf.strings.length(tf.random.shuffle(tf.constant(["a", "bb", "ccc"])))), [1, 2, 3]),
])
def test_functions_that_move_elements_take_text(name, call, wanted):
    assert call().numpy().tolist() == wanted and tf.function(call)().numpy().tolist() == wanted


def arrays():
    array = tf.TensorArray(tf.string, size=2).write(0, "a").write(1, "b")
    parts = tf.TensorArray(tf.string, size=2, infer_shape=False).split(tf.constant(["a", "b", "c"]), [1, 2])
    rows = tf.TensorArray(tf.string, size=2).unstack(tf.constant(["x", "y"]))
    holes = tf.TensorArray(tf.string, size=2, element_shape=[]).write(1, "z")
    return array.stack(), array.gather([1]), parts.concat(), rows.read(1), holes.stack()


def test_tensor_arrays_hold_text():
    wanted = [[b"a", b"b"], [b"b"], [b"a", b"b", b"c"], b"y", [b"", b"z"]]
    assert [v.numpy().tolist() if v.shape.rank else v.numpy() for v in arrays()] == wanted
    assert [v.numpy().tolist() if v.shape.rank else v.numpy() for v in tf.function(arrays)()] == wanted
    assert tf.TensorArray(tf.string, size=0).stack().numpy().tolist() == []

    @tf.function
    def count(n):
        out = tf.TensorArray(tf.string, size=n)
        for i in tf.range(n):
            if i % 6 == 0:
                said = "both"
            elif i % 2 == 0:
                said = "even"
            else:
                said = tf.strings.as_string(i)
            out = out.write(i, said)
        return out.stack()
    assert count(tf.constant(5)).numpy().tolist() == [b"both", b"1", b"even", b"3", b"even"]


def test_branches_give_text_of_python():
    @tf.function
    def sign(x):
        if x > 0:
            word = "plus"
        else:
            word = "minus"
        return tf.strings.join([word, "!"])
    assert sign(tf.constant(1)).numpy() == b"plus!" and sign(tf.constant(-1)).numpy() == b"minus!"

    @tf.function
    def line(n):
        said = ""
        for i in tf.range(n):
            said = tf.strings.join([said, "x"])
            if i > 1:
                last = "far"
            else:
                last = tf.strings.as_string(i)
        return said, last
    assert [v.numpy() for v in line(tf.constant(2))] == [b"xx", b"1"]
    assert [v.numpy() for v in line(tf.constant(4))] == [b"xxxx", b"far"]


def test_print_shows_text_inside_structures_in_quotes():
    Point = collections.namedtuple("Point", "a b")
    out = io.StringIO()
    tf.print("plain", ["a", tf.constant("t")], {"k": "v"}, ("t", None), (1,), Point(1, "x"), b"y", output_stream=out)
    assert out.getvalue() == """plain ['a', "t"] {'k': 'v'} ('t', None) (1,) Point(a=1, b='x') b'y'\n"""


def test_write_file_makes_folders(tmp_path):
    path = os.path.join(tmp_path, "a", "b", "c.txt")
    tf.io.write_file(path, "one")
    tf.io.write_file(tf.constant(path), tf.constant("two"))
    assert tf.io.read_file(path).numpy() == b"two"
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        tf.io.write_file(path, tf.constant(["a", "b"]))


def test_classes_of_a_resampled_data_set_have_their_dtype():
    for dtype in (tf.int32, tf.int64):
        found = tf.data.Dataset.range(20).rejection_resample(lambda x: tf.cast(x % 2, dtype), [1.0, 0.0], [0.5, 0.5], seed=1)
        assert found.element_spec[0].dtype == dtype and next(iter(found))[0].dtype == dtype


R = tf.io.RaggedFeature


def example(i):
    lists = {"v": range(6), "s": [0, i, 6], "o": [0, 1, 2], "l": [i, 6 - i], "id": [0] * i + [2] * (6 - i)}
    return tf.train.Example(features=tf.train.Features(feature={n: tf.train.Feature(int64_list=tf.train.Int64List(
        value=list(values))) for n, values in lists.items()})).SerializeToString()


@pytest.mark.parametrize("partitions, one, many", [
    ([], [0, 1, 2, 3, 4, 5], [[0, 1, 2, 3, 4, 5]] * 2),
    ([R.RowSplits("s")], [[0, 1], [2, 3, 4, 5]], [[[0, 1], [2, 3, 4, 5]], [[0, 1, 2, 3], [4, 5]]]),
    ([R.RowLengths("l")], [[0, 1], [2, 3, 4, 5]], [[[0, 1], [2, 3, 4, 5]], [[0, 1, 2, 3], [4, 5]]]),
    ([R.ValueRowIds("id")], [[0, 1], [], [2, 3, 4, 5]], [[[0, 1], [], [2, 3, 4, 5]], [[0, 1, 2, 3], [], [4, 5]]]),
    ([R.UniformRowLength(3)], [[0, 1, 2], [3, 4, 5]], [[[0, 1, 2], [3, 4, 5]]] * 2),
    ([R.RowSplits("o"), R.RowSplits("s")], [[[0, 1]], [[2, 3, 4, 5]]],
     [[[[0, 1]], [[2, 3, 4, 5]]], [[[0, 1, 2, 3]], [[4, 5]]]]),
    ([R.UniformRowLength(2), R.RowSplits("s")], [[[0, 1], [2, 3, 4, 5]]], [[[[0, 1], [2, 3, 4, 5]]], [[[0, 1, 2, 3], [4, 5]]]]),
])
def test_ragged_features_are_divided_by_others(partitions, one, many):
    def values(x):
        return x.to_list() if hasattr(x, "to_list") else x.numpy().tolist()
    spec = {"x": R(tf.int64, value_key="v", partitions=partitions), "l": R(tf.int64)}
    assert values(tf.io.parse_single_example(example(2), spec)["x"]) == one
    found = tf.io.parse_example([example(2), example(4)], spec)
    assert values(found["x"]) == many and values(found["l"]) == [[2, 4], [4, 2]]
    assert found["x"].row_splits.dtype == found["l"].row_splits.dtype == tf.int32
    mapped = tf.data.Dataset.from_tensors([example(2), example(4)]).map(lambda s: tf.io.parse_example(s, spec)["x"])
    assert values(next(iter(mapped))) == many
    none = tf.io.parse_example(np.zeros([0], "S1"), spec)["x"]
    assert values(none) == [] and none.shape.rank == 2 + len(partitions)
    longer = R(tf.int64, value_key="v", partitions=partitions, row_splits_dtype=tf.int64)
    assert tf.io.parse_example([example(2)], {"x": longer})["x"].row_splits.dtype == tf.int64


def test_partitions_of_ragged_features_are_checked():
    with pytest.raises(TypeError, match="partitions has 's'; expected RaggedFeature.RowSplits"):
        R(tf.int64, partitions=["s"])
