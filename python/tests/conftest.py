"""What tests share: drawn digits in place of MNIST, and scripts run as users run them."""
import os
import struct
import subprocess
import sys

import numpy as np
import pytest


def _write_idx(path, array):
    """IDX: a magic number with the rank, the dimensions, then the bytes."""
    with open(path, "wb") as out:
        out.write(struct.pack(">I", 0x0800 | array.ndim))
        out.write(struct.pack(f">{array.ndim}I", *array.shape))
        out.write(array.astype("uint8").tobytes())


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A folder with MNIST's four files, in which digit d is a bar in row 2 d + 4."""
    folder = tmp_path_factory.mktemp("digits")
    rng = np.random.default_rng(0)
    for split, n in (("train", 600), ("t10k", 120)):
        y = rng.integers(0, 10, n)
        x = rng.integers(0, 40, (n, 28, 28))
        x[np.arange(n), 2 * y + 4] = 250
        _write_idx(folder / f"{split}-images-idx3-ubyte", x)
        _write_idx(folder / f"{split}-labels-idx1-ubyte", y)
    return str(folder)


@pytest.fixture
def run_script(tmp_path, digits):
    """Runs a text under `python -m berth` in a process of its own, with berth.keras unless own_keras is False; returns it, ended."""
    def run(text, simulate="", timeout=120, own_keras=True, **environment):
        path = tmp_path / "script.py"
        path.write_text(text)
        env = {**os.environ, "BERTH_DATA": digits, "BERTH_SIM": simulate, **environment}
        if not simulate:
            env.pop("BERTH_SIM")
        options = ["--own-keras"] if own_keras else []
        return subprocess.run([sys.executable, "-m", "berth", *options, str(path)], env=env, text=True,
                              capture_output=True, timeout=timeout, cwd=tmp_path)
    return run


@pytest.fixture
def berth_program():
    """The path of the command line `berth`: what BERTH names, else the one of build/release."""
    built = os.path.join(os.path.dirname(__file__), "../../build/release/bin/berth")
    program = os.environ.get("BERTH") or (os.path.abspath(built) if os.path.exists(built) else None)
    return program or pytest.skip("there is no program berth: BERTH names none, and build/release has none")
