"""One line on the terminal that says how far a campaign is; a line a minute where it is no terminal."""

import sys
import time


class Progress:
    def __init__(self, budget_s, stream=sys.stderr):
        self.budget_s, self.stream = budget_s, stream
        self.started = time.monotonic()
        self._next = 0.0

    def elapsed_s(self):
        return time.monotonic() - self.started

    def show(self, done, missing, missing_s, what, force=False):
        """`missing_s` is the estimate of what measuring all the rest would take."""
        now = self.elapsed_s()
        if now < self._next and not force:
            return
        terminal = self.stream.isatty()
        self._next = now + (0.2 if terminal else 60)
        share = min(1.0, now / self.budget_s)
        bar = "#" * int(share * 24)
        line = (f"[{bar:<24}] {_clock(now)} of {_clock(self.budget_s)}, {done} rows, {missing} cases "
                f"missing (about {_clock(missing_s)}), now {what}")
        self.stream.write(f"\r{line[:150]:<150}" if terminal else line + "\n")
        self.stream.flush()

    def end(self):
        if self.stream.isatty():
            self.stream.write("\n")


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
