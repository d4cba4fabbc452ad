"""Shows that the check reports what goes wrong: suites and tools that pretend."""
import importlib.util
import json
import os
import pathlib
import stat
import sys
import tarfile
import tempfile
import time
import types
from unittest import mock

from gpu_check import machine, parts, report, selftest_bundles, selftest_calls, selftest_parts
from gpu_check import run as runs
from gpu_check.run import Process, keep_logs, read_tests, run_tests, save_logs

HEAD = "print('[==========] Running 3 tests from 1 test suite.', flush=True)\n"
ONE = "print('[ RUN      ] a.One')\nprint('[       OK ] a.One (0 ms)', flush=True)\n"
SKIPPED = ("print('[ RUN      ] a.Two')\nprint('x.cc:3: Skipped')\nprint('no such op')\n"
           "print('[  SKIPPED ] a.Two (0 ms)', flush=True)\n")
FAILED = ("print('[ RUN      ] a.Three')\nprint('x.cc:4: Failure')\n"
          "print('[  FAILED  ] a.Three, where GetParam() = 1 (2 ms)', flush=True)\n")
# Fails unless it is run alone.
VICTIM = ("import sys\n" + HEAD + ONE +
          "if any('Three' in a for a in sys.argv): sys.exit(0)\n" + FAILED + "sys.exit(1)\n")


class Pretended:
    """Programs of a folder, as a bundle."""

    def __init__(self, folder):
        self.bin = self.root = self.files = pathlib.Path(folder)

    def environment(self):
        return dict(os.environ)

    def add(self, name, text):
        path = self.bin / name
        path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path


def options_of(folder):
    return types.SimpleNamespace(device="/GPU:0", processes=2, filters={}, sample=1,
                                 out=pathlib.Path(folder), small=True, peers=False,
                                 python=sys.executable)


def suites(b):
    """Each way in which a suite can end."""
    cases = [
        ("passes", HEAD + ONE + SKIPPED, {"status": "passed", "passed": 1, "skipped": 1,
                                          "skips": {"no such op": 1}, "not_run": 1}),
        ("fails", HEAD + ONE + FAILED + "import sys; sys.exit(1)", {"status": "failed",
                                                                    "passed": 1, "failed": 1}),
        ("crashes", HEAD + ONE + "print('[ RUN      ] a.Two', flush=True)\nimport os, signal\n"
         "os.kill(os.getpid(), signal.SIGSEGV)", {"status": "failed", "failed": 1,
                                                  "notes": ["process 1 of 1 ended by SIGSEGV in "
                                                            "a.Two"]}),
        ("hangs", HEAD + ONE + "print('[ RUN      ] a.Two', flush=True)\nimport time\n"
         "time.sleep(60)", {"status": "not finished", "passed": 1, "not_run": 2,
                            "notes": ["process 1 of 1 ran over its time in a.Two"]}),
        ("refuses", "import sys; print('no such device'); sys.exit(1)", {"status": "failed",
                                                                         "failed": 1}),
        ("has_none", "print('nothing')", {"status": "skipped", "passed": 0}),
    ]
    for name, text, wanted in cases:
        begin = time.monotonic()
        part = run_tests(b.add(name, text), [], b.environment(), 2 if name == "hangs" else 30)
        for key, value in wanted.items():
            assert part[key] == value, (name, key, part)
        assert time.monotonic() - begin < 30, name
    two = run_tests(b.add("passes", HEAD + ONE), [], b.environment(), 30, shards=2)
    assert two["passed"] == 2 and two["status"] == "passed", two
    tests = read_tests("[ RUN      ] t.[2,-1]:x\n[  FAILED  ] t.[2,-1]:x (1 ms)\n")
    assert tests["failures"][0]["name"] == "t.[2,-1]:x", tests
    b.add("device_suite", VICTIM)
    part = parts.suite("device_suite")(parts.Context(b, options_of(b.bin)), 20, "device_suite")
    assert part["passes_alone"] == ["a.Three"] and part["fails_alone"] == [], part
    assert parts.suite("gone")(parts.Context(b, options_of(b.bin)), 9, "x")["status"] == "absent"


def children(b):
    """A program that is ended takes along what it started, also in sessions of their own."""
    mark = b.bin / "alive"
    inner = f"import time\nwhile True: open({str(mark)!r}, 'w').close(); time.sleep(0.05)"
    for alone in (False, True):
        outer = b.add("parent", "import subprocess, sys, time\n"
                      f"subprocess.Popen([sys.executable, '-c', {inner!r}], "
                      f"start_new_session={alone})\ntime.sleep(600)")
        process = Process([outer], b.environment(), 600)
        while not mark.exists():
            time.sleep(0.05)
        process.end()
        time.sleep(0.3)
        mark.unlink(missing_ok=True)
        time.sleep(0.3)
        assert not mark.exists(), f"a child lives on, {alone}"


def tools(b):
    """compute-sanitizer: gone, refusing, finding nothing, finding an error."""
    conformance = b.add("conformance", HEAD + ONE)
    context = parts.Context(b, options_of(b.bin))
    begin = f"import os\nassert os.environ['BERTH_GPU_ALLOCATOR'] == 'exact'\n{HEAD}{ONE}"
    cases = [
        ("print('Error: Device not supported')\nimport sys; sys.exit(1)", "absent"),
        (begin + "print('========= ERROR SUMMARY: 0 errors')", "passed"),
        (begin + "print('========= Invalid __global__ write of size 4 bytes')\n"
         "print('========= ERROR SUMMARY: 1 error')\nimport sys; sys.exit(99)", "failed"),
        ("import sys; print('internal error'); sys.exit(1)", "absent"),
    ]
    path, places = os.environ["PATH"], machine.find_tool.__defaults__
    os.environ["PATH"] = str(b.bin)
    machine.find_tool.__defaults__ = ((),)
    try:
        assert parts.sanitizer(context, 20, "sanitizer")["status"] == "absent"
        for text, wanted in cases:
            b.add("compute-sanitizer", text)
            part = parts.sanitizer(context, 20, "sanitizer")
            assert part["status"] == wanted, (wanted, part)
    finally:
        os.environ["PATH"] = path
        machine.find_tool.__defaults__ = places
    assert conformance.exists()
    for accuracy, wanted in ((0.97, "passed"), (0.4, "failed")):
        line = json.dumps({"test_accuracy": accuracy, "devices": "GPU:0 (a card)"})
        b.add("digits", f"print('devices: GPU:0')\nprint({line!r})")
        assert parts.digits(context, 20, "digits")["status"] == wanted, wanted


# A conformance suite, `berth`, and rows of which GPT-2's crashes; the MLP's is traced.
ROW = """
import json, os, sys
name = sys.argv[sys.argv.index("--model") + 1]
if name == "gpt2":
    print("no memory", file=sys.stderr)
    sys.exit(3)
if name == "mlp":
    open(os.environ["BERTH_GPU_TRACE"], "w").write('[\\n' + "".join(
        json.dumps({"ph": "X", "cat": "op", "name": "MatMul", "dur": 2.0,
                    "args": {"bytes": 8000, "kernel": k}}) + ",\\n" for k in "aab"))
print(json.dumps({"bench": name, "launch_us": 3.5}))
"""


def first_parts(b):
    """The parts that come first write at once, and say which model failed."""
    out = pathlib.Path(b.bin)
    b.work = out
    b.add("berth", "print('GPU:0 a card')")
    b.add("conformance", HEAD + ONE + FAILED)
    b.add("bench_gpu", ROW)
    context = parts.Context(b, options_of(b.bin))
    context.machine = {"nvidia_smi": ["H200, 580.1"], "libraries": {"cudnn": "libcudnn.so.9.19"}}
    keep_logs(out / "logs")
    part = parts.probe(context, 20, "probe")
    assert part["failed"] == 2 and part["passed"] == 2 and part["status"] == "failed", part
    assert "launch_us 3.5" in part["notes"], part
    text = (out / "probe.txt").read_text()
    assert "GPU:0 a card" in text and "a.Three" in text, text
    assert "H200, 580.1" in text and "libcudnn.so.9.19" in text, text
    b.add("conformance", "import sys; print('no such device'); sys.exit(1)")
    part = parts.probe(context, 20, "probe")
    assert part["status"] == "failed" and "no such device" in part["failures"][0]["text"], part
    part = parts.trace(context, 20, "trace")
    assert part["status"] == "failed" and part["passed"] == 1, part
    assert part["failures"][0]["name"] == "gpt2" and "no memory" in part["failures"][0]["text"]
    assert "4000" not in (out / "trace.txt").read_text()
    line = next(l for l in (out / "trace.txt").read_text().splitlines() if l.endswith("  a"))
    assert line.split()[:3] == ["4", "66.7%", "2"] and line.split()[5] == "4", line
    save_logs(out / "logs.tar.gz")
    with tarfile.open(out / "logs.tar.gz") as tar:
        names = tar.getnames()
        assert any("bench_gpu" in n for n in names) and len(names) == 11, names
    keep_logs(out / "logs")
    assert not list((out / "logs").iterdir())


def archive(folder):
    """The archive of logs keeps to its limit, and to the first ones."""
    keep_logs(folder / "logs")
    with mock.patch.multiple(runs, MOST_LOGS=3 << 20, KEPT_LOG=1 << 20):
        for _ in range(6):
            runs.keep_log(["program"], os.urandom(1 << 20).hex())
        save_logs(folder / "logs.tar.gz")
    with tarfile.open(folder / "logs.tar.gz") as tar:
        names = tar.getnames()
    assert names == [f"00{i}_program.txt" for i in range(len(names))] and len(names) > 2, names
    assert (folder / "logs.tar.gz").stat().st_size <= 3 << 20, names


def results():
    made = report.new_report({"processor": "p", "cores": 2, "system": "s", "kernel": "k"})
    assert report.judge(made, 1) == "no GPU"
    made["card"] = [{"name": "/device:GPU:0", "description": "a card"}]
    for states, asked, wanted in ((["passed"], 1, "passed"), (["passed", "absent"], 2, "passed"),
                                  (["passed"], 2, "not finished"),
                                  (["passed", "not finished"], 2, "not finished"),
                                  (["not finished", "failed"], 2, "failed"),
                                  (["absent"], 1, "failed")):
        made["parts"] = [{"name": str(i), "status": s} for i, s in enumerate(states)]
        assert report.judge(made, asked) == wanted, (states, wanted)
    made["rows"] = [{"row": "r", "value": None, "must": 1, "aim": 2, "status": "skipped",
                     "reason": "no peer"}]
    text = report.text_of(made)
    assert "a card" in text and "skipped (no peer)" in text, text


# Lines of bench_gpu by row.
BENCH = """
import json, sys
name = sys.argv[sys.argv.index("--model") + 1]
kind = {kind!r}
if kind == "hangs" and name == "mlp":
    import time; time.sleep(60)
if kind == "crashes" and name == "mlp":
    sys.exit(3)
line = {{"product": {{"tflops": 700}}, "cublaslt": {{"tflops": 750, "algorithms": 9}}}}.get(
    name, {{"median_us": 50, "first_loss": 2.4, "in_float32": []}})
print(json.dumps(line))
"""


def table(b):
    """The table's rows: judged, and what stands in their way."""
    path = pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu_table.py"
    spec = importlib.util.spec_from_file_location("gpu_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options = types.SimpleNamespace(bin=b.bin, device="/GPU:0", small=False, seconds=1, blocks=1,
                                    rounds=1, deadline=30, peer_device="cuda")
    peers = [{"variant": "compile", "median_us": 60, "version": "2", "tflops": 690},
             {"variant": "eager", "median_us": 200, "version": "2"}]
    names = {name: (fn, names) for fn, names in module.ROWS for name, _, _ in names}
    def rows(name, kind, seconds=30, loss=2.4):
        b.add("bench_gpu", BENCH.format(kind=kind))
        options.deadline = seconds
        runner = module.Runner(options)
        runner.peers = lambda *_: [{**peers[0], "first_loss": loss}, peers[1]]
        return {r["row"]: r for r in module.measure(runner, *names[name])}
    product = rows("product_8192_bf16_over_cublaslt", "")["product_8192_bf16_over_cublaslt"]
    assert product["status"] == "missed" and product["value"] == round(700 / 750, 4), product
    mlp = rows("mlp_step_over_eager", "")
    assert mlp["mlp_step_over_compiled"]["status"] == "must met", mlp
    assert mlp["mlp_step_over_eager"]["status"] == "missed", mlp
    for kind, seconds, loss, wanted in (("", 30, 2.9, "failed"), ("crashes", 30, 2.4, "failed"),
                                        ("hangs", 2.5, 2.4, "not finished")):
        row = rows("mlp_step_over_eager", kind, seconds, loss)["mlp_step_over_eager"]
        assert row["status"] == wanted and row["value"] is None and row["reason"], (kind, row)


def main():
    with tempfile.TemporaryDirectory() as folder:
        pretended = Pretended(folder)
        suites(pretended)
        children(pretended)
        tools(pretended)
        table(pretended)
        first_parts(pretended)
        archive(pretended.bin / "archive")
        selftest_calls.main(pretended.bin / "calls")
        selftest_bundles.main(pretended.bin / "bundles")
    with tempfile.TemporaryDirectory() as folder:
        selftest_parts.main(folder)
    results()
    print("gpu-check --selftest: every way to end is reported")
    return 0
