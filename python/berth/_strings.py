"""tf.strings where TensorFlow's results are ragged, and text in functions that move elements."""
import functools

from berth import _core
from berth._structure import flatten, pack
from berth._tensor import convert_to_tensor, refuse, string

_text = _core.ops.strings


def _rows(input, parts):
    """One text gives a tensor, several a RaggedTensor."""
    if not len(convert_to_tensor(input).shape):
        return parts[0]
    from berth.ragged import RaggedTensor
    return RaggedTensor(*parts)


def split(input, sep=None, maxsplit=-1, name=None):
    """The parts of texts between separators, or runs of white space."""
    return _rows(input, _text.split(input, sep or "", maxsplit))


def bytes_split(input, name=None):
    """The bytes of texts."""
    return _rows(input, _text.bytes_split(input))


def _plain(*arguments):
    """Whether the engine's own functions do it: UTF-8, with the defaults of the other arguments."""
    return arguments[0] == "UTF-8" and arguments[1:] == ("replace", 65533, False)[:len(arguments) - 1]


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """The characters of texts, each as text of the same encoding."""
    if not _plain(input_encoding, errors, replacement_char):
        from berth import _unicode
        return _unicode.unicode_split(input, input_encoding, errors, replacement_char)
    return _rows(input, _text.unicode_split(input))


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533,
                   replace_control_characters=False, name=None):
    """The numbers of the characters, int32."""
    if not _plain(input_encoding, errors, replacement_char, replace_control_characters):
        from berth import _unicode
        return _unicode.unicode_decode(input, input_encoding, errors, replacement_char, replace_control_characters)
    values, splits = _text.unicode_split(input)
    numbers = convert_to_tensor([ord(v.decode()) for v in values.numpy()] or [0], _core.int32)
    return _rows(input, (numbers[:values.shape[0]], splits))


_MOVE = """expand_dims concat transpose reverse tile repeat boolean_mask squeeze reshape slice split broadcast_to
where gather_nd roll pad ensure_shape strided_slice""".split()


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    """The template with each placeholder replaced by a tensor, as tf.print() writes it: a scalar string."""
    from berth._ops import _shown
    if not isinstance(template, str):
        raise TypeError(f"tf.strings.format(): 'template' must be text, not a {type(template).__name__}")
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    parts = template.split(placeholder)
    if len(parts) != len(values) + 1:
        raise ValueError(f"tf.strings.format: {len(parts) - 1} placeholders for {len(values)} values")
    shown = [_shown(convert_to_tensor(v), summarize) for v in values] + [""]
    return convert_to_tensor("".join(p + v for p, v in zip(parts, shown)))


def _is_text(v):
    return isinstance(v, (str, bytes)) or isinstance(v, (list, tuple)) and len(v) > 0 and all(map(_is_text, v))


def _as_text(v, fn):
    """Texts, and lists of such, as tensors; of a list of parts each."""
    of_parts = isinstance(v, (list, tuple)) and (
        fn is _core.ops.concat or any(isinstance(part, _core.Tensor) for part in v))
    if of_parts:
        return [convert_to_tensor(part) if _is_text(part) else part for part in v]
    return convert_to_tensor(v) if _is_text(v) else v


def by_number(fn, *args, **kwargs):
    """fn, which only moves elements, of text: of whole numbers, one for each text, and back; 0 is the empty text."""
    import numpy
    args = [_as_text(v, fn) for v in args]
    kwargs = {k: _as_text(v, fn) if isinstance(v, (list, tuple)) else v for k, v in kwargs.items()}
    leaves, form = flatten((args, kwargs), lambda v: isinstance(v, _core.Tensor))
    arrays = [v._array() for v in leaves if v.dtype == string]
    table = numpy.concatenate([numpy.asarray([b""], object), *(a.ravel() for a in arrays)])
    parts = iter(numpy.split(numpy.arange(1, len(table), dtype="int32"), numpy.cumsum([a.size for a in arrays])[:-1]))
    shapes = iter([a.shape for a in arrays])
    given, named = pack(form, [convert_to_tensor(next(parts).reshape(next(shapes))) if v.dtype == string else v
                               for v in leaves])
    out, structure = flatten(fn(*given, **named))
    return pack(structure, [convert_to_tensor(numpy.asarray(table[v._array()], object), string) for v in out])


def _of_text_too(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except _core.InvalidArgumentError as error:
            if " string; expected one of" not in str(error):
                raise
        return by_number(fn, *args, **kwargs)
    return call


def take_text(top):
    """Lets functions that only move elements take text, too, which is on the host."""
    for name in _MOVE:
        top[name] = _of_text_too(top[name])
    top["add"] = top["math"].add = _added(top["add"])


def _added(fn):
    @functools.wraps(fn)
    def add(x, y, name=None):
        try:
            return fn(x, y)
        except _core.InvalidArgumentError as error:
            if "AddV2: x is string" not in str(error):
                raise
        return convert_to_tensor(x) + y
    return add


def install(module):
    for function in (format, split, bytes_split, unicode_split, unicode_decode):
        setattr(module, function.__name__, function)
