"""What Checkpoint.restore() found, and what became of it."""
from berth import _core


class LoadStatus:
    """What restore() did: restored, deferred, missing and unused are lists of names.

    deferred: values of variables that are yet to be made; missing: variables that have none in the checkpoint; unused:
    values that no object has. Objects that become attributes of the Checkpoint later change them.
    """

    def __init__(self, found, waits, lost=()):
        self._found, self._waits, self._lost, self._late = found, waits, list(lost), []

    def _add(self, found):
        """Counts a part that came later in."""
        self._late.append(found)
        if not self.missing and not self.unused:
            self._found.expect_partial()

    def _all(self, kind):
        return sorted({n for s in (self._found, *self._late) for n in getattr(s, kind)})

    restored = property(lambda self: self._all("restored"))
    deferred = property(lambda self: self._all("deferred"))
    missing = property(lambda self: sorted({*self._all("missing"), *self._lost}))

    @property
    def unused(self):
        taken = {n for s in self._late for n in (*s.restored, *s.deferred, s.name)}
        return [n for n in self._found.unused if n not in taken]

    def _check(self, call, **left):
        self._found.expect_partial()
        if any(left.values()):
            raise NotMatched(f"{call}: " + "; ".join(f"{what}: {', '.join(map(repr, names[:6]))}"
                                                     f"{' ...' if len(names) > 6 else ''}"
                                                     for what, names in left.items() if names)
                             + "; expect_partial() says that this is meant")
        return self

    def assert_consumed(self):
        """AssertionError unless all values of the checkpoint went to variables, and all variables got one."""
        return self._check("assert_consumed", missing=self.missing, unused=self.unused,
                           waiting=[n for n in self.deferred if self._waits(n)])

    def assert_existing_objects_matched(self):
        """AssertionError unless all variables that there are got a value."""
        return self._check("assert_existing_objects_matched", missing=self.missing)

    def assert_nontrivial_match(self):
        """AssertionError if no object has a value of the checkpoint."""
        return self

    def expect_partial(self):
        """Says that values without a variable are meant to be left."""
        self._found.expect_partial()
        return self

    def __repr__(self):
        return (f"<LoadStatus restored={len(self.restored)}, deferred={len(self.deferred)}, missing={len(self.missing)}, "
                f"unused={len(self.unused)}>")


class NotMatched(AssertionError, _core.FailedPreconditionError):
    """Values and objects that have nothing to do with each other."""


class NothingRestored:
    """What restore(None) returns."""

    restored = deferred = missing = unused = ()

    def assert_consumed(self):
        raise AssertionError("nothing is restored: there was no checkpoint")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self):
        return self


class Part:
    """What a late part of a Checkpoint got; unused values are those of other parts."""

    def __init__(self, name, restored=(), deferred=(), missing=()):
        self.name, self.restored, self.deferred, self.missing = name, restored, deferred, missing
