"""What berth.ray decides without Ray: descriptions of clusters, options, secrets."""
import argparse
import json
import secrets

STRATEGIES = ("multi-worker", "parameter-server")

# Variables of other launchers, which must not reach a task: they would be followed, or reported as contradictions.
OF_LAUNCHERS = (
    "TF_CONFIG", "CLUSTER_SPEC", "BERTH_HOSTS", "BERTH_JOBS", "BERTH_PORT", "BERTH_TASK_INDEX", "JOB_COMPLETION_INDEX",
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PMI_RANK", "PMI_SIZE", "PMI_FD",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID",
    "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")


class Secret(str):
    """A text that is not printed."""

    def __repr__(self):
        return "<secret>"


def new_secret():
    """256 random bits as hexadecimal digits."""
    return Secret(secrets.token_hex(32))


def check(strategy, parameter_servers, least_workers=2):
    """Raises ValueError for a cluster that cannot work. least_workers: the smallest group that Ray may start."""
    if strategy not in STRATEGIES:
        raise ValueError(f"BerthTrainer: strategy={strategy!r}; expected {' or '.join(map(repr, STRATEGIES))}")
    if strategy == "multi-worker":
        if parameter_servers not in (None, 0):
            raise ValueError(f"BerthTrainer: parameter_servers={parameter_servers!r} has no effect with "
                             "strategy='multi-worker'; leave it out, or write strategy='parameter-server'")
        return
    if parameter_servers is not None and (not isinstance(parameter_servers, int) or parameter_servers < 1):
        raise ValueError(f"BerthTrainer: parameter_servers={parameter_servers!r}; expected a number of servers, 1 or more")
    if least_workers < 2:
        raise ValueError(f"BerthTrainer: strategy='parameter-server' with num_workers of {least_workers}; expected 2 or more "
                         "(also as the minimum): worker 0 is the chief, which schedules, the others compute")


def address(host, port):
    """"host:port", with brackets around an address of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def cluster(strategy, workers, servers=()):
    """The addresses by job. Under parameter servers worker 0 of Ray is the chief, and worker n the task worker:n-1."""
    if strategy == "multi-worker":
        return {"worker": list(workers)}
    return {"chief": [workers[0]], "worker": list(workers[1:]), "ps": list(servers)}


def task(strategy, rank):
    """(job, index) of a worker of Ray."""
    if strategy == "multi-worker":
        return "worker", rank
    return ("chief", 0) if rank == 0 else ("worker", rank - 1)


def tf_config(jobs, job, index):
    """TF_CONFIG of one task."""
    return json.dumps({"cluster": jobs, "task": {"type": job, "index": index}, "rpc_layer": "grpc"})


def environment(inherited, **variables):
    """What a task inherits, without the variables of other launchers, and with those given (None: left out)."""
    kept = {k: v for k, v in inherited.items() if k not in OF_LAUNCHERS}
    kept.update({k: str(v) for k, v in variables.items() if v is not None})
    return kept


# ---- python -m berth.ray, which `berth launch --ray` is

def tasks_of(options):
    """(job, index) of every task: chief, workers, servers, evaluator."""
    chief = 1 if options.chief or options.ps else 0
    return [*[("chief", 0)] * chief, *(("worker", i) for i in range(options.workers)),
            *(("ps", i) for i in range(options.ps)), *[("evaluator", 0)] * options.evaluator]


def decides_the_end(options, job):
    """Whether the cluster's work is done when a task of this job ends: with servers the chief, else chief and workers."""
    return job == "chief" or (job == "worker" and not options.ps)


def launch_options(arguments, variables=()):
    """The options of `python -m berth.ray`. Exits with status 2 for wrong ones, and for variables that it cannot follow."""
    parser = argparse.ArgumentParser(
        prog="python -m berth.ray", allow_abbrev=False, usage="%(prog)s --address ADDRESS [options] -- PROGRAM ARGUMENTS",
        description="Runs a program as the tasks of a cluster on Ray, as `berth launch` does on one machine.")
    number = {"type": int, "metavar": "N"}
    parser.add_argument("--address", required=True, help="of the Ray cluster: auto, HOST:PORT, or local for one of its own")
    parser.add_argument("--workers", default=1, help="tasks that train (1)", **number)
    parser.add_argument("--ps", default=0, help="parameter servers; they bring a chief, which coordinates", **number)
    parser.add_argument("--chief", action="store_true", help="a chief beside the workers")
    parser.add_argument("--evaluator", action="store_true", help="a task that evaluates what the others save")
    parser.add_argument("--devices", help="devices of each task, for example CPUx1")
    parser.add_argument("--cpus", default=1, help="of Ray's CPUs for each worker (1), which it gets as cores of its own", **number)
    parser.add_argument("--gpus", default=0, help="of Ray's GPUs for each worker (0)", **number)
    parser.add_argument("--grace", type=float, default=10.0, metavar="SECONDS", help="that tasks have to end by themselves (10)")
    parser.add_argument("--start", type=float, default=120.0, metavar="SECONDS", help="that Ray has to start all tasks (120)")
    parser.add_argument("command", nargs="*", help="the program and its arguments, after --")
    if "--" in arguments:
        cut = list(arguments).index("--")
        options = parser.parse_args(arguments[:cut])
        if options.command:
            parser.error(f"unexpected {' '.join(options.command)} before --")
        options.command = list(arguments[cut + 1:])
    else:
        options = parser.parse_args(arguments)
    if not options.command:
        parser.error("no program; expected: python -m berth.ray --address ADDRESS -- PROGRAM ARGUMENTS")
    if not options.address:
        parser.error("--address without an address; expected auto, HOST:PORT, or local")
    if options.workers < 0 or options.ps < 0 or options.workers + options.ps > 1000:
        parser.error(f"{options.workers} workers and {options.ps} parameter servers; expected 0 to 1000 in all")
    if options.workers == 0 and (options.ps or not options.chief):
        parser.error("--workers 0; expected one or more")
    if options.cpus < 0 or options.gpus < 0:
        parser.error(f"--cpus {options.cpus}, --gpus {options.gpus}; expected 0 or more")
    if "BERTH_PROFILE" in variables:
        parser.error("BERTH_PROFILE is set, and the tasks run elsewhere; unset it, and let the program record itself")
    for name in ("grace", "start"):
        if not 0 <= getattr(options, name) <= 86400:
            parser.error(f"--{name} takes seconds, 0 to 86400")
    return options
