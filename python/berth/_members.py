"""Members of the engine's classes that few programs ask for, as TensorFlow has them."""
from berth import _core
from berth._core import Tensor, TensorShape, Variable
from berth._strings import by_number
from berth._tensor import AnyShape, DType, as_dtype, complex64, complex128, convert_to_tensor, float32, float64, string

_ops = _core.ops


def _with(self, ok, wanted):
    if not ok:
        raise ValueError(f"Shape {self} must have rank {wanted}")
    return self


def _with_rank(self, rank):
    """The shape; a ValueError of one with another rank."""
    return _with(self, self.rank == rank, rank)


def _with_rank_at_least(self, rank):
    """The shape; a ValueError of one with a lower rank."""
    return _with(self, self.rank >= rank, f"at least {rank}")


def _with_rank_at_most(self, rank):
    """The shape; a ValueError of one with a higher rank."""
    return _with(self, self.rank <= rank, f"at most {rank}")


def _assert_has_rank(self, rank):
    """Raises a ValueError of another rank."""
    _with(self, self.rank == rank, rank)


def _assert_same_rank(self, other):
    """Raises a ValueError of shapes with different ranks."""
    if AnyShape(other).rank not in (None, self.rank):
        raise ValueError(f"Shapes {self} and {AnyShape(other)} must have the same rank")


def _assert_is_fully_defined(self):
    """Raises a ValueError of a shape with a size that is not known."""
    if not self.is_fully_defined():
        raise ValueError(f"Shape {self} is not fully defined")


def _most_specific(self, other):
    """The shape of both: sizes that differ are not known; nor is the rank, where ranks differ."""
    other = AnyShape(other)
    if self.rank != other.rank:
        return AnyShape(None)
    return TensorShape([a if a == b else None for a, b in zip(self._dims(), other._dims())])


def _is_subtype_of(self, other):
    """True if each tensor of this shape has the other as well."""
    other = AnyShape(other)
    return other.rank is None or self.rank == other.rank and all(b is None or a == b for a, b in zip(self._dims(), other._dims()))


def _real_dtype(self):
    """The dtype of the parts of complex numbers; of others itself."""
    return {complex64: float32, complex128: float64}.get(self, self)


def _scattered(name, doc):
    op = getattr(_ops, f"tensor_scatter_nd_{name}")

    def scatter(self, indices, updates, name=None):
        given = self.read_value(), convert_to_tensor(indices), convert_to_tensor(updates, self.dtype)
        moves_text = self.dtype == string and op is _ops.tensor_scatter_nd_update
        return self.assign(by_number(op, *given) if moves_text else op(*given))
    scatter.__name__, scatter.__doc__ = f"scatter_nd_{name}", doc
    return scatter


def _gather_nd(self, indices, name=None):
    """The parts at places, each of which is a row of `indices`."""
    return _ops.gather_nd(self.read_value(), convert_to_tensor(indices))


def _sparse_read(self, indices, name=None):
    """The rows at `indices`."""
    return _ops.gather(self.read_value(), convert_to_tensor(indices))


def _batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
    """Writes rows of each part of a batch: indices [..., n], values [..., n, ...]; returns the variable."""
    at = convert_to_tensor(sparse_delta.indices)
    parts = _ops.meshgrid([_ops.range(0, n, 1) for n in at.shape.as_list()], indexing="ij")[:-1]
    places = _ops.stack([_ops.math.cast(p, at.dtype) for p in parts] + [at], -1)
    return self.scatter_nd_update(places, sparse_delta.values)


def _count_up_to(self, limit):
    """Adds 1 and returns what was; OutOfRangeError at the limit."""
    was = self.read_value()
    if int(was) >= limit:
        raise _core.OutOfRangeError(f"count_up_to: the variable has reached {limit}")
    self.assign_add(1)
    return was


def _set_shape(self, shape):
    """ValueError unless `shape` is the variable's, as far as it is known."""
    if not AnyShape(shape).is_compatible_with(self.shape):
        raise ValueError(f"set_shape: the variable {self.name!r} is {self.shape}, not {AnyShape(shape)}")


def _copied(tensor, device_name):
    from berth import device
    with device(device_name):
        return _ops.identity(tensor)


def _cpu(self):
    """The tensor on the first CPU device."""
    return _copied(self, "/CPU:0")


def _gpu(self, gpu_index=0):
    """The tensor on a GPU."""
    return _copied(self, f"/GPU:{gpu_index}")


_MEMBERS = {
    TensorShape: {"with_rank": _with_rank, "with_rank_at_least": _with_rank_at_least, "with_rank_at_most": _with_rank_at_most,
                  "assert_has_rank": _assert_has_rank, "assert_same_rank": _assert_same_rank,
                  "assert_is_fully_defined": _assert_is_fully_defined, "most_specific_compatible_shape": _most_specific,
                  "is_subtype_of": _is_subtype_of},
    DType: {"is_unsigned": property(lambda self: self.name.startswith("uint"), doc="True of whole numbers from 0."),
            "is_numeric": property(lambda self: self.is_integer or self.is_floating or self.is_complex, doc="True of numbers."),
            "is_quantized": property(lambda self: False, doc="False: there are no dtypes with a scale of their own."),
            "is_numpy_compatible": property(lambda self: True, doc="True: NumPy has each."),
            "is_compatible_with": lambda self, other: as_dtype(other) == self,
            "limits": property(lambda self: (0, 1 if self.is_floating else self.max), doc="Least and greatest "
                               "value that images have: 0, and 1 of floats."),
            "real_dtype": property(_real_dtype)},
    Variable: {"scatter_nd_add": _scattered("add", "Adds to the parts at places; returns the variable."),
               "scatter_nd_sub": _scattered("sub", "Subtracts from the parts at places; returns the variable."),
               "scatter_nd_max": _scattered("max", "Makes the parts at places the larger of both; returns the variable."),
               "scatter_nd_min": _scattered("min", "Makes the parts at places the smaller of both; returns the variable."),
               "scatter_nd_update": _scattered("update", "Writes the parts at places; returns the variable."),
               "gather_nd": _gather_nd, "sparse_read": _sparse_read, "batch_scatter_update": _batch_scatter_update,
               "count_up_to": _count_up_to, "set_shape": _set_shape, "experimental_ref": Variable.ref},
    Tensor: {"cpu": _cpu, "gpu": _gpu, "experimental_ref": Tensor.ref},
}
for _class, _members in _MEMBERS.items():
    for _name, _member in _members.items():
        setattr(_class, _name, _member)
_MEMBERS[DType]["is_compatible_with"].__doc__ = "True of the same dtype, also by its name."
