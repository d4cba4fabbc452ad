#!/usr/bin/env python3
"""The rows of the table for one card: bench_gpu and PyTorch in turns, in one run.

    bench/gpu_table.py [--bin build/release/bin] [--device /GPU:0] [--only TEXT] [--out FILE]
                       [--rounds 2] [--deadline SECONDS] [--peer-device cuda|cpu|none] [--small]

Higher is better in all of them. A row is a JSON line, printed and appended to FILE as soon as it
is known: {row, value, unit, must, aim, status, reason, ...}; status is "aim met", "must met",
"missed", "skipped" with its reason, "failed", or "not finished" when the deadline came first.
Medians of 20 are compared, of ours the better of the turns before and after the peer's. The peer
runs under the Python that runs this. Standard library alone.

BERTH_TABLE_ENVIRONMENT: JSON with variables for our programs and not for the peer.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIP_STATUS = 77
COMPILED = ("compile", "reduce_overhead", "whole_graph", "max_autotune")


class Skipped(Exception):
    """Cannot be measured here; the message is the reason."""


class Failed(Exception):
    """A program of ours crashed or printed nonsense."""


class Unfinished(Exception):
    """There was no time."""


class Runner:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.deadline
        self.environment = {**os.environ,
                            **json.loads(os.environ.get("BERTH_TABLE_ENVIRONMENT", "{}"))}

    def left(self):
        return self.end - time.monotonic()

    def lines_of(self, command, environment, limit_s):
        """The JSON lines of a program, and its status; None: it ran over its time."""
        limit_s = min(limit_s, self.left())
        if limit_s < 1:
            raise Unfinished("no time was left")
        with subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment, start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=limit_s)
                status = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                status = None
        lines = []
        for line in out.splitlines():
            if line.startswith("{"):
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    pass
        return lines, status, err.strip().splitlines()

    def ours(self, model, limit_s=120):
        """The line of one row of bench_gpu."""
        program = self.options.bin / "bench_gpu"
        if not os.access(program, os.X_OK):
            raise Skipped("bench_gpu is not built")
        command = [program, "--model", model, "--device", self.options.device, "--seconds",
                   self.options.seconds, "--blocks", self.options.blocks]
        lines, status, said = self.lines_of(command + ["--small"] * self.options.small,
                                            self.environment, limit_s)
        if status is None:
            raise Unfinished(f"bench_gpu --model {model} ran over {limit_s} s")
        if lines and "skipped" in lines[-1]:
            raise Skipped(lines[-1]["skipped"])
        if status != 0 or not lines:
            raise Failed(f"bench_gpu --model {model} ended with {status}: {(said or [''])[-1]}")
        return lines[-1]

    def peers(self, model, variants, limit_s):
        """The peer's lines that have a time; Skipped, with why, when there is none."""
        if self.options.peer_device == "none":
            raise Skipped("no peer was asked for")
        command = [sys.executable, HERE / "peers" / "gpu_torch.py", "--model", model, "--device",
                   self.options.peer_device, "--variants", ",".join(variants), "--seconds",
                   self.options.seconds, "--blocks", self.options.blocks]
        lines, status, said = self.lines_of(command + ["--small"] * self.options.small,
                                            dict(os.environ), limit_s)
        timed = [l for l in lines if "median_us" in l]
        if timed:
            return timed
        for line in lines:
            if "skipped" in line or "failed" in line:
                raise Skipped("PyTorch: " + line.get("skipped", line.get("failed", "")))
        if status is None:
            raise Unfinished(f"PyTorch ran over {limit_s} s")
        raise Skipped(f"PyTorch ended with {status}: {(said or [''])[-1]}")


def product_rows(runner):
    """Ours and the library's best in turns; PyTorch's product beside them."""
    before = runner.ours("product")
    try:
        library = runner.ours("cublaslt", 60)
    except (Skipped, Failed) as why:  # without it there is nothing to compare with
        yield {"tflops": round(before["tflops"], 2)}
        raise Skipped(str(why)) from None
    after = runner.ours("product")
    ours = max(before["tflops"], after["tflops"])
    extra = {"tflops": round(ours, 1), "cublaslt_tflops": round(library["tflops"], 1),
             "algorithms": library["algorithms"]}
    try:
        torch = runner.peers("product", ("eager",), 60)
        extra["torch_tflops"] = round(torch[0]["tflops"], 1)
    except (Skipped, Unfinished):
        pass
    yield {"product_8192_bf16_over_cublaslt": ours / library["tflops"], **extra}


def same_loss(model, ours, peer):
    """Both begin with the same weights and batch: another loss is another computation."""
    a, b = ours["first_loss"], peer.get("first_loss")
    if b is not None and not abs(a - b) <= 0.03 * abs(b):
        raise Failed(f"the first loss of {model} is {a:.4g}, of the peer {b:.4g}")


def step_rows(model, variants, peer_limit_s, eager_row=False):
    def rows(runner):
        steps = [runner.ours(model)]
        extra = {"us": steps[0]["median_us"], "loss": steps[0]["first_loss"],
                 "in_float32": steps[0]["in_float32"]}
        try:
            peers = runner.peers(model, variants, peer_limit_s)
        except (Skipped, Unfinished):
            yield extra
            raise
        same_loss(model, steps[0], peers[0])
        if runner.left() > 5:
            steps.append(runner.ours(model))
        us = min(s["median_us"] for s in steps)
        by_variant = {p["variant"]: p["median_us"] for p in peers}
        extra |= {"us": us, "peers_us": {k: round(v, 1) for k, v in by_variant.items()},
                  "peer_loss": peers[0].get("first_loss"), "torch": peers[0]["version"]}
        compiled = [v for k, v in by_variant.items() if k in COMPILED]
        found = dict(extra)
        if compiled:
            found[f"{model}_step_over_compiled"] = min(compiled) / us
        if eager_row and "eager" in by_variant:
            found[f"{model}_step_over_eager"] = by_variant["eager"] / us
        yield found
    return rows


def chain_rows(runner):
    lines = [runner.ours("chain") for _ in range(runner.options.rounds)]
    best = max(lines, key=lambda l: l["share"])
    yield {"chain_64m_over_copy": best["share"], "gb_per_second": round(best["gb_per_second"], 1),
           "copy_gb_per_second": round(best["copy_gb_per_second"], 1)}


def copy_rows(runner):
    lines = [runner.ours("input_copy") for _ in range(runner.options.rounds)]
    best = max(lines, key=lambda l: l["hidden"])
    yield {"input_copy_hidden": best["hidden"],
           **{k: best[k] for k in ("median_us", "resident_us", "copy_us", "batching_us")}}


# What measures, and the names, must and aim of the rows that it gives. It yields their values
# beside further fields; what it yields before it raises belongs to the rows that follow.
ROWS = [
    (step_rows("gpt2", ("compile",), 150), [("gpt2_step_over_compiled", 0.9, 1.1)]),
    (step_rows("resnet50", ("compile",), 150), [("resnet50_step_over_compiled", 1.0, 1.1)]),
    (product_rows, [("product_8192_bf16_over_cublaslt", 0.97, 1.0)]),
    (chain_rows, [("chain_64m_over_copy", 0.9, 0.97)]),
    (step_rows("mlp", ("whole_graph", "eager"), 120, True),
     [("mlp_step_over_compiled", 1.0, 1.5), ("mlp_step_over_eager", 5, 10)]),
    (copy_rows, [("input_copy_hidden", 0.95, 0.99)]),
]


def judge(value, must, aim):
    if value >= aim:
        return "aim met"
    return "must met" if value >= must else "missed"


def measure(runner, fn, names):
    """The rows that `fn` gives, in the order of `names`."""
    found, status, reason = {}, "skipped", "was not measured"
    try:
        for part in fn(runner):
            found |= part
    except Skipped as why:
        reason = str(why)
    except Unfinished as why:
        status, reason = "not finished", str(why)
    except (Failed, OSError, KeyError, ZeroDivisionError) as why:
        status, reason = "failed", f"{type(why).__name__}: {why}"
    extra = {k: v for k, v in found.items() if k not in [n for n, _, _ in names]}
    for name, must, aim in names:
        value = found.get(name)
        row = {"row": name, "value": None if value is None else round(value, 4), "unit": "x",
               "must": must, "aim": aim}
        if value is None:
            row |= {"status": status, "reason": reason}
        else:
            row |= {"status": judge(value, must, aim), "reason": ""}
        if runner.options.small:
            row["small"] = True  # measures nothing
        yield {**row, **{k: v for k, v in extra.items() if k not in row}}


def print_table(rows):
    print(f"\n{'row':34} {'value':>9} {'must':>6} {'aim':>6}  status")
    for r in rows:
        value = "-" if r["value"] is None else f"{r['value']:.4g}"
        reason = f" ({r['reason']})" if r["reason"] else ""
        print(f"{r['row']:34} {value:>9} {r['must']:>6g} {r['aim']:>6g}  {r['status']}{reason}")


def main():
    parser = argparse.ArgumentParser(description="The rows of the table for one card.")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/release/bin")
    parser.add_argument("--device", default="/GPU:0")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=0, help="of which the median is taken")
    parser.add_argument("--seconds", type=float, default=0, help="of a program at most")
    parser.add_argument("--deadline", type=float, default=3600)
    parser.add_argument("--peer-device", choices=("cuda", "cpu", "none"), default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a must is missed")
    options = parser.parse_args()
    options.blocks = options.blocks or (2 if options.small else 20)
    options.seconds = options.seconds or (0.5 if options.small else 15)
    if options.rounds < 1 or options.blocks < 1 or options.deadline <= 0:
        parser.error("--rounds and --blocks must be at least 1, --deadline above 0")
    runner = Runner(options)
    rows = []
    for fn, names in ROWS:
        if not any(options.only in name for name, _, _ in names):
            continue
        for row in measure(runner, fn, names):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if options.out:
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print_table(rows)
    bad = ("failed", "missed") if options.strict else ("failed",)
    return 1 if any(r["status"] in bad for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
