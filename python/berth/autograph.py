"""tf.autograph: how Python's control flow is traced (docs/python.md)."""
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


class _Experimental(_types.ModuleType):
    do_not_convert = staticmethod(do_not_convert)

    @property
    def set_loop_options(self):
        from malt.lang import directives
        return directives.set_loop_options


experimental = _name_missing(_Experimental("berth.autograph.experimental"))
