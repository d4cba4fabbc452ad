"""Pipelines for planner_exact.py: random problems, the price of a plan, and the best of all plans.

Everything is written by docs/formats.md and shares nothing with the planner. A problem has 2 to 6
layers (at most 16 ops): a forward op, in most problems a gradient, on the same device if they use a
weight, and in some an update of that. `best()` tries every plan of this space:

- every layer on every device, and every division of the layers into stages that their reads allow,
  of neighbours or not; with at most `MIXED` layers also stages whose layers are on different devices;
- the gradients of a layer in the backward part of its stage;
- the orders gpipe and 1f1b, which is also `interleaved` where a device has several stages;
- in a stage, ops in the order of the file.

A plan is left out only when it is proved that it is no better than a known one: a device that has
more work left than time ends its simulation. Plans outside of this space exist (a gradient in another
stage than its layer, another order in a stage), so the optimum of all plans may be lower than the
best; a bound must be under both.
"""
import itertools

from planner_problems import Graph, Op

MIXED, SLACK = 5, 1e-9
INFINITY = float("inf")


def make_graph(rng):
    """Layers that mostly read the one before; times and copies are whole."""
    g, training = Graph(), rng.random() < 0.7
    updates = training and rng.random() < 0.5
    count = rng.randint(2, 5 if updates else 6)
    g.follows = training
    some = lambda most: 4 * rng.randint(1, most)
    for i in range(count):
        near = rng.random() < 0.8
        reads = [i - 1] if i and near else rng.sample(range(i), min(i, rng.randint(0, 2)))
        weight = -1
        if rng.random() < 0.75:
            weight = len(g.weight_bytes)
            g.weight_bytes.append(some(8))
        g.ops.append(Op(f"f{i}", rng.randint(1, 20), [(r, 0) for r in sorted(reads)], [some(12)],
                        i, "forward", weight))
    gradient = {}
    for i in reversed(range(count)) if training else ():
        op = g.ops[i]
        later = [(gradient[r], 0) for r in gradient if (i, 0) in g.ops[r].reads]
        outs = op.out_bytes + ([g.weight_bytes[op.weight]] if updates and op.weight >= 0 else [])
        gradient[i] = len(g.ops)
        reads = sorted(later + op.reads[:1] + ([(i, 0)] if not (later and op.reads) else []))
        g.ops.append(Op(f"g{i}", rng.randint(1, 30), reads, outs, i, "backward", op.weight))
    for i in gradient if updates else ():
        if g.ops[i].weight >= 0:
            g.ops.append(Op(f"u{i}", rng.randint(1, 5), [(gradient[i], 1)], [], i, "update",
                            g.ops[i].weight))
    return g


class Pipeline:
    """The documented value and bytes of plans; a stage of an op is s, or -1 - s if backward."""

    def __init__(self, graph, machine, micro, stash):
        self.g, self.m, self.ops, self.micro, self.stash = graph, machine, graph.ops, micro, stash
        self.once = [op.role == "update" for op in self.ops]
        self.result = max(i for i, op in enumerate(self.ops) if op.role == "forward")
        self.readers = [[[] for _ in op.out_bytes] for op in self.ops]
        for i, op in enumerate(self.ops):
            for p, k in op.reads:
                self.readers[p][k].append(i)
        self.us = [[op.us / s for s in machine.speed] for op in self.ops]
        self.orders = {}

    def copy_us(self, size, a, b):
        latency, rate = self.m.link(a, b)
        return latency + size / rate

    def tasks(self, lane, there, order, count):
        """Tasks (place on the way, micro-batch) by rounds; None: they wait for each other."""
        key = (tuple(lane), tuple(there), order, count)
        if key in self.orders:
            return self.orders[key]
        stages = len(lane)
        lanes = list(dict.fromkeys(d for d in lane if d >= 0))
        todo = {}
        for k, d in enumerate(lanes):
            mine = [s for s in range(stages) if lane[s] == d]
            v, after = len(mine), len(lanes) - 1 - k
            group = len(lanes) if v > 1 else count
            forward, backward = [], []
            for begin in range(0, count, group):
                some = range(begin, min(begin + group, count))
                forward += [(s, c) for s in mine for c in some if there[s]]
                backward += [(2 * stages - 1 - s, c) for s in reversed(mine) for c in some
                             if there[2 * stages - 1 - s]]
            first = 2 * after + (v - 1) * len(lanes) if v > 1 else after
            first = len(forward) if order == "gpipe" else min(first, len(forward))
            todo[d] = forward[:first]
            for f, b in itertools.zip_longest(forward[first:], backward):
                todo[d] += [t for t in (f, b) if t]
        before, last = {}, None
        for place in range(2 * stages):
            before[place] = last
            last = place if there[place] else last
        done, at, sequence = set(), dict.fromkeys(todo, 0), []
        total = sum(map(len, todo.values()))
        while sequence is not None and len(sequence) < total:
            turn = []
            for d in sorted(todo):
                if at[d] < len(todo[d]):
                    place, c = todo[d][at[d]]
                    if before[place] is None or (before[place], c) in done:
                        turn.append((place, c))
                        at[d] += 1
            done.update(turn)
            sequence = sequence + turn if turn else None
        self.orders[key] = sequence
        return sequence

    def price(self, device, stage, order, sequence, below=INFINITY):
        """(value, bytes per device); None: not a plan, over a limit, or not under `below`."""
        ops, micro, m = self.ops, self.micro, self.m
        each = [i for i in range(len(ops)) if not self.once[i]]
        stages = 1 + max(s if s >= 0 else -1 - s for s in (stage[i] for i in each))
        place = [s if s >= 0 else 2 * stages + s for s in stage]
        if any(place[p] > place[i] for i in each for p, _ in ops[i].reads):
            return None
        if self.stash and order == "gpipe":
            return None
        lane, there = [-1] * stages, [0] * (2 * stages)
        for i in reversed(each):
            there[place[i]] = 1
            lane[min(place[i], 2 * stages - 1 - place[i])] = device[i]
        steps = 2 * (1 + -(-2 * stages // micro)) if self.stash else 1
        tasks = self.tasks(lane, there, order, micro * steps)
        if tasks is None:
            return None
        inside = [[] for _ in there]
        for i in sequence:
            if not self.once[i]:
                inside[place[i]].append(i)
        run = Run(self, device, steps, below if steps == 1 else INFINITY)
        left = [micro * sum(there)] * steps
        for at, c in tasks:
            for i in inside[at]:
                if not run.add(i, c):
                    return None
            left[c // micro] -= 1
            if left[c // micro] == 0:
                for i in sequence:
                    if self.once[i] and not run.add(i, c // micro):
                        return None
        value = self.period(run, steps) if self.stash else max(run.end.values())
        if value >= below:
            return None
        held = self.held(device, place, lane, there, tasks)
        peaks = run.peaks(held, [p >= stages for p in place])
        return None if m.limit and max(peaks) > m.limit else (value, peaks)

    def price_file(self, answer):
        """The same for a plan file of Berth."""
        ops, number = {}, {}
        for at, op in enumerate(answer["ops"]):
            if op["name"].startswith("n"):
                number[at] = int(op["name"][1:])
                stage = op.get("stage", 0)
                ops[number[at]] = (int(op["device"].split(":")[-1]),
                                   -1 - stage if op.get("backward") else stage)
        device, stage = zip(*(ops[i] for i in range(len(self.ops))))
        return self.price(device, stage, answer["pipeline"]["schedule"],
                          [number[at] for at in answer["sequence"]])

    def period(self, run, steps):
        half, ends = steps // 2, [0, 0]
        for (i, c), end in run.end.items():
            ends[1] = max(ends[1], end)
            if (c if self.once[i] else c // self.micro) < half:
                ends[0] = max(ends[0], end)
        busy = [sum(self.us[i][run.device[i]] for i, _ in run.end if run.device[i] == d)
                for d in range(self.m.count)]
        most = max(busy + run.copies + list(run.busses.values()))
        return max((ends[1] - ends[0]) / half, most / steps)

    def held(self, device, place, lane, there, tasks):
        """Weights in all their versions, and sums of gradients."""
        stages, flying = len(lane), [0] * self.m.count
        for s in range(stages):
            now = most = 0
            for at, _ in tasks:
                if at == s:
                    now += 1
                    most = max(most, now)
                elif at == 2 * stages - 1 - s:
                    now -= 1
            if lane[s] >= 0:
                flying[lane[s]] += most if there[2 * stages - 1 - s] else 1
        held, summed = [0] * self.m.count, set()
        for w, d in {op.weight: device[i] for i, op in enumerate(self.ops)}.items():
            versions = 1
            if self.stash and flying[d]:
                versions += -(-(flying[d] - 1) // self.micro)
            held[d] += versions * self.g.weight_bytes[w] if w >= 0 else 0
        for i, op in enumerate(self.ops):
            summed.update(op.reads if self.once[i] else [])
        if place[self.result] >= stages:
            summed.add((self.result, 0))
        for i, k in summed if self.micro > 1 else ():
            held[device[i]] += self.ops[i].out_bytes[k]
        return held


class Run:
    """The rules of latency, one op behind the other."""

    def __init__(self, pipeline, device, steps, below):
        self.p, self.m, self.device, self.below = pipeline, pipeline.m, device, below - SLACK
        count = self.m.count
        self.free, self.engine, self.copies = [0.0] * count, [0.0] * count, [0.0] * count
        self.shared, self.busses = {}, {}
        self.start, self.end, self.came = {}, {}, {}
        self.total = steps * pipeline.micro
        self.work = [0.0] * count
        for i, d in enumerate(device):
            self.work[d] += pipeline.us[i][d] * (steps if pipeline.once[i] else self.total)

    def add(self, i, c):
        """Runs copy c; False: the step cannot end in time."""
        p, d, micro = self.p, self.device[i], self.p.micro
        at = self.free[d]
        for b, k in p.ops[i].reads:
            copies = range(c * micro, (c + 1) * micro) if p.once[i] else [c]
            for n in copies:
                at = max(at, self.end[b, n])
            if self.device[b] != d:
                at = max(at, self.came[b, k, copies[-1], d][1])
        us = p.us[i][d]
        self.start[i, c], self.end[i, c] = at, at + us
        self.free[d] = at + us
        self.work[d] -= us
        if self.free[d] + self.work[d] >= self.below:
            return False
        for k, size in enumerate(p.ops[i].out_bytes):
            for to in sorted({self.device[r] for r in self.reads(i, k, c)} - {d}):
                self.copy(i, k, c, d, to, size)
        return True

    def reads(self, i, k, c):
        last = c % self.p.micro == self.p.micro - 1
        return [r for r in self.p.readers[i][k] if last or not self.p.once[r]]

    def copy(self, i, k, c, d, to, size):
        bus, us = self.m.shared(d, to), self.p.copy_us(size, d, to)
        begin = max(self.end[i, c], self.engine[to], self.shared.get(bus, 0.0))
        self.came[i, k, c, to] = (begin, begin + us)
        self.engine[to] = begin + us
        self.copies[to] += us
        if bus >= 0:
            self.shared[bus] = begin + us
            self.busses[bus] = self.busses.get(bus, 0.0) + us

    def peaks(self, held, backward):
        p, events = self.p, [[] for _ in held]
        for (i, c), end in self.end.items():
            for k, size in enumerate(p.ops[i].out_bytes):
                d = self.device[i]
                kept = i == p.result and k == 0 and (not backward[i] or c + 1 == self.total)
                last = {d: INFINITY if kept else end}
                for r in self.reads(i, k, c):
                    at = self.device[r]
                    done = self.end[r, c // p.micro if p.once[r] else c]
                    last[at] = max(last.get(at, 0.0), done)
                for to, until in last.items():
                    if to != d:
                        begin, done = self.came[i, k, c, to]
                        last[d] = max(last[d], done)
                        events[to] += [(begin, 1, size), (max(done, until), 0, -size)]
                events[d] += [(self.start[i, c], 1, size), (last[d], 0, -size)]
        peaks = []
        for d, live in enumerate(held):
            high = live
            for _, _, size in sorted(events[d]):
                live += size
                high = max(high, live)
            peaks.append(high)
        return peaks


def divisions(pipeline):
    """Every number of a stage per layer, none before a layer that it reads."""
    count = sum(op.role == "forward" for op in pipeline.ops)
    before = [[p for p, _ in pipeline.ops[i].reads] for i in range(count)]

    def extend(stage):
        i = len(stage)
        if i == count:
            if set(stage) == set(range(max(stage) + 1)):
                yield list(stage)
            return
        for s in range(max([stage[b] for b in before[i]], default=0), count):
            yield from extend(stage + [s])

    return list(extend([]))


def best(pipeline, below):
    """The least value under `below` of the plans of this space; None: none is."""
    ops, count = pipeline.ops, sum(op.role == "forward" for op in pipeline.ops)
    divided, sequence = divisions(pipeline), list(range(len(ops)))
    orders = ["1f1b"] if pipeline.stash else ["1f1b", "gpipe"]
    found, placed = None, []
    for on in itertools.product(range(pipeline.m.count), repeat=count):
        load = [0.0] * pipeline.m.count
        for i, op in enumerate(ops):
            load[on[op.home]] += pipeline.us[i][on[op.home]] * (
                1 if pipeline.once[i] else pipeline.micro)
        placed.append((max(load), on))
    for load, on in sorted(placed):
        if load >= below - SLACK:
            break
        for stages in divided:
            mixed = len(set(zip(stages, on))) > len(set(stages))
            if mixed and count > MIXED:
                continue
            device = [on[op.home] for op in ops]
            stage = [-1 - stages[op.home] if op.role != "forward" else stages[op.home]
                     for op in ops]
            for order in orders:
                priced = pipeline.price(device, stage, order, sequence, below)
                if priced and priced[0] < below - SLACK:
                    found = below = priced[0]
    return found
