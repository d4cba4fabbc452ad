#!/usr/bin/env python3
"""Runs a test of TensorFlow's Python on Berth; tools/tensorflow_tests calls it.

    python_shim.py --list FILE         a line per test: its name, and "gpu",
                                       "any" or "lacks": it cannot be driven
    python_shim.py FILE CLASS.METHOD   ends with 0 (agrees), 1, or 77 (skipped)

Each test has a process of its own, since devices are made once. The modules
that the file imports are stand-ins over the package `berth`. Errors have
Berth's own classes and texts, so it counts that something is refused, not how.
"""
import os
import re
import sys
import types
import unittest

SKIPPED = 77
# TensorFlow's sessions, servers, compilers and graph optimizer.
LACKS = re.compile(r"optimizer_(?:experimental|jit)|config_pb2|server_def|execution_mode"
                   r"|log_device_placement\(|create_local_cluster|synchronous_execution"
                   r"|mlir_bridge|tensor_float_32|test_ops\.|device_details|op_determinism")


class Parameterized:
    """absl.testing.parameterized."""

    class TestCase:
        pass

    @staticmethod
    def named_parameters(*rows):
        def mark(fn):
            fn.rows = rows
            return fn
        return mark

    @staticmethod
    def parameters(*rows):
        rows = [row if isinstance(row, tuple) else (row,) for row in rows]
        return Parameterized.named_parameters(*((str(i), *row) for i, row in enumerate(rows)))


def on_gpu_type(fn):
    """A test that is told the type of the accelerator."""
    def call(self):
        return fn(self, "GPU")
    return gpu_only(call)


def gpu_only(fn):
    fn.gpu_only = True
    return fn


def modules(tf):
    """The stand-ins by their names in the file."""
    config = tf.config
    old = config.experimental

    class Context:
        list_physical_devices = staticmethod(old.list_physical_devices)
        set_logical_device_configuration = staticmethod(
            old.set_logical_device_configuration)
        get_memory_info = staticmethod(old.get_memory_info)
        reset_memory_stats = staticmethod(old.reset_memory_stats)
        log_device_placement = False
        device_policy = property(lambda self: config.get_device_policy())
        soft_device_placement = property(lambda self: config.get_soft_device_placement())
        intra_op_parallelism_threads = property(
            lambda self: config.get_intra_op_parallelism_threads())
        inter_op_parallelism_threads = property(
            lambda self: config.get_inter_op_parallelism_threads())

        @property
        def config(self):
            gpu = config.list_physical_devices("GPU")[-1]
            cut = old.get_virtual_device_configuration(gpu)
            growth = not cut and config.get_memory_growth(gpu)
            return types.SimpleNamespace(gpu_options=types.SimpleNamespace(allow_growth=growth))

    def virtual(memory_limit=None):
        return old.VirtualDeviceConfiguration(memory_limit=memory_limit or 0)

    context = types.SimpleNamespace(
        Context=Context, context=Context, VirtualDeviceConfiguration=virtual,
        LogicalDeviceConfiguration=virtual, PhysicalDevice=config.PhysicalDevice,
        ensure_initialized=config.list_logical_devices, executing_eagerly=lambda: True,
        _reset_context=lambda: None, _reset_jit_compiler_flags=lambda: None, _context=True, DEVICE_PLACEMENT_SILENT="silent",
        DEVICE_PLACEMENT_SILENT_FOR_INT32="silent_for_int32", DEVICE_PLACEMENT_WARN="warn",
        DEVICE_PLACEMENT_EXPLICIT="explicit")
    names = {name: getattr(old, name) for name in dir(old) if not name.startswith("_")}
    names.update({name: getattr(config, name) for name in dir(config) if not name.startswith("_")})
    names["set_soft_device_placement"] = lambda enabled: config.set_soft_device_placement(enabled)
    names["set_device_policy"] = lambda policy: config.set_device_policy(policy or "silent")
    # Where TensorFlow says None, "not set", Berth says what holds.
    for name in ("get_virtual_device_configuration", "get_logical_device_configuration"):
        names[name] = (lambda get: lambda device: get(device) or None)(getattr(old, name))
    names["get_memory_usage"] = lambda device: old.get_memory_info(device)["current"]

    def on_gpu(x):
        with tf.device("GPU:0"):
            return tf.identity(x)

    tf.Tensor.gpu = on_gpu

    class TestCase(unittest.TestCase):
        def evaluate(self, x):
            return x.numpy() if hasattr(x, "numpy") else x

        def assertAllEqual(self, a, b):
            self.assertTrue((self.evaluate(a) == self.evaluate(b)).all())

        def assertAllClose(self, a, b):
            self.assertTrue((abs(self.evaluate(a) - self.evaluate(b)) < 1e-6).all())

        def assertRaises(self, error, *args):
            return super().assertRaises((error, tf.errors.OpError, RuntimeError, ValueError), *args)

        def assertRaisesRegex(self, error, _):
            return self.assertRaises(error)

        assertRaisesRegexp = assertRaisesRegex

    gpus = lambda: bool(config.list_physical_devices("GPU"))
    space = types.SimpleNamespace
    return {
        "parameterized": Parameterized, "context": context, "config": space(**names),
        "def_function": space(function=tf.function), "dtypes": tf, "errors": tf.errors,
        "constant_op": space(constant=tf.constant), "array_ops": space(
            identity=tf.identity, fill=tf.fill, zeros=tf.zeros, ones=tf.ones, shape=tf.shape),
        "ops": space(device=tf.device, enable_eager_execution=lambda: None,
                     enable_eager_execution_internal=lambda: None),
        "math_ops": space(mod=tf.math.floormod, matmul=tf.matmul, add=tf.add),
        "random_ops": space(random_uniform=tf.random.uniform), "compat": space(),
        "remote": space(), "test_ops": space(), "cluster_pb2": space(), "config_pb2": space(),
        "tensorflow_server_pb2": space(), "test": space(TestCase=TestCase, main=lambda: None),
        "rewriter_config_pb2": space(),
        "test_util": space(run_gpu_only=gpu_only, run_gpu_or_tpu=on_gpu_type,
                           IsMklEnabled=lambda: False, is_gpu_available=gpus,
                           with_eager_op_as_function=lambda cls: cls,
                           disable_eager_op_as_function=lambda _: lambda fn: fn,
                           disable_tfrt=lambda _: lambda fn: fn)}


def load(path, tf):
    """The names of the file, its imports replaced by the stand-ins."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    lines = [line for line in text.splitlines()
             if not line.startswith(("from __future__", "from absl", "from tensorflow"))]
    names = {"__name__": "driven", **modules(tf)}
    exec(compile("\n".join(lines), os.path.basename(path), "exec"), names)  # pylint: disable=exec-used
    return names, lacking(text)


def lacking(text):
    """Names of tests, or of the classes whose setUp, LACKS speaks of."""
    found, cls, method = set(), "", ""
    for line in text.splitlines():
        if m := re.match(r"class (\w+)", line):
            cls = method = m.group(1)
        elif m := re.match(r"  def (\w+)", line):
            method = cls if m.group(1) == "setUp" else f"{cls}.{m.group(1)}"
        if LACKS.search(line):
            found.add(method)
    return found


def cases(names, lacks):
    """(name, class, method, arguments, where it runs) of every test."""
    for cls in names.values():
        if not (isinstance(cls, type) and issubclass(cls, unittest.TestCase)):
            continue
        for method, fn in list(vars(cls).items()):
            if not method.startswith("test"):
                continue
            where = "gpu" if getattr(fn, "gpu_only", False) else "any"
            if {cls.__name__, f"{cls.__name__}.{method}"} & lacks:
                where = "lacks"
            for row in getattr(fn, "rows", [("",)]):
                end = "_" + row[0] if row[0] else ""
                yield f"{cls.__name__}.{method}{end}", cls, fn, row[1:], where


def main():
    import berth as tf
    if sys.argv[1] == "--list":
        for name, _, _, _, where in cases(*load(sys.argv[2], tf)):
            print(name, where)
        return 0
    for name, cls, fn, args, _ in cases(*load(sys.argv[1], tf)):
        if name != sys.argv[2]:
            continue
        case = type(cls.__name__, (cls,), {"runTest": lambda self: fn(self, *args)})()
        result = unittest.TextTestRunner(verbosity=0).run(case)
        return SKIPPED if result.skipped else 0 if result.wasSuccessful() else 1
    return 2


if __name__ == "__main__":
    sys.exit(main())
