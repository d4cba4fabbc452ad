"""Gradients at the points where a function's slope is not finite, or has no value."""
GRAMMAR = """\
case    := op, x and y of 6 points, what flows back at each, dtype, eager or traced, first or second order
points  := 0, -0, 1, -1, +-inf, NaN, 4, 0.5, -2, 1e-3: for all ops of numbers, whether they have a value there or not
flows   := 0 (as behind a where that takes the other branch), 1, -2
op      := the functions of one and two numbers that have gradients, norms and sums of 6 numbers
Second slopes of a quotient by 0 need only be infinite or NaN in both: it has none. Those of a product
are taken where no factor is 0: there TensorFlow's are 0 whatever the other factors are.
"""
POINTS = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 4.0, 0.5, -2.0, 1e-3]
FINITE = [v for v in POINTS if abs(v) < 5]
UNARY = """math.sqrt math.rsqrt math.reciprocal math.log math.log1p math.exp math.expm1 math.abs math.square math.sign
    math.asin math.acos math.atan math.asinh math.acosh math.atanh math.tan math.sinh math.cosh math.tanh math.erf
    math.erfc math.erfinv math.ndtri math.softplus math.sigmoid math.log_sigmoid math.reciprocal_no_nan nn.softsign
    nn.elu nn.selu nn.relu nn.relu6 nn.leaky_relu nn.swish nn.gelu""".split()
# Not cumprod and reduce_euclidean_norm: their gradients at 0 are TensorFlow's errors, 0 and NaN.
BINARY = """math.divide math.divide_no_nan math.multiply math.multiply_no_nan math.xdivy math.xlogy math.xlog1py
    math.pow math.atan2 math.maximum math.minimum math.squared_difference math.floormod""".split()
WHOLE = """norm norm1 norm3 math.reduce_std math.reduce_logsumexp math.l2_normalize
    math.reduce_prod math.reduce_max clip_by_norm nn.softmax nn.log_softmax""".split()
WITH = {"norm": lambda tf, x: tf.norm(x), "norm1": lambda tf, x: tf.norm(x, ord=1),
        "norm3": lambda tf, x: tf.norm(x, ord=3), "math.l2_normalize": lambda tf, x: tf.math.l2_normalize(x, 0),
        "clip_by_norm": lambda tf, x: tf.clip_by_norm(x, 1.0)}


def case(rng, k):
    op = rng.choice(UNARY + BINARY + BINARY + WHOLE)
    points = POINTS if op not in WHOLE else rng.choice([[0.0], [0.0, 1.0, 4.0], FINITE])
    draw = lambda values: [rng.choice(values) for _ in range(6)]
    drawn_x = draw(points)
    return {"op": op, "x": [str(v) for v in drawn_x], "y": [str(v) for v in draw(points)],
            "flows": draw([0.0, 0.0, 1.0, -2.0]), "dtype": rng.choice(["float32", "float64"]),
            "traced": rng.random() < 0.4, "order": 2 if rng.random() < 0.3 and has_second(op, drawn_x) else 1}


def has_second(op, x):
    """Whether TensorFlow's second slope is the function's."""
    return op != "nn.softsign" and not (op == "math.reduce_prod" and 0 in x)


def run(case, tf):
    dtype, op = getattr(tf, case["dtype"]), case["op"]
    x, y = (tf.constant([float(v) for v in case[name]], dtype) for name in ("x", "y"))
    flows = tf.constant(case["flows"], dtype)
    function = tf
    for part in op.split(".") if op not in WITH else []:
        function = getattr(function, part)
    if op in WITH:
        function = lambda *a: WITH[op](tf, *a)
    operands = (x, y) if op in BINARY else (x,)

    def slopes(*operands):
        with tf.GradientTape() as outer:
            outer.watch(operands)
            with tf.GradientTape() as inner:
                inner.watch(operands)
                value = function(*operands) * (flows if op not in WHOLE else flows[2])
            first = inner.gradient(value, operands)
            weighted = [tf.reduce_sum(g * flows) for g in first if g is not None]
        if case["order"] == 1:
            return [tf.zeros_like(x) if g is None else g for g in first]
        second = outer.gradient(weighted, operands)
        return [tf.zeros_like(x) if g is None else g for g in second]

    if case["traced"]:
        slopes = tf.function(slopes)
    found = [[float(v) for v in g.numpy()] for g in slopes(*operands)]
    if op == "math.divide" and case["order"] == 2:
        found = [[v if abs(v) < float("inf") else float("nan") for v in slope] for slope in found]
    return found
