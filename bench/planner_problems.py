"""Problems for planner_rows.py: training graphs of four kinds, any size, costs from FLOPs and bytes.

A Graph is a list of ops, forward first. Every op knows the forward op that it belongs to (`home`):
its gradients and its update have the same. Ops that use one weight share a device.
"""
import json
import random
import re

FLOPS_PER_US, BYTES_PER_US, LAUNCH_US = 1e8, 1.5e6, 4.0


class Op:
    __slots__ = ("name", "us", "reads", "out_bytes", "controls", "weight", "home", "role")

    def __init__(self, name, us, reads, out_bytes, home, role, weight=-1, controls=()):
        self.name, self.us, self.reads = name, round(us, 6), list(reads)
        self.out_bytes = [max(int(b) // 4, 1) * 4 for b in out_bytes]  # whole float32
        self.home, self.role, self.weight, self.controls = home, role, weight, list(controls)


class Graph:
    """Ops in an order in which each stands after what it reads; a value is (op, output)."""

    def __init__(self):
        self.ops, self.weight_bytes = [], []
        self.flops = []  # of forward ops

    def forward(self, name, inputs, flops, out_bytes, weight_bytes=0):
        moved = sum(self.ops[i].out_bytes[0] for i in inputs) + out_bytes + weight_bytes
        weight = -1
        if weight_bytes:
            weight = len(self.weight_bytes)
            self.weight_bytes.append(int(weight_bytes) // 4 * 4)
        us = LAUNCH_US + flops / FLOPS_PER_US + moved / BYTES_PER_US
        number = len(self.ops)
        self.ops.append(Op(name, us, [(i, 0) for i in inputs], [out_bytes], number, "forward",
                           weight))
        self.flops.append(flops)
        return number

    def add_backward(self):
        """Gradients in reverse order; weights get theirs from an op of its own, and an update."""
        count = len(self.ops)
        parts = [[] for _ in range(count)]
        for i in reversed(range(count)):
            op = self.ops[i]
            grad = parts[i]
            if len(grad) > 1:
                us = LAUNCH_US + (len(grad) + 1) * op.out_bytes[0] / BYTES_PER_US
                self.ops.append(Op(op.name + "/dsum", us, grad, [op.out_bytes[0]], i, "backward"))
                grad = [(len(self.ops) - 1, 0)]
            saved = [] if not op.reads else op.reads[:1]
            moved = sum(self.ops[p].out_bytes[k] for p, k in op.reads) + 2 * op.out_bytes[0]
            us = LAUNCH_US + self.flops[i] / FLOPS_PER_US + moved / BYTES_PER_US
            outs = [self.ops[p].out_bytes[k] for p, k in op.reads] or [op.out_bytes[0]]
            backward = len(self.ops)
            self.ops.append(Op(op.name + "/dx", us, grad + saved + ([] if grad else [(i, 0)]),
                               outs, i, "backward", op.weight))
            for k, (p, _) in enumerate(op.reads):
                parts[p].append((backward, k))
            if op.weight < 0:
                continue
            size = self.weight_bytes[op.weight]
            reads = (grad or [(backward, 0)]) + saved
            self.ops.append(Op(op.name + "/dw", us, reads, [size], i, "weight gradient"))
            self.ops.append(Op(op.name + "/update", LAUNCH_US + 3 * size / BYTES_PER_US,
                               [(len(self.ops) - 1, 0)], [], i, "update", op.weight,
                               [backward]))


def gpt(ops, rng):
    """Transformer blocks: attention and a feed-forward part around residual additions."""
    g, wide, rows = Graph(), 1024, 2048
    act = 2 * wide * rows
    dense = lambda name, x, i, o: g.forward(name, x, 2 * rows * i * o, 2 * rows * o, 2 * i * o)
    x = g.forward("tokens", [], 0, act)
    for b in range(max(1, ops // 42)):
        at = f"block{b}/"
        n = g.forward(at + "norm1", [x], 8 * wide * rows, act)
        q, k, v = (dense(at + c, [n], wide, wide) for c in "qkv")
        s = g.forward(at + "scores", [q, k], 2 * rows * 1024 * wide, 2 * rows * 1024 * 4)
        s = g.forward(at + "softmax", [s], 5 * rows * 4096, 2 * rows * 1024 * 4)
        a = g.forward(at + "mix", [s, v], 2 * rows * 1024 * wide, act)
        x = g.forward(at + "add1", [x, dense(at + "out", [a], wide, wide)], wide * rows, act)
        n = g.forward(at + "norm2", [x], 8 * wide * rows, act)
        h = dense(at + "up", [n], wide, 4 * wide)
        h = g.forward(at + "gelu", [h], 8 * 4 * wide * rows, 4 * act)
        x = g.forward(at + "add2", [x, dense(at + "down", [h], 4 * wide, wide)], wide * rows, act)
    g.forward("loss", [x], 10 * wide * rows, 1024)
    return g


def moe(ops, rng):
    """Blocks whose feed-forward part is eight experts of unequal share."""
    g, wide, rows, experts = Graph(), 768, 4096, 8
    act = 2 * wide * rows
    x = g.forward("tokens", [], 0, act)
    for b in range(max(1, ops // 120)):
        at = f"block{b}/"
        n = g.forward(at + "norm1", [x], 8 * wide * rows, act)
        q = g.forward(at + "qkv", [n], 6 * rows * wide * wide, 3 * act, 6 * wide * wide)
        a = g.forward(at + "attention", [q], 4 * rows * 512 * wide, act)
        o = g.forward(at + "out", [a], 2 * rows * wide * wide, act, 2 * wide * wide)
        x = g.forward(at + "add1", [x, o], wide * rows, act)
        r = g.forward(at + "route", [x], 2 * rows * wide * experts, act, 2 * wide * experts)
        shares = [rng.uniform(0.5, 1.5) for _ in range(experts)]
        outs = []
        for e, share in enumerate(shares):
            mine = int(rows * share / sum(shares))
            size = 2 * mine * wide
            t = g.forward(f"{at}e{e}/take", [r], 0, size)
            u = g.forward(f"{at}e{e}/up", [t], 8 * mine * wide * wide, 4 * size, 8 * wide * wide)
            u = g.forward(f"{at}e{e}/gelu", [u], 32 * mine * wide, 4 * size)
            outs.append(g.forward(f"{at}e{e}/down", [u], 8 * mine * wide * wide, size,
                                  8 * wide * wide))
        c = g.forward(at + "combine", outs, 2 * rows * wide, act)
        x = g.forward(at + "add2", [x, c], wide * rows, act)
    g.forward("loss", [x], 10 * wide * rows, 1024)
    return g


def resnet(ops, rng):
    """Bottleneck blocks of convolutions, in four groups of halving resolution."""
    g, batch = Graph(), 32
    blocks = max(4, ops // 21)
    size, planes = 56, 64
    x = g.forward("image", [], 0, batch * 112 * 112 * 64)

    def conv(name, x, ins, outs, kernel, stride=1):
        pixels = batch * size * size
        y = g.forward(name, [x], 2 * pixels * ins * outs * kernel * kernel, 2 * pixels * outs,
                      2 * ins * outs * kernel * kernel)
        return g.forward(name + "/norm", [y], 8 * pixels * outs, 2 * pixels * outs)

    ins = 64
    for b in range(blocks):
        at = f"block{b}/"
        if b and b % max(1, blocks // 4) == 0 and planes < 512:
            size, planes = size // 2, planes * 2
        short = x if ins == 4 * planes else conv(at + "short", x, ins, 4 * planes, 1)
        y = conv(at + "a", x, ins, planes, 1)
        y = conv(at + "b", y, planes, planes, 3)
        y = conv(at + "c", y, planes, 4 * planes, 1)
        ins = 4 * planes
        x = g.forward(at + "add", [short, y], batch * size * size * ins,
                      2 * batch * size * size * ins)
    g.forward("loss", [x], 1e6, 1024)
    return g


def cell(ops, rng):
    """Cells of five pairs that read any of the two cells before and of the pairs so far."""
    g, act = Graph(), 2 * 32 * 28 * 28 * 96
    before = last = g.forward("image", [], 0, act)
    for b in range(max(2, ops // 52)):
        states, used = [before, last], set()
        for pair in range(5):
            sides = []
            for side in "xy":
                at, i = f"cell{b}/{pair}{side}", rng.randrange(len(states))
                used.add(i)
                if rng.random() < 0.3:
                    sides.append(g.forward(at + "/pool", [states[i]], 9 * act, act))
                else:
                    k = rng.choice([3, 5])
                    sides.append(g.forward(at + "/conv", [states[i]], act * 96 * rng.choice([1, 2])
                                           + act * k * k, act, 2 * 96 * 96 + 2 * 96 * k * k))
            states.append(g.forward(f"cell{b}/{pair}/add", sides, act, act))
        left = [s for i, s in enumerate(states) if i >= 2 and i not in used]
        before, last = last, g.forward(f"cell{b}/join", left, act * 96 * len(left), act,
                                       2 * 96 * 96 * len(left))
    g.forward("loss", [last, before], 1e6, 1024)
    return g


KINDS = {"gpt": gpt, "moe": moe, "resnet": resnet, "cell": cell}


def make(kind, ops, seed):
    g = KINDS[kind](ops, random.Random(seed))
    g.add_backward()
    return g


class Machine:
    """Devices of one speed or two, links within nodes of eight and between them."""

    def __init__(self, shape, count):
        self.shape, self.count, self.limit, self.slow = shape, count, 0, 0.4
        self.speed = [1.0 if shape != "mixed" or d % 2 == 0 else self.slow for d in range(count)]
        self.node = [d // 8 if shape == "nodes" else 0 for d in range(count)]
        self.near = (5.0, 5e4 if shape == "nodes" else 1.2e4)
        self.far = (15.0, 6e3)

    def link(self, a, b):
        return self.near if self.node[a] == self.node[b] else self.far

    def path(self, a, b):
        """What a transfer occupies for its whole time; each carries one at a time."""
        return [self.shared(a, b)] if self.node[a] != self.node[b] else []

    def number(self, name):
        """The device with a name such as GPU:3."""
        return int(re.search(r"GPU:(\d+)", name).group(1))

    def shared(self, a, b):
        """The card of a node carries what comes in from other nodes, one transfer at a time."""
        return -1 if self.node[a] == self.node[b] else self.node[b]

    def cluster(self):
        named = lambda l: {"latency_us": l[0], "bandwidth_bytes_per_us": l[1]}
        classes = [{"name": "fast", "type": "GPU", "speed": 1},
                   {"name": "slow", "type": "GPU", "speed": self.slow}]
        devices = []
        for d in range(self.count):
            device = {"name": f"GPU:{d}", "class": "fast" if self.speed[d] == 1 else "slow"}
            if self.limit:
                device["memory_bytes"] = self.limit
            devices.append(device)
        links = [dict({"from": f"GPU:{a}", "to": f"GPU:{b}", "one_way": True,
                       "shared": self.shared(a, b)}, **named(self.far))
                 for a in range(self.count) for b in range(self.count)
                 if self.node[a] != self.node[b]]
        return json.dumps({"devices": devices, "links": links, "default_link": named(self.near),
                           "classes": classes})


def random_problem(rng, least_ops, most_ops):
    """Times are whole: copies take a latency and one us for each 4 bytes."""
    g, count = Graph(), rng.randint(least_ops, most_ops)
    weights = rng.randint(0, 2)
    g.weight_bytes = [4 * rng.randint(1, 8) for _ in range(weights)]
    for i in range(count):
        reads = rng.sample(range(i), min(i, rng.choice([0, 1, 1, 2, 3])))
        weight = rng.randrange(weights) if weights and rng.random() < 0.35 else -1
        g.ops.append(Op(f"op{i}", rng.randint(1, 20), [(r, 0) for r in sorted(reads)],
                        [4 * rng.randint(1, 12)], i, "forward", weight))
    return g, make_machine(rng, 4, sum(g.weight_bytes) + sum(op.out_bytes[0] for op in g.ops))


def make_machine(rng, most, held):
    """Up to `most` devices; in a third of them `held` bytes need several, or do not fit."""
    mixed = rng.random() < 0.4
    m = Machine("mixed" if mixed else "flat", rng.randint(2, most))
    m.slow = 0.5
    m.speed = [1.0 if not mixed or d % 2 == 0 else m.slow for d in range(m.count)]
    m.near, m.far = (rng.randint(0, 3), 4), (rng.randint(2, 6), 4)
    if rng.random() < 0.33:
        m.node = [d % 2 for d in range(m.count)]
    if rng.random() < 0.33:
        m.limit = max(int(held * rng.uniform(0.3, 1.2) / m.count) // 4 * 4, 4)
    return m


def graph_text(g):
    """The graph text (docs/graph-format.md); all tensors are vectors of float32."""
    lines = ["berth-graph 1", "graph made",
             "op Work (x: float32 repeated optional) -> (y...)",
             "op Dense (w: resource read, x: float32 repeated optional) -> (y...)",
             "op Update (w: resource write, g: float32) -> ()",
             "kernel Work on GPU", "kernel Dense on GPU", "kernel Update on GPU"]
    for k, size in enumerate(g.weight_bytes):
        n = size // 4
        lines.append(f'node w{k} = VarHandleOp() {{dtype = float32, shape = shape[{n}], '
                     f'shared_name = "w{k}"}} -> resource(float32)[{n}]')
    for i, op in enumerate(g.ops):
        inputs = ([f"w{op.weight}:0"] if op.weight >= 0 else [])
        inputs += [f"n{p}:{k}" for p, k in op.reads] + [f"^n{c}" for c in op.controls]
        kind = "Work" if op.weight < 0 else "Update" if op.role == "update" else "Dense"
        outs = ", ".join(f"float32[{b // 4}]" for b in op.out_bytes)
        arrow = f" -> {outs}" if outs else ""
        lines.append(f"node n{i} = {kind}({', '.join(inputs)}){arrow} time GPU {op.us:.6f}")
    last = max(i for i, op in enumerate(g.ops) if op.role == "forward")
    lines.append(f"return n{last}:0")
    return "\n".join(lines) + "\n"
