"""python -m berth.ray: a program as the tasks of a cluster on Ray; `berth launch --ray ADDRESS -- PROGRAM` is this."""
import os
import signal
import sys
import threading
import time

import ray

from berth import _ray_plan as plan
from berth.ray._program import Program


def say(text):
    """A line of the launcher."""
    print(f"berth launch: {text}", file=sys.stderr, flush=True)


class Launcher:
    """Starts the tasks, prints their lines, and ends them together."""

    def __init__(self, options):
        self._o = options
        self._names = [f"{job}:{index}" for job, index in plan.tasks_of(options)]
        self._lock, self._changed = threading.Lock(), threading.Event()
        self._ended = {}  # status by task
        self._printing = threading.Lock()

    def run(self):
        """Returns the exit status: that of the first task that failed."""
        o = self._o
        tasks = plan.tasks_of(o)
        actors = [Program.options(num_cpus=o.cpus if job == "worker" else 0, num_gpus=o.gpus if job == "worker" else 0,
                                  scheduling_strategy="SPREAD").remote() for job, _ in tasks]
        asked = [a.address.remote() for a in actors]
        _, late = ray.wait(asked, num_returns=len(asked), timeout=o.start)
        if late:
            say(f"{len(late)} of {len(tasks)} tasks have not started within {o.start:.0f} s: each worker needs {o.cpus} CPUs and "
                f"{o.gpus} GPUs of Ray, which has {ray.cluster_resources().get('CPU', 0):.0f} and "
                f"{ray.cluster_resources().get('GPU', 0):.0f} in all; wait for others to end, or ask for less")
            return 1
        jobs = {}
        for (job, _), at in zip(tasks, ray.get(asked)):
            if job != "evaluator":
                jobs.setdefault(job, []).append(at)
        secret = plan.Secret(os.environ.get("BERTH_CLUSTER_SECRET") or plan.new_secret())
        for (job, index), name, actor in zip(tasks, self._names, actors):
            variables = {"TF_CONFIG": plan.tf_config(jobs, job, index), "BERTH_CLUSTER_SECRET": secret,
                         "BERTH_DEVICES": o.devices, "BERTH_RESTART_COUNT": "0"}
            lines = actor.run.options(num_returns="streaming").remote(o.command, os.getcwd(), variables,
                                                                      o.cpus if job == "worker" else 0)
            threading.Thread(target=self._read, args=(name, lines), daemon=True).start()
        return self._wait(tasks, actors)

    def _read(self, name, lines):
        """Prints what a task prints, until it ends."""
        status, last = None, ""
        try:
            for line in lines:
                to, text = ray.get(line)
                if to == "status":
                    status = text
                    break
                last = text
                with self._printing:
                    print(f"[{name}] {text}", file=sys.stderr if to == "error" else sys.stdout, flush=True)
        except ray.exceptions.RayError as error:
            status, last = 1, str(error).strip().splitlines()[-1]
        with self._lock:
            self._ended[name] = (1 if status is None else status, last)
        self._changed.set()

    def _wait(self, tasks, actors):
        """Waits for the end that decides, ends the others, and returns the status."""
        status, ask_at, kill_at, finishing, reported = 0, None, None, False, set()
        signalled = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda s, _: (signalled.append(s), self._changed.set()))
        while True:
            self._changed.wait(0.2)
            self._changed.clear()
            with self._lock:
                ended = dict(self._ended)
            now = time.monotonic()
            for name, (code, last) in ended.items():
                if code == 0 or name in reported or finishing or kill_at:
                    continue
                reported.add(name)
                left = [n for n in self._names if n.startswith("worker") and n not in ended]
                if self._o.ps and name.startswith("worker") and left:
                    say(f"{name} ended with status {code}; the other workers do its work")
                    continue
                say(f"{name} ended with status {code}" + (f"; its last line: {last}" if last else ""))
                status = status or code
                ask_at = ask_at or now + self._o.grace
            if len(ended) == len(tasks):
                return status
            if not finishing and not status and all(
                    n in ended for n, (job, _) in zip(self._names, tasks) if plan.decides_the_end(self._o, job)):
                finishing, ask_at = True, now + min(self._o.grace, 2.0)
            if signalled and not kill_at:
                status, ask_at = status or 128 + signalled[0], now
            if len(signalled) > 1:
                kill_at = now
            if ask_at and now >= ask_at:
                ask_at, kill_at = None, kill_at or now + self._o.grace
                self._signal(ended, actors, signal.SIGTERM)
            if kill_at and now >= kill_at:
                self._signal(ended, actors, signal.SIGKILL)
                kill_at = now + 5

    def _signal(self, ended, actors, number):
        for name, actor in zip(self._names, actors):
            if name not in ended:
                actor.signal.remote(int(number))


def main(arguments):
    """Returns the exit status."""
    options = plan.launch_options(arguments, os.environ)
    ray.init(address=None if options.address == "local" else options.address, log_to_driver=False, logging_level="ERROR",
             include_dashboard=False if options.address == "local" else None)
    try:
        return Launcher(options).run()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
