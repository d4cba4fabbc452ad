#!/usr/bin/env python3
"""The training steps of bench_gpu in PyTorch 2: the same models, weights and batches.

    gpu_torch.py [--model mlp|resnet50|gpt2|product] [--device cuda] [--variants A,B] [--small]
                 [--blocks 20] [--seconds 30] [--dtype bfloat16]
    gpu_torch.py --fixture > bench/gpu/losses.json      (on the processor, float32)

Prints a JSON line per variant (docs/json.md): eager; compile; reduce_overhead (torch.compile with
CUDA graphs); whole_graph (the compiled step and its update captured as one CUDA graph);
max_autotune, when it is asked for. Ends with 77, and the reason, where it cannot run.
bench/models/drawn_model.h has the rule that weights and batches follow from.
"""
import argparse
import json
import math
import sys
import time

SKIP_STATUS = 77
VARIANTS = ("eager", "compile", "reduce_overhead", "whole_graph")
SIZES = {
    "mlp": {"batch": 64, "inputs": 784, "hidden": 128, "classes": 10},
    "resnet50": {"batch": 128, "image": 224, "width": 64, "classes": 1000, "rate": 0.1},
    "gpt2": {"batch": 16, "sequence": 512, "layers": 12, "width": 768, "heads": 12,
             "tokens": 50257, "rows": 50304, "positions": 1024},
}
SMALL = {
    "mlp": {"batch": 8, "inputs": 784, "hidden": 32, "classes": 10},
    "resnet50": {"batch": 4, "image": 65, "width": 8, "classes": 10, "rate": 0.001},
    "gpt2": {"batch": 2, "sequence": 16, "layers": 2, "width": 32, "heads": 4, "tokens": 61,
             "rows": 64, "positions": 32},
}


def skip(reason):
    print(json.dumps({"bench": "gpu_peer", "framework": "torch", "skipped": reason}), flush=True)
    sys.exit(SKIP_STATUS)


try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    skip(f"PyTorch is not installed here: {error}")


def drawn(identity, count):
    """Numbers of a sequence, in [-1, 1)."""
    i = np.arange(1, count + 1, dtype=np.uint32)
    with np.errstate(over="ignore"):
        x = i * np.uint32(2654435761) + np.uint32((identity + 1) * 2246822519 & 0xffffffff)
        x ^= x >> np.uint32(16)
        x *= np.uint32(73244475)
        x ^= x >> np.uint32(15)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)


def whole(identity, shape, below):
    share = (drawn(identity, math.prod(shape)).astype(np.float64) + 1) * 0.5
    return torch.from_numpy((share * below).astype(np.int64).reshape(shape))


class Weights:
    """Sets parameters in the order in which bench/models declares them."""

    def __init__(self):
        self.count = 0

    def set(self, parameter, deviation, fill=0.0, order=None):
        """`order`: from our layout to PyTorch's."""
        shape = parameter.shape
        if order is not None:
            shape = [shape[order.index(i)] for i in range(len(order))]
        if deviation > 0:
            values = drawn(self.count, math.prod(shape)) * np.float32(deviation * math.sqrt(3.0))
            values = torch.from_numpy(values.reshape(tuple(shape)))
            values = values if order is None else values.permute(order)
        else:
            values = torch.full(tuple(parameter.shape), fill)
        with torch.no_grad():
            parameter.copy_(values)
        self.count += 1

    def linear(self, layer, deviation):
        self.set(layer.weight, deviation, order=[1, 0])
        self.set(layer.bias, 0)

    def norm(self, layer):
        self.set(layer.weight, 0, 1.0)
        self.set(layer.bias, 0)

    def conv(self, layer):
        out, into, height, width = layer.weight.shape
        self.set(layer.weight, math.sqrt(2 / (into * height * width)), order=[3, 2, 0, 1])


def make_mlp(s):
    model = nn.Sequential(nn.Linear(s["inputs"], s["hidden"]), nn.ReLU(),
                          nn.Linear(s["hidden"], s["classes"]))
    w = Weights()
    w.linear(model[0], math.sqrt(2 / s["inputs"]))
    w.linear(model[2], math.sqrt(2 / s["hidden"]))
    return model


class Unit(nn.Module):
    def __init__(self, before, after, kernel, stride, w):
        super().__init__()
        self.conv = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(after)
        w.conv(self.conv)
        w.norm(self.norm)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, before, middle, stride, project, w):
        super().__init__()
        self.reduce = Unit(before, middle, 1, 1, w)
        self.middle = Unit(middle, middle, 3, stride, w)
        self.expand = Unit(middle, 4 * middle, 1, 1, w)
        self.shortcut = Unit(before, 4 * middle, 1, stride, w) if project else nn.Identity()

    def forward(self, x):
        h = F.relu(self.middle(F.relu(self.reduce(x))))
        return F.relu(self.expand(h) + self.shortcut(x))


def make_resnet50(s):
    w = Weights()
    layers = [Unit(3, s["width"], 7, 2, w), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = s["width"]
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            middle = s["width"] << stage
            layers.append(Block(before, middle, 2 if stage and not i else 1, i == 0, w))
            before = 4 * middle
    dense = nn.Linear(before, s["classes"])
    w.linear(dense, math.sqrt(1 / before))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense)


class Layer(nn.Module):
    def __init__(self, s, w):
        super().__init__()
        dim = s["width"]
        branch = 0.02 / math.sqrt(2 * s["layers"])
        self.heads = s["heads"]
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        w.norm(self.norm1)
        w.linear(self.qkv, 0.02)
        w.linear(self.proj, branch)
        w.norm(self.norm2)
        w.linear(self.up, 0.02)
        w.linear(self.down, branch)

    def forward(self, x):
        batch, seq, dim = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, seq, 3, self.heads, dim // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, seq, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, s):
        super().__init__()
        w = Weights()
        self.tokens = nn.Embedding(s["rows"], s["width"])
        self.positions = nn.Embedding(s["positions"], s["width"])
        w.set(self.tokens.weight, 0.02)
        w.set(self.positions.weight, 0.01)
        self.layers = nn.Sequential(*[Layer(s, w) for _ in range(s["layers"])])
        self.norm = nn.LayerNorm(s["width"])
        w.norm(self.norm)
        self.register_buffer("order", torch.arange(s["sequence"]))

    def forward(self, ids):
        h = self.tokens(ids) + self.positions(self.order)
        if torch.is_autocast_enabled(h.device.type):
            h = h.to(torch.bfloat16)  # what flows from layer to layer, as in ours
        return F.linear(self.norm(self.layers(h)), self.tokens.weight).flatten(0, 1)


class Training:
    """A model on a device with its batches, loss and optimizer."""

    def __init__(self, name, sizes, device, dtype, batches, capturable):
        s = self.sizes = sizes
        self.name, self.device, self.dtype = name, device, dtype
        self.model = {"mlp": make_mlp, "resnet50": make_resnet50, "gpt2": Gpt2}[name](s).to(device)
        if name == "resnet50":
            self.model = self.model.to(memory_format=torch.channels_last)
        self.batches = [tuple(t.to(device) for t in self.batch(i)) for i in range(batches)]
        fused = {"fused": device == "cuda"}
        if name == "resnet50":
            self.update = torch.optim.SGD(self.model.parameters(), s["rate"], 0.9,
                                          weight_decay=5e-4, **fused)
        elif name == "mlp":
            self.update = torch.optim.Adam(self.model.parameters(), 1e-3, eps=1e-7,
                                           capturable=capturable, **fused)
        else:
            self.update = torch.optim.AdamW(self.model.parameters(), 3e-4, eps=1e-8,
                                            weight_decay=0.01, capturable=capturable, **fused)

    def batch(self, i):
        s, inputs, labels = self.sizes, 100000 + 2 * i, 100001 + 2 * i
        if self.name == "mlp":
            shape = (s["batch"], s["inputs"])
            return (torch.from_numpy(drawn(inputs, math.prod(shape)).reshape(shape)),
                    whole(labels, (s["batch"],), s["classes"]))
        if self.name == "resnet50":
            shape = (s["batch"], s["image"], s["image"], 3)
            x = torch.from_numpy(drawn(inputs, math.prod(shape)).reshape(shape))
            return x.permute(0, 3, 1, 2), whole(labels, (s["batch"],), s["classes"])
        return (whole(inputs, (s["batch"], s["sequence"]), s["tokens"]),
                whole(labels, (s["batch"] * s["sequence"],), s["tokens"]))

    def loss(self, x, y):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.dtype == "bfloat16"):
            return F.cross_entropy(self.model(x).float(), y)

    def step_of(self, loss_of):
        count = 0

        def step():
            nonlocal count
            x, y = self.batches[count % len(self.batches)]
            count += 1
            loss = loss_of(x, y)
            loss.backward()
            self.update.step()
            self.update.zero_grad(set_to_none=True)
            return loss.detach()

        return step

    def captured(self):
        """The whole step as one CUDA graph: inputs are copied to where it reads them."""
        x, y = (t.clone(memory_format=torch.preserve_format) for t in self.batches[0])
        loss_of = torch.compile(self.loss)

        def once():
            self.update.zero_grad(set_to_none=True)
            loss = loss_of(x, y)
            loss.backward()
            self.update.step()
            return loss

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                once()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = once()
        count = 0

        def step():
            nonlocal count
            a, b = self.batches[count % len(self.batches)]
            count += 1
            x.copy_(a)
            y.copy_(b)
            graph.replay()
            return kept.detach()

        return step


def make_step(training, variant):
    if variant == "eager":
        return training.step_of(training.loss)
    if variant == "whole_graph":
        return training.captured()
    mode = {"compile": "default", "reduce_overhead": "reduce-overhead",
            "max_autotune": "max-autotune"}[variant]
    return training.step_of(torch.compile(training.loss, mode=mode))


def measure(step, wait, blocks, seconds):
    """Sorted seconds per call of blocks of about 20 ms, each ended by waiting for the device."""
    def block(calls):
        start = time.perf_counter()
        for _ in range(calls):
            step()
        wait()
        return (time.perf_counter() - start) / calls

    for _ in range(3):
        block(1)
    once = min(block(1), block(3))
    calls = int(min(max(0.02 / once, 1), 10000))
    found, begin = [], time.perf_counter()
    while len(found) < blocks and (len(found) < 5 or time.perf_counter() - begin < seconds):
        found.append(block(calls))
    return sorted(found)


def report(args, model, variant, make):
    """make() -> (step, fields); prints a line."""
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    line = {"bench": "gpu_peer", "framework": "torch", "version": torch.__version__,
            "variant": variant, "model": model, "small": args.small,
            "card": torch.cuda.get_device_name() if args.device == "cuda" else "processor"}
    try:
        start = time.perf_counter()
        step, fields = make()
        first = step()
        wait()
        line["first_call_seconds"] = time.perf_counter() - start
        if first is not None:
            line["first_loss"] = float(first)
        found = measure(step, wait, args.blocks, args.seconds)
        median = found[len(found) // 2]
        line |= {"best_us": found[0] * 1e6, "median_us": median * 1e6, "blocks": len(found)}
        line |= fields(median)
    except Exception as error:  # a peer that cannot is a finding, not a crash
        line["failed"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    print(json.dumps(line), flush=True)


def product(args):
    size = 128 if args.small else 8192
    def make():
        a, b = (torch.from_numpy(drawn(i, size * size).reshape(size, size)).to(
            args.device, torch.bfloat16) for i in (1, 2))
        out = torch.empty_like(a)
        def step():
            torch.matmul(a, b, out=out)
        return step, lambda t: {"size": size, "tflops": 2e-12 * size**3 / t}
    report(args, "product", "eager", make)


def training_step(args, model):
    dtype = "float32" if model == "mlp" else args.dtype
    sizes = (SMALL if args.small else SIZES)[model]
    for variant in args.variants:
        if args.device == "cpu" and variant in ("reduce_overhead", "whole_graph"):
            continue
        def make(variant=variant):
            torch.compiler.reset()
            training = Training(model, sizes, args.device, dtype, 4, variant == "whole_graph")
            count = sum(p.numel() for p in training.model.parameters())
            return make_step(training, variant), lambda t: {
                "parameters": count, "examples_per_second": sizes["batch"] / t}
        report(args, model, variant, make)


def fixture():
    """Losses of steps on two batches in turns, at small sizes, in float32.

    Of ResNet-50 two: at this size roundings grow tenfold per step, in PyTorch, too (float32
    against float64).
    """
    losses = {}
    for model, sizes in SMALL.items():
        training = Training(model, sizes, "cpu", "float32", 2, False)
        step = training.step_of(training.loss)
        losses[model] = [round(float(step()), 6)
                         for _ in range(2 if model == "resnet50" else 6)]
    print(json.dumps({"torch": torch.__version__, "losses": losses}, indent=1))


def main():
    parser = argparse.ArgumentParser(description="Training steps of bench_gpu in PyTorch.")
    parser.add_argument("--model", choices=(*SIZES, "product"), default="")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--fixture", action="store_true")
    args = parser.parse_args()
    args.variants = args.variants.split(",")
    for variant in args.variants:
        if variant not in (*VARIANTS, "max_autotune"):
            parser.error(f"there is no variant {variant}")
    if args.fixture:
        return fixture()
    if args.device == "cuda" and not torch.cuda.is_available():
        skip("PyTorch finds no CUDA device")
    torch.backends.cudnn.benchmark = True  # its fastest convolutions
    for model in [args.model] if args.model else ["product", *SIZES]:
        product(args) if model == "product" else training_step(args, model)


if __name__ == "__main__":
    main()
