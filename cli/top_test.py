#!/usr/bin/env python3
"""berth top: a program that runs, one that ended, a stale socket, a folder of everybody's."""
import json
import os
import socket
import subprocess
import sys
import tempfile

BERTH = sys.argv[1]


def top(folder, *arguments, **environment):
    done = subprocess.run([BERTH, "top", "--interval", "0.05", *arguments], capture_output=True, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": folder, **environment}, timeout=60)
    return done.returncode, done.stdout, done.stderr


with tempfile.TemporaryDirectory() as folder:
    code, out, _ = top(folder)
    assert code == 0 and "no program runs with BERTH_TOP=1" in out, out
    # The command itself is a program of Berth's.
    code, out, _ = top(folder, "--json", BERTH_TOP="1")
    reading = json.loads(out)
    program, = reading["programs"]
    assert code == 0 and " top " in program["program"] and program["input_wait_share"] == 0, out
    assert program["devices"] == [] and reading["problems"] == [], out  # it made none
    assert os.listdir(os.path.join(folder, "berth")) == []  # and removed its socket
    # A socket that nobody listens to, and a process that is not there.
    stale = os.path.join(folder, "berth", "12345.sock")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(stale)
    code, out, _ = top(folder, "12345", "99")
    assert code == 0 and "PID 12345: ended without removing its socket" in out and "PID 99: is not there" in out, out
    assert not os.path.exists(stale)
    code, out, _ = top(folder, BERTH_TOP="1")
    assert code == 0 and "waiting for input 0 % of the time" in out and "\x1b" not in out, out
    os.chmod(os.path.join(folder, "berth"), 0o777)
    code, _, err = top(folder)
    assert code == 1 and "this user alone" in err, err
