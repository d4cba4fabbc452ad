"""fit(), evaluate() and predict() of Keras' models."""


class BerthTrainer:
    """The mixin of keras.Model."""
