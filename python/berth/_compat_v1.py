"""What of tf.compat.v1 the package Keras imports."""
import types


class SummaryMetadata:
    """For which part of TensorBoard a summary is: plugin_data.plugin_name and .content."""

    def __init__(self):
        self.plugin_data = types.SimpleNamespace(plugin_name="", content=b"")


def __getattr__(name):
    raise AttributeError(f"Berth has no tf.compat.v1.{name}, and will not: version 1")
