"""pytest plug-in for Keras' tests on Berth: writes each outcome to a file at once, and picks tests.

BERTH_KERAS_LOG: the file, a JSON line when a test starts and one when it ends; tests with a line there do not run again.
BERTH_KERAS_PICK: a file with the node ids to run. BERTH_KERAS_SHARE: a JSON file with the tests of each file to run, by
number, and what digest() of its tests has to be. BERTH_KERAS_LISTING: the log says which tests ask for other frameworks.
Without these two, frameworks that are not installed get stand-ins, so that test files that import them can be read.
Python's and NumPy's random numbers are the same at each run of a test.
"""
import collections
import importlib.abc
import importlib.util
import inspect
import json
import os
import random
import re
import sys
import types
import zlib

import numpy as np
import pytest

for _folder in filter(None, os.environ.get("BERTH_KERAS_EXTRA", "").split(os.pathsep)):
    sys.path.append(_folder)
try:
    import torch  # noqa: F401  before TensorFlow, beside which it crashes else
except ImportError:
    pass
if os.environ.get("KERAS_BACKEND") == "berth":
    import berth  # noqa: F401  registers the backend

_MISSING = {n for n in ("jax", "torch", "tensorflow", "grain") if importlib.util.find_spec(n) is None}
_FOREIGN = re.compile(r"\b(jax|jnp|torch|tensorflow|tf|grain|scipy|requests)\b|[Oo]rbax")
_IMPORTS = re.compile(r"^(import|from) (jax|torch|tensorflow|grain|scipy)\b", re.MULTILINE)


class _StandIn(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (), {"__module__": self.__name__}))
        return vars(self)[name]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in _MISSING:
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _StandIn(spec.name)

    def exec_module(self, module):
        pass


if "BERTH_KERAS_SHARE" not in os.environ and "BERTH_KERAS_LISTING" not in os.environ:
    sys.meta_path.append(_Finder())
_begun = {}
_log = open(os.environ["BERTH_KERAS_LOG"], "a+", encoding="utf-8")


def _write(**line):
    _log.write(json.dumps(line) + "\n")
    _log.flush()


def pytest_collectreport(report):
    if report.failed:
        _write(id=report.nodeid, outcome="failed", why=_last_line(report))


def digest(nodeids):
    """A number that changes with the tests of a file or their order."""
    return zlib.crc32("\n".join(nodeids).encode())


def _foreign(item):
    """Whether a test, or its file when it is read, asks for another framework."""
    text = inspect.getsource(inspect.unwrap(item.function))
    return bool(_FOREIGN.search(text) or _IMPORTS.search(inspect.getsource(item.module)))


def _share(items):
    """The tests that BERTH_KERAS_SHARE names."""
    with open(os.environ["BERTH_KERAS_SHARE"], encoding="utf-8") as file:
        wanted = json.load(file)
    by_file = collections.defaultdict(list)
    for item in items:
        by_file[item.nodeid.partition("::")[0]].append(item)
    chosen = []
    for name, tests in by_file.items():
        expected, places = wanted[name]
        if digest([t.nodeid for t in tests]) != expected:
            raise pytest.UsageError(f"{name} has other tests than passed.txt says: record it again")
        chosen += [tests[i] for i in places]
    return chosen


def pytest_configure(config):
    for mark in ("requires_trainable_backend", "multi_device"):
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(items):
    for item in items:  # as Keras' conftest.py does, which sees one device of JAX on a CPU
        if "multi_device" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="Requires multiple devices"))
    _log.seek(0)
    begun = {line["id"] for line in map(json.loads, _log) if line["outcome"] != "collected"}
    if pick := os.environ.get("BERTH_KERAS_PICK"):
        with open(pick, encoding="utf-8") as file:
            wanted = set(file.read().splitlines())
        items[:] = [i for i in items if i.nodeid in wanted]
    if "BERTH_KERAS_SHARE" in os.environ:
        items[:] = _share(items)
    listing = "BERTH_KERAS_LISTING" in os.environ
    for item in items:
        _write(id=item.nodeid, outcome="collected", **({"foreign": _foreign(item)} if listing else {}))
    items[:] = [i for i in items if i.nodeid not in begun]


def pytest_runtest_setup(item):
    seed = zlib.crc32(item.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    for name, value in vars(item.module).items():  # tests of a file share it
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = _begun.setdefault((item.module, name), value.bit_generator.state)


def pytest_runtest_logstart(nodeid):
    _write(id=nodeid, outcome="started")


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcome = "xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome
        _write(id=report.nodeid, outcome=outcome, why=_last_line(report), seconds=round(report.duration, 2))


def _last_line(report):
    text = report.longrepr
    if isinstance(text, tuple):
        return str(text[2])[:200]
    crash = getattr(text, "reprcrash", None)
    return str(crash.message if crash is not None else text or "")[:300].replace("\n", " ")
