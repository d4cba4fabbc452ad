"""Data sets of texts: files with Python objects are converted, those of unknown origin are not read."""
import hashlib

import numpy as np
import pytest

import berth as tf
from berth import _plain_npz


def lists(*texts):
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


@pytest.fixture
def reuters(tmp_path, monkeypatch):
    np.savez(tmp_path / "reuters.npz", x=lists([1, 2, 300], [70000, 5], []), y=np.arange(3))
    monkeypatch.setenv("BERTH_DATA", str(tmp_path))
    return tmp_path / "reuters.npz"


def publish(path, monkeypatch):
    monkeypatch.setattr(_plain_npz, "PUBLISHED", {hashlib.sha256(path.read_bytes()).hexdigest()})


def check_reuters():
    (x, y), (xt, yt) = tf.keras.datasets.reuters.load_data(test_split=0)
    want = [[1, 4, 5, 303], [1, 2, 8], [1]]  # 70003 is the largest word, and left out
    assert [list(t) for t in x] == [want[i] for i in y]
    assert len(xt) == len(yt) == 0


def test_a_published_file_is_converted_once(reuters, monkeypatch):
    publish(reuters, monkeypatch)
    check_reuters()
    assert (reuters.parent / "reuters-plain.npz").exists()
    monkeypatch.setattr(_plain_npz, "convert", None)
    check_reuters()


def test_a_folder_that_cannot_be_written_is_left_alone(reuters, monkeypatch):
    publish(reuters, monkeypatch)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    check_reuters()
    assert not (reuters.parent / "reuters-plain.npz").exists()


def test_a_file_of_another_checksum_is_not_run(reuters):
    with pytest.raises(tf.errors.InvalidArgumentError, match="tools/plain_npz"):
        tf.keras.datasets.reuters.load_data()


def test_the_tool_converts_what_is_trusted(reuters, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["plain_npz", str(reuters)])
    with pytest.raises(SystemExit, match="--trust"):
        _plain_npz.main()
    monkeypatch.setattr("sys.argv", ["plain_npz", str(reuters), "--trust"])
    _plain_npz.main()
    assert capsys.readouterr().out == f"{reuters.parent}/reuters-plain.npz\n"
    check_reuters()
