#!/usr/bin/env python3
"""The rows of bench/run.py for two builds, in turns: what a change did to speed.

    bench/before_after.py BEFORE AFTER [--rounds 3] [--seconds 1] [--only TEXT ...]

BEFORE and AFTER are folders of programs (build/release/bin of two trees). Rows that compare with
peers are left out. Prints a JSON line per row: the best value of each and `after_over_before`;
lower is better. Then a table, the most changed rows first.
"""
import argparse
import json
import pathlib
import sys
import types

import run

NOWHERE = pathlib.Path("/nonexistent")


def runner_of(folder, options):
    return run.Runner(types.SimpleNamespace(
        bin=folder, libtorch=NOWHERE, peers=NOWHERE, rounds=1, seconds=options.seconds))


def compare(row, runners, rounds):
    """The best value of each build, or why there is none."""
    best = {}
    for _ in range(rounds):
        for which, runner in runners.items():
            runner.memory.clear()  # of programs that ran for other rows
            result = run.run_row(runner, row)
            if result["value"] is None:
                return {"row": row[0], "reason": f"{which}: {result['reason']}"}
            best[which] = min(best.get(which, result["value"]), result["value"])
    before, after = best["before"], best["after"]
    return {"row": row[0], "unit": row[1], **best,
            "after_over_before": round(after / before, 3) if before else None}


def print_table(results):
    known = [r for r in results if r.get("after_over_before")]
    known.sort(key=lambda r: -r["after_over_before"])
    print(f"\n{'row':44} {'before':>9} {'after':>9} {'ratio':>7}")
    for r in known:
        print(f"{r['row']:44} {r['before']:>9g} {r['after']:>9g} {r['after_over_before']:>7g}")
    for r in results:
        if r not in known:
            print(f"{r['row']:44} {r.get('reason', 'zero before')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=[""], help="rows whose name contains one")
    options = parser.parse_args()
    runners = {"before": runner_of(options.before, options),
               "after": runner_of(options.after, options)}
    results = []
    for row in run.ROWS:
        if any(text in row[0] for text in options.only):
            results.append(compare(row, runners, options.rounds))
            print(json.dumps(results[-1]), flush=True)
    print_table(results)


if __name__ == "__main__":
    sys.exit(main())
