"""Rows done, rate and time left, on standard error."""
from __future__ import annotations

import math
import sys
import time

# What takes less shows nothing; a terminal is drawn ten times a second at most.
_SILENT_S = 2.0
_BETWEEN_DRAWINGS_S = 0.1


def rest_text(seconds: float) -> str:
    if seconds < 100:
        return f"{math.ceil(seconds)} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Progress:
    """total: rows in all; done: those that an earlier run wrote."""

    def __init__(self, total: int, done: int, quiet: bool):
        self.total, self.done, self.before, self.quiet = total, done, done, quiet
        self.start = time.monotonic()
        self.drawn = self.start
        self.tenth = self._tenths()
        self.on_screen = False

    def _tenths(self) -> int:
        return 10 * self.done // max(self.total, 1)

    def text(self, elapsed_s: float) -> str:
        rate = (self.done - self.before) / elapsed_s if elapsed_s > 0 else 0.0
        line = f"{100 * self.done // max(self.total, 1):3} %  {self.done:,} of {self.total:,} rows"
        if rate > 0:
            line += f", {rate:,.0f} rows/s"
            if self.done < self.total:
                line += f", {rest_text((self.total - self.done) / rate)} left"
        return line

    def at(self, done: int) -> None:
        """So many rows are there, those of an earlier run with them."""
        self.done = max(self.done, done)
        now = time.monotonic()
        if self.quiet or now - self.start < _SILENT_S:
            return
        if sys.stderr.isatty():
            if now - self.drawn >= _BETWEEN_DRAWINGS_S:
                self.drawn, self.on_screen = now, True
                print(f"\r\x1b[K{self.text(now - self.start)}", end="", file=sys.stderr, flush=True)
        elif self._tenths() > self.tenth:
            self.tenth = self._tenths()
            print(f"tilecast: {self.text(now - self.start)}", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.on_screen:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
