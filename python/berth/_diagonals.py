"""Diagonals of matrices, one or a band of them: tf.linalg.diag, diag_part, set_diag and their kin."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor

_ops, _m, _l = _core.ops, _core.ops.math, _core.ops.linalg
_np = Lazy("numpy")
_ALIGN = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _band(what, k, align):
    """The lowest and the highest diagonal."""
    if align not in _ALIGN:
        raise ValueError(f"{what}: align is {align!r}; expected one of {_ALIGN}")
    k = _np.atleast_1d(k if isinstance(k, (int, list, tuple)) else convert_to_tensor(k).numpy()).astype(int).tolist()
    if len(k) not in (1, 2) or k[0] > k[-1]:
        raise _core.InvalidArgumentError(f"{what}: k is {k}; expected one diagonal, or the lowest and the highest")
    return k[0], k[-1]


def _places(rows, columns, low, high, align):
    """Of each place of a matrix its place in its diagonal, of which the longest has `longest`: (number, place, longest)."""
    d = _np.arange(columns) - _np.arange(rows)[:, None]

    def length(k):
        return _np.minimum(rows + _np.minimum(k, 0), columns - _np.maximum(k, 0))
    longest = int(length(_np.arange(low, high + 1)).max())
    sides = align.split("_")
    left = ((d >= 0) & (sides[0] == "LEFT")) | ((d <= 0) & (sides[1] == "LEFT"))
    place = _np.minimum(_np.arange(columns), _np.arange(rows)[:, None]) + _np.where(left, 0, longest - length(d))
    return d, place, longest


def _index(places):
    return convert_to_tensor(places.ravel().astype("int32"))


def _spread(diagonal, rows, columns, low, high, align, single):
    """Diagonals as a matrix, and where it has them."""
    d, place, longest = _places(rows, columns, low, high, align)
    inside = (d >= low) & (d <= high)
    count = high - low + 1
    batch = diagonal.shape.as_list()[:-1 if single else -2]
    wanted = batch + ([longest] if single else [count, longest])
    if diagonal.shape.as_list() != wanted:
        raise _core.InvalidArgumentError(f"the diagonals are {diagonal.shape}; expected {wanted} for diagonals {low} to "
                                         f"{high} of a matrix of {rows} rows and {columns} columns")
    flat = _ops.reshape(diagonal, [*batch, count * longest])
    at = _np.where(inside, (high - d) * longest + place, 0)
    return _ops.reshape(_ops.gather(flat, _index(at), axis=len(batch)), [*batch, rows, columns]), inside


def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """Matrices whose diagonal k is [..., n], or whose diagonals k[1] to k[0] are [..., count, n]; elsewhere padding_value."""
    x = convert_to_tensor(diagonal)
    low, high = _band("linalg.diag", k, align)
    rows, columns = (int(v) for v in (num_rows, num_cols))
    if low == high and rows < 0 and columns < 0 and isinstance(padding_value, (int, float)) and padding_value == 0 and (
            isinstance(k, int) or len(x.shape) < 2 or x.shape[-2] != 1):
        return _l.diag(x, low)
    single = low == high
    longest = x.shape[-1]
    # The least matrix that has a diagonal of this length.
    least = longest - min(high, 0), longest + max(low, 0)
    if rows < 0 and columns < 0:
        rows = columns = max(least)
    elif rows < 0:
        rows = least[0]
    elif columns < 0:
        columns = least[1]
    matrix, inside = _spread(x, rows, columns, low, high, align, single)
    return _ops.where(convert_to_tensor(inside), matrix, convert_to_tensor(padding_value, x.dtype))


def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    """Diagonal k of matrices, [..., n], or their diagonals k[1] to k[0], [..., count, n], filled up with padding_value."""
    x = convert_to_tensor(input)
    low, high = _band("linalg.diag_part", k, align)
    rows, columns = x.shape[-2], x.shape[-1]
    d, place, longest = _places(rows, columns, low, high, align)
    if low <= -rows or high >= columns and columns:
        raise _core.InvalidArgumentError(f"linalg.diag_part: k is {k} of a matrix {x.shape}; expected diagonals that it has")
    at, inside = _np.zeros([high - low + 1, longest], int), _np.zeros([high - low + 1, longest], bool)
    here = (d >= low) & (d <= high)
    at[high - d[here], place[here]] = _np.arange(rows * columns).reshape(rows, columns)[here]
    inside[high - d[here], place[here]] = True
    batch = x.shape.as_list()[:-2]
    flat = _ops.gather(_ops.reshape(x, [*batch, rows * columns]), _index(at), axis=len(batch))
    shape = [longest] if low == high else list(at.shape)
    out = _ops.reshape(flat, [*batch, *shape])
    return out if inside.all() else _ops.where(convert_to_tensor(inside.reshape(shape)), out,
                                               convert_to_tensor(padding_value, x.dtype))


def set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    """Matrices with other values on diagonal k, or on diagonals k[0] to k[1]."""
    x = convert_to_tensor(input)
    diagonal = convert_to_tensor(diagonal, x.dtype)
    low, high = _band("linalg.set_diag", k, align)
    matrix, inside = _spread(diagonal, x.shape[-2], x.shape[-1], low, high, align, low == high)
    return _ops.where(convert_to_tensor(inside), matrix, x)


def tensor_diag(diagonal, name=None):
    """A tensor [s, s] that has the elements of `diagonal` [s] where both places are equal, and zeros elsewhere."""
    x = convert_to_tensor(diagonal)
    return _ops.reshape(_l.diag(_ops.reshape(x, [-1])), x.shape.as_list() * 2)


def tensor_diag_part(input, name=None):
    """The elements of input [s, s] where both places are equal: [s]."""
    x = convert_to_tensor(input)
    half = len(x.shape) // 2
    if not half or len(x.shape) % 2 or x.shape[:half].as_list() != x.shape[half:].as_list():
        raise _core.InvalidArgumentError(f"tensor_diag_part: the input is {x.shape}; expected a shape whose halves are equal")
    n = x.shape[:half].num_elements()
    return _ops.reshape(_l.diag_part(_ops.reshape(x, [n, n])), x.shape.as_list()[:half])
