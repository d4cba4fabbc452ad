"""Nested lists, tuples and dictionaries of tensors: leaves, and what holds them together."""
from berth._core import Tensor, Variable


class _Leaf:
    """The place of a tensor."""
    def __repr__(self):
        return "*"


LEAF = _Leaf()


def flatten(value, is_leaf=lambda v: True):
    """Returns (leaves, structure). All that is no list, tuple or dictionary is a leaf."""
    leaves = []

    def walk(v):
        if isinstance(v, dict):
            return {k: walk(v[k]) for k in sorted(v)} if all(
                isinstance(k, str) for k in v) else {k: walk(x) for k, x in v.items()}
        if isinstance(v, tuple) and hasattr(v, "_fields"):
            return type(v)(*[walk(x) for x in v])
        if isinstance(v, (list, tuple)):
            return type(v)(walk(x) for x in v)
        if not is_leaf(v):
            return _Fixed(v)
        leaves.append(v)
        return LEAF

    return leaves, walk(value)


class _Fixed:
    """A value that is no tensor and stays what it is."""
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"{type(self.value).__name__}:{self.value!r}"


def pack(structure, leaves):
    """The inverse of flatten()."""
    at = iter(leaves)

    def walk(s):
        if s is LEAF:
            return next(at)
        if isinstance(s, _Fixed):
            return s.value
        if isinstance(s, dict):
            return {k: walk(v) for k, v in s.items()}
        if isinstance(s, tuple) and hasattr(s, "_fields"):
            return type(s)(*[walk(v) for v in s])
        return type(s)(walk(v) for v in s)

    return walk(structure)


def is_value(v):
    """True of what becomes a tensor where a function is traced."""
    import numpy
    return isinstance(v, (Tensor, numpy.ndarray, numpy.generic))
