"""tf.nest: lists, tuples and dictionaries of values."""
from berth._structure import Composite as _Composite, flatten as _flatten, pack as _pack


def flatten(structure, expand_composites=False):
    """Returns the leaves in order; dictionaries by their keys. expand_composites: ragged and sparse tensors by their parts."""
    return _flatten(structure, whole=() if expand_composites else _Composite)[0]


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """The inverse of flatten()."""
    leaves, form = _flatten(structure, whole=() if expand_composites else _Composite)
    flat_sequence = list(flat_sequence)
    if len(leaves) != len(flat_sequence):
        raise ValueError(f"the structure has {len(leaves)} leaves, {len(flat_sequence)} values were given")
    return _pack(form, flat_sequence)


def is_nested(structure):
    """True of lists, tuples and dictionaries."""
    return isinstance(structure, (list, tuple, dict))


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises ValueError unless both have the same structure, TypeError for other types of it."""
    def walk(a, b):
        if is_nested(a) != is_nested(b) or (is_nested(a) and len(a) != len(b)):
            raise ValueError(f"the structures differ: {a!r} and {b!r}")
        if not is_nested(a):
            return
        if check_types and type(a) is not type(b):
            raise TypeError(f"the structures differ: {type(a).__name__} and {type(b).__name__}")
        if isinstance(a, dict):
            if a.keys() != b.keys():
                raise ValueError(f"the keys differ: {sorted(a)} and {sorted(b)}")
            for k in a:
                walk(a[k], b[k])
        else:
            for x, y in zip(a, b):
                walk(x, y)
    walk(nest1, nest2)


def map_structure(func, *structure, **kwargs):
    """Returns func of the leaves, in the structure of the first."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other, kwargs.get("check_types", True))
    expand = kwargs.get("expand_composites", False)
    return pack_sequence_as(structure[0], [func(*v) for v in zip(*[flatten(s, expand) for s in structure])], expand)
