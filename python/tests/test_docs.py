"""The Python blocks of the documentation run."""
import os
import re

import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
PAGES = ["README.md", "docs/python.md", "docs/from-tensorflow.md"]


def blocks_of(page):
    with open(os.path.join(ROOT, page)) as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.S | re.M)


BLOCKS = [(page, n, text) for page in PAGES for n, text in enumerate(blocks_of(page))]


@pytest.mark.parametrize("page, number, text", BLOCKS, ids=[f"{p}-{n}" for p, n, _ in BLOCKS])
def test_blocks_of_pages_run(run_script, page, number, text):
    done = run_script(text)
    assert done.returncode == 0, done.stderr
    if "the loss fell" in text:
        assert "the loss fell: True\n" in done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_there_are_blocks(page):
    assert blocks_of(page)
