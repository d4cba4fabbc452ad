"""Nested lists, tuples and dictionaries of tensors: leaves, and what holds them together."""
import collections

from berth._core import Tensor, Variable


class _Leaf:
    """The place of a tensor."""
    def __repr__(self):
        return "*"


LEAF = _Leaf()


class Composite:
    """A value made of tensors, such as a RaggedTensor, or its spec, made of TensorSpecs."""

    def _parts(self):
        """(its tensors, a function that makes a value, or a spec, like this one of others, and its key)."""
        raise NotImplementedError


class Made:
    """The place of a Composite: what it is made of, and how."""
    __slots__ = ("form", "make", "key")

    def __init__(self, form, make, key):
        self.form, self.make, self.key = form, make, key

    def __eq__(self, other):
        return isinstance(other, Made) and (self.form, self.key) == (other.form, other.key)

    def __repr__(self):
        return f"{self.key}{self.form!r}"


def in_order(keys):
    """The keys of a dictionary in the order of its leaves."""
    return sorted(keys) if all(isinstance(k, str) for k in keys) else list(keys)


def _dict_of(like, values):
    """A dictionary with the class and the order of another."""
    made = {k: values[k] for k in like}
    return collections.OrderedDict(made) if isinstance(like, collections.OrderedDict) else made


def flatten(value, is_leaf=lambda v: True, whole=()):
    """Returns (leaves, structure). All but lists, tuples, ranges, dictionaries and Composites that are not `whole` are leaves."""
    leaves = []

    def walk(v):
        if isinstance(v, dict):
            return _dict_of(v, {k: walk(v[k]) for k in in_order(v)})
        if isinstance(v, tuple) and hasattr(v, "_fields"):
            return type(v)(*[walk(x) for x in v])
        if isinstance(v, range):
            v = list(v)
        if isinstance(v, (list, tuple)):
            return type(v)(walk(x) for x in v)
        if isinstance(v, Composite) and not isinstance(v, whole):
            parts, make, key = v._parts()
            return Made(walk(parts), make, key)
        if not is_leaf(v):
            return Fixed(v)
        leaves.append(v)
        return LEAF

    return leaves, walk(value)


def leaves_along(structure, value):
    """The leaves of a value that `structure` describes; what stands where it has a leaf may be a list of numbers."""
    if structure is LEAF:
        return [value]
    if isinstance(structure, Made):
        return flatten(value)[0]
    keys = in_order(structure) if isinstance(structure, dict) else range(len(structure))
    if isinstance(structure, dict) != isinstance(value, dict) or not hasattr(value, "__len__") or len(value) != len(structure):
        raise TypeError(f"expected the structure {structure}, with a tensor for each *, not {value!r}")
    return [leaf for k in keys for leaf in leaves_along(structure[k], value[k])]


def present(value, whole=()):
    """flatten() of what may hold None, which stays in the structure."""
    return flatten(value, lambda v: v is not None, whole)


class Fixed:
    """A value that is not a tensor and stays what it is."""
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
        if isinstance(s, Fixed):
            return s.value
        if isinstance(s, dict):
            return _dict_of(s, {k: walk(s[k]) for k in in_order(s)})
        if isinstance(s, Made):
            return s.make(walk(s.form))
        if isinstance(s, tuple) and hasattr(s, "_fields"):
            return type(s)(*[walk(v) for v in s])
        return type(s)(walk(v) for v in s)

    return walk(structure)


def has_composite(structure):
    """True of a structure with the place of a Composite in it."""
    if isinstance(structure, dict):
        structure = structure.values()
    return isinstance(structure, Made) or isinstance(structure, (list, tuple, type({}.values()))) and any(
        map(has_composite, structure))


def is_value(v):
    """True of what becomes a tensor where a function is traced."""
    import numpy
    return isinstance(v, (Tensor, numpy.ndarray, numpy.generic))
