"""Python's control flow on tensors: `if`, `for`, `while`, `and`, `or`, `not` of a traced function.

diastatic-malt rewrites the source of a function so that each of these calls an operator; the
operators here turn those on symbolic tensors into cond and while_loop, and leave the others to
Python. Imported by the first function that needs it (_straight.py).
"""
import ast
import functools
import importlib.util  # noqa: F401  malt takes it for granted
import types
import warnings

from malt.converters import control_flow
from malt.core import converter
from malt.impl import api
from malt.operators import py_builtins
from malt.pyct import inspect_utils, parser

from berth import _staged
from berth._relabel import relabelled
from berth._straight import is_converted

_OPTIONS = converter.ConversionOptions(
    recursive=True, user_requested=True, optional_features=converter.Feature.ASSERT_STATEMENTS)
_failed = {}      # code that has no source, or that malt cannot read
_relabelled = {}  # generated code -> the same with the lines of the user's file


class _Transformer(api.PyToPy):
    """malt's transformer with the operators of this package."""

    def get_extra_locals(self):
        if self._extra_locals is None:
            names = dict(super().get_extra_locals()["ag__"].__dict__)
            names.update(converted_call=converted_call, **_staged.OPERATORS)
            operators = types.ModuleType("ag__")
            vars(operators).update(names)
            self._extra_locals = {"ag__": operators}
        return self._extra_locals


_transformer = _Transformer()
_same_arguments = parser._node_matches_argspec


def _is_of(node, fn):
    """True of the node of a lambda: several may stand in a line, with the same arguments."""
    spots = [p for p in fn.__code__.co_positions() if None not in p and p[3] > 0]  # without what no text stands for
    body = node.body
    return _same_arguments(node, fn) and (not spots or (body.lineno, body.col_offset, body.end_lineno, body.end_col_offset) == (
        *min((p[0], p[2]) for p in spots), *max((p[1], p[3]) for p in spots)))


parser._node_matches_argspec = _is_of


class _ControlFlow(control_flow.ControlFlowTransformer):
    """malt's, but that a function which the body of a loop makes sees the loop's variables as Python has it: the last
    values, not those of its own pass."""

    _late = frozenset()  # what the functions in the body of this loop read

    def _of_loop(self, node, visit):
        made = [inner for part in node.body for inner in ast.walk(part) if isinstance(inner, (ast.Lambda, ast.FunctionDef))]
        read = {name.id for fn in made for name in ast.walk(fn) if isinstance(name, ast.Name)}
        node._late = read
        return visit(node)

    def visit_For(self, node):
        return self._of_loop(node, super().visit_For)

    def visit_While(self, node):
        return self._of_loop(node, super().visit_While)

    def _get_block_vars(self, node, modified):
        found = super()._get_block_vars(node, modified)
        late = getattr(node, "_late", ())
        self._late = {v for v in modified if v.is_simple() and str(v) in late}
        return found

    def _create_nonlocal_declarations(self, vars_):
        late, self._late = self._late, frozenset()
        return super()._create_nonlocal_declarations({*vars_, *late})


control_flow.ControlFlowTransformer = _ControlFlow


def converted(fn):
    """Returns the function with its control flow as operators, or itself when that cannot be."""
    code = fn.__code__
    if code in _failed:
        return fn
    try:
        made, _, source_map = _transformer.transform(
            fn, converter.ProgramContext(options=_OPTIONS))
    except Exception as e:  # noqa: BLE001  whatever malt stumbles over
        _failed[code] = str(e)
        warnings.warn(f"AutoGraph cannot read {fn.__qualname__} ({code.co_filename}:"
                      f"{code.co_firstlineno}), which is traced as it is: {e}", stacklevel=2)
        return fn
    if made.__code__ not in _relabelled:
        _relabelled[made.__code__] = relabelled(made.__code__, source_map, code)
    made.__code__ = _relabelled[made.__code__]
    return made


def converted_call(f, args, kwargs, scope=None, options=None):
    """Calls f, converted when it is code of the user's."""
    kwargs = kwargs or {}
    if isinstance(f, functools.partial):
        return converted_call(f.func, f.args + args, {**f.keywords, **kwargs}, scope)
    if inspect_utils.isbuiltin(f) or f is _staged.tf_range:
        return _call_builtin(f, args, kwargs, scope)
    self = ()
    if isinstance(f, types.MethodType):
        self, target = (f.__self__,), f.__func__
    elif isinstance(f, types.FunctionType):
        target = f
    else:
        self, target = (f,), getattr(type(f), "__call__", None)
    if isinstance(f, type) or not isinstance(target, types.FunctionType) or not is_converted(target):
        return f(*args, **kwargs)
    return converted(target)(*self, *args, **kwargs)


def _call_builtin(f, args, kwargs, scope):
    if f is eval:
        return py_builtins.eval_in_original_context(f, args, scope)
    if f is super:
        return py_builtins.super_in_original_context(f, args, scope)
    if f is globals:
        return py_builtins.globals_in_original_context(scope)
    if f is locals:
        return py_builtins.locals_in_original_context(scope)
    return _staged.BUILTINS.get(f, f)(*args, **kwargs)


def to_code(entity, recursive=True, experimental_optional_features=None):
    """The source that a function is traced as."""
    return api.to_code(getattr(entity, "python_function", entity))
