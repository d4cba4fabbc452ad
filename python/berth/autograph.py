"""tf.autograph: how Python's control flow is traced (docs/python.md)."""
import enum as _enum
import types as _types

from berth._tensor import name_missing as _name_missing


def do_not_convert(func=None):
    """Marks a function whose control flow stays Python's while it is traced."""
    if func is None:
        return do_not_convert
    import functools

    @functools.wraps(func)
    def plain(*args, **kwargs):
        return func(*args, **kwargs)

    plain._do_not_convert = True
    return plain


def to_code(entity, recursive=True, experimental_optional_features=None):
    """The source that a function is traced as."""
    from berth import _autograph
    return _autograph.to_code(entity)


def to_graph(entity, recursive=True, experimental_optional_features=None):
    """The function as AutoGraph converts it."""
    from berth import _autograph
    return _autograph.converted(getattr(entity, "python_function", entity))


def set_verbosity(level, alsologtostdout=False):
    """Sets how much AutoGraph logs."""
    from malt.utils import ag_logging
    ag_logging.set_verbosity(level, alsologtostdout)


def trace(*args):
    """Prints its arguments when a function is traced, not when its trace runs."""
    print(*args)


class Feature(_enum.Enum):
    """Parts of AutoGraph that TensorFlow can leave out of a conversion; Berth converts all or nothing."""
    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


class _Experimental(_types.ModuleType):
    do_not_convert, Feature = staticmethod(do_not_convert), Feature

    @property
    def set_loop_options(self):
        from malt.lang import directives
        return directives.set_loop_options


experimental = _name_missing(_Experimental("berth.autograph.experimental"))
