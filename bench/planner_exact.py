#!/usr/bin/env python3
"""Random small problems solved by CP-SAT, beside what `berth plan` finds and proves.

    bench/planner_exact.py [--berth build/release/bin/berth] [--count 300] [--effort 3s] [--seed 1]
                           [--objectives latency,throughput,pipeline] [--most-ops 16]
                           [--solver-seconds 30]

Needs ortools (PyPI) in the Python that runs it. The problems have 4 to 16 ops on 2 to 4 devices of one
speed or two, variables that tie ops together, links that share a card in a third of them and memory
limits in a third. Their models are written here, by docs/formats.md, and share nothing with the
planner. Pipelines have no such model: planner_exact_pipeline.py makes them, prices Berth's plan and
tries all plans of the space that it describes. A problem passes when the bound is at most the optimum, the value at least the optimum, and
`berth verify-plan` accepts the plan. One JSON line per failure, then a summary; the exit status is
1 when a problem fails or the value is the optimum on less than 98 %.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from ortools.sat.python import cp_model

import planner_exact_pipeline as pipelines
from planner_first_tries import ROOT
from planner_problems import graph_text, make_machine, random_problem

ROUNDING, PROVED = 1e-9, 1e-5


class Exact:
    """What both objectives share: devices of ops, and copies of values."""

    def __init__(self, graph, machine):
        self.g, self.m, self.ops = graph, machine, graph.ops
        self.cp = cp_model.CpModel()
        n, devices = len(self.ops), range(machine.count)
        self.on = [[self.cp.new_bool_var("") for _ in devices] for _ in range(n)]
        for row in self.on:
            self.cp.add_exactly_one(row)
        for i in range(n):
            for j in range(i):
                if self.ops[i].weight >= 0 and self.ops[i].weight == self.ops[j].weight:
                    for d in devices:
                        self.cp.add(self.on[i][d] == self.on[j][d])
        self.readers = [[] for _ in range(n)]
        for i, op in enumerate(self.ops):
            for p, _ in op.reads:
                self.readers[p].append(i)
        # goes[i, a, b]: the value of op i is made on a and read on b.
        self.goes = {}
        for i, readers in enumerate(self.readers):
            for b in devices if readers else ():
                read = self.cp.new_bool_var("")
                self.cp.add_max_equality(read, [self.on[r][b] for r in readers])
                for a in devices:
                    if a == b:
                        continue
                    both = self.goes[i, a, b] = self.cp.new_bool_var("")
                    self.cp.add_bool_and([self.on[i][a], read]).only_enforce_if(both)
                    self.cp.add_bool_or([self.on[i][a].negated(), read.negated(), both])

    def us(self, i, d):
        return round(self.ops[i].us / self.m.speed[d])

    def copy_us(self, i, a, b):
        latency, rate = self.m.link(a, b)
        return round(latency + self.ops[i].out_bytes[0] / rate)

    def held(self, d):
        """Bytes of variables on a device."""
        first = {}
        for i, op in enumerate(self.ops):
            first.setdefault(op.weight, i)
        return sum(self.g.weight_bytes[w] * self.on[i][d] for w, i in first.items() if w >= 0)

    def solve(self, objective, seconds):
        """The optimum; None: there is no plan; "unknown": no time."""
        self.cp.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1
        status = solver.solve(self.cp)
        if status == cp_model.INFEASIBLE:
            return None
        return round(solver.objective_value) if status == cp_model.OPTIMAL else "unknown"


def throughput(graph, machine, seconds):
    x = Exact(graph, machine)
    most = x.cp.new_int_var(0, 10**6, "")
    shared = {}
    for d in range(machine.count):
        x.cp.add(most >= sum(x.us(i, d) * x.on[i][d] for i in range(len(x.ops))))
        x.cp.add(most >= sum(x.copy_us(i, a, b) * v for (i, a, b), v in x.goes.items() if b == d))
        if machine.limit:
            x.cp.add(x.held(d) <= machine.limit)
    for (i, a, b), v in x.goes.items():
        if machine.shared(a, b) >= 0:
            shared.setdefault(machine.shared(a, b), []).append(x.copy_us(i, a, b) * v)
    for terms in shared.values():
        x.cp.add(most >= sum(terms))
    return x.solve(most, seconds)


def latency(graph, machine, seconds):
    x = Exact(graph, machine)
    cp, ops, devices = x.cp, x.ops, range(machine.count)
    n = len(ops)
    horizon = sum(x.us(i, d) for i in range(n) for d in devices)
    horizon += sum(x.copy_us(i, a, b) for i, a, b in x.goes)
    time = lambda: cp.new_int_var(0, horizon, "")
    start, end, step = [time() for _ in ops], [time() for _ in ops], time()
    place = [cp.new_int_var(0, n - 1, "") for _ in ops]
    cp.add_all_different(place)
    # What an op or a copy waits for: (literals that make it so, when).
    waits = {s.index: (s, []) for s in start}

    def after(begin, when, literals=()):
        cp.add(begin >= when).only_enforce_if(list(literals))
        waits.setdefault(begin.index, (begin, []))[1].append((list(literals), when))

    first = {}  # first[i, j]: op i stands before op j in the sequence
    for i in range(n):
        cp.add(end[i] == start[i] + sum(x.us(i, d) * x.on[i][d] for d in devices))
        cp.add(step >= end[i])
        for j in range(i):
            first[j, i] = cp.new_bool_var("")
            first[i, j] = first[j, i].negated()
            for a, b in ((i, j), (j, i)):
                cp.add(place[a] < place[b]).only_enforce_if(first[a, b])
    for j, op in enumerate(ops):
        for p, _ in op.reads:
            cp.add(first[p, j] == 1)
            after(start[j], end[p])
    begins, arrives = {}, {}  # copies of a value by where they go
    for i, readers in enumerate(x.readers):
        for b in devices if readers else ():
            begins[i, b], arrives[i, b] = time(), time()
            comes = [v for (k, _, to), v in x.goes.items() if k == i and to == b]
            took = sum(x.copy_us(i, a, b) * x.goes[i, a, b] for a in devices if a != b)
            after(begins[i, b], end[i])
            cp.add(arrives[i, b] == begins[i, b] + took)
            for r in readers:
                for v in comes:
                    after(start[r], arrives[i, b], [v, x.on[r][b]])
    for i in range(n):  # devices, one op behind the other
        for j in range(n):
            for d in devices if i != j else ():
                after(start[j], end[i], [first[i, j], x.on[i][d], x.on[j][d]])
    for (i, a, b), v in x.goes.items():  # copy engines and shared links
        for (j, c, d), w in x.goes.items():
            if (i, b) == (j, d) or i == j and b > d:
                continue
            same_link = machine.shared(a, b) >= 0 and machine.shared(a, b) == machine.shared(c, d)
            if b == d or same_link:
                order = [] if i == j else [first[i, j]]
                after(begins[j, d], arrives[i, b], order + [v, w])
    if machine.limit:
        forbid_waiting(x, waits, time)
        limit_memory(x, start, end, step, begins, arrives, time)
    return x.solve(step, seconds)


def forbid_waiting(x, waits, time):
    """Whatever can begin does so: none waits for memory to become free."""
    for begin, reasons in waits.values():
        times = [0]
        for literals, when in reasons:
            at, holds = time(), x.cp.new_bool_var("")
            x.cp.add_bool_and(literals).only_enforce_if(holds)
            x.cp.add_bool_or([l.negated() for l in literals] + [holds])
            x.cp.add(at == when).only_enforce_if(holds)
            x.cp.add(at == 0).only_enforce_if(holds.negated())
            times.append(at)
        x.cp.add_max_equality(begin, times)


def limit_memory(x, start, end, step, begins, arrives, time):
    """Values live from their op or copy to the end of the last reader or copy; the result to the end."""
    cp, devices = x.cp, range(x.m.count)
    for d in devices:
        spans, sizes = [], []
        for i, op in enumerate(x.ops):
            for here, begin in [(x.on[i][d], start[i])] + [
                    (v, begins[i, d]) for (k, _, b), v in x.goes.items() if k == i and b == d]:
                until, lasts = time(), time()
                made = here is x.on[i][d]
                cp.add(until >= (end[i] if made else arrives[i, d]))
                for r in x.readers[i]:
                    cp.add(until >= end[r]).only_enforce_if(x.on[r][d])
                for (k, a, b), v in x.goes.items():
                    if made and k == i and a == d:
                        cp.add(until >= arrives[i, b]).only_enforce_if(v)
                if made and i == len(x.ops) - 1:
                    cp.add(until >= step)
                spans.append(cp.new_optional_interval_var(begin, lasts, until, here, ""))
                sizes.append(op.out_bytes[0])
        spans.append(cp.new_interval_var(0, step, step, ""))
        sizes.append(x.held(d))
        cp.add_cumulative(spans, sizes, x.m.limit)


def make_pipeline(rng):
    graph = pipelines.make_graph(rng)
    layers = sum(op.role == "forward" for op in graph.ops)
    micro = rng.randint(1, 5)
    held = sum(graph.weight_bytes) + sum(sum(op.out_bytes) for op in graph.ops) * min(micro, 3)
    machine = make_machine(rng, 3 if layers > 5 else 4, held)
    return pipelines.Pipeline(graph, machine, micro, rng.random() < 0.25)


def check_pipeline(options, folder, pipeline):
    """The least value, or None, and Berth's answer, whose plan is priced here."""
    more = ["--micro-batches", str(pipeline.micro)] + ["--stash-weights"] * pipeline.stash
    answer = ask_berth(options, folder, pipeline.g, pipeline.m, "pipeline", more)
    if "no_plan" in answer:
        return pipelines.best(pipeline, pipelines.INFINITY), answer
    priced = pipeline.price_file(json.loads((folder / "plan.json").read_text()))
    agrees = priced and abs(priced[0] - answer["value"]) <= ROUNDING * answer["value"]
    answer["verified"] = answer["verified"] and bool(agrees)
    better = pipelines.best(pipeline, answer["value"])
    return (answer["value"] if better is None else better), answer


def ask_berth(options, folder, graph, machine, objective, more=()):
    files = [folder / n for n in ("graph.txt", "cluster.json", "plan.json")]
    files[0].write_text(graph_text(graph))
    files[1].write_text(machine.cluster())
    common = ["--cluster", str(files[1]), "--objective", objective, *more]
    done = subprocess.run([options.berth, "plan", str(files[0]), *common, "--json", "--effort",
                           options.effort, "--out", str(files[2])], capture_output=True, text=True)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    if answer.get("value") is None:
        return {"no_plan": (done.stderr or done.stdout)[-300:]}
    checked = subprocess.run([options.berth, "verify-plan", str(files[0]), str(files[2]), *common],
                             capture_output=True, text=True)
    return {"value": answer["value"], "bound": answer["bound"] or 0,
            "verified": checked.returncode == 0}


def wrong(answer, optimum):
    if "no_plan" in answer:
        return "" if optimum is None else "found none"
    if optimum is None:
        return "planned what cannot be"
    if not answer["verified"]:
        return "verify-plan refuses, or the price here is another"
    if answer["value"] < optimum * (1 - ROUNDING):
        return "value under the optimum"
    return "bound over the optimum" if answer["bound"] > optimum * (1 + ROUNDING) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=str(ROOT / "build/release/bin/berth"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--effort", default="3s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objectives", default="latency,throughput,pipeline")
    parser.add_argument("--most-ops", type=int, default=16)
    parser.add_argument("--solver-seconds", type=float, default=30)
    options = parser.parse_args()
    folder, bad = pathlib.Path(tempfile.mkdtemp(prefix="planner_exact_")), False
    for objective in options.objectives.split(","):
        solve = throughput if objective == "throughput" else latency
        counts = dict.fromkeys(("solved", "unsolved", "infeasible", "wrong", "optimal", "proved"), 0)
        for k in range(options.count):
            rng = random.Random(f"{options.seed} {objective} {k}")
            if objective == "pipeline":
                pipeline = make_pipeline(rng)
                graph, machine = pipeline.g, pipeline.m
                optimum, answer = check_pipeline(options, folder, pipeline)
            else:
                graph, machine = random_problem(rng, 4, options.most_ops)
                optimum = solve(graph, machine, options.solver_seconds)
                if optimum == "unknown":
                    counts["unsolved"] += 1
                    continue
                answer = ask_berth(options, folder, graph, machine, objective)
            counts["solved"] += optimum is not None
            counts["infeasible"] += optimum is None
            optimal = optimum is None or answer.get("value", 0) <= optimum * (1 + ROUNDING)
            counts["optimal"] += optimum is not None and optimal
            counts["proved"] += answer.get("bound", 0) >= answer.get("value", 1) * (1 - PROVED)
            why = wrong(answer, optimum)
            counts["wrong"] += bool(why)
            if why or not optimal:
                print(json.dumps({"objective": objective, "problem": k, "ops": len(graph.ops),
                                  "devices": machine.count, "limit": machine.limit,
                                  "optimum": optimum, "wrong": why, **answer}), flush=True)
        print(json.dumps({"summary": objective, **counts}), flush=True)
        bad |= counts["wrong"] > 0 or counts["optimal"] < 0.98 * counts["solved"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
