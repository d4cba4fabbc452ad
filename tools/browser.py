"""Headless Chromium through the DevTools protocol, by pipes and without packages.

    with Browser() as browser:
        browser.open("file:///tmp/report.html")
        browser.wait_for("document.title == 'ready'")
        browser.screenshot("report.png")
    assert not browser.errors
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chrome-headless-shell", "google-chrome")


def program():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. `errors`: what the console reported and what scripts threw."""

    def __init__(self, width=1280, height=800, offline=True, timeout=120):
        self.errors, self._last, self._left, self._timeout = [], 0, b"", timeout
        self._folder = tempfile.TemporaryDirectory()
        from_browser, write_end = os.pipe()
        read_end, to_browser = os.pipe()
        self._in, self._out = from_browser, to_browser
        rules = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"] if offline else []
        command = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", f"--user-data-dir={self._folder.name}",
                   f"--window-size={width},{height}", *rules, "about:blank"]
        # Chromium reads from 3 and writes to 4.
        shell = f'exec "$@" 3<&{read_end} 4>&{write_end}'
        self._process = subprocess.Popen(["bash", "-c", shell, "browser", *command], start_new_session=True,
                                         stderr=subprocess.DEVNULL, pass_fds=(read_end, write_end))
        os.close(read_end)
        os.close(write_end)
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", session=None, targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def _receive(self):
        while b"\0" not in self._left:
            some = os.read(self._in, 1 << 20)
            if not some:
                raise RuntimeError("the browser has ended")
            self._left += some
        message, _, self._left = self._left.partition(b"\0")
        message = json.loads(message)
        p = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(p["exceptionDetails"].get("exception", {}).get("description", str(p)))
        elif message.get("method") == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.errors.append(p["entry"]["text"])
        return message

    def call(self, method, session="page", **params):
        """A method of the protocol; returns its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, url):
        """Goes to a page; scripts may still run when this returns."""
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of JavaScript, awaited."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"].get("exception", {}).get("description", str(done)))
        return done["result"].get("value")

    def wait_for(self, condition):
        """Polls JavaScript until it is true."""
        end = time.monotonic() + self._timeout
        while not self.evaluate(f"!!({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} is not true after {self._timeout} s")
            time.sleep(0.1)

    def media(self, kind="", scheme="light"):
        """`kind` "print" or ""; `scheme` "light" or "dark"."""
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        """A PNG of what is seen."""
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
