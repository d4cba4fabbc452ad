"""Values of every kind through every entrance: dtype, shape and values are TensorFlow's, or both refuse."""
import os
import re
import tempfile
import types

import numpy as np

GRAMMAR = """
program  = entrance applied to a value
entrance = constant | convert_to_tensor (dtype, dtype_hint) | Variable | assign | an operator, either side
         | an op | cast | from_tensor_slices | from_tensors | from_generator | map | py_function
         | numpy_function | an argument or a result of tf.function | predict | fit | set_weights
         | a subscript | write_file | an op of integers that wrap
value    = array | NumPy scalar | number | text | list | tuple | None | range
array    = NumPy dtype x byte order x (plain | reversed | transposed | strided | Fortran | read-only)
           x shape (), (2,), (2, 2), (0,)
list     = numbers, NumPy scalars, arrays, text or lists of these; in one case of ten of mixed kinds
"""

NUMPY = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64",
         "complex64", "complex128", "uint64"] * 4 + ["longdouble", "S3", "U3", "object", "M8[D]"]
OWN = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool", "complex64", "complex128",
       "int16", "uint16", "uint32", "uint64", "bfloat16", "string"]
INTEGERS = ["int16", "uint16", "uint32", "uint64"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "@"]
UNARY = ["identity", "abs", "reduce_sum", "sqrt", "shape", "size", "rank", "zeros_like", "ones_like",
         "negative", "square", "math.log", "reduce_mean", "sort", "argmax", "transpose"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "pow",
          "math.squared_difference"]

refusals = {
    "whole number of 64 bits": "no dtype of the engine",
    "that float32 holds": "TensorFlow makes numbers infinite without a word",
    "is string; expected": "no arithmetic of text",
    "numbers of one kind": "TensorFlow refuses them, too, but in graphs",
    "datetime64": "a date is no number",
    "the other side of an operator must be values": "TensorFlow leaves arrays of objects to NumPy",
    "of string": "no variables of text",
    "as the tensor beside it has it": "TensorFlow drops fractions and high bits without a word",
    "holds, as the tensor beside it": "TensorFlow takes the low bits of a number without a word",
}


def array(rng, shape=None, kinds=None):
    """The text of an array."""
    dtype = rng.choice(kinds or NUMPY)
    shape = rng.choice([(), (2,), (2,), (2, 2), (0,)]) if shape is None else shape
    n = int(np.prod(shape, dtype=int))
    if dtype in ("S3", "U3"):
        flat = [rng.choice([b"a", b"b\0", b"\0c"]) if dtype == "S3" else rng.choice(["a", "\u00e9"]) for _ in range(n)]
    elif dtype == "object":
        kind = rng.choice(["text", "text", "whole"])
        flat = [rng.choice([b"a\0", "b"]) if kind == "text" else rng.randint(1, 3) for _ in range(n)]
    elif dtype == "M8[D]":
        flat = [rng.randint(1, 9) for _ in range(n)]
    elif dtype == "bool":
        flat = [rng.random() < 0.5 for _ in range(n)]
    elif "complex" in dtype:
        flat = [complex(rng.randint(1, 3), rng.randint(0, 2)) for _ in range(n)]
    elif "float" in dtype or dtype == "longdouble":
        flat = [rng.choice([1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 2.5]) for _ in range(n)]
    else:
        flat = [rng.randint(0, 3) for _ in range(n)]
    order = rng.choice(["", "", ">", "<"]) if dtype not in ("bool", "S3", "object", "longdouble", "int8", "uint8") else ""
    full = np.dtype(dtype).newbyteorder(order).str if order and dtype != "M8[D]" else dtype
    text = f"np.array({flat!r}, {full!r}).reshape({shape!r})"
    form = rng.choice(["", "", "reversed", "strided", "fortran", "readonly", "transposed"])
    if form == "reversed" and shape:
        text += "[::-1]"
    elif form == "strided" and shape:
        text = f"np.repeat({text}, 2, 0)[::2]"
    elif form == "fortran":
        text = f"np.asfortranarray({text})" if shape else text
    elif form == "readonly":
        text = f"read_only({text})"
    elif form == "transposed":
        text += ".T"
    return text


def plain_array(rng):
    return array(rng, None, [d for d in NUMPY if d not in ("object", "M8[D]", "longdouble")])


def numpy_scalar(rng):
    dtype = rng.choice([d for d in NUMPY if d not in ("S3", "U3", "object", "M8[D]")])
    value = rng.choice([1, 2, 3]) if dtype != "bool" else rng.choice([True, False])
    return f"np.{dtype}({value!r})" if dtype != "bool" else f"np.bool_({value})"


def number(rng):
    return rng.choice(["True", "False", "3", "-2", "5", "2", "3.0", "0.5", "-1.5", "4", "0", "7", "2.0", "1.5", "0.1", "-0.25", "1j", "2+1j", "2**31",
                       "-2**31", "2**40", "2**63", "2**64", "1e40", "float('nan')", "float('inf')"])


def text(rng):
    return rng.choice(["'a'", "'a\\0'", "b'b\\0\\0'", "b'\\xff'", "''", "'\\u00e9'"])


def leaf(rng, kind):
    if kind == "whole":
        return rng.choice(["1", "2", "-3", "2**31", "np.int64(2)", "np.uint8(1)", "np.int16(3)"])
    if kind == "real":
        return rng.choice(["1.5", "2", "0.1", "np.float64(1.1)", "np.float32(2.5)", "True", "np.float16(2)", "3.0"])
    if kind == "truth":
        return rng.choice(["True", "False", "np.bool_(True)"])
    if kind == "complex":
        return rng.choice(["1j", "2+1j", "np.complex64(1)"])
    return text(rng)


def a_list(rng, depth=None, kind=None):
    kind = kind or rng.choice(["whole", "whole", "real", "real", "truth", "complex", "text", "mixed", "array"])
    depth = rng.choice([1, 1, 2]) if depth is None else depth
    if kind == "array":
        parts = [array(rng, (2,), [d for d in NUMPY if d not in ("object", "M8[D]", "longdouble")])]
        parts += [rng.choice([parts[0], "[1, 2]", "[1.5, 2]"])] if rng.random() < 0.6 else []
    elif depth > 1:
        parts = [a_list(rng, depth - 1, kind) for _ in range(2)]
    else:
        kinds = ["whole", "real", "truth", "complex", "text"]
        parts = [leaf(rng, rng.choice(kinds) if kind == "mixed" else kind) for _ in range(2)]
    return rng.choice(["[{}]", "[{}]", "({},)"]).format(", ".join(parts))


def value(rng):
    return rng.choice([array, array, array, numpy_scalar, number, text, a_list, a_list, a_list,
                       lambda r: r.choice(["[]", "[[]]", "[[], []]", "None", "range(3)", "[[1, 2], [3]]", "[1, None]"])])(rng)


def of_graph(rng):
    """A value of a traced function, where TensorFlow converts lists of NumPy's values in another way."""
    return next(v for v in iter(lambda: value(rng), None) if v != "range(3)" and (v[0] not in "[(" or "np." not in v))


def one(rng):
    return rng.choice([array, array, numpy_scalar, number, text])(rng)


def pair(rng):
    """Something to stand beside a tensor of shape [2]."""
    plain = lambda r: number(r) if r.random() < 0.2 else r.choice(["3", "-2", "2.0", "0.5", "True"])  # noqa: E731
    return rng.choice([lambda r: array(r, (2,)), lambda r: array(r, (2,)), lambda r: array(r, ()), numpy_scalar, plain,
                       lambda r: a_list(r, 1, r.choice(["whole", "real", "truth", "text"]))])(rng)


def tensor(rng, kinds=None):
    dtype = rng.choice(kinds or ["float32", "float32", "int32", "int64", "float64", "uint8", "bool", "float16",
                                 "complex64", "string"] + INTEGERS)
    values = {"bool": "[True, False]", "string": "['a', 'b\\0']"}.get(dtype, "[1, 2]")
    return f"tf.constant({values}, tf.{dtype})"


def index(rng):
    one = lambda: rng.choice(["0", "1", "-1", "1.9", "1.0", "'1'", "True", "np.int64(1)", "np.float64(1)", "np.uint8(1)",  # noqa: E731
                              "np.array(1)", "np.array(1, '>i2')", "tf.constant(1)", "tf.constant(1.0)", "None", "...",
                              ":", ":1", "1:", "::-1", ":1.5", "'a':", "np.int8(0):np.uint8(2)", "tf.constant(0):2",
                              "5", "2**40", "np.float32(0):", "b'1'", "1j", "::2", "-1:", "[0]", "[0, 1]", "[0.5]"])
    return ", ".join(one() for _ in range(rng.choice([1, 1, 1, 2])))


def whole(rng, dtype, shape, most=None):
    """A tensor of integers of the whole range of a dtype, or below `most`."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    n = int(np.prod(shape, dtype=int))
    flat = [rng.randrange(most) if most else rng.choice([low, high, 1, 3, high // 2 + 2, rng.randint(low, high)])
            for _ in range(n)]
    return f"tf.constant(np.array({flat!r}, {dtype!r}).reshape({shape!r}))"


def of_integers(rng):
    """An op of tensors of integers."""
    dtype = rng.choice(INTEGERS)
    one = lambda: whole(rng, dtype, (2, 3))  # noqa: E731
    return rng.choice([
        lambda: f"tf.{rng.choice(list(PAIRS))}({one()}, {whole(rng, dtype, rng.choice([(2, 3), (3,), ()]))})",
        lambda: f"tf.{rng.choice(['bitwise.left_shift', 'bitwise.right_shift', 'pow'])}"
                f"({one()}, {whole(rng, dtype, (3,), 15)})",
        lambda: f"tf.{rng.choice(list(ALONE))}({one()})",
        lambda: f"tf.{rng.choice(list(ALONG))}({one()}, axis={rng.choice([0, 1])})",
        lambda: f"tf.cast({one()}, tf.{rng.choice(OWN[:14])})",
        lambda: f"tf.cast(tf.constant([0., 1.75, 1000.5]), tf.{dtype})",
        lambda: f"tf.matmul({one()}, {whole(rng, dtype, (3, 2))})",
        lambda: f"tf.range({rng.randint(0, 9)}, {rng.randint(9, 30)}, {rng.randint(1, 4)}, dtype=tf.{dtype})",
        lambda: f"tf.one_hot([0, 2, 1], 3, on_value={rng.randint(2, 200)}, off_value=1, dtype=tf.{dtype})",
        lambda: f"tf.gather({one()}, [1, 0, 1])",
        lambda: f"tf.tensor_scatter_nd_{rng.choice(['add', 'sub', 'update', 'min', 'max'])}"
                f"({one()}, [[1]], {whole(rng, dtype, (1, 3))})",
        lambda: f"tf.math.unsorted_segment_{rng.choice(['sum', 'prod', 'max', 'min'])}({one()}, [0, 2], 3)",
        lambda: f"tf.io.decode_raw(b'{''.join(chr(rng.randint(65, 90)) for _ in range(8))}', tf.{dtype})",
        lambda: f"tf.Variable({one()}).assign_{rng.choice(['add', 'sub'])}({one()})",
        lambda: f"tf.strings.as_string({one()})",
        lambda: f"tf.unique({whole(rng, dtype, (5,), 3)})[0]",
        lambda: f"tf.where({whole(rng, dtype, (2, 3), 2)})",
    ])()


# What ops give where TensorFlow has no kernel of the dtype.
PAIRS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
         "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
         "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
         "bitwise.bitwise_and": np.bitwise_and, "bitwise.bitwise_or": np.bitwise_or,
         "bitwise.bitwise_xor": np.bitwise_xor, "math.floordiv": np.floor_divide, "math.floormod": np.mod,
         "math.squared_difference": lambda a, b: np.square(np.subtract(a, b))}
ALONE = {"abs": np.abs, "negative": np.negative, "sign": np.sign, "square": np.square, "bitwise.invert": np.invert,
         "transpose": np.transpose, "nn.relu": lambda x: np.maximum(x, x.dtype.type(0)), "identity": lambda x: x,
         "zeros_like": np.zeros_like, "ones_like": np.ones_like, "reduce_max": np.max}
ALONG = {"reduce_sum": lambda x, axis: np.sum(x, axis, x.dtype), "reduce_prod": lambda x, axis: np.prod(x, axis, x.dtype),
         "reduce_max": np.max, "reduce_min": np.min, "argmax": np.argmax, "argmin": np.argmin,
         "cumsum": lambda x, axis: np.cumsum(x, axis, x.dtype), "sort": np.sort,
         "math.cumprod": lambda x, axis: np.cumprod(x, axis, x.dtype),
         "argsort": lambda x, axis: np.argsort(x, axis, kind="stable").astype("int32")}
MORE_RULES = {"bitwise.left_shift": np.left_shift, "bitwise.right_shift": np.right_shift, "pow": np.power,
              "matmul": np.matmul, "constant": lambda v, d=None: np.array(v, d), "cast": lambda x, d: x.astype(d),
              "gather": lambda x, i: x[i], "range": lambda a, b, c, dtype: np.arange(a, b, c, dtype),
              "where": lambda x: np.argwhere(x), "unique": lambda x: (list(dict.fromkeys(x.tolist())),)}


def by_numpy(program):
    """What a program of integers gives if the functions are NumPy's; None for other programs."""
    tf = types.SimpleNamespace(**{d: d for d in OWN}, bitwise=types.SimpleNamespace(), math=types.SimpleNamespace(),
                               nn=types.SimpleNamespace())
    for name, rule in {**PAIRS, **ALONE, **ALONG, **MORE_RULES}.items():
        module, _, leaf = name.rpartition(".")
        setattr(getattr(tf, module) if module else tf, leaf, rule)
    try:
        return plain(eval(program, {"np": np, "tf": tf}))  # noqa: S307  the program is our own
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def generator(rng):
    return f"list(tf.data.Dataset.from_generator(lambda: iter([{value(rng)}]), tf.{rng.choice(OWN)}))"


def keras_input(rng):
    numbers = [d for d in NUMPY if d not in ("complex64", "complex128", "S3", "U3", "object", "M8[D]", "longdouble")]
    a, b = array(rng, (2, 2), numbers), array(rng, (2, 2), numbers)
    return rng.choice([f"model(tf).predict({a}, verbose=0)", f"trained(tf, {a}, {b}, {a}, {b})",
                       f"weights(tf, [{array(rng, (2, 2), numbers)}, {array(rng, (2,), numbers)}])",
                       f"trained_on(tf, ({a}, {b}), ({b}, {a}))"])


ENTRANCES = [
    (6, lambda r: f"tf.constant({value(r)})"),
    (6, lambda r: f"tf.constant({value(r)}, tf.{r.choice(OWN)})"),
    (2, lambda r: f"tf.convert_to_tensor({value(r)})"),
    (2, lambda r: f"tf.convert_to_tensor({value(r)}, tf.{r.choice(OWN)})"),
    (2, lambda r: f"tf.convert_to_tensor({value(r)}, dtype_hint=tf.{r.choice(OWN)})"),
    (3, lambda r: f"tf.Variable({value(r)})"),
    (2, lambda r: f"tf.Variable({value(r)}, dtype=tf.{r.choice(OWN)})"),
    (5, lambda r: f"tf.Variable({tensor(r)}).{r.choice(['assign', 'assign', 'assign_add', 'assign_sub'])}({pair(r)})"),
    (8, lambda r: f"{tensor(r)} {r.choice(OPERATORS)} {pair(r)}"),
    (6, lambda r: f"{pair(r)} {r.choice(OPERATORS)} {tensor(r)}"),
    (4, lambda r: f"tf.{r.choice(BINARY)}({tensor(r)}, {pair(r)})"),
    (2, lambda r: f"tf.{r.choice(BINARY)}({pair(r)}, {tensor(r)})"),
    (4, lambda r: f"tf.{r.choice(UNARY)}({value(r)})"),
    (2, lambda r: f"tf.concat([{tensor(r)}, {array(r, (2,))}], 0)"),
    (1, lambda r: f"tf.stack([{pair(r)}, {tensor(r)}])"),
    (1, lambda r: f"tf.where([True, False], {tensor(r)}, {pair(r)})"),
    (4, lambda r: f"tf.cast({value(r)}, tf.{r.choice(OWN)})"),
    (4, lambda r: f"elements(tf.data.Dataset.from_tensor_slices({value(r)}))"),
    (2, lambda r: f"elements(tf.data.Dataset.from_tensor_slices(({a_list(r, 1)}, {array(r, (2,))})))"),
    (3, lambda r: f"elements(tf.data.Dataset.from_tensors({value(r)}))"),
    (2, lambda r: f"elements(tf.data.Dataset.from_tensors({{'b': {value(r)}, 'a': {value(r)}}}))"),
    (4, generator),
    (3, lambda r: f"elements(tf.data.Dataset.range(2).map(lambda x: {of_graph(r)}))"),
    (2, lambda r: f"elements(tf.data.Dataset.range(2).map(lambda x: (x, {of_graph(r)})))"),
    (4, lambda r: f"tf.py_function(lambda: {one(r)}, [], tf.{r.choice(OWN)})"),
    (2, lambda r: f"tf.py_function(lambda x: x, [{one(r)}], tf.{r.choice(OWN)})"),
    (2, lambda r: f"tf.numpy_function(lambda x: kind(x), [{array(r, None, OWN[:9])}], tf.string)"),
    (3, lambda r: f"tf.function(lambda x: x)({array(r)})"),
    (3, lambda r: f"tf.function(lambda: {value(r)})()"),
    (3, keras_input),
    (6, lambda r: f"tf.constant([[1, 2], [3, 4]])[{index(r)}]"),
    (24, of_integers),
    (2, lambda r: f"written(tf, {r.choice([text, text, number, a_list])(r)})"),
    (2, lambda r: f"tf.fill([2], {r.choice([numpy_scalar, number, text])(r)})"),
    (2, lambda r: f"tf.strings.length({r.choice([text, lambda q: a_list(q, None, 'text'), lambda q: array(q, None, ['S3', 'U3', 'object'])])(r)})"),
]


def case(rng, k):
    weights = [weight for weight, _ in ENTRANCES]
    return {"program": rng.choices(ENTRANCES, weights)[0][1](rng)}


def read_only(a):
    a.flags.writeable = False
    return a


def kind(x):
    return f"{np.asarray(x).dtype.kind}{np.shape(x)}"


def elements(dataset):
    return [dataset.element_spec, list(dataset)]


def model(tf):
    made = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2, kernel_initializer="ones")])
    made.compile("sgd", "mse")
    return made


def trained(tf, x, y, vx, vy):
    history = model(tf).fit(x, y, validation_data=(vx, vy), verbose=0, shuffle=False).history
    return {k: float(v[-1]) for k, v in history.items()}


def trained_on(tf, data, validation):
    batches = [tf.data.Dataset.from_tensor_slices(d).batch(2) for d in (data, validation)]
    history = model(tf).fit(batches[0], validation_data=batches[1], verbose=0).history
    return {k: float(v[-1]) for k, v in history.items()}


def weights(tf, values):
    made = model(tf)
    made.set_weights(values)
    return made.get_weights()


def written(tf, contents):
    with tempfile.TemporaryDirectory() as folder:
        tf.io.write_file(os.path.join(folder, "f"), contents)
        with open(os.path.join(folder, "f"), "rb") as file:
            return file.read()


def plain(x):
    """A result as JSON."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, bytes):
        return x.decode("latin1")
    if type(x).__name__ == "NoneTensorSpec":
        return None
    if hasattr(x, "dtype") and hasattr(x, "shape") and not hasattr(x, "numpy") and not isinstance(x, (np.ndarray, np.generic)):
        return {"dtype": x.dtype.name, "shape": list(x.shape)}  # a spec
    if hasattr(x, "numpy") or isinstance(x, (np.ndarray, np.generic)):
        a = np.asarray(x.numpy() if hasattr(x, "numpy") else x)
        name = x.dtype.name if hasattr(x, "numpy") else a.dtype.name
        flat = a.ravel().tolist()
        if a.dtype.kind == "c":
            flat = [part for v in flat for part in (v.real, v.imag)]
        elif a.dtype.kind == "V" or a.dtype.name == "bfloat16":
            flat = a.ravel().astype("float32").tolist()
        return {"dtype": name, "shape": list(a.shape), "values": [plain(v) for v in flat]}
    return x if isinstance(x, (bool, int, float, str)) or x is None else type(x).__name__


def run(case, tf):
    scope = {k: globals()[k] for k in ("np", "read_only", "kind", "elements", "model", "trained", "trained_on", "weights",
                                       "written")}
    try:
        return plain(eval(case["program"], {**scope, "tf": tf}))  # noqa: S307  the program is our own
    except (RuntimeError, SystemError, AttributeError, UnboundLocalError, RecursionError) as error:
        if tf.__name__ == "berth" and type(error).__module__ == "builtins":
            return f"an error that says nothing: {error!r}"[:300]
        raise


# What Berth takes and TensorFlow does not, always or by the order of arguments.
MORE = [r"dtype_hint.*(True|False)", r"tf\\.pow|\\*\\*", r"^tf\\.function", r"^tf\.[\w.]+\((np|read_only|\[|\()", "True|False"]


# TensorFlow knows the op, but not for this dtype.
NO_KERNEL = re.compile("Could not find device for node|not in the list of allowed values|No OpKernel|is not supported")


def agree(case, a, b):
    if isinstance(a, str) and a.startswith("an error"):
        return a
    if isinstance(b, dict) and "error" in b:
        judge = by_numpy(case["program"]) if NO_KERNEL.search(b["error"]) else None
        if judge is not None:
            return None if near(a, judge, 0) else "differs from NumPy"
        return None if any(re.search(pattern, case["program"]) for pattern in MORE) else "not refused"
    if re.match(r"tf\.convert_to_tensor.*(True|False).*dtype_hint|tf\.cast\(float\(|tf\.function\(lambda: .*'>", case["program"]):
        return None  # infinity as a whole number; TensorFlow's own fault: foreign order in a graph
    traced = "lambda" in case["program"]  # TensorFlow's constants of graphs lose trailing NULs

    def seen(x):
        if isinstance(x, list):
            return [seen(v) for v in x]
        if isinstance(x, dict):
            return {k: seen(v) for k, v in x.items()}
        return x.rstrip("\0") if traced and isinstance(x, str) else x
    rounded = "np.float16" in case["program"]  # TensorFlow rounds lists to the dtype of their first item on the way
    return None if near(seen(a), seen(b), 1e-2 if rounded else 1e-5) else "differs"


def near(a, b, tolerance):
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or isinstance(b, str):
        return a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k], tolerance) for k in a)
    return a == b
