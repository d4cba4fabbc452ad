"""Training steps in JAX: one jitted function with donated state."""
import common

args = common.parse()
if args.model == "lstm":
    raise SystemExit(77)  # JAX has no layer of its own
common.use_cores(args.cores)

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


def normal(*shape, scale=0.05):
    return jnp.asarray(rng.normal(0, scale, shape), jnp.float32)


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(p, x, state):
    mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    state.append((mean, variance))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]


def unit(before, after, kernel):
    return {"w": normal(kernel, kernel, before, after, scale=(2 / (kernel**2 * before))**0.5),
            "scale": jnp.ones(after), "shift": jnp.zeros(after)}


def resnet18():
    p, before = {"stem": unit(3, 64, 3), "dense": normal(512, 10), "bias": jnp.zeros(10)}, 64
    strides = []
    for stage in range(4):
        for i in range(2):
            after, stride = 64 << stage, 2 if stage and not i else 1
            block = {"one": unit(before, after, 3), "two": unit(after, after, 3)}
            if stride == 2:
                block["shortcut"] = unit(before, after, 1)
            p[f"block{len(strides)}"] = block
            strides.append(stride)
            before = after

    def forward(p, x):
        state = []
        h = jax.nn.relu(batch_norm(p["stem"], conv(x, p["stem"]["w"]), state))
        for i, stride in enumerate(strides):
            b = p[f"block{i}"]
            y = jax.nn.relu(batch_norm(b["one"], conv(h, b["one"]["w"], stride), state))
            y = batch_norm(b["two"], conv(y, b["two"]["w"]), state)
            if stride == 2:
                h = batch_norm(b["shortcut"], conv(h, b["shortcut"]["w"], stride), state)
            h = jax.nn.relu(y + h)
        return jnp.mean(h, (1, 2)) @ p["dense"] + p["bias"], state

    running = [(jnp.zeros(n), jnp.ones(n)) for n in
               [64] + sum([[64 << (i // 2)] * (3 if s == 2 else 2)
                           for i, s in enumerate(strides)], [])]
    return p, forward, running


def gpt(layers, dim, heads, seq, batch, vocab):
    def norm():
        return {"scale": jnp.ones(dim), "shift": jnp.zeros(dim)}

    def dense(before, after):
        return {"w": normal(before, after, scale=0.02), "b": jnp.zeros(after)}

    p = {"tokens": normal(vocab, dim), "positions": normal(seq, dim), "norm": norm(),
         "head": normal(dim, vocab), "layers": [
             {"norm1": norm(), "norm2": norm(), "qkv": dense(dim, 3 * dim),
              "proj": dense(dim, dim), "up": dense(dim, 4 * dim), "down": dense(4 * dim, dim)}
             for _ in range(layers)]}
    mask = jnp.tril(jnp.ones((seq, seq), bool))

    def normed(n, x):
        mean = jnp.mean(x, -1, keepdims=True)
        variance = jnp.var(x, -1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * n["scale"] + n["shift"]

    def apply(d, x):
        return x @ d["w"] + d["b"]

    def forward(p, ids):
        h = p["tokens"][ids] + p["positions"]
        for l in p["layers"]:
            parts = apply(l["qkv"], normed(l["norm1"], h))
            q, k, v = parts.reshape(batch, seq, 3, heads, dim // heads).transpose(2, 0, 3, 1, 4)
            scores = jnp.where(mask, q @ k.swapaxes(-1, -2) * (dim // heads)**-0.5, -jnp.inf)
            mixed = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, seq, dim)
            h = h + apply(l["proj"], mixed)
            h = h + apply(l["down"], jax.nn.gelu(apply(l["up"], normed(l["norm2"], h)),
                                                 approximate=False))
        return (normed(p["norm"], h) @ p["head"]).reshape(-1, vocab), []

    return p, forward, []


def small():
    if args.model == "cnn":
        p = {"w": normal(3, 3, 1, 32), "b": jnp.zeros(32), "w2": normal(14 * 14 * 32, 10),
             "b2": jnp.zeros(10)}
    else:
        p = {"w": normal(784, 128), "b": jnp.zeros(128), "w2": normal(128, 10),
             "b2": jnp.zeros(10)}

    def forward(p, x):
        if args.model == "cnn":
            h = jax.nn.relu(conv(x, p["w"]) + p["b"])
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            h = h.reshape(h.shape[0], -1)
        else:
            h = jax.nn.relu(x @ p["w"] + p["b"])
        return h @ p["w2"] + p["b2"], []

    return p, forward, []


def make():
    g = common.GPT
    classes, count = (g["vocab"], g["batch"] * g["seq"]) if args.model == "gpt" else (10, 64)
    if args.model == "gpt":
        p, forward, running = gpt(**g)
        inputs = [rng.integers(0, classes, (g["batch"], g["seq"])) for _ in range(4)]
    elif args.model == "resnet18":
        p, forward, running = resnet18()
        count = 32
        inputs = [rng.random((32, 32, 32, 3), np.float32) for _ in range(4)]
    else:
        p, forward, running = small()
        shape = (64, 28, 28, 1) if args.model == "cnn" else (64, 784)
        inputs = [rng.random(shape, np.float32) for _ in range(4)]
    inputs = [jnp.asarray(x) for x in inputs]
    labels = [jnp.asarray(rng.integers(0, classes, count)) for _ in range(4)]
    momentum = args.model == "resnet18"
    decay = 0.01 if args.model == "gpt" else 0
    rate = {"resnet18": 0.1, "gpt": 3e-4}.get(args.model, 1e-3)
    zeros = jax.tree.map(jnp.zeros_like, p)
    state = (p, zeros, jax.tree.map(jnp.zeros_like, p), jnp.zeros(()), running)

    def loss_of(p, x, y):
        logits, moments = forward(p, x)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)
        return -jnp.mean(picked), moments

    def train(state, x, y):
        p, m, v, t, running = state
        (loss, moments), g = jax.value_and_grad(loss_of, has_aux=True)(p, x, y)
        if momentum:
            m = jax.tree.map(lambda m, g, p: 0.9 * m + g + 5e-4 * p, m, g, p)
            p = jax.tree.map(lambda p, m: p - rate * m, p, m)
        else:
            t = t + 1
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
            scale = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            p = jax.tree.map(lambda p, m, v: p * (1 - rate * decay) -
                             scale * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        running = jax.tree.map(lambda r, b: 0.9 * r + 0.1 * b, running, moments)
        return (p, m, v, t, running), loss

    train = jax.jit(train, donate_argnums=0)
    count = 0

    def step():
        nonlocal count, state
        state, loss = train(state, inputs[count % 4], labels[count % 4])
        count += 1
        loss.block_until_ready()

    return step


common.report("jax", jax.__version__, args, [("jit", make)])
