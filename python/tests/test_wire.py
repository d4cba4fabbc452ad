"""tf.io, tf.strings, tf.sets and tf.audio on bytes: those that TensorFlow 2.21 printed, both ways."""
import struct

import berth as tf
import numpy as np
import pytest

TENSORS = {
    "float32": (3.0, "float32", "08011200220400004040"),
    "several": ([1.0, 2.0], "float32", "080112041202080222080000803f00000040"),
    "int16": ([[1, 2], [3, 4]], "int16", "08051208120208021202080222080100020003000400"),
    "text": (["a", "bcd"], "string", "08071204120208024201614203626364"),
    "bool": ([True, False], "bool", "080a12041202080222020100"),
    "bfloat16": ([1.5], "bfloat16", "080e1204120208012202c03f"),
    "empty": (np.zeros([0], "float32"), "float32", "080112021200"),
    "no rows": (np.zeros([0, 3], "float16"), "float16", "08131206120012020803"),
    "complex": (2 + 1j, "complex128", "0812120022100000000000000040000000000000f03f")}


@pytest.mark.parametrize("value, dtype, data", TENSORS.values(), ids=TENSORS)
def test_tensors_are_the_bytes_of_tensorflow(value, dtype, data):
    tensor = tf.constant(value, dtype)
    assert tf.io.serialize_tensor(tensor).numpy().hex() == data
    again = tf.io.parse_tensor(bytes.fromhex(data), dtype)
    assert again.dtype == tensor.dtype and again.shape == tensor.shape and np.array_equal(again.numpy(), tensor.numpy())


PROTOS = {"float": (3.0, "080112002a0400004040"), "array": ([1.0, 2.0], "080112041202080222080000803f00000040"),
          "int": (5, "080312003a0105"), "text": ("a", "08071200420161"), "texts": (["a", "b"], "0807120412020802420161420162"),
          "bool": ([True], "080a1204120208015a0101"), "half": (np.float16(2), "081312006a03808001"),
          "no rows": (np.zeros([0, 2]), "08021206120012020802"), "int8": (np.int8([5]), "08061204120208013a0105"),
          "complex": ([1 + 2j], "08121204120208016210000000000000f03f0000000000000040"),
          "rows": ([[1.5]], "0801120812020801120208012a040000c03f")}


@pytest.mark.parametrize("value, data", PROTOS.values(), ids=PROTOS)
def test_protos_of_tensors(value, data):
    proto = tf.make_tensor_proto(value)
    assert proto.SerializeToString().hex() == data
    array = tf.make_ndarray(type(proto).FromString(bytes.fromhex(data)))
    wanted = np.asarray(tf.constant(value).numpy())
    assert array.shape == wanted.shape and np.array_equal(array, wanted)


def test_protos_with_shapes():
    assert tf.make_ndarray(tf.make_tensor_proto(7, shape=[2, 2])).tolist() == [[7, 7], [7, 7]]
    assert tf.make_ndarray(tf.make_tensor_proto([1, 2, 3, 4], "float32", [2, 2])).dtype == "float32"
    # A list shorter than the shape says repeats its last value: DT_FLOAT [3], float_val 1, 2.
    data = bytes.fromhex("080112041202080 32a080000803f00000040".replace(" ", ""))
    assert tf.make_ndarray(type(tf.make_tensor_proto(1)).FromString(data)).tolist() == [1, 2, 2]
    for call, error in [(lambda: tf.make_tensor_proto([1, 2, 3], shape=[2]), ValueError),
                        (lambda: tf.make_tensor_proto([1, 2], shape=[2, 1], verify_shape=True), TypeError),
                        (lambda: tf.io.parse_tensor(tf.io.serialize_tensor(3.0), tf.int32), tf.errors.InvalidArgumentError),
                        (lambda: tf.io.parse_tensor(b"\xff\xffxx", tf.int32), tf.errors.InvalidArgumentError)]:
        with pytest.raises(error):
            call()


def test_a_traced_function_reads_a_tensor():
    @tf.function
    def f(data):
        return tf.io.parse_tensor(data, tf.float32) * 2.0
    assert f(tf.io.serialize_tensor([1.0, 2.5])).numpy().tolist() == [2, 5]


ROWS = [["08091208120208011202080122080100000000000000", "080112041202080122040000803f",
         "08091204120208012208 0400000000000000".replace(" ", "")],
        ["08091206120012020801", "080112021200", "080912041202080122080400000000000000"],
        ["08091208120208011202080122080300000000000000", "08011204120208012204 00000040".replace(" ", ""),
         "080912041202080122080400000000000000"]]


def test_sparse_tensors_are_the_bytes_of_tensorflow():
    x = tf.SparseTensor([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])
    rows = tf.io.serialize_many_sparse(x)
    assert [[v.hex() for v in row] for row in rows.numpy().tolist()] == ROWS
    again = tf.io.deserialize_many_sparse(rows, tf.float32)
    assert tf.sparse.to_dense(again).numpy().tolist() == tf.sparse.to_dense(x).numpy().tolist()
    whole = tf.io.serialize_sparse(x)
    assert tf.io.parse_tensor(whole[1], tf.float32).numpy().tolist() == [1, 2]
    batch = tf.io.deserialize_many_sparse(tf.stack([whole, whole]), tf.float32, rank=3)
    assert batch.dense_shape.numpy().tolist() == [2, 3, 4] and len(batch.values) == 4
    with pytest.raises(tf.errors.InvalidArgumentError, match="axes"):
        tf.io.deserialize_many_sparse(rows, tf.float32, rank=4)


SEQUENCE = bytes.fromhex("0a0c0a0a0a016e12051a030a0107123b0a210a0178121c0a0c120a0a080000803f000000400a0c120a0a080000404000008040"
                         "0a160a017712110a050a030a01610a080a060a01620a0163")


def test_sequence_examples():
    def floats(*v):
        return tf.train.Feature(float_list=tf.train.FloatList(value=v))

    def texts(*v):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
    made = tf.train.SequenceExample(
        context=tf.train.Features(feature={"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))}),
        feature_lists=tf.train.FeatureLists(feature_list={
            "x": tf.train.FeatureList(feature=[floats(1, 2), floats(3, 4)]),
            "w": tf.train.FeatureList(feature=[texts(b"a"), texts(b"b", b"c")])}))
    assert tf.train.SequenceExample.FromString(SEQUENCE) == made and 'key: "x"' in repr(made)
    context, lists = tf.io.parse_single_sequence_example(
        SEQUENCE, {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"x": tf.io.FixedLenSequenceFeature([2], tf.float32), "w": tf.io.VarLenFeature(tf.string)})
    assert int(context["n"]) == 7 and lists["x"].numpy().tolist() == [[1, 2], [3, 4]]
    assert lists["w"].indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1]] and lists["w"].dense_shape.numpy().tolist() == [2, 2]
    context, lists, lengths = tf.io.parse_sequence_example(
        [SEQUENCE, b""], {"n": tf.io.FixedLenFeature([], tf.int64, -1)},
        {"x": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True), "w": tf.io.RaggedFeature(tf.string)})
    assert context["n"].numpy().tolist() == [7, -1] and lengths["x"].numpy().tolist() == [2, 0] and list(lengths) == ["x"]
    assert lists["x"].numpy().tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]]]
    assert lists["w"].to_list() == [[[b"a"], [b"b", b"c"]], []]
    for feature, says in [({"q": tf.io.FixedLenSequenceFeature([2], tf.float32)}, "has no list 'q'"),
                          ({"x": tf.io.FixedLenSequenceFeature([3], tf.float32)}, "has 2 values; expected 3"),
                          ({"x": tf.io.VarLenFeature(tf.int64)}, "is a float_list; expected int64")]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=says):
            tf.io.parse_single_sequence_example(SEQUENCE, None, feature)


def test_sparse_features_and_json():
    example = tf.train.Example(features=tf.train.Features(feature={
        "ix": tf.train.Feature(int64_list=tf.train.Int64List(value=[3, 1])),
        "v": tf.train.Feature(float_list=tf.train.FloatList(value=[.5, 1.5]))})).SerializeToString()
    s = tf.io.parse_example([example, b""], {"s": tf.io.SparseFeature("ix", "v", tf.float32, 10)})["s"]
    assert s.indices.numpy().tolist() == [[0, 1], [0, 3]] and s.values.numpy().tolist() == [1.5, 0.5]
    assert s.dense_shape.numpy().tolist() == [2, 10]
    s = tf.io.parse_single_example(example, {"s": tf.io.SparseFeature(["ix", "ix"], "v", tf.float32, [10, 5])})["s"]
    assert s.indices.numpy().tolist() == [[1, 1], [3, 3]] and s.dense_shape.numpy().tolist() == [10, 5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="below"):
        tf.io.parse_single_example(example, {"s": tf.io.SparseFeature("ix", "v", tf.float32, 3)})
    text = ('{"features":{"feature":{"a":{"int64List":{"value":["1",2]}},"b":{"bytesList":{"value":["aGk="]}},'
            '"c":{"float_list":{"value":[1.5,"NaN"]}}}}}')
    read = tf.train.Example.FromString(tf.io.decode_json_example(text).numpy()).features.feature
    assert read["a"].int64_list.value == [1, 2] and read["b"].bytes_list.value == [b"hi"]
    assert read["c"].float_list.value[0] == 1.5 and np.isnan(read["c"].float_list.value[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no tf.train.Example"):
        tf.io.decode_json_example("{x")


def test_names_of_files(tmp_path):
    for name in "ba":
        (tmp_path / f"{name}.txt").write_text(name)
    found = tf.io.match_filenames_once(str(tmp_path / "*.txt"))
    assert [n.decode()[-5:] for n in found.numpy()] == ["a.txt", "b.txt"]
    assert {"", "file"} <= set(tf.io.gfile.get_registered_schemes())


def bitmap(width, height, channels):
    """A file of random pixels, and those."""
    rows = np.random.RandomState(0).randint(0, 256, [abs(height), width, channels]).astype("uint8")
    body = b"".join(r.tobytes().ljust((width * channels + 3) // 4 * 4, b"\0") for r in rows)
    head = struct.pack("<IHHIIiiHHIIiiII", 54 + len(body), 0, 0, 54, 40, width, height, 1, channels * 8, 0, len(body), 0, 0, 0, 0)
    return b"BM" + head + body, rows


@pytest.mark.parametrize("shape", [(5, 3, 1), (5, 3, 3), (5, -3, 3), (2, 2, 4), (3, -2, 1)])
def test_bitmaps(shape):
    data, rows = bitmap(*shape)
    wanted = rows[::-1] if shape[1] > 0 else rows
    found = tf.io.decode_bmp(data)
    assert found.dtype == tf.uint8
    assert np.array_equal(found.numpy(), wanted[..., [0] if shape[2] == 1 else [2, 1, 0, 3][:shape[2]]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels"):
        tf.image.decode_bmp(data, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="decode_bmp"):
        tf.io.decode_bmp(data[:-9])


COLOURS = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7]], "uint8")


def animation(*frames):
    """A file of frames (left, top, width, height, the clear colour or None, pixels), each code in three bits."""
    out = b"GIF89a" + struct.pack("<HHBBB", 4, 3, 0x81, 0, 0) + COLOURS.tobytes()
    for left, top, width, height, clear, pixels in frames:
        pixels = [int(p) for p in pixels]
        if clear is not None:
            out += b"!\xf9\x04" + bytes([1, 0, 0, clear, 0])
        codes = [c for i, p in enumerate(pixels) for c in ([4, p] if i % 2 == 0 else [p])] + [5]
        body = sum(c << 3 * i for i, c in enumerate(codes)).to_bytes((3 * len(codes) + 7) // 8, "little")
        out += b"," + struct.pack("<HHHHB", left, top, width, height, 0) + b"\x02" + bytes([len(body)]) + body + b"\0"
    return out + b";"


def test_animations():
    pixels = np.arange(12) % 4
    found = tf.io.decode_gif(animation((0, 0, 4, 3, None, pixels), (1, 1, 2, 2, 2, [3, 2, 2, 0]))).numpy()
    first = COLOURS[pixels].reshape(3, 4, 3)
    second = first.copy()
    second[1, 1], second[2, 2] = COLOURS[3], COLOURS[0]  # 2 is clear
    assert np.array_equal(found, [first, second])
    # A first frame that leaves out a part of the picture: as large as the largest frame, as TensorFlow has it.
    small = tf.image.decode_gif(animation((1, 1, 2, 2, None, [3, 2, 1, 0]))).numpy()
    assert small.tolist() == [[[[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [9, 8, 7]]]]
    for broken in (b"GIF89a", b"x", animation((0, 0, 4, 3, None, pixels))[:40]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="decode_gif"):
            tf.io.decode_gif(broken)


AUDIO = np.array([[0, .5], [-1, 1], [.25, 2], [-.3, .7], [1e-5, -1e-5], [.99999, -3]], "float32")
WAV = ("524946463c00000057415645666d74201000000001000200401f0000007d0000040010006461746118000000000000400080ff7f0020ff7f9ad99a59"
       "00000000ff7f0080")


def test_sounds():
    assert tf.audio.encode_wav(AUDIO, 8000).numpy().hex() == WAV
    audio, rate = tf.audio.decode_wav(bytes.fromhex(WAV))
    assert rate.dtype == tf.int32 and int(rate) == 8000 and audio.shape == (6, 2)
    assert np.allclose(audio.numpy(), np.clip(AUDIO, -1, 1), atol=2**-15)
    assert tf.audio.decode_wav(bytes.fromhex(WAV), 1, 3).audio.numpy().ravel().tolist() == [0, -1, 0.25]
    padded = tf.audio.decode_wav(tf.audio.encode_wav(AUDIO[:, :1], 8000), 2, 8).audio.numpy()
    assert padded.shape == (8, 2) and np.array_equal(padded[:, 0], padded[:, 1]) and not padded[6:].any()
    with pytest.raises(tf.errors.InvalidArgumentError, match="RIFF"):
        tf.audio.decode_wav(b"nothing")


FACE = "G\u00f6\u00f6d \U0001F60A"
BAD = b"a\xffb\xe2\x82"


def test_characters_and_their_offsets():
    numbers, offsets = tf.strings.unicode_decode_with_offsets(FACE, "UTF-8")
    assert numbers.numpy().tolist() == [71, 246, 246, 100, 32, 128522] and offsets.numpy().tolist() == [0, 1, 3, 5, 6, 7]
    assert (numbers.dtype, offsets.dtype) == (tf.int32, tf.int64)
    parts, offsets = tf.strings.unicode_split_with_offsets([["a", "bc"], ["", FACE]], "UTF-8")
    assert parts.to_list()[0] == [[b"a"], [b"b", b"c"]] and offsets.to_list() == [[[0], [0, 1]], [[], [0, 1, 3, 5, 6, 7]]]
    for errors, numbers, offsets in [("replace", [97, 65533, 98, 65533], [0, 1, 2, 3]), ("ignore", [97, 98], [0, 2])]:
        found = tf.strings.unicode_decode_with_offsets(BAD, "UTF-8", errors=errors)
        assert [v.numpy().tolist() for v in found] == [numbers, offsets]
    with pytest.raises(tf.errors.InvalidArgumentError, match="byte 1 is no UTF-8"):
        tf.strings.unicode_decode(BAD, "UTF-8", errors="strict")
    assert tf.strings.unicode_decode(BAD, "UTF-8", replacement_char=65).numpy().tolist() == [97, 65, 98, 65]
    assert tf.strings.unicode_decode(b"a\x01\tb\x7f", "UTF-8", replace_control_characters=True).numpy().tolist() == [
        97, 65533, 65533, 98, 127]
    assert tf.strings.unicode_decode_with_offsets(b"\x82\xa0a", "shift_jis")[1].numpy().tolist() == [0, 2]
    assert tf.strings.unicode_split(FACE.encode("utf-16-be"), "UTF-16-BE").numpy().tolist()[-1] == b"\xd8=\xde\n"


def test_other_encodings():
    transcode = tf.strings.unicode_transcode
    assert transcode([FACE, "x"], "UTF-8", "UTF-16-BE").numpy().tolist() == [FACE.encode("utf-16-be"), b"\0x"]
    assert transcode(b"a\xed\xa0\x80b\xf0\x9f", "UTF-8", "UTF-8").numpy().decode() == "a\ufffd\ufffd\ufffdb\ufffd"
    assert transcode(BAD, "UTF-8", "UTF-8", replacement_char=32).numpy() == b"a b "
    assert transcode(b"\xf6", "latin1", "UTF-8").numpy() == b"\xc3\xb6"
    for call in (lambda: transcode("a", "UTF-8", "latin1"), lambda: transcode("a", "nope", "UTF-8")):
        with pytest.raises(tf.errors.InvalidArgumentError):
            call()


def test_scripts():
    text = [ord(c) for c in "aé1 яд日ひ한א"] + [-1, 1114111, 0x300]
    assert tf.strings.unicode_script(text).numpy().tolist() == [25, 25, 0, 0, 8, 8, 17, 20, 18, 19, -1, 103, 1]


def test_segments_and_hashes():
    join = tf.strings.unsorted_segment_join
    assert join([["a", "b"], ["c", "d"]], [[1, 0], [1, 1]], 2).numpy().tolist() == [b"b", b"acd"]
    assert join([["a", "b"], ["c", "d"], ["e", "f"]], [1, 0, 1], 2, "-").numpy().tolist() == [[b"c", b"d"], [b"a-e", b"b-f"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="from 0 to 2"):
        join(["a", "b"], [1, -1], 3)
    texts = ["a", "Hello", "", FACE, "12345678", "123456789abcdefg"]
    found = tf.strings.to_hash_bucket_strong(texts, 1000, [123, 456])
    assert found.dtype == tf.int64 and found.numpy().tolist() == [228, 976, 214, 718, 391, 191]


def test_sets():
    a = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 2, 3, 3], [2, 4])
    b = tf.constant([[1, 5], [3, 4]])

    def rows(s):
        return s.indices.numpy().tolist(), s.values.numpy().tolist(), s.dense_shape.numpy().tolist()
    assert tf.sets.size(a).numpy().tolist() == [2, 1] and tf.sets.size(a).dtype == tf.int32
    assert rows(tf.sets.intersection(a, b)) == ([[0, 0], [1, 0]], [1, 3], [2, 1])
    assert rows(tf.sets.union(a, b)) == ([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], [1, 2, 5, 3, 4], [2, 3])
    assert rows(tf.sets.difference(a, b)) == ([[0, 0]], [2], [2, 1])
    assert rows(tf.sets.difference(a, b, aminusb=False)) == ([[0, 0], [1, 0]], [5, 4], [2, 1])
    assert rows(tf.sets.union([[100, 3]], [[-5, 64]]))[1] == [-5, 3, 64, 100]
    three = tf.sets.union(tf.constant([[[1, 2]], [[3, 3]]], tf.int64), tf.constant([[[2, 0]], [[3, 3]]], tf.int64))
    assert rows(three) == ([[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0]], [0, 1, 2, 3], [2, 1, 3])
    assert tf.sets.intersection(tf.constant([["a", "b"]]), tf.constant([["b", "c"]])).values.numpy().tolist() == [b"b"]
    for call, error in [(lambda: tf.sets.size(b), TypeError), (lambda: tf.sets.union([[1.0]], [[1.0]]), TypeError),
                        (lambda: tf.sets.union(b, [[1, 2]]), tf.errors.InvalidArgumentError)]:
        with pytest.raises(error):
            call()
