"""tf.io.gfile: files by path. A path with a scheme, such as gs:// or memory://, is opened by the package fsspec."""
import os as _os
import shutil as _shutil

from berth import _remote


def _split(path):
    """(file system, path in it): None for one of this machine."""
    path = _remote.plain(path)
    return _remote.filesystem(path) if _remote.is_url(path) else (None, path)


def _not_there(path):
    from berth._core import NotFoundError
    return NotFoundError(f"{path}: no such file or directory")


class GFile:
    """A file, open for "r", "w" or "a", with "b" for bytes; a `with` block closes it.

    What is written to a URL is there when the file is closed; nothing of it where the block ends with an error.
    """

    def __init__(self, name, mode="r"):
        self.name, self.mode, self._copy = name, mode, None
        fs, path = _split(name)
        if fs is not None and "w" in mode:
            self._copy = _os.path.join(_remote.new_folder(path), "file")
            fs, path = None, self._copy
        try:
            self._file = open(path, mode) if fs is None else fs.open(path, mode)
        except FileNotFoundError:
            raise _not_there(name) from None

    def size(self):
        """The bytes of the file."""
        return stat(self.name).length

    def read(self, n=-1):
        """The next n characters or bytes, -1: all that are left."""
        return self._file.read(n)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __iter__(self):
        return iter(self._file)

    def __enter__(self):
        return self

    def close(self):
        """Ends the file; that of a URL is uploaded, whose errors are raised here."""
        self._file.close()
        copy, self._copy = self._copy, None
        if copy is not None:
            try:
                _remote.put(copy, _remote.plain(self.name))
            finally:
                _shutil.rmtree(_os.path.dirname(copy))

    def __del__(self):
        if getattr(self, "_copy", None) is not None:
            self.close()

    def __exit__(self, error, *_):
        if error is not None and self._copy is not None:
            _shutil.rmtree(_os.path.dirname(self._copy))
            self._copy = None
        self.close()


class _Stat:
    """length in bytes, mtime_nsec, is_directory."""

    def __init__(self, length, mtime_nsec, is_directory):
        self.length, self.mtime_nsec, self.is_directory = length, mtime_nsec, is_directory


def exists(path):
    """True when there is a file or folder of this path."""
    fs, path = _split(path)
    return _os.path.exists(path) if fs is None else fs.exists(path)


def isdir(path):
    """True of a folder."""
    fs, path = _split(path)
    return _os.path.isdir(path) if fs is None else fs.isdir(path)


def stat(path):
    """Length, time and kind of a file; NotFoundError where there is none."""
    fs, inner = _split(path)
    try:
        if fs is None:
            s = _os.stat(inner)
            return _Stat(s.st_size, s.st_mtime_ns, _os.path.isdir(inner))
        info = fs.info(inner)
    except FileNotFoundError:
        raise _not_there(path) from None
    return _Stat(info["size"] or 0, 0, info["type"] == "directory")


def glob(pattern):
    """The sorted paths that match a pattern, or any of several."""
    if not isinstance(pattern, (str, bytes, _os.PathLike)):
        return [p for one in pattern for p in glob(one)]
    fs, path = _split(pattern)
    if fs is None:
        import glob as names
        return sorted(names.glob(path))
    return sorted(fs.unstrip_protocol(p) for p in fs.glob(path))


def listdir(path):
    """The names in a folder; NotFoundError where there is none."""
    fs, inner = _split(path)
    if not isdir(path):
        raise _not_there(path)
    return _os.listdir(inner) if fs is None else [p.rstrip("/").rsplit("/", 1)[-1] for p in fs.ls(inner, detail=False)]


def makedirs(path):
    """Makes a folder and those above it; nothing when it is there."""
    fs, path = _split(path)
    return _os.makedirs(path, exist_ok=True) if fs is None else fs.makedirs(path, exist_ok=True)


def mkdir(path):
    """Makes a folder in one that is there."""
    fs, inner = _split(path)
    try:
        return _os.mkdir(inner) if fs is None else fs.mkdir(inner, create_parents=False)
    except FileNotFoundError:
        raise _not_there(path) from None


def remove(path):
    """Deletes a file; NotFoundError where there is none."""
    fs, inner = _split(path)
    try:
        return _os.remove(inner) if fs is None else fs.rm_file(inner)
    except FileNotFoundError:
        raise _not_there(path) from None


def rmtree(path):
    """Deletes a folder with all that is in it."""
    fs, inner = _split(path)
    if not exists(path):
        raise _not_there(path)
    if fs is not None:
        return fs.rm(inner, recursive=True)
    import shutil
    return shutil.rmtree(inner)


def copy(src, dst, overwrite=False):
    """Copies a file; AlreadyExistsError where dst is one, unless overwrite."""
    _free(dst, overwrite)
    with GFile(src, "rb") as source, GFile(dst, "wb") as target:
        while block := source.read(1 << 20):
            target.write(block)


def rename(src, dst, overwrite=False):
    """Moves a file or folder; AlreadyExistsError where dst is one, unless overwrite."""
    _free(dst, overwrite)
    (a, source), (b, target) = _split(src), _split(dst)
    if a is None and b is None:
        return _os.replace(source, target)
    if a is b:
        return a.mv(source, target, recursive=a.isdir(source))
    copy(src, dst, True)
    return remove(src)


def _free(path, overwrite):
    if not overwrite and exists(path):
        from berth._core import AlreadyExistsError
        raise AlreadyExistsError(f"{path} is there already; overwrite=True replaces it")


def walk(top, topdown=True, onerror=None):
    """(folder, its folders, its files) of a folder and all below."""
    fs, path = _split(top)
    return _os.walk(path, topdown, onerror) if fs is None else fs.walk(path)


def join(path, *paths):
    """The parts of a path, joined."""
    return "/".join([path.rstrip("/"), *paths]) if "://" in path else _os.path.join(path, *paths)


def get_registered_schemes():
    """The beginnings of paths that work: "" and "file", and those that the package fsspec knows, if it is there."""
    try:
        import fsspec
    except ImportError:
        return ["", "file"]
    return ["", *sorted({*fsspec.available_protocols(), "file"})]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from berth._tensor import unknown_name
    raise AttributeError(unknown_name("tf.io.gfile", name, globals()))
