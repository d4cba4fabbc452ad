"""What libraries written for TensorFlow name and rely on beside layers and ops."""
import copy
import pickle
import subprocess
import sys

import berth as tf
import numpy as np
import pytest


def test_the_shape_of_none_has_no_rank():
    shape = tf.TensorShape(None)
    assert shape.rank is None and isinstance(shape, tf.TensorShape) and shape == tf.TensorShape(shape)
    assert shape != tf.TensorShape([None]) and shape.is_compatible_with([1, 2]) and tf.TensorShape([1]).is_compatible_with(shape)
    assert tf.TensorShape([2]).merge_with(None) == [2] and tf.TensorShape([2]).concatenate(shape).rank is None
    assert tf.TensorSpec(tf.TensorShape(None)) == tf.TensorSpec(None) and not shape
    with pytest.raises(TypeError):
        tf.zeros(shape)
    with pytest.raises(ValueError):
        shape.as_list()
    tf.zeros([2]).set_shape(tf.TensorShape(None))


def test_shapes_and_dtypes_are_copied_and_pickled():
    for value in (tf.TensorShape([1, None]), tf.TensorShape(None), tf.float32, tf.string, tf.TensorSpec([2, None], tf.int8, "n")):
        assert copy.deepcopy(value) == value and pickle.loads(pickle.dumps(value)) == value


class Outer(tf.Module):
    def __init__(self):
        super().__init__()
        self.a_part = InnerPart("first")
        self.b = tf.Variable(1.0, name="b")
        self.parts = {"z": [InnerPart()], "y": tf.Variable(2.0)}
        self.again = self.b

    @tf.Module.with_name_scope
    def build(self):
        return tf.Variable(0.0)


class InnerPart(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        with self.name_scope:
            self.w = tf.Variable(3.0, name="w")


def test_modules_list_their_own_variables_before_those_of_others():
    top = Outer()
    assert [float(v) for v in top.variables] == [1.0, 2.0, 3.0, 3.0]
    assert [m.name for m in top.submodules] == ["first", "inner_part"] and top.name == "outer"
    assert [path for path, _ in top._flatten(predicate=lambda v: isinstance(v, tf.Variable), with_path=True)] == [
        ("again",), ("b",), ("parts", "y"), ("a_part", "w"), ("parts", "z", 0, "w")]
    with pytest.raises(ValueError, match="not a valid module name"):
        InnerPart("a/b")


def test_variables_have_the_names_that_scopes_give_them():
    top = Outer()
    assert [v.name for v in top.variables] == ["b:0", "Variable:0", "first/w:0", "inner_part/w:0"]
    assert top.build().name == "outer/Variable:0" and top.a_part.name_scope.name == "first/"
    with tf.name_scope("x"), tf.name_scope("y"):
        v = tf.Variable(1.0, name="v")
        inner = InnerPart("m")
    assert v.name == "x/y/v:0" and inner.w.name == "x/y/m/w:0" and tf.Variable(0.0).name == "Variable:0"
    with tf.name_scope("z"):
        assert copy.deepcopy(v).name == pickle.loads(pickle.dumps(v)).name == "x/y/v:0"


def test_a_function_may_be_made_of_an_object_that_is_called():
    class Doubles:
        def __call__(self, x):
            return 2 * x
    call = tf.function(Doubles())
    assert float(call(tf.constant(3.0))) == 6 and call.__name__ == "Doubles"
    assert call.get_concrete_function(tf.TensorSpec([None])).name


def test_creators_of_variables_get_every_argument():
    asked = []

    def creator(make, **given):
        asked.append(given)
        return make(**{**given, "trainable": False})
    with tf.variable_creator_scope(creator):
        v = tf.Variable(1.0, name="v")
    assert asked[0]["trainable"] is None and asked[0]["dtype"] is None and asked[0]["shape"] is None and not v.trainable
    assert asked[0]["aggregation"] == tf.VariableAggregation.NONE


def test_a_subclass_of_variables_may_be_no_variable():
    class Held(tf.Variable):
        def __init__(self, value):
            self.held = value

        shape = property(lambda self: self.held.shape)
        dtype = property(lambda self: self.held.dtype)
    tf.register_tensor_conversion_function(Held, lambda value, dtype=None, name=None, as_ref=False: value.held)
    h = Held(tf.constant([1.0, 2.0]))
    assert tf.convert_to_tensor(h).numpy().tolist() == [1, 2] and (tf.constant([1.0, 1.0]) + h).numpy().tolist() == [2, 3]
    assert isinstance(h, tf.Variable) and float(tf.reduce_sum(h)) == 3
    with pytest.raises(TypeError, match="has a conversion already"):
        tf.register_tensor_conversion_function(tf.Variable, lambda value: value)


def test_variables_take_every_argument_of_tensorflow():
    v = tf.Variable([1.0, 2.0], True, True, None, "v", None, tf.float32, shape=[None])
    assert v.name == "v:0" and v.dtype == tf.float32 and tf.Variable(1.0, shape=tf.TensorShape(None)).shape.rank is None
    with pytest.raises(ValueError, match=r"the initial value has the shape \(2,\)"):
        tf.Variable([1.0, 2.0], shape=[3])


def test_classes_that_programs_ask_for_are_there_and_make_nothing():
    strategy = tf.distribute.get_strategy()
    assert not isinstance(strategy, (tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy))
    assert not isinstance(tf.constant(1), (tf.Graph, tf.Operation))
    with pytest.raises(NotImplementedError, match="no TPUs"):
        tf.distribute.TPUStrategy()
    with pytest.raises(NotImplementedError, match="tf.function"):
        tf.Graph()


def test_compat_has_texts_sizes_and_some_of_version_1():
    assert tf.compat.as_bytes("é") == "é".encode() and tf.compat.as_text(b"a") == tf.compat.as_str("a") == "a"
    assert tf.compat.as_str_any(3) == "3" and tf.compat.dimension_value(tf.TensorShape([4])[0]) == 4
    assert tf.compat.dimension_at_index(tf.TensorShape(None), 2) is None
    with pytest.raises(TypeError, match="expected bytes or a str"):
        tf.compat.as_text(3)
    v1 = tf.compat.v1
    assert float(v1.reduce_sum([[1.0, 2.0]], reduction_indices=1)[0]) == 3 and v1.argmax([1, 3, 2]).numpy() == 1
    assert v1.placeholder_with_default([1, 2], shape=None).numpy().tolist() == [1, 2]
    assert v1.shape([[1]], "name").numpy().tolist() == [1, 1] and v1.global_variables_initializer() is None
    v1.assert_equal(1, 1, [2])
    with pytest.raises(tf.errors.InvalidArgumentError):
        v1.assert_less(2, 1)
    with pytest.raises(AttributeError, match="version 1"):
        v1.placeholder  # noqa: B018
    with pytest.raises(AttributeError, match="version 1"):
        v1.space_to_batch  # noqa: B018


def test_sysconfig_says_what_was_built():
    assert tf.sysconfig.get_build_info()["is_rocm_build"] is False and tf.sysconfig.get_lib().endswith("lib")


def test_a_module_runs_in_place_of_a_script(tmp_path):
    (tmp_path / "mine.py").write_text("import sys\nimport tensorflow as tf\nprint(sys.argv[1:], tf.constant(2).numpy(), __name__)\n")
    run = subprocess.run([sys.executable, "-m", "berth", "--own-keras", "-m", "mine", "a"], cwd=tmp_path, capture_output=True,
                         text=True, timeout=120)
    assert run.stdout == "['a'] 2 __main__\n", run.stderr


def test_forms_with_arguments_that_the_engine_lacks():
    a = tf.constant([[1, 2], [3, 4]], tf.int8)
    assert tf.matmul(a, a, output_type=tf.int32).dtype == tf.int32 and tf.matmul(a, a, output_type=tf.int32)[1, 1] == 22
    b = tf.cast(a, tf.float32)
    assert (tf.matmul(b, b, a_is_sparse=True).numpy() == tf.linalg.matmul(b, b).numpy()).all()
    with pytest.raises(TypeError, match="no argument 'c'"):
        tf.matmul(b, b, c=1)
    x = tf.reshape(tf.range(24), [2, 3, 4])
    n = x.numpy()
    assert (tf.strided_slice(x, [0, 1], [1, 3], begin_mask=1, end_mask=1).numpy() == n[:, 1:3]).all()
    assert (tf.strided_slice(x, [1, 0], [2, 2], [1, 1], shrink_axis_mask=1).numpy() == n[1, 0:2]).all()
    assert (tf.strided_slice(x, [0, 3], [0, -5], [1, -2], ellipsis_mask=1).numpy() == n[..., 3:-5:-2]).all()
    assert tf.strided_slice(x, [0, 0], [0, 1], new_axis_mask=1).shape == [1, 1, 3, 4]


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_fourier_transforms_have_norms(norm):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("complex64")
    np.testing.assert_allclose(tf.signal.fftnd(x, axes=[1, 2], norm=norm), np.fft.fftn(x, axes=[1, 2], norm=norm), atol=1e-4)
    np.testing.assert_allclose(tf.signal.ifftnd(x, [2, 5], [0, 2], norm), np.fft.ifftn(x, [2, 5], [0, 2], norm), atol=1e-4)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pictures_of_16_bits_are_written_as_png(channels):
    x = np.random.default_rng(0).integers(0, 1 << 16, (2, 5, 7, channels)).astype("uint16")
    files = tf.io.encode_png(x)
    assert files.shape == [2] and (tf.io.decode_png(files[1], dtype=tf.uint16).numpy() == x[1]).all()
    small = (x >> 8).astype("uint8")
    assert (tf.io.decode_png(tf.io.encode_png(small)[0]).numpy() == small[0]).all()


def test_windows_have_a_size_for_each_key():
    data = tf.data.Dataset.range(8).group_by_window(lambda x: x % 2, lambda key, window: window.batch(4),
                                                    window_size_func=lambda key: key + 1)
    assert [v.numpy().tolist() for v in data] == [[0], [2], [1, 3], [4], [6], [5, 7]]


def test_gradients_by_constants_of_a_trace():
    @tf.function
    def f(x):
        c = tf.constant([2.0, 3.0])
        return tf.gradients(x * c * c, [c, x])
    by_constant, by_argument = f(tf.constant([1.0, 10.0]))
    assert by_constant.numpy().tolist() == [4, 60] and by_argument.numpy().tolist() == [4, 9]


def test_dtypes_are_one_object_each():
    x = tf.ones([2])
    assert x.dtype is tf.float32 and tf.Variable(x).dtype is tf.float32 and tf.as_dtype("int8") is tf.int8
    assert tf.keras.Input([2], dtype="float16").dtype in (tf.float16, "float16") and tf.TensorSpec([1], "bool").dtype is tf.bool


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, "float16"])
def test_random_numbers_of_16_bits(dtype):
    wanted = tf.as_dtype(dtype)
    for out in (tf.random.normal([64], 1.0, 2.0, dtype, 3), tf.random.truncated_normal([64], dtype=dtype),
                tf.random.stateless_normal([64], [1, 2], dtype=dtype), tf.random.stateless_truncated_normal([64], [1, 2], dtype=dtype),
                tf.random.gamma([64], tf.constant(2.0, wanted)), tf.random.poisson([64], 3.0, dtype),
                tf.random.stateless_poisson([64], [1, 2], 3.0, dtype), tf.random.stateless_gamma([64], [1, 2], 2.0, dtype=dtype)):
        assert out.dtype is wanted and out.shape == [64] and np.isfinite(out.numpy().astype("float32")).all()
    for out in (tf.random.uniform([20000], dtype=dtype), tf.random.stateless_uniform([20000], [1, 2], 2, 4, dtype)):
        low = 2.0 if float(out[0]) >= 2 else 0.0
        values = out.numpy().astype("float32")
        assert out.dtype is wanted and values.min() >= low and values.max() < (4 if low else 1) and values.std() > 0.25


def test_options_that_are_none_have_their_defaults():
    x = tf.ones([4, 4])
    assert tf.nn.dropout(x, 0.0, noise_shape=None, seed=None, name=None).shape == [4, 4]
    assert tf.nn.dropout(x, 0.0, None).shape == [4, 4]
    with pytest.raises(TypeError):
        tf.nn.dropout(None, 0.0)
    with pytest.raises(TypeError, match="no argument 'nothing'"):
        tf.nn.dropout(x, 0.0, nothing=3)


def test_the_where_of_version_1_takes_rows():
    rows = tf.compat.v1.where([True, False], [[1, 2, 3]] * 2, [[4, 5, 6]] * 2)
    assert rows.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_fused_norms_of_raw_ops():
    x = np.random.default_rng(0).normal(2, 3, (4, 5, 6, 3)).astype("float32")
    scale, offset = np.array([1, 2, 3], "float32"), np.array([0, 1, -1], "float32")
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    y, m, v, r1, r2 = tf.raw_ops.FusedBatchNormV2(x=x, scale=scale, offset=offset, mean=[], variance=[], epsilon=1e-3)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-3) * scale + offset, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(m, mean, rtol=1e-5)
    np.testing.assert_allclose(v, variance * 120 / 119, rtol=1e-5)
    first = np.transpose(x, [0, 3, 1, 2])
    out = tf.raw_ops.FusedBatchNormV3(x=first, scale=scale, offset=offset, mean=mean, variance=variance, epsilon=1e-3,
                                      is_training=False, data_format="NCHW")
    assert len(out) == 6 and (out[1].numpy() == mean).all()
    np.testing.assert_allclose(np.transpose(out[0], [0, 2, 3, 1]), y, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="data_format"):
        tf.raw_ops.FusedBatchNorm(x=x, scale=scale, offset=offset, mean=[], variance=[], data_format="C")


def test_gradients_of_ops_of_other_libraries_are_registered():
    tf.no_gradient("Theirs>Op")
    assert tf.RegisterGradient("Theirs>Op")(len) is len
    with pytest.raises(NotImplementedError, match="custom_gradient"):
        tf.RegisterGradient("MatMul")


def test_a_function_has_the_members_of_the_object_that_it_is_made_of():
    top = InnerPart("part")
    top.__class__ = type("Called", (InnerPart,), {"__call__": lambda self, x: self.w * x})
    call = tf.function(top)
    assert float(call(2.0)) == 6 and call.w is top.w


@pytest.mark.parametrize("body", [
    lambda x: tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 2, 4]), lambda x: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0)),
    lambda x: tf.zeros([tf.shape(x)[0], 4]) + tf.reduce_sum(x), lambda x: tf.random.normal(tf.shape(x)) * 0.0,
    lambda x: tf.range(tf.shape(x)[0]), lambda x: x[:, :tf.shape(x)[0]],
    lambda x: tf.TensorArray(tf.float32, size=tf.shape(x)[0]).unstack(x).stack()])
def test_concrete_functions_of_open_sizes_may_need_those(body):
    concrete = tf.function(body).get_concrete_function(tf.TensorSpec([None, None, 8]))
    x = tf.ones([3, 5, 8])
    out, wanted = concrete(x), body(x)
    assert concrete.output_shapes.is_compatible_with(wanted.shape) and None in concrete.output_shapes.as_list()
    assert out.numpy().tolist() == wanted.numpy().tolist() and concrete(tf.ones([2, 4, 8])).shape.rank == wanted.shape.rank
    with pytest.raises(tf.errors.InvalidArgumentError):
        concrete(tf.ones([3, 5, 7]))


def test_a_concrete_function_may_make_its_variables_in_the_first_call():
    class Layer(tf.Module):
        w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([x.shape[-1], 2]), name="w")
            return x @ self.w
    layer = Layer()
    concrete = layer.__call__.get_concrete_function(tf.TensorSpec([None, 3]))
    assert concrete(tf.ones([4, 3])).numpy().tolist() == [[3, 3]] * 4 and len(layer.variables) == 1


def test_arguments_of_a_concrete_function_have_places_and_names():
    def f(z, a, scale=2.0, more=0.0):
        return (z - a) * scale + more
    spec, z, a = tf.TensorSpec([2]), tf.constant([5.0, 7.0]), tf.constant([1.0, 2.0])
    wanted = [8.0, 10.0]
    for concrete in (tf.function(f).get_concrete_function(spec, spec), tf.function(f).get_concrete_function(z=spec, a=spec),
                     tf.function(f).get_concrete_function(a=spec, z=spec, more=0.0),
                     tf.function(f).get_concrete_function(spec, a=spec, scale=2.0)):
        for out in (concrete(z, a), concrete(z=z, a=a), concrete(a=a, z=z), concrete(z, a=a), concrete(z, a, more=0.0)):
            assert out.numpy().tolist() == wanted
    with pytest.raises(TypeError, match="scale is 2.0 in this trace, not 3.0"):
        concrete(z, a, scale=3.0)


def test_branches_may_give_other_shapes():
    f = tf.function(lambda p, x: tf.cond(p, lambda: x, lambda: tf.reduce_sum(x)))
    x = tf.constant([1, 2])

    @tf.function
    def doubled(size):
        if tf.rank(size) == 0:
            size = tf.stack([size, size])
        return size
    assert doubled(tf.constant(3)).numpy().tolist() == [3, 3] and doubled(x).numpy().tolist() == [1, 2]
    assert f(tf.constant(True), x).numpy().tolist() == [1, 2] and f(tf.constant(False), x).numpy() == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="equal dtypes"):
        tf.function(lambda p: tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(1.0)))(tf.constant(True))


def test_variables_are_trained_unless_told():
    assert tf.Variable(1.0, trainable=None).trainable and not tf.Variable(1.0, trainable=False).trainable


def test_dtypes_have_numbers():
    assert tf.ones([2], 3).dtype is tf.int32 and tf.cast(1.5, 9).dtype is tf.int64
    with pytest.raises(TypeError, match="must be a dtype"):
        tf.ones([2], 99)
    with pytest.raises(TypeError, match="must be a dtype"):
        tf.ones([2], True)


def test_references_are_sorted_and_the_python_function_is_decorated():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    assert len(sorted([a.ref(), b.ref()])) == 2 and (a.ref() < b.ref()) != (b.ref() < a.ref())
    f = tf.function(lambda x: x + 1)
    f._decorate(lambda inner: lambda x: 10 * inner(x))
    assert float(f(tf.constant(1.0))) == 20
    with pytest.raises(ValueError, match="decorate it before"):
        f._decorate(lambda inner: inner)


class TestShapes(tf.test.TestCase):
    def test_errors_of_shapes(self):
        with self.assertRaisesIncompatibleShapesError():
            tf.ones([2]) + tf.ones([3])
        with self.assertRaisesWithPredicateMatch(ValueError, "no"):
            raise ValueError("no")
