"""tf.strings where TensorFlow's results are ragged."""
from berth import _core
from berth._tensor import convert_to_tensor, refuse

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


def _check(encoding, errors="replace", replacement_char=65533, replace_control_characters=False):
    refuse("tf.strings", errors=None if errors == "replace" else errors,
           replacement_char=None if replacement_char == 65533 else replacement_char,
           replace_control_characters=replace_control_characters)
    if encoding.upper().replace("_", "-") != "UTF-8":
        raise ValueError(f"the encoding is {encoding!r}; expected 'UTF-8', the one that Berth reads")


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """The characters of texts in UTF-8."""
    _check(input_encoding, errors, replacement_char)
    return _rows(input, _text.unicode_split(input))


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533,
                   replace_control_characters=False, name=None):
    """The numbers of the characters, int32."""
    _check(input_encoding, errors, replacement_char, replace_control_characters)
    values, splits = _text.unicode_split(input)
    numbers = convert_to_tensor([ord(v.decode()) for v in values.numpy()] or [0], _core.int32)
    return _rows(input, (numbers[:values.shape[0]], splits))


def install(module):
    for function in (split, bytes_split, unicode_split, unicode_decode):
        setattr(module, function.__name__, function)
