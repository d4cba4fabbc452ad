"""Shows that the parts end in their time, that the first ones write at once, and what the probe
asks for."""
import fnmatch
import pathlib
import re
import types
from unittest import mock

from gpu_check import parts, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPS = "[==========] Running 1 test from 1 test suite.\n[ RUN      ] a.B\n[       OK ] a.B (0 ms)\n"


class Clock:
    """In the place of the module `time`: only sleeping takes any."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def played(ends):
    """Processes in the place of run.Process, and their clock: none starts a program. `ends`
    gives the output of a command, or None where it hangs until it is ended."""
    clock = Clock()

    class Played(run.Process):
        def __init__(self, command, environment, limit_s):
            self.command = [str(c) for c in command]
            self.begin, self.limit_s, self.timed_out = clock.now, max(limit_s, 0.1), False
            self.said = ends(self.command, environment)

        def over(self):
            self.timed_out = self.said is None and clock.now - self.begin > self.limit_s
            return self.said is not None or self.timed_out

        def end(self):
            pass

        def status(self):
            return None if self.said is None else 0

        def text(self):
            return self.said or ""
    return Played, clock


def play(folder, name, ends, most=1000):
    """(the part, the seconds that it took, its limit, at most `most`)"""
    bundle = types.SimpleNamespace(bin=folder, root=folder, files=folder, work=folder,
                                   environment=dict)
    options = types.SimpleNamespace(device="/GPU:0", processes=2, filters={}, sample=1,
                                    out=folder, small=False, peers=True, python="python3")
    (limit, fn), = [(s, f) for n, s, f in parts.PARTS if n == name]
    limit = min(limit, most)
    process, clock = played(ends)
    with mock.patch.multiple(run, Process=process, time=clock, logs=[]), mock.patch.multiple(
            parts, time=clock, shutil=mock.Mock(which=lambda tool: tool)), mock.patch.object(
            parts.machine, "find_tool", lambda tool: tool):
        return fn(parts.Context(bundle, options), limit, name), clock.now, limit


def limits(folder):
    """Whatever hangs, a part ends in its seconds and says so; what hung before has its note."""
    for name, most in [(n, most) for n, _, _ in parts.PARTS for most in (1000, 5)]:
        part, took, limit = play(folder, name, lambda *_: None, most)
        assert took <= limit + 1, (name, took, limit)
        wanted = "absent" if "opencl" in name else "not finished"
        assert part["status"] == wanted, (name, part)
    steps = ("berth devices", "clocks", "latencies", "each family", "by libraries")
    part, _, _ = play(folder, "probe", lambda *_: None)
    for step in steps:
        assert any(step in n and "over its time" in n for n in part["notes"]), (step, part)
    # One that hangs leaves time to each of the others.
    for hangs, passed in (("devices", 2), ("latency", 2), (parts.ONE_OF_EACH, 1), ("gpt2", 2)):
        def ends(command, environment, hangs=hangs):
            if any(hangs in c for c in command):
                return None
            if "BERTH_GPU_TRACE" in environment:
                pathlib.Path(environment["BERTH_GPU_TRACE"]).write_text(
                    '[\n{"ph": "X", "cat": "op", "name": "a", "dur": 1, "args": {}},\n')
            return OPS if command[0].endswith("conformance") else '{"launch_us": 1}'
        part, took, limit = play(folder, "trace" if hangs == "gpt2" else "probe", ends)
        assert part["status"] == "not finished" and not part["failed"], part
        assert took <= limit * 2 / 3 and part["passed"] == passed, (hangs, took, part)


def at_once(folder):
    """What a step said is in the file when the next one begins."""
    out = {"probe": ("devices", "latency", parts.ONE_OF_EACH, parts.OF_LIBRARIES),
           "trace": parts.MODELS}
    for name, order in out.items():
        seen = []

        def ends(command, _, name=name, order=order, seen=seen):
            step = [s for s in order if s in " ".join(command)]
            if step:
                assert (folder / f"{name}.txt").read_text().count("== ") >= len(seen), (step, seen)
                seen += step[:1]
            return OPS if command[0].endswith("conformance") else '{"median_us": 1}'
        play(folder, name, ends)
        assert tuple(seen) == tuple(order), (name, seen)


def families():
    """Each source that registers kernels for GPUs has an op in the probe, which is one of its own;
    what libraries compute is there in each of their dtypes, products and convolutions as slices."""
    folder = ROOT / "src/backends/gpu"
    if folder.exists():  # not in a bundle
        sources = {f.stem: f.read_text(encoding="utf-8") for f in folder.glob("*.cc")}
        wanted = {name for name, text in sources.items() if re.search(
            r"^void add_\w+\(Kernels& k\) \{", text, re.M)} - {"kernels", "fused"}
        assert wanted == set(parts.FAMILIES), wanted ^ set(parts.FAMILIES)
        for family, pattern in parts.FAMILIES.items():
            assert f'"{pattern.split("/")[0]}"' in sources[family], (family, pattern)
    asked = parts.OF_LIBRARIES.split(":")
    for op in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "FusedBatchNormV3",
               "FusedBatchNormGradV3", "ScaledDotProductAttention",
               "ScaledDotProductAttentionGrad", "MatMul", "_FusedMatMul"):
        for dtype in ("float32", "bfloat16", "float16"):
            assert any(fnmatch.fnmatch(f"test.{op}/any/{dtype}", a) for a in asked), (op, dtype)
    for op in ("MatMul", "Conv2D"):
        assert any(fnmatch.fnmatch(f"slices.{op}/any/float32", a) for a in asked), op


def main(folder):
    folder = pathlib.Path(folder)
    for name in ("berth", "bench_gpu", "conformance", "device_suite", "digits", "fixtures_test",
                 "conformance_strategy", "backends_opencl_test"):
        (folder / name).touch()
    limits(folder)
    at_once(folder)
    families()
