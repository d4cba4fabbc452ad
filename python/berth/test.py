"""tf.test: what scripts ask about GPUs, and test cases that compare tensors."""
import contextlib as _contextlib
import os as _os
import tempfile as _tempfile
import unittest as _unittest

import numpy as _np

from berth import _core, config, random
from berth._tensor import as_dtype as _as_dtype, convert_to_tensor as _tensor

__all__ = ["TestCase", "compute_gradient", "gpu_device_name", "is_built_with_cuda", "is_built_with_gpu_support",
           "is_built_with_rocm", "is_built_with_xla", "is_cpu_target_available", "is_gpu_available", "main"]


def gpu_device_name():
    """The name of the first GPU, such as "/device:GPU:0", or "" without one."""
    return "/device:GPU:0" if config.list_logical_devices("GPU") else ""


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Whether there is a GPU; cuda_only: of NVIDIA's; min_cuda_compute_capability: a pair such as (7, 0)."""
    found = config.list_physical_devices("GPU") if is_built_with_cuda() or not cuda_only else []
    if min_cuda_compute_capability is not None:
        details = (config.experimental.get_device_details(d) for d in found)
        found = [d for d in details if tuple(d.get("compute_capability", (0, 0))) >= tuple(min_cuda_compute_capability)]
    return bool(found)


def is_built_with_cuda():
    """Whether the part of Berth that drives NVIDIA's cards is installed."""
    return _os.path.exists(_os.path.join(_os.path.dirname(_core.__file__), "lib", "berth", "libberth_cuda.so"))


def is_built_with_gpu_support():
    """Whether a part of Berth that drives GPUs is installed."""
    return is_built_with_cuda()


def is_built_with_rocm():
    """False: cards of AMD are driven by OpenCL."""
    return False


def is_built_with_xla():
    """False: Berth compiles its plans itself."""
    return False


def is_cpu_target_available(target):
    """Whether kernels for this kind of processor run here: "x86_64" or "aarch64"."""
    return target == _os.uname().machine


def main(argv=None):
    """Runs the test cases of the script (unittest.main)."""
    _unittest.main(argv=argv)


def compute_gradient(f, x, delta=None):
    """Jacobians of f(*x) by a tape, and by differences: (theoretical, numerical), each a list of [outputs, inputs].

    x: a list of tensors. delta: the step of the differences, 2 ** -10 by default, and less for float64.
    """
    from berth import GradientTape
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"tf.test.compute_gradient: x is a {type(x).__name__}; expected a list of tensors, one for each argument "
                         "of f")
    x = [_tensor(v) for v in x]
    step = 2.0 ** -10 if delta is None else delta
    with GradientTape(persistent=True) as tape:
        for v in x:
            tape.watch(v)
        y = f(*x)
    exact = [tape.jacobian(y, v, unconnected_gradients="zero").numpy().reshape(y.shape.num_elements(), -1) for v in x]
    return exact, [_differences(f, x, i, step) for i in range(len(x))]


def _differences(f, x, i, step):
    columns = []
    for at in _np.ndindex(*x[i].shape.as_list()):
        moved = []
        for sign in (1, -1):
            changed = _np.array(x[i].numpy())
            changed[at] += sign * step
            moved.append(f(*x[:i], _tensor(changed), *x[i + 1:]).numpy().astype("float64").ravel())
        columns.append((moved[0] - moved[1]) / (2 * step))
    return _np.stack(columns, 1)


class TestCase(_unittest.TestCase):
    """A test case whose assertions take tensors, variables, arrays and structures of them."""

    def setUp(self):
        """Seeds random numbers."""
        super().setUp()
        _np.random.seed(87654321)
        random.set_seed(87654321)

    def get_temp_dir(self):
        """A folder for this test alone, which goes with the process."""
        if not hasattr(self, "_folder"):
            self._folder = _tempfile.TemporaryDirectory()
        return self._folder.name

    def evaluate(self, tensors):
        """NumPy's arrays in place of tensors, in their structure."""
        from berth import nest
        return nest.map_structure(lambda v: v.numpy() if hasattr(v, "numpy") else v, tensors)

    @_contextlib.contextmanager
    def session(self, graph=None, config=None, use_gpu=True, force_gpu=False):
        """A block for tests that were written for version 1; there is nothing to open."""
        yield self

    cached_session = test_session = session
    test_session.__test__ = False

    def _compare(self, a, b, check):
        """Calls check with the arrays of two structures, one after the other; shapes must be equal."""
        a, b = self.evaluate(a), self.evaluate(b)
        if isinstance(a, dict):
            self.assertIsInstance(b, dict)
            self.assertCountEqual(a, b)
            for key in a:
                self._compare(a[key], b[key], check)
            return
        try:
            x, y = _np.asarray(a), _np.asarray(b)
        except ValueError:  # parts of other shapes
            self.assertEqual(len(a), len(b))
            for v, w in zip(a, b):
                self._compare(v, w, check)
            return
        if x.dtype == object and isinstance(a, (list, tuple)):
            self.assertEqual(len(a), len(b))
            for v, w in zip(a, b):
                self._compare(v, w, check)
            return
        self.assertEqual(x.shape, y.shape, f"{a!r} and {b!r}")
        check(x, y)

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Structures of tensors have equal shapes and values within rtol and atol."""
        self._compare(a, b, lambda x, y: _np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=msg or ""))

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, float_rtol=1e-6, float_atol=1e-6, half_rtol=1e-3,
                                      half_atol=1e-3, bfloat16_rtol=1e-2, bfloat16_atol=1e-2, msg=None):
        """assertAllClose() with the tolerance of the less exact dtype."""
        limits = {"float16": (half_rtol, half_atol), "bfloat16": (bfloat16_rtol, bfloat16_atol),
                  "float32": (float_rtol, float_atol), "complex64": (float_rtol, float_atol)}

        def check(x, y):
            of = [limits.get(v.dtype.name, (rtol, atol)) for v in (x, y)]
            _np.testing.assert_allclose(x.astype("complex128"), y.astype("complex128"), rtol=max(r for r, _ in of),
                                        atol=max(a for _, a in of), err_msg=msg or "")
        self._compare(a, b, check)

    def assertAllEqual(self, a, b, msg=None):
        """Structures of tensors have equal shapes and values."""
        self._compare(a, b, lambda x, y: _np.testing.assert_array_equal(x, y, err_msg=msg or ""))

    def _not(self, check, msg):
        try:
            check()
        except AssertionError:
            return
        self.fail(msg or "the values are equal")

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Some value differs by more than rtol and atol."""
        self._not(lambda: self.assertAllClose(a, b, rtol, atol), msg)

    def assertNotAllEqual(self, a, b, msg=None):
        """Some value differs."""
        self._not(lambda: self.assertAllEqual(a, b), msg)

    def _all(self, a, holds, what):
        values = _np.asarray(self.evaluate(a))
        self.assertTrue(_np.all(holds(values)), f"not all elements {what}: {values}")

    def assertAllGreater(self, a, comparison_target):
        """All elements are more than a number."""
        self._all(a, lambda v: v > comparison_target, f"> {comparison_target}")

    def assertAllGreaterEqual(self, a, comparison_target):
        """All elements are at least a number."""
        self._all(a, lambda v: v >= comparison_target, f">= {comparison_target}")

    def assertAllLess(self, a, comparison_target):
        """All elements are less than a number."""
        self._all(a, lambda v: v < comparison_target, f"< {comparison_target}")

    def assertAllLessEqual(self, a, comparison_target):
        """All elements are at most a number."""
        self._all(a, lambda v: v <= comparison_target, f"<= {comparison_target}")

    def assertAllInRange(self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False):
        """All elements are between two bounds, which belong to it unless they are open."""
        self._all(target, lambda v: ((v > lower_bound) if open_lower_bound else (v >= lower_bound)) & (
            (v < upper_bound) if open_upper_bound else (v <= upper_bound)), f"between {lower_bound} and {upper_bound}")

    def assertAllInSet(self, target, expected_set):
        """All elements are in a set."""
        self._all(target, lambda v: _np.isin(v, list(expected_set)), f"in {expected_set}")

    def assertNear(self, f1, f2, err, msg=None):
        """Two numbers differ by at most err."""
        self.assertLessEqual(abs(self.evaluate(f1) - self.evaluate(f2)), err, msg)

    def assertArrayNear(self, farray1, farray2, err, msg=None):
        """The elements of two arrays differ by at most err."""
        self._compare(farray1, farray2, lambda x, y: self.assertTrue(_np.all(_np.abs(x - y) <= err), msg or f"{x} and {y}"))

    assertNDArrayNear = assertArrayNear

    def assertShapeEqual(self, input_a, input_b, msg=None):
        """Two tensors have equal shapes."""
        self.assertEqual(_np.shape(input_a), _np.shape(input_b), msg)

    def assertDTypeEqual(self, target, expected_dtype):
        """A tensor has a dtype."""
        self.assertEqual(_as_dtype(target.dtype), _as_dtype(expected_dtype))

    def assertDeviceEqual(self, device1, device2, msg=None):
        """Names of devices are equal; a short one stands for all that end with it."""
        one, two = sorted((str(device1).lower(), str(device2).lower()), key=len)
        self.assertTrue(two.endswith(one.lstrip("/").replace("device:", "")), msg or f"{device1} is not {device2}")

    def assertRaisesOpError(self, expected_err_re_or_predicate):
        """A block that raises a tf.errors.OpError whose text has the pattern."""
        return self.assertRaisesWithPredicateMatch(_core.OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(self, exception_type=_core.InvalidArgumentError, *args, **kwargs):
        """A block, or the call of a function, that raises an error of shapes that do not go together."""
        return self.assertRaises((exception_type, ValueError), *args, **kwargs)

    @_contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type, expected_err_re_or_predicate):
        """A block that raises an error whose text has the pattern, or for which the function returns True."""
        wanted = expected_err_re_or_predicate
        with self.assertRaises(exception_type) as caught:
            yield
        if callable(wanted):
            self.assertTrue(wanted(caught.exception), caught.exception)
        else:
            self.assertRegex(str(caught.exception), wanted)

    def assertStartsWith(self, actual, expected_start, msg=None):
        """A text begins with another."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    def assertEndsWith(self, actual, expected_end, msg=None):
        """A text ends with another."""
        self.assertTrue(actual.endswith(expected_end), msg or f"{actual!r} does not end with {expected_end!r}")

    def assertLen(self, container, expected_len, msg=None):
        """A container has so many elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container, msg=None):
        """A container has no elements."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container, msg=None):
        """A container has elements."""
        self.assertGreater(len(container), 0, msg)

    def assertBetween(self, value, minv, maxv, msg=None):
        """A number is between two bounds, which belong to it."""
        self.assertTrue(minv <= value <= maxv, msg or f"{value} is not between {minv} and {maxv}")

    def assertSameElements(self, expected_seq, actual_seq, msg=None):
        """Two sequences have the same elements, whatever their order and count."""
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    assertItemsEqual = _unittest.TestCase.assertCountEqual
