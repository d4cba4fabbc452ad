"""Gradient rules and ops of Python's, libraries of ops, checks of values."""
import glob
import os
import shutil
import subprocess

import berth as tf
import numpy as np
import pytest


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient
def scaled(x, factor):
    def grad(dy):
        return 100.0 * dy, None
    return x * factor, grad


def slope(f, at):
    x = tf.constant(at)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return float(tape.gradient(y, x))


def test_rules_replace_gradients():
    s = 1 / (1 + np.exp(-0.3))
    for f in (log1pexp, tf.function(log1pexp), tf.function(lambda x: log1pexp(x) * 1.0)):
        assert slope(f, 0.3) == pytest.approx(s, rel=1e-5)
        assert slope(f, -0.3) == pytest.approx(1 - s, rel=1e-5)
    inside = tf.function(lambda x: slope_tensor(x))
    assert float(inside(tf.constant(0.3))) == pytest.approx(s, rel=1e-5)
    assert slope(lambda x: scaled(x, 2.0), 3.0) == 100
    assert slope(slope_tensor, 0.3) == pytest.approx(s * (1 - s), rel=1e-4)


def slope_tensor(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    return tape.gradient(y, x)


def test_rules_reach_variables():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = scaled(v, 2.0) + v
    assert float(y) == 9 and float(tape.gradient(y, v)) == 101
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 gradients|expected"):
        @tf.custom_gradient
        def wrong(a):
            return a, lambda dy: (dy, dy)
        slope(wrong, 1.0)


def cube_and_mean(a, b):
    return a ** 3 + np.mean(b)


def test_python_runs_inside_of_functions():
    calls = []

    def seen(a, b):
        calls.append(a.dtype)
        return cube_and_mean(a, b).astype("float32")

    @tf.function
    def f(a, b):
        return tf.numpy_function(seen, [a, b], tf.TensorSpec([3], tf.float32)) + 1.0

    a, b = np.array([1, 2, 3], "float32"), np.array([[1, 5]], "int32")
    for _ in range(3):
        np.testing.assert_allclose(f(tf.constant(a), tf.constant(b)).numpy(), cube_and_mean(a, b) + 1)
    assert len(calls) == 3 and calls[0] == np.float32
    assert "PyFunction" in f.plan_text("place") and "CPU:0" in f.placement()
    np.testing.assert_allclose(tf.numpy_function(cube_and_mean, [a, b], tf.float64).numpy(),
                               cube_and_mean(a, b), rtol=1e-6)
    g = tf.function(lambda x: tf.numpy_function(np.sin, [x], tf.float32))
    assert abs(float(g(tf.constant(1.0))) - np.sin(1.0)) < 1e-6
    assert "op by op" in g.plan_text() and "TensorSpec" in g.plan_text()


def test_python_functions_have_gradients():
    def power(x, n):
        y = x
        for _ in range(int(n) - 1):
            y = y * x
        return y

    @tf.function
    def f(x):
        return tf.py_function(power, [x, 3], tf.TensorSpec([], tf.float32)) * 2.0

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    assert float(y) == 16 and float(tape.gradient(y, x)) == 24
    with tf.GradientTape() as tape:
        y = tf.py_function(power, [x, 3], tf.float32)
    assert float(tape.gradient(y, x)) == 12


def test_effects_and_errors_of_python():
    seen = []

    @tf.function
    def f(x):
        tf.py_function(lambda v: seen.append(float(v)), [x], [])
        return x * 2.0

    f(tf.constant(1.0))
    f(tf.constant(5.0))
    assert seen == [1.0, 5.0]

    def fails(x):
        raise KeyError("mine")

    with pytest.raises(tf.errors.InvalidArgumentError, match="KeyError.*mine"):
        tf.function(lambda x: tf.py_function(fails, [x], tf.TensorSpec([], tf.float32)))(
            tf.constant(1.0))
    with pytest.raises(KeyError):
        tf.py_function(fails, [1.0], tf.float32)


def test_python_stays_on_the_cpu_and_that_is_reported(run_script):
    done = run_script("""
import tensorflow as tf
import numpy as np

@tf.function
def f(x):
    with tf.device("/GPU:0"):
        y = x * 2.0
        return tf.numpy_function(np.sin, [y], tf.TensorSpec([2], tf.float32))

np.testing.assert_allclose(f(tf.constant([1.0, 2.0])).numpy(), np.sin([2.0, 4.0]), rtol=1e-6)
lines = [l for l in f.placement().splitlines() if "PyFunction" in l]
assert any("CPU:0" in l for l in lines), f.placement()
""", simulate="GPUx1")
    assert done.returncode == 0, done.stderr


def test_checks_of_values():
    d = tf.debugging
    d.assert_equal([1, 2], [1, 2])
    d.assert_less(1.0, [2.0, 3.0])
    d.assert_near([1.0], [1.0 + 1e-7])
    d.assert_positive([1, 2])
    d.assert_rank(tf.ones([2, 2]), 2)
    d.assert_shapes([(tf.ones([2, 3]), ("N", 3)), (tf.ones([2]), ("N",))])
    d.assert_type(1.0, tf.float32)
    assert d.check_numerics([1.0], "fine").numpy().tolist() == [1]
    for check, args, error in [
            (d.assert_equal, ([1, 2], [1, 3]), "x == y"), (d.assert_less, (2, 1), "x < y"),
            (d.assert_greater_equal, (1, 2), "x >= y"), (d.assert_near, (1.0, 1.1), "not near"),
            (d.assert_non_negative, (-1.0,), "x >= 0"), (d.check_numerics, ([1.0, np.nan], "odd"), "odd : .*NaN"),
            (d.assert_all_finite, ([np.inf], "big"), "Inf"), (tf.Assert, (False, ["why", 3]), "why")]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=error):
            check(*args)
    for check, args in [(d.assert_rank, (1.0, 1)), (d.assert_rank_in, (1.0, [1, 2])),
                        (d.assert_shapes, ([(tf.ones([2, 3]), ("N", "N"))],)),
                        (d.assert_scalar, ([1.0],)), (d.assert_same_float_dtype, ([1.0, np.array([1.0])],))]:
        with pytest.raises(ValueError):
            check(*args)
    for check, args in [(d.assert_type, (1, tf.float32)), (d.assert_integer, (1.0,)),
                        (d.assert_proper_iterable, ("text",))]:
        with pytest.raises(TypeError):
            check(*args)


def test_checks_run_with_the_function():
    @tf.function
    def f(x):
        tf.debugging.assert_non_negative(x, message="root")
        return tf.debugging.check_numerics(tf.sqrt(x) / x, "quotient")

    assert float(f(tf.constant(4.0))) == 0.5
    with pytest.raises(tf.errors.InvalidArgumentError, match="root: x >= 0"):
        f(tf.constant(-1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="quotient : .*NaN"):
        f(tf.constant(0.0))

    @tf.function
    def g(x):
        assert x > 0.0, "above"
        return x

    assert float(g(tf.constant(1.0))) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="above"):
        g(tf.constant(-1.0))


LIBRARY = """
#include <berth/custom_op.h>
#include <berth/ops/math.h>
namespace {
const bool registered = [] {
  using namespace berth;
  register_op("TimesOfOwn").input("x", kFloatingTypes).output("y").attr("factor", 2.0)
      .infer(&infer_same_as_0)
      .gradient([](const GradCall& g) { return Tensors{g.dy() * g.attr<double>("factor")}; })
      .doc("x times factor.");
  register_kernels("CPU", [](KernelTable& table) {
    table.direct("TimesOfOwn", dtype_bit(float32), [](const KernelCall& c) {
      const auto factor = static_cast<float>(c.attr<double>("factor"));
      for (int64_t i = 0; i < c.in[0].size(); ++i)
        c.out[0].as<float>()[i] = factor * c.in[0].as<float>()[i];
    }, "own");
  });
  return true;
}();
}
"""
SOURCE = os.path.join(os.path.dirname(__file__), "..", "..")
HEADERS = sorted(glob.glob(os.path.join(SOURCE, "build", "*", "generated", "include")))


@pytest.mark.skipif(shutil.which("g++") is None or not HEADERS,
                    reason="there is no compiler, or no build with the headers of ops")
def test_libraries_of_ops_are_loaded(tmp_path, run_script):
    (tmp_path / "own.cc").write_text(LIBRARY)
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-O1", f"-I{SOURCE}/include",
                    f"-I{HEADERS[0]}", str(tmp_path / "own.cc"), "-o", str(tmp_path / "own.so")],
                   check=True)
    done = run_script(f"""
import tensorflow as tf
own = tf.load_op_library({str(tmp_path / "own.so")!r})
x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    y = tf.function(lambda v: own.times_of_own(v, factor=3.0))(x)
assert y.numpy().tolist() == [3, 6] and tape.gradient(y, x).numpy().tolist() == [3, 3]
assert own.times_of_own(x).numpy().tolist() == [2, 4] and "factor" in own.times_of_own.__doc__
try:
    tf.load_op_library("/nowhere.so")
except tf.errors.NotFoundError as e:
    assert "/nowhere.so" in str(e)
else:
    raise AssertionError
""")
    assert done.returncode == 0, done.stderr
