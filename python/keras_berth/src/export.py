"""model.export(): the formats of other runtimes are not written yet."""


class BerthExportArchive:
    """Stands where Keras looks for its archive of a SavedModel."""

    def __init__(self):
        raise NotImplementedError(
            "`export_saved_model` only currently supports the tensorflow, jax and torch backends. Berth does not write SavedModels yet; model.save('m.keras') keeps the model for Keras on "
            "any backend, and tf.function(model).get_concrete_function(...).save(path) a graph for `berth run`")
