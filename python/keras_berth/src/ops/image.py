"""keras.ops: image."""
