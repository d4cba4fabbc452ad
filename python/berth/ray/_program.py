"""The actor of a task that is a program of its own (python -m berth.ray)."""
import os
import queue
import signal
import subprocess
import sys
import threading

import ray

from berth import _ray_plan as plan
from berth.ray import _worker

# The program dies with the actor, also when that is killed.
_DIES_TOO = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(f"berth launch: {sys.argv[1]}: {error.strerror}, on {os.uname().nodename}", file=sys.stderr)
    sys.exit(127)
"""


@ray.remote(max_concurrency=4)
class Program:
    """Runs a program on the node where Ray puts it, with the variables and cores of a task."""

    def __init__(self):
        self._process = None

    def address(self):
        """Where the program will listen."""
        return _worker.free_address()

    def run(self, command, folder, variables, cpus):
        """Yields ("out" or "error", line) of the program, at last ("status", its exit status; 128 and more for signals)."""
        if cpus:
            _worker.take_cores(cpus)
        if not os.path.isdir(folder):
            yield "error", (f"berth launch: {os.uname().nodename} has no folder {folder}; start in one that all nodes have")
            yield "status", 127
            return
        self._process = process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _DIES_TOO, *command], cwd=folder, env=plan.environment(os.environ, **variables), text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        lines = queue.SimpleQueue()

        def read(name, pipe):
            for line in pipe:
                lines.put((name, line.rstrip("\n")))
            lines.put(None)

        def wait():
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            self.signal(signal.SIGKILL)  # processes that it left running
            process.wait()
        readers = [threading.Thread(target=read, args=args, daemon=True)
                   for args in (("out", process.stdout), ("error", process.stderr))]
        for thread in (*readers, waiter := threading.Thread(target=wait, daemon=True)):
            thread.start()
        for _ in readers:
            while (line := lines.get()) is not None:
                yield line
        waiter.join()
        self._process = None
        status = process.returncode
        yield "status", status if status >= 0 else 128 - status

    def signal(self, number):
        """Sends a signal to the program and what it started."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                pass
