"""What an expert would try first on a graph, and the price of any plan, by docs/formats.md alone.

Contiguous stages of layers on k devices (equal work, shares by speed, equal memory; forward and
reversed) with list scheduling; with weight gradients on devices of their own; HEFT and ETF.
"""
import heapq
import itertools

INFINITY = float("inf")


class Model:
    """The documented cost model of one graph on one machine."""

    def __init__(self, graph, machine):
        self.g, self.m, self.ops = graph, machine, graph.ops
        self.readers = [[[] for _ in op.out_bytes] for op in self.ops]
        self.followers = [[] for _ in self.ops]
        for i, op in enumerate(self.ops):
            for p, k in sorted(set(op.reads)):
                self.readers[p][k].append(i)
            for c in op.controls:
                self.followers[c].append(i)
        self.waits = [len(set(op.reads)) + len(op.controls) for op in self.ops]
        self.result = max(i for i, op in enumerate(self.ops) if op.role == "forward")

    def us(self, i, d):
        return self.ops[i].us / self.m.speed[d]

    def copy_us(self, size, a, b):
        latency, rate = self.m.link(a, b)
        return latency + size / rate

    def latency(self, device, sequence):
        """End of the step and peak bytes per device; None: not a plan."""
        m, ops = self.m, self.ops
        free, engine, shared = [0.0] * m.count, [0.0] * m.count, {}
        start, end = [0.0] * len(ops), [-1.0] * len(ops)
        arrived, holds = {}, [[] for _ in range(m.count)]
        for i in sequence:
            d, op = device[i], ops[i]
            at = free[d]
            for p, k in op.reads:
                if end[p] < 0:
                    return None
                at = max(at, end[p] if device[p] == d else arrived[p, k, d][1])
            for c in op.controls:
                if end[c] < 0:
                    return None
                at = max(at, end[c])
            start[i] = at
            end[i] = free[d] = at + self.us(i, d)
            for k, size in enumerate(op.out_bytes):
                for to in sorted({device[r] for r in self.readers[i][k]} - {d}):
                    path = m.path(d, to)
                    begin = max([end[i], engine[to]] + [shared.get(n, 0.0) for n in path])
                    done = begin + self.copy_us(size, d, to)
                    engine[to] = done
                    shared.update((n, done) for n in path)
                    arrived[i, k, to] = (begin, done)
        if min(end) < 0:
            return None
        for i, op in enumerate(ops):
            for k, size in enumerate(op.out_bytes):
                last = {device[i]: INFINITY if i == self.result else end[i]}
                for r in self.readers[i][k]:
                    last[device[r]] = max(last.get(device[r], 0.0), end[r])
                for to in last:
                    if to != device[i]:
                        begin, done = arrived[i, k, to]
                        last[device[i]] = max(last[device[i]], done)
                        holds[to] += [(begin, 1, size), (max(done, last[to]), 0, -size)]
                holds[device[i]] += [(start[i], 1, size), (last[device[i]], 0, -size)]
        return max(end), list(map(self.peak, self.resident(device), holds))

    def peak(self, held, holds):
        return max(itertools.accumulate((size for _, _, size in sorted(holds)), initial=held))

    def resident(self, device):
        held = [0] * self.m.count
        for w, d in {op.weight: device[i] for i, op in enumerate(self.ops)}.items():
            held[d] += self.g.weight_bytes[w] if w >= 0 else 0
        return held

    def throughput(self, device):
        """The busiest of devices, copy engines and shared links; resident bytes."""
        work, copies, shared = [0.0] * self.m.count, [0.0] * self.m.count, {}
        for i, op in enumerate(self.ops):
            d = device[i]
            work[d] += self.us(i, d)
            for k, size in enumerate(op.out_bytes):
                for to in {device[r] for r in self.readers[i][k]} - {d}:
                    us = self.copy_us(size, d, to)
                    copies[to] += us
                    for n in self.m.path(d, to):
                        shared[n] = shared.get(n, 0.0) + us
        return max(work + copies + list(shared.values())), self.resident(device)

    def value(self, objective, device, sequence):
        found = (self.throughput(device) if objective == "throughput"
                 else self.latency(device, sequence))
        if found is None:
            return INFINITY
        fits = not self.m.limit or max(found[1]) <= self.m.limit
        return found[0] if fits else INFINITY

    def ranks(self, device=None):
        """The longest path after every op, copies included where devices differ."""
        rank = [0.0] * len(self.ops)
        mean = sum(1 / s for s in self.m.speed) / self.m.count
        for i in reversed(self.order()):
            op, behind = self.ops[i], 0.0
            for k, size in enumerate(op.out_bytes):
                for r in self.readers[i][k]:
                    if device is None:
                        copy = self.copy_us(size, 0, self.m.count - 1) if self.m.count > 1 else 0
                    else:
                        copy = self.copy_us(size, device[i], device[r]) * (device[r] != device[i])
                    behind = max(behind, rank[r] + copy)
            for f in self.followers[i]:
                behind = max(behind, rank[f])
            rank[i] = behind + (op.us * mean if device is None else self.us(i, device[i]))
        return rank

    def order(self):
        if not hasattr(self, "ordered"):
            missing = list(self.waits)
            ready = [i for i, n in enumerate(missing) if n == 0]
            for i in ready:
                for r in itertools.chain(*self.readers[i], self.followers[i]):
                    missing[r] -= 1
                    if missing[r] == 0:
                        ready.append(r)
            self.ordered = ready
        return self.ordered

    def list_schedule(self, device):
        """Each device takes the ready op of the greatest rank whenever it is idle."""
        rank, m = self.ranks(device), self.m
        missing, came = list(self.waits), [0.0] * len(self.ops)
        ready = [[] for _ in range(m.count)]
        idle, engine, sequence = [True] * m.count, [0.0] * m.count, []
        events = [(0.0, 0, i) for i, n in enumerate(missing) if n == 0]
        heapq.heapify(events)

        def arrive(i, at):
            came[i] = max(came[i], at)
            missing[i] -= 1
            if missing[i] == 0:
                heapq.heappush(events, (came[i], 0, i))

        while events:
            now, touched = events[0][0], set()
            while events and events[0][0] == now:
                _, kind, i = heapq.heappop(events)
                d = device[i]
                touched.add(d)
                if kind == 0:
                    heapq.heappush(ready[d], (-rank[i], i))
                    continue
                idle[d] = True
                for k, size in enumerate(self.ops[i].out_bytes):
                    at = {d: now}
                    for to in sorted({device[r] for r in self.readers[i][k]} - {d}):
                        at[to] = engine[to] = max(now, engine[to]) + self.copy_us(size, d, to)
                    for r in self.readers[i][k]:
                        arrive(r, at[device[r]])
                for f in self.followers[i]:
                    arrive(f, now)
            for d in touched:
                if idle[d] and ready[d]:
                    i = heapq.heappop(ready[d])[1]
                    sequence.append(i)
                    idle[d] = False
                    heapq.heappush(events, (now + self.us(i, d), 1, i))
        return sequence


def cut(weights, shares):
    """Stage of every item: consecutive ones, in proportion to the shares."""
    total, given, stages, k = sum(weights), 0.0, [], 0
    ends = [total * s / sum(shares) for s in itertools.accumulate(shares)]
    for w in weights:
        while k + 1 < len(shares) and given + w / 2 > ends[k]:
            k += 1
        stages.append(k)
        given += w
    return stages


def stage_tries(model):
    """(name, device per op) of contiguous stages of forward ops; others are with theirs."""
    ops, m = model.ops, model.m
    count = 1 + max(op.home for op in ops)
    work, held = [0.0] * count, [0.0] * count
    for op in ops:
        work[op.home] += op.us
        held[op.home] += sum(op.out_bytes) if op.role == "forward" else 0
        if op.role == "update":
            held[op.home] += model.g.weight_bytes[op.weight]
    ks = [k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if k <= m.count]
    fastest = sorted(range(m.count), key=lambda d: -m.speed[d])
    for k, way in itertools.product(ks, ("forward", "reversed", "by speed", "by memory")):
        if way == "by speed" and len(set(m.speed)) == 1 or way == "by memory" and not m.limit:
            continue
        devices = list(range(k)) if way != "by speed" else fastest[:k]
        if way == "reversed":
            devices = [m.count - 1 - d for d in devices]
        even = way in ("forward", "reversed")
        stage = cut(held if way == "by memory" else work,
                    [1.0 if even or way == "by memory" else m.speed[d] for d in devices])
        yield f"{k} stages, {way}", [devices[stage[op.home]] for op in ops]
        if 2 * k <= m.count and way == "forward":
            yield (f"{k} stages, weight gradients beside",
                   [stage[op.home] + (k if op.role == "weight gradient" else 0) for op in ops])


def greedy(model, earliest_first, count):
    """HEFT: ops by rank, each where it ends earliest. ETF: the op that can start first."""
    m, ops, rank = model.m, model.ops, model.ranks()
    missing, home = list(model.waits), {}
    free, engine, end = [0.0] * m.count, [0.0] * m.count, [0.0] * len(ops)
    device, came, sequence = [-1] * len(ops), {}, []
    ready = [(0.0 if earliest_first else -rank[i], -rank[i], i)
             for i, n in enumerate(missing) if n == 0]
    heapq.heapify(ready)
    while ready:
        i = heapq.heappop(ready)[2]
        op, best = ops[i], None
        choices = [home[op.weight]] if op.weight in home else range(count)
        for d in choices:
            at, busy = max([free[d]] + [end[c] for c in op.controls]), engine[d]
            for p, k in op.reads:
                if device[p] == d:
                    at = max(at, end[p])
                elif (p, k, d) in came:
                    at = max(at, came[p, k, d])
                else:
                    busy = max(busy, end[p]) + model.copy_us(ops[p].out_bytes[k], device[p], d)
                    at = max(at, busy)
            done = at + model.us(i, d)
            if best is None or done < best[0]:
                best = (done, d)
        end[i], d = best
        for p, k in op.reads:
            if device[p] != d and (p, k, d) not in came:
                engine[d] = max(engine[d], end[p]) + model.copy_us(ops[p].out_bytes[k],
                                                                   device[p], d)
                came[p, k, d] = engine[d]
        device[i], free[d] = d, end[i]
        if op.weight >= 0:
            home[op.weight] = d
        sequence.append(i)
        for r in itertools.chain(*model.readers[i], model.followers[i]):
            missing[r] -= 1
            if missing[r] == 0:
                at = max([end[p] for p, _ in ops[r].reads] + [0.0])
                heapq.heappush(ready, (at if earliest_first else -rank[r], -rank[r], r))
    return device, sequence


def best_first_try(model, objective):
    best = (INFINITY, "none fits")
    for name, device in stage_tries(model):
        sequence = model.list_schedule(device) if objective == "latency" else None
        best = min(best, (model.value(objective, device, sequence), name))
    if objective == "throughput":
        return best
    counts = {k for k in (2, 4, 8, model.m.count) if k <= model.m.count}
    for count in sorted(counts):
        if count * len(model.ops) > 400_000:
            continue  # hours of this interpreter
        for earliest_first in (False, True):
            device, sequence = greedy(model, earliest_first, count)
            name = f"{'ETF' if earliest_first else 'HEFT'} on {count}"
            best = min(best, (model.value(objective, device, sequence), name),
                       (model.value(objective, device, model.list_schedule(device)), name))
    return best


def tight_limit(model):
    """A fifth more than what stages of equal memory on half of the devices need."""
    peaks = []
    for name, device in stage_tries(model):
        if not name.startswith(f"{max(2, model.m.count // 2)} stages, forward"):
            continue
        found = model.latency(device, model.list_schedule(device))
        peaks.append(max(found[1]))
    return int(1.2 * min(peaks)) // 4 * 4
