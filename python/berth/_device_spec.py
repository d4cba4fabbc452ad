"""tf.DeviceSpec: the parts of a device's name."""
import re

_PARTS = ("job", "replica", "task", "device_type", "device_index")
_JOB, _NUMBERED = re.compile(r"job:([\w-]+)$"), re.compile(r"(replica|task):(\d+)$")
_DEVICE = re.compile(r"(?:device:)?([A-Za-z_]+)(?::(\d+|\*))?$")


class DeviceSpec:
    """A device, or those that have some parts in common: DeviceSpec(job="worker", task=1, device_type="GPU")."""

    __slots__ = tuple("_" + p for p in _PARTS)

    def __init__(self, job=None, replica=None, task=None, device_type=None, device_index=None):
        self._job = None if job is None else str(job)
        self._replica, self._task, self._device_index = (None if n is None else int(n) for n in (replica, task, device_index))
        self._device_type = None if device_type is None else str(device_type).upper()

    job = property(lambda self: self._job, doc="The name of the job, or None.")
    replica = property(lambda self: self._replica, doc="The number of the replica, or None.")
    task = property(lambda self: self._task, doc="The number of the task in its job, or None.")
    device_type = property(lambda self: self._device_type, doc='The kind of device, such as "GPU", or None.')
    device_index = property(lambda self: self._device_index, doc="The number of the device, or None.")

    @classmethod
    def from_string(cls, spec):
        """The parts of a name, "/job:worker/replica:0/task:1/device:GPU:0", "/GPU:0", "cpu:0" or ""."""
        parts = {}
        for text in filter(None, spec.split("/")):
            if found := _JOB.match(text):
                parts["job"] = found.group(1)
            elif found := _NUMBERED.match(text):
                parts[found.group(1)] = int(found.group(2))
            elif (found := _DEVICE.match(text)) and "device_type" not in parts:
                parts["device_type"] = found.group(1)
                parts["device_index"] = int(found.group(2)) if (found.group(2) or "*") != "*" else None
            else:
                raise ValueError(f"unknown part {text!r} of the device name {spec!r}; expected "
                                 "\"/job:NAME/replica:N/task:N/device:TYPE:N\", any of them left out")
        return cls(**parts)

    def parse_from_string(self, spec):
        """from_string()."""
        return self.from_string(spec)

    def to_string(self):
        """The name."""
        text = "".join(f"/{p}:{v}" for p, v in zip(_PARTS[:3], self._key()) if v is not None)
        if self._device_type is not None:
            text += f"/device:{self._device_type}:{'*' if self._device_index is None else self._device_index}"
        return text

    def replace(self, **kwargs):
        """A spec with other parts."""
        return type(self)(**{**dict(zip(_PARTS, self._key())), **kwargs})

    def make_merged_spec(self, dev):
        """A spec with the parts of `dev`, and this one's where that has none."""
        return self.replace(**{p: v for p, v in zip(_PARTS, dev._key()) if v is not None})

    def _key(self):
        return self._job, self._replica, self._task, self._device_type, self._device_index

    def __eq__(self, other):
        return isinstance(other, DeviceSpec) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.to_string()

    def __repr__(self):
        return f"<DeviceSpec {self.to_string()!r}>"
