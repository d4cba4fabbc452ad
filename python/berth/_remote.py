"""Files whose paths are URLs (s3://, gs://, az://): copied to this machine, and back, by the package fsspec.

A file of a URL is written as a copy on this machine first, which then goes up whole; one that is read is copied down.
Faults that may pass are tried again, TRIES times, with pauses that begin with PAUSE_S seconds and double.
"""
import atexit
import contextlib
import errno
import fcntl
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import weakref

from berth import _core

TRIES, PAUSE_S = 8, 0.2
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure",
           "adl": "azure"}
_URL = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.:-]+://")
_LOST = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)
_CLIENTS = ("aiohttp", "botocore", "aiobotocore", "gcsfs", "google", "azure", "requests", "urllib3")


def plain(path):
    """A path as a text; that of file:// alone. ValueError of a URL that pathlib.Path made a path of."""
    if hasattr(path, "__fspath__") and re.match("(s3a?|gc?s|az|abfss?|memory):/[^/]", os.fspath(path)):
        raise ValueError(f"{path!r} has lost a slash of its URL, as pathlib does it; give the URL as a text")
    path = os.fspath(path) if hasattr(path, "__fspath__") else path
    path = path.decode() if isinstance(path, bytes) else str(path)
    return path[7:] if path.startswith("file://") else path


def is_url(path):
    """Whether a path, a text, is a URL of something else than this machine's files."""
    return isinstance(path, str) and _URL.match(path) is not None and not path.startswith("file://")


def filesystem(url):
    """(fsspec's file system, the path in it), whose listings are new; ImportError says what to install."""
    scheme = url.partition("://")[0].rpartition("::")[2]
    extra = _EXTRAS.get(scheme)
    install = f"pip install 'berth[{extra}]'" if extra else "pip install fsspec and the package of that scheme"
    try:
        import fsspec
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as e:
        raise ImportError(f"{url!r}: files of {scheme}:// need the package fsspec and one for the scheme: {install} "
                          f"({e})") from None
    except ValueError as e:
        raise _core.InvalidArgumentError(f"{url!r}: {e}; expected a scheme that fsspec knows, such as s3://, gs:// or "
                                         "az://") from None
    fs.invalidate_cache()
    return fs, path


# ---------------------------------------------------------------- faults

def _passes(error):
    """Whether a fault may pass: no answer, a cut connection, an error of the server."""
    if isinstance(error, _LOST) or "Credential" in type(error).__name__ or _is_full(error):
        return False
    status = getattr(error, "code", getattr(error, "status", None))  # of gcsfs, aiohttp
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 429):
        return False
    return isinstance(error, (OSError, EOFError, TimeoutError)) or (
        type(error).__module__.split(".")[0] in _CLIENTS and "Param" not in type(error).__name__)


def _is_full(error):
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _named(error, url, what, tries):
    """The engine's error of a fault."""
    said = f"{url}: {what}: {type(error).__name__}: {error}"
    if _is_full(error):
        return _core.ResourceExhaustedError(f"{said}; free some of the disk of {tempfile.gettempdir()}, or have TMPDIR name "
                                            "a larger one")
    if isinstance(error, FileNotFoundError):
        return _core.NotFoundError(f"{said}; there is no such file or bucket: check the URL")
    if isinstance(error, PermissionError) or "Credential" in type(error).__name__:
        return _core.PermissionDeniedError(f"{said}; check the credentials, and what they may do there")
    if _passes(error):
        return _core.UnavailableError(f"{said}; tried {tries} times: see that the server answers, then try again")
    return _core.UnknownError(f"{said}; check the URL and the settings of its package")


def persist(url, what, call):
    """call(fs, path), tried again after faults that may pass; what is left is an error that names the URL."""
    for tries in range(1, TRIES + 1):
        try:
            return call(*filesystem(url))
        except (ImportError, _core.OpError):
            raise
        except Exception as error:
            if tries == TRIES or not _passes(error):
                raise _named(error, url, what, tries) from error
        time.sleep(PAUSE_S * 2 ** (tries - 1))


# ---------------------------------------------------------------- files

def put(local, url):
    """Writes a copy of a file to a URL, in parts where it is large; ends when it is there whole."""
    def once(fs, path):
        try:
            fs.put_file(local, path)
        except FileNotFoundError as e:
            if "upload" not in str(e):
                raise
            raise ConnectionError(f"the upload in parts was lost: {e}") from e  # its end, or its answer, did not arrive
        fs.invalidate_cache()
        size, wanted = fs.info(path)["size"], os.path.getsize(local)
        if size != wanted:
            raise EOFError(f"{size} bytes arrived of {wanted}")
    persist(url, "it could not be written", once)


def get(url, local):
    """Copies a file of a URL; NotFoundError where there is none."""
    part = f"{local}.{threading.get_ident()}.part"

    def once(fs, path):
        size = fs.info(path)["size"]
        fs.get_file(path, part)
        if size is not None and os.path.getsize(part) != size:
            raise EOFError(f"{os.path.getsize(part)} bytes came of {size}")
        os.replace(part, local)
    try:
        persist(url, "it could not be read", once)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)


def read(url, start=None, end=None):
    """The bytes of a file, or a part of them; NotFoundError where there is none."""
    return persist(url, "it could not be read", lambda fs, path: fs.cat_file(path, start=start, end=end))


def listed(url):
    """{name: (bytes, when it was written in seconds, 0 where that is not known)} of a folder's files; {} without one."""
    def once(fs, path):
        try:
            found = fs.ls(path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {f["name"].rstrip("/").rsplit("/", 1)[-1]: (f["size"], _time(f)) for f in found if f["type"] == "file"}
    return persist(url, "it could not be listed", once)


def _time(info):
    value = next((info[k] for k in ("LastModified", "mtime", "updated", "last_modified", "created") if k in info), 0.0)
    if isinstance(value, str):
        import datetime
        value = datetime.datetime.fromisoformat(value)
    return value.timestamp() if hasattr(value, "timestamp") else float(value)


def remove(url):
    """Deletes a file; nothing where there is none."""
    def once(fs, path):
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(path)
    persist(url, "it could not be deleted", once)


def end_uploads(url, is_ours):
    """Ends the multi-part uploads that a cut left under a folder of S3, of files whose names are ours."""
    def once(fs, path):
        if not hasattr(fs, "list_multipart_uploads"):
            return
        bucket, _, prefix = path.partition("/")
        for upload in fs.list_multipart_uploads(bucket) or ():
            folder, _, name = upload["Key"].rpartition("/")
            if folder == prefix and is_ours(name):
                fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    with contextlib.suppress(_core.OpError):  # who may write need not be allowed to list: a rule of the bucket ends them
        persist(url, "its uploads could not be listed", once)


# ---------------------------------------------------------------- the folder on this machine

_root = []  # its path, and what is open while the process lives
_PREFIX = "berth-urls-"


def new_folder(url):
    """A folder for copies of what is under a URL, until the process ends. TMPDIR says where.

    The first one of a process deletes what processes that were killed left there.
    """
    if not _root:
        _sweep(tempfile.gettempdir())
        folder = None
        while folder is None or not os.path.isdir(folder):  # another's sweep came between the two
            folder = tempfile.mkdtemp(prefix=_PREFIX)
            opened = _opened(folder, fcntl.LOCK_SH)
        _root.extend((folder, opened))
        atexit.register(_remove_folder, os.getpid(), folder)
    return tempfile.mkdtemp(prefix=re.sub(r"[^\w.-]+", "+", url)[-60:] + "+", dir=_root[0])


def _opened(folder, lock):
    """A folder, open and locked until that is closed; None where that cannot be."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(opened, lock)
    except OSError:
        os.close(opened)
        return None
    return opened


def _sweep(folder):
    """Deletes the folders of this user in a folder that no process holds."""
    left = []
    with contextlib.suppress(OSError), os.scandir(folder) as found:  # a folder that may not be listed is left alone
        left += [f.path for f in found if f.name.startswith(_PREFIX) and f.is_dir(follow_symlinks=False)]
    for path in left:
        opened = _opened(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if opened is not None:
            if os.fstat(opened).st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)
            os.close(opened)


def _remove_folder(process, folder):
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def naming(folder, url):
    """Errors of the engine inside name the URL in place of its folder here."""
    try:
        yield
    except _core.OpError as e:
        if folder not in str(e):
            raise
        raise type(e)(str(e).replace(folder, url)) from None


@contextlib.contextmanager
def outgoing(url, last=None):
    """A path on this machine, whose file or folder goes to the URL when the block ends without an error.

    last: the name of the file of a folder that says that the others are there.
    """
    folder = new_folder(url)
    local = os.path.join(folder, url.rstrip("/").rsplit("/", 1)[-1])
    try:
        with naming(local, url):
            yield local
        if os.path.isdir(local):
            put_folder(local, url, last)
        else:
            put(local, url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put_folder(local, url, last=None):
    """Writes the files of a folder, and of those in it, to a URL."""
    names = [os.path.relpath(os.path.join(at, f), local) for at, _, files in os.walk(local) for f in files]
    if last is not None:
        remove(f"{url.rstrip('/')}/{last}")
    for name in sorted(names, key=lambda n: (n == last, n)):
        put(os.path.join(local, name), f"{url.rstrip('/')}/{name}")


@contextlib.contextmanager
def incoming(url):
    """A copy of a file of a URL, while the block runs."""
    folder = new_folder(url)
    local = os.path.join(folder, url.rsplit("/", 1)[-1])
    try:
        get(url, local)
        with naming(local, url):
            yield local
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def incoming_folder(url, last):
    """A copy of a folder of a URL and of those in it, while the block runs; NotFoundError unless it has the file `last`."""
    folder = new_folder(url)
    try:
        get(f"{url.rstrip('/')}/{last}", os.path.join(folder, last))
        paths = persist(url, "it could not be listed", lambda fs, path: (path.rstrip("/"), fs.find(path)))
        for path in paths[1]:
            name = path.removeprefix(paths[0]).lstrip("/")
            if name.startswith("..") or "/../" in name:
                raise _core.InvalidArgumentError(f"{url}: a file is called {name!r}; expected names inside of the folder")
            local = os.path.join(folder, name)
            os.makedirs(os.path.dirname(local), exist_ok=True)
            get(f"{url.rstrip('/')}/{name}", local)
        with naming(folder, url):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------- while the program goes on

class Uploads:
    """What goes to a URL while the program goes on: one at a time, in a thread of its own."""

    def __init__(self, url):
        self._url, self._thread, self._error = url, None, None
        _pending.add(self)
        _wait_at_end()

    def begin(self, job):
        """Waits for the one before, whose error is raised, then has a thread call job()."""
        self.wait()

        def run():
            try:
                job()
            except BaseException as e:  # whatever it was, wait() raises it
                self._error = e
        self._thread = threading.Thread(target=run, name="berth upload", daemon=True)
        self._thread.start()

    def is_busy(self):
        """Whether a thread is at it."""
        return self._thread is not None and self._thread.is_alive()

    def join(self):
        """Waits; an error is left to wait()."""
        if self._thread is not None:
            self._thread.join()

    def wait(self):
        """Waits; raises the error of the last one, once."""
        self.join()
        self._thread, error, self._error = None, self._error, None
        if error is not None:
            raise error

    def settle(self):
        """Waits, as the process ends or nobody is left to ask; says what was lost."""
        try:
            self.wait()
        except BaseException as e:
            print(f"berth: what was to be written to {self._url} was lost: {e}", file=sys.stderr)

    def __del__(self):
        if self._error is not None:
            self.settle()


_pending, _waits = weakref.WeakSet(), []


def pending(settles):
    """settles.settle() is called before the process ends."""
    _pending.add(settles)
    _wait_at_end()


def _wait_at_end():
    if _waits:
        return
    _waits.append(True)
    # Before concurrent.futures ends, of which clients of object stores look up names.
    import concurrent.futures.thread  # noqa: F401
    try:
        threading._register_atexit(settle)
    except (AttributeError, RuntimeError):  # the end has begun
        atexit.register(settle)


def join(url):
    """Waits for what this process writes to a folder; errors are left to those who began it."""
    for one in list(_pending):
        if isinstance(one, Uploads) and one._url == url:
            one.join()


def settle():
    """Waits for all that is on its way to URLs."""
    for one in list(_pending):
        one.settle()


class Logs:
    """A folder here whose files, which grow, are sent to a URL: at most each EACH_S seconds, and at the end."""

    EACH_S = 10

    def __init__(self, url):
        self.url, self.folder, self._sent, self._at = url.rstrip("/"), new_folder(url), {}, 0.0
        self._uploads = Uploads(url)
        pending(self)

    def _send(self):
        for at, _, files in os.walk(self.folder):
            for path in (os.path.join(at, f) for f in files):
                size = os.path.getsize(path)
                if self._sent.get(path) != size:
                    with tempfile.TemporaryDirectory(dir=os.path.dirname(self.folder)) as still:
                        copy = shutil.copy(path, still)  # the file may grow meanwhile
                        put(copy, f"{self.url}/{os.path.relpath(path, self.folder)}")
                        self._sent[path] = os.path.getsize(copy)

    def send(self):
        """Sends what is new, unless it was done a moment ago."""
        if self._uploads.is_busy() or time.monotonic() - self._at < self.EACH_S:
            return
        self._at = time.monotonic()
        self._uploads.begin(self._send)

    def finish(self):
        """Sends the rest, and waits; raises errors."""
        self._uploads.begin(self._send)
        self._uploads.wait()

    def settle(self):
        """The same as the process ends; says what was lost."""
        self._uploads.settle()
        with contextlib.suppress(_core.OpError):
            self._uploads.begin(self._send)
        self._uploads.settle()


# ---------------------------------------------------------------- data that the engine reads

class _Copy:
    """The copy of a file of data: which one it is of, its path, and when it was asked for last."""

    def __init__(self):
        self.lock, self.mark, self.path, self.used, self.stays = threading.Lock(), None, None, 0.0, False


_copies, _after, _table = {}, {}, threading.Lock()
_FRESH_S = 60  # so long a copy is not deleted: a reader may be about to open it


def expect(urls):
    """Says that files are read in this order: while one is read, the next is fetched."""
    for one, other in zip(urls, urls[1:]):
        if is_url(one) and is_url(other):
            _after[one] = other


def fetch(url):
    """The path of a copy of a file, which is fetched unless the same one was before."""
    path = _fetch(url)
    if url in _after:
        threading.Thread(target=_ahead, args=(_after[url],), name="berth fetch", daemon=True).start()
    return path


def matching(patterns):
    """Paths of copies, which stay, of the files that patterns of URLs match; other patterns as they are."""
    from berth import _gfile
    out = []
    for pattern in patterns:
        found = _gfile.glob(pattern) if is_url(pattern) else [pattern]
        if not found:
            raise _core.NotFoundError(f"no file matches {pattern!r}; check the folder")
        for name in found:
            out.append(fetch(name) if is_url(name) else name)
            if is_url(name):
                _copies[name].stays = True
    return out


def _ahead(url):
    with contextlib.suppress(Exception):  # the thread that asks for the file gets the error
        _fetch(url)


def _fetch(url):
    with _table:
        copy = _copies.setdefault(url, _Copy())
    with copy.lock:
        info = persist(url, "it could not be read", lambda fs, path: fs.info(path))
        mark = tuple(str(info.get(k)) for k in ("size", "ETag", "etag", "LastModified", "mtime", "updated",
                                                "last_modified", "created"))
        if copy.mark != mark or not os.path.exists(copy.path):
            _make_room(info.get("size") or 0)
            copy.path = copy.path or os.path.join(new_folder(url), url.rsplit("/", 1)[-1])
            get(url, copy.path)
            copy.mark = mark
        copy.used = time.monotonic()
        return copy.path


def _make_room(size):
    """Deletes the copies that were not used for longest while the disk has no room for so many bytes."""
    with _table:
        oldest = sorted(_copies.values(), key=lambda c: c.used)
    for old in oldest:
        if shutil.disk_usage(tempfile.gettempdir()).free > 1.1 * size:
            return
        if not old.stays and old.mark is not None and time.monotonic() - old.used > _FRESH_S and old.lock.acquire(blocking=False):
            old.mark = None
            with contextlib.suppress(FileNotFoundError):
                os.remove(old.path)
            old.lock.release()


def _forget():
    """In the child of a fork, whose threads and folder are the parent's."""
    _pending.clear()
    _copies.clear()
    for opened in _root[1:]:
        if opened is not None:
            os.close(opened)
    _root.clear()


os.register_at_fork(after_in_child=_forget)
