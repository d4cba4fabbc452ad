"""What runs in the processes of tasks: addresses, cores, variables."""
import os
import socket
import time

import ray

from berth import _ray_plan as plan

_held = []  # the sockets that say which cores this process has


def free_address():
    """The address of this node with a port that is free: where the task will listen."""
    host = ray.util.get_node_ip_address()
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.bind((host, 0))
        return plan.address(host, s.getsockname()[1])


def _take(core):
    """Whether this process has a core from now until it ends. A name that the kernel frees says so to the others."""
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind(f"\0berth/core/{core}")
    except OSError:
        s.close()
        return False
    _held.append(s)
    return True


def take_cores(count, wait_seconds=2.0):
    """Binds all threads of this process to `count` cores that no other task of this node has, and returns them.

    Ray counts CPUs and binds nobody. Returns [] and binds nothing where so many are not free: the node has fewer than
    Ray was told, or a task that is being ended has not ended within `wait_seconds`.
    """
    end = time.monotonic() + wait_seconds
    allowed = sorted(os.sched_getaffinity(0))
    while 0 < count <= len(allowed):
        before = len(_held)
        cores = []
        for core in allowed:
            if len(cores) < count and _take(core):
                cores.append(core)
        if len(cores) == count:
            for thread in os.listdir("/proc/self/task"):
                try:
                    os.sched_setaffinity(int(thread), cores)
                except OSError:  # it has ended since, or may not
                    continue
            return cores
        for s in _held[before:]:
            s.close()
        del _held[before:]
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return []


def prepare(variables, cpus, cores):
    """Makes this process a task: sets its variables and gives it its cores ("even", or "all": none of its own)."""
    for name in plan.OF_LAUNCHERS:
        os.environ.pop(name, None)
    os.environ.update({k: v for k, v in variables.items() if v is not None})
    if cores == "all" or cpus < 1 or cpus != int(cpus) or take_cores(int(cpus)):
        return
    os.environ.setdefault("BERTH_CPU_WORKERS", str(min(int(cpus), 32)))
    print(f"berth.ray: fewer than {int(cpus)} of the cores of {socket.gethostname()} are free of other tasks: this one shares "
          "all of them", flush=True)


@ray.remote
class ParameterServer:
    """The actor of one server: it serves until the chief is done."""

    def address(self):
        """Where it will listen."""
        return free_address()

    def serve(self, variables):
        """Joins the cluster and serves. Returns when the chief is done; raises UnavailableError when it is lost."""
        prepare(variables, 0, "all")
        from berth._servers import serve
        serve()
