"""keras.ops: nn."""
