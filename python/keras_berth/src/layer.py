"""What layers of Keras get from this backend."""


class BerthLayer:
    """The mixin of keras.Layer."""
