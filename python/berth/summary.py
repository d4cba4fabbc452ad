"""tf.summary: event files for TensorBoard."""
import contextlib

from berth import _core, _remote
from berth._lazy import Names as _Names
from berth._tensor import convert_to_tensor, refuse, string

_writers, _state = [], {"step": None, "graph": None}


class SummaryWriter:
    """A file of events. While it is the default, scalar() and its like write into it.

    One of a URL is written on this machine and sent there each few seconds, and by close(), which raises errors.
    """

    _events = None  # a file of what the engine's does not write

    def __init__(self, logdir):
        logdir = _remote.plain(logdir)
        self._logs = _remote.Logs(logdir) if _remote.is_url(logdir) else None
        self._core = _core.EventFile(self._logs.folder if self._logs else logdir)

    @contextlib.contextmanager
    def as_default(self, step=None):
        """A block in which summaries go to this writer."""
        before = _state["step"]
        _writers.append(self)
        if step is not None:
            _state["step"] = step
        try:
            yield self
        finally:
            _writers.pop()
            _state["step"] = before
            self.flush()

    def set_as_default(self, step=None):
        """Summaries go to this writer from now on."""
        _writers.append(self)
        if step is not None:
            _state["step"] = step

    def flush(self):
        """Writes what is waiting to the file."""
        if self._core is not None:
            self._core.flush()
            if self._events is not None:
                self._events.flush()
            if self._logs:
                self._logs.send()

    def close(self):
        """Writes what is waiting, and closes the file."""
        if self._core is not None:
            self._core.flush()
        if self._events is not None:
            self._events.close()
        self._core = self._events = None
        if self._logs:
            self._logs.finish()


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None):
    """Makes the folder and a file of events in it."""
    return SummaryWriter(logdir)


def create_noop_writer():
    """A writer that writes nothing."""
    return contextlib.nullcontext()


def _file():
    return _writers[-1]._core if _writers else None


def _step(step, what):
    step = _state["step"] if step is None else step
    if step is None:
        raise ValueError(f"tf.summary.{what}: no step is given; expected step=, or "
                         "tf.summary.experimental.set_step()")
    return int(step)


def scalar(name, data, step=None, description=None):
    """Writes a number; False when no writer is the default."""
    if _file() is None:
        return False
    _file().scalar(name, float(convert_to_tensor(data)), _step(step, "scalar"))
    return True


def histogram(name, data, step=None, buckets=None, description=None):
    """Writes how values are spread, in 30 buckets."""
    refuse("tf.summary.histogram", buckets=None if buckets == 30 else buckets)
    if _file() is None:
        return False
    values = convert_to_tensor(data).numpy().astype("float32").ravel()
    _file().histogram(name, values.tolist(), _step(step, "histogram"))
    return True


def image(name, data, step=None, max_outputs=3, description=None):
    """Writes pictures [n, height, width, 1 or 3]: floats from 0 to 1, or uint8."""
    if _file() is None:
        return False
    import numpy
    array = convert_to_tensor(data).numpy()
    if array.ndim != 4 or array.shape[3] not in (1, 3):
        raise ValueError(f"tf.summary.image: the shape is {array.shape}; expected [n, height, width, 1 or 3]")
    if array.dtype.kind == "f":
        array = numpy.clip(array * 255 + 0.5, 0, 255)
    for i, picture in enumerate(array[:max_outputs].astype("uint8")):
        _file().image(f"{name}/image/{i}" if len(array) > 1 else f"{name}/image", *picture.shape,
                      numpy.ascontiguousarray(picture).tobytes(), _step(step, "image"))
    return True


def text(name, data, step=None, description=None):
    """Writes a text."""
    if _file() is None:
        return False
    value = convert_to_tensor(data).numpy()
    _file().text(name, value.decode() if isinstance(value, bytes) else str(value), _step(step, "text"))
    return True


def write(tag, tensor, step=None, metadata=None, name=None):
    """Writes a text for a part of TensorBoard that metadata.plugin_data names; False when no writer is the default."""
    if _file() is None:
        return False
    value = convert_to_tensor(tensor).numpy()
    if not isinstance(value, (bytes, str)):
        raise NotImplementedError("tf.summary.write: texts alone are written; use scalar(), histogram() or image()")
    plugin = getattr(metadata, "plugin_data", None)
    _file().text(tag, value.decode() if isinstance(value, bytes) else value, _step(step, "write"),
                 getattr(plugin, "plugin_name", "text"), getattr(plugin, "content", b""))
    return True


def flush(writer=None, name=None):
    """Writes what a writer, or the open one, still holds."""
    if writer is not None:
        writer.flush()
    elif _file() is not None:
        _file().flush()


def trace_on(graph=True, profiler=False, profiler_outdir=None):
    """From now on the function that is called next is kept for trace_export()."""
    from berth import _function
    _state["graph"] = [] if graph else None
    _function.listen(_state["graph"])
    if profiler:
        from berth import profiler as _profiler
        _profiler.start(profiler_outdir)


def trace_off():
    """Ends trace_on() and drops what it recorded."""
    from berth import _function
    _state["graph"] = None
    _function.listen(None)


def trace_export(name, step=None, profiler_outdir=None):
    """Writes the graphs of the functions that were called since trace_on()."""
    if _file() is not None and _state["graph"]:
        nodes = [[node.name, node.op] for f in _state["graph"] for node in f.graph.node]
        _file().graph(nodes)
    from berth import profiler as _profiler
    if _profiler.is_on():
        _profiler.stop()
    trace_off()


def _set_step(step):
    """Sets the step of summaries that name none."""
    _state["step"] = step


def _get_step():
    """The step that set_step() set, or None."""
    return _state["step"]


@contextlib.contextmanager
def _summary_scope(name, default_name="summary", values=None):
    """A block with (tag, scope): the name, and that with a slash."""
    yield name or default_name, f"{name or default_name}/"


def _write_raw_pb(tensor, step=None, name=None):
    """Writes the bytes of a Summary message; False when no writer is the default."""
    if _file() is None:
        return False
    from berth import _summary_more
    data = convert_to_tensor(tensor, string)._array().item()
    _summary_more.write_summary(_writers[-1], data, _step(step, "experimental.write_raw_pb"))
    return True


experimental = _Names("tf.summary.experimental", set_step=_set_step, get_step=_get_step, summary_scope=_summary_scope,
                      write_raw_pb=_write_raw_pb)


def audio(name, data, sample_rate, step=None, max_outputs=3, encoding=None, description=None):
    """Writes sounds [n, samples, channels], floats from -1 to 1, as WAV files of 16 bits; False when no writer is the default."""
    if _file() is None:
        return False
    from berth import _summary_more
    made = _summary_more.audio_summary(name, data, int(sample_rate), int(max_outputs), encoding, description)
    _summary_more.write_summary(_writers[-1], made, _step(step, "audio"))
    return True


def graph(graph_data):
    """Writes a graph, that of a concrete function (f.get_concrete_function(...).graph); False when no writer is the default."""
    if not hasattr(graph_data, "node"):
        raise TypeError(f"tf.summary.graph: {graph_data!r}; expected the graph of a concrete function")
    if _file() is None:
        return False
    _file().graph([[node.name, node.op] for node in graph_data.node])
    return True


def should_record_summaries():
    """Whether a writer is open."""
    return bool(_writers)


@contextlib.contextmanager
def record_if(condition):
    """Inside, nothing is written unless `condition` (a value or a function) holds."""
    holds = condition() if callable(condition) else condition
    kept = list(_writers)
    if not holds:
        _writers.clear()
    try:
        yield
    finally:
        _writers[:] = kept
