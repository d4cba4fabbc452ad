"""Programs that put several functions together; each number is TensorFlow's."""
import numpy as np
import pytest

import berth as tf


def test_generators_with_nested_types_and_shapes():
    def pairs():
        for i in range(3):
            yield i, ("s%d" % i, [float(i), 1])
    ds = tf.data.Dataset.from_generator(pairs, output_types=(tf.int32, (tf.string, tf.float32)), output_shapes=((), ((), (2,))))
    i, (text, numbers) = next(iter(ds.batch(3)))
    assert i.numpy().tolist() == [0, 1, 2] and text.numpy()[2] == b"s2" and numbers.numpy().tolist() == [[0, 1], [1, 1], [2, 1]]
    named = tf.data.Dataset.from_generator(lambda: iter([{"b": [1, 2], "a": 3}]), {"a": tf.int32, "b": tf.int64},
                                           {"a": (), "b": (None,)})
    assert next(iter(named))["b"].dtype == tf.int64 and named.element_spec["a"].shape == []
    free = tf.data.Dataset.from_generator(lambda: iter([[1, 2], [3]]), tf.int32, tf.TensorShape(None))
    assert [e.shape.as_list() for e in free] == [[2], [1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected the structure"):
        next(iter(tf.data.Dataset.from_generator(lambda: iter([(1, 2, 3)]), (tf.int32, tf.int32), ((), ()))))


@pytest.mark.parametrize("kind", [tf.constant, tf.sparse.from_dense, tf.RaggedTensor.from_tensor])
def test_bincount_of_all_kinds_with_weights(kind):
    x, w = np.array([[1, 2, 1], [1, 3, 3]], np.int32), np.array([[.5, 1, 1], [1, 2, 3]], np.float32)
    weights = kind(w)
    assert tf.math.bincount(kind(x), weights).numpy().tolist() == [0, 2.5, 1, 5]
    assert tf.math.bincount(kind(x), axis=-1).numpy().tolist() == [[0, 2, 1, 0], [0, 1, 0, 2]]
    assert tf.math.bincount(kind(x), weights, axis=-1).numpy().tolist() == [[0, 1.5, 1, 0], [0, 1, 0, 5]]
    assert tf.sparse.bincount(kind(x)).values.dtype == tf.int32 and tf.sparse.bincount(kind(x), weights).values.dtype == tf.float32
    for f in (tf.math.bincount, tf.sparse.bincount):
        with pytest.raises(ValueError, match="weights count nothing"):
            f(kind(x), weights, binary_output=True)


def test_bincount_takes_numpy_weights_of_another_dtype():
    counted = tf.math.bincount(np.array([[1, 2, 1]]), np.ones((1, 3), np.float32))
    assert counted.dtype == tf.float32 and counted.numpy().tolist() == [0, 2, 1]


def test_where_of_a_ragged_condition():
    r = tf.ragged.constant([[True, False, True], [], [True]])
    assert tf.where(r).numpy().tolist() == [[0, 0], [0, 2], [2, 0]]
    deep = tf.ragged.constant([[[True], [False, True]], [], [[True]]])
    assert tf.where(deep).numpy().tolist() == [[0, 0, 0], [0, 1, 1], [2, 0, 0]]


def test_transposed_convolutions_are_padded_by_default():
    x, k = tf.ones([1, 3, 3, 1]), tf.ones([3, 3, 1, 1])
    assert tf.nn.conv2d_transpose(x, k, [1, 6, 6, 1], 2).shape == tf.nn.conv2d_transpose(x, k, [1, 6, 6, 1], 2, "SAME").shape


def test_tables_take_lists_of_their_dtype():
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, 0., empty_key=-1, deleted_key=-2)
    table.insert([1, 2], [1.5, 2.5])
    assert table.lookup([2, 9]).numpy().tolist() == [2.5, 0]
    with pytest.raises(TypeError, match="int32"):
        table.lookup(tf.constant([2]))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_stateless_numbers_of_all_bits(dtype):
    drawn = tf.random.stateless_uniform([4096], [1, 2], None, None, dtype).numpy()
    low, high = (float(getattr(tf.as_dtype(dtype), n)) for n in ("min", "max"))
    assert drawn.min() < low + (high - low) / 100 and drawn.max() > high - (high - low) / 100 and len(set(drawn.tolist())) > 4090
    assert (drawn == tf.random.stateless_uniform([4096], [1, 2], None, None, dtype).numpy()).all()
    with pytest.raises(ValueError, match="minval is None"):
        tf.random.stateless_uniform([2], [1, 2], None, 5, dtype)


def test_saved_functions_take_python_arguments(tmp_path):
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(3.)

        @tf.function
        def __call__(self, x, training=False, *, mode="a", opts=None):
            r = x * self.w if training else x + self.w
            return {"r": r, "more": (r * 2, [opts])} if mode == "a" else r

    m = Scale()
    m(tf.constant(1.)), m(tf.constant(1.), training=True), m(tf.constant(1.), True, mode="b"), m(tf.constant([1., 2.]))
    tf.saved_model.save(m, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    x = tf.constant(2.)
    assert float(loaded(x)["r"]) == float(loaded(x=x, training=False)["r"]) == 5 and loaded(x)["more"][1] == [None]
    assert float(loaded(x, training=True)["r"]) == 6 and float(loaded(x, True, mode="b")) == 6
    assert loaded(tf.constant([2., 3.]))["r"].numpy().tolist() == [5, 6]
    for args, named in (((x,), {"mode": "z"}), ((tf.constant([1., 2.]), True), {}), ((), {}), ((x, tf.constant(True)), {})):
        with pytest.raises(ValueError, match="no saved trace takes"):
            loaded(*args, **named)


def test_shapes_without_a_rank():
    shape = tf.TensorShape(None)
    assert shape.rank is None and isinstance(shape, tf.TensorShape) and isinstance(tf.ones([2]).shape, tf.TensorShape)
    assert tf.TensorShape([2]).is_compatible_with(shape) and tf.TensorShape([2]).merge_with(shape) == [2]
    assert shape.merge_with([2]) == [2] and tf.TensorShape([2]).concatenate(shape).rank is None and shape.with_rank(1) == [None]
    assert tf.ensure_shape(tf.ones([2]), shape).shape == tf.ensure_shape(["a", "b"], None).shape == [2]
    tf.ones([2]).set_shape(shape)

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
    def double(x):
        return x * 2
    assert double(tf.ones([2, 1])).shape == [2, 1] and double(tf.ones([])).shape == []


def test_dtypes_of_text_by_numpy():
    assert tf.as_dtype(np.object_) == tf.as_dtype(np.dtype("S3")) == tf.as_dtype(np.dtype("U2")) == tf.string
    assert tf.uint8.limits == (0, 255) and tf.float32.limits == (0, 1)


def test_variables_are_written_batch_by_batch_and_counted_up():
    v = tf.Variable(np.zeros((2, 3), "f"))
    v.batch_scatter_update(tf.IndexedSlices(tf.constant([[7.], [6.]]), tf.constant([[0], [1]])))
    assert v.numpy().tolist() == [[7, 0, 0], [0, 6, 0]]
    n = tf.Variable(0)
    assert [int(n.count_up_to(2)), int(n.count_up_to(2))] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="reached 2"):
        n.count_up_to(2)
    v.set_shape([2, None])
    with pytest.raises(ValueError, match="set_shape"):
        v.set_shape([3, 3])


def test_messages_are_filled_in_place():
    e = tf.train.Example()
    assert e.ByteSize() == 0 and "x" not in e.features.feature
    e.features.feature["x"].int64_list.value.append(3)
    e.features.feature["x"].int64_list.value.extend([4, 5])
    copy = tf.train.Example()
    copy.CopyFrom(e)
    assert copy == e and copy.features.feature["x"].HasField("int64_list") and not copy.features.feature["x"].HasField("float_list")
    a, b = tf.train.Feature(int64_list=tf.train.Int64List(value=[1])), tf.train.Feature(float_list=tf.train.FloatList(value=[2]))
    a.MergeFrom(tf.train.Feature(int64_list=tf.train.Int64List(value=[2])))
    assert a.int64_list.value == [1, 2]
    a.MergeFrom(b)
    assert a == b and a.int64_list.value == []
    with pytest.raises(TypeError):
        a.MergeFrom(e)
    s = tf.train.SequenceExample()
    s.feature_lists.feature_list["w"].feature.add().int64_list.value.append(1)
    s.feature_lists.feature_list["w"].feature.add(int64_list=tf.train.Int64List(value=[2]))
    parsed = tf.io.parse_single_sequence_example(s.SerializeToString(), sequence_features={
        "w": tf.io.FixedLenSequenceFeature([], tf.int64)})[1]
    assert parsed["w"].numpy().tolist() == [1, 2]


def test_specs_of_features_show_what_they_are():
    assert repr(tf.io.FixedLenFeature([2], tf.int64)) == "FixedLenFeature(shape=[2], dtype=tf.int64, default_value=None)"


def test_variables_know_their_strategy():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        v = tf.Variable(1.)
    assert strategy.extended.variable_created_in_scope(v)


def test_text_in_branches_and_loops():
    @tf.function
    def sign(x):
        how = tf.switch_case(tf.cast(tf.clip_by_value(x, 0, 2), tf.int32), [lambda: "z", lambda: "o", lambda: "t"])
        return tf.cond(x > 0, lambda: "pos", lambda: "neg"), how

    @tf.function
    def build(n):
        s = tf.constant("<")
        for i in tf.range(n):
            if i % 2 == 0:
                s = s + "a"
            else:
                s = tf.strings.join([s, "b"])
        return s

    @tf.function
    def repeat():
        return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + "."), (tf.constant(0), tf.constant("")))[1]
    assert [t.numpy() for t in sign(tf.constant(-1.))] == [b"neg", b"z"] and [t.numpy() for t in sign(tf.constant(2.))] == [b"pos", b"t"]
    assert build(tf.constant(3)).numpy() == b"<aba" and repeat().numpy() == b"..."
    ds = tf.data.Dataset.range(3).map(lambda i: tf.cond(i > 1, lambda: "a", lambda: "bb"))
    assert list(ds.as_numpy_iterator()) == [b"bb", b"bb", b"a"]


def test_lists_of_gradients_may_have_none():
    x = tf.constant([[3., 4.]])
    assert float(tf.linalg.global_norm([None, x, tf.IndexedSlices(x, tf.constant([0]))])) == pytest.approx(50 ** .5)
    clipped, norm = tf.clip_by_global_norm([x, None, x * 0], 1.)
    assert clipped[1] is None and clipped[0].numpy().ravel() == pytest.approx([.6, .8]) and float(norm) == 5


def test_names_in_two_modules_do_the_same():
    assert tf.linalg.einsum is tf.einsum and tf.dtypes.cast(["1"], tf.string).dtype == tf.string
    assert tf.dtypes.saturate_cast(300., tf.uint8).numpy() == 255 and tf.dtypes.complex(1., 2.).numpy() == 1 + 2j
    assert tf.linalg.einsum("ij,kj->ik", tf.ones([1, 2]), tf.ones([3, 2])).shape == [1, 3]


@pytest.mark.parametrize("name", "add subtract multiply maximum minimum pow divide floordiv floormod squared_difference atan2 less xlogy".split())
def test_whole_numbers_beside_floats_of_python(name):
    f = getattr(tf.math, name)
    assert np.array_equal(f([1., 3.], [2, 2]), f([1., 3.], [2., 2.]))
    assert f([2], np.array([1.], np.float32)).dtype in (tf.float32, tf.bool)


def test_pairs_of_lists_in_other_functions():
    assert tf.where([True, False], [1.], [2]).numpy().tolist() == [1, 2]
    assert tf.clip_by_value([1., 5.], 2, 3).numpy().tolist() == [2, 3] and tf.matmul([[1.]], [[2]]).dtype == tf.float32


def test_tensors_of_shapes_that_do_not_fit_differ():
    a = tf.constant([1, 2])
    assert not a == tf.constant([1, 2, 3]) and bool(a != [1, 2, 3]) and ((a == [[1], [2]]).numpy() == [[True, False], [False, True]]).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="broadcast"):
        tf.equal(a, [1, 2, 3])


def test_evenly_spaced_whole_numbers_are_float64():
    for given in (tf.linspace(0, 10, 4), tf.linspace(tf.constant(0), 10, 4), tf.linspace([0], [10], 4)[:, 0]):
        assert given.dtype == tf.float64 and given.numpy() == pytest.approx([0, 10 / 3, 20 / 3, 10])
    assert tf.linspace(0., 1., 0).shape == [0] and tf.linspace([0., 1.], [1., 2.], 0).shape == [0, 2]


def test_functions_of_nothing():
    assert tf.stack([]).shape == [0] and tf.math.bincount([]).dtype == tf.int32
    doubled = tf.map_fn(lambda x: (x * 2, tf.strings.as_string(x)), tf.zeros([0, 3]), fn_output_signature=(tf.float32, tf.string))
    assert doubled[0].shape == [0, 3] and doubled[1].shape == [0, 3] and doubled[1].dtype == tf.string
    assert tf.vectorized_map(tf.reduce_sum, tf.zeros([0, 3])).shape == [0]
    assert tf.foldl(lambda a, x: a + x, tf.zeros([0]), initializer=0.).shape == []
    assert tf.while_loop(lambda i: i < 0, lambda i: [i + 1], [0])[0].dtype == tf.int32
    assert tf.zeros_like(["a", "b"]).numpy().tolist() == [b"", b""] and tf.random.uniform([2], 5, 5).numpy().tolist() == [5, 5]


def test_parts_of_texts_each_at_its_place():
    s = tf.strings.substr
    assert s(["abc", "x"], [0, 0], [1, 1]).numpy().tolist() == [b"a", b"x"]
    assert s("abcdef", [0, 1, -2], [1, 2, 5]).numpy().tolist() == [b"a", b"bc", b"ef"]
    assert s(["h\u00e9a"], [1], [1], unit="UTF8_CHAR").numpy()[0].decode() == "\u00e9"
    for at, count in (([0, 5], [1, 1]), (1, [1, 2])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            s(["abc", "x"], at, count)


def test_records_of_csv_have_as_many_fields_as_defaults():
    for text, defaults in (("1,2", [[0]]), ("1", [[0], [1]])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="decode_csv: record 0 has"):
            tf.io.decode_csv([text], defaults)
    assert tf.io.decode_csv(["1,2"], [[0]], select_cols=[1])[0].numpy().tolist() == [2]


def test_sparse_tensors_are_checked_where_they_become_dense():
    for at in ([[1, 0], [0, 0]], [[0, 1], [0, 1]]):
        x = tf.SparseTensor(at, [5, 6], [2, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] is out of order or repeated"):
            tf.sparse.to_dense(x)
        assert tf.sparse.to_dense(x, validate_indices=False).shape == [2, 2]
    assert tf.sparse.reduce_sum(tf.SparseTensor([[1, 0], [0, 0]], [5, 6], [2, 2]), 1).numpy().tolist() == [6, 5]
    a, b = tf.sparse.from_dense([1, 0, 3]), tf.sparse.from_dense([-1, 2, 0])
    assert tf.sparse.add(a, b).values.numpy().tolist() == [0, 2, 3]
    assert tf.sparse.add(a, b, threshold=1).indices.numpy().tolist() == [[1], [2]]


def test_leaks_of_whole_numbers():
    assert tf.nn.leaky_relu([-1, 2], .5).numpy().tolist() == [-.5, 2]


def test_numbers_between_tensors_have_gradients():
    x = tf.constant([1., 2.])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linspace(x[0], x[1], 3)
    assert tape.gradient(y, x).numpy() == pytest.approx([1.5, 1.5])


@pytest.mark.parametrize("name", ["filter", "take_while"])
def test_predicates_are_bools(name):
    ds = tf.data.Dataset.range(3)
    assert [int(x) for x in getattr(ds, name)(lambda x: x < 2)] == [int(x) for x in getattr(ds, name)(lambda x: bool(x < 2))] == [0, 1]
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError), match=f"{name}: the predicate returns"):
        list(getattr(ds, name)(lambda x: x))


def test_managers_count_saves_beside_a_step_counter(tmp_path):
    step = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(step=step)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 3, step_counter=step, checkpoint_interval=2)
    saved = []
    for _ in range(5):
        step.assign_add(1)
        path = manager.save()
        saved.append(path and path.rpartition("-")[2])
    assert saved == ["1", None, "2", None, "3"] and int(checkpoint.save_counter) == 3
    assert tf.train.load_variable(manager.latest_checkpoint, "step/.ATTRIBUTES/VARIABLE_VALUE") == 5
    with pytest.raises(ValueError, match="step_counter"):
        tf.train.CheckpointManager(checkpoint, str(tmp_path), 3, checkpoint_interval=2)


def test_types_of_devices_that_other_machines_have():
    assert tf.config.list_physical_devices("TPU") == tf.config.list_logical_devices("XLA_CPU") == tf.config.get_visible_devices("TPU") == []


RAGGED = [[1, 2], [], [3, 4, 5]]


def test_means_of_ragged_whole_numbers_are_quotients():
    rt = tf.ragged.constant(RAGGED)
    assert tf.reduce_mean(rt, 0).numpy().tolist() == [2, 3, 5] and tf.reduce_mean(rt).dtype == tf.float64
    assert tf.reduce_mean(rt, 1).numpy()[[0, 2]].tolist() == [1.5, 4] and np.isnan(tf.reduce_mean(rt, 1).numpy()[1])
    assert tf.math.reduce_variance(rt, 1).numpy()[0] == .25 and tf.reduce_mean(tf.cast(rt, tf.int8), 1).dtype == tf.float32


def test_ragged_gathers_row_by_row():
    rt, at = tf.ragged.constant(RAGGED), tf.ragged.constant([[0], [], [2, 1]])
    assert tf.gather(rt, at, batch_dims=1).to_list() == [[1], [], [5, 4]]
    assert tf.gather([[10, 20], [30, 40], [50, 60]], tf.ragged.constant([[0], [], [1, 1]]), batch_dims=1).to_list() == [[10], [], [60, 60]]
    assert tf.gather(tf.ragged.constant([[1, 2], [3, 4]]), [[0], [1]], batch_dims=1).to_list() == [[1], [4]]


def test_texts_are_joined_along_axes_in_their_order():
    x = [["a", "b"], ["c", "d"]]
    assert tf.strings.reduce_join(x, [0, 1], separator="-").numpy() == b"a-c-b-d"
    assert tf.strings.reduce_join(x, separator="-").numpy() == tf.strings.reduce_join(x, [1, 0], separator="-").numpy() == b"a-b-c-d"
    assert tf.strings.reduce_join(x, keepdims=True).numpy().tolist() == [[b"abcd"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis 5"):
        tf.strings.reduce_join(["a"], 5)


def test_ragged_texts_are_joined_along_any_axis():
    rs = tf.ragged.constant([["a", "b"], [], ["c"]])
    assert tf.strings.reduce_join(rs, separator="+").numpy() == b"a+b+c"
    assert tf.strings.reduce_join(rs, 0).numpy().tolist() == [b"ac", b"b"]
    assert tf.strings.reduce_join(rs, 1, keepdims=True).shape == [3, 1]
    deep = tf.ragged.constant([[["a", "b"], ["c"]], [], [["d"]]])
    assert tf.strings.reduce_join(deep, -1).to_list() == [[b"ab", b"c"], [], [b"d"]]


def test_empty_texts_are_the_zeros_of_sparse_text():
    assert tf.sparse.from_dense(["a", "", "b"]).indices.numpy().tolist() == [[0], [2]]


def test_values_of_one_hot_have_their_dtype():
    one_hot = tf.one_hot
    assert one_hot([0, 2], 3, True, False).numpy().tolist() == [[True, False, False], [False, False, True]]
    assert [one_hot([0], 3, 5, 2).dtype, one_hot([0], 3, 5.).dtype, one_hot([0], 3, off_value=7).dtype, one_hot([0], 3).dtype] == [
        tf.int32, tf.float32, tf.int32, tf.float32]
    assert one_hot([0], 2, "a", "b").numpy().tolist() == [[b"a", b"b"]] and one_hot([0], 2, 5, 0, dtype=tf.float64).dtype == tf.float64
    for on, off, dtype in ((5, 0., None), (5., None, tf.int32)):
        with pytest.raises(TypeError):
            one_hot([0], 2, on, off, dtype=dtype)


def test_boxes_kept_are_padded_where_that_is_asked_for():
    boxes, scores = tf.constant([[0., 0., 1., 1.], [0., 0., 1., .9], [0., 2., 1., 3.]]), tf.constant([.9, .8, .7])
    f = tf.image.non_max_suppression_padded
    assert [v.numpy().tolist() for v in f(boxes, scores, 4, .5)] == [[0, 2], 2]
    assert [v.numpy().tolist() for v in f(boxes, scores, 4, .5, pad_to_max_output_size=True)] == [[0, 2, 0, 0], 2]
    assert [v.numpy().tolist() for v in f(boxes[None], scores[None], 4, .5, pad_to_max_output_size=True)] == [[[0, 2, 0, 0]], [2]]
    with pytest.raises(ValueError, match="pad_to_max_output_size"):
        f(boxes[None], scores[None], 4, .5)


def test_neighbours_in_tensors_of_text_are_tensors():
    assert tf.strings.ngrams([["a", "b"], ["c", "d"]], [1, 2]).numpy().tolist() == [[b"a", b"b", b"a b"], [b"c", b"d", b"c d"]]
    assert tf.einsum("ij,jk->ik", [[1.]], [[2.]], optimize="optimal").numpy() == 2
    with pytest.raises(ValueError, match="optimize"):
        tf.einsum("ij,jk->ik", [[1.]], [[2.]], optimize="x")


def test_saved_functions_take_tensors_by_name(tmp_path):
    class Named(tf.Module):
        @tf.function
        def f(self, x, a):
            return x * 10 + a

        @tf.function
        def g(self, z, *, b, a):
            return z * 100 + b * 10 + a
    m, one, two, three = Named(), tf.constant(1.), tf.constant(2.), tf.constant(3.)
    m.f(a=one, x=two), m.g(one, b=two, a=three)
    tf.saved_model.save(m, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert float(loaded.f(a=one, x=two)) == float(loaded.f(two, one)) == float(loaded.f(two, a=one)) == 21
    assert float(loaded.g(one, b=two, a=three)) == float(loaded.g(a=three, z=one, b=two)) == 123


def test_what_modules_import_from_each_other_is_there():
    """Of those, too, that need packages which most tests do without, such as berth.ray."""
    import ast
    import importlib
    import pathlib
    root = pathlib.Path(tf.__file__).parent
    lacking = []
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = getattr(node, "module", None) or ""
            if not isinstance(node, ast.ImportFrom) or module.partition(".")[0] != "berth" or module.startswith("berth.ray"):
                continue
            there = importlib.import_module(module)
            folder = root.joinpath(*module.split(".")[1:])
            lacking += [f"{path.name}: {module}.{n.name}" for n in node.names
                        if n.name != "*" and not hasattr(there, n.name) and not (folder / f"{n.name}.py").exists() and not (folder / n.name).is_dir()]
    assert not lacking
