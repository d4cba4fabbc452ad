"""What a tape gives: a value, None, or a class of error."""
import _gradient_programs  # noqa: F401  pylint: disable=unused-import
from _tape_programs import PROGRAMS

GRAMMAR = """\
case := one of the programs below, by its number: tapes used twice, whole numbers, ops without gradients, assignments,
        unconnected_gradients, output_gradients, stop_recording, nested tapes, control flow, jacobians, custom gradients
An error agrees if it is caught by who catches TensorFlow's.
"""
# What Berth gives and TensorFlow does not, and why.
MORE = {
    "numpy_source": "a TypeError says that sources are tensors", "number_as_source": "as numpy_source",
    **dict.fromkeys(("op_round", "op_floor", "op_ceil", "op_rint", "op_floordiv"), "their slope, 0, is known"),
    **dict.fromkeys(("op_unique", "op_is_nan", "op_bitcast"), "None, as of other ops without slopes"),
    "op_bincount": "weights with a gradient are refused before the tape is asked",
    "output_gradients_with_none": "None stands for ones, as without output_gradients",
    "output_gradients_of_numbers": "numbers for the elements; TensorFlow takes the first for all",
}


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
