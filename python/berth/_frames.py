"""What users see of errors: tracebacks without this package's frames, but for the one called, and words of Python."""
import functools
import os
import types

from berth._lazy import Lazy

re = Lazy("re")
_FOLDERS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, f"{os.sep}malt{os.sep}")
_hides = [True]


def _is_ours(traceback):
    name = traceback.tb_frame.f_code.co_filename
    return name.startswith(_FOLDERS[0]) or _FOLDERS[1] in name


_TYPES = (r"(?s)(\w+)\(\): incompatible function arguments.*?\n +1\. (.*?)(?: -> [^\n]*)?\n.*"
          r"Invoked with types: ([^\n]*)")


def _say_types(error):
    """Rewords what nanobind says of arguments of other types than a function takes."""
    found = re.match(_TYPES, str(error)) if type(error) is TypeError else None
    if found:
        name, takes, given = found.groups()
        takes = takes.replace("self, ", "").replace("(self)", "()").replace(", /)", ")").replace("(/)", "()")
        given = re.sub(r"^berth\._core\.\w+, ", "", given) if "(self" in found.group(2) else given
        error.args = (f"{name}() was called with ({given}); it is {takes}".replace("berth._core.", ""),)


def hide(error):
    """Takes what stands below this frame in the traceback and is this package's out of it."""
    _say_types(error)
    kept = error.__traceback__
    if not _hides[0] or kept is None:
        return
    below = kept.tb_next
    while below is not None:
        if not _is_ours(below):
            kept.tb_next = kept = below
        below = below.tb_next
    kept.tb_next = None


def hiding(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise
    call.__code__ = call.__code__.replace(co_name=fn.__name__)  # the one frame of ours that is shown
    return call


def hide_in(*classes):
    """Has the public methods of classes hide frames, and say types as Python does."""
    for cls in classes:
        for name, member in list(vars(cls).items()):
            fn = member.__func__ if isinstance(member, staticmethod) else member
            if isinstance(fn, types.FunctionType) and (
                    name in ("__call__", "__init__") or not name.startswith("_")):
                setattr(cls, name, staticmethod(hiding(fn)) if fn is not member else hiding(fn))


def enable_traceback_filtering():
    """Leaves this package's frames out of the tracebacks of errors, as it does from the start."""
    _hides[0] = True


def disable_traceback_filtering():
    """Shows all frames of the tracebacks of errors."""
    _hides[0] = False


def is_traceback_filtering_enabled():
    """Whether this package's frames are left out of the tracebacks of errors."""
    return _hides[0]
