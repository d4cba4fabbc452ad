"""The backend of Keras 3 that computes with Berth: KERAS_BACKEND=berth."""
__version__ = "0.1.0"
TESTED = ("3.15.1",)  # versions of Keras
