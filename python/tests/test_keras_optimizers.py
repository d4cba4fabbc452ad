"""Optimizers that Keras trained and wrote: training goes on as it did there. tools/differential optimizer_files --record makes
the files; against a live Keras it draws more, both ways."""
import json
import os
import sys

import berth as tf
import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tools/differentials"))
import optimizer_files  # noqa: E402

KEPT = np.load(os.path.join(HERE, "keras_optimizers.npz"))
CASES = json.loads(KEPT["cases"].tobytes())
keras = tf.keras


@pytest.mark.parametrize("k", CASES)
def test_training_goes_on_as_in_keras_and_through_a_file_of_berths(tmp_path, k):
    made, want = CASES[k]
    path = str(tmp_path / f"keras.{made['ending']}")
    with open(path, "wb") as file:
        file.write(KEPT["file_" + k].tobytes())
    again = str(tmp_path / ("own.keras" if made["ending"] == "h5" else "own.h5"))
    keras.models.load_model(path).save(again)
    for one in (path, again):
        got = optimizer_files.read(tf, made, one)
        assert optimizer_files.close(want, got), (one, made, want, got)
