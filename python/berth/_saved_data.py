"""Dataset.save and Dataset.load: elements in TFRecord files, with what they look like beside them."""
import json
import os

from berth import _core, _remote
from berth._io import TFRecordWriter
from berth._structure import LEAF, flatten, pack
from berth._tensor import as_dtype, convert_to_tensor

_SPEC, _ELEMENTS = "dataset_spec.json", "elements.tfrecord"


def _told(form):
    """A structure as JSON."""
    if isinstance(form, dict):
        return {"dict": [[k, _told(v)] for k, v in form.items()]}
    if isinstance(form, (list, tuple)):
        return {"list" if isinstance(form, list) else "tuple": [_told(v) for v in form]}
    return "leaf"


def _form(told):
    if told == "leaf":
        return LEAF
    (kind, parts), = told.items()
    return {k: _form(v) for k, v in parts} if kind == "dict" else (list if kind == "list" else tuple)(map(_form, parts))


def _record(leaves):
    import numpy
    from berth._example import BytesList, Example, Feature, Features, Int64List
    features = {}
    for i, t in enumerate(leaves):
        array = t._array()
        values = array.ravel().tolist() if t.dtype == _core.string else [numpy.ascontiguousarray(array).tobytes()]
        features[f"{i}"] = Feature(bytes_list=BytesList(values))
        features[f"{i}.shape"] = Feature(int64_list=Int64List(array.shape))
    return Example(Features(features)).SerializeToString()


def _leaves(record, dtypes):
    import numpy
    from berth._example import Example
    features, out = Example.FromString(record).features.feature, []
    for i, dtype in enumerate(dtypes):
        values, shape = features[f"{i}"].bytes_list.value, features[f"{i}.shape"].int64_list.value
        array = numpy.array(values, object) if dtype == _core.string else numpy.frombuffer(
            values[0], dtype.as_numpy_dtype)
        out.append(convert_to_tensor(array.reshape(shape), dtype))
    return out


def save(dataset, path, compression):
    """Writes all elements to a folder."""
    if _remote.is_url(path):
        with _remote.outgoing(path, last=_SPEC) as local:
            return save(dataset, local, compression)
    os.makedirs(path, exist_ok=True)
    with TFRecordWriter(os.path.join(path, _ELEMENTS), compression or "") as writer:
        for element in dataset:
            writer.write(_record(flatten(element)[0]))
    specs = [([None if d is None else int(d) for d in s.shape], s.dtype.name) for s in flatten(dataset.element_spec)[0]]
    with open(os.path.join(path, _SPEC), "w", encoding="utf-8") as file:
        json.dump({"structure": _told(dataset._form), "specs": specs, "compression": compression or ""}, file)


def load(path):
    """The dataset of such a folder."""
    from berth.data import Dataset, TFRecordDataset
    try:
        if _remote.is_url(path):
            kept = json.loads(_remote.read(f"{path.rstrip('/')}/{_SPEC}"))
        else:
            with open(os.path.join(path, _SPEC), encoding="utf-8") as file:
                kept = json.load(file)
    except (FileNotFoundError, _core.NotFoundError):
        raise _core.NotFoundError(f"Dataset.load: {path} has no {_SPEC}; expected a folder of Dataset.save()") from None
    dtypes, form = [as_dtype(d) for _, d in kept["specs"]], _form(kept["structure"])
    records = TFRecordDataset(os.path.join(path, _ELEMENTS), kept["compression"])

    def elements():
        for record in records:
            yield pack(form, _leaves(record.numpy(), dtypes))

    from berth._tensor import TensorSpec
    return Dataset.from_generator(elements, output_signature=pack(form, [
        TensorSpec(shape, dtype) for (shape, _), dtype in zip(kept["specs"], dtypes)]))
