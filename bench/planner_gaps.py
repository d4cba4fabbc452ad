#!/usr/bin/env python3
"""Gaps of small latency problems: how far `berth plan` proves that its plans are from the best.

    bench/planner_gaps.py [--berth build/release/bin/berth] [--sizes 4-12,13-16,13-30]
                          [--count 100] [--effort 1s] [--seed 1]

Random problems of planner_problems.py, on 2 to 4 devices, with and without buses, unequal devices and
memory limits. One JSON line per size: problems with a plan, those without one, the share whose gap
is 0, and median, ninth decile and greatest gap.
"""
import argparse
import json
import pathlib
import random
import subprocess
import tempfile

from planner_first_tries import ROOT
from planner_problems import graph_text, random_problem

CLOSED = 1e-6  # a gap that is rounding


def gap_of(options, folder, problem):
    graph, machine = problem
    (folder / "graph.txt").write_text(graph_text(graph))
    (folder / "cluster.json").write_text(machine.cluster())
    done = subprocess.run([options.berth, "plan", str(folder / "graph.txt"), "--cluster",
                           str(folder / "cluster.json"), "--objective", "latency", "--effort",
                           options.effort, "--json"], capture_output=True, text=True)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return answer.get("gap")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=str(ROOT / "build/release/bin/berth"))
    parser.add_argument("--sizes", default="4-12,13-16,13-30")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--effort", default="1s")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="planner_gaps_"))
    for size in options.sizes.split(","):
        least, most = (int(n) for n in size.split("-"))
        gaps = [gap_of(options, folder,
                       random_problem(random.Random(f"{options.seed} {size} {k}"), least, most))
                for k in range(options.count)]
        found = sorted(g for g in gaps if g is not None)
        print(json.dumps({"ops": size, "planned": len(found), "without": len(gaps) - len(found),
                          "closed": sum(g <= CLOSED for g in found) / max(len(found), 1),
                          "median": found[len(found) // 2], "p90": found[len(found) * 9 // 10],
                          "most": found[-1]}), flush=True)


if __name__ == "__main__":
    main()
