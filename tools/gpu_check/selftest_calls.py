"""Shows that the two calls do what was prepared, in that order: on a tree and a build that
pretend."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

from gpu_check import machine, parts

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Each program notes what it was asked, with the time.
NOTE = f"""#!{sys.executable} -SE
import json, os, pathlib, sys, time
asked = " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
with open(os.environ["PRETENDED"], "a") as file:
    file.write(asked + " cache=" + os.environ.get("TORCHINDUCTOR_CACHE_DIR", "") + "\\n")
def of(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""
"""
BERTH = """
print(json.dumps({"logical": [{"name": "/device:GPU:0", "type": "GPU", "simulated": False,
                               "description": "a card"}], "plugins": []}))
"""
TESTS = """
print("[==========] Running 1 test from 1 test suite.\\n[ RUN      ] a.One")
print("x" * 5000 if "conformance" in asked else "")
print("[       OK ] a.One (0 ms)")
"""
# The report is there before the first part.
PROBED = """
if not (pathlib.Path(os.environ["PRETENDED_OUT"]) / "report.txt").exists():
    sys.exit("no report yet")
""" + TESTS
# What came before is written, and the peer is being compiled beside it.
DEVICE_SUITE = """
out, end = pathlib.Path(os.environ["PRETENDED_OUT"]), time.monotonic() + 20
while "gpu_torch" not in open(os.environ["PRETENDED"]).read() and time.monotonic() < end:
    time.sleep(0.05)
here = {f.name for f in out.iterdir()}
missing = {"probe.txt", "trace.txt", "report.txt", "report.json", "logs.tar.gz"} - here
before = [p["name"] for p in json.loads((out / "report.json").read_text())["parts"]]
if missing or before != ["probe", "trace"] or time.monotonic() > end:
    sys.exit(f"missing {missing}, before it {before}")
""" + TESTS
BENCH = """
name = of("--model")
if "BERTH_GPU_TRACE" in os.environ:
    open(os.environ["BERTH_GPU_TRACE"], "w").write("[\\n" + "".join(
        json.dumps({"ph": "X", "cat": "op", "name": "Op", "dur": 100.0 - i,
                    "args": {"bytes": 8000, "kernel": f"kernel_{i}"}}) + ",\\n" for i in range(40)))
line = {"product": {"tflops": 700}, "cublaslt": {"tflops": 700, "algorithms": 9},
        "chain": {"share": 0.9, "gb_per_second": 1, "copy_gb_per_second": 1},
        "input_copy": {"hidden": 1, "median_us": 1, "resident_us": 1, "copy_us": 1,
                       "batching_us": 1}}
print(json.dumps(line.get(name, {"launch_us": 3, "median_us": 50, "first_loss": 2.4,
                                 "in_float32": []})))
"""
PEER = """
for variant in of("--variants").split(","):
    print(json.dumps({"variant": variant, "median_us": 60, "version": "2", "tflops": 690,
                      "first_loss": 2.4}))
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(NOTE + text, encoding="utf-8")
    path.chmod(0o755)


def call(folder, names, seconds):
    """(what was asked of programs, in order; the folder of the report)"""
    noted, out = folder / "noted", folder / "report"
    shutil.rmtree(out, ignore_errors=True)
    noted.write_text("", encoding="utf-8")
    done = subprocess.run(
        [folder / "root/tools/gpu-check", "--out", out, "--work", folder / "work", "--build",
         folder / "build", "--budget", str(seconds), "--parts", names], capture_output=True,
        text=True, check=False, timeout=seconds + 30,
        env={**os.environ, "PRETENDED": str(noted), "PRETENDED_OUT": str(out)})
    assert done.returncode == 0, done.stdout + done.stderr
    return noted.read_text(encoding="utf-8").splitlines(), out


def calls(folder):
    """Both, with the peer."""
    for name in ("tools/gpu-check", "bench/gpu_table.py"):
        (folder / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "root" / name)
    shutil.copytree(ROOT / "tools/gpu_check", folder / "root/tools/gpu_check")
    program(folder / "root/bench/peers/gpu_torch.py", PEER)
    for name, text in (("berth", BERTH), ("conformance", PROBED), ("device_suite", DEVICE_SUITE),
                       ("bench_gpu", BENCH), ("digits", 'print("devices: GPU:0\\n" + json.dumps('
                                              '{"test_accuracy": 1, "devices": "GPU:0"}))')):
        program(folder / "build/bin" / name, text)
    (first, _, _), (second, _, _) = parts.CALLS
    noted, out = call(folder, first, 100)
    text = (out / "trace.txt").read_text(encoding="utf-8")
    assert all(f"== {model}: " in text for model in ("mlp", "gpt2", "resnet50")), text
    assert "kernel_29" in text and "kernel_30" not in text, text
    with tarfile.open(out / "logs.tar.gz") as tar:
        logs = [tar.extractfile(m).read().decode() for m in tar.getmembers()]
    assert sum("x" * 5000 in log for log in logs) >= 4, "logs are cut"
    peers = [i for i, line in enumerate(noted) if line.startswith("gpu_torch")]
    traced = [i for i, line in enumerate(noted) if line.startswith("bench_gpu")]
    assert len(peers) == 2 and min(peers) > max(traced), noted
    cache = {noted[i].rpartition("cache=")[2] for i in peers}
    noted, out = call(folder, second, 60)
    asked = [line.split()[2] for line in noted if line.startswith("bench_gpu")]
    assert list(dict.fromkeys(asked)) == ["gpt2", "resnet50", "product", "cublaslt", "chain", "mlp",
                                          "input_copy"], asked
    assert cache == {line.rpartition("cache=")[2] for line in noted
                     if line.startswith("gpu_torch")} != {""}, noted
    rows = json.loads((out / "report.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 7 and all(r["value"] for r in rows), rows


def order():
    """Of the parts; which of them there are not; how long devices may take to be found."""
    names = [name for name, _, _ in parts.PARTS]
    assert names[:2] == ["probe", "trace"] and names[-1] == "rows", names
    # On a fake driver they would meet the card's real libraries.
    assert not [n for n in names if n.startswith("backends_cuda")], names
    limits, run = [], machine.run
    machine.run = lambda command, environment, limit_s: limits.append(limit_s) or run(
        ["/bin/sh", "-c", "echo no driver >&2"], environment, 9)
    try:
        bundle = machine.Bundle.__new__(machine.Bundle)
        bundle.bin = pathlib.Path("/")
        assert "no driver" in machine.devices(bundle, dict(os.environ))[1]
    finally:
        machine.run = run
    assert limits == [150], limits
    if (ROOT / "docs/gpu.md").exists():
        text = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
        for (asked, budget, _) in parts.CALLS:
            assert f"--budget {budget}" in text and f"--parts {asked}" in text, asked
        assert " s and ".join(str(seconds) for _, _, seconds in parts.CALLS) in text


def main(folder):
    calls(folder)
    order()
