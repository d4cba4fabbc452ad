"""keras.random on Berth."""
