"""tf.profiler: what ran where and when, as a file that TensorBoard, Perfetto and Chrome open.

    with tf.profiler.experimental.Profile("logs"):
        model.fit(x, y)
"""
import gzip
import json
import os
import socket
import time

from berth import _core, _remote
from berth._lazy import Names as _Names

_state = {"logdir": None, "is_on": False}


class Timeline:
    """What was recorded: events() as (track, name, kind, line, begin_us, end_us)."""

    def __init__(self, core):
        self._core = core

    def events(self):
        """(track, name, kind, line, begin, end) of each event, times in microseconds."""
        return self._core.events()

    def json(self):
        """The trace event format of Chrome."""
        return self._core.json()

    def write(self, path):
        """Writes a file of the format that its ending names: .pftrace (Perfetto), .folded, .xplane.pb, else Chrome's."""
        path = _remote.plain(path)
        if _remote.is_url(path):
            with _remote.outgoing(path) as local:
                return self._core.write(local)
        self._core.write(path)

    def _repr_html_(self):
        from berth import _html
        return _html.timeline(json.loads(self.json()))


def start(logdir=None, options=None):
    """Records from now on; `logdir` is where stop() writes."""
    _core.profiler_start(bool(getattr(options, "checksums", False)))
    _state.update(logdir=None if logdir is None else _remote.plain(logdir), is_on=True)


def is_on():
    """Whether a recording has been started."""
    return _state["is_on"]


def stop(save=True):
    """Ends the recording, writes it under the logdir, and returns the Timeline."""
    timeline = Timeline(_core.profiler_stop())
    folder = _state["logdir"]
    _state.update(logdir=None, is_on=False)
    if save and folder is not None:
        _save(timeline, folder)
    return timeline


def _save(timeline, logdir):
    """Where TensorBoard's profile plug-in looks."""
    if _remote.is_url(logdir):
        with _remote.outgoing(logdir) as local:
            return _save(timeline, local)
    run = os.path.join(logdir, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
    os.makedirs(run, exist_ok=True)
    host = os.path.join(run, socket.gethostname())
    timeline.write(f"{host}.xplane.pb")
    with gzip.open(f"{host}.trace.json.gz", "wt") as out:
        out.write(timeline.json())


class Profile:
    """A with block that is recorded; `timeline` is what it was."""

    def __init__(self, logdir=None, options=None):
        self._folder, self._options, self.timeline = logdir, options, None

    def __enter__(self):
        start(self._folder, self._options)
        return self

    def __exit__(self, *_):
        self.timeline = stop()


class Trace:
    """A name for a with block in the timeline; its arguments stand in brackets after."""

    def __init__(self, name, **kwargs):
        numbers = ", ".join(f"{k}={v}" for k, v in kwargs.items() if not k.startswith("_"))
        self._trace = _core.Trace(f"{name} ({numbers})" if numbers else name)

    def __enter__(self):
        self._trace.enter()
        return self

    def __exit__(self, *_):
        self._trace.exit()


class ProfilerOptions:
    """checksums: also of what each region and op computes, for `berth diff-run`; slow.

    The others are taken for TensorFlow's sake: host and devices are always recorded.
    """

    def __init__(self, host_tracer_level=2, python_tracer_level=0, device_tracer_level=1, delay_ms=None,
                 checksums=False):
        self.host_tracer_level, self.device_tracer_level = host_tracer_level, device_tracer_level
        self.checksums = checksums


experimental = _Names("tf.profiler.experimental", start=start, stop=stop, Profile=Profile, Trace=Trace,
                      ProfilerOptions=ProfilerOptions)
