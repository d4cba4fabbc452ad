"""What the Python peers share: arguments, cores, timing over blocks, the JSON line."""
import argparse
import json
import os
import time

MODELS = ("mlp", "cnn", "resnet18", "gpt", "lstm")
# The shapes of bench/models and of the libtorch peer.
GPT = {"layers": 4, "dim": 256, "heads": 8, "seq": 128, "batch": 8, "vocab": 4096}
LSTM = {"layers": 2, "units": 512, "seq": 100, "batch": 32}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--variant", default="", help="only variants that contain this")
    return parser.parse_args()


def use_cores(count):
    """Pins the process to its first cores; call before the framework is imported."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    os.environ.setdefault("OMP_NUM_THREADS", str(count))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def measure(step, seconds, calls_per_step=1):
    """(best, median) seconds of one step; step() must end when its results are there."""
    for _ in range(3):
        step()
    once = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        step()
        once = min(once, time.perf_counter() - begin)
    inner = max(1, int(20e-3 / once))
    blocks = []
    begin = time.perf_counter()
    while len(blocks) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        for _ in range(inner):
            step()
        blocks.append((time.perf_counter() - start) / inner / calls_per_step)
    blocks.sort()
    return blocks[0], blocks[len(blocks) // 2]


def measure_fixed(step, calls, blocks, warm_up=10):
    """Seconds per step of each block: as many steps in every process that takes part."""
    for _ in range(warm_up):
        step()
    times = []
    for _ in range(blocks):
        start = time.perf_counter()
        for _ in range(calls):
            step()
        times.append((time.perf_counter() - start) / calls)
    return times


def report_times(framework, version, args, variant, times):
    """Prints the line of times that were measured elsewhere."""
    times = sorted(times)
    print(json.dumps({
        "bench": "peer", "framework": framework, "version": version, "variant": variant,
        "model": args.model, "cores": args.cores, "best_us": round(times[0] * 1e6, 1),
        "median_us": round(times[len(times) // 2] * 1e6, 1)}), flush=True)


def report(framework, version, args, variants):
    """Measures each (name, make) and prints a line; make() returns step or (step, calls)."""
    for name, make in variants:
        if args.variant not in name:
            continue
        line = {"bench": "peer", "framework": framework, "version": version, "variant": name,
                "model": args.model, "cores": args.cores}
        try:
            step = make()
            step, calls = step if isinstance(step, tuple) else (step, 1)
            best, median = measure(step, args.seconds, calls)
            line.update(best_us=round(best * 1e6, 1), median_us=round(median * 1e6, 1))
        except Exception as error:  # a peer that cannot is a finding, not a crash
            line["failed"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(line), flush=True)
