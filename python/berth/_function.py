"""tf.function, tf.cond and tf.while_loop."""
import functools
import re
import time
import types
from _thread import _local as thread_local  # threading.local, without the import of threading

from berth import _core
from berth._core import Tensor, Variable
from berth._frames import hide
from berth._lazy import Lazy
from berth._not_tensors import refuse_kinds
from berth._straight import is_straight
from berth._structure import LEAF, Composite, Made, flatten, is_value, pack, present
from berth._tensor import AnyShape as TensorShape, TensorSpec, TypeSpec, convert_to_tensor, string, say_missing as _say_missing

_placement = Lazy("berth._placement")
_gradients = Lazy("berth._gradients")
_TRIES = 2  # what the first call makes, such as variables, is there for the second trace


def contracts(value):
    """A list of one, several, or none."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Calls(thread_local):
    """What this thread calls."""

    def __init__(self):
        self.structure = None  # of the arguments of the function
        self.tracing = []      # functions, the innermost last
        self.op_by_op = 0      # how many functions are called op by op


_calls = _Calls()
_listening = [None]  # tf.summary.trace_on(): where called functions go


def listen(functions):
    _listening[0] = functions


def executing_eagerly():
    """False while a function is traced."""
    return not _calls.tracing


def inside_function():
    """Whether a tf.function runs, be it traced or op by op."""
    return bool(_calls.tracing or _calls.op_by_op)


class NeedsValues(ValueError):
    """What a trace meets that needs values; the engine's errors of this kind have the attribute, too."""
    needs_values = True


class MakesVariable(NeedsValues):
    """A variable is made while a function is traced: its first call is not."""


def _refuse_variable():
    if _calls.tracing:
        raise MakesVariable("a variable is made inside a tf.function; make it before, or in the first call alone: "
                            "if self.v is None: self.v = tf.Variable(...)")


_core.set_variable_hook(_refuse_variable)


def needs_values(error):
    """True of an error that the same code does not meet when its ops run one by one."""
    if _core.traces_loop():
        return False
    while error is not None and not getattr(error, "needs_values", False):
        # Keras tells an error anew, with more words.
        first = error.__context__
        error = first if type(first) is type(error) and str(first) in str(error) else None
    return error is not None


def call_converted(fn, *args, **kwargs):
    """Calls a function of the user's; while a trace is on, tensors may decide its control flow."""
    if not _core.traces_loop() or is_straight(fn, (*args, *kwargs.values())):
        return fn(*args, **kwargs)
    from berth import _autograph
    return _autograph.converted_call(fn, args, kwargs)


class Function:
    """A Python function that is traced once per signature and then runs as a compiled plan."""

    __getattr__ = _say_missing

    of_a_map = False

    def __init__(self, fn, name=None, input_signature=None, placement="", autograph=True,
                 contract=None, reduce_retracing=False, *, strategy=None):  # strategy: splits what is traced
        functools.update_wrapper(self, fn, updated=("__dict__",) if isinstance(fn, types.FunctionType) else ())
        self.__name__ = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", type(fn).__name__)
        self.python_function = fn
        self._autograph = autograph
        self._contract = contract
        self._kept = []       # what fixed arguments stand for, so that their ids stay theirs
        self._asked = []      # concrete functions
        self._traced = []     # (structure, specs) of the traces
        self._signature = input_signature
        specs = [] if input_signature is None else flatten(list(input_signature), lambda v: isinstance(v, TensorSpec))[0]
        self._make = lambda specs: _core.Function(self._trace, name or self.__name__, specs,
                                                  placement, contracts(contract), strategy)
        if any(s.shape.rank is None for s in specs) or any(_is_of_values(s) for s in input_signature or ()):
            specs = []  # each shape has a trace of its own
        self._core = self._make([(s.shape, s.dtype) for s in specs])
        self._open = reduce_retracing or any(not s.shape.is_fully_defined() for s in specs)
        self._cores = [self._core]
        self._relaxed = {} if reduce_retracing and input_signature is None else None
        self._bound = {}
        self._untraced = {}   # by signature text: how often a trace failed for want of values, and the error
        self.hosted = []      # what py_function calls in its traces
        if not isinstance(fn, types.FunctionType):  # an object with members of its own
            for key, value in getattr(fn, "__dict__", {}).items():
                self.__dict__.setdefault(key, value)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        # In the instance, where it has room, so that the collector sees both go together.
        bound, key = getattr(instance, "__dict__", self._bound), f"function {id(self)} {id(instance)}"
        if key not in bound:
            bound[key] = _BoundFunction(self.python_function.__get__(instance), self.__name__,
                                        self._signature, autograph=self._autograph,
                                        contract=self._contract, reduce_retracing=self._relaxed is not None)
            bound[key].unbound = self  # whose id is taken as long as the key is there
        return bound[key]

    def __call__(self, *args, **kwargs):
        from berth import config
        if config.functions_run_eagerly():
            return self.python_function(*args, **kwargs)
        if self._signature is not None:
            import inspect
            bound = inspect.signature(self.python_function).bind(*args, **kwargs)
            args, kwargs = tuple(convert_signature(self._signature, bound.args)), {}
        leaves, structure = flatten((args, kwargs), is_value)
        text = self._text_of(structure)
        if self._untraced and self._untraced.get(text, (0,))[0] >= _TRIES:
            return self._op_by_op(structure, leaves)
        outer = _calls.structure
        _calls.structure = structure
        try:
            if self._relaxed is not None:
                self._core = self._core_for(leaves, text)
            results, form = self._core.call(leaves, text)
        except BaseException as error:
            if not needs_values(error):
                hide(error)
                raise
            failed = error
        else:
            failed = None
        finally:
            _calls.structure = outer
        if failed is not None:
            return self._without(failed, structure, leaves, text)
        if _listening[0] is not None and not _calls.tracing:
            _listening[0].append(self.get_concrete_function(*args, **kwargs))
        return pack(form, results)

    def _call_each(self, iterator, args, most, seconds):
        """Calls with arguments whose tensors are an element of a data set, and with further elements like it.

        Returns the results of the last call and how many calls there were, at most `most`, in about so many seconds.
        """
        from berth import config
        end = time.monotonic() + seconds
        out = self(*args)
        if config.functions_run_eagerly():
            return out, 1
        leaves, structure = flatten((args, {}), is_value)
        text = self._text_of(structure)
        if self._untraced.get(text) or self._core.num_traces() == 0:
            return out, 1
        outer = _calls.structure
        _calls.structure = structure
        try:
            calls, results, form = iterator._each(
                lambda elements, *until: self._core.call_each(elements, leaves, text, *until), most - 1, end - time.monotonic())
        finally:
            _calls.structure = outer
        return (pack(form, results) if calls else out), 1 + calls

    def in_order(self, args, kwargs):
        """The arguments of a call, those by name at their places."""
        if not kwargs:
            return args, kwargs
        import inspect
        try:
            bound = inspect.signature(self.python_function).bind_partial(*args, **kwargs)
        except (TypeError, ValueError):
            return args, kwargs
        return bound.args, bound.kwargs

    def names(self):
        """The names of the arguments that have places."""
        import inspect
        try:
            parameters = inspect.signature(self.python_function).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def _decorate(self, decorator):
        """Wraps the Python function, before it is traced."""
        if self._traced or self._asked:
            raise ValueError(f"tf.function {self.__name__}: it was traced; decorate it before")
        self.python_function = decorator(self.python_function)

    def __repr__(self):
        signature = "" if self._signature is None else f", input_signature={self._signature!r}"
        return f"<tf.function {self.__name__}, traces={len(self._traced)}{signature}>"

    def _without(self, error, structure, leaves, text):
        """The results of a call that its trace has no values for: by a trace of these shapes, or op by op."""
        if self._open:
            # Sizes are numbers where no dimension is open.
            self._open, self._relaxed = False, None
            self._core = self._make([])
            self._cores.append(self._core)
            return self(*pack(structure, leaves)[0], **pack(structure, leaves)[1])
        tries = self._untraced.get(text, (0,))[0] + 1
        self._untraced[text] = tries, error
        if tries == _TRIES and isinstance(error, MakesVariable):
            raise ValueError(f"tf.function {self.__name__}: each call makes variables: {error}") from error
        if tries == _TRIES and not self.of_a_map:  # explain() of a pipeline says so
            _core.lint_untraced(self.__name__, str(error))
        return self._op_by_op(structure, leaves)

    def _op_by_op(self, structure, leaves):
        import contextlib
        args, kwargs = pack(structure, [convert_to_tensor(v) for v in leaves])
        with contextlib.ExitStack() as kept:
            for contract in contracts(self._contract):
                kept.enter_context(contract)
            _calls.op_by_op += 1
            kept.callback(_leave_op_by_op)
            out, form = flatten(self.python_function(*args, **kwargs))
        return pack(form, [convert_to_tensor(v) if isinstance(v, (Variable, int, float, str, bytes)) or is_value(v) else v
                           for v in out])

    def _core_for(self, leaves, text):
        """The traces for arguments like these; dimensions that have differed are open from then on."""
        key = (text, *((str(v.dtype), len(v.shape)) for v in leaves))
        shapes = [tuple(v.shape) for v in leaves]
        core, known = self._relaxed.get(key, (self._cores[0], shapes))
        merged = [tuple(a if a == b else None for a, b in zip(s, k)) for s, k in zip(shapes, known)]
        if merged != known:
            core = self._make([(s, convert_to_tensor(v).dtype) for s, v in zip(merged, leaves)])
            self._cores.append(core)
        self._relaxed[key] = core, merged
        return core

    def _text_of(self, structure):
        """The signature's part that is not a tensor. Objects count by identity, and are kept."""
        def of(s):
            if s is LEAF:
                return "*"
            if isinstance(s, dict):
                return "{" + ",".join(f"{k!r}:{of(v)}" for k, v in s.items()) + "}"
            if isinstance(s, (list, tuple)):
                return type(s).__name__ + "(" + ",".join(of(v) for v in s) + ")"
            if isinstance(s, Made):
                return f"{s.key}{of(s.form)}"
            value = s.value
            if isinstance(value, Variable):
                return f"variable {value._serial()}"
            if value is None or isinstance(value, (bool, int, float, str, bytes)):
                return repr(s)
            if hasattr(value, "__tf_tracing_type__"):  # says itself what it equals
                value = value.__tf_tracing_type__(None)
                value = next((k for k in self._kept if type(k) is type(value) and k == value), value)
            if not any(value is k for k in self._kept):
                self._kept.append(value)
            return f"{type(value).__name__} {id(value)}"
        return of(structure)

    def _trace(self, leaves):
        structure = _calls.structure
        result = self.trace_with(structure, leaves)
        self._traced.append((structure, [TensorSpec.from_tensor(t) for t in leaves]))
        return result

    def trace_with(self, structure, leaves):
        """Calls the function with tensors of a trace; returns leaves and structure of the result."""
        args, kwargs = pack(structure, leaves)
        _calls.tracing.append(self)
        try:
            result = self._call_python(args, kwargs, leaves)
        finally:
            _calls.tracing.pop()
        # Results are tensors, but for None.
        out, form = present(result)
        return [convert_to_tensor(v) for v in out], form

    def _call_python(self, args, kwargs, leaves):
        def call():
            if self._autograph:
                return call_converted(self.python_function, *args, **kwargs)
            return self.python_function(*args, **kwargs)
        try:
            return call()
        except Exception as error:
            if type(error).__name__ != "NeedsTape":
                raise
        return _gradients.retraced(call, leaves)  # tf.gradients was called

    def get_concrete_function(self, *args, **kwargs):
        """Traces for arguments like these, tensors or TensorSpecs; nothing is run."""
        from berth._concrete import ConcreteFunction
        if self._signature is not None and not args and not kwargs:
            args = tuple(self._signature)
        args, kwargs = self.in_order(args, kwargs)
        leaves, structure = flatten((args, kwargs), lambda v: is_value(v) or isinstance(v, TensorSpec))
        made = ConcreteFunction.traced(self, args, kwargs, leaves, structure)
        made._asked_for = repr((structure, [v if isinstance(v, TensorSpec) else (tuple(v.shape), str(v.dtype)) for v in leaves]))
        for known in self._asked:
            if known._asked_for == made._asked_for and known.inputs == made.inputs:
                return known
        self._asked.append(made)
        return made

    def concrete_functions(self):
        """One for each trace so far."""
        from berth._concrete import ConcreteFunction
        return self._asked + [ConcreteFunction.traced(self, (), {}, specs, structure)
                for structure, specs in self._traced
                if not any(c.inputs == specs for c in self._asked)]

    def pretty_printed_concrete_signatures(self, verbose=True):
        """The signatures of the traces so far, as text."""
        return "\n".join(f.pretty_printed_signature() for f in self.concrete_functions())

    @property
    def input_signature(self):
        """The signature that was given, or None."""
        return self._signature

    def experimental_get_tracing_count(self):
        """How often the function was traced."""
        return sum(core.num_traces() for core in self._cores)

    def _why_untraced(self, kind="Report"):
        """What there is in place of a report of a function that never could be traced."""
        if not self._untraced or self.experimental_get_tracing_count():
            return None
        _, error = list(self._untraced.values())[-1]
        return getattr(_placement, kind)(f"{self.__name__} runs op by op, for it cannot be traced: {error}\n")

    def placement(self):
        """What ran where, of the signature called last."""
        if (text := self._why_untraced("Placement")) is not None:
            return text
        return _placement.Placement("", self._core.placement())

    def explain(self, op):
        """Why an op is where it is, and what would move it."""
        if (text := self._why_untraced("Explanation")) is not None:
            return text
        return _placement.Explanation("", self._core.explain(op))

    def plan_text(self, stage="plan"):
        """The function as text: stage "trace", "optimize", "place" or "plan"."""
        if (text := self._why_untraced()) is not None:
            return text
        return _placement.Report(self._core.text(stage))

    def save_graph(self, path, stage="optimize"):
        """Writes plan_text(stage) to a file, for `berth plan` and `berth place`."""
        _placement.save_text(path, self.plan_text(stage))


def _leave_op_by_op():
    _calls.op_by_op -= 1


class _BoundFunction(Function):
    """A method of an instance."""

    def __reduce__(self):
        return type(None), ()  # a copy of the instance makes its own


class DoesNotFit(TypeError, ValueError):
    """An argument that is not what the input_signature says; TensorFlow raises a TypeError."""


def _is_of_values(spec):
    """True of the spec of a value that is not a tensor, which structures do not take apart: a TensorArray's."""
    return isinstance(spec, TypeSpec) and not isinstance(spec, (TensorSpec, Composite))


def convert_signature(signature, args):
    """The arguments with what the signature calls tensors made into tensors of its dtypes."""
    signature = list(signature)
    if len(args) != len(signature):
        raise TypeError(f"the input_signature has {len(signature)} arguments, the call {len(args)}")
    out = []
    for spec, value in zip(signature, args):
        if not isinstance(spec, TensorSpec):
            if isinstance(spec, (TypeSpec, Composite)) and not spec.is_compatible_with(value):
                raise DoesNotFit(f"the argument {value!r} does not fit its {spec}")
            out.append(value)
            continue
        t = convert_to_tensor(value, None if isinstance(value, (Tensor, Variable)) else spec.dtype)
        if t.dtype != spec.dtype or not spec.shape.is_compatible_with(t.shape):
            raise DoesNotFit(f"the argument {t!r} does not fit its {spec}")
        out.append(t)
    return out


def function(func=None, input_signature=None, autograph=True, jit_compile=None,
             reduce_retracing=False, experimental_implements=None, experimental_autograph_options=None,
             experimental_attributes=None, *, placement="", contract=None):
    """Makes a Function of a Python function (tf.function); works as a decorator.

    autograph: `if`, `for`, `while`, `and`, `or` and `not` on tensors become cond and while_loop.
    placement: "rules", "auto" or "fit", as config.set_placement_policy() has it; "" is what that was given.
    contract: a tf.Contract, or several, that every run keeps.
    """
    def make(fn):
        return Function(fn, input_signature=input_signature, placement=placement,
                        autograph=autograph, contract=contract, reduce_retracing=reduce_retracing)
    return make if func is None else make(func)


def without_text(tensors):
    """The results of a branch, or of a turn of a loop; NeedsValues of text, whose length a plan would have to know."""
    if any(v.dtype == string for v in tensors):
        raise NeedsValues("text is the result of a branch, or changes in a loop, on tensors")
    return tensors


def _branch(fn, forms):
    def run(_):
        out, form = present(fn())
        forms.append(form)
        return without_text([convert_to_tensor(v) for v in out])
    return run


_OTHER_SHAPES = re.compile(r"If: output \d+ is (\w+)\[[^\]]*\] in the true branch and (\w+)\[")


def traced_branches(pred, true, false):
    """The results of a node of two branches; NeedsValues where their shapes differ."""
    try:
        return _core.trace_cond(pred, true, false)
    except _core.InvalidArgumentError as error:
        found = _OTHER_SHAPES.search(str(error))
        if found and found[1] == found[2]:
            raise NeedsValues(f"cond: the shape of the result depends on the predicate: {error}") from error
        raise


def cond(pred, true_fn=None, false_fn=None, name=None):
    """Returns true_fn() where pred holds, else false_fn() (tf.cond)."""
    if not callable(true_fn) or not callable(false_fn):
        given = f"{type(true_fn).__name__} and {type(false_fn).__name__}"
        raise TypeError(f"cond(): 'true_fn' and 'false_fn' must be functions, not {given}")
    refuse_kinds("cond", "a scalar tensor of bool, or a bool", pred=pred)
    if not isinstance(pred, (Tensor, Variable)) or not _core.traces_cond(pred):
        return true_fn() if pred else false_fn()
    forms = []
    out = traced_branches(pred, _branch(true_fn, forms), _branch(false_fn, forms))
    return pack(forms[0], out)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10,
               back_prop=True, swap_memory=False, maximum_iterations=None, name=None):
    """Repeats loop_vars = body(*loop_vars) as long as cond(*loop_vars) holds (tf.while_loop)."""
    most = -1 if maximum_iterations is None else int(maximum_iterations)
    if not _core.traces_loop():
        turn = 0
        while turn != most and cond(*loop_vars):
            loop_vars = body(*loop_vars)
            if not isinstance(loop_vars, (list, tuple)):
                loop_vars = (loop_vars,)
            turn += 1
        leaves, form = present(loop_vars)
        return pack(form, [v if hasattr(v, "staged") else convert_to_tensor(v) for v in leaves])
    for v in loop_vars:
        if hasattr(v, "staged"):  # a TensorArray
            v.staged()
    leaves, form = flatten(list(loop_vars))
    leaves = without_text([convert_to_tensor(v) for v in leaves])
    invariants = [] if shape_invariants is None else flatten(list(shape_invariants))[0]
    for v, s in zip(leaves, invariants):
        if not TensorShape(getattr(s, "shape", s)).is_compatible_with(v.shape):
            raise ValueError(f"while_loop: a variable has the shape {v.shape}, which its shape invariant {s} excludes")

    def test(values):
        return [convert_to_tensor(cond(*pack(form, values)))]

    def step(values):
        out = body(*pack(form, values))
        out = list(out) if isinstance(out, (list, tuple)) else [out]
        return [convert_to_tensor(v) for v in flatten(out)[0]]

    try:
        return pack(form, _core.trace_while(test, step, leaves, most))
    except _core.InvalidArgumentError as error:
        if any(not TensorShape(getattr(s, "shape", s)).is_fully_defined() for s in invariants):
            raise NeedsValues(f"while_loop: a variable grows, as its shape invariant allows: {error}") from error
        raise
