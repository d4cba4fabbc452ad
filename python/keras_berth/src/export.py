"""model.export() and keras.export.ExportArchive: endpoints in a folder of berth.saved_model, which its load() reads."""
import berth
from berth import saved_model
from keras.src import backend, layers, tree
from keras.src.export.export_utils import make_input_spec
from keras.src.utils import io_utils


class BerthExportArchive:
    """Collects functions, the endpoints, and the variables beside them (keras.export.ExportArchive).

    The folder is Berth's own, not TensorFlow's protocol buffers: berth.saved_model.load() gives an object that has each
    endpoint as a function and as a signature, the first also as "serving_default". TensorFlow Serving does not read it.
    """

    def __init__(self):
        self._kept = berth.Module("archive")
        self._endpoints, self._specs, self._tracked = {}, {}, []

    variables = property(lambda self: [v for layer in self._tracked for v in layer.variables])
    trainable_variables = property(lambda self: [v for layer in self._tracked for v in layer.trainable_variables])
    non_trainable_variables = property(lambda self: [v for layer in self._tracked for v in layer.non_trainable_variables])

    def track(self, resource):
        """Keeps the variables of a layer or model that is built, or a tf.Module; ValueError of anything else."""
        if isinstance(resource, berth.Module):
            return setattr(self._kept, f"tracked_{len(vars(self._kept))}", resource)
        if not isinstance(resource, layers.Layer):
            raise ValueError(f"Invalid resource type. Expected a layer or model of Keras, or a tf.Module; got {resource!r}")
        if not resource.built:
            raise ValueError(f"{resource.name!r} has no variables yet. It must be built, or called once, before it is exported")
        self._tracked.append(resource)

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        """Adds a function under a name, and returns it as a tf.function.

        input_signature: InputSpecs, TensorSpecs, KerasTensors or tensors, one or a structure for each argument; without it
        fn must be a tf.function that was called.
        """
        if name in self._endpoints:
            raise ValueError(f"Endpoint name {name!r} is already taken")
        if kwargs:
            raise ValueError(f"add_endpoint: {', '.join(sorted(kwargs))} mean nothing on Berth; they are of JAX")
        if input_signature is None:
            if not hasattr(fn, "concrete_functions"):
                raise ValueError(f"If the `fn` argument promises no graph, as {fn!r} does not, you must provide an `input_signature`")
            if not fn.concrete_functions():
                raise ValueError(f"The provided tf.function {fn!r} has no graph yet: you must either provide a function that was "
                                 "called, or an `input_signature`")
        else:
            self._specs[name] = tree.map_structure(_spec, list(input_signature))
            fn = berth.function(fn, input_signature=self._specs[name], autograph=False)
        self._endpoints[name] = fn
        return fn

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        """Keeps the variables of a layer or model, and adds its call under a name."""
        self.track(resource)
        return self.add_endpoint(name, resource.__call__, input_signature, **kwargs)

    def add_variable_collection(self, name, variables):
        """Keeps variables as the attribute `name` of what will be loaded; ValueError of what is not a list of variables."""
        if not isinstance(variables, (list, tuple, set)):
            raise ValueError(f"Expected `variables` to be a list, tuple or set; got {type(variables).__name__}")
        if not all(isinstance(v, (berth.Variable, backend.Variable)) for v in variables):
            raise ValueError("Expected all elements in `variables` to be variables; got "
                             f"{', '.join(sorted({type(v).__name__ for v in variables}))}")
        setattr(self._kept, name, _values(variables))

    def write_out(self, filepath, options=None, verbose=True):
        """Writes the folder; ValueError where there is no endpoint."""
        if not self._endpoints:
            raise ValueError("No endpoints have been set: call add_endpoint() or track_and_add_endpoint() before")
        self._kept.kept_variables = _values(self.variables)
        first = next(iter(self._endpoints.values()))
        saved_model.save(self._kept, str(filepath), {**self._endpoints, **(
            {} if "serving_default" in self._endpoints else {"serving_default": first})}, options)
        if verbose:
            said = "\n\n".join(f"* Endpoint '{name}'\n    {self._specs.get(name, 'as it was called')}" for name in self._endpoints)
            io_utils.print_msg(f"{filepath} is a folder of Berth, which its tf.saved_model.load() reads. Its endpoints:\n\n{said}")


def _values(variables):
    return [v.value if isinstance(v, backend.Variable) else v for v in variables]


def _spec(x):
    if isinstance(x, berth.TensorSpec):
        return x
    x = make_input_spec(x)
    return berth.TensorSpec(x.shape, x.dtype, x.name)
