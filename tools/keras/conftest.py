"""What Keras' tests import from the conftest.py of its repository, which the source distribution lacks."""
import pytest
from keras.src import backend


def skip_if_backend(given_backend, reason):
    return pytest.mark.skipif(backend.backend() == given_backend, reason=reason)
