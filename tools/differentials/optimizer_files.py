"""Optimizers in Keras' files: one engine trains and saves, the other loads and trains on."""
import importlib
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import warnings

GRAMMAR = """
case    = {writer: berth | tensorflow, ending: keras | h5, layers, optimizer, around: [0 to 2 of], epochs: 1 | 2}
layers  = Dense | Dense, Dense | Conv1D, Flatten, Dense, sometimes without bias, sometimes the first one frozen
optimizer = SGD Adam AdamW Adamax Nadam Lamb Lion RMSprop Adagrad Adadelta Adafactor Ftrl, each with random arguments
around  = clipnorm clipvalue global_clipnorm | weight_decay | use_ema (ema_momentum, ema_overwrite_frequency) |
          gradient_accumulation_steps | loss_scale_factor | LossScaleOptimizer (growing every few steps) |
          learning_rate = ExponentialDecay InverseTimeDecay PolynomialDecay PiecewiseConstantDecay CosineDecay
          CosineDecayRestarts
result  = the weights after one more epoch, the rate, the count: those of the reader are the writer's (1e-5).
Keras 3.15 cannot write a .h5 of Adafactor (two values of one name) nor read one of Lamb, which are not drawn. It drops
the state of a .h5 that it reads: there its optimizer is built and given the file's values in their order. Of a Nadam in a LossScaleOptimizer it loses the
product of momenta, which is computed there.
"""


NAMES = "SGD Adam AdamW Adamax Nadam Lamb Lion RMSprop Adagrad Adadelta Adafactor Ftrl".split()


def case(rng, k):
    """A drawn case, as JSON; every optimizer in turn."""
    pick, number = rng.choice, rng.uniform
    name = NAMES[k % len(NAMES)]
    o = {"learning_rate": round(number(0.004, 0.05), 4)}
    if name in ("Adam", "AdamW", "Adamax", "Nadam", "Lamb", "Lion") and pick((0, 1)):
        o.update(beta_1=round(number(0.7, 0.95), 3), beta_2=round(number(0.9, 0.995), 4))
    if name in ("Adam", "AdamW"):
        o["amsgrad"] = pick((False, True))
    if name in ("SGD", "RMSprop") and pick((0, 1)):
        o["momentum"] = round(number(0.3, 0.9), 2)
    if name == "SGD":
        o["nesterov"] = pick((False, True))
    if name in ("RMSprop", "Adadelta"):
        o["rho"] = round(number(0.8, 0.95), 3)
    if name == "RMSprop":
        o["centered"] = pick((False, True))
    if name in ("Adagrad", "Ftrl"):
        o["initial_accumulator_value"] = round(number(0.05, 0.3), 3)
    if name == "Adafactor":
        o.update(relative_step=pick((False, True)), clip_threshold=round(number(0.6, 1.5), 2),
                 beta_2_decay=-round(number(0.5, 0.9), 2))
    if name == "Ftrl":
        o.update(l1_regularization_strength=pick((0.0, 0.01)), l2_regularization_strength=pick((0.0, 0.02)),
                 beta=pick((0.0, 0.1)))
    around = rng.sample(["clip", "decay", "ema", "accumulate", "factor", "scale", "schedule", "schedule"], pick((0, 1, 1, 2)))
    scale = "scale" in around
    if "clip" in around:
        o[pick(("clipnorm", "clipvalue", "global_clipnorm"))] = round(number(0.1, 1), 2)
    if "decay" in around:
        o["weight_decay"] = round(number(0.001, 0.1), 3)
    if "ema" in around:
        o.update(use_ema=True, ema_momentum=round(number(0.5, 0.99), 2), ema_overwrite_frequency=pick((None, 3)))
    if "accumulate" in around:
        o["gradient_accumulation_steps"] = pick((2, 3))
    if "factor" in around and not scale:
        o["loss_scale_factor"] = 8.0
    if "schedule" in around:
        o["learning_rate"] = schedule(rng)
    wrap = {"initial_scale": pick((2.0, 64.0, 1024.0)), "dynamic_growth_steps": pick((2, 3, 100))} if scale else None
    made = {"writer": pick(("berth", "tensorflow")), "ending": pick(("keras", "h5")), "layers": pick((1, 2, 3)),
            "bias": pick((True, True, False)), "frozen": rng.random() < 0.1, "epochs": pick((1, 2)),
            "name": name, "options": o, "scale": wrap, "seed": rng.randrange(1000)}
    if (made["writer"], name) in (("tensorflow", "Adafactor"), ("berth", "Lamb")):
        made["ending"] = "keras"
    return made


def schedule(rng):
    """[class, arguments] of a schedule whose rate moves within the first dozen steps."""
    number, first = rng.uniform, round(rng.uniform(0.01, 0.05), 4)
    steps, staircase = rng.randrange(2, 7), rng.choice((False, True))
    decay = {"initial_learning_rate": first, "decay_steps": steps}
    return rng.choice((
        ["ExponentialDecay", {**decay, "decay_rate": round(number(0.5, 0.9), 2), "staircase": staircase}],
        ["InverseTimeDecay", {**decay, "decay_rate": round(number(0.2, 0.9), 2), "staircase": staircase}],
        ["PolynomialDecay", {**decay, "end_learning_rate": 0.002, "power": rng.choice((1.0, 2.0)),
                             "cycle": rng.choice((False, True))}],
        ["PiecewiseConstantDecay", {"boundaries": [3, 6], "values": [first, first / 2, first / 5]}],
        ["CosineDecay", {**decay, "decay_steps": steps + 4, "alpha": 0.1,
                         **rng.choice(({}, {"warmup_target": 0.06, "warmup_steps": 3}))}],
        ["CosineDecayRestarts", {"initial_learning_rate": first, "first_decay_steps": steps, "t_mul": 1.5, "m_mul": 0.9,
                                 "alpha": 0.05}]))


def made_by(tf, made):
    """The model of a case, compiled, with weights that depend on its seed alone; and its data."""
    import numpy as np
    keras, rng = tf.keras, np.random.default_rng(made["seed"])
    layers, bias = keras.layers, made["bias"]
    parts = {1: lambda: [layers.Dense(2, use_bias=bias)],
             2: lambda: [layers.Dense(4, activation="tanh", use_bias=bias), layers.Dense(2)],
             3: lambda: [layers.Conv1D(2, 2, use_bias=bias), layers.Flatten(), layers.Dense(2)]}[made["layers"]]()
    shape = (4, 3) if made["layers"] == 3 else (3,)
    model = keras.Sequential([keras.Input(shape), *parts])
    if made["frozen"] and len(parts) > 1:
        parts[0].trainable = False
    model(np.zeros((1, *shape), "float32"))
    model.set_weights([rng.normal(size=w.shape).astype("float32") * 0.5 for w in model.get_weights()])
    options = dict(made["options"])
    if isinstance(options["learning_rate"], list):
        kind, arguments = options["learning_rate"]
        options["learning_rate"] = getattr(keras.optimizers.schedules, kind)(**arguments)
    options = {k: v for k, v in options.items() if v is not None}
    optimizer = getattr(keras.optimizers, made["name"])(**options)
    if made["scale"]:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, **made["scale"])
    compiled(tf, model, optimizer)
    return model


def compiled(tf, model, optimizer):
    eager = {"run_eagerly": True} if tf.__name__ == "tensorflow" else {}  # 5 ms a step in place of 1 s of tracing
    model.compile(optimizer, tf.keras.losses.MeanSquaredError(), **eager)


def train(model, made, epochs):
    import numpy as np
    rng = np.random.default_rng(made["seed"] + 1)
    x = rng.normal(size=(16, 4, 3) if made["layers"] == 3 else (16, 3)).astype("float32")
    model.fit(x, rng.normal(size=(16, 2)).astype("float32"), batch_size=4, epochs=epochs, shuffle=False, verbose=0)


def results(model, made):
    """What is compared."""
    count = [] if "gradient_accumulation_steps" in made["options"] else [int(model.optimizer.iterations)]
    return [[float(v) for w in model.get_weights() for v in w.reshape(-1)], float(model.optimizer.learning_rate), count]


def write(tf, made, path):
    """Trains and saves; returns the results of training on."""
    model = made_by(tf, made)
    train(model, made, made["epochs"])
    model.save(path)
    train(model, made, 1)
    return results(model, made)


def read(tf, made, path):
    """Loads and trains on."""
    model = tf.keras.models.load_model(path)
    if tf.__name__ == "tensorflow":
        optimizer = model.optimizer
        if path.endswith(".h5"):
            optimizer = given_by_hand(tf, model, path)
        if made["scale"] and made["name"] == "Nadam":
            inner = optimizer.inner_optimizer
            steps = int(inner.iterations)
            inner._u_product.assign(math.prod(inner.beta_1 * (1 - 0.5 * 0.96 ** t) for t in range(1, steps + 1)))
        compiled(tf, model, optimizer)
    if made["frozen"] and made["layers"] > 1:
        assert not model.layers[0].trainable
    train(model, made, 1)
    return results(model, made)


def given_by_hand(tf, model, path):
    import h5py
    import numpy as np
    optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
    optimizer.build(model.trainable_variables)
    with h5py.File(path) as file:
        kept = file["optimizer_weights"]
        values = [np.array(kept[n]) for n in kept.attrs["weight_names"]]
    assert len(values) == len(optimizer.variables), (len(values), len(optimizer.variables))
    for v, value in zip(optimizer.variables, values):
        v.assign(value)
    return optimizer


def work(module, what, folder):
    """Writes, or reads, the cases of a folder that are this engine's; keeps the results there."""
    tf = importlib.import_module(module)
    warnings.simplefilter("ignore")
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    done = {}
    for k, made in cases.items():
        if (made["writer"] == module) != (what == "write"):
            continue
        path = os.path.join(folder, f"{k}.{made['ending']}")
        try:
            done[k] = {"write": write, "read": read}[what](tf, made, path)
        except Exception as error:  # whatever a user would see
            done[k] = f"{type(error).__name__}: {error}"[:400]
    with open(os.path.join(folder, f"{what}_{module}.json"), "w", encoding="utf-8") as file:
        json.dump(done, file)


def close(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(close, a, b))
    return not isinstance(a, str) and not isinstance(b, str) and abs(a - b) <= 1e-5 * max(1.0, abs(a))


def main(args):
    """Runs the suite; see GRAMMAR."""
    if args.peer:
        work(args.peer, *args.numbers.split(":", 1))
        return 0
    if not args.live:
        print("optimizer_files needs TensorFlow (--live, BERTH_PEERS); its sample is python/tests/test_keras_optimizers.py")
        return 0
    numbers = range(args.count) if args.only is None else [args.only]
    cases = {str(k): case(random.Random(f"{args.seed}/{k}"), k) for k in numbers}
    if args.record:
        return record(args, cases)
    print(f"optimizer_files: seed {args.seed}, {len(cases)} cases")
    with tempfile.TemporaryDirectory() as folder:
        wrote, got = exchange(args, cases, folder)
    wrong = 0
    for k, made in cases.items():
        if not close(wrote.get(k, "nothing"), got.get(k, "nothing")):
            wrong += 1
            print(f"WRONG {k}: {json.dumps(made)}\n  went on  {json.dumps(wrote.get(k))[:300]}\n"
                  f"  read it  {json.dumps(got.get(k))[:300]}")
    print(f"optimizer_files: {len(cases)} cases, {wrong} wrong, 0 refused")
    return 1 if wrong else 0


def exchange(args, cases, folder, phases=("write", "read")):
    """Results of those who wrote, and of those who read."""
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file)
    found = {}
    for what in phases:
        found[what] = {}
        for module, python in (("berth", sys.executable), ("tensorflow", args.live)):
            if not any((made["writer"] == module) == (what == "write") for made in cases.values()):
                continue
            env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            if module == "tensorflow":
                env["PYTHONPATH"] = ""
            subprocess.run([python, sys.argv[0], args.name, "--peer", module, "--numbers", f"{what}:{folder}"],
                           check=True, env=env)
            with open(os.path.join(folder, f"{what}_{module}.json"), encoding="utf-8") as file:
                found[what].update(json.load(file))
    return [found[what] for what in phases]


def record(args, cases):
    """Keeps files that Keras writes for the tests of the package."""
    import numpy as np
    kept = {}
    for k, made in cases.items():
        made.update(writer="tensorflow", ending="h5" if int(k) % 4 == 3 and made["name"] != "Adafactor" else "keras")
    with tempfile.TemporaryDirectory() as folder:
        results, = exchange(args, cases, folder, ("write",))
        for k, made in cases.items():
            with open(os.path.join(folder, f"{k}.{made['ending']}"), "rb") as file:
                kept["file_" + k] = np.frombuffer(file.read(), "uint8")
    text = json.dumps({k: [made, results[k]] for k, made in cases.items()})
    out = io.BytesIO()
    np.savez_compressed(out, cases=np.frombuffer(text.encode(), "uint8"), **kept)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/tests/keras_optimizers.npz")
    with open(path, "wb") as file:
        file.write(out.getvalue())
    print(f"{os.path.normpath(path)}: {len(cases)} files, {len(out.getvalue())} bytes")
    return 0
