"""Downloads and checksums by Python's urllib and hashlib, against a server that misbehaves."""
import hashlib
import http.server
import os
import socket
import threading
import time

import berth as tf
import pytest
from berth import _core

DATA = bytes(i * 7 % 251 for i in range(300_000))
SHA = hashlib.sha256(DATA).hexdigest()


class Server(http.server.BaseHTTPRequestHandler):
    asked, answers = [], {}

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Range")))
        self.answers.get(self.path, Server.whole)(self)

    def send(self, status, body, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def whole(self):
        start = self.headers.get("Range")
        if start is None:
            return self.send(200, DATA)
        first = int(start[6:-1])
        self.send(206, DATA[first:], Content_Range=f"bytes {first}-{len(DATA) - 1}/{len(DATA)}")


@pytest.fixture
def url(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        Server.asked.clear()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        Server.answers.clear()


def test_a_file_is_fetched_checked_and_put_in_place(url, tmp_path):
    path = tmp_path / "sub" / "data"
    assert _core.download(url + "/data", str(path), SHA, len(DATA)) == (len(DATA), 0)
    assert path.read_bytes() == DATA and os.listdir(path.parent) == ["data"]
    _core.download(url + "/data", str(path), SHA)  # the right file is there
    assert Server.asked == [("/data", None)]


def test_a_part_is_resumed(url, tmp_path):
    (tmp_path / "data.part").write_bytes(DATA[:100_000])
    assert _core.download(url + "/data", str(tmp_path / "data"), SHA) == (len(DATA), 100_000)
    assert Server.asked == [("/data", "bytes=100000-")] and (tmp_path / "data").read_bytes() == DATA


def test_a_server_without_ranges_begins_anew(url, tmp_path):
    Server.answers["/data"] = lambda s: s.send(200, DATA)
    (tmp_path / "data.part").write_bytes(DATA[:100_000])
    assert _core.download(url + "/data", str(tmp_path / "data"), SHA) == (len(DATA), 0)


def test_redirects_lead_to_http_alone(url, tmp_path):
    Server.answers["/old"] = lambda s: s.send(302, b"", Location="/data")
    Server.answers["/evil"] = lambda s: s.send(302, b"", Location=f"file://{tmp_path}/secret")
    (tmp_path / "secret").write_text("secret")
    _core.download(url + "/old", str(tmp_path / "data"), SHA)
    with pytest.raises(tf.errors.UnavailableError):
        _core.download(url + "/evil", str(tmp_path / "evil"))
    assert sorted(os.listdir(tmp_path)) == ["data", "secret"]


def test_an_answer_that_ends_early_goes_on_where_it_ended(url, tmp_path):
    first = [True]

    def half(server):
        if first.pop() if first else False:
            return server.send(200, DATA[:1000], len(DATA))
        server.whole()
    Server.answers["/data"] = half
    assert _core.download(url + "/data", str(tmp_path / "data"), SHA) == (len(DATA), 1000)


def failure(kind, url, path, milliseconds=None, sha256=SHA):
    with pytest.raises(kind) as raised:
        _core.download(url, str(path), sha256, -1, milliseconds or {})
    assert url in str(raised.value)
    return str(raised.value)


def test_faults_have_the_errors_of_the_engine(url, tmp_path):
    def stall(server):
        server.send(200, DATA[:1000], len(DATA))
        time.sleep(1)

    def drip(server):
        server.send(200, b"", len(DATA))
        for _ in range(100):
            server.wfile.write(b"x")
            time.sleep(0.02)
    Server.answers.update({"/none": lambda s: s.send(404, b"<html>"), "/mine": lambda s: s.send(403, b""),
                           "/other": lambda s: s.send(200, DATA[:-1] + b"!"), "/stall": stall, "/drip": drip})
    path = tmp_path / "data"
    assert "HTTP 404" in failure(tf.errors.NotFoundError, url + "/none", path)
    assert "HTTP 403" in failure(tf.errors.PermissionDeniedError, url + "/mine", path)
    assert "expected " + SHA in failure(tf.errors.DataLossError, url + "/other", path)
    times = {"stall": 200, "total": 5000}
    assert "sent nothing for 200 ms" in failure(tf.errors.DeadlineExceededError, url + "/stall", path, times)
    assert "not finished within 300 ms" in failure(
        tf.errors.DeadlineExceededError, url + "/drip", path, {"stall": 5000, "total": 300})
    assert not path.exists()


def test_what_cannot_be_reached_is_unavailable(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "refused" in failure(tf.errors.UnavailableError, f"http://127.0.0.1:{port}/x", tmp_path / "x")
    assert "in try 1 of 3" in failure(tf.errors.UnavailableError, "http://nothing.invalid/x", tmp_path / "x")


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    import ssl
    import subprocess
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "k",
                           "-out", tmp_path / "c", "-days", "1", "-subj", "/CN=localhost"], capture_output=True)
    if made.returncode:
        pytest.skip("no openssl here")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "c", tmp_path / "k")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        text = failure(tf.errors.UnavailableError, f"https://localhost:{server.server_port}/x", tmp_path / "x")
        server.shutdown()
        thread.join()
    assert "certificate" in text.lower() and "in try 1 of 3" in text


def test_a_file_url_is_copied(tmp_path):
    (tmp_path / "a b").write_bytes(DATA)
    _core.download(f"file://{tmp_path}/a%20b", str(tmp_path / "data"), SHA)
    assert (tmp_path / "data").read_bytes() == DATA
    failure(tf.errors.InvalidArgumentError, "ftp://127.0.0.1/x", tmp_path / "x")


def test_get_file_keeps_checks_and_unpacks(url, tmp_path):
    import io
    import tarfile
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        member = tarfile.TarInfo("set/values.txt")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"1 2"))
    Server.answers["/set.tar.gz"] = lambda s: s.send(200, raw.getvalue())
    get_file = tf.keras.utils.get_file
    path = get_file("data.bin", url + "/data", file_hash=SHA, cache_dir=tmp_path)
    assert path == str(tmp_path / "datasets" / "data.bin") and open(path, "rb").read() == DATA
    get_file("data.bin", url + "/data", cache_dir=tmp_path)  # it is there
    assert len(Server.asked) == 1
    folder = get_file(origin=url + "/set.tar.gz", extract=True, cache_dir=tmp_path, cache_subdir="x",
                      file_hash=hashlib.md5(raw.getvalue()).hexdigest())
    assert open(os.path.join(folder, "set", "values.txt")).read() == "1 2"
    with pytest.raises(ValueError, match="checksum"):
        get_file("more.bin", url + "/data", md5_hash="0" * 32, cache_dir=tmp_path)


def test_neither_libcurl_nor_openssl_of_its_own_is_loaded():
    import subprocess
    import sys
    done = subprocess.run([sys.executable, "-c", "import berth as tf; tf.ones([2]) + 1\n"
                           "print(open('/proc/self/maps').read())"], capture_output=True, text=True, check=True)
    assert "libberth" in done.stdout
    assert not [n for n in ("libcurl", "libssl", "libcrypto", "libldap", "libgnutls") if n in done.stdout]
