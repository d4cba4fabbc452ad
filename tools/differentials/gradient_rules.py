"""What a tape gives: a value, None, or a class of error."""
GRAMMAR = """\
case := one of the programs below, by its number: tapes used twice, whole numbers, ops without gradients, assignments,
        unconnected_gradients, output_gradients, stop_recording, nested tapes, control flow, jacobians, custom gradients
An error agrees if it is caught by who catches TensorFlow's.
"""
PROGRAMS = []
# What Berth gives and TensorFlow does not, and why.
MORE = {
    "numpy_source": "a TypeError says that sources are tensors", "number_as_source": "as numpy_source",
    **dict.fromkeys(("op_round", "op_floor", "op_ceil", "op_rint", "op_floordiv"), "their slope, 0, is known"),
    **dict.fromkeys(("op_unique", "op_is_nan", "op_bitcast"), "None, as of other ops without slopes"),
    "op_bincount": "weights with a gradient are refused before the tape is asked",
    "output_gradients_with_none": "None stands for ones, as without output_gradients",
    "output_gradients_of_numbers": "numbers for the elements; TensorFlow takes the first for all",
}


def program(run):
    PROGRAMS.append(run)
    return run


def shown(value, tf):
    """A gradient as JSON."""
    if isinstance(value, (list, tuple)):
        return [shown(v, tf) for v in value]
    if isinstance(value, dict):
        return {k: shown(v, tf) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return tf.convert_to_tensor(value).numpy().tolist()


def case(rng, k):
    return {"program": PROGRAMS[k % len(PROGRAMS)].__name__}


def run(case, tf):
    try:
        return shown(next(p for p in PROGRAMS if p.__name__ == case["program"])(tf), tf)
    except Exception as error:  # whatever the program meets
        return {"raises": [c.__name__ for c in type(error).__mro__ if c.__name__ in CAUGHT]}


CAUGHT = ("LookupError", "ValueError", "TypeError", "RuntimeError", "AttributeError", "NotImplementedError",
          "AssertionError", "InvalidArgumentError", "FailedPreconditionError", "UnimplementedError")


def agree(case, ours, theirs):
    """What differs, or None."""
    if case["program"] in MORE or near(ours, theirs):
        return None
    return "a value"


def near(a, b):
    """Whether two results agree: numbers up to 1e-5, errors if the class that TensorFlow raises catches Berth's."""
    if isinstance(a, dict) and isinstance(b, dict):
        if "raises" in b:
            return bool(a.get("raises")) and set(b["raises"][:1]) <= set(a["raises"])
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return a == b or abs(a - b) < 1e-5 or (a != a and b != b)
    return a == b


def slope(tf, fn, *at, watch=True, **options):
    """The gradients of fn at tensors."""
    with tf.GradientTape() as tape:
        for x in at if watch else ():
            tape.watch(x)
        y = fn(*at)
    return tape.gradient(y, list(at), **options)


# Tapes that are used twice.
@program
def second_use(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    return tape.gradient(y, x)


@program
def second_use_after_jacobian(tf):
    x = tf.constant([3.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.jacobian(y, x)
    return tape.gradient(y, x)


@program
def persistent_twice(tf):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    return [tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, y)]


@program
def entered_twice(tf):
    x = tf.Variable(3.0)
    tape = tf.GradientTape()
    with tape:
        y = x * x
    with tape:
        z = x * x * x
    return tape.gradient(z, x)


@program
def entered_within_itself(tf):
    tape = tf.GradientTape()
    with tape:
        with tape:
            pass
    return 0


@program
def persistent_entered_twice(tf):
    x = tf.Variable(3.0)
    tape = tf.GradientTape(persistent=True)
    with tape:
        y = x * x
    with tape:
        z = y * x
    return [tape.gradient(z, x), tape.gradient(y, x)]


@program
def gradient_inside_its_tape(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        g = tape.gradient(y, x)
    return g


@program
def gradient_inside_a_persistent_tape(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        g = tape.gradient(y, x)
    return [g, tape.gradient(g, x)]


@program
def never_entered(tf):
    x = tf.Variable(3.0)
    tape = tf.GradientTape()
    return tape.gradient(x * x, x)


@program
def reset(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
        z = x * 2.0
    return tape.gradient(z, x)


@program
def reset_forgets(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()
    return tape.gradient(y, x)


# What is not watched.
@program
def constants_unwatched(tf):
    return slope(tf, lambda x: x * x, tf.constant(3.0), watch=False)


@program
def watched_after_use(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
    return tape.gradient(y, x)


@program
def watched_in_a_structure(tf):
    x = {"a": tf.constant(2.0), "b": [tf.constant(3.0)]}
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x["a"] * x["b"][0]
    return tape.gradient(y, x)


@program
def watched_number(tf):
    with tf.GradientTape() as tape:
        tape.watch(2.0)
    return 0


@program
def variable_not_trainable(tf):
    x = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x)


@program
def variable_not_trainable_watched(tf):
    x = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x)


@program
def accessed_variables_unwatched(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = x * x
    return [tape.gradient(y, x), len(tape.watched_variables())]


@program
def variables_watched(tf):
    x, y, z = tf.Variable(3.0, name="x"), tf.Variable(2.0, name="y"), tf.Variable(1.0, trainable=False)
    with tf.GradientTape() as tape:
        x * y * z
    return [v.name.split(":")[0] for v in tape.watched_variables()]


@program
def computed_outside(tf):
    x = tf.Variable(3.0)
    y = x * x
    with tf.GradientTape() as tape:
        z = y * 2.0
    return tape.gradient(z, x)


@program
def source_computed_inside(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = y * y
    return tape.gradient(z, [y, x])


@program
def target_is_the_source(tf):
    return slope(tf, lambda x: x, tf.constant([1.0, 2.0]))


@program
def another_tensor_of_the_value(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, tf.constant(3.0))


# Whole numbers and texts.
@program
def watch_of_int(tf):
    return slope(tf, lambda x: x * x, tf.constant(3))


@program
def int_variable(tf):
    x = tf.Variable(3)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, x)


@program
def int_target(tf):
    return slope(tf, lambda x: tf.cast(x, tf.int32), tf.constant(3.0))


@program
def through_an_int(tf):
    return slope(tf, lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32) * 2.0, tf.constant(3.0))


@program
def bool_source(tf):
    return slope(tf, lambda x: tf.cast(x, tf.float32), tf.constant(True))


@program
def watch_of_text(tf):
    return slope(tf, lambda x: tf.strings.length(x), tf.constant("a"))


@program
def int_beside_float(tf):
    x, n = tf.constant(3.0), tf.constant(2)
    with tf.GradientTape() as tape:
        tape.watch([x, n])
        y = x * tf.cast(n, tf.float32)
    return tape.gradient(y, [x, n])


@program
def numpy_source(tf):
    import numpy
    x = numpy.float32(2)
    with tf.GradientTape() as tape:
        y = tf.constant(2.0) * x
    return tape.gradient(y, x)


@program
def number_as_source(tf):
    with tf.GradientTape() as tape:
        y = tf.constant(2.0) * 3.0
    return tape.gradient(y, 3.0)


@program
def number_as_target(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        x * x
    return tape.gradient(4.0, x)


@program
def none_as_target(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        x * x
    return tape.gradient(None, x)


@program
def none_as_source(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, None)


@program
def no_sources(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, [])


@program
def no_targets(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        x * x
    return tape.gradient([], x)


@program
def source_twice(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient(y, [x, x])


@program
def dictionary_of_targets(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = {"a": x * x, "b": 3.0 * x}
    return tape.gradient(y, {"x": x})


@program
def target_of_a_variable(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.gradient([y, x], x)


# Ops that have no gradient.
def _of(name, fn, *values):
    def one(tf):
        return slope(tf, lambda *x: fn(tf, *x), *map(tf.constant, values))
    one.__name__ = name
    program(one)


_of("op_argmax", lambda tf, x: tf.cast(tf.argmax(x), tf.float32), [1.0, 3.0])
_of("op_round", lambda tf, x: tf.round(x) * 2.0, [1.2, 3.7])
_of("op_floor", lambda tf, x: tf.floor(x), [1.2, 3.7])
_of("op_ceil", lambda tf, x: tf.math.ceil(x), [1.2, 3.7])
_of("op_rint", lambda tf, x: tf.math.rint(x), [1.2, 3.7])
_of("op_sign", lambda tf, x: tf.sign(x), [1.2, -3.7])
_of("op_stop_gradient", lambda tf, x: tf.stop_gradient(x) * x, [1.2, 3.7])
_of("op_stop_gradient_alone", lambda tf, x: tf.stop_gradient(x), [1.2, 3.7])
_of("op_equal", lambda tf, x: tf.cast(tf.equal(x, 1.0), tf.float32), [1.0, 2.0])
_of("op_less", lambda tf, x: tf.where(x < 2.0, 1.0, 0.0), [1.0, 2.0])
_of("op_where_of_conditions", lambda tf, x: tf.where(x < 1.5, x * x, 3.0 * x), [1.0, 2.0])
_of("op_shape", lambda tf, x: tf.cast(tf.shape(x)[0], tf.float32), [1.0, 2.0])
_of("op_size_times", lambda tf, x: tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32), [1.0, 2.0])
_of("op_zeros_like", lambda tf, x: tf.zeros_like(x), [1.0, 2.0])
_of("op_ones_like", lambda tf, x: tf.ones_like(x) * x, [1.0, 2.0])
_of("op_sort", lambda tf, x: tf.sort(x) * [1.0, 2.0], [3.0, 2.0])
_of("op_top_k", lambda tf, x: tf.math.top_k(x, 1).values, [3.0, 2.0])
_of("op_unique", lambda tf, x: tf.unique(x)[0], [3.0, 2.0])
_of("op_one_hot", lambda tf, x: tf.one_hot(tf.cast(x, tf.int32), 3), [1.0, 2.0])
_of("op_gather", lambda tf, x: tf.gather(x, [1, 1]), [1.0, 2.0])
_of("op_gather_repeated", lambda tf, x: tf.gather(x, [[0, 0], [1, 0]]) * 2.0, [1.0, 2.0])
_of("op_floordiv", lambda tf, x: x // 2.0, [3.0, 5.0])
_of("op_floormod", lambda tf, x: x % 2.0, [3.0, 5.0])
_of("op_cumsum", lambda tf, x: tf.cumsum(x) * [1.0, 2.0], [3.0, 5.0])
_of("op_clip", lambda tf, x: tf.clip_by_value(x, 0.0, 4.0), [3.0, 5.0])
_of("op_maximum_equal", lambda tf, x, y: tf.maximum(x, y), [3.0, 5.0], [3.0, 6.0])
_of("op_reduce_max_equal", lambda tf, x: tf.reduce_max(x), [3.0, 3.0])
_of("op_abs_of_zero", lambda tf, x: tf.abs(x), [0.0, -1.0])
_of("op_relu_of_zero", lambda tf, x: tf.nn.relu(x), [0.0, -1.0])
_of("op_sqrt_of_zero", lambda tf, x: tf.sqrt(x), [0.0, 4.0])
_of("op_norm_of_zero", lambda tf, x: tf.norm(x), [0.0, 0.0])
_of("op_random", lambda tf, x: 0.0 * x * tf.random.uniform([2]), [1.0, 2.0])
_of("op_complex", lambda tf, x: tf.math.real(tf.complex(x, x) * tf.complex(x, x)), [1.0, 2.0])
_of("op_complex_target", lambda tf, x: tf.complex(x, x), [1.0, 2.0])
_of("op_is_nan", lambda tf, x: tf.math.is_nan(x), [1.0, 2.0])
_of("op_searchsorted", lambda tf, x: tf.cast(tf.searchsorted(x, [1.5]), tf.float32), [1.0, 2.0])
_of("op_bitcast", lambda tf, x: tf.bitcast(x, tf.int32), [1.0, 2.0])
_of("op_identity", lambda tf, x: tf.identity(x), [1.0, 2.0])
_of("op_cast_to_double", lambda tf, x: tf.cast(x, tf.float64) * 2.0, [1.0, 2.0])
_of("op_quantized", lambda tf, x: tf.round(tf.sin(x)) + x, [1.0, 2.0])
_of("op_segment_max", lambda tf, x: tf.math.segment_max(x, [0, 0, 1]), [1.0, 2.0, 3.0])
_of("op_pow_of_negative", lambda tf, x: x ** 2.0, [-1.0, 2.0])
_of("op_bincount", lambda tf, x: tf.math.bincount([0, 1, 1], weights=x), [1.0, 2.0, 3.0])
_of("op_histogram", lambda tf, x: tf.cast(tf.histogram_fixed_width(x, [0.0, 4.0], 2), tf.float32), [1.0, 3.0])
_of("op_nextafter", lambda tf, x: tf.math.nextafter(x, x + 1.0), [1.0, 2.0])
_of("op_dropout_of_all", lambda tf, x: tf.nn.dropout(x, 0.0) * x, [1.0, 2.0])
_of("op_ensure_shape", lambda tf, x: tf.ensure_shape(x, [2]), [1.0, 2.0])
_of("op_check_numerics", lambda tf, x: tf.debugging.check_numerics(x, "") * x, [1.0, 2.0])
_of("op_boolean_mask", lambda tf, x: tf.boolean_mask(x, [True, False]), [1.0, 2.0])
_of("op_reverse", lambda tf, x: tf.reverse(x, [0]) * [1.0, 3.0], [1.0, 2.0])
_of("op_string", lambda tf, x: tf.strings.to_number(tf.strings.as_string(x)), [1.0, 2.0])


# Assignments.
@program
def assigned_inside(tf):
    x, y = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y.assign(x * x)
        z = y * 2.0
    return tape.gradient(z, [x, y])


@program
def assigned_then_read(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        x.assign_add(1.0)
        y = x * x
    return tape.gradient(y, x)


@program
def read_then_assigned(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        x.assign(5.0)
    return tape.gradient(y, x)


@program
def replaced_by_a_tensor(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x + 1.0
    first = tape.gradient(y, x)
    x = x + 1.0
    with tf.GradientTape() as tape:
        y = x + 1.0
    return [first, tape.gradient(y, x)]


@program
def result_of_assign(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x.assign(4.0) * 2.0
    return tape.gradient(y, x)


@program
def part_assigned(tf):
    x, v = tf.Variable([1.0, 2.0]), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        x[0].assign(v * 2.0)
        y = tf.reduce_sum(x * x)
    return tape.gradient(y, [x, v])


@program
def read_value(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        a = x.read_value()
        y = a * a
    return tape.gradient(y, [a, x])


# unconnected_gradients and output_gradients.
@program
def unconnected_zero(tf):
    x, y = tf.Variable([2.0, 1.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = y * y
    return tape.gradient(z, {"x": x, "y": y}, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@program
def unconnected_none(tf):
    x, y = tf.Variable([2.0, 1.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = y * y
    return tape.gradient(z, [x, y], unconnected_gradients=tf.UnconnectedGradients.NONE)


@program
def unconnected_text(tf):
    x = tf.Variable([2.0, 1.0])
    with tf.GradientTape() as tape:
        z = tf.constant(1.0)
    return tape.gradient(z, x, unconnected_gradients="zero")


@program
def unconnected_unknown(tf):
    x = tf.Variable([2.0, 1.0])
    with tf.GradientTape() as tape:
        z = tf.constant(1.0)
    return tape.gradient(z, x, unconnected_gradients="nonsense")


@program
def unconnected_int(tf):
    x = tf.constant([2, 1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = tf.cast(x, tf.float32)
    return tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@program
def output_gradients(tf):
    return slope(tf, lambda x: x * x, tf.constant([1.0, 2.0]), output_gradients=tf.constant([10.0, 1.0]))


@program
def output_gradients_of_a_list(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = [x * x, 3.0 * x]
    return tape.gradient(y, x, output_gradients=[tf.constant(1.0), tf.constant(10.0)])


@program
def output_gradients_with_none(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = [x * x, 3.0 * x]
    return tape.gradient(y, x, output_gradients=[None, tf.constant(10.0)])


@program
def output_gradients_of_another_shape(tf):
    return slope(tf, lambda x: x * x, tf.constant([1.0, 2.0]), output_gradients=tf.constant([1.0, 2.0, 3.0]))


@program
def output_gradients_of_another_dtype(tf):
    return slope(tf, lambda x: x * x, tf.constant([1.0, 2.0]), output_gradients=tf.constant([1.0, 2.0], tf.float64))


@program
def output_gradients_of_numbers(tf):
    return slope(tf, lambda x: x * x, tf.constant([1.0, 2.0]), output_gradients=[3.0, 4.0])


# Tapes in tapes.
@program
def stop_recording(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            z = y * y
    return tape.gradient(z, x)


@program
def stop_recording_outside(tf):
    tape = tf.GradientTape()
    with tape.stop_recording():
        pass
    return 0


@program
def stopped_inside_then_gradient(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        with tape.stop_recording():
            g = tape.gradient(y, x)
        z = y * g
    return tape.gradient(z, x)


@program
def second_order(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        g = inner.gradient(y, x)
    return outer.gradient(g, x)


@program
def second_order_taken_outside(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
    g = inner.gradient(y, x)
    return outer.gradient(g, x)


@program
def second_order_of_a_line(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = 2.0 * x
        g = inner.gradient(y, x)
    return outer.gradient(g, x)


@program
def crossed_tapes(tf):
    x, y = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        a.watch(x)
        b.watch(y)
        z = tf.sin(x) + tf.sin(y) * x
    return [a.gradient(z, x), b.gradient(z, y)]


@program
def jacobian_of_a_scalar(tf):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x)
    return tape.jacobian(y, x)


@program
def jacobian_unconnected(tf):
    x, z = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    return tape.jacobian(y, [x, z])


@program
def jacobian_twice(tf):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    tape.jacobian(y, x)
    return tape.jacobian(y, x)


@program
def batch_jacobian_of_other_batches(tf):
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.concat([x, x], 0)
    return tape.batch_jacobian(y, x)


@program
def batch_jacobian_of_a_vector(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.batch_jacobian(y, x)


@program
def jacobian_of_nothing(tf):
    x, z = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape.jacobian(y, z, unconnected_gradients=tf.UnconnectedGradients.ZERO)


# Control flow and functions.
@program
def branch_of_python(tf):
    x = tf.constant(1.0)
    a, b = tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = a if x > 0.0 else b ** 2
    return [tape.gradient(result, a), tape.gradient(result, b), tape.gradient(result, x)]


@program
def branch_of_a_function(tf):
    x = tf.Variable(1.0)

    @tf.function
    def f():
        return tf.cond(x > 0.0, lambda: x * x, lambda: tf.constant(0.0))
    with tf.GradientTape() as tape:
        y = f()
    return tape.gradient(y, x)


@program
def inside_a_function(tf):
    x = tf.Variable(3.0)

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            y = x * x
        return tape.gradient(y, x)
    return f()


@program
def second_use_inside_a_function(tf):
    x = tf.Variable(3.0)

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            y = x * x
        tape.gradient(y, x)
        return tape.gradient(y, x)
    return f()


@program
def int_inside_a_function(tf):
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x)
    return f(tf.constant(3))


@program
def none_of_a_function(tf):
    x, y = tf.Variable(3.0), tf.Variable(2.0)

    @tf.function
    def f():
        with tf.GradientTape() as tape:
            z = x * x
        return tape.gradient(z, [x, y])
    return f()


@program
def function_of_an_int(tf):
    f = tf.function(lambda x, n: x * tf.cast(n, tf.float32))
    return slope(tf, f, tf.constant(3.0), tf.constant(2))


@program
def function_output_not_used(tf):
    f = tf.function(lambda x, y: (x * x, y * y))
    return slope(tf, lambda x, y: f(x, y)[0], tf.constant(3.0), tf.constant(2.0))


@program
def assign_in_a_function(tf):
    x, y = tf.Variable(3.0), tf.Variable(2.0)

    @tf.function
    def f():
        y.assign(x * x)
        return y * 2.0
    with tf.GradientTape() as tape:
        z = f()
    return tape.gradient(z, [x, y])


# Gradients of one's own.
@program
def custom(tf):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 7.0
    return slope(tf, f, tf.constant(3.0))


@program
def custom_without_gradient(tf):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: None
    return slope(tf, lambda x: f(x) + x, tf.constant(3.0))


@program
def custom_of_too_many(tf):
    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: (dy, dy)
    return slope(tf, f, tf.constant(3.0))


@program
def custom_of_too_few(tf):
    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda dy: dy
    return slope(tf, f, tf.constant(3.0), tf.constant(2.0))


@program
def custom_of_a_variable(tf):
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy: dy * v
    with tf.GradientTape() as tape:
        x = tf.constant(3.0)
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@program
def custom_with_variables(tf):
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * 7.0, [dy * 5.0 for _ in variables]
        return x * v, grad
    found = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            x = tf.constant(3.0)
            tape.watch(x)
            y = f(x) * 2.0
        found.append(tape.gradient(y, [x, v]))
    return found


@program
def custom_with_variables_in_a_function(tf):
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * 7.0, [dy * 5.0 for _ in variables]
        return x * v, grad

    @tf.function
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, v])
    return g(tf.constant(3.0))


@program
def py_function(tf):
    return slope(tf, lambda x: tf.py_function(lambda v: v * v, [x], tf.float32), tf.constant(3.0))


@program
def numpy_function(tf):
    return slope(tf, lambda x: tf.numpy_function(lambda v: v * v, [x], tf.float32), tf.constant(3.0))


@program
def through_numpy(tf):
    x = tf.Variable([1.0, 2.0])
    import numpy
    with tf.GradientTape() as tape:
        y = tf.reduce_mean(numpy.mean(x * x), axis=0)
    return tape.gradient(y, x)


@program
def rows_of_a_table(tf):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.nn.embedding_lookup(table, [2, 0, 2]) * 2.0)
    return tf.convert_to_tensor(tape.gradient(y, table))


@program
def ragged(tf):
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x.flat_values)
        y = tf.reduce_sum(x * x)
    return tape.gradient(y, x.flat_values)


@program
def extension_of_targets(tf):
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.ragged.stack([tf.stack([x, x * x]), tf.stack([x])])
    return tape.gradient(y.flat_values, x)


@program
def gradient_function_of_tape_after_error(tf):
    x = tf.Variable(2.0)
    try:
        with tf.GradientTape() as tape:
            y = x * x
            raise KeyError
    except KeyError:
        pass
    return tape.gradient(y, x)
