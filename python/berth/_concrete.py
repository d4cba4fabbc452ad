"""Concrete functions: one trace of a tf.function, as an object that can be called, read and saved."""
import re

from berth import _core
from berth._structure import flatten, pack
from berth._tensor import TensorSpec, convert_to_tensor


class ConcreteFunction:
    """What get_concrete_function() returns: takes and gives tensors of fixed dtypes and shapes."""

    def __init__(self, core, structure=None, form=None, function=None):
        self._core, self._structure, self._form = core, structure, form
        self._function = function  # holds what py_function calls

    @classmethod
    def traced(cls, function, args, kwargs, leaves, structure):
        """Traces `function` for `leaves`: tensors, or TensorSpecs in their place."""
        forms = []

        def trace(tensors):
            out, form = function.trace_with(structure, tensors)
            forms.append(form)
            return out

        specs = [v if isinstance(v, TensorSpec) else TensorSpec.from_tensor(convert_to_tensor(v))
                 for v in leaves]
        try:
            core = _core.trace_concrete(trace, function.__name__, [(s.shape, s.dtype) for s in specs])
        except Exception as error:
            from berth._function import needs_values
            if needs_values(error):
                error.args = (f"{error}; a concrete function, and a file, is a trace: call {function.__name__} itself, "
                              "which runs op by op, or keep what needs values outside of it, in a function of its own",)
            raise
        return cls(core, structure, forms[-1], function)

    def __call__(self, *args, **kwargs):
        """Arguments in the order of the trace; what is not a tensor may be left out."""
        leaves = [convert_to_tensor(v) for v in flatten((args, kwargs))[0]
                  if not isinstance(v, (str, bytes, type(None)))]
        out = self._core.call(leaves[:len(self._core.inputs())])
        return out if self._form is None else pack(self._form, out)

    name = property(lambda self: self._core.name())
    variables = property(lambda self: tuple(self._core.variables()))
    captured_inputs = variables

    @property
    def inputs(self):
        return [TensorSpec(*pair) for pair in self._core.inputs()]

    @property
    def outputs(self):
        return [TensorSpec(*pair) for pair in self._core.outputs()]

    @property
    def structured_input_signature(self):
        return tuple(self.inputs), {}

    @property
    def structured_outputs(self):
        out = self.outputs
        return out if self._form is None else pack(self._form, out)

    @property
    def graph(self):
        return Graph(self._core.text())

    @property
    def function_type(self):
        return f"({', '.join(map(_short, self.inputs))}) -> {', '.join(map(_short, self.outputs))}"

    def pretty_printed_signature(self, verbose=True):
        return f"{self.name}{self.function_type}"

    def save(self, path):
        """Writes the graph and its variables' values; `berth run` and `berth plan` take the file."""
        self._core.save(str(path))

    def __repr__(self):
        return f"<ConcreteFunction {self.pretty_printed_signature()}>"


def _short(spec):
    return f"{spec.dtype.name}{list(spec.shape)}"


class Node:
    """A line of a graph: its name, op, and the whole text."""

    def __init__(self, name, op, text):
        self.name, self.op, self._text = name, op, text

    def __repr__(self):
        return self._text


class Graph:
    """The graph of a concrete function, in Berth's own format (docs/graph-format.md)."""

    def __init__(self, text):
        self._text = text
        self.node = [Node(m[1].strip('"'), m[2], m[0].strip()) for m in re.finditer(
            r"^ *node (\"[^\"]*\"|\S+) = (\w+)\(.*$", text, re.M)]

    def as_graph_def(self):
        return self

    def get_operations(self):
        return self.node

    def __repr__(self):
        return self._text


def load(path):
    """Returns the function of a file that ConcreteFunction.save() wrote."""
    return ConcreteFunction(_core.load_function(str(path)))
