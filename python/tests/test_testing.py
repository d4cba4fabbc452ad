"""tf.test: what scripts ask about GPUs, and test cases of users, which pass and fail as TensorFlow's do."""
import numpy as np
import pytest

import berth as tf


def test_scripts_ask_for_gpus(run_script):
    script = """
import tensorflow as tf
print(tf.test.is_gpu_available(), repr(tf.test.gpu_device_name()), tf.test.is_built_with_rocm(), tf.test.is_built_with_xla())
assert tf.test.is_built_with_cuda() == tf.test.is_built_with_gpu_support() in (True, False)
"""
    assert run_script(script).stdout.split() == ["False", "''", "False", "False"]
    assert run_script(script, simulate="GPUx1").stdout.split() == ["True", "'/device:GPU:0'", "False", "False"]


class Case(tf.test.TestCase):
    __test__ = False  # of pytest; the tests below call its methods

    def runTest(self):
        pass


@pytest.fixture
def case():
    made = Case()
    made.setUp()
    return made


X = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("name, right, wrong", [
    ("assertAllClose", (tf.constant(X), np.array(X) + 1e-7), (tf.constant(X), np.array(X) + 1e-3)),
    ("assertAllClose", ({"a": tf.constant([1.0]), "b": [tf.constant(1.0), tf.constant([2.0])]}, {"a": [1.0], "b": [1.0, [2.0]]}),
     ({"a": tf.constant([1.0])}, {"b": [1.0]})),
    ("assertAllClose", ([tf.constant([1.0]), tf.constant([1.0, 2.0])], [[1.0], [1.0, 2.0]]), (tf.constant(X), [1.0, 2.0])),
    ("assertAllCloseAccordingToType", (tf.constant(X, tf.float16), np.array(X) + 1e-3), (tf.constant(X), np.array(X) + 1e-3)),
    ("assertAllEqual", (tf.constant(["a", "b"]), [b"a", b"b"]), (tf.constant([1, 2]), [1, 3])),
    ("assertNotAllEqual", ([1, 2], tf.constant([1, 3])), ([1, 2], tf.constant([1, 2]))),
    ("assertNotAllClose", ([1.0], tf.constant([2.0])), ([1.0], tf.constant([1.0]))),
    ("assertAllGreater", (tf.constant(X), 0), (tf.constant(X), 1)), ("assertAllGreaterEqual", (X, 1), (X, 2)),
    ("assertAllLess", (X, 5), (X, 4)), ("assertAllLessEqual", (X, 4), (X, 3)), ("assertAllInRange", (X, 1, 4), (X, 2, 4)),
    ("assertAllInSet", ([1, 2], {1, 2, 3}), ([1, 4], {1, 2, 3})), ("assertNear", (1.0, 1.05, 0.1), (1.0, 1.2, 0.1)),
    ("assertArrayNear", ([1.0, 2.0], tf.constant([1.05, 2.0]), 0.1), ([1.0], [1.2], 0.1)),
    ("assertShapeEqual", (np.zeros((2, 3)), tf.zeros([2, 3])), (np.zeros(2), tf.zeros([3]))),
    ("assertDTypeEqual", (tf.zeros([1]), "float32"), (tf.zeros([1]), tf.int32)),
    ("assertDeviceEqual", ("/device:CPU:0", tf.zeros([1]).device), ("GPU:0", tf.zeros([1]).device)),
    ("assertStartsWith", ("abc", "ab"), ("abc", "b")), ("assertEndsWith", ("abc", "bc"), ("abc", "b")),
    ("assertLen", ([1], 1), ([1], 2)), ("assertEmpty", ([],), ([1],)), ("assertNotEmpty", ([1],), ([],)),
    ("assertBetween", (1, 0, 2), (3, 0, 2)), ("assertSameElements", ([1, 1, 2], [2, 1]), ([1], [2])),
    ("assertItemsEqual", ([1, 2], [2, 1]), ([1, 1], [1]))])
def test_assertions_hold_and_fail(case, name, right, wrong):
    getattr(case, name)(*right)
    with pytest.raises(AssertionError):
        getattr(case, name)(*wrong)


def test_errors_are_expected(case):
    with case.assertRaisesOpError("do not broadcast"):
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    with case.assertRaisesWithPredicateMatch(ValueError, lambda e: e.error_code == tf.errors.INVALID_ARGUMENT):
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    with pytest.raises(AssertionError):
        with case.assertRaisesOpError("another text"):
            tf.constant([1, 2]) + tf.constant([1, 2, 3])
    with case.session() as session:
        assert session.evaluate({"a": tf.constant(2)})["a"] == 2


def test_gradients_are_compared_with_differences():
    exact, numerical = tf.test.compute_gradient(lambda a, b: tf.matmul(a, b), [tf.constant(X), tf.constant([[2.0], [0.5]])])
    assert [e.shape for e in exact] == [(2, 4), (2, 2)]
    for e, n in zip(exact, numerical):
        np.testing.assert_allclose(e, n, atol=1e-2)
    np.testing.assert_allclose(exact[0], [[2, 0.5, 0, 0], [0, 0, 2, 0.5]])
    with pytest.raises(ValueError, match="expected a list"):
        tf.test.compute_gradient(tf.square, tf.constant(1.0))
