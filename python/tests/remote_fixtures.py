"""Fixtures of the tests of files of URLs: folders in each kind of file system, and a server of S3."""
import os

import numpy as np
import pytest
from berth import _remote, keras
from remote_files import Faulty, Moto

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
Y = X @ np.array([[1.0], [2.0], [-1.0], [0.5]], "float32")


@pytest.fixture(autouse=True)
def no_faults(tmp_path, monkeypatch):
    """Each test has a file system without faults, short pauses between tries, and temporary files of its processes."""
    Faulty.reset(tmp_path / "faulty")
    monkeypatch.setattr(_remote, "PAUSE_S", 0.001)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))  # of those that die, what they leave
    yield
    if Faulty.hold is not None:
        Faulty.hold.set()


@pytest.fixture(scope="session")
def moto():
    """moto's server of S3."""
    for package in ("moto.server", "s3fs", "boto3"):
        pytest.importorskip(package, reason=f"needs {package} (./dev nightly gets it)")
    server = Moto()
    os.environ.update(server.environment())
    yield server
    server.close()


_count = iter(range(1 << 30))


@pytest.fixture(params=["memory", "faulty", "s3"])
def url(request):
    """A new folder in each kind of file system."""
    if request.param == "s3":
        request.getfixturevalue("moto")
    return f"{request.param}://bucket/{request.param}-{os.getpid()}-{next(_count)}"


@pytest.fixture
def faulty():
    """A new folder in the file system with faults."""
    return f"faulty://bucket/{next(_count)}"


def names(url):
    """The names of the files in a folder."""
    fs, path = _remote.filesystem(url)
    return sorted(p[len(path):].lstrip("/") for p in fs.find(path))


def net():
    model = keras.Sequential([keras.layers.Dense(8, activation="relu", input_shape=(4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model
