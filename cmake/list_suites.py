"""Writes the ctest tests of a gtest program.

A test suite is one test, in one process: most tests are shorter than the start
of a process. A test whose name says Slow or Stress is one of its own with the
label LABEL_slow, so that it can be left out. What crashes is named by the last
line that the program printed.

usage: list_suites.py PROGRAM NAME OUTPUT TIMEOUT LABEL [VARIABLE=VALUE...]
"""
import subprocess
import sys


def suites_of(listing):
    """Suite -> its tests, from --gtest_list_tests."""
    suites = {}
    for line in listing.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith(" "):
            tests.append(name)
        elif name.endswith("."):
            tests = suites.setdefault(name[:-1], [])
    return suites


def own(test):
    return "Slow" in test or "Stress" in test


def commands(listing):
    """(name of the ctest test, gtest filter, whether it is slow), each."""
    for suite, tests in suites_of(listing).items():
        alone = [t for t in tests if own(suite + t)]
        if len(alone) < len(tests):
            but = "-" + ":".join(f"{suite}.{t}" for t in alone) if alone else ""
            yield suite, f"{suite}.*{but}", False
        for test in alone:
            yield f"{suite}.{test}", f"{suite}.{test}", True


def main():
    program, name, output, timeout, label, *environment = sys.argv[1:]
    listing = subprocess.run([program, "--gtest_list_tests"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    lines = []
    for test, chosen, slow in commands(listing):
        full = f"[==[{name}.{test}]==]"
        lines.append(f"add_test({full} [==[{program}]==] "
                     f"[==[--gtest_filter={chosen}]==])\n"
                     f"set_tests_properties({full} PROPERTIES "
                     f"TIMEOUT {timeout} LABELS {label}{'_slow' * slow} "
                     f"ENVIRONMENT [==[{';'.join(environment)}]==])\n")
    with open(output, "w", encoding="utf-8") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main()
