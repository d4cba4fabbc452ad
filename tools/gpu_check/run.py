"""Runs programs under time limits and reads what suites of tests print.

A program that runs over its limit is ended with all that it started; nothing here waits for
ever. What a suite printed until then counts.
All that programs print is kept in a folder, from which save_logs() makes an archive.
"""
import os
import pathlib
import re
import signal
import subprocess
import tarfile
import tempfile
import time

RUN = re.compile(r"^\[ RUN      \] (.+)$")
ENDS = {"OK": re.compile(r"^\[       OK \] (.+?) \(\d+ ms\)$"),
        "FAILED": re.compile(r"^\[  FAILED  \] (.+?)(?:, where .*)? \(\d+ ms\)$"),
        "SKIPPED": re.compile(r"^\[  SKIPPED \] (.+?) \(\d+ ms\)$")}
TOTAL = re.compile(r"^\[==========\] Running (\d+) tests? from ")
KEPT_TEXT = 400  # characters of what a failed test said, in the report
KEPT_LOG = 2 << 20  # bytes of what one program printed: its begin and its end
MOST_LOGS = 16 << 20  # bytes of the archive
logs = []  # the folder, once it is known


def keep_logs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    logs[:] = [folder]


def keep_log(command, text):
    if not logs:
        return
    if len(text) > KEPT_LOG:
        text = text[:KEPT_LOG // 2] + "\n[...]\n" + text[-KEPT_LOG // 2:]
    number = len(list(logs[0].glob("*.txt")))
    name = pathlib.Path(str(command[0])).name
    (logs[0] / f"{number:03}_{name}.txt").write_text(
        " ".join(str(c) for c in command) + "\n" + text, encoding="utf-8")


def save_logs(target):
    """One archive of them; what makes it too large is left out, the first ones stay."""
    if not logs:
        return
    new = target.with_name(target.name + ".new")
    with tarfile.open(new, "w:gz") as tar:
        for path in sorted(logs[0].glob("*.txt")):
            tar.fileobj.flush()
            if new.stat().st_size + path.stat().st_size > MOST_LOGS - (1 << 16):
                break
            tar.add(path, path.name)
    new.replace(target)


def started_by(pid):
    """The processes that `pid` and those below it started, of whatever session."""
    parents, found = {}, [pid]
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:  # after the name, which may hold anything: state, parent
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            pass  # it has ended meanwhile
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


class Process:
    """A program with a limit, its output in a file so that no pipe fills up."""

    def __init__(self, command, environment, limit_s):
        self.begin = time.monotonic()
        self.command = command
        self.limit_s = max(limit_s, 0.1)
        self.timed_out = False
        self.file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(c) for c in command], env=environment, stdin=subprocess.DEVNULL,
            stdout=self.file, stderr=subprocess.STDOUT, start_new_session=True)

    def over(self):
        """Whether it has ended; ends it when its time is up."""
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.begin > self.limit_s:
            self.timed_out = True
            self.end()
            return True
        return False

    def end(self):
        children = started_by(self.process.pid)
        for kill, pid in ((os.killpg, self.process.pid), *((os.kill, p) for p in children)):
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass  # stuck in a driver: it is left behind

    def status(self):
        return self.process.returncode

    def text(self):
        self.file.seek(0)
        return self.file.read().decode(errors="replace")


class Done:
    def __init__(self, process):
        self.status = process.status()
        self.text = process.text()
        self.timed_out = process.timed_out
        self.seconds = time.monotonic() - process.begin
        keep_log(process.command, self.text)


def run_all(commands, environment, limit_s, at_once):
    """Runs [(command, extra variables)], `at_once` at a time; a Done for each, None for those
    that there was no time to start."""
    end = time.monotonic() + limit_s
    done, running, waiting = [None] * len(commands), {}, list(enumerate(commands))
    try:
        while waiting or running:
            while waiting and len(running) < at_once and time.monotonic() < end:
                index, (command, extra) = waiting.pop(0)
                running[index] = Process(command, {**environment, **extra},
                                         end - time.monotonic())
            for index in [i for i, p in running.items() if p.over()]:
                done[index] = Done(running.pop(index))
            if waiting and not running and time.monotonic() >= end:
                break
            time.sleep(0.02)
    finally:
        for process in running.values():
            process.end()
    return done


def run(command, environment, limit_s):
    """A Done, also of a command for which no time is left."""
    return run_all([(command, {})], environment, max(limit_s, 0.1), 1)[0]


def how_it_ended(done):
    """"" for an orderly end, else words."""
    if done.timed_out:
        return "ran over its time"
    if done.status is not None and done.status < 0:
        try:
            name = signal.Signals(-done.status).name
        except ValueError:
            name = f"signal {-done.status}"
        return f"ended by {name}"
    return ""


def read_tests(text):
    """{"expected", "passed": [names], "failures": [{name, text}], "skips": {reason: count},
    "unfinished": the test that was running at the end or ""}"""
    found = {"expected": 0, "passed": [], "failures": [], "skips": {}, "skipped": 0,
             "unfinished": ""}
    said = []
    for line in text.splitlines():
        total = TOTAL.match(line)
        if total:
            found["expected"] = int(total.group(1))
            continue
        began = RUN.match(line)
        if began:
            found["unfinished"], said = began.group(1), []
            continue
        for how, pattern in ENDS.items():
            end = pattern.match(line)
            if not end or not found["unfinished"]:
                continue
            found["unfinished"] = ""
            if how == "OK":
                found["passed"].append(end.group(1))
            elif how == "FAILED":
                found["failures"].append({"name": end.group(1),
                                          "text": "\n".join(said)[:KEPT_TEXT]})
            else:
                reason = reason_of_skip(said)
                found["skipped"] += 1
                found["skips"][reason] = found["skips"].get(reason, 0) + 1
            break
        else:
            said.append(line)
    return found


def reason_of_skip(said):
    for i, line in enumerate(said):
        if line.endswith(": Skipped") and i + 1 < len(said):
            return said[i + 1].strip()
    return "no reason given"


def run_tests(program, arguments, environment, limit_s, shards=1):
    """Runs a suite in `shards` processes; the fields of a part of the report."""
    commands = [([program, *arguments],
                 {} if shards == 1 else {"GTEST_TOTAL_SHARDS": str(shards),
                                         "GTEST_SHARD_INDEX": str(i)})
                for i in range(shards)]
    begin = time.monotonic()
    part = {"passed": 0, "failed": 0, "skipped": 0, "not_run": 0, "failures": [],
            "skips": {}, "notes": []}
    unfinished = False
    for i, done in enumerate(run_all(commands, environment, limit_s, shards)):
        if done is None:
            unfinished = True
            continue
        tests = read_tests(done.text)
        part["passed"] += len(tests["passed"])
        part["failed"] += len(tests["failures"])
        part["failures"] += tests["failures"]
        part["skipped"] += tests["skipped"]
        for reason, count in tests["skips"].items():
            part["skips"][reason] = part["skips"].get(reason, 0) + count
        ended = len(tests["passed"]) + len(tests["failures"]) + tests["skipped"]
        part["not_run"] += max(0, tests["expected"] - ended)
        words = how_it_ended(done)
        if done.timed_out:
            unfinished = True
        if words:
            at = f" in {tests['unfinished']}" if tests["unfinished"] else ""
            part["notes"].append(f"process {i + 1} of {shards} {words}{at}")
        if words and not done.timed_out:
            part["failed"] += 1
            part["failures"].append({"name": tests["unfinished"] or "(process)",
                                     "text": words + "\n" + done.text[-KEPT_TEXT:]})
        elif not words and done.status not in (0, None) and not tests["failures"]:
            part["failed"] += 1
            part["failures"].append({"name": "(process)", "text": f"exit status {done.status}\n" +
                                     done.text[-KEPT_TEXT:]})
    if part["failed"]:
        part["status"] = "failed"
    elif unfinished:
        part["status"] = "not finished"
    elif part["passed"] == 0:
        part["status"] = "skipped"
    else:
        part["status"] = "passed"
    part["seconds"] = round(time.monotonic() - begin, 1)
    return part


def try_alone(program, arguments, environment, limit_s, part, at_once):
    """Runs failed tests again, each in a process of its own: what fails alone, too, is not a victim
    of another test. Adds "fails_alone" and "passes_alone"."""
    names = [f["name"] for f in part["failures"] if not f["name"].startswith("(")][:40]
    rest = [a for a in arguments if not a.startswith("--gtest_filter")]
    def quoted(name):  # ':' and '-' mean something in a filter
        return re.sub(r"[:*-]", "?", name)
    commands = [([program, *rest, f"--gtest_filter={quoted(name)}"], {}) for name in names]
    part["fails_alone"], part["passes_alone"] = [], []
    for name, done in zip(names, run_all(commands, environment, limit_s, at_once)):
        if done is not None and not done.timed_out:
            part["fails_alone" if done.status else "passes_alone"].append(name)
