#!/usr/bin/env python3
"""How long training stands still when tasks come and go under elastic().

elastic_rows.py [--task build/release/bin/fault_task] [--only lost|added|chief] [--rounds 5]: prints lines of JSON, the
median and the worst of the rounds in seconds, on loopback:
  elastic_lost   from kill -9 of one of three tasks to the end of the next step of the others
  elastic_added  from the start of a process to the end of its first step; it gets 100 MB of state from another task
  elastic_chief  from kill -9 of the task that coordinates, in mid-step, to the end of the next step of the others
"""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import shutil
import statistics
import tempfile
import time

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools")
loader = importlib.machinery.SourceFileLoader("fault_suite", f"{TOOLS}/fault_suite")
fault_suite = importlib.util.module_from_spec(importlib.util.spec_from_loader("fault_suite", loader))
loader.exec_module(fault_suite)

WIDTH_OF_100_MB = 550_000  # 16 numbers of four bytes for each, with Adam's two slots: 106 MB


class Timed(fault_suite.Task):
    """A task whose lines come with their times."""

    def read(self):
        self.times = []
        for line in self.process.stdout:
            with self.changed:
                self.times.append(time.monotonic())
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.times.append(time.monotonic())
            self.lines.append("(end)")
            self.changed.notify_all()

    def time_of_step(self, after, number=1):
        """When the step after that time, of those that begin after it, was done."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with self.changed:
                steps = [t for t, line in zip(self.times, self.lines) if line.startswith("step") and t > after]
                if len(steps) >= number:
                    return steps[number - 1]
                if "(end)" in self.lines:
                    raise SystemExit(f"elastic_rows: {self.name} ended:\n" + "\n".join(self.lines))
                self.changed.wait(0.5)
        raise SystemExit(f"elastic_rows: {self.name} makes no step:\n" + "\n".join(self.lines))


class Cluster:
    def __init__(self, program, places, **options):
        ports = fault_suite.Ports()
        self.addresses = [f"127.0.0.1:{ports.take()}" for _ in range(places)]
        self.program, self.options = program, {"policy": "elastic", "min": 1, "slices": 8, "backups": 0, "pause": 0.05,
                                               **options}
        self.folder = self.backups = tempfile.mkdtemp(prefix="elastic_rows_")
        self.environment = {**os.environ, "BERTH_DEVICES": "CPUx1", "BERTH_SIM": "", "BERTH_CORES": "0"}
        self.started = []

    def cluster(self):
        return {"worker": self.addresses}

    def start(self, place):
        return Timed(self, place)

    def close(self):
        for task in self.started:
            task.process.kill()
            task.process.wait()
        shutil.rmtree(self.folder)


def killed(program, victim):
    cluster = Cluster(program, 3)
    try:
        tasks = [cluster.start(i) for i in range(3)]
        for t in tasks:
            t.wait_line("step 3", time.monotonic() + 120)
        # Between two steps the tasks rest: so in the next one.
        time.sleep(cluster.options["pause"] * 1.02)
        begin = time.monotonic()
        tasks[victim].process.kill()
        left = [t for i, t in enumerate(tasks) if i != victim]
        for t in left:
            t.wait_line("berth: worker:", time.monotonic() + 120)
        told = {t: next(at for at, line in zip(t.times, t.lines) if line.startswith("berth: worker:")) for t in left}
        return max(t.time_of_step(told[t]) for t in left) - begin
    finally:
        cluster.close()


def added(program):
    cluster = Cluster(program, 3, width=WIDTH_OF_100_MB)
    try:
        tasks = [cluster.start(i) for i in range(2)]
        for t in tasks:
            t.wait_line("step 2", time.monotonic() + 120)
        begin = time.monotonic()
        return cluster.start(2).time_of_step(begin) - begin
    finally:
        cluster.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", default="build/release/bin/fault_task")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    rows = {"lost": lambda: killed(o.task, 2), "added": lambda: added(o.task), "chief": lambda: killed(o.task, 0)}
    for name, row in rows.items():
        if o.only in ("", name):
            seconds = [row() for _ in range(o.rounds)]
            print(json.dumps({"row": f"elastic_{name}", "seconds": round(statistics.median(seconds), 3),
                              "worst": round(max(seconds), 3), "rounds": o.rounds}), flush=True)


if __name__ == "__main__":
    main()
