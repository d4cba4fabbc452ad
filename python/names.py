#!/usr/bin/env python3
"""Prints docs/python-names.md: which names of TensorFlow and Keras there are, are planned, or never come.

    python -P names.py API_DIR [--planned]    with berth installed; API_DIR has the lists of names (name,
                                              kind, arguments). --planned prints berth/_planned.py,
                                              from which errors know the names that are planned
"""
import glob
import os
import sys
import textwrap

import berth
from berth._never import NEVER

def rows(path):
    with open(path) as lines:
        next(lines)
        for line in lines:
            name, kind, _ = (line.rstrip("\n") + "\t\t").split("\t")[:3]
            if kind in ("function", "class") and "._" not in name:
                yield name


def there(name):
    """True when the package has the name."""
    value = berth
    parts = name.split(".")
    for part in parts[1:] if parts[0] == "tf" else parts:
        try:
            value = getattr(value, part)
        except AttributeError:
            return False
    return True


def never(name):
    return next((why for start, why in NEVER if name == start or name.startswith(start + ".")), None)


def table(path):
    have, planned, counts = {}, {}, {}
    for name in rows(path):
        why = never(name)
        if why is not None:
            counts[why] = counts.get(why, 0) + 1
            continue
        module, _, last = name.rpartition(".")
        (have if there(name) else planned).setdefault(module, []).append(last)
    total = sum(map(len, have.values())), sum(map(len, planned.values()))
    print(f"There: {total[0]}; planned: {total[1]}; never: {sum(counts.values())}.\n")
    print("| module | there | planned |\n|---|---|---|")
    for module in sorted(set(have) | set(planned)):
        missing = " ".join(f"`{n}`" for n in sorted(planned.get(module, [])))
        print(f"| `{module}` | {len(have.get(module, []))} | {missing or 'none'} |")
    print()


def lists():
    for start, title in (("tensorflow", "TensorFlow"), ("keras", "Keras")):
        for path in glob.glob(os.path.join(sys.argv[1], start + "-*.tsv")):
            yield title, path


def print_planned():
    names = sorted(n for _, path in lists() for n in rows(path) if never(n) is None and not there(n))
    print('"""Names of TensorFlow and Keras that are not there yet; printed by names.py --planned."""\n\nNAMES = """')
    print("\n".join(textwrap.wrap(" ".join(names), 110, break_on_hyphens=False)))
    print('""".split()')


def main():
    if "--planned" in sys.argv:
        print_planned()
        return
    print("# Names of TensorFlow and Keras\n")
    print("Printed by `python/names.py`, from the public names of functions and classes of TensorFlow 2.21 "
          "and\nKeras 3.15; a test compares this page with the package. What is planned is an "
          "`AttributeError` today that\nnames its nearest neighbours.\n")
    for title, path in lists():
        print(f"## {title}\n")
        table(path)
    print("## Never\n\n| names | why |\n|---|---|")
    for start, why in NEVER:
        print(f"| `{start}` | {why} |")


if __name__ == "__main__":
    main()
