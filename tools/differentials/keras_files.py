"""Models as Keras' files: each of Keras and Berth writes, the other reads, and outputs agree."""
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

GRAMMAR = """
case     = inputs, steps, outputs (one, a list or a dictionary)
input    = vector [4] | series [5, 4] | image [6, 6, 3] | tokens [5]; one in eight has a batch of its own
step     = layer(value) | used again(value) | merge(values) | operator(values, constant) | nested model(values)
vector   : Dense, BatchNormalization, LayerNormalization, Activation, Dropout, LeakyReLU, PReLU, RepeatVector, Reshape
series   : Dense, Conv1D, LSTM, GRU, SimpleRNN, LayerNormalization, MaxPooling1D, MultiHeadAttention, GlobalAveragePooling1D,
           Flatten, and the layers that end it: LSTM, GRU
image    : Conv2D, DepthwiseConv2D, SeparableConv2D, BatchNormalization, MaxPooling2D, GlobalAveragePooling2D, Flatten
tokens   : Embedding
attention = MultiHeadAttention of two or three values, by keywords or not; GRU and SimpleRNN take a vector as their first state
merge    = Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate; of two or three values of one shape
operator = x + y, x - y, x * y, x * 2.0, 1.5 - x, -x, x / 4.0, x ** 2.0, x[:, 1:]
nested   = a functional model of one or two inputs and outputs, or a Sequential; half of them are used twice
One model in twelve has a policy of 16 bits, under which outputs agree to 2 % in the mean. Layers are frozen one time in eight. Weights of equal shapes are common, so that an exchange of two shows.
All of keras.applications that Berth has follow after the last case of a whole run.
"""
FILES = ("keras", "h5", "weights.h5")
SHAPES = {"vector": [4], "series": [5, 4], "image": [6, 6, 3], "tokens": [5]}
MERGES = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate")
APPLICATIONS = ("DenseNet121", "DenseNet169", "DenseNet201", *(f"EfficientNetB{i}" for i in range(8)), "MobileNet", "MobileNetV2",
                "ResNet50", "ResNet101", "ResNet152", "ResNet50V2", "ResNet101V2", "ResNet152V2", "VGG16", "VGG19", "Xception")
SIZE = 96  # of their images


# ------------------------------------------------------------------------------------------------ what is drawn

def layer_of(rng, shape):
    """(class, options, shape of the output) of a layer for one value."""
    if len(shape) == 1:
        return rng.choice((
            ("Dense", {"units": 4, "activation": rng.choice(("relu", "tanh", "linear"))}, [4]),
            ("Dense", {"units": 4}, [4]), ("Dense", {"units": 4, "use_bias": rng.random() < 0.5}, [4]),
            ("BatchNormalization", {}, shape), ("LayerNormalization", {}, shape), ("PReLU", {}, shape),
            ("Activation", {"activation": "sigmoid"}, shape), ("Dropout", {"rate": 0.5}, shape),
            ("LeakyReLU", {}, shape), ("RepeatVector", {"n": 5}, [5, *shape]), ("Reshape", {"target_shape": [*shape, 1]},
                                                                              [*shape, 1])))
    if len(shape) == 2:
        steps, width = shape
        return rng.choice((
            ("Dense", {"units": 4}, [steps, 4]), ("Conv1D", {"filters": 4, "kernel_size": 3, "padding": "same"}, [steps, 4]),
            ("LSTM", {"units": 4}, [4]), ("GRU", {"units": 4}, [4]), ("LSTM", {"units": 4, "return_sequences": True}, [steps, 4]),
            ("SimpleRNN", {"units": 4, "return_sequences": True}, [steps, 4]), ("LayerNormalization", {}, shape) if width > 1 else ("Flatten", {}, [steps]),
            ("MaxPooling1D", {"pool_size": 2, "padding": "same", "strides": 1}, shape),
            ("GlobalAveragePooling1D", {}, [width]), ("Flatten", {}, [steps * width])))
    height, wide, depth = shape
    return rng.choice((
        ("Conv2D", {"filters": 3, "kernel_size": 3, "padding": "same"}, [height, wide, 3]),
        ("Conv2D", {"filters": 3, "kernel_size": 1}, [height, wide, 3]),
        ("DepthwiseConv2D", {"kernel_size": 3, "padding": "same"}, shape),
        ("SeparableConv2D", {"filters": 3, "kernel_size": 3, "padding": "same"}, [height, wide, 3]),
        ("BatchNormalization", {}, shape), ("MaxPooling2D", {"pool_size": 2, "strides": 1, "padding": "same"}, shape),
        ("GlobalAveragePooling2D", {}, [depth]), ("Flatten", {}, [height * wide * depth])))


def pick(rng, shapes, among=None):
    """A value, rather a late one."""
    among = range(len(shapes)) if among is None else among
    return max(rng.choice(list(among)), rng.choice(list(among)))


def graph(rng, kinds, steps, depth):
    """{"inputs", "steps", "outputs"}: each step makes one or more values of earlier ones."""
    inputs = [{"shape": SHAPES[kind], "tokens": kind == "tokens", "batch": 3 if rng.random() < 0.125 else None}
              for kind in kinds]
    shapes, list_of_steps, layers = [None if i["tokens"] else i["shape"] for i in inputs], [], []
    for i, value in enumerate(inputs):
        if value["tokens"]:
            list_of_steps.append({"layer": "Embedding", "options": {"input_dim": 9, "output_dim": 4}, "of": [i]})
            layers.append(None)
            shapes.append([5, 4])
    known = [i for i, s in enumerate(shapes) if s]
    for _ in range(steps):
        x = pick(rng, shapes, known)
        same = [i for i in known if shapes[i] == shapes[x] and i != x]
        frozen = rng.random() < 0.125
        what = rng.random()
        step, made = None, None
        if what < 0.2 and same:
            others = rng.sample(same, min(len(same), rng.choice((1, 1, 2))))
            kind = rng.choice(MERGES if len(others) == 1 else [m for m in MERGES if m != "Subtract"])
            made = shapes[x] if kind != "Concatenate" else [*shapes[x][:-1], shapes[x][-1] * (1 + len(others))]
            step = {"layer": kind, "options": {}, "of": [x, *others], "together": True}
        elif what < 0.35:
            kind = rng.choice(("Add", "Subtract", "Multiply") if same and rng.random() < 0.6 else (
                "times", "minus", "Negative", "over", "power", "GetItem" if shapes[x][0] > 1 else "times"))
            of = [x, rng.choice(same)] if kind in ("Add", "Subtract", "Multiply") else [x]
            made = [shapes[x][0] - 1, *shapes[x][1:]] if kind == "GetItem" else shapes[x]
            step = {"operator": kind, "of": of}
        elif what < 0.45 and any(shape == shapes[x] for shape, *_ in filter(None, layers)):
            number, made = rng.choice([(n, e[1]) for n, e in enumerate(layers) if e and e[0] == shapes[x]])
            step = {"again": number, "of": [x]}
            if isinstance(made, dict):
                step, made = None, None
        elif what < 0.6 and depth > 0 and shapes[x] in ([4], [5, 4], [6, 6, 3]):
            kind = next(k for k, s in SHAPES.items() if s == shapes[x])
            if rng.random() < 0.3:
                inner, shape = [], shapes[x]
                for _ in range(rng.choice((1, 2, 3))):
                    name, options, shape = layer_of(rng, shape)
                    inner.append([name, options])
                step, made = {"sequential": inner, "shape": shapes[x] if rng.random() < 0.5 else None, "of": [x]}, shape
            else:
                two = len(same) > 0 and rng.random() < 0.4
                inner = graph(rng, [kind] * (1 + two), rng.randint(1, 4), depth - 1)
                for value in inner["inputs"]:
                    value["batch"] = None
                of = [x, rng.choice(same)] if two else [x]
                step = {"model": inner, "of": of}
                first = len(list_of_steps)
                list_of_steps.append(step)
                layers.append(None)
                shapes += inner["shapes"]
                if rng.random() < 0.5 and same:
                    list_of_steps.append({"again": first, "of": [rng.choice(same) for _ in of]})
                    layers.append(None)
                    shapes += inner["shapes"]
                known = [i for i, s in enumerate(shapes) if s]
                continue
        if step is None:
            name, options, made = layer_of(rng, shapes[x])
            if len(shapes[x]) == 2 and rng.random() < 0.15:
                name, options, made = "MultiHeadAttention", {"num_heads": 2, "key_dim": 3}, shapes[x]
                of = [x, *(rng.choice(same or [x]) for _ in range(rng.choice((1, 2))))]
                step = {"layer": name, "options": options, "of": of, "keywords": rng.random() < 0.7}
            elif name in ("GRU", "SimpleRNN") and [4] in shapes and rng.random() < 0.5:
                states = [i for i in known if shapes[i] == [4]]
                step = {"layer": name, "options": options, "of": [x, rng.choice(states)]}
            else:
                step = {"layer": name, "options": options, "of": [x], "frozen": frozen}
        list_of_steps.append(step)
        layers.append((shapes[x], made) if len(step["of"]) == 1 and "operator" not in step and "again" not in step else None)
        shapes.append(made)
        known = [i for i, s in enumerate(shapes) if s]
    used = {v for s in list_of_steps for v in s["of"]}
    ends = [i for i in known if i not in used and i >= len(inputs)] or [known[-1]]
    rng.shuffle(ends)
    ends = ends[:3] if depth < 2 else ends
    form = rng.choice(("list", "dict")) if len(ends) > 1 else rng.choice(("one", "one", "list", "dict"))
    return {"inputs": inputs, "steps": list_of_steps, "outputs": ends, "form": form, "shapes": [shapes[e] for e in ends]}


def case(rng, k):
    kinds = [rng.choice(("vector", "vector", "series", "image", "tokens")) for _ in range(rng.choice((1, 1, 2, 3)))]
    g = graph(rng, kinds, rng.randint(2, 12), 2)
    return {**g, "policy": rng.choice(("mixed_float16", "mixed_bfloat16"))} if rng.random() < 0.08 else g


# --------------------------------------------------------------------------------- the program that both run

def flat(value):
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in flat(value[key])]
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]


def is_end(value):
    """[layer, use, output] of a model's JSON."""
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


def form_of(form, values, prefix):
    if form == "one":
        return values[0]
    return {f"{prefix}{i}": v for i, v in enumerate(values)} if form == "dict" else values


def build(keras, g, prefix="m"):
    """The model of a drawn graph."""
    layers, name = keras.layers, lambda n: f"{prefix}_{n}"
    values = [keras.Input(tuple(v["shape"]), batch_size=v["batch"], dtype="int32" if v["tokens"] else "float32",
                          name=name(f"in{i}")) for i, v in enumerate(g["inputs"])]
    inputs, made = list(values), []
    for n, step in enumerate(g["steps"]):
        of = [values[i] for i in step["of"]]
        layer = None
        if "operator" in step:
            x, kind = of[0], step["operator"]
            values.append({"Add": lambda: x + of[1], "Subtract": lambda: x - of[1], "Multiply": lambda: x * of[1],
                           "times": lambda: x * 2.0, "minus": lambda: 1.5 - x, "Negative": lambda: -x,
                           "over": lambda: x / 4.0, "power": lambda: x ** 2.0, "GetItem": lambda: x[:, 1:]}[kind]())
            made.append(None)
            continue
        if "again" in step:
            layer = made[step["again"]]
        elif "model" in step:
            layer = build(keras, step["model"], name(n))
        elif "sequential" in step:
            parts = [getattr(layers, c)(**options, name=name(f"{n}_{i}")) for i, (c, options) in enumerate(step["sequential"])]
            first = [keras.Input(tuple(step["shape"]))] if step["shape"] else []
            layer = keras.Sequential([*first, *parts], name=name(n))
        else:
            layer = getattr(layers, step["layer"])(**step["options"], name=name(n))
            if step.get("frozen"):
                layer.trainable = False
        made.append(layer)
        several = "model" in step or "again" in step or step.get("together")
        if step.get("layer") == "MultiHeadAttention":
            named = dict(zip(("value", "key"), of[1:])) if step.get("keywords") else {}
            out = layer(of[0], **named) if named else layer(*of)
        elif step.get("layer") in ("GRU", "SimpleRNN") and len(of) > 1:
            out = layer(of[0], initial_state=of[1])
        else:
            out = layer(of if several and len(of) > 1 else of[0])
        values += flat(out)
    ins = inputs[0] if len(inputs) == 1 else inputs
    return keras.Model(ins, form_of(g["form"], [values[i] for i in g["outputs"]], "y"), name=prefix)


def application(keras, g):
    make = getattr(keras.applications, g["application"])
    if hasattr(keras, "__version__"):
        return make(weights=None, input_shape=(SIZE, SIZE, 3), classes=7)
    return make(image_size=SIZE, classes=7)


def made_by(keras, g):
    if "application" in g:
        return application(keras, g)
    keras.mixed_precision.set_global_policy(g.get("policy", "float32"))
    try:
        return build(keras, g)
    finally:
        keras.mixed_precision.set_global_policy("float32")


def fill(model, seed):
    """Values in all weights, of which no two are alike."""
    rng = np.random.default_rng(seed)
    scale = 0.5 if len(model.weights) < 100 else 0.1
    model.set_weights([np.abs(v) + 0.5 if "variance" in w.name else v for w in model.weights for v in
                       [rng.normal(size=tuple(w.shape)).astype("float32") * scale]])


def inputs_of(g, seed):
    rng = np.random.default_rng(seed)
    if "application" in g:
        return rng.normal(size=(1, SIZE, SIZE, 3)).astype("float32")
    all_of = [rng.integers(0, 9, (3, *v["shape"])).astype("int32") if v["tokens"] else
              rng.normal(size=(3, *v["shape"])).astype("float32") for v in g["inputs"]]
    return all_of[0] if len(all_of) == 1 else all_of


def outputs_of(model, x):
    return [np.asarray(v, "float32") for v in flat(model(x))]


def outline(model):
    """What the order of layers and weights is."""
    return [[p.name for p in model.layers], [list(map(int, w.shape)) for w in model.weights]]


def files_of(g):
    return FILES[:2] if "application" in g else FILES


def write(keras, k, g, folder):
    """Makes the model and its files; returns what went wrong."""
    try:
        model = made_by(keras, g)
        fill(model, k)
        np.savez(os.path.join(folder, f"{k}.npz"), *outputs_of(model, inputs_of(g, k)))
        for kind in files_of(g):
            path = os.path.join(folder, f"{k}.{kind}")
            (model.save_weights if kind == "weights.h5" else model.save)(path)
        return {"outline": outline(model)}
    except Exception as error:  # whatever a user would see
        return {"error": f"{type(error).__name__}: {error}"[:600]}


def shaken(x):
    """Inputs as rounding may change them: what that does to an output, rounding inside may do, too."""
    if isinstance(x, list):
        return [shaken(v) for v in x]
    signs = np.random.default_rng(0).choice([-1, 1], x.shape)
    return x if x.dtype == np.int32 else x * (1 + 1e-6 * signs).astype("float32")


def differs(got, want, rough, near):
    if len(got) != len(want) or any(a.shape != b.shape for a, b in zip(got, want)):
        return f"shapes {[a.shape for a in got]}, expected {[b.shape for b in want]}"
    with np.errstate(invalid="ignore"):
        apart = [np.where(a == b, 0, np.maximum(0, np.abs(a - b) - 4 * np.abs(c - a).max()) / np.maximum(1, np.abs(b)))
                 for a, b, c in zip(got, want, near) if a.size]
    worst = max((float(np.mean(a) if rough else np.max(a)) for a in apart), default=0.0)
    return None if worst <= (0.02 if rough else 1e-5) else f"differ by {worst:.3g}"


def read(keras, k, g, folder):
    """{file: what is wrong} of files that the other one wrote."""
    wrong = {}
    for kind in files_of(g):
        path = os.path.join(folder, f"{k}.{kind}")
        try:
            if kind == "weights.h5":
                model = made_by(keras, g)
                model.load_weights(path)
            else:
                model = keras.models.load_model(path, compile=False)
            with np.load(os.path.join(folder, f"{k}.npz")) as kept:
                x = inputs_of(g, k)
                said = differs(outputs_of(model, x), [kept[n] for n in kept.files], "policy" in g,
                               outputs_of(model, shaken(x)))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:600]
        if said:
            wrong[kind] = said
    return wrong


def peer(folder):
    """In the interpreter with TensorFlow: writes all cases, reads what Berth wrote."""
    import keras
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    results = {}
    for k, g in cases:
        keras.backend.clear_session()
        written = os.path.exists(os.path.join(folder, "berth", f"{k}.keras"))
        results[k] = {"write": write(keras, k, g, os.path.join(folder, "keras")),
                      "read": read(keras, k, g, os.path.join(folder, "berth")) if written else {}}
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump(results, file)


def compared(k, g, ours, theirs, keras, folder):
    """What is wrong with a case, a list of texts."""
    if "error" in theirs["write"]:  # no model of Keras'
        return [] if "error" in ours else [f"Keras: {theirs['write']['error']}"]
    if "error" in ours:
        return [f"Berth cannot make or write it: {ours['error']}"]
    wrong = [f"Berth's .{kind} in Keras: {said}" for kind, said in theirs["read"].items()]
    wrong += [f"Keras' .{kind} in Berth: {said}" for kind, said in read(keras, k, g, os.path.join(folder, "keras")).items()]
    for what, a, b in zip(("layers", "weights"), ours["outline"], theirs["write"]["outline"]):
        if a != b and "application" not in g:  # some of Berth's have a dense layer for a convolution of one pixel
            wrong.append(f"model.{what}: {a}, in Keras {b}")
    return wrong


def main(args):
    from berth import keras
    if not args.live:
        print("keras_files: no TensorFlow (--live, BERTH_PEERS); python/tests/test_keras_graphs.py has a sample")
        return 0
    numbers = range(args.count) if args.only is None else [args.only]
    cases = [(k, case(random.Random(f"{args.seed}/{k}"), k)) for k in numbers]
    print(f"keras_files: seed {args.seed}, {len(cases)} cases")
    bad = exchange(keras, cases, args)
    if args.only is None and args.count >= 400:  # each alone, since their files are large
        bad += sum(exchange(keras, [(k, {"application": a})], args) for k, a in enumerate(APPLICATIONS))
    print(f"keras_files: {len(cases)} cases, {bad} wrong, 0 refused")
    return 1 if bad else 0


def exchange(keras, cases, args):
    """Has both write and read the cases; prints what is wrong, returns how many are."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("berth", "keras"):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
            json.dump(cases, file)
        ours = {k: write(keras, k, g, os.path.join(folder, "berth")) for k, g in cases}
        subprocess.run([args.live, os.path.abspath(__file__), folder], check=True, stderr=subprocess.DEVNULL,
                       env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""})
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            theirs = {int(k): v for k, v in json.load(file).items()}
        bad = 0
        for k, g in cases:
            wrong = compared(k, g, ours[k], theirs[k], keras, folder)
            bad += bool(wrong)
            if wrong:
                print(f"WRONG {k}: {json.dumps(g)}\n  " + "\n  ".join(wrong))
        if args.record:
            record(cases, os.path.join(folder, "keras"))
    return bad


KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras_files.tar.xz")


def record(cases, folder):
    """Keeps what Keras wrote: an archive as a whole, since a .keras holds what its .weights.h5 has."""
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file)
    with tarfile.open(KEPT, "w:xz", preset=9) as archive:
        for name in ["cases.json", *(f"{k}.{kind}" for k, _ in cases for kind in ("npz", *FILES))]:
            archive.add(os.path.join(folder, name), name)


if __name__ == "__main__":
    peer(sys.argv[1])
