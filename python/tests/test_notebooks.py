"""tools/notebooks runs cells, and tells apart what fails by itself."""
import json
import os
import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "notebooks"
CELLS = ["!pip install nothing\n%load_ext tensorboard\nimport tensorflow as tf\ntf.version.VERSION",
         "%%writefile own.py\nTWO = 2",
         "import own\n(x, y), _ = tf.keras.datasets.mnist.load_data()\nx.shape[1:], own.TWO",
         "%%bash\necho two > own.txt\nfalse",
         "@tf.function\ndef f(x):\n  return x if x > 0 else -x\nassert int(f(tf.constant(-3))) == 3",
         "z = tf.no_such_name(1)",
         "print(z)",
         "path = tf.keras.utils.get_file('a.csv', 'https://example.com/titanic.csv')\nopen(path).readline()",
         "import tensorflow_datasets as tfds\nd, info = tfds.load('mnist', split='train[:5]', with_info=True)\nlen(d)",
         "while True:\n  pass",
         "1 / 0"]


def states(tmp_path, cells, *options):
    notebook = {"cells": [{"cell_type": "markdown", "source": ["# A title"]}] + [
        {"cell_type": "code", "source": text.splitlines(True)} for text in cells]}
    (tmp_path / "sub").mkdir(exist_ok=True)
    (tmp_path / "sub" / "one.ipynb").write_text(json.dumps(notebook))
    out = tmp_path / "out.json"
    run = subprocess.run([sys.executable, TOOL, tmp_path, "--json", out, "--seconds", "3", *options],
                         capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert run.returncode == 0, run.stderr
    return json.loads(out.read_text())["sub/one"], run.stdout


def test_cells_that_pass_fail_and_follow_are_told_apart(tmp_path):
    found, text = states(tmp_path, CELLS)
    assert [found[str(n + 1)]["state"] for n in range(len(CELLS))] == [
        "pass", "pass", "pass", "fail", "pass", "fail", "after", "pass", "pass", "fail", "fail"]
    assert found["6"]["why"].startswith("AttributeError: Berth has no tf.no_such_name") and found["6"]["line"] == 1
    assert found["7"]["after"] == 6 and "longer than 3 s" in found["10"]["why"]
    assert "sub/one: 6 of 11 cells pass" in text


def test_what_passes_there_and_fails_here_is_grouped_by_cause(tmp_path):
    there = {"sub/one": {str(n + 1): {"state": "pass"} for n in range(4)}}
    (tmp_path / "there.json").write_text(json.dumps(there))
    _, text = states(tmp_path, ["a = 1 / 0", "b = a", "a = c = 3", "a"], "--compare", str(tmp_path / "there.json"))
    assert "2  ZeroDivisionError: division by zero\n        sub/one:1, sub/one:2 (after)" in text
    assert "of these here: 0; cells: 4, here: 2 (50.0 %)" in text


def test_a_process_that_dies_ends_its_notebook_alone(tmp_path):
    found, _ = states(tmp_path, ["import os\nos.abort()", "1"])
    assert found["1"]["state"] == "fail" and "ended with -6" in found["1"]["why"] and found["2"]["state"] == "after"
