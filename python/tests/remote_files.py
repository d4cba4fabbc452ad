"""What tests of files of URLs share: a file system with faults and programs that die, and moto's server of S3."""
import os
import shutil
import subprocess
import sys
import threading
import time

import fsspec
from fsspec.implementations.local import LocalFileSystem


class Faulty(LocalFileSystem):
    """faulty://: a folder, FAULTY_ROOT, that processes share, where calls fail, are slow, or wait, as a test says.

    An object appears whole when its upload ends, as in object stores; of a cut one there is nothing.
    """

    protocol = "faulty"
    faults = []        # exceptions of the next calls, one each; None: that one works
    log = []           # (what, name of the file), in order
    hold = None        # an Event that uploads of values wait for
    die_at = None      # the name of a file with whose upload the process dies
    watch = None       # called before each call
    pause_s = 0.0

    @classmethod
    def reset(cls, root):
        """Forgets faults; files are under this folder."""
        os.environ["FAULTY_ROOT"] = str(root)
        cls.faults, cls.log = [], []
        cls.hold = cls.die_at = cls.watch = None
        cls.pause_s = 0.0

    @classmethod
    def _strip_protocol(cls, path):
        path = str(path)
        if path.startswith("faulty://"):
            path = os.path.join(os.environ["FAULTY_ROOT"], path.removeprefix("faulty://"))
        return super()._strip_protocol(path)

    def unstrip_protocol(self, name):
        """The URL of a path."""
        return "faulty://" + os.path.relpath(name, os.environ["FAULTY_ROOT"])

    def _meet(self, what, path):
        cls, name = type(self), os.path.basename(path)
        if cls.watch:
            cls.watch()
        cls.log.append((what, name))
        if cls.pause_s:
            time.sleep(cls.pause_s)
        if what == "put" and name == cls.die_at:
            os._exit(9)
        fault = cls.faults.pop(0) if cls.faults else None
        if fault is not None:
            raise fault

    def put_file(self, lpath, rpath, **kwargs):
        """Uploads a file."""
        if self.hold is not None and rpath.endswith(".safetensors"):
            self.hold.wait(60)
        self._meet("put", rpath)
        os.makedirs(os.path.dirname(rpath), exist_ok=True)
        part = f"{rpath}.{threading.get_ident()}.sending"
        shutil.copyfile(lpath, part)
        os.replace(part, rpath)

    def get_file(self, rpath, lpath, **kwargs):
        """Downloads a file."""
        self._meet("get", rpath)
        shutil.copyfile(rpath, lpath)

    def rm_file(self, path):
        """Deletes a file."""
        self._meet("rm", path)
        os.remove(path)


fsspec.register_implementation("faulty", Faulty, clobber=True)


class Proxy:
    """A proxy of TCP before a server, whose connections a test cuts or slows."""

    def __init__(self, port):
        import socket
        self._to, self.cut_after, self.cuts, self.pause_s = port, None, 0, 0.0
        self.errors = 0  # so many connections are answered with 500
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        """Takes no more connections."""
        self._socket.close()

    def _serve(self):
        import socket
        while True:
            try:
                client, _ = self._socket.accept()
                if self.errors > 0:
                    self.errors -= 1
                    client.recv(1 << 16)
                    client.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            for one, other, up in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._copy, args=(one, other, up), daemon=True).start()

    def _copy(self, one, other, up):
        import socket
        moved = 0
        try:
            while data := one.recv(1 << 16):
                moved += len(data)
                if up and self.cut_after is not None and moved > self.cut_after and self.cuts > 0:
                    self.cuts -= 1
                    break
                if self.pause_s:
                    time.sleep(self.pause_s)
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class Moto:
    """moto's server of S3 in a process of its own, with the bucket "bucket"."""

    def __init__(self):
        import socket
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 600
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = self._client()
        self.client.create_bucket(Bucket="bucket")

    def _client(self):
        import boto3
        return boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="testing",
                            aws_secret_access_key="testing")

    def environment(self, port=None):
        """What a program needs to use the server, or a proxy before it."""
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}", "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}

    def names(self, prefix):
        """The sorted keys under a prefix, without it."""
        found = self.client.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", [])
        return sorted(f["Key"].removeprefix(prefix).lstrip("/") for f in found)

    def close(self):
        """Ends the server."""
        self._process.kill()
        self._process.wait()
