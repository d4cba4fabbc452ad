"""Training that is killed, stopped or told to end at any moment, under every strategy, whose backups
are then whole, gone, cut or damaged: each run ends, and the one that is started again ends in the
bits of an undisturbed run, or in an error that names the backup where none can be read.
"""
import collections
import concurrent.futures
import importlib.machinery
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
_loader = importlib.machinery.SourceFileLoader("fault_suite", f"{HERE}/../fault_suite")
fault_suite = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("fault_suite", _loader))
_loader.exec_module(fault_suite)
Wrong, STEPS = fault_suite.Wrong, fault_suite.STEPS

GRAMMAR = """
strategy  none | mirrored and central on two GPUs, simulated | multi: 2 or 3 tasks | own: 2 tasks,
          each of which reads its own data | server: a chief, a worker, 1 or 2 servers
event     kill | kill all | pause (SIGSTOP, SIGCONT) | terminate (SIGTERM), which may save first
moment    join | step | between steps | save | leave
backups   whole | gone | manifest cut | manifest flipped | values cut | values flipped;
          of one task or of all; the newest or every one
every     1, 2, 3 steps, or an epoch; one or two backups are kept
times     1 to 3 such events, one after the other; the backups suffer after the last
"""
STRATEGIES = ("none", "mirrored", "central", "multi", "multi", "own", "server", "server")
EVENTS = ("kill", "kill", "kill all", "pause", "terminate")
BACKUPS = ("whole", "whole", "gone", "manifest cut", "manifest flipped", "values cut",
           "values flipped")


class Case(fault_suite.Scenario):
    """Draws as GRAMMAR says; what happens and how it ends is below."""

    def __init__(self, suite, number, strategy=None, servers=None):
        # pylint: disable=super-init-not-called
        self.suite, self.number = suite, number
        self.draw = draw = random.Random(f"{suite.seed}/{number}")
        self.strategy = strategy or draw.choice(STRATEGIES)
        self.event = draw.choice(EVENTS)
        self.moment = draw.choice(("join", "fit", "fit", "between", "save", "leave"))
        self.damage = draw.choice(BACKUPS)
        self.damaged_all, self.newest_only = draw.random() < 0.4, draw.random() < 0.3
        self.every, self.keep = draw.choice((0, 1, 1, 2, 3)), draw.choice((1, 2))
        self.step = draw.randrange(max(self.every, 1) + 2, STEPS - 3)
        self.delay, self.times = draw.random(), draw.choice((1, 1, 2, 3))
        workers = {"multi": draw.choice((2, 2, 3)), "own": 2}.get(self.strategy, 1)
        servers = servers or draw.choice((1, 2))
        self.jobs = [("worker", i) for i in range(workers)]
        if self.strategy == "server":
            self.jobs = [("chief", 0), ("worker", 0)] + [("ps", i) for i in range(servers)]
        self.victim = draw.randrange(len(self.jobs))
        # A worker that is lost runs its step again: bits are promised where it is not.
        if self.strategy == "server" and self.event != "pause" and self.victim == 1:
            self.victim = 0
        self.options = {
            "strategy": "multi" if self.strategy == "own" else self.strategy, "pause": 0.02,
            "every": self.every, "keep": self.keep, "policy": "raise",
            "preempt": int(self.event == "terminate" and draw.random() < 0.5)}
        if self.strategy == "own":
            self.options["data"] = "own"
        self.folder = tempfile.mkdtemp(prefix="resume_", dir=suite.memory)
        self.backups = f"{self.folder}/backups"
        self.started, self.network, self.program = [], None, suite.program
        simulated = self.strategy in ("mirrored", "central")
        self.environment = {
            **os.environ, "BERTH_DEVICES": "" if simulated else "CPUx1",
            "BERTH_SIM": "GPUx2" if simulated else "", "BERTH_CORES": "0", "BERTH_OFFLINE": "1"}
        self.addresses = [f"127.0.0.1:{suite.ports.take()}" for _ in self.jobs]
        self.deadline = time.monotonic() + suite.limit

    def __str__(self):
        return (f"{self.number}: {self.strategy} of {len(self.jobs)}, {self.event} at {self.moment} "
                f"of {':'.join(map(str, self.jobs[self.victim]))}, step {self.step}, every "
                f"{self.every}, {self.keep} kept, {self.times} times; backups {self.damage}"
                f"{' in all tasks' if self.damaged_all else ''}"
                f"{', the newest alone' if self.newest_only else ''}")

    def cluster(self):
        jobs = collections.defaultdict(list)
        for (job, _), address in zip(self.jobs, self.addresses):
            jobs[job].append(address)
        return jobs

    def start_all(self, but=None, **options):
        self.tasks = {i: fault_suite.Task(self, index, job=job, **options)
                      for i, (job, index) in enumerate(self.jobs)}

    # How it ends.

    def speakers(self):
        """Tasks that say how training ended: workers and servers of a chief do not."""
        return [i for i, (job, _) in enumerate(self.jobs) if self.strategy != "server"
                or job == "chief"]

    def end_of(self, task):
        """The last word of a task and what follows it, or "" and its status."""
        try:
            status = task.process.wait(max(0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            task.note_stacks()
            self.suite.not_ended += 1
            raise Wrong(f"{task.name} has not ended") from None
        task.reader.join(10)
        for line in reversed(task.lines):
            word, _, text = line.partition(" ")
            if (word, status) in (("done", 0), ("error", 1)):
                return word, text
        return "", str(status)

    def ends(self):
        return {i: self.end_of(t) for i, t in self.tasks.items()}

    def check_bits(self, ends):
        for i in self.speakers():
            if ends[i] != ("done", self.suite.reference_of(self)):
                raise Wrong(f"{self.tasks[i].name} ended in {ends[i]}; expected the bits "
                            f"{self.suite.reference_of(self)}")

    # What happens.

    def disturb(self):
        task = self.tasks[self.victim]
        if self.moment == "between":
            task.wait_line(f"step {self.step}", self.deadline)
        elif self.jobs[self.victim][0] in ("worker", "ps") and self.strategy == "server":
            # They say nothing: the chief tells the moment.
            victim, self.victim = self.victim, 0
            self.wait_moment()
            self.victim = victim
        else:
            self.wait_moment()
        if self.event == "pause":
            task.process.send_signal(signal.SIGSTOP)
            time.sleep(self.delay * 1.2)
            task.process.send_signal(signal.SIGCONT)
        elif self.event == "terminate":
            task.process.terminate()
        else:
            for other in self.tasks.values() if self.event == "kill all" else [task]:
                other.process.kill()

    def files(self, task, ending):
        """Backups of a task, oldest first."""
        folder = self.backups + (f"/task_{task}" if task else "")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return [f"{folder}/{n}" for n in sorted(names, key=lambda n: (len(n), n))
                if n.startswith("backup-") and n.endswith(ending)]

    def spoil(self):
        """Returns whether no backup that was there can be read any more."""
        keepers = range(len(self.jobs)) if self.strategy in ("multi", "own") else [0]
        had = [t for t in keepers if self.files(t, ".json")]
        chosen = list(keepers) if self.damaged_all else [self.draw.choice(list(keepers))]
        left = False
        for t in keepers:
            manifests, values = self.files(t, ".json"), self.files(t, ".safetensors")
            if t not in chosen or self.damage == "whole":
                left |= bool(manifests)
                continue
            for path in manifests if self.damage == "gone" else []:
                os.remove(path)
            for path in values if self.damage == "gone" else []:
                os.remove(path)
            paths = manifests if self.damage.startswith("manifest") else values
            if self.newest_only and self.damage != "gone":
                left |= len(manifests) > 1
                paths = paths[-1:]
            for path in paths if self.damage != "gone" else []:
                with open(path, "r+b") as file:
                    data = bytearray(file.read())
                    if self.damage.endswith("cut"):
                        data = data[:len(data) // 2]
                    else:
                        data[self.draw.randrange(len(data))] ^= 1 << self.draw.randrange(8)
                    file.seek(0)
                    file.truncate()
                    file.write(data)
        return bool(had) and not left and self.damage != "gone"

    def run(self):
        """None, or what is wrong."""
        try:
            self.suite.reference_of(self)
            for _ in range(self.times):
                self.deadline = time.monotonic() + self.suite.limit
                self.start_all(timeout=20)  # of those that wait for one that does not come
                self.disturb()
                ends = self.ends()
                if self.event == "pause":
                    return self.check_bits(ends)
                whole = {i: e for i, e in ends.items() if e[0] == "done"}
                if any(e[1] != self.suite.reference_of(self) for e in whole.values()):
                    raise Wrong(f"other bits before the backups suffered: {ends}")
                self.step = self.draw.randrange(1, 5)
            saved = fault_suite.newest(self.backups)
            lost = self.spoil()
            self.deadline = time.monotonic() + self.suite.limit
            self.start_all(preempt=0)
            ends = self.ends()
            if lost:
                for i in self.speakers():
                    code, _, text = ends[i][1].partition(" ")
                    if code not in ("DATA_LOSS", "NOT_FOUND") or "backup-" not in text:
                        raise Wrong(f"{self.tasks[i].name} ended in {ends[i]}; expected an error "
                                    "that names the backup")
                self.suite.named += 1
                return None
            self.check_bits(ends)
            steps = sum(line.startswith("step ") for line in self.tasks[0].lines)
            if self.damage == "whole" and saved and steps >= STEPS:
                raise Wrong(f"backup {saved} was lost: it began anew")
            return None
        except (Wrong, subprocess.SubprocessError, OSError) as e:
            return f"{type(e).__name__}: {e}"
        finally:
            self.close()


class Suite(fault_suite.Suite):
    def __init__(self, seed):
        # pylint: disable=super-init-not-called
        self.seed, self.limit = seed, 90
        self.program = os.environ.get("BERTH_FAULT_TASK",
                                      f"{HERE}/../../build/release/bin/fault_task")
        self.memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.ports, self.not_ended, self.named = fault_suite.Ports(), 0, 0
        self.lock, self.references = fault_suite.threading.Lock(), {}

    def reference_of(self, case):
        """The bits of an undisturbed run."""
        key = (case.strategy, len(case.jobs))
        with self.lock:
            if key not in self.references:
                one = Case(self, -1, case.strategy, len(case.jobs) - 2)
                one.jobs, one.addresses = case.jobs, case.addresses
                one.options["preempt"] = 0
                one.start_all()
                try:
                    ends = {one.end_of(one.tasks[i]) for i in one.speakers()}
                finally:
                    one.close()
                    shutil.rmtree(one.folder, ignore_errors=True)
                if len(ends) != 1 or min(ends)[0] != "done":
                    raise SystemExit(f"resume: undisturbed: {ends}\n{one.text()}")
                self.references[key] = min(ends)[1]
            return self.references[key]


def main(args):
    suite = Suite(args.seed)
    numbers = range(args.count) if args.only is None else [args.only]
    print(f"resume: seed {args.seed}, {len(numbers)} cases", flush=True)

    def run(number):
        case = Case(suite, number)
        wrong = case.run()
        shutil.rmtree(case.folder, ignore_errors=True)
        return case, wrong

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, wrong in pool.map(run, numbers):
            if case.number % 50 == 49:
                print(f"  {case.number + 1} done", flush=True)
            if wrong:
                failed += 1
                print(f"WRONG {case}: {wrong}\n{case.text()}", flush=True)
    print(f"resume: {len(numbers)} cases, {failed} wrong, 0 refused; {suite.named} ended in an "
          f"error that names the backup, {suite.not_ended} did not end")
    return 1 if failed else 0
