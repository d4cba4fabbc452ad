"""The parts of the check. Each returns fields of the report within its seconds; none raises for
what a program under test does."""
import json
import os
import shutil
import sys
import time

from gpu_check import machine
from gpu_check.run import Process, how_it_ended, read_tests, run, run_tests, try_alone

# Rows of strategies on two parts of the GPU, not drawn at random.
TWO_DEVICES = "*GPUx2*-Random*:*Faults*"
# Of each source in src/backends/gpu that registers kernels, an op.
FAMILIES = {
    "elementwise": "AddV2/*float32", "integer_ops": "BitwiseXor/*int32",
    "convert": "Cast/to_*", "constant_ops": "Fill/*float32", "functions": "Erfinv/*float32",
    "random": "RandomUniform/*float32", "training": "ResourceApplyAdam/*float32",
    "reduce": "Sum/*float32", "softmax": "Softmax/*float32", "norm": "LayerNorm/*float32",
    "attention": "ScaledDotProductAttention/*float32", "scan": "Cumsum/*float32",
    "sort": "TopKV2/*float32", "movement": "Transpose/*float32",
    "pad_tile_reverse": "Pad/*float32", "tile_gradients": "TileGrad/*float32",
    "known_shapes": "Shape/*float32", "gather": "GatherV2/*float32",
    "scatter": "UnsortedSegmentSum/*float32", "dynamic": "Unique/*float32",
    "matmul": "MatMul/*float32", "conv": "Conv2D/*float32", "pool": "MaxPool/*float32"}
ONE_OF_EACH = ":".join(f"test.{op}" for op in FAMILIES.values())
# What cuBLASLt and cuDNN compute, in all dtypes, and with operands that begin anywhere, as slices.
OF_LIBRARIES = ":".join((
    "test.MatMul/*", "test._FusedMatMul/*", "slices.MatMul/*", "test.Conv2D*", "slices.Conv2D/*",
    "test.FusedBatchNorm*", "test.ScaledDotProductAttention*"))
# For a tool that makes everything fifty times as slow.
SANITIZED = ":".join(f"test.{op}/*float32" for op in (
    "MatMul", "Conv2D", "Softmax", "LayerNorm", "GatherV2", "Cumsum", "TopKV2", "Sum",
    "Transpose", "ResourceApplyAdam", "FusedBatchNormV3", "MaxPool"))
# Kernels in a trace's table.
TRACED = 30
MODELS = ("mlp", "gpt2", "resnet50")


class Context:
    def __init__(self, bundle, options):
        self.bundle, self.options = bundle, options
        self.environment = bundle.environment()
        self.machine = {}  # what the report says of it
        self.device = options.device
        cores = len(os.sched_getaffinity(0))
        self.at_once = max(1, min(cores, options.processes or 12))

    def program(self, name):
        return self.bundle.bin / name


def absent(why):
    return {"status": "absent", "notes": [why]}


def suite(program, *arguments, shards=False, filter_=""):
    """A part that runs a suite of tests; `filter_` unless the user says another."""
    def part(context, limit_s, name):
        path = context.program(program)
        if not path.exists():
            return absent(f"{program} is not here")
        wanted = context.options.filters.get(name, filter_)
        given = [a.format(device=context.device) for a in arguments]
        if wanted:
            given.append(f"--gtest_filter={wanted}")
        environment = dict(context.environment)
        count = context.at_once if shards else 1
        if context.options.sample > 1:
            environment["GTEST_TOTAL_SHARDS"] = str(context.options.sample)
            environment["GTEST_SHARD_INDEX"] = "0"
            count = 1
        begin = time.monotonic()
        result = run_tests(path, given, environment, limit_s, count)
        left = limit_s - (time.monotonic() - begin)
        if result["failures"] and left > 3:
            for key in ("GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"):
                environment.pop(key, None)
            try_alone(path, given, environment, left, result, context.at_once)
        return result
    return part


def bench(context, model, seconds, limit_s, variables=None):
    """A row of bench_gpu: what it did, and its line or {}."""
    command = [context.program("bench_gpu"), "--model", model, "--device", context.device,
               "--blocks", "5", "--seconds", seconds]
    done = run(command + ["--small"] * context.options.small,
               {**context.environment, **(variables or {})}, limit_s)
    lines = [l for l in done.text.splitlines() if l.startswith("{")]
    return done, json.loads(lines[-1]) if done.status == 0 and lines else {}


def probe(context, limit_s, name):
    """What the card is, what calls cost, and one op of each family, in one process; what a step
    says is in probe.txt before the next one begins."""
    out = context.options.out / "probe.txt"
    out.write_text("== versions\n" + "\n".join(machine.versions(context.machine)) + "\n\n",
                   encoding="utf-8")
    end = time.monotonic() + limit_s
    part = {"status": "passed", "passed": 0, "failed": 0, "skipped": 0, "failures": [],
            "notes": [f"the text is {out.name}"]}

    def keep(title, done):
        with open(out, "a", encoding="utf-8") as file:
            file.write(f"== {title}, {done.seconds:.1f} s\n{done.text.rstrip()}\n\n")
        if done.timed_out:
            part["status"] = "not finished"
            part["notes"].append(f"{title} ran over its time")
        return done

    def failed(what, text):
        part["failed"] += 1
        part["failures"].append({"name": what, "text": text})

    def left():
        return end - time.monotonic()

    def step(title, command, seconds):
        return keep(title, run(command, context.environment, min(seconds, left())))
    step("berth devices --why", [context.program("berth"), "devices", "--why"], limit_s / 3)
    smi = shutil.which("nvidia-smi")
    if smi:
        step("clocks", [smi, "-q", "-d", "CLOCK"], 10)
    if context.program("bench_gpu").exists():
        done, part["latency"] = bench(context, "latency", 5, left() / 3)
        keep("latencies", done)
        part["notes"] += [f"{k} {v}" for k, v in part["latency"].items()
                          if k.endswith(("_us", "_ms", "_per_second"))]
        if not part["latency"] and not done.timed_out:
            failed("latencies", how_it_ended(done) or done.text[-400:])
    ops = [("ops of each family", ONE_OF_EACH), ("ops by libraries", OF_LIBRARIES)]
    if name in context.options.filters:
        ops = [("ops", context.options.filters[name])]
    for i, (title, wanted) in enumerate(ops):
        done = step(title, [context.program("conformance"), f"--device={context.device}",
                            f"--gtest_filter={wanted}"], left() / (len(ops) - i))
        tests = read_tests(done.text)
        part["passed"] += len(tests["passed"])
        part["skipped"] += tests["skipped"]
        part["failed"] += len(tests["failures"])
        part["failures"] += tests["failures"]
        if done.timed_out:
            continue
        if how_it_ended(done):
            failed(tests["unfinished"] or "(process)", how_it_ended(done))
        elif not tests["passed"] or done.status and not tests["failures"]:
            failed(title, f"exit status {done.status}: {done.text.strip()[-400:]}")
    if part["failed"]:
        part["status"] = "failed"
    return part


def kernels_of(path):
    """Name -> [calls, us, bytes] of what a trace (BERTH_GPU_TRACE) has on compute streams."""
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line.rstrip().rstrip(","))
        except ValueError:
            continue  # the first line, or one that was being written
        if event.get("ph") != "X" or event.get("cat") != "op":
            continue
        of = found.setdefault(event["args"].get("kernel") or event["name"], [0, 0, 0])
        of[0] += 1
        of[1] += event["dur"]
        of[2] += event["args"].get("bytes", 0)
    return found


def trace(context, limit_s, _):
    """Steps of each model, and the kernels that take the time; trace.txt grows by model."""
    if not context.program("bench_gpu").exists():
        return absent("bench_gpu is not here")
    out = context.options.out / "trace.txt"
    out.write_text("", encoding="utf-8")
    end = time.monotonic() + limit_s
    part = {"status": "passed", "passed": 0, "failed": 0, "failures": [],
            "notes": [f"the tables are {out.name}"]}
    for i, model in enumerate(MODELS):
        raw = context.bundle.work / f"trace_{model}.json"
        raw.unlink(missing_ok=True)
        left = (end - time.monotonic()) / (len(MODELS) - i)
        done, line = bench(context, model, 3, left, {"BERTH_GPU_TRACE": str(raw)})
        found = kernels_of(raw) if raw.exists() else {}
        rows = sorted(found.items(), key=lambda k: -k[1][1])[:TRACED]
        all_us = sum(k[1] for k in found.values()) or 1
        text = [f"== {model}: " + (json.dumps(line) if line else how_it_ended(done) or
                                   done.text[-400:]),
                f"{'us':>12} {'share':>6} {'calls':>7} {'us each':>9} {'MB each':>9} {'GB/s':>7}"]
        text += [f"{us:12.0f} {us / all_us:6.1%} {calls:7} {us / calls:9.1f} "
                 f"{size / calls / 1e6:9.3f} {size / max(us, 1e-3) / 1e3:7.0f}  {kernel}"
                 for kernel, (calls, us, size) in rows]
        with open(out, "a", encoding="utf-8") as file:
            file.write("\n".join(text) + "\n\n")
        if line and rows:
            part["passed"] += 1
        elif done.timed_out:
            part["status"] = "not finished"
            part["notes"].append(f"{model} ran over its time")
        else:
            part["failed"] += 1
            part["failures"].append({"name": model, "text": how_it_ended(done) or (
                "nothing was traced" if line else done.text[-400:])})
    if part["failed"]:
        part["status"] = "failed"
    return part


def warm_peers(context, seconds):
    """Begins to compile the peer's models, whose cache the rows use; None without a peer."""
    if not context.options.peers or context.options.small:
        return None
    script = context.bundle.root / "bench" / "peers" / "gpu_torch.py"
    both = " & ".join(f"'{sys.executable}' '{script}' --model {m} --variants compile --blocks 1 "
                      "--seconds 1" for m in ("gpt2", "resnet50"))
    return Process(["/bin/sh", "-c", both + " & wait"], peer_environment(context), seconds)


def peer_environment(context):
    return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(context.bundle.work / "inductor")}


def support(context, limit_s, _):
    """Which op has a kernel for which dtypes on the card; the table is a file of its own."""
    done = run([context.program("conformance"), "--mode=support", "--markdown",
                f"--device={context.device}"], context.environment, limit_s)
    path = context.options.out / "support.md"
    path.write_text(done.text, encoding="utf-8")
    words = how_it_ended(done)
    if done.timed_out:
        return {"status": "not finished", "notes": [words]}
    if done.status != 0:
        return {"status": "failed", "failed": 1,
                "failures": [{"name": "support", "text": words or done.text[-400:]}]}
    return {"status": "passed", "passed": 1, "notes": [f"the table is {path.name}"]}


def digits(context, limit_s, _):
    command = [context.program("digits"), "--devices", "GPUx1", "--epochs", "1", "--json"]
    found = {kind: sorted((context.bundle.files / "data").glob(f"t10k-{kind}-*"))
             for kind in ("images", "labels")}
    if all(found.values()):  # MNIST's test files: most of them to train with
        command += ["--images", found["images"][0], "--labels", found["labels"][0],
                    "--holdout", "1500"]
    else:
        command.append("--no-download")
    done = run(command, context.environment, limit_s)
    if done.timed_out:
        return {"status": "not finished", "notes": ["ran over its time"]}
    try:
        line = json.loads(done.text[done.text.rindex("\n{", 0, len(done.text)) + 1:])
    except ValueError:
        line = {}
    accuracy = line.get("test_accuracy", 0)
    if done.status != 0 or accuracy < 0.9 or "GPU:0" not in line.get("devices", ""):
        return {"status": "failed", "failed": 1, "failures": [
            {"name": "digits", "text": how_it_ended(done) or
             f"expected a test accuracy of 0.9 on GPU:0, got {line}: {done.text[-300:]}"}]}
    return {"status": "passed", "passed": 1, "digits": line}


def opencl(program):
    """A suite on the card by its OpenCL driver, where it has one."""
    def part(context, limit_s, name):
        path = context.program(program)
        if not path.exists():
            return absent(f"{program} is not here")
        environment = {**context.environment, "BERTH_CUDA": "off", "BERTH_OPENCL": "all"}
        end = time.monotonic() + limit_s
        document, why = machine.devices(context.bundle, environment, limit_s / 2)
        gpus = real_gpus(document)
        if not gpus:
            plugin = [p["why"] for p in (document or {}).get("plugins", [])
                      if p["name"] == "opencl"]
            return absent(why or "; ".join(plugin) or "no OpenCL device")
        command = [f"--device={context.device}"] if program == "device_suite" else []
        wanted = context.options.filters.get(name)
        command += [f"--gtest_filter={wanted}"] if wanted else []
        if context.options.sample > 1:
            environment |= {"GTEST_TOTAL_SHARDS": str(context.options.sample),
                            "GTEST_SHARD_INDEX": "0"}
        alone = program == "device_suite" or context.options.sample > 1
        result = run_tests(path, command, environment, end - time.monotonic(),
                           1 if alone else context.at_once)
        result["notes"].append("on " + gpus[0]["description"])
        return result
    return part


def sanitizer(context, limit_s, name):
    """compute-sanitizer's memcheck on a share of the ops, each array an allocation of its own."""
    tool = machine.find_tool("compute-sanitizer")
    if tool is None:
        return absent("compute-sanitizer was not found on the PATH, in the toolkit's folders "
                      "or in Python packages")
    environment = {**context.environment, "BERTH_GPU_ALLOCATOR": "exact"}
    wanted = context.options.filters.get(name, SANITIZED)
    begin = time.monotonic()
    done = run([tool, "--tool", "memcheck", "--error-exitcode", "99", "--print-limit", "20",
                context.program("conformance"), f"--device={context.device}",
                f"--gtest_filter={wanted}"], environment, limit_s)
    seconds = round(time.monotonic() - begin, 1)
    (context.options.out / "sanitizer.txt").write_text(done.text, encoding="utf-8")
    tests = read_tests(done.text)
    part = {"passed": len(tests["passed"]), "failed": len(tests["failures"]),
            "skipped": tests["skipped"], "skips": tests["skips"],
            "failures": tests["failures"], "seconds": seconds, "notes": [f"by {tool}"]}
    if "Device not supported" in done.text or "not supported on this system" in done.text:
        return absent(f"{tool} does not support this machine")
    errors = [l.strip() for l in done.text.splitlines() if "ERROR SUMMARY:" in l]
    part["notes"] += errors
    if done.timed_out:
        part["status"] = "not finished"
    elif not errors and not tests["passed"]:
        return absent(f"{tool} does not work here: {done.text.strip()[-300:]}")
    elif done.status == 99 or done.status != 0 or part["failed"]:
        part["status"] = "failed"
        if not part["failed"]:
            part["failed"] = 1
            part["failures"] = [{"name": "memcheck", "text": first_report(done.text)}]
    else:
        part["status"] = "passed"
    return part


def first_report(text):
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if "=========" in line and ("Invalid" in line or "error" in line.lower()):
            return "\n".join(lines[i:i + 12])[:800]
    return text[-400:]


def rows(context, limit_s, _):
    """The rows of the table for cards; each is kept as soon as it is there."""
    script = context.bundle.root / "bench" / "gpu_table.py"
    if not context.program("bench_gpu").exists():
        return absent("bench_gpu is not here")
    options = context.options
    out = options.out / "rows.jsonl"
    command = [options.python, script, "--bin", context.bundle.bin, "--device", context.device,
               "--deadline", str(round(max(limit_s - 8, 1))), "--out", out]
    # Peers must not find the libraries of the bundle.
    environment = peer_environment(context)
    environment["BERTH_TABLE_ENVIRONMENT"] = json.dumps(
        {k: v for k, v in context.environment.items() if os.environ.get(k) != v})
    if options.small:
        command += ["--small", "--peer-device", "cpu" if options.peers else "none"]
    elif not options.peers:
        command += ["--peer-device", "none"]
    out.unlink(missing_ok=True)
    done = run(command, environment, limit_s)
    found = [json.loads(l) for l in out.read_text().splitlines()] if out.exists() else []
    measured = [r for r in found if r["value"] is not None]
    part = {"rows": found, "passed": len(measured), "notes": [],
            "skipped": sum(r["status"] == "skipped" for r in found),
            "missed": sum(r["status"] == "missed" for r in found)}
    crashed = [r for r in found if r["status"] == "failed"]
    part["failed"] = len(crashed)
    part["failures"] = [{"name": r["row"], "text": r["reason"]} for r in crashed]
    if done.status != 0 and not done.timed_out:
        part["failed"] += 1
        part["failures"].append({"name": "gpu_table.py", "text": done.text[-400:]})
    if part["failed"]:
        part["status"] = "failed"
    elif done.timed_out or any(r["status"] == "not finished" for r in found):
        part["status"] = "not finished"
    else:
        part["status"] = "passed" if measured else "skipped"
    return part


def real_gpus(document):
    return [d for d in (document or {}).get("logical", [])
            if d["type"] == "GPU" and not d["simulated"]]


# The two calls of docs/gpu.md: parts, seconds of the budget and of the call.
CALLS = (("probe,trace,device_suite,conformance_test,conformance_split,conformance_grad,digits,"
          "sanitizer", 250, 280), ("rows", 420, 440))

# Seconds that other parts leave to the rows.
FOR_ROWS = 200

# name, seconds, what it does
PARTS = [
    ("probe", 60, probe),
    ("trace", 90, trace),
    ("device_suite", 30, suite("device_suite", "--device={device}")),
    ("conformance_test", 90, suite("conformance", "--device={device}", shards=True,
                                   filter_="test.*")),
    ("conformance_grad", 60, suite("conformance", "--device={device}", shards=True,
                                   filter_="grad.*:grad2.*")),
    ("conformance_split", 45, suite("conformance", "--device={device}", shards=True,
                                    filter_="split.*:slices.*")),
    ("support", 15, support),
    ("fixtures", 20, suite("fixtures_test", "--device={device}")),
    ("digits", 40, digits),
    ("strategies", 60, suite("conformance_strategy", shards=True, filter_=TWO_DEVICES)),
    ("opencl", 20, opencl("device_suite")),
    ("backends_opencl", 30, opencl("backends_opencl_test")),
    ("sanitizer", 45, sanitizer),
    ("rows", 600, rows),
]
