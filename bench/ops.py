#!/usr/bin/env python3
"""Times every row of bench_ops against NumPy and PyTorch in the same session, worst first.

    bench/ops.py [--build build/release] [--python PEERS/bin/python] [--cores 1] [--seconds 0.1]
                 [--only NAME]

Prints a JSON line per row: `share`, the time of the fastest peer over ours (higher is better), and
the times in microseconds. A row that neither peer has is left out.
"""
import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def lines(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 77):
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--cores", default="1")
    parser.add_argument("--seconds", default="0.1")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    common = ["--cores", args.cores, "--seconds", args.seconds, "--model", args.only]
    ours = lines([f"{args.build}/bin/bench_ops", *common])
    peers = {}
    for line in lines([args.python, str(HERE / "peers/python/ops.py"), *common]):
        peers.setdefault((line["op"], line["dtype"], line["side"]), {})[line["framework"]] = line["best_us"]
    rows = []
    for line in ours:
        times = peers.get((line.get("op"), line.get("dtype"), line.get("side")))
        if "failed" in line:
            print(json.dumps(line))
        elif times and "best_us" in line:
            share = min(times.values()) / max(line["best_us"], 1e-3)
            rows.append({"op": line["op"], "dtype": line["dtype"], "side": line["side"],
                         "cores": int(args.cores), "share": round(share, 3),
                         "best_us": line["best_us"], **times})
    for row in sorted(rows, key=lambda r: r["share"]):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
