"""Downloads of the engine: Python's urllib and ssl speak to the servers (python/src/network.cc)."""
import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request

_PIECE = 1 << 16


class _Limits:
    """Times of one try, in seconds. The connection that was made has `socket`."""

    def __init__(self, connect, stall, total):
        self.connect, self.stall, self.total = max(min(connect, total), 1e-3), stall, total
        self.socket, self.over = None, False

    def end(self):
        """Makes the try end now, whatever it waits for."""
        self.over = True
        if self.socket is not None:
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself


def _limited(kind, limits):
    class Connection(kind):
        def connect(self):
            super().connect()
            self.sock.settimeout(limits.stall)
            limits.socket = self.sock
    return Connection


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, request, answer, code, message, headers, url):
        if request.full_url.startswith("https:") and not url.startswith("https:"):
            raise urllib.error.HTTPError(url, code, message, headers, answer)
        return super().redirect_request(request, answer, code, message, headers, url)


def _opener(limits):
    class Http(urllib.request.HTTPHandler):
        def http_open(self, request):
            return self.do_open(_limited(http.client.HTTPConnection, limits), request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request):
            return self.do_open(_limited(http.client.HTTPSConnection, limits), request,
                                context=ssl.create_default_context())
    return urllib.request.build_opener(Http, Https, _Redirects)


class Answer:
    """What a server sends for one request. Faults are told by `fault` (how it ended) and `what`."""

    def __init__(self, url, start, connect, stall, total):
        self.status, self.range_start, self.length, self.fault, self.what = 0, -1, -1, "", ""
        self._limits, self._from = _Limits(connect, stall, total), None
        self._timer = threading.Timer(total, self._limits.end)
        self._timer.daemon = True
        self._timer.start()
        request = urllib.request.Request(url, headers={"User-Agent": "berth"})
        if start > 0:
            request.add_header("Range", f"bytes={start}-")
        try:
            self._from = _opener(self._limits).open(request, timeout=self._limits.connect)
            self.status = getattr(self._from, "status", None) or 200  # a file has none
            self._read_headers(self._from.headers)
        except urllib.error.HTTPError as error:
            self.status = error.code
            error.close()
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._note(error)

    def _read_headers(self, headers):
        length = headers.get("Content-Length", "")
        self.length = int(length) if length.isdigit() else -1
        unit, _, rest = headers.get("Content-Range", "").partition(" ")
        first = rest.partition("-")[0]
        self.range_start = int(first) if unit == "bytes" and first.isdigit() else -1

    def read(self):
        """Returns the next bytes, as they come; none at the end."""
        if self._from is None:
            return b""
        try:
            piece = self._from.read1(_PIECE)
            if not piece and getattr(self._from, "length", None):
                raise http.client.IncompleteRead(b"", self._from.length)
            return piece
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._note(error)
            return b""

    def close(self):
        self._timer.cancel()
        if self._from is not None:
            self._from.close()

    def _note(self, error):
        reason = getattr(error, "reason", error)
        self.what = str(reason) or type(reason).__name__
        if self._limits.over:
            self.fault = "out of time"
        elif isinstance(reason, TimeoutError):
            self.fault = "stalled" if self._limits.socket else "not connected"
        elif isinstance(reason, http.client.IncompleteRead):
            self.fault = "ended early"
        elif isinstance(reason, (socket.gaierror, ssl.SSLCertVerificationError, http.client.InvalidURL, str)):
            self.fault = "refused"  # it would fail in the same way
        else:
            self.fault = "failed"
