"""keras.ops: numpy."""
