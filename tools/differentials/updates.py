"""Updates: an optimizer, under whatever strategy and in either kind of loop, moves variables as on
one device, and on one device as Keras on TensorFlow does."""
import contextlib
import json
import os
import socket
import subprocess
import sys

GRAMMAR = """
optimizer  each of Keras', with its options drawn
feature    plain | clipvalue | clipnorm | global_clipnorm | ema | weight_decay | schedule
           | accumulation | loss_scale | mixed_float16 | two optimizers | own (a condition in
           train_step around assignments); sometimes a second one beside it
place      Mirrored on 2 or 3 simulated GPUs, on 2 core sets, with unequal shares,
           CentralStorage, two tasks of two GPUs
loop       fit | run (strategy.run() over a distributed data set)
slices     0, or in fit a number: then the bits must be those of one device
spike      in the data: gradients that are not finite in one batch (loss_scale, mixed_float16)
rest       the last batch is smaller
"""
TOLERANCE = {"mixed_float16": 6e-3}  # sums in half precision are rounded in another order

RATES = {"Adadelta": 1.0, "Ftrl": .05, "SGD": .05}
OPTIONS = {
    "SGD": ({}, {"momentum": .9}, {"momentum": .8, "nesterov": True}),
    "RMSprop": ({}, {"momentum": .5}, {"centered": True, "rho": .8}),
    "Adam": ({}, {"beta_1": .8}, {"amsgrad": True}), "AdamW": ({}, {"amsgrad": True}),
    "Adamax": ({}, {"beta_2": .9}), "Nadam": ({}, {"beta_1": .8}), "Lamb": ({},),
    "Lion": ({}, {"beta_2": .9}), "Adagrad": ({}, {"initial_accumulator_value": .2}),
    "Adadelta": ({}, {"rho": .8}), "Adafactor": ({}, {"relative_step": False}),
    "Ftrl": ({}, {"l1_regularization_strength": .01}),
}
CLIPS = {"clipvalue": .05, "clipnorm": .1, "global_clipnorm": .1}
FEATURES = ("plain", *CLIPS, "ema", "weight_decay", "schedule", "accumulation", "loss_scale",
            "mixed_float16", "two", "own")
PLACES = ("gpus2", "gpus3", "cores2", "shares", "central", "tasks")


def case(rng, k):
    name = list(OPTIONS)[k % len(OPTIONS)]
    features = [FEATURES[(k + k // len(OPTIONS)) % len(FEATURES)]]
    if features[0] == "own":
        name = "SGD"
    elif rng.random() < .4:
        others = [f for f in FEATURES[1:-2] if f not in features
                  and not (f in CLIPS and features[0] in CLIPS)]
        features.append(rng.choice(others))
    if "loss_scale" in features and "mixed_float16" in features:
        features.remove("mixed_float16")
    loop = "fit" if "own" in features else rng.choice(("fit", "run"))
    scaled = "loss_scale" in features or "mixed_float16" in features
    drawn = {"optimizer": name, "options": rng.choice(OPTIONS[name]), "features": features,
             "place": rng.choice(PLACES), "loop": loop, "seed": rng.randrange(1000),
             "slices": rng.choice((0, 0, 12)) if loop == "fit" else 0,
             "spike": scaled and rng.random() < .4, "rest": rng.random() < .3}
    if "ema" in features:
        drawn["overwrite"] = rng.choice((None, 2, 3))
    if "accumulation" in features:
        drawn["steps"] = rng.choice((2, 3))
    if "schedule" in features:
        drawn["schedule"] = rng.choice(("ExponentialDecay", "CosineDecay", "PiecewiseConstantDecay",
                                        "PolynomialDecay", "InverseTimeDecay"))
    return drawn


def rate(tf, c, factor):
    value = RATES.get(c["optimizer"], .02) * factor
    if "schedule" not in c:
        return value
    of = getattr(tf.keras.optimizers.schedules, c["schedule"])
    if c["schedule"] == "PiecewiseConstantDecay":
        return of([1, 4], [value, value / 2, value / 4])
    more = {"ExponentialDecay": (.7,), "InverseTimeDecay": (.7,)}.get(c["schedule"], ())
    return of(value, 4, *more)


def optimizer(tf, c, factor=1.0, wrapped=False):
    options = dict(c["options"])
    for feature in c["features"]:
        if feature in CLIPS:
            options[feature] = CLIPS[feature]
    if "ema" in c["features"]:
        options.update(use_ema=True, ema_momentum=.8, ema_overwrite_frequency=c["overwrite"])
    if "weight_decay" in c["features"]:
        options["weight_decay"] = .02
    if "accumulation" in c["features"]:
        options["gradient_accumulation_steps"] = c["steps"]
    made = getattr(tf.keras.optimizers, c["optimizer"])(rate(tf, c, factor), **options)
    if wrapped or "loss_scale" in c["features"]:
        made = tf.keras.optimizers.LossScaleOptimizer(made, initial_scale=64.0,
                                                      dynamic_growth_steps=3)
    return made


def numbers(c):
    """Inputs, targets and first weights."""
    import numpy as np
    rng = np.random.default_rng(c["seed"])
    n = 30 if c["rest"] else 36
    x = rng.normal(size=(n, 3)).astype("float32")
    if c["spike"]:
        x[14] *= 1e30
    y = (x[:, :1] - x[:, 1:2] + rng.normal(0, .1, (n, 1))).astype("float32").clip(-9, 9)
    return x, y, [rng.normal(0, .7, s).astype("float32") for s in ((3, 2), (2,), (2, 1), (1,))]


def parts(variables):
    return [variables[:2], variables[2:]]


def model_of(tf, c, optimizers):
    """A model; with two optimizers, or with conditions of its own, it has its own step."""
    keras = tf.keras

    class Stepping(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [keras.layers.Dense(2, activation="tanh"),
                          keras.layers.Dense(1, dtype="float32")]

        def call(self, x, training=False):
            return self.parts[1](self.parts[0](x))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.cast(self(x, training=True) - y, "float32") ** 2)
                scaled = optimizers[0].scale_loss(loss)
            variables = self.trainable_variables
            gradients = tape.gradient(scaled, variables)
            if "own" not in c["features"]:
                for o, g, v in zip(optimizers, parts(gradients), parts(variables)):
                    o.apply_gradients(zip(g, v))
                return {"last": loss}  # of a step of one's own, weights alone are compared
            turn, sums = extra

            def add():
                for s, g in zip(sums, gradients):
                    s.assign_add(g)
                return tf.constant(0)

            def step():
                for s, g, v in zip(sums, gradients, variables):
                    v.assign_sub(.05 * (s + g))
                    s.assign(tf.zeros_like(s))
                turn.assign_add(10)
                return tf.constant(1)

            turn.assign_add(1)
            made = tf.cond(turn % 2 == 0, step, add)
            return {"last": loss, "made": tf.cast(made, "float32")}

    own = "two" in c["features"] or "own" in c["features"]
    if own and c["loop"] == "fit":
        model = Stepping()
        model(tf.zeros((1, 3)))
    else:
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="tanh"),
                                  keras.layers.Dense(1, dtype="float32")])
    if "own" in c["features"]:
        extra = (tf.Variable(0, trainable=False),
                 [tf.Variable(tf.zeros(v.shape), trainable=False) for v in model.weights])
    return model


def trained(tf, c, strategy=None, slices=0):
    """Weights, losses and iterations after two epochs."""
    keras = tf.keras
    mixed = "mixed_float16" in c["features"]
    keras.mixed_precision.set_global_policy("mixed_float16" if mixed else "float32")
    try:
        with strategy.scope() if strategy else contextlib.nullcontext():
            by_hand = c["loop"] == "run" or "two" in c["features"]
            optimizers = [optimizer(tf, c, 1.0, mixed and by_hand)]
            if "two" in c["features"]:
                # What scales a loss scales it for both.
                optimizers.append(optimizer(tf, c, .5, mixed))
            model = model_of(tf, c, optimizers)
            x, y, weights = numbers(c)
            model.set_weights(weights)
            if c["loop"] == "fit":
                own = "two" in c["features"] or "own" in c["features"]
                model.compile(optimizers[0], None if own else "mse", **({"slices": slices} if slices else {}))
                h = model.fit(x, y, batch_size=12, epochs=2, shuffle=False, verbose=0)
                losses = [] if own else h.history["loss"]
                optimizers[0] = model.optimizer
                if "own" in c["features"]:
                    optimizers = []
            else:
                losses = looped(tf, c, strategy, model, optimizers, x, y)
        return {"weights": [float(f"{v:.8g}") for w in model.get_weights() for v in w.ravel()],
                "losses": [float(v) for v in losses],
                "iterations": [int(o.iterations.numpy()) for o in optimizers]}
    finally:
        keras.mixed_precision.set_global_policy("float32")


def looped(tf, c, strategy, model, optimizers, x, y):
    variables = model.trainable_variables

    def step(x, y):
        with tf.GradientTape() as tape:
            error = tf.cast(model(x, training=True) - y, "float32")
            loss = tf.reduce_sum(error ** 2) / 12.0
            scaled = optimizers[0].scale_loss(loss)
        gradients = tape.gradient(scaled, variables)
        if len(optimizers) == 1:
            optimizers[0].apply_gradients(zip(gradients, variables))
        else:
            for o, g, v in zip(optimizers, parts(gradients), parts(variables)):
                o.apply_gradients(zip(g, v))
        return loss

    for o, v in zip(optimizers, parts(variables) if len(optimizers) > 1 else [variables]):
        o.build(v)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(12)
    if strategy is None:
        once = tf.function(step)
    else:
        data = strategy.experimental_distribute_dataset(data)
        once = tf.function(lambda x, y: strategy.reduce("SUM", strategy.run(step, (x, y)), None))
    return [float(once(a, b)) for _ in range(2) for a, b in data]


def strategy_of(tf, c):
    d = tf.distribute
    kind, slices = c["place"], c["slices"]
    if kind == "central":
        return d.experimental.CentralStorageStrategy()
    if kind == "tasks":
        return d.MultiWorkerMirroredStrategy(slices=slices)
    if kind == "shares":
        return d.MirroredStrategy(["GPU:0", "GPU:1"], shares=None if slices else (1, 2),
                                  slices=slices)
    name = "GPU" if kind.startswith("gpus") else "CPU"
    return d.MirroredStrategy([f"{name}:{i}" for i in range(int(kind[-1]))], slices=slices)


class Tasks:
    """Processes that run cases on Berth, together: this one may have used devices otherwise."""
    made = {}

    def __init__(self, several):
        ports = []
        for _ in range(2 if several else 0):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                ports.append(f"127.0.0.1:{s.getsockname()[1]}")
        self.processes = []
        for k in range(max(len(ports), 1)):
            env = {**os.environ, "BERTH_SIM": "GPUx2" if several else "GPUx3",
                   "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            env.pop("TF_CONFIG", None)
            if several:
                env["TF_CONFIG"] = json.dumps({"cluster": {"worker": ports},
                                               "task": {"type": "worker", "index": k}})
            self.processes.append(subprocess.Popen(
                [sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, env=env))

    @classmethod
    def run(cls, case):
        several = case["place"] == "tasks"
        if several not in cls.made:
            cls.made[several] = cls(several)
        try:
            return cls.result(cls.made[several].processes, case)
        except Exception:
            for p in cls.made.pop(several).processes:
                p.kill()
            raise

    @staticmethod
    def result(tasks, case):
        for p in tasks:
            p.stdin.write(json.dumps(case) + "\n")
            p.stdin.flush()
        results = []
        for p in tasks:
            line = p.stdout.readline()
            while line and not line.startswith("{"):
                line = p.stdout.readline()
            if not line:
                raise RuntimeError(f"a task ended with status {p.wait()}")
            results.append(json.loads(line))
        if any(r != results[0] for r in results):
            raise RuntimeError(f"the tasks differ: {results}"[:400])
        if "error" in results[0]:
            raise RuntimeError(results[0]["error"])
        return results[0]


def run(case, tf):
    if tf.__name__ == "tensorflow":
        tf.keras.backend.clear_session()
        return {"one": trained(tf, case)}
    return Tasks.run(case)


def near(a, b, tolerance):
    if isinstance(a, list):
        return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b))
    return a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def agree(case, ours, theirs):
    tolerance = max(TOLERANCE.get(f, 1e-5) for f in case["features"])
    for what in ("weights", "losses", "iterations"):
        one, many = ours["one"][what], ours["many"][what]
        if not near(one, theirs["one"][what], tolerance):
            return f"{what} on one device"
        if not near(one, many, tolerance) or (case["slices"] and one != many):
            return f"{what} under the strategy"
    return None


def serve():
    """Runs the cases that come in, on Berth."""
    import berth as tf
    if "TF_CONFIG" not in os.environ:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
    for line in sys.stdin:
        case = json.loads(line)
        try:
            strategy = strategy_of(tf, case)
            # CentralStorage has its slices from compile().
            slices = case["slices"] if case["place"] == "central" else 0
            result = {"many": trained(tf, case, strategy, slices),
                      "one": trained(tf, case, slices=case["slices"])}
        except Exception as error:  # whatever a user would see
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    serve()
