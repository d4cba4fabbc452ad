"""Data sets against the same loops of Python."""
import gzip

import berth as tf
import numpy as np
import pytest

Dataset = tf.data.Dataset


def values(d):
    return [np.asarray(v).tolist() for v in d.as_numpy_iterator()]


def test_interleave_takes_turns():
    d = Dataset.range(3).interleave(lambda i: Dataset.from_tensors(i * 10).repeat(4),
                                    cycle_length=2, block_length=2)
    assert values(d) == [0, 0, 10, 10, 0, 0, 10, 10, 20, 20, 20, 20]
    pairs = Dataset.range(3).flat_map(lambda i: Dataset.zip((Dataset.range(i), Dataset.range(i))))
    assert [(int(a), int(b)) for a, b in pairs] == [(0, 0), (0, 0), (1, 1)]
    with pytest.raises(ValueError, match="test_data.py.*TypeError: .* tf.data.Dataset"):
        Dataset.range(3).flat_map(lambda i: i)


def test_windows():
    series = np.arange(8)
    d = Dataset.from_tensor_slices(series).window(4, shift=2, drop_remainder=True)
    assert values(d.flat_map(lambda w: w.batch(4))) == [series[i:i + 4].tolist() for i in (0, 2, 4)]
    assert [values(w) for w in Dataset.range(5).window(2, stride=2)] == [[0, 2], [2, 4], [4]]
    both = Dataset.from_tensor_slices((series, -series)).window(3, drop_remainder=True).flat_map(
        lambda x, y: Dataset.zip((x.batch(3), y.batch(3))))
    assert [(a.numpy().tolist(), b.numpy().tolist()) for a, b in both] == [
        ([0, 1, 2], [0, -1, -2]), ([3, 4, 5], [-3, -4, -5])]


def test_padded_batches():
    lists = [[1], [2, 3, 4], [5, 6]]
    d = Dataset.from_generator(lambda: (np.array(v, "int32") for v in lists),
                               output_signature=tf.TensorSpec([None], tf.int32))
    assert values(d.padded_batch(3)) == [[[1, 0, 0], [2, 3, 4], [5, 6, 0]]]
    assert values(d.padded_batch(2, padded_shapes=[4], padding_values=-1, drop_remainder=True)) == [
        [[1, -1, -1, -1], [2, 3, 4, -1]]]
    buckets = d.bucket_by_sequence_length(lambda v: tf.shape(v)[0], [3], [2, 1])
    assert sorted(map(len, values(buckets))) == [1, 2]


def test_the_smaller_transforms():
    r = Dataset.range(10)
    assert values(r.take_while(lambda i: i < 4)) == [0, 1, 2, 3]
    assert values(r.batch(4).unbatch()) == list(range(10))
    assert values(r.batch(4).rebatch([3])) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert values(r.concatenate(r.take(1))) == [*range(10), 0]
    assert values(r.map(lambda i: i % 3).unique()) == [0, 1, 2]
    assert values(r.scan(np.int64(0), lambda s, e: (s + e, s + e))) == np.cumsum(range(10)).tolist()
    assert values(r.group_by_window(lambda i: i % 2, lambda k, w: w.batch(5), 5)) == [
        [0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert values(Dataset.counter(5, 2).take(3)) == [5, 7, 9]
    assert int(Dataset.range(1).get_single_element()) == 0
    with pytest.raises(tf.errors.InvalidArgumentError):
        r.get_single_element()
    picked = Dataset.choose_from_datasets([Dataset.range(3), Dataset.range(10, 13)],
                                          Dataset.from_tensor_slices(np.array([0, 1, 1, 0])))
    assert values(picked) == [0, 10, 11, 1]
    mixed = values(Dataset.sample_from_datasets([r, Dataset.range(100, 110)], [0.5, 0.5], seed=3))
    assert sorted(mixed) == [*range(10), *range(100, 110)]
    assert int(r.reduce(np.int64(0), lambda a, b: a + b)) == 45
    assert values(r.apply(tf.data.experimental.assert_cardinality(10)).take(1)) == [0]


def test_caches_and_snapshots_read_once(tmp_path):
    for keep in (lambda d: d.cache(), lambda d: d.cache(str(tmp_path / "c")),
                 lambda d: d.snapshot(str(tmp_path / "s"))):
        runs = []

        def elements():
            runs.append(1)
            yield from range(4)

        d = keep(Dataset.from_generator(elements, output_signature=tf.TensorSpec([], tf.int64)))
        assert values(d) == values(d) == [0, 1, 2, 3] and len(runs) == 1


def test_files_are_read(tmp_path):
    for i in range(3):
        (tmp_path / f"part{i}.txt").write_text(f"a{i}\nb{i}\n")
    with gzip.open(tmp_path / "z.gz", "wt") as out:
        out.write("zipped\n")
    names = Dataset.list_files(str(tmp_path / "part*.txt"), shuffle=False)
    assert [n.decode().rsplit("/", 1)[-1] for n in names.as_numpy_iterator()] == [
        "part0.txt", "part1.txt", "part2.txt"]
    lines = [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
    assert list(tf.data.TextLineDataset(names).as_numpy_iterator()) == lines
    read = names.interleave(tf.data.TextLineDataset, cycle_length=3)
    assert list(read.as_numpy_iterator()) == lines[::2] + lines[1::2]
    assert list(tf.data.TextLineDataset(tmp_path / "z.gz", "GZIP").as_numpy_iterator()) == [b"zipped"]
    assert list(tf.data.FixedLengthRecordDataset(str(tmp_path / "part0.txt"), 3)
                .as_numpy_iterator()) == [b"a0\n", b"b0\n"]
    (tmp_path / "t.csv").write_text("x,y,name\n1,2.5,one\n3,,two\n")
    rows = tf.data.experimental.CsvDataset(str(tmp_path / "t.csv"), [tf.int32, 0.5, tf.string],
                                           header=True)
    assert [(int(a), float(b), n.numpy()) for a, b, n in rows] == [
        (1, 2.5, b"one"), (3, 0.5, b"two")]
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        list(tf.data.TextLineDataset(str(tmp_path / "nowhere")))


def _masked_crc(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    crc = 0xFFFFFFFF
    for b in data:
        crc = table[(crc ^ b) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def test_tf_records(tmp_path):
    records = [b"one", b"", b"three" * 100]
    with open(tmp_path / "r.tfrecord", "wb") as out:
        for r in records:
            length = len(r).to_bytes(8, "little")
            out.write(length + _masked_crc(length) + r + _masked_crc(r))
    d = tf.data.TFRecordDataset([str(tmp_path / "r.tfrecord")])
    assert list(d.as_numpy_iterator()) == records


def test_functions_of_python_in_maps():
    def double(a):
        return a * 2

    d = Dataset.range(4).map(lambda i: tf.numpy_function(double, [i], tf.int64))
    assert values(d) == [0, 2, 4, 6]
    d = Dataset.range(4).map(lambda i: tf.py_function(lambda t: tf.tile(tf.reshape(t, [1]), [3]), [i], tf.int64))
    assert values(d) == [[i] * 3 for i in range(4)]
