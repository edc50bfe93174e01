"""A worker process that answers one request line with one answer line of `key=value` fields."""

import os
import select
import subprocess
import tempfile
import time


class WorkerError(Exception):
    """The worker cannot be started; the message is its own."""


class Worker:
    """Starts on first use, again after a crash. `command` is the program with its arguments."""

    def __init__(self, command):
        self.command = command
        self._process = None
        self._buffer = b""
        self._errors = None  # the worker's stderr, a file: a pipe that nobody reads would block it
        self._last_words = ""

    def ask(self, fields, timeout_s):
        """The answer's fields. A worker that dies or takes too long gives status failed."""
        try:
            self._start()
            line = "\t".join(f"{key}={value}" for key, value in fields.items() if value != "")
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            answer = self._read_line(timeout_s)
        except BrokenPipeError:
            answer = None
        except BaseException:
            self.stop()  # what it would still say belongs to a question that nobody asks again
            raise
        if answer is None:
            code = self._process.poll()
            self.stop()
            if code is None:
                return {"status": "timeout", "detail": f"no answer within {timeout_s:.0f} s"}
            return {"status": "failed", "detail": f"the worker ended with status {code}"}
        result = dict(field.partition("=")[::2] for field in answer.split("\t"))
        if result.pop("lost", "") == "1":
            self.stop()
        return result

    def check(self, timeout_s=120):
        """The worker's facts. Throws WorkerError where it does not even start."""
        answer = self.ask({"do": "facts"}, timeout_s)
        if answer.get("status") != "ok":
            self.stop()
            raise WorkerError(self._last_words or answer.get("detail", "no answer"))
        return answer

    def release(self):
        """Gives device memory back, if it runs at all."""
        if self._process is not None:
            self.ask({"do": "release"}, 60)

    def stop(self):
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._errors.seek(0)
        self._last_words = self._errors.read().decode(errors="replace").strip()[-2000:]
        self._errors.close()
        self._process, self._buffer = None, b""

    def _start(self):
        if self._process is None or self._process.poll() is not None:
            self.stop()
            # A session of its own: Ctrl-C reaches the driver alone, which then ends the worker.
            self._errors = tempfile.TemporaryFile()
            try:
                self._process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                                 stdout=subprocess.PIPE, stderr=self._errors,
                                                 start_new_session=True)
            except OSError as error:
                self._errors.close()
                raise WorkerError(f"{self.command[0]}: {error.strerror}") from error

    def _read_line(self, timeout_s):
        """One whole line, or None where the worker ended or the time is up."""
        descriptor = self._process.stdout.fileno()
        end = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            chunk = os.read(descriptor, 65536)
            if not chunk:
                self._process.wait()
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")
