"""keras.ops: math."""
