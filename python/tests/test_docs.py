"""The Python blocks of the documentation run."""
import importlib.util
import os
import re

import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
TUTORIAL = ("1-first-model", "2-where-things-run", "3-several-devices", "4-custom-loops", "5-input-data", "6-planning")
# The simulated devices of each page: those of its C++ blocks.
PAGES = {**dict.fromkeys(("README.md", "docs/python.md", "docs/from-tensorflow.md", "docs/how-to/bring-your-keras-model.md",
                          "docs/data.md", "docs/files.md", "docs/checkpoints.md",
                          *(f"docs/tutorial/{TUTORIAL[n]}.md" for n in (0, 3, 4))), ""),
         **dict.fromkeys(("docs/placement.md", "docs/distribute.md", "docs/split-models.md", "docs/planner.md", "docs/how-to/will-it-fit.md",
                          "docs/how-to/which-op-is-slow.md", "docs/profiling.md",
                          *(f"docs/tutorial/{TUTORIAL[n]}.md" for n in (1, 2, 5))), "GPUx2")}


def blocks_of(page):
    with open(os.path.join(ROOT, page)) as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.S | re.M)


BLOCKS = [(page, n, text) for page in PAGES for n, text in enumerate(blocks_of(page))]


@pytest.mark.parametrize("page, number, text", BLOCKS, ids=[f"{p}-{n}" for p, n, _ in BLOCKS])
def test_blocks_of_pages_run(run_script, page, number, text):
    of_the_package = "keras.distribution" in text  # what berth.keras lacks
    if of_the_package and importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed")
    done = run_script(text, PAGES[page], own_keras=not of_the_package)
    assert done.returncode == 0, done.stderr
    if "the loss fell" in text:
        assert "the loss fell: True\n" in done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_there_are_blocks(page):
    assert blocks_of(page)
