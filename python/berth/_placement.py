"""What only Berth has: reports of what ran where and why, and contracts about it."""
from berth import _core


class Report(str):
    """A report as text, which a notebook shows as tables; json() is the same as data."""

    def __new__(cls, text, data=""):
        made = super().__new__(cls, text)
        made._data = data
        return made

    def json(self):
        import json
        return json.loads(self._data)

    def _repr_html_(self):
        from berth import _html
        return _html.report(self.json()) if self._data else _html.text(self)


def save_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def placement(what):
    """What of a traced function or a compiled model ran where, with times, bytes and transfers."""
    return what.placement()


def explain(what, op):
    """Why an op of a traced function or compiled model is where it is, and what would move it."""
    return what.explain(op)


def plan(what, *args, **kwargs):
    """The compiled plan of a traced function or model as text, or what a strategy predicts for one."""
    if hasattr(what, "plan_text"):
        return what.plan_text(*args, **kwargs)
    return what.plan(*args, **kwargs)


class Contract:
    """A condition on where things run, checked before the first step and on each run.

    stays_on: every op runs there. no_fallback: none runs elsewhere than asked for. transfers: triples
    (from, to, bytes) per step. peak_memory: pairs (device, bytes). ops: pairs (op, device), or a
    dictionary. As a `with` block it holds for what runs and is traced inside.
    """

    def __init__(self, stays_on="", no_fallback=False, transfers=(), peak_memory=(), ops=(), name="contract"):
        self.name, self.stays_on, self.no_fallback = name, stays_on, no_fallback
        self.transfers = [tuple(t) for t in transfers]
        self.peak_memory = list(peak_memory.items() if isinstance(peak_memory, dict) else peak_memory)
        self.ops = list(ops.items() if isinstance(ops, dict) else ops)
        self._scopes, self._last = [], None

    def __enter__(self):
        scope = _core.ContractScope(self)
        scope.enter()
        self._scopes.append(scope)
        return self

    def __exit__(self, kind, *_):
        self._last = self._scopes.pop()
        self._last.exit(kind is not None)

    def moved_bytes(self):
        """Bytes moved between devices in the block, or in the last one."""
        scope = self._scopes[-1] if self._scopes else self._last
        return scope.moved_bytes() if scope is not None else 0


def contracts(value):
    """A list of one, several, or none."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
