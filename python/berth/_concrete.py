"""Concrete functions: one trace of a tf.function, as an object that can be called, read and saved."""
import inspect
import re

from berth import _core
from berth._structure import LEAF, Fixed, Made, flatten, in_order, pack
from berth._tensor import AnyShape as TensorShape, TensorSpec, as_dtype, convert_to_tensor, string, say_missing as _say_missing


class ConcreteFunction:
    """What get_concrete_function() returns: takes and gives tensors of fixed dtypes and shapes."""

    __getattr__ = _say_missing

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
        if any(s.shape.rank is None for s in specs):
            return Untraced(function, structure, specs)  # each shape has a trace of its own
        try:
            core = _core.trace_concrete(trace, function.__name__, [(s.shape, s.dtype) for s in specs])
        except Exception as error:
            from berth._function import needs_values
            if not needs_values(error):
                raise
            return Untraced(function, structure, specs, f"{error}; a file is a trace: call {function.__name__} itself, which runs op "
                            "by op, or keep what needs values outside of it, in a function of its own")
        return cls(core, structure, forms[-1], function)

    def __call__(self, *args, **kwargs):
        """Arguments in the order of the trace; what is not a tensor may be left out."""
        leaves = self._leaves(args, kwargs)
        out = self._core.call(leaves[:len(self._core.inputs())])
        return out if self._form is None else pack(self._form, out)

    def _leaves(self, args, kwargs):
        """The tensors of a call; TypeError of another value than the trace has for an argument that is not a tensor."""
        if kwargs and self._function is not None and self._structure is not None:
            fixed = {**dict(zip(self._function.names(), self._structure[0])), **self._structure[1]}
            for name, value in kwargs.items():
                place = fixed.get(name)
                if hasattr(place, "value") and place.value != value:
                    raise TypeError(f"{self.name}: {name} is {place.value!r} in this trace, not {value!r}")
            args, kwargs = self._function.in_order(args, kwargs)
        return [convert_to_tensor(v) for v in flatten((args, kwargs))[0]
                if not isinstance(v, (str, bytes, type(None)))]

    name = property(lambda self: self._core.name(), doc="The name of the function.")
    _own = None  # the variables of a function from a file, always the same objects
    variables = property(lambda self: self._own or tuple(self._core.variables()), doc="The variables that it reads or writes.")
    captured_inputs = variables

    inference_fn = property(lambda self: self, doc="The function itself, without a gradient of its own.")

    @property
    def inputs(self):
        """The specs of its tensors."""
        return [TensorSpec(*pair) for pair in self._core.inputs()]

    @property
    def outputs(self):
        """The specs of its results."""
        return [TensorSpec(*pair) for pair in self._core.outputs()]

    output_shapes = property(lambda self: self._of_outputs("shape"), doc="The shapes of its results, in their structure.")
    output_dtypes = property(lambda self: self._of_outputs("dtype"), doc="The dtypes of its results, in their structure.")
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable),
                                   doc="Those of its variables that are trained.")

    def _of_outputs(self, what):
        parts = [getattr(s, what) for s in self.outputs]  # which may set the form
        return parts if self._form is None else pack(self._form, parts)

    @property
    def structured_input_signature(self):
        """The specs of its arguments: (positional, by name)."""
        return tuple(self.inputs), {}

    @property
    def structured_outputs(self):
        """The specs of its results, in their structure."""
        out = self.outputs
        return out if self._form is None else pack(self._form, out)

    @property
    def graph(self):
        """The graph, for its text and ops."""
        return Graph(self._core.text())

    @property
    def function_type(self):
        """The arguments by name, with their specs."""
        return f"({', '.join(map(_short, self.inputs))}) -> {', '.join(map(_short, self.outputs))}"

    def pretty_printed_signature(self, verbose=True):
        """The arguments and results, as text."""
        return f"{self.name}{self.function_type}"

    def form(self):
        """The structure of the results, for a file."""
        return written(self._form)

    def _arguments(self):
        """[name, kind, default, structure, place among the tensors] of each argument, for a file; None where it cannot hold them."""
        if self._structure is None or self._function is None:
            return None
        signature = inspect.signature(self._function.python_function)
        args, kwargs = self._structure
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if any(name not in signature.parameters for name in kwargs):
            return None
        names = list(signature.parameters)  # tensors by name come in the order of names
        parts = [[p.name, int(p.kind), None if p.default is p.empty else written(p.default), written(bound.arguments[p.name]),
                  len(names) + in_order(kwargs).index(p.name) if p.name in kwargs else names.index(p.name)]
                 for p in signature.parameters.values()]
        return None if any(part[3] is None for part in parts) else parts

    def _take(self, arguments):
        """Makes known how a file says, in _arguments(), that the function is called."""
        if arguments:
            self.signature = inspect.Signature([inspect.Parameter(name, inspect._ParameterKind(kind), default=(
                inspect.Parameter.empty if default is None else read(default).value)) for name, kind, default, *_ in arguments])
            self.places = {name: read(place) for name, _, _, place, _ in sorted(arguments, key=lambda a: a[4])}

    signature, places = None, {}

    def _fitting(self, args, kwargs):
        """The tensors of a call that is like that of the trace, or None."""
        leaves = []
        try:
            if self.signature is None:
                leaves = flatten((args, kwargs))[0]
            else:
                bound = self.signature.bind(*args, **kwargs)
                bound.apply_defaults()
                if not all(_fits(place, bound.arguments[name], leaves) for name, place in self.places.items()):
                    return None
        except TypeError:
            return None
        leaves = [convert_to_tensor(v) for v in leaves]
        return leaves if len(leaves) == len(self.inputs) and all(
            s.dtype == v.dtype and s.shape.is_compatible_with(v.shape) for s, v in zip(self.inputs, leaves)) else None

    def save(self, path):
        """Writes the graph and its variables' values; `berth run` and `berth plan` take the file."""
        self._core.save(str(path))

    def __repr__(self):
        return f"<ConcreteFunction {self.pretty_printed_signature()}>"


class Untraced(ConcreteFunction):
    """A concrete function of shapes that are not known, or of what a trace has no values for: each call traces anew, or runs
    op by op, as one of the tf.function does."""

    def __init__(self, function, structure, specs, why=""):
        super().__init__(None, structure, None, function)
        self._specs, self._form_out, self._called, self._why = specs, None, [], why

    def __call__(self, *args, **kwargs):
        leaves = self._leaves(args, kwargs)[:len(self._specs)]
        for spec, leaf in zip(self._specs, leaves):
            if leaf.dtype != spec.dtype or not spec.shape.is_compatible_with(leaf.shape):
                raise _core.InvalidArgumentError(f"{self.name}: the argument is {leaf.dtype.name}{leaf.shape}; expected "
                                                 f"{_short(spec)}")
        given, named = pack(self._structure, leaves)
        out = self._function(*given, **named)
        if not self._called:
            values, form = flatten(out)
            self._form = self._form or form
            self._called = [TensorSpec(None, convert_to_tensor(v).dtype) for v in values]
        return out

    def _told(self):
        """The specs of the results, as two traces of sizes that are open tell them; those of the first call where none can."""
        if self._form_out is None:
            self._form_out = []
            known = all(s.shape.rank is not None for s in self._specs)
            made = [self._of_size(n) for n in (6, 12)] if known else [None]
            if all(made):
                self._form = made[0]._form
                self._form_out = [TensorSpec(a.shape.most_specific_compatible_shape(b.shape), a.dtype)
                                  for a, b in zip(*(m.outputs for m in made))]
        return self._form_out or self._called

    def _of_size(self, n):
        specs = [TensorSpec([n if size is None else size for size in s.shape], s.dtype) for s in self._specs]
        try:
            made = ConcreteFunction.traced(self._function, (), {}, specs, self._structure)
        except (ValueError, TypeError, RuntimeError):
            return None
        return None if isinstance(made, Untraced) else made

    def save(self, path):
        """Raises an InvalidArgumentError: a file holds a trace."""
        raise _core.InvalidArgumentError(f"{self.name} is not traced for all its sizes, so no file can hold it: {self._why}")

    name = property(lambda self: self._function.__name__)
    variables = captured_inputs = ()
    inputs = property(lambda self: list(self._specs))
    outputs = property(lambda self: self._told())
    graph = property(lambda self: Graph(""))

    def by_rank(self, most=4):
        """Traces for 0 to `most` axes of what is of any rank: what a file can hold."""
        found = []
        for rank in range(most + 1):
            specs = [TensorSpec([None] * rank, s.dtype) if s.shape.rank is None else s for s in self._specs]
            try:
                made = ConcreteFunction.traced(self._function, (), {}, specs, self._structure)
            except (ValueError, TypeError, RuntimeError):
                continue
            if not isinstance(made, Untraced):
                found.append(made)
        if not found:
            raise _core.InvalidArgumentError(f"{self.name} cannot be traced, so no file can hold it{self._why and ': '}{self._why}")
        return found


def _short(spec):
    return f"{spec.dtype.name}{'<unknown>' if spec.shape.rank is None else list(spec.shape)}"


_NAME = r'(?:"[^"]*"|[^\s"(),:]+)'
_NODE = re.compile(rf"^ *node ({_NAME}) = (\w+)\((.*?)\)(.*)$", re.M)


class Value:
    """A result of a node: its name, as "Square:0", its shape and dtype."""

    def __init__(self, op, index, text):
        self.op, self.name = op, f"{op.name}:{index}"
        dtype, _, sizes = text.rstrip("]").partition("[")
        sizes = [n.strip() for n in sizes.split(",") if n.strip()]
        self.shape = TensorShape(None if sizes == ["?"] else [None if n.startswith("?") else int(n) for n in sizes])
        self.dtype = "resource" if dtype.startswith("resource") else as_dtype(dtype)  # a variable's handle

    def __repr__(self):
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={getattr(self.dtype, 'name', self.dtype)}>"


class Node:
    """A line of a graph: its name, op, and the whole text."""

    def __init__(self, graph, match):
        self._graph, self._text = graph, match[0].strip()
        self.name, self.op = match[1].strip('"'), match[2]
        self._reads = [(name.strip('"'), int(i)) for name, i in re.findall(rf"({_NAME}):(\d+)", match[3])]
        specs = match[4].partition(" -> ")[2].partition(" from ")[0].partition(' on "')[0]
        results = re.findall(r"\w+(?:\(\w+\))?\[[^\]]*\]", specs)
        self.outputs = [Value(self, i, text) for i, text in enumerate(results)]

    type = property(lambda self: self.op)

    @property
    def input(self):
        """The names of the values that it reads."""
        return [f"{name}:{i}" for name, i in self._reads]

    @property
    def inputs(self):
        """The values that it reads."""
        return tuple(self._graph.get_tensor_by_name(name) for name in self.input)

    def __repr__(self):
        return self._text


class Graph:
    """The graph of a concrete function, in Berth's own format (docs/graph-format.md)."""

    def __init__(self, text):
        self._text = text
        self.node, self._own, inside = [], [], False  # inside a function that it calls
        for line in text.splitlines():
            if match := _NODE.match(line):
                self.node.append(Node(self, match))
                self._own += [] if inside else self.node[-1:]
            inside = line.startswith("function ") or inside and line != "}"

    def as_graph_def(self):
        return self

    def get_operations(self):
        """The nodes of the graph itself; `node` has those of its functions, too."""
        return self._own

    def get_operation_by_name(self, name):
        """The node of that name; KeyError of another."""
        found = next((n for n in self._own if n.name == name), None)
        if found is None:
            raise KeyError(f"the graph has no operation {name!r}; get_operations() lists them")
        return found

    def get_tensor_by_name(self, name):
        """The result "operation:number"; KeyError of another, ValueError of what is no such name."""
        op, colon, index = name.rpartition(":")
        if not colon or not index.isdigit():
            raise ValueError(f"{name!r} is not the name of a result; expected \"operation:number\", as \"Square:0\"")
        outputs = self.get_operation_by_name(op).outputs
        if int(index) >= len(outputs):
            raise KeyError(f"{name!r}: the operation has {len(outputs)} results")
        return outputs[int(index)]

    def __repr__(self):
        return self._text


def _fits(place, value, leaves):
    """Whether a value has the structure of `place`; appends its tensors."""
    if isinstance(place, Fixed):
        return not hasattr(value, "dtype") and type(value) is type(place.value) and value == place.value
    if place is LEAF:
        leaves.append(value)
        return value is not None
    if isinstance(place, Made):
        leaves += flatten(value)[0]
        return True
    if isinstance(place, dict):
        return isinstance(value, dict) and value.keys() == place.keys() and all(
            _fits(part, value[k], leaves) for k, part in place.items())
    return isinstance(value, (list, tuple)) and len(value) == len(place) and all(map(
        lambda part, v: _fits(part, v, leaves), place, value))


def written(form):
    """A structure of tensors as JSON has it; None of one that holds anything else."""
    if form is LEAF:
        return "*"
    value = getattr(form, "value", form)
    if value is None or type(value) in (bool, int, float, str):
        return {"fixed": value}
    if isinstance(form, dict):
        parts = {k: written(v) for k, v in form.items()}
        return None if None in parts.values() or not all(isinstance(k, str) for k in parts) else {"dict": parts}
    if isinstance(form, Made) and form.key in ("ragged", "sparse"):
        return {form.key: written(form.form)}
    if type(form) in (list, tuple):
        parts = [written(v) for v in form]
        return None if None in parts else {type(form).__name__: parts}
    return None


def read(form):
    if form == "*":
        return LEAF
    (kind, parts), = form.items()
    if kind == "fixed":
        return Fixed(parts)
    if kind == "dict":
        return {k: read(v) for k, v in parts.items()}
    if kind in ("ragged", "sparse"):
        import importlib
        module = importlib.import_module(f"berth.{kind}")
        return Made(read(parts), *(module._made("ragged") if kind == "ragged" else (module._make, "sparse")))
    return {"list": list, "tuple": tuple}[kind](map(read, parts))


def load(path, form=None):
    """Returns the function of a file that ConcreteFunction.save() wrote; form: what form() said."""
    return ConcreteFunction(_core.load_function(str(path)), form=None if form is None else read(form))
