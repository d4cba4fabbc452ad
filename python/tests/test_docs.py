"""The Python blocks of the documentation run."""
import os
import re

import pytest

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")
with open(PAGE) as page:
    BLOCKS = re.findall(r"^```python\n(.*?)^```", page.read(), re.S | re.M)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_blocks_of_the_page_run(run_script, number):
    done = run_script(BLOCKS[number])
    assert done.returncode == 0, done.stderr


def test_there_are_blocks():
    assert len(BLOCKS) >= 4
