"""Concrete functions of any rank and of text, what leaves a trace, and saved functions."""
import berth as tf
import numpy as np
import pytest


def test_concrete_functions_of_any_rank():
    @tf.function
    def power(a, b):
        return a**b
    square = power.get_concrete_function(a=tf.TensorSpec(None, tf.float32), b=2)
    assert float(square(tf.constant(10.0))) == 100.0 and square(tf.ones([2, 3])).shape.as_list() == [2, 3]
    with pytest.raises(TypeError):
        square(tf.constant(10.0), b=3)
    with pytest.raises(tf.errors.InvalidArgumentError):
        square(tf.constant(1))


def test_concrete_functions_of_text():
    @tf.function
    def twice(a):
        return tf.strings.join([a, a])
    f = twice.get_concrete_function(tf.TensorSpec([], tf.string))
    assert f(tf.constant("a")).numpy() == b"aa" and f(a=tf.constant("b")).numpy() == b"bb"
    assert "string" in f.function_type and list(f.graph.as_graph_def().node) == []


def test_init_scope_leaves_the_trace():
    class Own(tf.Module):
        def __init__(self):
            super().__init__()
            self.v, self.counter = tf.Variable(0), 0

        @tf.function
        def __call__(self):
            if self.counter == 0:
                with tf.init_scope():
                    self.counter += 1
                    self.v.assign_add(1)
            return self.v
    own = Own()
    assert [int(own()) for _ in range(3)] == [1, 1, 1]


def test_objects_say_by_a_trace_type_what_shares_a_trace():
    class Kind(tf.types.experimental.TraceType):
        def __init__(self, fruit):
            self.kind, self.fruit = type(fruit), fruit

        def is_subtype_of(self, other):
            return self == other

        def most_specific_common_supertype(self, others):
            return self if all(self == o for o in others) else None

        def placeholder_value(self, placeholder_context=None):
            return self.fruit

        def __eq__(self, other):
            return type(other) is Kind and self.kind == other.kind

        def __hash__(self):
            return hash(self.kind)

    class Apple:
        def __tf_tracing_type__(self, context):
            return Kind(self)

    class Mango(Apple):
        pass
    traces = []

    @tf.function
    def f(a):
        traces.append(a)
        return tf.constant(1)
    for fruit in (Apple(), Apple(), Mango(), Mango()):
        f(fruit)
    assert len(traces) == 2


class Counted(tf.Module):
    def __init__(self):
        super().__init__()
        self.v, self.w = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def __call__(self, x):
        return {"out": x * self.v + self.w}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def mutate(self, v):
        self.w.assign(v)


def test_saved_functions_share_the_variables_of_their_object(tmp_path):
    own = Counted()
    own(tf.constant(0.0))
    tf.saved_model.save(own, str(tmp_path / "a"))
    loaded = tf.saved_model.load(str(tmp_path / "a"))
    assert len(loaded.signatures) == 0 and float(loaded(tf.constant(3.0))["out"]) == 5.0
    loaded.mutate(tf.constant(10.0))
    assert float(loaded.w) == 10.0 and float(loaded.v) == 1.0 and float(loaded(tf.constant(3.0))["out"]) == 13.0
    with tf.GradientTape() as tape:
        y = loaded(tf.constant(3.0))["out"]
    assert float(tape.gradient(y, loaded.v)) == 3.0 and float(own.w) == 2.0


def test_functions_of_any_rank_are_saved_with_signatures(tmp_path):
    own = Counted()
    call = own.__call__.get_concrete_function(tf.TensorSpec(None, tf.float32))
    tf.saved_model.save(own, str(tmp_path / "b"), signatures={"serving_default": call})
    loaded = tf.saved_model.load(str(tmp_path / "b"))
    assert list(loaded.signatures) == ["serving_default"]
    assert list(loaded.signatures["serving_default"].structured_outputs) == ["out"]
    assert loaded.signatures["serving_default"](tf.ones([2, 2]))["out"].numpy().tolist() == [[3.0, 3.0]] * 2


def test_normalization_by_data_and_by_numbers(tmp_path):
    x = np.asarray([[1.0, 10.0], [3.0, 30.0], [5.0, 50.0]], "float32")
    layer = tf.keras.layers.Normalization(axis=-1)
    layer.adapt(x)
    assert np.allclose(layer.mean.numpy(), [[3, 30]]) and np.allclose(layer(x).numpy()[:, 0], [-1.2247449, 0, 1.2247449])
    given = tf.keras.layers.Normalization(mean=3.0, variance=2.0)
    assert np.allclose(given(tf.constant([[1.0], [5.0]])).numpy(), [[-1.4142135], [1.4142135]])
    whole = tf.keras.layers.Normalization(input_shape=[1], axis=None)
    whole.adapt(x[:, 0])
    model = tf.keras.Sequential([whole, tf.keras.layers.Dense(1)])
    before = model.predict(x[:, 0], verbose=0)
    assert before.shape == (3, 1)
    model.save(tmp_path / "m.keras")
    assert np.allclose(tf.keras.models.load_model(tmp_path / "m.keras").predict(x[:, 0], verbose=0), before)


def test_pictures_and_sequences_of_keras_utils(tmp_path):
    x = np.arange(48, dtype="uint8").reshape(4, 4, 3)
    tf.keras.utils.save_img(tmp_path / "a.png", x, scale=False)
    image = tf.keras.utils.load_img(tmp_path / "a.png")
    assert (tf.keras.utils.img_to_array(image) == x).all()
    assert tf.keras.utils.load_img(tmp_path / "a.png", target_size=(2, 3)).size == (3, 2)
    assert tf.keras.utils.img_to_array(tf.keras.utils.load_img(tmp_path / "a.png", color_mode="grayscale")).shape == (4, 4, 1)
    pad = tf.keras.utils.pad_sequences
    assert pad([[1], [2, 3, 4]], maxlen=2).tolist() == [[0, 1], [3, 4]]
    assert pad([[1], [2, 3, 4]], padding="post", truncating="post", maxlen=2, value=9).tolist() == [[1, 9], [2, 3]]
    mean = tf.keras.applications.mobilenet.preprocess_input(np.full((1, 2, 2, 3), 255.0))
    assert np.allclose(np.asarray(mean), 1.0)
    i = tf.keras.Input((2, 2, 3))
    model = tf.keras.Model(i, tf.keras.applications.mobilenet_v2.preprocess_input(i))
    assert np.allclose(model.predict(np.full((1, 2, 2, 3), 255.0), verbose=0), 1.0)


def test_signatures_name_arguments_and_results(tmp_path):
    class Two(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2]), tf.TensorSpec([])])
        def both(self, x, by):
            return x * by, x + by

    tf.saved_model.save(Two(), str(tmp_path / "a"))
    assert tf.saved_model.contains_saved_model(str(tmp_path / "a")) and not tf.saved_model.contains_saved_model("nowhere")
    loaded = tf.saved_model.load(str(tmp_path / "a"))
    serving = loaded.signatures["serving_default"]  # the only function with a signature
    out = serving(x=tf.constant([1.0, 2.0]), by=tf.constant(2.0))
    assert {n: t.numpy().tolist() for n, t in out.items()} == {"output_0": [2, 4], "output_1": [3, 4]}
    assert list(serving.structured_input_signature[1]) == ["x", "by"] and list(serving.structured_outputs) == list(out)
    assert loaded.both(tf.constant([1.0, 2.0]), tf.constant(2.0))[0].numpy().tolist() == [2, 4]
    with pytest.raises(TypeError, match="no argument is called 'z'"):
        serving(z=tf.constant(1.0))
    with pytest.raises(ValueError, match="which has no trace"):
        tf.saved_model.save(Two(), str(tmp_path / "b"), signatures=tf.function(lambda x: x))


def test_a_graph_is_read_op_by_op():
    v = tf.Variable([[1.0], [2.0]])

    def f(x):
        a, b = tf.split(x @ v, [1, 2])
        return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2.0), [tf.constant(0), a])[1] + tf.reduce_sum(b)
    graph = tf.function(f).get_concrete_function(tf.TensorSpec([3, 2], tf.float32)).graph
    split = graph.get_operation_by_name("SplitV")
    assert (split.type, [o.name for o in split.outputs], [tuple(o.shape) for o in split.outputs]) == (
        "SplitV", ["SplitV:0", "SplitV:1"], [(1, 1), (2, 1)])
    product, = split.inputs
    assert product.op.type == "MatMul" and product.dtype == tf.float32 and [i.op.type for i in product.op.inputs] == [
        "_Arg", "ReadVariableOp"]
    assert graph.get_tensor_by_name("SplitV:1").op is split
    assert [n.type for n in graph.get_operations()].count("_Arg") == 1 < [n.op for n in graph.node].count("_Arg")
    with pytest.raises(KeyError, match="no operation 'Square'"):
        graph.get_operation_by_name("Square")
    with pytest.raises(KeyError, match="has 2 results"):
        graph.get_tensor_by_name("SplitV:2")
    with pytest.raises(ValueError, match="operation:number"):
        graph.get_tensor_by_name("Split")
