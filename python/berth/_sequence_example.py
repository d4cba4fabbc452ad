"""tf.train.SequenceExample: a context of features, and lists of features by name; how tf.io takes them apart."""
import numpy as np
from berth import _core
from berth._example import Feature, Features, _ByName, _field, _fields, _Message, _Parts
from berth._tensor import convert_to_tensor, float32, int64, string


class _Features(list):
    def add(self, **lists):
        """Appends a Feature, and returns it."""
        self.append(Feature(**lists))
        return self[-1]


class FeatureList(_Message):
    """feature: a list of Features, one for each step."""

    def __init__(self, feature=()):
        self.feature = _Features(feature)

    def SerializeToString(self):
        """The bytes of the message."""
        return b"".join(_field(1, f.SerializeToString()) for f in self.feature)

    def _read(self, data):
        self.feature += [Feature.FromString(value) for number, value in _fields(data) if number == 1]

    def _lines(self):
        return [line for f in self.feature for line in ["feature {", *("  " + s for s in f._lines()), "}"]]


class FeatureLists(_ByName):
    """feature_list: a dictionary of FeatureLists by name."""

    _field_name, _kind = "feature_list", FeatureList

    def __init__(self, feature_list=None):
        self.feature_list = _Parts(FeatureList, feature_list)


class SequenceExample(_Message):
    """context: Features of the whole; feature_lists: FeatureLists of its steps."""

    def __init__(self, context=None, feature_lists=None):
        self.context, self.feature_lists = context or Features(), feature_lists or FeatureLists()

    def SerializeToString(self):
        """The bytes of the message."""
        parts = [(number, part.SerializeToString()) for number, part in ((1, self.context), (2, self.feature_lists))]
        return b"".join(_field(number, data) for number, data in parts if data)

    def _read(self, data):
        for number, value in _fields(data):
            (self.context if number == 1 else self.feature_lists)._read(value)

    def _lines(self):
        return ["context {", *("  " + s for s in self.context._lines()), "}",
                "feature_lists {", *("  " + s for s in self.feature_lists._lines()), "}"]


_LISTS = {string: "bytes_list", float32: "float_list", int64: "int64_list"}


def _steps(example, name, dtype, index):
    """The values of each step of a list; None where the example does not have the list."""
    found = example.feature_lists.feature_list.get(name)
    if found is None:
        return None
    wanted = _LISTS.get(dtype)
    if wanted is None:
        raise ValueError(f"parse_sequence_example: the feature '{name}' is {dtype.name}; expected float32, int64 or string")
    for step, f in enumerate(found.feature):
        if f.WhichOneof() not in (None, wanted):
            raise _core.InvalidArgumentError(f"parse_sequence_example: step {step} of '{name}' of example {index} is a "
                                             f"{f.WhichOneof()}; expected {dtype.name}")
    return [getattr(f, wanted).value for f in found.feature]


def _array(values, dtype):
    if dtype != string:
        return np.array(values, dtype.as_numpy_dtype)
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _dense(name, feature, rows, single):
    shape, most = list(feature.shape), max((len(r) for r in rows if r is not None), default=0)
    count = int(np.prod(shape, dtype="int64"))
    fill = b"" if feature.dtype == string else 0
    if feature.default_value is not None:
        fill = convert_to_tensor(feature.default_value, feature.dtype)._array().item()
    out = np.full([len(rows), most, count], fill, object if feature.dtype == string else feature.dtype.as_numpy_dtype)
    for i, steps in enumerate(rows):
        if steps is None and not feature.allow_missing:
            raise _core.InvalidArgumentError(f"parse_sequence_example: example {i} has no list '{name}'; expected one, or "
                                             "allow_missing=True")
        for k, values in enumerate(steps or ()):
            if len(values) != count:
                raise _core.InvalidArgumentError(f"parse_sequence_example: step {k} of '{name}' of example {i} has {len(values)} "
                                                 f"values; expected {count}, those of the shape {shape}")
            out[i, k] = _array(values, feature.dtype)
    out = convert_to_tensor(out.reshape([len(rows), most, *shape]), feature.dtype)
    return out[0] if single else out


def _sparse(name, feature, rows, single):
    from berth.sparse import SparseTensor
    places = [(i, k, j) for i, steps in enumerate(rows) for k, values in enumerate(steps or ()) for j in range(len(values))]
    values = [v for steps in rows for part in steps or () for v in part]
    shape = [len(rows), max((len(r or ()) for r in rows), default=0),
             max((len(part) for r in rows for part in r or ()), default=0)]
    at = np.array(places, "int64").reshape([-1, 3])
    return SparseTensor(at[:, int(single):], convert_to_tensor(_array(values, feature.dtype), feature.dtype), shape[int(single):])


def _ragged(name, feature, rows, single):
    from berth.ragged import RaggedTensor
    splits_dtype = getattr(feature, "row_splits_dtype", None) or _core.int32
    steps = [part for r in rows for part in r or ()]
    values = convert_to_tensor(_array([v for part in steps for v in part], feature.dtype), feature.dtype)

    def splits(lengths):
        return convert_to_tensor(np.cumsum([0, *lengths]), splits_dtype)
    inner = RaggedTensor(values, splits(map(len, steps)))
    return inner if single else RaggedTensor(inner, splits(len(r or ()) for r in rows))


_KINDS = {"FixedLenSequenceFeature": _dense, "VarLenFeature": _sparse, "RaggedFeature": _ragged}


def _parse(serialized, context_features, sequence_features, single):
    from berth import _io
    texts = np.ravel(convert_to_tensor(serialized, string)._array()).tolist()
    if not context_features and not sequence_features:
        raise ValueError("parse_sequence_example: there are no features; expected context_features or sequence_features")
    examples = [SequenceExample.FromString(t) for t in texts]
    context, lists, lengths = {}, {}, {}
    if context_features:
        plain = _array([_field(1, e.context.SerializeToString()) for e in examples], string)
        context = _io._parsed(convert_to_tensor(plain[0] if single else plain, string), context_features, single)
    for name, feature in (sequence_features or {}).items():
        make = _KINDS.get(type(feature).__name__)
        if make is None:
            raise ValueError(f"parse_sequence_example: '{name}' is {feature!r}; expected a FixedLenSequenceFeature, "
                             "VarLenFeature or RaggedFeature")
        rows = [_steps(e, name, feature.dtype, i) for i, e in enumerate(examples)]
        lists[name] = make(name, feature, rows, single)
        if make is _dense:
            lengths[name] = convert_to_tensor([len(r or ()) for r in rows], int64)
    return context, lists, lengths


def parse_single_sequence_example(serialized, context_features=None, sequence_features=None, example_name=None, name=None):
    """The features of a serialized tf.train.SequenceExample: (those of the context, those of the lists [steps, ...]), by name.

    context_features are those of parse_single_example(); sequence_features are FixedLenSequenceFeature, VarLenFeature
    (a SparseTensor [steps, length]) or RaggedFeature.
    """
    return _parse(serialized, context_features, sequence_features, True)[:2]


def parse_sequence_example(serialized, context_features=None, sequence_features=None, example_names=None, name=None):
    """The same of several messages [n]: (context, lists [n, steps, ...], the numbers of steps of dense lists, int64 [n])."""
    return _parse(serialized, context_features, sequence_features, False)


_NUMBERS = {"int64_list": int, "float_list": float}


def decode_json_example(json_examples, name=None):
    """tf.train.Example messages as JSON, text of any shape: as bytes, text of that shape."""
    texts = convert_to_tensor(json_examples, string)._array()
    out = np.empty(texts.shape, object)
    for at, text in np.ndenumerate(texts):
        out[at] = _of_json(text)
    return convert_to_tensor(out, string)


def _of_json(text):
    import base64
    import json
    import re
    from berth._example import Example

    def part(value, name):
        value = {} if value is None else value
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is no object")
        known = {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), k): v for k, v in value.items()}
        if name is not None and set(known) - {name}:
            raise ValueError(f"{sorted(set(known) - {name})} beside '{name}'")
        return known if name is None else known.get(name)
    try:
        found = part(part(json.loads(text), "features"), "feature") or {}
        features = {}
        for key, value in found.items():
            lists = part(value, None)
            kind, inner = next(iter(lists.items()), (None, None))
            if len(lists) > 1 or kind not in (None, "bytes_list", "float_list", "int64_list"):
                raise ValueError(f"the feature '{key}' has {sorted(lists)}")
            values = [_NUMBERS[kind](v) if kind in _NUMBERS else base64.b64decode(v + "=" * (-len(v) % 4), b"-_" if set(
                "-_") & set(v) else None) for v in part(inner, "value") or ()]
            made = Feature()
            if kind is not None:
                made._kind = kind
                getattr(made, kind).value = values
            features[key] = made
    except (ValueError, TypeError) as error:
        raise _core.InvalidArgumentError(f"decode_json_example: {text[:80]!r} is no tf.train.Example as JSON: {error}") from None
    return Example(Features(features)).SerializeToString()
