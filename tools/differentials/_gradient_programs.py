"""Programs of gradient_rules: assignments, what flows back, tapes in tapes, functions, custom gradients."""
from _tape_programs import program, slope


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
