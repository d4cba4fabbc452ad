"""tf.strings.as_string(): numbers as text, in the forms of C's printf. It works on the host."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, string

_np = Lazy("numpy")


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    """Each element as text: "1.500000", with precision=2 "1.50", scientific "1.5e+00", shortest "1.5"; bools "true" or "false".

    fill is what a number narrower than `width` is filled up with: spaces, "0", or "-", spaces behind; "+" and " " show a sign.
    """
    x = convert_to_tensor(input)
    is_float = x.dtype.is_floating or x.dtype.is_complex
    if fill not in ("", "+", "-", "0", " "):
        raise _core.InvalidArgumentError(f"as_string: fill is {fill!r}; expected '0', ' ', '+', '-' or ''")
    if scientific and shortest:
        raise _core.InvalidArgumentError("as_string: scientific and shortest are True; expected one of both")
    if not is_float and (precision >= 0 or scientific or shortest):
        raise _core.InvalidArgumentError(f"as_string: precision is {precision}, scientific {scientific}, shortest {shortest} of "
                                         f"{x.dtype.name}; expected them of floating dtypes only")
    form = "%" + fill + (str(int(width)) if width > -1 else "") + (f".{int(precision)}" if precision > -1 else "")
    form += ("g" if shortest else "e" if scientific else "f") if is_float else "d"
    if x.dtype == string:
        space = max(int(width), 0)
        made = [v.ljust(space) if fill == "-" else v.rjust(space) for v in x._array().ravel().tolist()]
    else:
        values = x.numpy().ravel().tolist()
        if x.dtype == _core.bool:
            made = [b"true" if v else b"false" for v in values]
        elif x.dtype.is_complex:
            made = [f"({form % v.real},{form % v.imag})".encode() for v in values]
        else:
            made = [(form % v).encode() for v in values]
    return convert_to_tensor(_np.asarray(made, dtype=object).reshape(x.shape.as_list()), string)
