"""tools/docstrings compares what statements give with what they gave under TensorFlow."""
import json
import os
import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "docstrings"
SOURCES = ["x = tf.constant([3., 4.])", "x", "x", "tf.no_such_name(x)", "print(tf.norm(x))", "y = undefined", "y", "tf.reshape(x, [7])",
           "tf.tpu.XLAOptions", "undefined", "os.abort()", "x"]


def tensor(dtype, shape, values, text="text"):
    return {"value": [{"tensor": {"dtype": dtype, "shape": shape, "values": values}}, []], "text": text}


def failed(name):
    return {"error": name, "classes": [name], "why": name, "after": False}


def states(tmp_path, sources, first, again=None, *options):
    there = {"docs": [{"name": "tf.one", "examples": [[s, "reshape" in s] for s in sources]}], "first": {"tf.one": first},
             "again": {"tf.one": again or first}}
    (tmp_path / "there.json").write_text(json.dumps(there))
    run = subprocess.run([sys.executable, TOOL, "--there", tmp_path / "there.json", "--json", tmp_path / "out.json", "--seconds", "20",
                          *options], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert run.returncode == 0, run.stderr
    return [s["state"] for s in json.loads((tmp_path / "out.json").read_text()).values()], run.stdout


def test_statements_are_sorted_by_what_they_give(tmp_path):
    nothing, x = {"value": [None, []], "text": ""}, tensor("float32", [2], [3.0, 4.0])
    printed = {"value": [None, [tensor("float32", [], [5.0])["value"][0]]], "text": "tf.Tensor(5.0, shape=(), dtype=float32)"}
    found, text = states(tmp_path, SOURCES, [
        nothing, x, tensor("float64", [2], [3.0, 4.0]), x, printed, x, x, failed("InvalidArgumentError"), x, failed("NameError"), x, x])
    assert found == ["same", "same, other text", "differs", "fails", "same", "fails", "after", "same", "named", "there too", "fails",
                     "after"]
    assert "tf.one:3 fails: AttributeError: Berth has no tf.no_such_name" in text and "ended with -6" in text
    assert "4 of 11 same (3 with the same text); 1 differs, 3 fails, 2 after, 1 named, 1 there too" in text


def test_what_is_random_there_is_compared_by_shape(tmp_path):
    draws = [tensor("float32", [2], [0.1, 0.2]), tensor("float32", [2], [0.3, 0.4], "other")]
    assert states(tmp_path, ["tf.random.normal([2])"], draws[:1], draws[1:])[0] == ["same"]
    assert states(tmp_path, ["tf.random.normal([3])"], draws[:1], draws[1:])[0] == ["differs"]


def test_a_hang_ends_its_docstring_alone(tmp_path):
    found, text = states(tmp_path, ["while True: pass", "1"], [{"value": [None, []], "text": ""}, {"value": [1, []], "text": "1"}], None,
                         "--seconds", "2")
    assert found == ["fails", "after"] and "longer than 2 s" in text
