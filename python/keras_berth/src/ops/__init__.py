"""keras.ops on Berth."""
