"""Programs of gradient_rules: tapes, what they watch, and ops without gradients."""
PROGRAMS = []


def program(run):
    PROGRAMS.append(run)
    return run


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
