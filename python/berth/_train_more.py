"""tf.train where few programs go: averages of variables, folders of checkpoints, what a checkpoint holds."""
import json
import os
import re
import time
import typing

import numpy as np
from berth import _core, _remote
from berth._core import Variable
from berth._module import variables_in
from berth._tensor import refuse


class ExponentialMovingAverage:
    """Averages of variables in which each apply() gives the newest value the part 1 - decay.

    num_updates: a number for which the decay is at most (1 + n) / (10 + n). zero_debias is for tensors of version 1 alone.
    """

    def __init__(self, decay, num_updates=None, zero_debias=False, name="ExponentialMovingAverage"):
        self._decay, self._updates, self.zero_debias, self._name = decay, num_updates, zero_debias, name
        self._averages = {}

    name = property(lambda self: self._name, doc="The last part of the averages' names.")

    def apply(self, var_list=None):
        """Makes the averages of variables, or moves them towards the values now. None: of all that have one."""
        given = [a[0] for a in self._averages.values()] if var_list is None else list(var_list)
        decay = _core.ops.math.cast(self._decay, _core.float32)
        if self._updates is not None:
            n = _core.ops.math.cast(self._updates, _core.float32)
            decay = _core.ops.math.minimum(decay, (1.0 + n) / (10.0 + n))
        for v in given:
            if not isinstance(v, Variable):
                raise TypeError(f"ExponentialMovingAverage: {v!r} is no variable; expected variables")
            if not v.dtype.is_floating:
                raise TypeError(f"ExponentialMovingAverage: the variable {v.name} is {v.dtype.name}; expected a floating dtype")
            if id(v) not in self._averages:
                from berth import init_scope
                with init_scope():
                    self._averages[id(v)] = (v, Variable(v.read_value(), trainable=False, name=self.average_name(v)))
        for v in given:
            average = self._averages[id(v)][1]
            part = _core.ops.math.cast(1.0 - decay, v.dtype)
            average.assign_sub((average.read_value() - v.read_value()) * part)

    def average(self, var):
        """The variable that holds the average of one, or None."""
        return self._averages.get(id(var), (None, None))[1]

    def average_name(self, var):
        """The name of the average of a variable."""
        return f"{var.name.partition(':')[0]}/{self._name}"

    def variables_to_restore(self, moving_avg_variables=None):
        """{name in a file: variable}: those with an average by its name, the others given by their own."""
        given = {id(v): v for v in moving_avg_variables or ()}
        given.update({key: v for key, (v, _) in self._averages.items()})
        return {self.average_name(v) if key in self._averages else v.name.partition(":")[0]: v for key, v in given.items()}


class CheckpointState(typing.NamedTuple):
    """What a folder of checkpoints has: the path of the newest, and those of all of its name, the oldest first."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    """The CheckpointState of a folder or URL; None where there is no checkpoint."""
    from berth.train import latest_checkpoint
    refuse("get_checkpoint_state", latest_filename=latest_filename)
    newest = latest_checkpoint(checkpoint_dir)
    if newest is None:
        return None
    folder, name = newest.rpartition("/")[0], newest.rpartition("/")[2]
    stem = re.sub(r"-\d+$", "", name)
    if _remote.is_url(newest):
        return CheckpointState(newest, [newest])
    found = [re.fullmatch(re.escape(stem) + r"-(\d+)\.json", n) for n in os.listdir(folder or ".")]
    numbers = sorted(int(m[1]) for m in found if m)
    paths = [os.path.join(folder, f"{stem}-{n}") for n in numbers]
    return CheckpointState(newest, [p for p in paths if p != newest] + [newest])


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    """Gives the path of each new checkpoint of a folder as it comes, the newest one at a time.

    min_interval_secs: the least time between two. timeout: seconds to wait for one; then the iterator ends, unless timeout_fn()
    is false.
    """
    from berth.train import latest_checkpoint
    last = None
    while True:
        begun = time.monotonic()
        while (newest := latest_checkpoint(checkpoint_dir)) in (None, last):
            if timeout is not None and time.monotonic() - begun > timeout:
                break
            time.sleep(min(0.2, 1 if timeout is None else timeout))
        if newest in (None, last):
            if timeout_fn is None or timeout_fn():
                return
            continue
        last, given = newest, time.monotonic()
        yield newest
        time.sleep(max(0, given + min_interval_secs - time.monotonic()))


class PythonState:
    """A base of classes whose values a Checkpoint keeps as bytes: serialize() gives them, deserialize(bytes) takes them back."""

    def serialize(self):
        """The bytes to save."""
        raise NotImplementedError(f"{type(self).__name__} needs serialize(), which returns bytes")

    def deserialize(self, string_value):
        """Takes saved bytes back."""
        raise NotImplementedError(f"{type(self).__name__} needs deserialize(), which takes bytes")


def state_of(held):
    """The bytes of a PythonState as a variable of a checkpoint."""
    data = held.serialize()
    data = data.encode() if isinstance(data, str) else bytes(data)
    return [("py_state", Variable(np.frombuffer(b"\0" + data, "uint8"), trainable=False))]


def take_state(held, value):
    held.deserialize(value.numpy().tobytes()[1:])


def _tree(names):
    """Children by node, where node 0 is the root: {name: node} in the order of breadth."""
    nodes, paths = [{}], {"": 0}
    for depth in range(max((n.count("/") + 1 for n in names), default=0)):
        for name in names:
            parts = name.split("/")
            if depth < len(parts):
                above, here = "/".join(parts[:depth]), "/".join(parts[:depth + 1])
                if here not in paths:
                    paths[here] = len(nodes)
                    nodes.append({})
                    nodes[paths[above]][parts[depth]] = paths[here]
    return nodes, paths


class CheckpointView:
    """The objects in a checkpoint: node 0 is the Checkpoint, others are its parts, by the names that they have."""

    def __init__(self, save_path, options=None):
        from berth.train import list_variables
        refuse("CheckpointView", options=options)
        self._path = save_path
        self._nodes, self._paths = _tree([name for name, _ in list_variables(save_path)])

    def children(self, node_id):
        """{name: node} of the parts of a node."""
        if not 0 <= node_id < len(self._nodes):
            raise ValueError(f"CheckpointView: there is no node {node_id}; expected 0 to {len(self._nodes) - 1}")
        return dict(self._nodes[node_id])

    def descendants(self):
        """All nodes."""
        return list(range(len(self._nodes)))

    def match(self, obj):
        """{node: object} of what an object has under the same names."""
        found = {0: obj}
        for node, children in enumerate(self._nodes):
            parts = TrackableView.children(found[node]) if node in found else {}
            found.update({number: parts[name] for name, number in children.items() if name in parts})
        return found

    def diff(self, obj):
        """(match(), nodes that the object lacks, objects that the checkpoint lacks)."""
        found = self.match(obj)
        others = [o for o in TrackableView(obj).descendants() if all(o is not m for m in found.values())]
        return found, [n for n in self.descendants() if n not in found], others


class TrackableView:
    """The parts of a Checkpoint, or another object that holds variables, by their names."""

    def __init__(self, root):
        self._root = root

    @classmethod
    def children(cls, obj, save_type=None, **kwargs):
        """{name: part} of an object: what holds variables."""
        refuse("TrackableView.children", save_type=None if save_type in (None, "checkpoint") else save_type, **kwargs)
        if isinstance(obj, Variable):
            return {}
        if hasattr(obj, "_parts") and isinstance(obj._parts, dict):
            return dict(obj._parts)
        items = enumerate(obj) if isinstance(obj, (list, tuple)) else (obj if isinstance(obj, dict) else vars(obj)).items()
        return {str(name): part for name, part in items if isinstance(part, Variable) or (
            not isinstance(part, (str, bytes, int, float, type(None))) and _holds(part))}

    def descendants(self):
        """The root, its parts and theirs, each once."""
        found, waiting = [], [self._root]
        while waiting:
            one = waiting.pop(0)
            if all(one is not f for f in found):
                found.append(one)
                waiting += self.children(one).values()
        return found


def _holds(part):
    try:
        return bool(variables_in(part))
    except (TypeError, AttributeError):
        return False
