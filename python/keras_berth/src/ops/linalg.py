"""keras.ops: linalg."""
