#!/usr/bin/env python3
"""The planner's rows: what `berth plan` finds and proves, beside a second build's, tries and optima.

    bench/planner_rows.py [--berth build/release/bin/berth] [--beside OTHER/bin/berth]
                          [--rows published,tries,small,large] [--seed 1] [--share 0.33]
                          [--data $BERTH_DATA] [--effort 1s] [--repeat 1]

- `published`: the inputs of dnn-partitioning in DATA/placement/{throughput,latency};
- `tries`: training graphs of four kinds on machines of three shapes, a share of them drawn by the
  seed; `over_try` is the value over that of the best first try (planner_first_tries.py), which
  prices Berth's plan too;
- `small`: problems of 4 to 12 ops: `closed` if the gap is 0, which for latency means that verify-plan
  tried all plans again; for throughput `optimal` beside CP-SAT, where ortools is there;
- `large`: 100,000 ops on 1,024 devices.

Of --repeat runs the median value counts. Every plan goes through `berth verify-plan`. Efforts in
moves, such as moves=20000, give the same on any machine. One JSON line per row, then a summary per
kind; the exit status is 1 when a plan is refused or a price differs.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

import planner_first_tries as tries
from planner_problems import KINDS, Machine, graph_text, make, random_problem

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL, SOLVER_SECONDS, ROUNDING = 100, 30, 1e-9


def plan(berth, options, files, objective):
    """Berth's answers (the one of median value, verified) and the CPU seconds of one run."""
    out = str(options.folder / "plan.json")
    common = [*files, "--objective", objective]
    answers, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(options.repeat):
        done = subprocess.run([berth, "plan", *common, "--effort", options.effort, "--json",
                               "--out", out], capture_output=True, text=True)
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        answers.append(answer)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answers.sort(key=lambda a: a.get("value") or 0)
    answer = answers[len(answers) // 2]
    answer["cpu"] = (after.ru_utime - before.ru_utime) / options.repeat
    if answer.get("value") is not None:
        file, *rest = files
        checked = subprocess.run([berth, "verify-plan", file, out, *rest, "--objective", objective],
                                 capture_output=True, text=True)
        answer["verified"] = checked.returncode == 0
    return answer


def measure(options, row, files, objective):
    """Fills a row with Berth's answer, and what it is over the other build's."""
    answer = plan(options.berth, options, files, objective)
    value, bound = answer.get("value"), answer.get("bound") or 0
    row.update(objective=objective, status=answer.get("status"), value=value, bound=bound,
               gap=value / bound - 1 if value and bound else None, cpu=round(answer["cpu"], 2),
               wrong=not answer.get("verified", True))
    if options.beside and value is not None:
        other = plan(options.beside, options, files, objective)
        if other.get("value") and other.get("bound") and bound:
            row.update(value_over=value / other["value"], bound_over=bound / other["bound"],
                       gap_more=100 * (row["gap"] - other["value"] / other["bound"] + 1),
                       cpu_beside=round(other["cpu"], 2))
    return answer


def write(options, graph, machine):
    files = options.folder / "graph.txt", options.folder / "cluster.json"
    files[0].write_text(graph_text(graph))
    files[1].write_text(machine.cluster())
    return [str(files[0]), "--cluster", str(files[1])]


def published(options):
    for objective in ("throughput", "latency"):
        for file in sorted(pathlib.Path(options.data, "placement", objective).glob("*.json")):
            row = {"rows": f"published {objective}", "input": file.stem}
            problem = options.folder / "problem.json"
            with open(problem, "w", encoding="utf-8") as out:
                subprocess.run([ROOT / "tools" / "plan_problem", file, "--objective", objective],
                               stdout=out, check=True)
            measure(options, row, [str(problem)], objective)
            yield row


def first_tries(options):
    rows = itertools.product((1200, 6000), (4, 16), ("flat", "nodes", "mixed"), KINDS,
                             ("latency", "throughput"), ("free", "tight"))
    all_rows = list(rows)
    drawn = random.Random(options.seed).sample(all_rows, round(options.share * len(all_rows)))
    for ops, devices, shape, kind, objective, memory in drawn:
        graph, machine = make(kind, ops, options.seed), Machine(shape, devices)
        model = tries.Model(graph, machine)
        if memory == "tight":
            machine.limit = tries.tight_limit(model)
        row = {"rows": f"tries {objective}", "kind": kind, "ops": len(graph.ops),
               "devices": devices, "shape": shape, "memory": memory}
        answer = measure(options, row, write(options, graph, machine), objective)
        if row["value"] is not None:
            device, index = [-1] * len(graph.ops), {}
            for at, op in enumerate(answer["ops"]):
                if op["name"].startswith("n"):
                    index[at] = int(op["name"][1:])
                    device[index[at]] = machine.number(op["device"])
            ours = model.value(objective, device, [index[at] for at in answer["sequence"]])
            row["wrong"] |= abs(ours - row["value"]) > 1e-6 * ours
            row["over_try"] = row["value"] / tries.best_first_try(model, objective)[0]
        yield row


def small(options):
    try:
        import planner_exact
    except ImportError:
        planner_exact = None
    for objective in ("latency", "throughput"):
        for k in range(SMALL):
            graph, machine = random_problem(random.Random(f"{options.seed} {objective} {k}"), 4, 12)
            row = {"rows": f"small {objective}", "problem": k}
            measure(options, row, write(options, graph, machine), objective)
            if row["gap"] is not None:
                row["closed"] = row["gap"] <= 1e-5
            if planner_exact and objective == "throughput":
                best = planner_exact.throughput(graph, machine, SOLVER_SECONDS)
                if best is None:
                    row["wrong"] |= row["value"] is not None
                elif best != "unknown":
                    row["optimal"] = (row["value"] or 0) <= best * (1 + ROUNDING)
                    row["wrong"] |= (row["value"] is None or row["bound"] > best * (1 + ROUNDING)
                                     or row["value"] < best * (1 - ROUNDING))
            yield row


def large(options):
    graph, machine = make("gpt", 100_000, options.seed), Machine("flat", 1024)
    row = {"rows": "large", "ops": len(graph.ops), "devices": 1024}
    answer = measure(options, row, write(options, graph, machine), "latency")
    row["seconds"] = answer.get("seconds")
    row["peak_gib"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2 ** 20
    yield row


def summary(name, rows):
    line = {"summary": name, "rows": len(rows), "planned": sum(r["value"] is not None for r in rows),
            "wrong": sum(r["wrong"] for r in rows), "cpu": round(sum(r["cpu"] for r in rows), 1)}
    for key, worst in (("value_over", max), ("bound_over", min), ("gap_more", max),
                       ("over_try", max), ("gap", max)):
        found = [r[key] for r in rows if r.get(key) is not None]
        if found:
            line[key] = {"median": statistics.median(found), "worst": worst(found)}
    for key in ("optimal", "closed"):
        found = [r[key] for r in rows if key in r]
        if found:
            line[key] = f"{sum(found)} of {len(found)}"
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=str(ROOT / "build/release/bin/berth"))
    parser.add_argument("--beside", help="the program of another build")
    parser.add_argument("--rows", default="published,tries,small,large")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.33)
    parser.add_argument("--data", default=os.environ.get("BERTH_DATA", ROOT / "../shared/data"))
    parser.add_argument("--effort", default="1s")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    options.folder = pathlib.Path(tempfile.mkdtemp(prefix="planner_rows_"))
    kinds = {"published": published, "tries": first_tries, "small": small, "large": large}
    by_name = {}
    for kind in options.rows.split(","):
        for row in kinds[kind](options):
            by_name.setdefault(row["rows"], []).append(row)
            print(json.dumps(row), flush=True)
    for name, rows in by_name.items():
        print(json.dumps(summary(name, rows)))
    sys.exit(any(r["wrong"] for rows in by_name.values() for r in rows))


if __name__ == "__main__":
    main()
