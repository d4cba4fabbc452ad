"""Clusters of `berth launch` of which a task is killed, stopped for a while or told to end at any moment: the
launcher and all its tasks end by themselves, whatever their status."""
import collections
import os
import random
import signal
import subprocess
import tempfile
import time

GRAMMAR = """
tasks   2 or 3 workers; 0, 1 or 2 parameter servers, which bring a chief
event   kill | stop (SIGSTOP, up to 2 s later SIGCONT), three in five | terminate
victim  any of the tasks
moment  0.2 to 3.2 s after the start: joining, training, saving, leaving
"""
LIMIT = 120  # seconds to end in, on a machine with much else to do
BUILD = os.environ.get("BERTH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build",
                                                 "release", "bin"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def stacks(pid):
    """What a process and its children wait for, where gdb is there to ask."""
    for each in (pid, *children(pid)):
        try:
            print(subprocess.run(["gdb", "-p", str(each), "-batch", "-ex", "thread apply all bt"], text=True,
                                 capture_output=True, check=False).stdout)
        except FileNotFoundError:
            return


def disturb(launcher, draw, event, count):
    time.sleep(0.2 + draw.random() * 3)
    try:
        victim = draw.choice(children(launcher.pid)[-count:])
        if event != "stop":
            os.kill(victim, signal.SIGKILL if event == "kill" else signal.SIGTERM)
            return
        os.kill(victim, signal.SIGSTOP)
        time.sleep(draw.random() * 2)
        os.kill(victim, signal.SIGCONT)
    except (IndexError, OSError):
        pass  # it has ended before


def status_of(draw, event, workers, servers, environment):
    """The launcher's status, or None where it has not ended."""
    strategy = "parameter-server" if servers else "multi-worker"
    command = [f"{BUILD}/berth", "launch", "--workers", str(workers), "--ps", str(servers), "--json", "--",
               f"{BUILD}/digits", "--strategy", strategy, "--epochs", "1", "--batch-size", "64"]
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True) as launcher:
        disturb(launcher, draw, event, workers + servers + (servers > 0))
        try:
            return launcher.wait(LIMIT)
        except subprocess.TimeoutExpired:
            output.seek(0)
            print(output.read())
            stacks(launcher.pid)
            for pid in (*children(launcher.pid), launcher.pid):
                os.kill(pid, signal.SIGKILL)
            return None


def main(args):
    print(f"launched: seed {args.seed}, {args.count} cases", flush=True)
    ends, not_ended = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as digits:
        environment = {**os.environ, "BERTH_OFFLINE": "1", "BERTH_DATA": digits}
        subprocess.run([f"{BUILD}/draw_digits", digits], check=True)
        for number in range(args.count) if args.only is None else [args.only]:
            draw = random.Random(f"{args.seed}/{number}")
            workers, servers = draw.choice((2, 3)), draw.choice((0, 0, 1, 2))
            event = draw.choice(("stop", "stop", "stop", "kill", "terminate"))
            status = status_of(draw, event, workers, servers, environment)
            ends[(event, "not ended" if status is None else f"status {status}")] += 1
            if status is None:
                not_ended += 1
                print(f"NOT ENDED {number}: {workers} workers, {servers} servers, {event}", flush=True)
    for (event, end), count in sorted(ends.items()):
        print(f"  {event}: {end}, {count} times")
    print(f"launched: {ends.total()} cases, {not_ended} not ended")
    return 1 if not_ended else 0

