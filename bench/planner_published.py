#!/usr/bin/env python3
"""Published pipeline planners beside `berth plan`, on their own inputs.

    bench/planner_published.py [--piper DIR] [--dapple DIR] [--berth build/release/bin/berth] [--effort 3s]

DIR is a checkout of msr-fiddle/piper or AlibabaPAI/DAPPLE.

Piper (Tarnawski et al., NeurIPS 2021): its program is compiled with g++ and run on its inputs with one device
per stage, since a plan of Berth does not split one layer over devices: no data or tensor parallelism, no
recomputation, and memory for everything. Its value is the time per sample of the slowest stage, computation
plus transfers of every edge at both of its ends. Berth plans the same graph as a throughput problem
(docs/formats.md, dnn-partitioning), where each edge is a value of its own; this script computes the value of
that plan by Piper's formula.

DAPPLE (Fan et al., PPoPP 2021): its planner is not published for Python 3.11. `analysis_dapple.py` there has the
computation of the two stages of its plans; Berth plans the layers of `profiling_results` on two devices.

One JSON line per row, then a table: theirs over ours, more than 1 if Berth's plan is better.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PIPER = [("bert32a100", (2, 4, 8, 16)), ("gnmt", (2, 4)), ("resnet", (2, 4))]
PIPER_LIMIT_S = 240
BANDWIDTH = 25 * 2 ** 30  # bytes/s, of Piper's experiments
PIPER_MAIN = """
#define main piper_main
#include "algo.cpp"
#undef main
int main(int, char **argv) {
  DATA_PARALLELISM_ALLOWED = TENSOR_PARALLELISM_ALLOWED = ACTIVATION_RECOMPUTATION_ALLOWED = false;
  json j;
  ifstream(argv[1]) >> j;
  Instance ins = j.get<Instance>();
  ins.maxDevices = atoi(argv[2]);
  ins.maxMemoryPerDevice = 1e18;
  ins.bandwidth = atof(argv[3]);
  Graph g(ins);
  printf("value %.9g\\n", g.getTPSForResult(g.runDP()));
}
"""
# File of profiling_results, class of analysis_dapple.py; there a p3.16xlarge sends 3 GB/s.
DAPPLE = [("bert-48-pbs-2", "BertLarge"), ("gnmt-16-pbs-64", "GNMT16"), ("amoeba-36-pbs-1", "AmoebaNet"),
          ("xlnet-24-pbs-1", "XLNet"), ("xlnet-36-pbs-1", "XLNet")]
DAPPLE_BYTES_PER_MS = 3.0e6


def plan(berth, nodes, edges, devices, effort):
    """Plans a graph; nodes: id -> time, edges: (from, to, cost). Returns Berth's answer and its seconds.

    An edge costs what its value does there; so each edge gets a value, from an op without time beside its source.
    """
    copies = range(len(nodes), len(nodes) + len(edges))
    op = lambda i, us, beside: {"id": i, "supportedOnFpga": 1, "cpuLatency": us, "fpgaLatency": us,
                                "isBackwardNode": 0, "size": 0, "colorClass": beside}
    edge = lambda a, b, cost: {"sourceId": a, "destId": b, "cost": cost}
    problem = {"maxSizePerFPGA": 1e18, "maxFPGAs": devices, "maxCPUs": 0,
               "nodes": [op(i, us, i) for i, us in nodes.items()] +
                        [op(copy, 0, a) for copy, (a, _, _) in zip(copies, edges)],
               "edges": [edge(a, copy, 0) for copy, (a, _, _) in zip(copies, edges)] +
                        [edge(copy, b, cost) for copy, (_, b, cost) in zip(copies, edges)]}
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder, "problem.json"), pathlib.Path(folder, "plan.json")
        source.write_text(json.dumps(problem))
        begin = time.time()
        answer = json.loads(subprocess.run(
            [berth, "plan", source, "--format", "dnn-partitioning", "--objective", "throughput", "--effort", effort,
             "--out", out, "--json"], check=True, capture_output=True, text=True).stdout)
        seconds = time.time() - begin
        subprocess.run([berth, "verify-plan", source, out], check=True, capture_output=True)
    return answer, seconds


def devices_of(answer):
    return {op["id"]: op["device"] for op in answer["ops"]}


def highest_load(nodes, edges, device, factor):
    """Of computation and both ends of every edge between devices, each of `factor` times its cost."""
    load = {}
    for i, us in nodes.items():
        load[device[i]] = load.get(device[i], 0) + us
    for a, b, cost in edges:
        if device[a] != device[b]:
            load[device[a]] += factor * cost
            load[device[b]] += factor * cost
    return max(load.values())


def piper_rows(folder, berth, effort):
    with tempfile.TemporaryDirectory() as build:
        source, program = pathlib.Path(build, "main.cpp"), pathlib.Path(build, "piper")
        source.write_text(PIPER_MAIN)
        subprocess.run(["g++", "-O2", "-w", "-I", folder, source, "-o", program], check=True)
        for name, counts in PIPER:
            file = folder / "inputs" / f"{name}.json"
            graph = json.loads(file.read_text())
            nodes = {n["id"]: n["TMPCs"]["1"][0]["timePerSample"] for n in graph["nodes"]}
            edges = [(e["sourceId"], e["destId"], 2 * e["communicationCost"] / BANDWIDTH) for e in graph["edges"]]
            for count in counts:
                try:
                    said = subprocess.run([program, file, str(count), str(BANDWIDTH)], check=True, cwd=folder,
                                          capture_output=True, text=True, timeout=PIPER_LIMIT_S).stdout
                except subprocess.TimeoutExpired:
                    print(json.dumps({"planner": "Piper", "input": name, "devices": count,
                                      "skipped": f"it takes more than {PIPER_LIMIT_S} s"}), flush=True)
                    continue
                theirs = float(re.search(r"^value (\S+)$", said, re.MULTILINE).group(1))
                answer, seconds = plan(berth, nodes, edges, count, effort)
                ours = highest_load(nodes, edges, devices_of(answer), 1)
                yield {"planner": "Piper", "input": name, "devices": count, "theirs": theirs, "ours": ours,
                       "bound": answer["bound"], "seconds": round(seconds, 2)}


def dapple_profile(file):
    """Layers by name with their times, and the edges between them."""
    layers, edges = {}, []
    for line in file.read_text().splitlines():
        layer = re.match(r"(\S+) -- (.*) -- forward_compute_time=([\d.]+), backward_compute_time=([\d.]+), "
                         r"activation_size=\[?([\d.]+)", line)
        edge = re.match(r"\s+(\S+) -- (\S+)$", line)
        if layer:
            # The time of reading the input is no computation of a stage.
            reads = layer.group(2).startswith("Input")
            layers[layer.group(1)] = (0 if reads else float(layer.group(3)) + float(layer.group(4)),
                                      float(layer.group(5)))
        elif edge:
            edges.append(edge.groups())
    return layers, edges


def dapple_rows(folder, berth, effort):
    text = (folder / "analysis_dapple.py").read_text()
    for name, model in DAPPLE:
        body = text[text.index(f"class {model}("):].split("\nclass ")[0]
        cut = re.findall(r"^\s+self\.comp_cut = \[([\d.]+)(?: / scale)?, ([\d.]+)(?: / scale)?\]", body, re.MULTILINE)
        whole = [float(re.search(rf"self\.{part} = ([\d.]+)", body).group(1)) for part in ("fw_time", "bw_time")]
        layers, names = dapple_profile(folder / "profiling_results" / f"{name}.txt")
        number = {key: i for i, key in enumerate(layers)}
        nodes = {number[key]: us for key, (us, _) in layers.items()}
        edges = [(number[a], number[b], 2 * layers[a][1] / DAPPLE_BYTES_PER_MS) for a, b in names]
        answer, seconds = plan(berth, nodes, edges, 2, effort)
        device = devices_of(answer)
        share = highest_load(nodes, [], device, 0) / sum(nodes.values())
        theirs = max(map(float, cut[0])) / sum(map(float, cut[0]))
        yield {"planner": "DAPPLE", "input": name, "devices": 2, "theirs": theirs, "ours": share,
               "bound": None, "seconds": round(seconds, 2), "profile_ms": sum(nodes.values()), "model_ms": sum(whole)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", type=pathlib.Path, default=ROOT / "build/release/bin/berth")
    parser.add_argument("--piper", type=pathlib.Path)
    parser.add_argument("--dapple", type=pathlib.Path)
    parser.add_argument("--effort", default="3s")
    args = parser.parse_args()
    rows = []
    for folder, make in ((args.piper, piper_rows), (args.dapple, dapple_rows)):
        if folder is None:
            continue
        for row in make(folder.resolve(), args.berth.resolve(), args.effort):
            rows.append(row)
            print(json.dumps(row), flush=True)
    print(f"\n{'planner':8} {'input':16} {'devices':>7} {'theirs':>10} {'ours':>10} {'bound':>10} {'theirs/ours':>11}")
    for r in rows:
        bound = f"{r['bound']:10.5g}" if r["bound"] is not None else f"{'-':>10}"
        print(f"{r['planner']:8} {r['input']:16} {r['devices']:7} {r['theirs']:10.5g} {r['ours']:10.5g} {bound} "
              f"{r['theirs'] / r['ours']:11.4f}")


if __name__ == "__main__":
    main()
