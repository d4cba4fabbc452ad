#!/usr/bin/env python3
"""Times every row of bench_ops against NumPy and PyTorch in the same session, worst first.

    bench/ops.py [--build build/release] [--python PEERS/bin/python] [--cores 1] [--seconds 0.1]
                 [--only NAME] [--repeat FILE] [--isa v3]
    bench/ops.py --levels v3,v4

Prints a JSON line per row: `share`, the time of the fastest peer over ours (higher is better), and
the times in microseconds. Rows without a partner follow, each with its reason; a row that has
neither is an error. --repeat FILE times again the rows of an earlier output below 0.3 and keeps
the better time of each program, for a machine that others use. --isa runs ours with the kernels
of another level of x86-64 (BERTH_ISA). --levels compares two levels, without peers: `ratio` is the
time of the first over that of the second, worst first; 2 is what half as wide vectors explain.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
ALIKE = "the kernel is that of the row without _like"
ALONE = "no framework has it as one call"
GRADIENT = "a gradient that frameworks do not have as one call"
NO_PARTNER = {
    "divide_no_nan": ALONE, "multiply_no_nan": ALONE, "xdivy": ALONE,
    "linear_recurrence_0": ALONE, "linear_recurrence_1": ALONE,
    "segment_recurrence_0": ALONE, "segment_recurrence_1": ALONE, "in_top_10": ALONE,
    "concat_grad_0": "a slice", "concat_grad_1": "a slice",
    "mirror_pad_grad": GRADIENT, "tile_grad": GRADIENT, "tile_grad_like": ALIKE,
    "strided_slice_grad_like": ALIKE, "broadcast_like_0": ALIKE, "broadcast_like_1": ALIKE,
    "gather_grad_like": ALIKE, "scatter_nd_like": ALIKE,
    "variable_scatter_div": "as variable_scatter_mul",
    "variable_scatter_nd_update": "as variable_scatter_update",
    "variable_scatter_nd_add": "as variable_scatter_add",
    "variable_scatter_nd_sub": "as variable_scatter_sub",
    "max_pool_grad_grad": GRADIENT,
    "lstm": "theirs includes the product of the inputs: bench_lstm",
    "lstm_grad": "theirs includes the product of the inputs: bench_lstm",
    "keras_momentum": "as momentum",
}


def lines(command, isa=""):
    env = {**os.environ, "BERTH_ISA": isa} if isa else None
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env)
    if done.returncode not in (0, 77):
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def key(line):
    return line.get("op"), line.get("dtype"), line.get("side")


def compare(args, name):
    """Rows with a share, then those without a partner."""
    common = ["--cores", args.cores, "--seconds", args.seconds]
    ours = lines([f"{args.build}/bin/bench_ops", *common, "--model", name], args.isa)
    peers = {}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as wanted:
        wanted.write("".join(json.dumps(line) + "\n" for line in ours))
        wanted.flush()
        for line in lines([args.python, str(HERE / "peers/python/ops.py"), *common, "--rows",
                           wanted.name]):
            peers.setdefault(key(line), {})[line["framework"]] = line["best_us"]
    with_partner = {op for op, _, _ in peers}
    rows, others = [], []
    for line in ours:
        row = {name: line.get(name) for name in ("op", "dtype", "side")}
        times = peers.get(key(line))
        if "failed" in line:
            others.append({**row, "failed": line["failed"]})
        elif times and "best_us" in line:
            rows.append({**row, "cores": int(args.cores), "best_us": line["best_us"], **times})
        elif "best_us" in line:
            why = ("neither has it for this dtype" if row["op"] in with_partner else
                   NO_PARTNER.get(row["op"]))
            others.append({**row, "best_us": line["best_us"], "no_partner": why})
    return rows, others


def compare_levels(args):
    """Prints the times of the first level over those of the second."""
    program = [f"{args.build}/bin/bench_ops", "--cores", args.cores, "--seconds", args.seconds,
               "--model", args.only]
    one, two = ({key(line): line["best_us"] for line in lines(program, isa) if "best_us" in line}
                for isa in args.levels.split(","))
    rows = [(one[k] / max(two[k], 1e-3), k) for k in one if k in two]
    for ratio, (op, dtype, side) in sorted(rows, reverse=True, key=lambda row: row[0]):
        print(json.dumps({"op": op, "dtype": dtype, "side": side, "ratio": round(ratio, 2),
                          "best_us": one[op, dtype, side]}))


def shared(row):
    peer = min(row[p] for p in ("numpy", "torch") if p in row)
    return {**row, "share": round(peer / max(row["best_us"], 1e-3), 3)}


def repeat(args):
    """The rows of a file, those below 0.3 with the better times of a second try."""
    old = [json.loads(line) for line in open(args.repeat) if line.startswith("{")]
    rows = {key(r): r for r in old if "share" in r}
    for name in sorted({r["op"] for r in rows.values() if r["share"] < 0.3}):
        for again in compare(args, name)[0]:
            row = rows.setdefault(key(again), again)
            for program in ("best_us", "numpy", "torch"):
                if program in again:
                    row[program] = min(row.get(program, again[program]), again[program])
    return list(rows.values()), [r for r in old if "share" not in r]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--cores", default="1")
    parser.add_argument("--seconds", default="0.1")
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", default="")
    parser.add_argument("--isa", default="")
    parser.add_argument("--levels", default="")
    args = parser.parse_args()
    if args.levels:
        return compare_levels(args)
    rows, others = repeat(args) if args.repeat else compare(args, args.only)
    for row in sorted(map(shared, rows), key=lambda r: r["share"]):
        print(json.dumps(row))
    for row in others:
        print(json.dumps(row))
    if any("failed" in r or not r["no_partner"] for r in others):
        sys.exit("ops.py: a row failed, or has neither a partner nor a reason in NO_PARTNER")


if __name__ == "__main__":
    main()
