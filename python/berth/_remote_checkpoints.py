"""Checkpoints whose folder is a URL: the engine works on a mirror of it on this machine.

A mirror has the manifests, and of the files of values what is needed: those that are restored or on their way up are
whole, of the others there is the head alone, in a file of the right length without blocks on the disk. So the engine
numbers, restores and deletes as in any folder, and what it did is then done to the URL: values go up first, manifests
after them, and what is to go is deleted last. A reader never sees half of a checkpoint, and one whose upload was cut
is none.
"""
import contextlib
import json
import os
import re
import shutil
import weakref

from berth import _core, _remote

_HEAD = 1 << 16  # bytes of a file of values that mostly have its whole head
_TEMPORARY = (".part", ".lock")


def _files_of(text):
    """{name: bytes} of the files that a manifest names; None where it is none of a checkpoint, or not whole."""
    try:
        kept = json.loads(text)
        if kept["format"] != "berth-checkpoint":
            return None
        files = {str(f["name"]): int(f["bytes"]) for f in kept["files"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if any("/" in n or n in ("", ".", "..") for n in files) else files


def _numbered(name):
    """The names of the files of checkpoints NAME-1, NAME-2, ..."""
    return re.compile(rf"{re.escape(name)}-\d+(~1)?(-\d{{5}}-of-\d{{5}})?\.(json|safetensors|keep)").fullmatch


def _single(name):
    """The names of the files of a checkpoint NAME."""
    return re.compile(rf"{re.escape(name)}(~1)?(-\d{{5}}-of-\d{{5}})?\.(json|safetensors)").fullmatch


def split(url):
    """(the folder, the name) of a path of a checkpoint."""
    folder, _, base = url.rpartition("/")
    if not base or folder.endswith(":/"):
        raise _core.InvalidArgumentError(f"{url}: the path names no file of a bucket; expected 's3://bucket/folder/ckpt'")
    return folder, base


class Mirror:
    """The mirror of a folder. One thread, but for its uploads."""

    def __init__(self, url, folder=None):
        self.url = url.rstrip("/")
        self.folder = folder or _remote.new_folder(self.url)
        self.uploads = _remote.Uploads(self.url)
        self._there = {}     # the files of the URL that are checkpoints': {name: bytes}
        self._sent = {}      # {name: which file here is the same}
        self._hollow = {}    # {name: which file here has the head alone}
        self._held = set()   # files that may be read later
        self._known, self._left, self._gone = set(), set(), set()  # seen here; of cut uploads; to be deleted at the URL
        self._pulled = set()
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, True)

    def _here(self, name):
        return os.path.join(self.folder, name)

    def url_of(self, path):
        """The URL of what the engine made in the mirror."""
        return None if path is None else f"{self.url}/{os.path.basename(path)}"

    def naming(self):
        """A block in which errors name the URL."""
        return _remote.naming(self.folder, self.url)

    # ---- down

    def pull(self, is_ours, sweeps):
        """Makes the mirror like the URL, where names are ours.

        sweeps: files of values without a manifest, which cut uploads left, are to be deleted with the next push.
        """
        os.makedirs(self.folder, exist_ok=True)
        files = {n: size for n, (size, _) in _remote.listed(self.url).items() if is_ours(n)}
        for name in [n for n in self._sent if is_ours(n) and n not in files]:
            with contextlib.suppress(FileNotFoundError):
                if self._sent.pop(name) == _mark(os.stat(self._here(name))):
                    os.remove(self._here(name))
        there, heads = {}, []
        for name in [n for n in files if n.endswith(".json")]:
            text = _remote.read(f"{self.url}/{name}")
            parts = [p for p in _files_of(text) or () if p in files]
            heads += [p for p in parts if not self._is_whole(p, files[p], name, text)]
            there.update({p: files[p] for p in [name, *parts]})
            self._write(name, text)
        for name in heads:
            self._make_hollow(name, files[name])
        for name in [n for n in files if n.endswith(".keep")]:
            self._write(name, b"")
        kept = {n: s for n, s in self._there.items() if not is_ours(n)}
        self._there = {**kept, **(files if sweeps else there)}
        self._left = {n for n in files if n not in there and not n.endswith(".keep")} if sweeps else set()

    def ready(self, is_ours, sweeps=False):
        """Before the engine saves: waits for the upload before, whose error is raised, and pulls the first time."""
        self.uploads.wait()
        if is_ours.__self__.pattern not in self._pulled:
            self.pull(is_ours, sweeps)
            _remote.end_uploads(self.url, is_ours)
            self._pulled.add(is_ours.__self__.pattern)
        self._known = set(self._listing(is_ours))

    def _write(self, name, data):
        with open(self._here(name + ".new"), "wb") as file:
            file.write(data)
        os.replace(self._here(name + ".new"), self._here(name))
        self._sent[name] = _mark(os.stat(self._here(name)))

    def _is_whole(self, name, size, manifest, text):
        """Whether a file of values here is the one that the manifest means."""
        try:
            with open(self._here(manifest), "rb") as file:
                here = _mark(os.stat(self._here(name)))
                return file.read() == text and here != self._hollow.get(name) and here[2] == size
        except FileNotFoundError:
            return False

    def _make_hollow(self, name, size):
        """A file of this length that has the head of the values alone."""
        url = f"{self.url}/{name}"
        data = _remote.read(url, 0, min(size, _HEAD)) if size else b""
        length = 8 + int.from_bytes(data[:8], "little")
        if len(data) < length <= size:
            data += _remote.read(url, len(data), length)
        self._write(name, data[:length])
        os.truncate(self._here(name), size)
        self._sent[name] = self._hollow[name] = _mark(os.stat(self._here(name)))

    def fill(self, base):
        """Fetches a checkpoint whole; NotFoundError where there is none."""
        text = _remote.read(f"{self.url}/{base}.json")
        for name, size in (_files_of(text) or {}).items():
            if not self._is_whole(name, size, f"{base}.json", text):
                _remote.get(f"{self.url}/{name}", self._here(name))
                self._sent[name] = _mark(os.stat(self._here(name)))
            self._held.add(name)
        self._write(f"{base}.json", text)
        return self._here(base)

    # ---- up

    def _listing(self, is_ours):
        here = {}
        os.makedirs(self.folder, exist_ok=True)  # the engine deletes an empty one
        with os.scandir(self.folder) as found:
            for f in found:
                if f.is_file() and is_ours(f.name) and not f.name.endswith(_TEMPORARY):
                    here[f.name] = _mark(f.stat())
        return here

    def changes(self, is_ours):
        """(what is new here, what the engine deleted since it was looked at last) of the files that are ours."""
        here = self._listing(is_ours)
        whole = {p for n in here if n.endswith(".json") for p in self._parts_of(n)}
        new = {n: m for n, m in here.items() if self._sent.get(n) != m and (not n.endswith(".safetensors") or n in whole)}
        self._gone |= {n for n in self._known | self._left if is_ours(n)}
        self._gone -= here.keys()
        self._known = set(here)
        return new, set(self._gone)

    def _parts_of(self, manifest):
        with contextlib.suppress(FileNotFoundError), open(self._here(manifest), "rb") as file:
            return _files_of(file.read()) or {}
        return {}

    def taken(self, is_ours, deletes=True):
        """What push() sends: links, so that the engine may delete meanwhile. None: nothing changed.

        deletes: also when nothing is new, as when all is cleared; else what is gone waits for something new.
        """
        new, gone = self.changes(is_ours)
        if not new and not (gone and deletes):
            return None
        links = _remote.new_folder(self.url)
        for name in new:
            os.link(self._here(name), os.path.join(links, name))
        return links, new, gone

    def push(self, links, new, gone, hollow=True):
        """Does to the URL what the engine did here."""
        try:
            for name in sorted(new, key=lambda n: (n.endswith(".json"), n)):
                _remote.put(os.path.join(links, name), f"{self.url}/{name}")
                self._sent[name], self._there[name] = new[name], os.path.getsize(os.path.join(links, name))
        except _core.OpError as e:
            raise type(e)(f"{self.url}: a checkpoint was not uploaded, those before it are still there: {e}") from e
        finally:
            shutil.rmtree(links, ignore_errors=True)
        for name in sorted(gone, key=lambda n: (not n.endswith(".json"), n)):
            if name in self._there:  # its upload may have failed
                _remote.remove(f"{self.url}/{name}")
                del self._there[name]
            self._gone.discard(name)
        for name in [n for n in new if hollow and n.endswith(".safetensors") and n not in self._held]:
            self._empty(name)

    def _empty(self, name):
        """Gives the blocks of a file back that is at the URL."""
        with contextlib.suppress(FileNotFoundError), open(self._here(name), "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            file.truncate(min(size, 8 + int.from_bytes(file.read(8), "little")))
            file.truncate(size)
            file.flush()
            self._sent[name] = self._hollow[name] = _mark(os.fstat(file.fileno()))

    def send(self, is_ours, after=None):
        """Has a thread push what the engine saved; after: what the thread waits for first."""
        def job():
            if after is not None:
                with self.naming():
                    after()
            taken = self.taken(is_ours)
            if taken is not None:
                self.push(*taken)
        self.uploads.begin(job)


def _mark(stat):
    """Tells a file from the one that had the name before."""
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


# ---------------------------------------------------------------- Checkpoint

def _mirror(checkpoint, folder):
    mirrors = checkpoint.__dict__.setdefault("_mirrors", {})
    if folder not in mirrors:
        mirrors[folder] = Mirror(folder)
    return mirrors[folder]


def save(checkpoint, url, counted, is_async):
    """Checkpoint.save() and write() to a URL: returns the path while a thread writes it there."""
    folder, base = split(url)
    mirror, is_ours = _mirror(checkpoint, folder), (_numbered if counted else _single)(base)
    sync(checkpoint)
    mirror.ready(is_ours)
    handle = checkpoint.__berth__
    with mirror.naming():
        path = handle.save(mirror._here(base), counted, is_async)
    mirror.send(is_ours, handle.sync if is_async else None)
    return mirror.url_of(path)


def fetched(checkpoint, url):
    """The path of a copy of a checkpoint of a URL, which stays while it may be read, and its mirror."""
    folder, base = split(url)
    mirror = _mirror(checkpoint, folder)
    _remote.join(folder)
    mirror._held.clear()
    with mirror.naming():
        return mirror.fill(base), mirror


def sync(checkpoint):
    """Waits until what was saved is at its URL; raises errors."""
    for mirror in checkpoint.__dict__.get("_mirrors", {}).values():
        mirror.uploads.wait()


# ---------------------------------------------------------------- without objects

def latest(url):
    """The URL of the last complete checkpoint in a folder, or None."""
    url = url.rstrip("/")
    _remote.join(url)
    files = _remote.listed(url)
    found = []
    for name in [n for n in files if n.endswith(".json")]:
        number = re.search(r"-(\d+)\.json$", name)
        found.append((files[name][1], int(number[1]) if number else 0, name))
    for _, _, name in sorted(found, reverse=True):
        with contextlib.suppress(_core.NotFoundError):  # somebody deletes it now
            parts = _files_of(_remote.read(f"{url}/{name}"))
            if parts is not None and all(p in files and files[p][0] == size for p, size in parts.items()):
                return f"{url}/{name.removesuffix('.json')}"
    return None


_read_last = {}


def copy_of(url, what):
    """The path of a copy of a checkpoint, or of the latest of a folder, for what reads it without objects."""
    url = url.rstrip("/")
    base = url if _remote.persist(f"{url}.json", "it could not be read", lambda fs, path: fs.exists(path)) else latest(url)
    if base is None:
        raise _core.NotFoundError(f"{what}: there is no complete checkpoint at {url!r}, nor in a folder of this name; "
                                  "expected a path that save() returned, or the folder")
    folder, name = split(base)
    if folder not in _read_last:
        _read_last.clear()  # copies of one folder are kept
        _read_last[folder] = Mirror(folder)
    mirror = _read_last[folder]
    with mirror.naming():
        return mirror.fill(name)


# ---------------------------------------------------------------- CheckpointManager

class Manager:
    """What a CheckpointManager of a URL does before and after the engine's, which works in the mirror."""

    def __init__(self, url, name):
        self.mirror, self._name, self._is_ours = Mirror(url), name, _numbered(name)

    def know(self):
        """Before the engine is asked which checkpoints there are."""
        if not self.mirror._pulled:
            _remote.join(self.mirror.url)
            self.mirror.pull(self._is_ours, True)

    def save(self, save):
        """save() of the engine, then its upload; returns the URL."""
        self.mirror.ready(self._is_ours, True)
        with self.mirror.naming():
            path = save()
        if path is not None:
            self.mirror.send(self._is_ours)
        return self.mirror.url_of(path)

    def restore(self, restore):
        """restore_or_initialize() of the engine, with the newest whole; the path in the mirror, or None."""
        _remote.join(self.mirror.url)
        self.mirror.pull(self._is_ours, True)
        number = re.compile(rf"{re.escape(self._name)}-(\d+)\.json").fullmatch
        left = sorted(int(m[1]) for m in map(number, self.mirror._there) if m)
        self.mirror._held.clear()
        while left:
            newest = left.pop()
            try:
                with self.mirror.naming():
                    self.mirror.fill(f"{self._name}-{newest}")
                    return restore()
            except (_core.DataLossError, _core.NotFoundError):
                if not left:  # the engine looked at those before it, too, of which the next is fetched now
                    raise
        return restore()

    def sync(self):
        """Waits for the upload; raises its error."""
        self.mirror.uploads.wait()

