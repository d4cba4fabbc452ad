"""The committed sample of every differential suite (tools/differential runs them whole)."""
import importlib.machinery
import importlib.util
import os

import pytest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
FOLDER = os.path.join(TOOLS, "differentials")
SUITES = sorted(file[:-5] for file in os.listdir(FOLDER) if file.endswith(".json"))


@pytest.fixture(scope="module")
def tool():
    loader = importlib.machinery.SourceFileLoader("differential", os.path.join(TOOLS, "differential"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("differential", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("suite", SUITES)
def test_results_are_those_of_tensorflow(tool, suite, capsys):
    agrees = tool.check_kept(suite)
    assert agrees, capsys.readouterr().out


def test_errors_are_kept_without_what_only_one_machine_has(tool):
    assert tool.short("TypeError", "no\nTraceback:\n  File \"/home/a.py\"") == "TypeError: no"
    assert len(tool.short("TypeError", "a" * 500)) == 200
    for suite in SUITES:
        with open(tool.kept(suite), encoding="utf-8") as file:
            text = file.read()
        assert "Traceback" not in text and "/site-packages/" not in text and "/home/" not in text
