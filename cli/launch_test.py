#!/usr/bin/env python3
"""Starts clusters with `berth launch`, and asks `berth cluster` what it knows.

launch_test.py BERTH: every part has a deadline, so that nothing hangs; no
process of a cluster may be left behind.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BERTH = sys.argv[1]
LIMIT = 60  # seconds, of a machine that has much else to do


def environment(**more):
    names = ("TF_CONFIG", "CLUSTER_SPEC", "RANK", "WORLD_SIZE", "BERTH_HOSTS")
    env = {k: v for k, v in os.environ.items()
           if k not in names and not k.startswith(("SLURM_", "OMPI_", "PMI"))}
    env.update(more)
    return env


def berth(*args, **more):
    return subprocess.run([BERTH, *args], capture_output=True, text=True,
                          timeout=LIMIT, env=environment(**more), check=False)


def launch(options, script, **more):
    """Runs a shell script as the program of every task."""
    return berth("launch", *options, "--", "sh", "-c",
                 'me=$(printf %s "$TF_CONFIG" | sed \'s/.*"type":"\\([a-z]*\\)'
                 '","index":\\([0-9]*\\).*/\\1\\2/\'); ' + script, **more)


def check(ok, what):
    if not ok:
        raise AssertionError(what)


def same(got, wanted):
    check(got == wanted, f"{got!r} instead of {wanted!r}")


def contains(text, *parts):
    for part in parts:
        check(part in text, f"{part!r} is not in:\n{text}")


def gone(pids):
    """Waits until none of the processes is there; zombies do not count."""
    def there(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False
    end = time.monotonic() + LIMIT
    while any(there(p) for p in pids):
        check(time.monotonic() < end, f"left behind: {pids}")
        time.sleep(0.02)


def test_every_task_knows_its_place():
    r = berth("launch", "--workers", "2", "--ps", "1", "--evaluator", "--",
              BERTH, "cluster", "--json")
    same(r.returncode, 0)
    places = {}
    for line in r.stdout.splitlines():
        name, text = line.split("] ", 1)
        places[name.strip("[")] = json.loads(text)
    same(sorted(places), ["chief:0", "evaluator:0", "ps:0", "worker:0",
                          "worker:1"])
    for name, place in places.items():
        same((place["task"], place["source"]), (name, "TF_CONFIG"))
        same(place["coordinator"], "chief:0")
        check(place["secret"], "no secret")
    same(len({p["hash"] for p in places.values()}), 1)
    same([places[n]["rank"] for n in ("chief:0", "worker:0", "worker:1",
                                      "ps:0")], [0, 1, 2, -1])


def test_output_has_names_also_of_half_lines():
    r = launch(["--workers", "2"], 'echo "$me out"; echo "$me err" >&2; '
               'printf half')
    same(sorted(r.stdout.splitlines()),
         ["[worker:0] half", "[worker:0] worker0 out", "[worker:1] half",
          "[worker:1] worker1 out"])
    contains(r.stderr, "[worker:0] worker0 err", "[worker:1] worker1 err")


def test_the_first_failure_ends_all_and_is_named():
    r = launch(["--workers", "2", "--grace", "0.2"],
               '[ $me = worker0 ] && exec sleep 600; echo "no memory" >&2; '
               'exit 7')
    same(r.returncode, 7)
    contains(r.stderr, "worker:1 (pid", "exit status 7",
             "its last line: no memory")
    r = launch(["--workers", "2", "--grace", "0.2"],
               '[ $me = worker0 ] && exec sleep 600; kill -SEGV $$')
    same(r.returncode, 128 + signal.SIGSEGV)
    contains(r.stderr, "worker:1", "signal 11 (SIGSEGV)")


def test_what_does_not_end_is_killed():
    r = launch(["--workers", "2", "--grace", "0.2"],
               "[ $me = worker1 ] && { sleep 0.3; exit 3; }; trap '' TERM; "
               "echo ready; while :; do sleep 600 & wait; done")
    same(r.returncode, 3)
    contains(r.stderr, "killing worker:0")


def test_a_failed_task_is_started_again():
    r = launch(["--workers", "2", "--restarts", "2"],
               'echo $me try $BERTH_RESTART_COUNT; [ $me = worker0 ] || '
               '[ $BERTH_RESTART_COUNT = 2 ] || exit 9')
    same(r.returncode, 0)
    contains(r.stdout, "[worker:1] worker1 try 0", "[worker:1] worker1 try 2")
    contains(r.stderr, "starting it again (2 of 2)")
    r = launch(["--workers", "1", "--restarts", "1"], "exit 9")
    same(r.returncode, 9)


def test_servers_end_when_the_work_is_done():
    r = launch(["--workers", "1", "--ps", "1", "--grace", "0.2", "--json"],
               "[ $me = chief0 ] || exec sleep 600; echo done")
    same(r.returncode, 0)
    ended = [json.loads(s) for s in r.stdout.splitlines() if s[0] == "{"]
    same([e["status"] for e in ended if e["launch"] == "done"], [0])
    gone([e["pid"] for e in ended if e["launch"] == "started"])


def test_servers_do_without_a_worker_that_dies():
    r = launch(["--workers", "2", "--ps", "1", "--grace", "0.2", "--json"],
               "case $me in worker0) exit 7;; chief0) sleep 1; echo done;; "
               "*) exec sleep 600;; esac")
    same(r.returncode, 0)
    contains(r.stdout, "[chief:0] done")
    contains(r.stderr, "worker:0 (pid", "exit status 7", "the other workers")
    # The last one is missed.
    r = launch(["--workers", "2", "--ps", "1", "--grace", "0.2"],
               "case $me in worker0) exit 7;; worker1) sleep 0.5; exit 8;; "
               "*) exec sleep 600;; esac")
    same(r.returncode, 8)
    contains(r.stderr, "worker:1 (pid", "exit status 8")


def test_signals_are_passed_on():
    for number, status in ((signal.SIGINT, 5), (signal.SIGTERM, 6)):
        p = subprocess.Popen(
            [BERTH, "launch", "--workers", "2", "--", "sh", "-c",
             "trap 'exit 5' INT; trap 'exit 6' TERM; echo ready; "
             "while :; do sleep 0.02; done"],
            stdout=subprocess.PIPE, text=True, env=environment())
        for _ in range(2):
            contains(p.stdout.readline(), "ready")
        p.send_signal(number)
        same(p.wait(LIMIT), status)
        p.stdout.close()


def started(p, count):
    events = [json.loads(p.stdout.readline()) for _ in range(count)]
    return [e["pid"] for e in events]


def test_a_second_signal_kills():
    p = subprocess.Popen(
        [BERTH, "launch", "--workers", "2", "--json", "--grace", "600", "--",
         "sh", "-c", "trap '' INT; echo ready; while :; do sleep 600 & wait; "
         "done"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment())
    lines = [p.stdout.readline() for _ in range(4)]
    pids = [json.loads(s)["pid"] for s in lines if s[0] == "{"]
    p.send_signal(signal.SIGINT)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    check(p.wait(LIMIT) != 0, "a killed cluster ended with 0")
    p.stdout.close()
    gone(pids)


def test_a_launcher_that_is_killed_leaves_no_orphans():
    # Each task starts a process of its own.
    p = subprocess.Popen(
        [BERTH, "launch", "--workers", "2", "--", "sh", "-c",
         "sleep 600 & echo $! $$; wait"],
        stdout=subprocess.PIPE, text=True, env=environment())
    pids = []
    for _ in range(2):
        pids += [int(x) for x in p.stdout.readline().split("] ")[1].split()]
    p.kill()
    p.wait(LIMIT)
    p.stdout.close()
    gone(pids)


def test_a_reader_that_goes_ends_all():
    p = subprocess.Popen(
        [BERTH, "launch", "--workers", "2", "--grace", "0.2", "--", "sh", "-c",
         "while :; do echo spam; sleep 0.01; done"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env=environment())
    p.stdout.readline()
    p.stdout.close()
    check(p.wait(LIMIT) != 0, "lost output is no success")


def test_a_task_may_end_while_the_end_of_another_is_written():
    """worker:1 ends while nobody reads what the launcher says, then worker:0."""
    with tempfile.TemporaryDirectory() as folder:
        wait = 'while [ ! -e "$0/$me" ]; do sleep 0.02; done'
        me = ('me=$(printf %s "$TF_CONFIG" | sed \'s/.*"index":\\([0-9]*\\).*/\\1/\'); '
              "exec >&- 2>&-; " + wait)
        read, write = os.pipe()
        with subprocess.Popen([BERTH, "launch", "--workers", "2", "--json", "--", "sh",
                               "-c", me, folder], stdout=write, env=environment()) as p:
            pids = []
            late = threading.Timer(LIMIT, p.kill)
            late.start()
            with os.fdopen(read, encoding="utf-8", errors="replace") as lines:
                for _ in range(2):
                    pids.append(json.loads(lines.readline())["pid"])
                os.set_blocking(write, False)
                try:
                    while True:
                        os.write(write, b"\n" * 4096)
                except BlockingIOError:
                    pass
                for task in (1, 0):
                    pathlib.Path(folder, str(task)).touch()
                    gone([pids[task]])
                    time.sleep(0.2)  # for the launcher to see the signal
                os.close(write)
                ended = [json.loads(line)["task"] for line in lines if "ended" in line]
            same(p.wait(LIMIT), 0)
            late.cancel()
            same(sorted(ended), ["worker:0", "worker:1"])


def test_bad_arguments_say_what_is_expected():
    same(berth("launch", "--workers", "2").returncode, 2)
    r = berth("launch", "--workers", "2", "--", "/no/such/program")
    same(r.returncode, 127)
    contains(r.stderr, "/no/such/program", "No such file")
    for bad in (["--workers", "0"], ["--workers", "-1"], ["--ps", "100000"],
                ["--cores", "0/1/2"], ["--grace", "-1"], ["--restarts", "-1"],
                ["--port-base", "65536"], ["--workers", "x"]):
        r = berth("launch", *bad, "--", "true")
        same((bad, r.returncode), (bad, 2))
        contains(r.stderr, "berth")


def tf_config(cluster, job="worker", index=0):
    return json.dumps({"cluster": cluster,
                       "task": {"type": job, "index": index}})


def kept_port():
    """A port that other programs are not given, and that a task may listen on."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s


def test_cluster_says_whom_it_reaches():
    with socket.create_server(("127.0.0.1", 0)) as there, \
            kept_port() as own, kept_port() as closed:
        at = [f"127.0.0.1:{s.getsockname()[1]}" for s in (own, there, closed)]
        r = berth("cluster", "--check", "--json",
                  TF_CONFIG=tf_config({"worker": at}))
        place = json.loads(r.stdout)
        same([t["state"] for t in place["tasks"]],
             ["self", "stranger", "refused"])  # it says nothing
        same((r.returncode, place["own_port_error"]), (1, ""))
        # This task's port is somebody's.
        r = berth("cluster", "--check", "--json",
                  TF_CONFIG=tf_config({"worker": at}, index=1))
        same(r.returncode, 1)
        contains(json.loads(r.stdout)["own_port_error"], "in use")


def test_cluster_shakes_hands():
    with kept_port() as own, kept_port() as other:
        at = [f"127.0.0.1:{s.getsockname()[1]}" for s in (own, other)]
        worker = subprocess.Popen(
            [BERTH, "worker"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=environment(
                BERTH_CLUSTER_SECRET="right",
                TF_CONFIG=tf_config({"worker": at}, index=1)))
        try:
            end = time.monotonic() + LIMIT
            for secret, state, status, why in (
                    ("right", "reached", 0, "of this cluster"),
                    ("wrong", "stranger", 1, "secret")):
                while True:
                    r = berth("cluster", "--check", "--json",
                              BERTH_CLUSTER_SECRET=secret,
                              TF_CONFIG=tf_config({"worker": at}))
                    place = json.loads(r.stdout)
                    it = place["tasks"][1]
                    if it["state"] != "refused":
                        break
                    check(time.monotonic() < end, "the worker never listened")
                    time.sleep(0.1)
                same((it["state"], r.returncode, place["own_port_error"]),
                     (state, status, ""))
                contains(it["why"], why)
        finally:
            worker.kill()
            worker.wait()


def test_cluster_never_hangs():
    begin = time.monotonic()
    r = berth("cluster", "--check", "--json", "--timeout", "0.5",
              TF_CONFIG=tf_config({"worker": [
                  "host-that-is-not.invalid:1", "203.0.113.1:1"]}))
    check(time.monotonic() - begin < 30, "too long")
    states = [t["state"] for t in json.loads(r.stdout)["tasks"]]
    same(states[0], "self")
    check(states[1] != "self", states)
    r = berth("cluster", "--check", TF_CONFIG=tf_config(
        {"worker": ["localhost.invalid:1", "host-that-is-not.invalid:1"]}))
    same(r.returncode, 1)
    contains(r.stdout, "worker:1")


def test_cluster_quotes_what_is_wrong():
    r = berth("cluster", TF_CONFIG=tf_config({"ps_hosts": ["a:1"]}))
    same(r.returncode, 2)
    contains(r.stderr, "TF_CONFIG", '"ps_hosts"', 'write "ps"')
    r = berth("cluster")
    same(r.returncode, 0)
    contains(r.stdout, "alone")


def test_calibrate_measures_the_links_of_a_cluster():
    with tempfile.TemporaryDirectory() as folder:
        r = berth("launch", "--workers", "2", "--", BERTH, "calibrate",
                  "--cluster", "--quick", "--json", BERTH_CACHE_DIR=folder)
        same(r.returncode, 0)
        # On one core the launcher says that its tasks share it; nothing else.
        same([x for x in r.stderr.splitlines() if "they share all" not in x], [])
        # The first task alone speaks.
        name, text = r.stdout.strip().split("] ", 1)
        same((name, text.count("\n")), ("[worker:0", 0))
        told = json.loads(text)
        same(told["tasks"], 2)
        same([(x["from"], x["to"]) for x in told["links"]],
             [("worker:0", "worker:1"), ("worker:1", "worker:0")])
        for link in [*told["links"], told["sum"], told["ordered_sum"]]:
            same(link["origin"], "measured")
            check(link["latency_us"] > 0 and link["bytes_per_us"] > 0, link)
        same(told["kept_in"], os.path.join(folder, "costs.json"))
        with open(told["kept_in"], encoding="utf-8") as file:
            contains(file.read(), "sum of 2 tasks on 1 hosts",
                     "tasks at 127.0.0.1 -> 127.0.0.1")
    # Only tasks that train are measured.
    r = berth("launch", "--workers", "1", "--ps", "1", "--evaluator", "--",
              BERTH, "calibrate", "--cluster", "--quick")
    same(r.returncode, 0)
    contains(r.stdout, "[chief:0] worker:0       chief:0 ")
    check("ps:0" not in r.stdout, r.stdout)
    r = berth("calibrate", "--cluster")
    same((r.returncode, r.stdout), (2, ""))
    contains(r.stderr, "expected a cluster", "berth launch --workers 2")
    r = berth("calibrate", "--cluster", "--ops", "MatMul")
    same(r.returncode, 2)
    contains(r.stderr, "--ops")


def test_ray_runs_what_python_runs():
    with tempfile.TemporaryDirectory() as folder:
        python = os.path.join(folder, "python")
        with open(python, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\necho "$@"\nexit 5\n')
        os.chmod(python, 0o700)
        r = berth("launch", "--ray", "h:1", "--workers", "2", "--ps", "1", "--devices",
                  "CPUx1", "--cpus", "3", "--", "prog", "--json", BERTH_PYTHON=python)
        same((r.returncode, r.stdout),
             (5, "-m berth.ray --address=h:1 --workers=2 --ps=1 --cpus=3 --gpus=0 --grace=10 "
                 "--devices=CPUx1 -- prog --json\n"))
        for options in (["--cores", "all"], ["--port-base", "5000"],
                        ["--restarts", "1"], ["--json"]):
            r = berth("launch", "--ray", "h:1", *options, "--", "prog")
            same(r.returncode, 2)
            contains(r.stderr, "--ray", options[0])
        r = berth("launch", "--cpus", "2", "--", "true")
        same(r.returncode, 2)
        contains(r.stderr, "--cpus", "--ray")
        r = berth("launch", "--ray", "h:1", "--", "true", BERTH_PYTHON="/none/python")
        same(r.returncode, 2)
        contains(r.stderr, "/none/python", "BERTH_PYTHON")


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    failed = 0
    for name, test in tests:
        begin = time.monotonic()
        try:
            test()
        except (AssertionError, subprocess.TimeoutExpired, ValueError,
                KeyError) as e:
            failed += 1
            print(f"FAILED {name}: {type(e).__name__}: {e}")
        print(f"{name}: {time.monotonic() - begin:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
