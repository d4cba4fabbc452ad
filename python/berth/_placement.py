"""What only Berth has: reports of what ran where and why, and contracts about it."""
import types

from berth import _core


class Report(str):
    """A report as text, which a notebook shows as tables; json() is the same as data."""

    def __new__(cls, text, handle=None):
        made = super().__new__(cls, text if handle is None else handle.str())
        made._handle, made._data = handle, "" if handle is None else handle.json()
        return made

    def __reduce__(self):
        return str, (str(self),)

    def json(self):
        """The report as dictionaries and lists (docs/json.md); FailedPreconditionError where there is only text."""
        import json
        if not self._data:
            raise _core.FailedPreconditionError(f"there is nothing but this text: {self.strip()}")
        return json.loads(self._data)

    def _repr_html_(self):
        from berth import _html
        return _html.text(self)


def _row(value):
    """Rows of a report: their fields are attributes."""
    if isinstance(value, list):
        return [_row(v) for v in value]
    if not isinstance(value, dict):
        return value
    names = {"from": "source", "to": "target"}  # `from` is a word of Python
    return types.SimpleNamespace(**{names.get(k, k): _row(v) for k, v in value.items()})


def _field(name, doc, default=None):
    return property(lambda self: _row(self.json().get(name, default)), doc=doc)


class Placement(Report):
    """What ran where: the tables as text, their rows as attributes. Times are in microseconds, None: not known."""

    name = _field("name", "The function or model.")
    steps = _field("steps", "Runs since it was compiled.")
    measured_step_us = _field("measured_step_us", "The median of a step.")
    estimated_step_us = _field("estimated_step_us", "What the cost model says of a step.")
    verdicts = _field("verdicts", "What most of a step is that can be avoided: sentences.", [])
    devices = _field("devices", "A row for each device: device, ops, measured_busy_us, estimated_busy_us, peak_bytes, "
                                "arena_bytes, output_bytes, variable_bytes, other_bytes.")
    transfers = _field("transfers", "A row for each value that is sent: value, source, target, bytes (of one transfer), "
                                    "runs_per_step, measured_us, cause, readers, site.")
    fallbacks = _field("fallbacks", "Ops that ran elsewhere than asked for: op, requested, device, reason, bytes, site.")
    moved = _field("moved", "Ops that a stronger rule put elsewhere: fields as of fallbacks.")
    ops = _field("ops", "A row for each op: op, type, device, requested, kernel, runs_per_step, measured_us, sources, "
                        "site.")

    def _of_core(self):
        self.json()  # the error of a report that is nothing but text
        return self._handle

    def device_of(self, op):
        """The full name of the device where the op ran, by its name in the plan or in the program; "": no such op."""
        return self._of_core().device_of(str(op))

    def transfer_bytes(self, source="", target=""):
        """Bytes sent per step from devices to devices: partial names such as "GPU:0"; "" is any."""
        return self._of_core().transfer_bytes(str(source), str(target))

    def fallback_bytes(self):
        """Bytes moved per step because ops do not run where they were asked for."""
        return self._of_core().fallback_bytes()

    def peak_bytes(self, device=""):
        """The most bytes that a step holds on a device of this partial name; "": on the one with most."""
        return self._of_core().peak_bytes(str(device))

    def _repr_html_(self):
        from berth import _html
        return _html.report(self.json()) if self._data else _html.text(self)


class Explanation(Report):
    """Why an op is where it is, as text, with its parts as attributes."""

    op = _field("op", "The name of the op in the plan.")
    device = _field("device", "The full name of its device.")
    rule = _field("rule", 'What decided: "request", "variable", "colocation", "consumers", ...')
    chain = _field("chain", "The reasons, beginning with that of the op itself: rows with a text.")
    alternatives = _field("alternatives", "A row for each other device: device, possible, why_not or step_us, delta_us, "
                                          "delta_bytes.")
    moves = _field("moves", "What would have to change for the op to run there: rows with device and changes.")


def bytes_of(memory):
    """The bytes of a number or of a text such as "8GiB"; 0 for None."""
    if memory is None:
        return 0
    if not isinstance(memory, str):
        return int(memory)
    units = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1}
    for unit, factor in units.items():
        if memory.upper().endswith(unit):
            return int(float(memory[:-len(unit)]) * factor)
    raise ValueError(f"memory={memory!r}; expected bytes, or a text such as '8GiB'")


class FitsReport:
    """What model.fits() says; true if the batch fits.

    devices: rows of device, peak_bytes, available_bytes (0: no limit). memory: rows of device, what, line, bytes: what
    is there at the peak, the largest first. largest_batch: that fits; 0: none does; None: the devices have no limit.
    """

    def __init__(self, batch, fits, largest_batch, devices, memory):
        self.batch, self.fits = batch, fits
        self.largest_batch = None if largest_batch < 0 else largest_batch
        self.devices = [types.SimpleNamespace(device=d, peak_bytes=p, available_bytes=a) for d, p, a in devices]
        self.memory = [types.SimpleNamespace(device=d, what=w, line=n, bytes=b) for d, w, n, b in memory]

    def __bool__(self):
        return self.fits

    def __repr__(self):
        most = "no limit" if self.largest_batch is None else f"at most {self.largest_batch}"
        rows = "".join(f"\n  {d.device}: {d.peak_bytes} bytes" + (f" of {d.available_bytes}" if d.available_bytes else "")
                       for d in self.devices)
        return f"a batch of {self.batch} {'fits' if self.fits else 'does not fit'} ({most}){rows}"


class StrategyPlan(Report):
    """What a strategy predicts of a training step, as text, with its parts as attributes. Times in microseconds."""

    batch = _field("batch", "Examples of the whole batch.")
    replicas = _field("replicas", "A row for each: replica, devices, examples, slices, compute_us, peak_bytes.")
    too_small = _field("too_small", "Devices that the step does not fit: device, peak_bytes, limit_bytes.", [])
    largest_batch = _field("largest_batch", "The largest batch that fits, where this one does not; 0: none does.")
    step_us = _field("step_us", "The time of a step; None: not known.")
    one_device_us = _field("one_device_us", "That of the same step on one device.")
    all_reduce_us = _field("all_reduce_us", "The part of a step that adds gradients.")
    bytes_per_step = _field("bytes_per_step", "Sent between devices.")
    speed_up = _field("speed_up", "one_device_us / step_us.")

    @property
    def pipeline(self):
        """Of a PipelineStrategy: schedule, micro_batches, stages, instructions, in_flight, peak_bytes, bubble; else None.

        Its svg() draws the step as text of an SVG file.
        """
        found = _row(self.json().get("pipeline"))
        if found is not None:
            found.svg = self._handle.svg
        return found


def save_text(path, text):
    """Writes a text to a file, in UTF-8."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def placement(what):
    """What of a traced function or a compiled model ran where, with times, bytes and transfers."""
    return _reports(what, "placement").placement()


def _reports(what, name):
    """The value, if it has the method; a TypeError of another one."""
    if not callable(getattr(what, name, None)):
        raise TypeError(f"tf.{name}(): expected a traced function or a compiled model, not a {type(what).__name__}")
    return what


def explain(what, op):
    """Why an op of a traced function or compiled model is where it is, and what would move it."""
    return _reports(what, "explain").explain(op)


def plan(what, *args, **kwargs):
    """The compiled plan of a traced function or model as text, or what a strategy predicts for one."""
    if hasattr(what, "plan_text"):
        return what.plan_text(*args, **kwargs)
    return _reports(what, "plan").plan(*args, **kwargs)


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
