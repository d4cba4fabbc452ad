"""tf.keras.utils.get_file: files of the network, kept, checked and unpacked."""
import hashlib
import os
import tarfile
import zipfile

from berth import _core


def _digest(path, algorithm):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _algorithm(digest, algorithm):
    return algorithm if algorithm != "auto" else "md5" if len(digest) == 32 else "sha256"


def get_file(fname=None, origin=None, untar=False, md5_hash=None, file_hash=None, cache_subdir="datasets",
             hash_algorithm="auto", extract=False, archive_format="auto", cache_dir=None, force_download=False):
    """Fetches `origin` unless it is there; returns the path of the file, or of the folder that it was unpacked to."""
    if origin is None:
        raise ValueError("get_file: no origin; expected the URL of the file")
    digest = (file_hash or md5_hash or "").lower()
    home = cache_dir or os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    folder = os.path.join(str(home), cache_subdir)
    name = os.path.basename(str(fname or origin.rstrip("/").rsplit("/", 1)[-1]))
    path = os.path.join(folder, name)
    if force_download or not _is_right(path, digest, hash_algorithm):
        if os.path.exists(path):
            os.remove(path)
        sha256 = digest if _algorithm(digest, hash_algorithm) == "sha256" else ""
        _core.download(origin, path, sha256, -1, {"total": 24 * 3600 * 1000})
        if not _is_right(path, digest, hash_algorithm):
            found = _digest(path, _algorithm(digest, hash_algorithm))
            os.remove(path)
            raise ValueError(f"get_file: {origin} has the checksum {found}; expected {digest}: the server holds "
                             "another file, or a proxy changed it")
    return _unpacked(path, archive_format) if extract or untar else path


def _is_right(path, digest, algorithm):
    return os.path.isfile(path) and (not digest or _digest(path, _algorithm(digest, algorithm)) == digest)


def _unpacked(path, archive_format):
    """Unpacks an archive beside itself, once."""
    folder, name = os.path.split(path)
    target = os.path.join(folder, name.split(".")[0] + "_extracted")
    if os.path.isdir(target):
        return target
    part = target + ".part"
    if archive_format in ("auto", "tar") and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(part, filter="data")  # nothing outside of the folder
    elif archive_format in ("auto", "zip") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(part)
    else:
        raise ValueError(f"get_file: {path} is no archive; expected tar or zip, or extract=False")
    os.replace(part, target)
    return target
