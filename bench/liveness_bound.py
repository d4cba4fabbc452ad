#!/usr/bin/env python3
"""The least memory any plan of the same buffers could use.

Reads a plan dump (docs/graph-format.md, "Plans") and adds up, for every step,
the bytes of the values that are alive then: written at or before the step and
read at or after it. That is computed from the steps' operands alone, not from
the lives or offsets that the planner wrote down. Outputs count from their
first writer to the end; scratch and partial sums count in their own step.

Prints {"bound_bytes": N, "arena_bytes": M}.
"""
import json
import re
import sys


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: liveness_bound.py PLAN_DUMP", file=sys.stderr)
        return 2
    buffers, arenas, steps = {}, {}, []
    with open(sys.argv[1]) as dump:
        for line in dump:
            word = line.split()
            if not word:
                continue
            if word[0] == "device":
                arenas[int(word[1])] = int(word[4])
            elif word[0] == "buffer":
                buffers[int(word[1])] = {
                    "where": word[2], "device": int(word[4]),
                    "bytes": int(word[6])}
            elif word[0] == "step":
                def numbers(key):
                    found = re.search(rf" {key} ([0-9,]+)", line)
                    return [int(n) for n in found[1].split(",")] if found else []
                steps.append(set(numbers("in") + numbers("out") +
                                 numbers("scratch") + numbers("partials")))
    first, last = {}, {}
    for at, used in enumerate(steps):
        for b in used:
            first.setdefault(b, at)
            last[b] = at
    for b, info in buffers.items():
        if info["where"] == "output" and b in first:
            last[b] = len(steps) - 1
    counted = [b for b in first
               if buffers[b]["where"] in ("arena", "scratch", "output")]
    bound = 0
    for device in arenas:
        most = 0
        for at in range(len(steps)):
            most = max(most, sum(
                buffers[b]["bytes"] for b in counted
                if buffers[b]["device"] == device
                and first[b] <= at <= last[b]))
        bound += most
    print(json.dumps({"bound_bytes": bound,
                      "arena_bytes": sum(arenas.values())}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
