"""Small stand-ins, drawn by a seed, for what notebooks fetch: data sets, files of the network, weights.

install() puts them in place of urllib's and requests' downloads, of keras.datasets, of the module
tensorflow_datasets and of IPython. Whatever engine is imported as `tensorflow` is served alike.
"""
import email.message
import gzip
import io
import os
import re
import struct
import sys
import tarfile
import types
import urllib.request
import urllib.response
import zipfile

import numpy as np

WORDS = ("the a movie was great terrible plot and actors of in it but never always good bad scene ship sea "
         "king sword fair dark night light men war gods earth").split()


def rng():
    return np.random.default_rng(0)


def pictures(n, shape, classes=10, dark=40):
    """(x uint8 [n, *shape], y [n]): class k is a bright bar in a row of its own."""
    draw = rng()
    y = draw.integers(0, classes, n)
    x = draw.integers(0, dark, (n, *shape)).astype("uint8")
    x[np.arange(n), (y + 1) * shape[0] // (classes + 2)] = 250
    return x, y


def sentences(n, least=8, most=30):
    draw = rng()
    return [" ".join(draw.choice(WORDS, draw.integers(least, most))).capitalize() + "." for _ in range(n)]


# Files, by their address.

def picture_bytes(array, kind="JPEG"):
    from PIL import Image
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind)
    return out.getvalue()


def folders(names, suffix, each, size=(120, 160, 3)):
    """{path: bytes} of pictures or texts in a folder for each class."""
    files = {}
    for k, name in enumerate(names):
        if suffix == ".txt":
            made = [text.encode() for text in sentences(each)]
        else:
            made = [picture_bytes(x) for x in pictures(each, size)[0]]
        files.update({f"{name}/{1181 + i}_9{suffix}": data for i, data in enumerate(made)})
    return files


def packed(files, kind):
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            for path, data in files.items():
                archive.writestr(path, data)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def titanic(url):
    draw, rows = rng(), ["survived,sex,age,n_siblings_spouses,parch,fare,class,deck,embark_town,alone"]
    for _ in range(627):
        rows.append(",".join(map(str, (
            draw.integers(0, 2), draw.choice(["male", "female"]), round(draw.uniform(1, 80), 1), draw.integers(0, 5),
            draw.integers(0, 3), round(draw.uniform(5, 200), 4), draw.choice(["First", "Second", "Third"]),
            draw.choice(["unknown", "A", "B", "C"]), draw.choice(["Southampton", "Cherbourg", "Queenstown"]),
            draw.choice(["y", "n"])))))
    return "\n".join(rows).encode() + b"\n"


def auto_mpg(url):
    draw, rows = rng(), []
    for i in range(398):
        w = draw.uniform(1600, 5100)
        horsepower = "?" if i % 60 == 59 else f"{w / 28:.1f}"
        rows.append(f"{45 - w / 150:.1f}   {draw.choice([4, 6, 8])}   {w / 15:.1f}   {horsepower}   {w:.1f}   "
                    f"{draw.uniform(8, 25):.1f}   {draw.integers(70, 83)}  {draw.integers(1, 4)}\t\"car {i}\"")
    return "\n".join(rows).encode() + b"\n"


def breast_cancer(url):
    draw, rows = rng(), []
    for i in range(569):
        ill = i % 3 == 0
        values = ",".join(f"{v:.4f}" for v in draw.gamma(3, 2 + ill, 30))
        rows.append(f"{1000 + i},{'M' if ill else 'B'},{values}")
    return "\n".join(rows).encode() + b"\n"


def higgs(url):
    draw = rng()
    return gzip.compress("\n".join(",".join(f"{v:.6e}" for v in [i % 2, *draw.normal(i % 2, 1, 28)])
                                   for i in range(12000)).encode() + b"\n", 1)


def credit_cards(url):
    draw, rows = rng(), ["Time," + ",".join(f"V{i}" for i in range(1, 29)) + ",Amount,Class"]
    for i in range(6000):
        rows.append(",".join(f"{v:.5f}" for v in [i, *draw.normal(0, 1, 28), draw.uniform(1, 300)]) + f",{int(i % 50 == 0)}")
    return packed({"creditcard.csv": "\n".join(rows).encode() + b"\n"}, "zip")


def airfoil(url):
    draw = rng()
    return "\n".join("\t".join(f"{v:.5f}" for v in draw.normal(3, 1, 6)) for _ in range(1503)).encode() + b"\n"


def pairs(folder, suffix=""):
    """A zip file of pairs of sentences, a tab between them."""
    lines = [f"{a}\t{b}{suffix}" for a, b in zip(sentences(900, 2, 7), sentences(901, 2, 7)[1:])]
    return lambda url: packed({f"{folder}.txt": "\n".join(lines).encode() + b"\n"}, "zip")


def house_prices(url):
    draw, train = rng(), "train" in url
    rows = ["Id,MSSubClass,MSZoning,LotFrontage,Street,Alley,YearBuilt,SaleCondition" + ",SalePrice" * train]
    for i in range(1460 if train else 1459):
        rows.append(",".join(map(str, (
            i + 1, draw.choice([20, 60, 70]), draw.choice(["RL", "RM", "FV"]), draw.choice(["NA", 65, 80]), "Pave",
            draw.choice(["NA", "Grvl"]), draw.integers(1900, 2010), draw.choice(["Normal", "Abnorml"])))
            + (f"{draw.integers(80000, 400000)}",) * train))
    return "\n".join(rows).encode() + b"\n"


def weather(url):
    draw, rows = rng(), ["Date Time,p (mbar),T (degC),Tpot (K),Tdew (degC),rh (%),wd (deg)"]
    for i in range(9000):
        warm = 10 * np.sin(i / 144 * 2 * np.pi)
        values = ",".join(f"{v:.2f}" for v in draw.normal([996, warm, 280 + warm, 3, 75, 160], 2))
        rows.append(f"{1 + i // 144 % 28:02d}.01.2009 {i // 6 % 24:02d}:{i % 6}0:00,{values}")
    return packed({"jena_climate_2009_2016.csv": "\n".join(rows).encode() + b"\n"}, "zip")


def records(url):
    """A TFRecord file of pictures with their text; checksums are right."""
    def field(number, data):
        return bytes([number << 3 | 2]) + varint(len(data)) + data

    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    def crc(data):
        table = [0] * 256
        for i in range(256):
            c = i
            for _ in range(8):
                c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
            table[i] = c
        c = 0xFFFFFFFF
        for b in data:
            c = c >> 8 ^ table[(c ^ b) & 255]
        c ^= 0xFFFFFFFF
        return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    out = b""
    for image, text in zip(pictures(6, (60, 240, 3))[0], sentences(6)):
        values = {"image/encoded": picture_bytes(image, "PNG"), "image/text": text.encode()}
        example = field(1, b"".join(field(1, field(1, key.encode()) + field(2, field(1, field(1, value))))
                                    for key, value in values.items()))
        length = struct.pack("<Q", len(example))
        out += length + crc(length) + example + crc(example)
    return out


FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")
# The first pattern that an address has.
FILES = (
    ("kaggle_house", house_prices),
    ("titanic|train.csv|eval.csv", titanic), ("auto-mpg", auto_mpg), ("wdbc|breast", breast_cancer), ("HIGGS", higgs),
    ("creditcard", credit_cards), ("fsns|tfrec", records),
    ("flower_photos", lambda url: packed(folders([f"flower_photos/{n}" for n in FLOWERS], ".jpg", 40), "tar")),
    ("cats_and_dogs", lambda url: packed(folders(
        [f"cats_and_dogs_filtered/{p}/{n}" for p in ("train", "validation") for n in ("cats", "dogs")], ".jpg", 120), "zip")),
    ("aclImdb", lambda url: packed(folders(
        [f"aclImdb/{p}/{n}" for p in ("train", "test") for n in ("pos", "neg", "unsup")], ".txt", 150), "tar")),
    ("ImageNetLabels", lambda url: "\n".join(["background", *(f"class {i}" for i in range(1000))]).encode()),
    (r"\.(jpe?g|png)", lambda url: picture_bytes(pictures(1, (320, 400, 3))[0][0], "PNG" if "png" in url.lower() else "JPEG")),
    ("airfoil", airfoil), ("fra-eng", pairs("fra-eng/fra")), ("spa-eng", pairs("spa-eng/spa")),
    ("jena_climate", weather),
    ("pokemon", lambda url: packed(folders([f"pokemon/{n}" for n in FLOWERS], ".png", 40, (40, 40, 3)), "zip")),
    ("monet2photo|horse2zebra", lambda url: packed(folders(
        [f"horse2zebra/{p}{k}" for p in ("train", "test") for k in "AB"], ".jpg", 8, (256, 256, 3)), "zip")),
    ("facades", lambda url: packed(folders([f"facades/{p}" for p in ("train", "test")], ".jpg", 8, (256, 512, 3)), "tar")),
    (r"\.csv", titanic), ("", lambda url: "\n".join(sentences(400)).encode() + b"\n"))


def drawn(url):
    """The bytes that stand for what the network has at `url`."""
    return next(make for pattern, make in FILES if re.search(pattern, url, re.I))(url)


def open_url(opener, request, data=None, timeout=None):
    url = request if isinstance(request, str) else request.full_url
    if not url.startswith("http"):
        return _open(opener, request, data, timeout)
    body = drawn(url)
    headers = email.message.Message()
    headers["Content-Length"] = str(len(body))
    return urllib.response.addinfourl(io.BytesIO(body), headers, url, 200)


_open = urllib.request.OpenerDirector.open


def get(url, **options):
    """requests.get."""
    body = drawn(url)
    return types.SimpleNamespace(content=body, text=body.decode("latin-1"), raw=io.BytesIO(body), status_code=200, ok=True,
                                 url=url, headers={}, iter_content=lambda n=1 << 16: iter([body]))


# keras.datasets

def parts(n, shape, classes=10, column=False):
    def load(*args, **options):
        nonlocal n
        n = max(n, int(os.environ.get("NOTEBOOK_ROWS", 0)))
        x, y = pictures(n + n // 6, shape, classes)
        y = y.astype("uint8").reshape(-1, 1) if column else y.astype("uint8")
        return (x[:n], y[:n]), (x[n:], y[n:])
    return load


def reviews(path=None, num_words=1000, maxlen=200, **options):
    draw = rng()
    x = np.empty(1200, object)
    x[:] = [draw.integers(1, num_words or 1000, draw.integers(10, 200)).tolist() for _ in x]
    y = draw.integers(0, 2, len(x))
    return (x[:1000], y[:1000]), (x[1000:], y[1000:])


def prices(columns):
    def load(*args, **options):
        x = rng().normal(size=(506, columns)).astype("float32")
        y = x @ np.linspace(-1, 1, columns, dtype="float32") + 22
        return (x[:404], y[:404]), (x[404:], y[404:])
    return load


DATASETS = {"boston_housing": prices(13), "california_housing": prices(8), "mnist": parts(6000, (28, 28)), "fashion_mnist": parts(6000, (28, 28)),
            "cifar10": parts(2000, (32, 32, 3), column=True), "cifar100": parts(2000, (32, 32, 3), 100, True),
            "imdb": reviews, "reuters": reviews}


# tensorflow_datasets

class Label:
    """features["label"] of a data set."""

    def __init__(self, names):
        self.names, self.num_classes, self.dtype, self.shape = list(names), len(names), np.dtype("int64"), ()

    def int2str(self, number):
        return self.names[int(number)]

    def str2int(self, name):
        return self.names.index(name)

    def __repr__(self):
        return f"ClassLabel(num_classes={self.num_classes})"


def columns(name):
    """({column: array}, names of the label) of a data set."""
    base = name.partition(":")[0]
    if base == "penguins/processed":
        y = rng().integers(0, 3, 334)
        return {"features": rng().normal(y[:, None], 0.3, (334, 4)).astype("float32"), "species": y}, "ACG"
    if base.startswith("penguins"):
        draw = rng()
        x = {n: draw.normal(50, 9, 334).astype("float32") for n in (
            "body_mass_g", "culmen_depth_mm", "culmen_length_mm", "flipper_length_mm")}
        return {**x, "island": draw.integers(0, 3, 334), "sex": draw.integers(0, 3, 334),
                "species": draw.integers(0, 3, 334)}, "ACG"
    if "imdb" in base or "yelp" in base:
        texts = sentences(600)
        return {"text": np.array([t.encode() for t in texts], object), "label": np.arange(600) % 2}, ("neg", "pos")
    if base.startswith("oxford_iiit_pet"):
        x, y = pictures(80, (120, 160, 3), 37)
        mask = 1 + (x[..., :1] > 200) + (x[..., :1] > 20)
        return {"image": x, "label": y, "segmentation_mask": mask.astype("uint8")}, [f"breed {i}" for i in range(37)]
    if "mnist" in base:
        x, y = pictures(6000, (28, 28, 1))
        return {"image": x, "label": y}, [str(i) for i in range(10)]
    if "cifar" in base:
        x, y = pictures(2000, (32, 32, 3))
        return {"image": x, "label": y}, [str(i) for i in range(10)]
    x, y = pictures(160, (240, 320, 3), len(FLOWERS))
    return {"image": x, "label": y}, FLOWERS


def rows_of(split, n):
    """The first and last row of "train[10%:50%]"."""
    found = re.match(r"\w+(?:\[(\S*?)(%?):(\S*?)(%?)\])?$", split)
    first, percent, last, last_percent = found.groups()
    at = [int(v or d) * n // 100 if p else int(v or d)
          for v, p, d in ((first, percent, 0), (last, last_percent if last else "", n))]
    return at[0], min(at[1], n)


def load(name, split=None, as_supervised=False, with_info=False, batch_size=None, **options):
    import tensorflow as tf
    table, names = columns(name)
    n = len(next(iter(table.values())))
    keys = list(table)
    target = keys[-1] if "segmentation_mask" not in table else "label"

    def one(part):
        lo, hi = rows_of(part, n if part.startswith("train") else n // 6)
        data = {k: v[lo:hi].astype("int64") if v.dtype.kind == "i" else v[lo:hi] for k, v in table.items()}
        data = (data[keys[0]], data[target]) if as_supervised else data
        made = tf.data.Dataset.from_tensor_slices(data)
        if batch_size == -1:
            return next(iter(made.batch(hi - lo)))
        return made.batch(batch_size) if batch_size else made
    if split is None:
        made = {part: one(part) for part in ("train", "test")}
    elif isinstance(split, (list, tuple)):
        made = tuple(one(part) for part in split) if isinstance(split, tuple) else [one(part) for part in split]
    else:
        made = one(split)
    if not with_info:
        return made
    size = types.SimpleNamespace
    features = {k: Label(names) if k in (target, "label") else size(shape=v.shape[1:], dtype=v.dtype) for k, v in table.items()}
    splits = {"train": size(num_examples=n), "test": size(num_examples=n // 6), "validation": size(num_examples=n // 6)}
    return made, size(features=features, splits=splits, name=name, full_name=name, description="drawn", supervised_keys=(
        keys[0], target))


def as_dataframe(dataset, info=None):
    import pandas
    rows = [element if isinstance(element, dict) else dict(zip(("features", "label"), element)) for element in dataset]
    return pandas.DataFrame([{k: np.asarray(v).tolist() for k, v in row.items()} for row in rows])


# Put in place

def module(name, **values):
    made = sys.modules[name] = types.ModuleType(name)
    vars(made).update(values)
    made.__path__ = []
    return made


class Nothing:
    """Takes whatever it is given, and shows nothing."""

    def __init__(self, *args, **options):
        pass


def without_weights(function):
    """Weights of "imagenet" would have to be fetched: drawn ones stand for them."""
    def made(*args, **options):
        if options.get("weights", "imagenet") == "imagenet" and not args[1:2]:
            options["weights"] = None
        return function(*args, **options)
    return made


def install():
    urllib.request.OpenerDirector.open = open_url
    try:
        import requests
        requests.get = get
    except ImportError:
        module("requests", get=get)
    import tensorflow as tf
    for name, read in DATASETS.items():
        getattr(tf.keras.datasets, name).load_data = read
    models = tf.keras.applications
    for place in (models, *(vars(models).get(n) for n in ("mobilenet", "mobilenet_v2", "resnet50", "vgg16", "vgg19"))):
        for name, function in list(vars(place or types).items()):
            if place and name[0].isupper() and callable(function):
                setattr(place, name, without_weights(function))
    module("tensorflow_datasets", load=load, as_dataframe=as_dataframe, __version__="4.9.0",
           show_examples=lambda *args, **options: None, disable_progress_bar=lambda: None,
           enable_progress_bar=lambda: None)
    module("matplotlib_inline", backend_inline=module(
        "matplotlib_inline.backend_inline", set_matplotlib_formats=lambda *formats: None))
    if "IPython" not in sys.modules:
        display = module("IPython.display", display=print, clear_output=lambda wait=False: None, **dict.fromkeys(
            ("Image", "HTML", "Markdown", "SVG", "Audio", "YouTubeVideo", "Javascript"), Nothing))
        module("IPython", display=display, get_ipython=lambda: None, version_info=(9, 0))
