#!/usr/bin/env python3
"""The rows of bench_ops in NumPy and PyTorch: a line per framework, op, dtype and side."""
import argparse
import json
import warnings

import common

TYPES = ("float32", "int32", "int64", "bool")
# Ops of two tensors: our name and the one that most frameworks have.
PAIRS = {**{name: name for name in (
    "pow divide atan2 add subtract multiply maximum minimum greater equal logical_and "
    "logical_or").split()}, "floordiv": "floor_divide", "floormod": "remainder"}


def numpy_ops(np):
    def axis(fn, **more):
        return {"": lambda x, y: fn(x, **more), "_0": lambda x, y: fn(x, axis=0, **more),
                "_1": lambda x, y: fn(x, axis=1, **more)}

    ops = {name: (lambda fn: lambda x, y: fn(x))(getattr(np, at)) for name, at in {
        "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos",
        "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "asinh": "arcsinh", "acosh": "arccosh",
        "atanh": "arctanh", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p",
        "sqrt": "sqrt", "tanh": "tanh", "floor": "floor", "ceil": "ceil", "round": "rint",
        "reciprocal": "reciprocal", "is_nan": "isnan", "is_finite": "isfinite",
        "negative": "negative", "abs": "abs", "sign": "sign", "square": "square",
        "logical_not": "logical_not"}.items()}
    renamed = {"pow": "power", "atan2": "arctan2"}
    ops.update({name: getattr(np, renamed.get(name, at)) for name, at in PAIRS.items()})
    for name in ("float32", "float64", "int32", "int64", "bool"):
        ops["cast_" + name] = (lambda to: lambda x, y: x.astype(to))(name)
    for name, fn in {"mean": np.mean, "max": np.max, "min": np.min, "all": np.all,
                     "any": np.any}.items():
        ops.update({"reduce_" + name + at: f for at, f in axis(fn).items()})
    same = {"float32": np.float32, "int32": np.int32, "int64": np.int64}
    for name, fn in {"sum": np.sum, "prod": np.prod}.items():
        for at, over in {"": None, "_0": 0, "_1": 1}.items():
            ops["reduce_" + name + at] = (
                lambda fn, over: lambda x, y: fn(x, axis=over, dtype=same[x.dtype.name]))(fn, over)
    for at, over in {"_0": 0, "_1": 1}.items():
        ops["argmax" + at] = (lambda over: lambda x, y: np.argmax(x, axis=over))(over)
        ops["cumsum" + at] = (
            lambda over: lambda x, y: np.cumsum(x, axis=over, dtype=x.dtype))(over)
    ops.update({
        "transpose": lambda x, y: np.ascontiguousarray(x.T),
        "reverse_1": lambda x, y: np.ascontiguousarray(x[:, ::-1]),
        "tile": lambda x, y: np.tile(x, (2, 1)), "sort": lambda x, y: np.sort(x, axis=None),
        "sort_1": lambda x, y: np.sort(x, axis=1),
        "argsort": lambda x, y: np.argsort(x, axis=None, kind="stable"),
        "where": lambda x, y: np.where(x > y, x, y),
        "concat": lambda x, y: np.concatenate((x, y))})
    return ops


def torch_ops(torch):
    names = ("sin cos tan asin acos atan sinh cosh asinh acosh atanh exp expm1 log log1p sqrt rsqrt "
             "erf erfc lgamma digamma tanh sigmoid floor ceil round reciprocal relu negative abs sign "
             "square logical_not")
    ops = {name: (lambda fn: lambda x, y: fn(x))(getattr(torch, name)) for name in names.split()}
    f = torch.nn.functional
    for name, fn in {"gelu": f.gelu, "elu": f.elu, "selu": f.selu, "softplus": f.softplus,
                     "leaky_relu": f.leaky_relu, "is_nan": torch.isnan,
                     "is_finite": torch.isfinite}.items():
        ops[name] = (lambda fn: lambda x, y: fn(x))(fn)
    renamed = {"equal": "eq"}
    ops.update({name: getattr(torch, renamed.get(name, at)) for name, at in PAIRS.items()})
    for name in ("float32", "float64", "int32", "int64", "bool"):
        ops["cast_" + name] = (lambda to: lambda x, y: x.to(to))(getattr(torch, name))
    for at, over in {"": (0, 1), "_0": 0, "_1": 1}.items():
        for name, fn in {"max": torch.amax, "min": torch.amin, "mean": torch.mean}.items():
            ops[f"reduce_{name}{at}"] = (lambda fn, over: lambda x, y: fn(x, over))(fn, over)
        ops["reduce_sum" + at] = (
            lambda over: lambda x, y: torch.sum(x, over, dtype=x.dtype))(over)
        for name, fn in {"all": torch.all, "any": torch.any}.items():
            ops[f"reduce_{name}{at}"] = (lambda fn, over: lambda x, y: fn(x, over))(fn, over)
        if at:
            ops["reduce_prod" + at] = (
                lambda over: lambda x, y: torch.prod(x, over, dtype=x.dtype))(over)
            ops["argmax" + at] = (lambda over: lambda x, y: torch.argmax(x, over))(over)
            ops["cumsum" + at] = (
                lambda over: lambda x, y: torch.cumsum(x, over, dtype=x.dtype))(over)
    ops.update({
        "softmax": lambda x, y: torch.softmax(x, 1),
        "log_softmax": lambda x, y: torch.log_softmax(x, 1),
        "transpose": lambda x, y: x.t().contiguous(), "reverse_1": lambda x, y: x.flip(1),
        "tile": lambda x, y: x.tile((2, 1)), "sort": lambda x, y: torch.sort(x.reshape(-1))[0],
        "sort_1": lambda x, y: torch.sort(x, 1)[0],
        "argsort": lambda x, y: torch.argsort(x.reshape(-1), stable=True),
        "top_10": lambda x, y: torch.topk(x.reshape(-1), 10)[0],
        "where": lambda x, y: torch.where(x > y, x, y), "concat": lambda x, y: torch.cat((x, y))})
    return ops


def values(np, dtype, side, name):
    rng = np.random.default_rng(1)
    if dtype == "float32":
        low, high = (0.1, 0.9) if name in ("asin", "acos", "atanh") else (
            (1.1 if name == "acosh" else 0.5), 2.5)
        return rng.uniform(low, high, (side, side)).astype(np.float32)
    if dtype == "bool":
        return rng.uniform(size=(side, side)) > 0.5
    return rng.integers(1, 1000, (side, side)).astype(dtype)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--model", default="")
    args = parser.parse_args()
    common.use_cores(args.cores)
    warnings.simplefilter("ignore")
    import numpy as np
    frameworks = {"numpy": (numpy_ops(np), lambda x: x)}
    try:
        import torch
        torch.set_num_threads(args.cores)
        frameworks["torch"] = (torch_ops(torch), torch.from_numpy)
    except ImportError:
        pass
    for side in (32, 1024, 3072):
        for dtype in TYPES:
            for framework, (ops, wrap) in frameworks.items():
                for name, fn in ops.items():
                    if args.model and name != args.model:
                        continue
                    x, y = (wrap(values(np, dtype, side, name)) for _ in range(2))
                    try:
                        best, _ = common.measure(lambda: fn(x, y), args.seconds)
                    except (TypeError, RuntimeError, KeyError, ValueError):
                        continue  # this framework has no such op for this dtype
                    print(json.dumps({"bench": "peer", "framework": framework, "op": name,
                                      "dtype": dtype, "side": side, "best_us": round(best * 1e6, 3)}),
                          flush=True)


if __name__ == "__main__":
    main()
