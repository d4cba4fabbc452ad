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


TEXT = {
    "upper": (lambda s: tf.strings.upper(s), [b"A,1", b"B,22"]),
    "split": (lambda s: tf.strings.split(s, ",")[0], [b"a", b"b"]),
    "to_number": (lambda s: tf.strings.to_number(tf.strings.substr(s, 2, 2)), [1, 22]),
    "length": (lambda s: tf.strings.length(s), [3, 4]),
    "join": (lambda s: tf.strings.join([s, s]), [b"a,1a,1", b"b,22b,22"]),
    "plus": (lambda s: s + "!", [b"a,1!", b"b,22!"]),
    "regex": (lambda s: tf.strings.regex_replace(s, "a", "b"), [b"b,1", b"b,22"]),
    "decode_raw": (lambda s: tf.io.decode_raw(s, tf.uint8)[0], [97, 98]),
    "decode_csv": (lambda s: tf.io.decode_csv(s, ["", [0]])[1], [1, 22]),
    "numpy_function": (lambda s: tf.numpy_function(lambda b: np.int64(len(b)), [s], tf.int64), [3, 4]),
    "py_function": (lambda s: tf.py_function(lambda t: len(t.numpy()), [s], tf.int32), [3, 4]),
    "if": (lambda s: 1 if tf.strings.length(s) > 3 else 2, [2, 1]),
}


@pytest.mark.parametrize("calls", [None, 2, tf.data.AUTOTUNE])
@pytest.mark.parametrize("name", TEXT)
def test_maps_that_cannot_be_traced_run_op_by_op(name, calls):
    fn, expected = TEXT[name]
    d = Dataset.from_tensor_slices(["a,1", "b,22"]).map(fn, num_parallel_calls=calls)
    assert values(d) == expected and len(d) == 2
    assert "op by op from Python" in d.explain()


def test_explain_says_which_maps_are_plans():
    d = Dataset.range(4).map(lambda x: x + 1).map(lambda x: tf.strings.as_string(x))
    assert values(d) == [b"1", b"2", b"3", b"4"]
    first, second = [line for line in d.explain().splitlines() if line.startswith("  ") and "map (" in line]
    assert "op by op from Python" in first and "as a plan" in second


def test_explain_names_the_slow_stage():
    import time

    def slowly(x):
        time.sleep(0.002)
        return x

    slow = Dataset.range(50).map(lambda x: tf.ensure_shape(tf.numpy_function(slowly, [x], tf.int64), []))
    for d in (slow, slow.prefetch(2), slow.batch(5).map(lambda x: x + 1, num_parallel_calls=2).prefetch(tf.data.AUTOTUNE)):
        values(d)
        assert "slow stage: map (test_data.py:" in d.explain() and "Python runs it on one thread" in d.explain()

    def elements():
        for i in range(50):
            time.sleep(0.002)
            yield i

    d = Dataset.from_generator(elements, output_signature=tf.TensorSpec([], tf.int64)).map(
        lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)
    values(d)
    assert "slow stage: from_generator (test_data.py:" in d.explain()


def test_random_images_in_a_map():
    x = np.random.default_rng(0).random((6, 8, 8, 3)).astype("float32")
    for fn in (lambda v: tf.image.random_brightness(v, 0.5), lambda v: tf.image.random_crop(v, [8, 8, 3]),
               lambda v: tf.image.random_contrast(v, 0.5, 1.5), lambda v: tf.image.random_jpeg_quality(v, 50, 90),
               lambda v: tf.image.rot90(v, tf.random.uniform([], 0, 4, tf.int32))):
        assert np.asarray(values(Dataset.from_tensor_slices(x).map(fn))).shape == x.shape
    tf.random.set_seed(1)
    d = Dataset.from_tensor_slices(x).map(lambda v: tf.image.random_brightness(v, 0.5), num_parallel_calls=3)
    one, two = np.asarray(values(d)), np.asarray(values(d))
    change = (one - x)[:, 0, 0, 0]
    assert len(set(np.round(change, 5))) == 6 and abs(change).max() <= 0.5 and (one != two).any()


def test_files_are_read_in_a_map(tmp_path):
    picture = np.arange(48, dtype="uint8").reshape(4, 4, 3)
    paths = []
    for i in range(3):
        paths.append(str(tmp_path / f"{i}.png"))
        tf.io.write_file(paths[-1], tf.io.encode_png(picture + i))
    d = Dataset.from_tensor_slices(paths).map(lambda p: tf.image.convert_image_dtype(
        tf.io.decode_png(tf.io.read_file(p)), tf.float32), num_parallel_calls=2)
    for i, v in enumerate(d):
        np.testing.assert_allclose(v.numpy(), (picture + i) / np.float32(255), rtol=1e-6)
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        next(iter(Dataset.from_tensor_slices(["nowhere"]).map(tf.io.read_file)))


def test_examples_go_through_files(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    train = tf.train

    def example(i):
        return train.Example(features=train.Features(feature={
            "n": train.Feature(int64_list=train.Int64List(value=[i])),
            "x": train.Feature(float_list=train.FloatList(value=[i, 0.5])),
            "tags": train.Feature(bytes_list=train.BytesList(value=[b"t"] * i))}))

    with tf.io.TFRecordWriter(path) as writer:
        for i in range(3):
            writer.write(example(i).SerializeToString())
    assert train.Example.FromString(example(2).SerializeToString()) == example(2)
    assert train.Example.FromString(example(2).SerializeToString()).features.feature["n"].int64_list.value == [2]
    spec = {"n": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([2], tf.float32),
            "tags": tf.io.VarLenFeature(tf.string),
            "none": tf.io.FixedLenFeature([], tf.float32, default_value=7.0)}

    def parse(record):
        e = tf.io.parse_single_example(record, spec)
        return e["n"], e["x"], tf.size(e["tags"].values), e["none"]

    rows = [[v.numpy().tolist() for v in row] for row in tf.data.TFRecordDataset(path).map(parse)]
    assert rows == [[i, [i, 0.5], i, 7.0] for i in range(3)]
    batch = tf.io.parse_example([example(i).SerializeToString() for i in (2, 1)], {
        "tags": tf.io.VarLenFeature(tf.string), "n": tf.io.RaggedFeature(tf.int64)})
    assert batch["tags"].indices.numpy().tolist() == [[0, 0], [0, 1], [1, 0]]
    assert batch["n"].to_list() == [[2], [1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="missing"):
        tf.io.parse_single_example(example(1).SerializeToString(), {"missing": tf.io.FixedLenFeature([], tf.int64)})
    with pytest.raises(TypeError, match="encode"):
        train.BytesList(value=["text"])


def test_file_systems(tmp_path):
    gfile = tf.io.gfile
    folder = str(tmp_path / "a" / "b")
    gfile.makedirs(folder)
    with gfile.GFile(gfile.join(folder, "x.txt"), "w") as file:
        file.write("one\ntwo\n")
    assert gfile.exists(folder) and gfile.isdir(folder) and gfile.listdir(folder) == ["x.txt"]
    assert [line for line in gfile.GFile(folder + "/x.txt")] == ["one\n", "two\n"]
    assert gfile.glob(folder + "/*.txt") == [folder + "/x.txt"] and gfile.stat(folder + "/x.txt").length == 8
    gfile.copy(folder + "/x.txt", folder + "/y.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.copy(folder + "/x.txt", folder + "/y.txt")
    gfile.rename(folder + "/y.txt", folder + "/z.txt")
    gfile.remove(folder + "/x.txt")
    assert [files for _, _, files in gfile.walk(folder)] == [["z.txt"]]
    gfile.rmtree(folder)
    with pytest.raises(tf.errors.NotFoundError):
        gfile.GFile(folder + "/z.txt").read()


def test_rows_of_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("b,a,label\n1,x,0\n2,y,1\n3,z,0\n")
    d = tf.data.experimental.make_csv_dataset(str(path), 2, label_name="label", num_epochs=1, shuffle=False)
    (features, label), last = list(d)
    assert features["a"].numpy().tolist() == [b"x", b"y"] and features["b"].numpy().tolist() == [1, 2]
    assert label.numpy().tolist() == [0, 1] and last[1].numpy().tolist() == [0]
    assert list(features) == ["b", "a"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="field 0 is 'x'"):
        tf.io.decode_csv("x,1", [tf.int32, tf.int32])
    numbers, names = tf.io.decode_csv(["1,\"p,q\"", ",r"], [[5], tf.string])
    assert numbers.numpy().tolist() == [1, 5] and names.numpy().tolist() == [b"p,q", b"r"]


def test_some_windows():
    d = Dataset.range(7).window(2)
    assert [values(w) for w in d.take(2)] == [[0, 1], [2, 3]]
    assert [values(w) for w in d.skip(2)] == [[4, 5], [6]]
    assert values(d.take(2).flat_map(lambda w: w)) == [0, 1, 2, 3]


def test_counters_policies_and_optionals():
    assert values(tf.data.experimental.Counter(2, 3).take(3)) == [2, 5, 8]
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE
    assert values(Dataset.range(3).with_options(options)) == [0, 1, 2]
    it = iter(Dataset.range(1))
    one, none = it.get_next_as_optional(), it.get_next_as_optional()
    assert bool(one.has_value()) and int(one.get_value()) == 0 and not bool(none.has_value())
    with pytest.raises(tf.errors.InvalidArgumentError):
        none.get_value()


def test_iterators_go_on_from_checkpoints(tmp_path):
    def pipeline():
        return iter(Dataset.range(10).shuffle(5, seed=1).map(lambda x: x * 2).batch(2))

    it = pipeline()
    seen = [next(it).numpy().tolist() for _ in range(2)]
    path = tf.train.Checkpoint(iterator=it, step=tf.Variable(1)).save(str(tmp_path / "c"))
    rest = [v.numpy().tolist() for v in it]
    other = pipeline()
    tf.train.Checkpoint(iterator=other, step=tf.Variable(0)).restore(path)
    assert [v.numpy().tolist() for v in other] == rest and len(seen) + len(rest) == 5


def test_folders_of_pictures_and_texts(tmp_path):
    for kind, level in (("cats", 10), ("dogs", 200)):
        (tmp_path / kind).mkdir()
        for i in range(2):
            tf.io.write_file(str(tmp_path / kind / f"{i}.png"), tf.io.encode_png(np.full((4, 4, 3), level, "uint8")))
            (tmp_path / kind / f"{i}.txt").write_text(f"{kind} {i}")
    d = tf.keras.utils.image_dataset_from_directory(str(tmp_path), image_size=(2, 2), batch_size=4, shuffle=False)
    x, y = next(iter(d))
    assert d.class_names == ["cats", "dogs"] and y.numpy().tolist() == [0, 0, 1, 1]
    assert x.shape == (4, 2, 2, 3) and x.numpy()[:, 0, 0, 0].tolist() == [10, 10, 200, 200]
    t = tf.keras.utils.text_dataset_from_directory(str(tmp_path), label_mode=None, batch_size=2, shuffle=False)
    assert next(iter(t)).numpy().tolist() == [b"cats 0", b"cats 1"]


def test_data_sets_are_saved(tmp_path):
    d = Dataset.from_tensor_slices({"x": np.arange(6, dtype="float32").reshape(3, 2), "t": ["a", "bb", ""]}).batch(2)
    for compression in (None, "GZIP"):
        d.save(str(tmp_path / "d"), compression=compression)
        again = Dataset.load(str(tmp_path / "d"))
        assert again.element_spec["x"].dtype == tf.float32 and again.element_spec["t"].shape.rank == 1
        got = [(e["x"].numpy().tolist(), e["t"].numpy().tolist()) for e in again]
        assert got == [([[0, 1], [2, 3]], [b"a", b"bb"]), ([[4, 5]], [b""])]
    with pytest.raises(tf.errors.NotFoundError, match="Dataset.save"):
        Dataset.load(str(tmp_path))


def test_structures_are_zipped():
    a, b = Dataset.range(2), Dataset.range(5, 7)
    assert [(int(x), int(y), int(z)) for x, (y, z) in Dataset.zip((a, (b, a)))] == [(0, 5, 0), (1, 6, 1)]
    assert [int(e["x"]) + int(e["y"]) for e in Dataset.zip({"x": a, "y": b})] == [5, 7]
    assert [(int(x), int(y)) for x, y in Dataset.zip(a, b)] == [(0, 5), (1, 6)]


def test_a_map_asks_its_function_once_per_element():
    calls = []

    def told(x):
        calls.append(int(x))
        return np.int64(x + 1)

    d = Dataset.range(3).map(lambda x: tf.py_function(told, [x], tf.int64)).cache().batch(2)
    assert [values(d) for _ in range(2)] == [[[1, 2], [3]]] * 2 and calls == [0, 1, 2]
    texts = Dataset.from_tensor_slices(["a", "b"]).map(lambda s: (calls.append(s.numpy()), tf.strings.upper(s))[1])
    assert values(texts) == [b"A", b"B"] and values(texts) == [b"A", b"B"]
