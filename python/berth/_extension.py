"""tf.experimental.ExtensionType: classes of the user's own that are made of tensors."""
import collections.abc
import functools
import inspect
import sys
import types
import typing

from berth import _core
from berth._arrays import TensorArray, TensorArraySpec
from berth._structure import Composite, flatten, pack
from berth._tensor import AnyShape, IndexedSlices, TensorSpec, TypeSpec, as_dtype, convert_to_tensor

_TENSORS = (_core.Tensor, _core.Variable, TensorSpec, Composite)


class Mapping(collections.abc.Mapping):
    """A dictionary that does not change."""

    def __init__(self, values):
        self._values = dict(values)

    def __getitem__(self, key):
        return self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return f"ImmutableDict({self._values})"


def _fields_of(cls):
    """{field: annotation} of a class and those above it, the outermost first."""
    found = {}
    for c in reversed(cls.__mro__):
        if issubclass(c, ExtensionType) and c not in (ExtensionType, BatchableExtensionType):
            for name, kind in vars(c).get("__annotations__", {}).items():
                if isinstance(kind, str):
                    scope = {**vars(sys.modules.get(c.__module__, types)), c.__name__: c}
                    kind = eval(kind, scope)
                found[name] = kind
    return found


def _converted(value, kind, what, cls):
    """A field's value as its annotation says; TypeError of another."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, (str, typing.ForwardRef)):
        name = kind if isinstance(kind, str) else kind.__forward_arg__
        kind = next(c for c in (cls, *cls.__mro__) if c.__name__ == name)
    if origin is typing.Union or origin is getattr(types, "UnionType", None):
        for k in parts:
            try:
                return _converted(value, k, what, cls)
            except (TypeError, ValueError):
                pass
        raise TypeError(f"{what}: expected one of {parts}, not {value!r}")
    if origin in (tuple, list, collections.abc.Sequence):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{what}: expected a tuple, not {value!r}")
        kinds = [parts[0]] * len(value) if len(parts) == 1 or parts[-1] is Ellipsis else parts
        if len(kinds) != len(value):
            raise TypeError(f"{what}: expected {len(kinds)} elements, not {len(value)}")
        return tuple(_converted(v, k, what, cls) for v, k in zip(value, kinds))
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, collections.abc.Mapping):
            raise TypeError(f"{what}: expected a mapping, not {value!r}")
        return Mapping({_converted(k, parts[0], what, cls): _converted(v, parts[1], what, cls) for k, v in value.items()})
    if kind is _core.Tensor:
        if isinstance(value, (_core.Tensor, TensorSpec)):
            return value
        if value is None or isinstance(value, (dict, set)):
            raise TypeError(f"{what}: expected a Tensor, not {value!r}")
        return convert_to_tensor(value)
    if kind is AnyShape:
        return value if hasattr(value, "rank") else TensorSpec(value).shape
    if kind is _core.DType:
        return as_dtype(value)
    if kind is None or kind is type(None):
        if value is not None:
            raise TypeError(f"{what}: expected None, not {value!r}")
        return value
    if inspect.isclass(kind) and not isinstance(value, kind) and not isinstance(value, ExtensionTypeSpec):
        raise TypeError(f"{what}: expected {kind.__name__}, not {value!r}")
    return value


def _plain(value):
    """Fields as lists, tuples and dictionaries."""
    if isinstance(value, Mapping):
        return _Keys({k: _plain(v) for k, v in value.items()})
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


class _Keys(dict):
    """What a Mapping is while it is taken apart."""


def _shown(value):
    return f"<{value.__class__.__name__} {value._fields()}>" if isinstance(value, ExtensionType) else repr(value)


def _closed(self, name, value=None):
    raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")


class ExtensionType(Composite):
    """A class whose annotated fields are tensors and other values; calls of tf.function take and give its objects.

    Fields are converted to their annotations, and do not change; __validate__() may check them.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            return
        own = vars(cls).get("Spec")
        if "__init__" in vars(cls):
            cls.__init__ = _then_closed(cls, vars(cls)["__init__"])
        else:
            cls.__init__ = _default_init
        bases = (ExtensionTypeSpec,) if own is None else (own, ExtensionTypeSpec)
        cls.Spec = type("Spec", bases, {"value_type": cls, **({} if own is not None else {"__init__": _spec_init}),
                                        "__qualname__": f"{cls.__name__}.Spec", "__module__": cls.__module__})

    @classmethod
    def _kinds(cls):
        if "_kinds_" not in vars(cls):
            cls._kinds_ = _fields_of(cls)
        return cls._kinds_

    def _fields(self):
        return {n: vars(self)[n] for n in type(self)._kinds()}

    def _parts(self):
        return _taken(type(self), self._fields())

    def __setattr__(self, name, value):
        if vars(self).get("_closed"):
            _closed(self, name)
        vars(self)[name] = value

    __delattr__ = _closed

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self._fields().items())})"

    def __eq__(self, other):
        """A tensor: whether all fields are equal."""
        if type(self) is not type(other):
            return False
        a, b = flatten(self), flatten(other)
        if a[1] != b[1] or any(x.shape.as_list() != y.shape.as_list() or x.dtype != y.dtype for x, y in zip(a[0], b[0])):
            return convert_to_tensor(False)
        m = _core.ops.math
        equal = [m.reduce_all(m.equal(x, y)) for x, y in zip(a[0], b[0])]
        return functools.reduce(m.logical_and, equal, convert_to_tensor(True))

    def __ne__(self, other):
        same = self == other
        return not same if isinstance(same, bool) else _core.ops.math.logical_not(same)

    __hash__ = None

    # What data sets, map_fn and stacked values use.
    def _unstack(self):
        leaves, form = flatten(self)
        rows = [_batched(v, lambda s: s[1:]) for v in (form,)][0]
        return [pack(rows, list(parts)) for parts in zip(*[list(v) for v in leaves])]

    _slices = _unstack

    @classmethod
    def _stack(cls, values):
        leaves, forms = zip(*map(flatten, values))
        form = _batched(forms[0], lambda s: _core.TensorShape([len(values), *s]))
        from berth import stack
        plain = getattr(stack, "__wrapped__", stack)
        return pack(form, [plain(list(column)) for column in zip(*leaves)])


def _batched(made, change):
    """The place of a value whose shapes have an axis more or less."""
    from berth._structure import Made
    cls, static = made.make.args
    static = {n: _Shape(change(v.value)) if isinstance(v, _Shape) and v.value.rank is not None else v
              for n, v in static.items()}
    return Made(made.form, functools.partial(_make, cls, static), made.key)


class _Shape:
    """A field that is a shape."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"shape {self.value}"


def _taken(cls, fields):
    """What flatten() makes of the fields of a value, or of its spec."""
    tensors, static = [], {}
    for name, value in fields.items():
        leaves, form = flatten(_plain(value), lambda v: isinstance(v, _TENSORS))
        static[name] = _Shape(value) if hasattr(value, "rank") and not leaves else form
        tensors += leaves
    key = f"{cls.__module__}.{cls.__qualname__}:{id(cls)} " + ",".join(f"{n}={v!r}" for n, v in static.items())
    return tuple(tensors), functools.partial(_make, cls, static), key


def _make(cls, static, parts):
    """A value with other tensors, or a spec."""
    of_specs = parts and all(isinstance(p, TensorSpec) for p in parts)
    made = object.__new__(cls.Spec if of_specs else cls)
    at = iter(parts)

    def fields(form):
        if isinstance(form, _Keys):
            return Mapping({k: fields(v) for k, v in form.items()})
        return form
    for name, form in static.items():
        if isinstance(form, _Shape):
            value = form.value
        else:
            count = _leaves_in(form)
            value = _closed_again(pack(form, [next(at) for _ in range(count)]))
        vars(made).__setitem__(name, value) if _is_plain(type(made), name) else None
    vars(made)["_closed"] = True
    return made


def _is_plain(cls, name):
    return not isinstance(inspect.getattr_static(cls, name, None), property)


def _closed_again(value):
    if isinstance(value, dict):
        return Mapping({k: _closed_again(v) for k, v in value.items()})
    return tuple(map(_closed_again, value)) if isinstance(value, tuple) else value


def _leaves_in(form):
    from berth._structure import LEAF, Made
    if form is LEAF:
        return 1
    if isinstance(form, Made):
        return _leaves_in(form.form)
    if isinstance(form, dict):
        return sum(map(_leaves_in, form.values()))
    return sum(map(_leaves_in, form)) if isinstance(form, (list, tuple)) else 0


def _default_init(self, *args, **kwargs):
    cls = type(self)
    signature = inspect.Signature([inspect.Parameter(
        n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=getattr(cls, n, inspect.Parameter.empty) if _has_default(cls, n)
        else inspect.Parameter.empty) for n in cls._kinds()])
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        vars(self)[name] = value
    _close(self)


def _has_default(cls, name):
    return not isinstance(inspect.getattr_static(cls, name, property()), property)


def _then_closed(cls, init):
    @functools.wraps(init)
    def run(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if type(self).__init__ is run:
            _close(self)
    return run


def _close(self):
    cls = type(self)
    for name, kind in cls._kinds().items():
        if name not in vars(self):
            raise TypeError(f"{cls.__name__}: the field {name} is not set")
        vars(self)[name] = _converted(vars(self)[name], kind, f"{cls.__name__}.{name}", cls)
    vars(self)["_closed"] = True
    if hasattr(self, "__validate__"):
        self.__validate__()


class BatchableExtensionType(ExtensionType):
    """An ExtensionType whose objects data sets and map_fn may stack; a field `shape` is that of the batch."""


class ExtensionTypeSpec(Composite, TypeSpec):
    """What is known of an ExtensionType before its values: a TensorSpec for each tensor."""

    value_type = None

    def _fields(self):
        return {n: vars(self)[n] if n in vars(self) else getattr(self, n) for n in self.value_type._kinds()}

    def _parts(self):
        return _taken(self.value_type, self._fields())

    def is_compatible_with(self, value):
        a, b = flatten(self), flatten(value)
        return a[1] == b[1] and all(s.dtype == v.dtype and s.shape.is_compatible_with(v.shape) for s, v in zip(a[0], b[0]))

    def __eq__(self, other):
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return f"{type(self).__qualname__}({', '.join(f'{n}={v!r}' for n, v in self._fields().items())})"


def _spec_init(self, *args, **kwargs):
    kinds = self.value_type._kinds()
    names = list(kinds)
    values = {**dict(zip(names, args)), **kwargs}
    if set(values) != set(names) or len(args) > len(names):
        raise TypeError(f"{type(self).__qualname__}: expected {', '.join(names)}")
    for name in names:
        value = values[name]
        kind = kinds[name]
        if isinstance(value, collections.abc.Mapping):
            value = Mapping(value)
        vars(self)[name] = _converted(value, kind, name, self.value_type) if kind is AnyShape else value


class extension_type:
    """tf.experimental.extension_type."""

    @staticmethod
    def as_dict(value):
        """The fields of an ExtensionType by name."""
        return dict(value._fields())


def type_spec_from_value(value):
    """The spec of a tensor, a RaggedTensor, a SparseTensor, an ExtensionType or a structure of such."""
    if isinstance(value, IndexedSlices):
        from berth._data_options import IndexedSlicesSpec
        return IndexedSlicesSpec.from_value(value)
    if hasattr(value, "has_value"):
        from berth._data_options import OptionalSpec
        return OptionalSpec.from_value(value)
    if hasattr(value, "element_spec"):
        return value.element_spec
    if isinstance(value, TensorArray):
        return TensorArraySpec.from_value(value)
    leaves, form = flatten(value)
    return pack(form, [TensorSpec.from_tensor(convert_to_tensor(v)) for v in leaves])
