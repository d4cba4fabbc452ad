"""The base of Keras' optimizers on Berth."""
from keras.src.optimizers import base_optimizer


class BerthOptimizer(base_optimizer.BaseOptimizer):
    """Updates variables in place."""
