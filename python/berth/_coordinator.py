"""tf.train.Coordinator: threads that end together."""
import contextlib
import threading
import time


class Coordinator:
    """Has several threads stop when one of them asks for it; an error of one is raised by join().

    clean_stop_exception_types: errors that only ask to stop, by default OutOfRangeError.
    """

    def __init__(self, clean_stop_exception_types=None):
        from berth._core import OutOfRangeError
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else tuple(clean_stop_exception_types)
        self._lock, self._stop, self._error, self._threads, self._joined = threading.Lock(), threading.Event(), None, set(), False

    joined = property(lambda self: self._joined, doc="Whether join() has ended.")

    def should_stop(self):
        """Whether a thread, or the program, asked to stop."""
        return self._stop.is_set()

    def request_stop(self, ex=None):
        """Asks all threads to stop; `ex`, an error or sys.exc_info(), is raised by join()."""
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            if self._joined and error is not None and not isinstance(error, self._clean):
                raise error
            if not self._stop.is_set() and error is not None and not isinstance(error, self._clean):
                self._error = error
            self._stop.set()

    def clear_stop(self):
        """Begins anew, after join()."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def wait_for_stop(self, timeout=None):
        """Waits until a thread asks to stop; False when the seconds are over before."""
        return self._stop.wait(timeout)

    @contextlib.contextmanager
    def stop_on_exception(self):
        """A block whose errors ask to stop in place of leaving it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  join() raises it
            self.request_stop(error)

    def register_thread(self, thread):
        """A thread for join() to wait for."""
        with self._lock:
            self._threads.add(thread)

    def raise_requested_exception(self):
        """Raises the error that request_stop() was given."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error

    def join(self, threads=None, stop_grace_period_secs=120, ignore_live_threads=False):
        """Waits for the threads, those registered and those given, then raises the error of one.

        Once a stop is asked for, they have the seconds to end; RuntimeError of those that do not, unless ignore_live_threads.
        """
        waiting = list({*self._threads, *(threads or ())})
        while any(t.is_alive() for t in waiting) and not self.wait_for_stop(0.05):
            pass
        ends = time.monotonic() + stop_grace_period_secs
        for t in waiting:
            t.join(max(ends - time.monotonic(), 0))
        alive = [t.name for t in waiting if t.is_alive()]
        with self._lock:
            self._joined, self._threads, error = True, set(), self._error
        if error is not None:
            raise error
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator.join: {', '.join(alive)} still run {stop_grace_period_secs} s after the stop; "
                               "threads must end when should_stop() holds")
