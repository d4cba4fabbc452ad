"""What fit prints: on sys.stdout, as a bar where a line can be drawn again, else as lines."""
import io
import subprocess
import sys

import berth as tf
import numpy as np

keras = tf.keras
X = np.ones((64, 3), "float32")


def fit(out, verbose=1, monkeypatch=None):
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse")
    monkeypatch.setattr(sys, "stdout", out)
    try:
        model.fit(X, X[:, :2], epochs=2, verbose=verbose)
    finally:
        monkeypatch.undo()
    return out.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    """The stream of ipykernel: no terminal, but \\r draws a line again."""

    def isatty(self):
        return False


Notebook.__module__ = "ipykernel.iostream"


def shown(text):
    """Lines as a reader sees them: what \\r draws again is one."""
    return [line.split("\r")[-1].rstrip() for line in text.split("\n")]


def test_a_file_or_a_test_gets_a_line_per_epoch(monkeypatch):
    lines = fit(io.StringIO(), monkeypatch=monkeypatch).splitlines()
    assert len(lines) == 2 and all("\r" not in line for line in lines)
    assert lines[0].startswith("Epoch 1/2: 2 steps, ") and "loss: " in lines[1]


def test_a_notebook_and_a_terminal_get_a_bar_that_is_drawn_again(monkeypatch):
    for kind in (Notebook, Terminal):
        text = fit(kind(), monkeypatch=monkeypatch)
        if kind is Terminal:  # without a descriptor there is no width, so it is not a terminal to draw on
            assert "\r" not in text
            continue
        lines = shown(text)
        assert lines[0] == "Epoch 1/2" and lines[1].startswith("2/2 [===") and "loss: " in lines[1]
        assert lines[2] == "Epoch 2/2" and len(lines[1]) < 80 and lines[-1] == ""


def test_a_real_terminal_gets_its_width(tmp_path):
    import os
    import pty
    import struct
    import fcntl
    import termios
    user, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    script = ("import berth as tf, numpy as np\n"
              "m = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])\n"
              "m.compile('sgd', 'mse', metrics=['mae'])\n"
              "m.fit(np.ones((64, 3), 'float32'), np.ones((64, 2), 'float32'))\n")
    with subprocess.Popen([sys.executable, "-c", script], stdout=program) as process:
        os.close(program)
        text = b""
        try:
            while piece := os.read(user, 1000):
                text += piece
        except OSError:  # the program has left
            pass
    assert process.returncode == 0
    lines = shown(text.decode().replace("\r\n", "\n"))
    assert lines[0] == "Epoch 1/1" and lines[1].startswith("2/2 [") and len(lines[1]) < 50


def test_silence_is_kept_and_callbacks_print_there_too(monkeypatch):
    assert fit(io.StringIO(), verbose=0, monkeypatch=monkeypatch) == ""
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse")
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    model.fit(X, X[:, :2], epochs=1, verbose=0, callbacks=[
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.5, verbose=1)])
    monkeypatch.undo()
    assert "setting learning rate to 0.5" in out.getvalue()


def test_no_stdout_is_no_error(monkeypatch):
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse")
    monkeypatch.setattr(sys, "stdout", None)
    model.fit(X, X[:, :2], epochs=1)
