#!/usr/bin/env python3
"""The rows of bench_ops in NumPy and PyTorch: a line per framework, op, dtype and side."""
import argparse
import json
import time
import warnings

import common
import ops_arrays
import ops_networks

SIDES = (32, 1024, 3072)
LONG = 0.3  # seconds
TYPES = ("float32", "int32", "int64", "bool")


def frameworks(cores):
    import numpy as np
    found = {"numpy": {**ops_arrays.numpy_ops(np), **ops_networks.numpy_ops(np)}}
    try:
        import torch
    except ImportError:
        return np, found
    torch.set_num_threads(cores)
    found["torch"] = {**ops_arrays.torch_ops(np, torch), **ops_networks.torch_ops(np, torch)}
    return np, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rows", required=True, help="output of bench_ops: what to time")
    args = parser.parse_args()
    wanted = set()
    with open(args.rows) as file:
        for line in map(json.loads, file):
            wanted.add((line["op"], line["dtype"], line["side"]))
    common.use_cores(args.cores)
    warnings.simplefilter("ignore")
    np, found = frameworks(args.cores)
    for side in SIDES:
        for framework, ops in found.items():
            for name, make in ops.items():
                for dtype in TYPES:
                    if (name, dtype, side) not in wanted:
                        continue
                    try:
                        call = make(dtype, side)
                        if call is None:  # the row is not of this dtype
                            continue
                        call()
                        begin = time.perf_counter()
                        call()
                        once = time.perf_counter() - begin
                    except (TypeError, RuntimeError, KeyError, ValueError, NotImplementedError,
                            AttributeError):
                        continue  # this framework has no such op for this dtype
                    # What takes long needs no second look.
                    best = once if once > LONG else common.measure(call, args.seconds)[0]
                    print(json.dumps({"bench": "peer", "framework": framework, "op": name,
                                      "dtype": dtype, "side": side,
                                      "best_us": round(best * 1e6, 3)}), flush=True)


if __name__ == "__main__":
    main()
