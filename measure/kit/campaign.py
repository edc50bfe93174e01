"""Runs the cases that are still missing, the most valuable first, until the time is up."""

import collections
import dataclasses
import glob
import os
import time

from kit.table import Table, TableError, read_table
from kit.worker import WorkerError

# Once these statuses are recorded a case is done: it would end the same way again.
FINAL = ("ok", "unsupported", "out_of_memory", "failed", "timeout")
# Results that the library computes are checked once per family, operator and dtype at this size.
CHECKED_SHAPE = {"m": 48, "n": 80, "k": 64, "batch": 2, "channels": 16, "height": 9, "width": 9,
                 "filters": 32, "heads": 4, "kv_heads": 2, "queries": 32, "keys": 32, "head_size": 64,
                 "pooling": 3, "groups": 1}
MOST_S = {"kernels": 60, "models": 420}
# A worker keeps the GPU for a turn: the other one's context would be in its memory readings.
TURN_S = 20


@dataclasses.dataclass
class Progressed:
    """One family's state: what is left, what it has cost."""

    family: object
    left: collections.deque
    seconds: float = 0.0
    rows: int = 0
    problems: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    stopped: str = ""
    recent: collections.deque = dataclasses.field(default_factory=lambda: collections.deque(maxlen=20))

    def cost_s(self):
        """What the next case will take: the mean of the last twenty."""
        return sum(self.recent) / len(self.recent) if self.recent else self.family.first_cost_s

    def careful_cost_s(self):
        return max([1.5 * self.cost_s(), *self.recent]) if self.recent else 3 * self.family.first_cost_s


class Campaign:
    """`workers` maps a worker's name to a Worker, or to a sentence why there is none."""

    def __init__(self, folder, gpu, facts, families, workers, progress):
        self.folder, self.gpu, self.facts = folder, gpu, facts
        self.workers, self.progress = workers, progress
        self.tables, self._checked = {}, {}
        self._active, self._turn_started = None, 0.0
        self.states = [self._resume(family) for family in families]

    def run(self):
        """Measures until the time is up or nothing is left. Throws TableError, WorkerError."""
        budget = self.progress.budget_s
        try:
            while True:
                left = budget - self.progress.elapsed_s()
                state = self._next(left)
                if state is None:
                    return
                missing = sum(len(s.left) for s in self.states if not s.stopped)
                self.progress.show(sum(s.rows for s in self.states), missing,
                                   sum(len(s.left) * s.cost_s() for s in self.states if not s.stopped),
                                   state.family.name)
                self._measure(state, left)
        finally:
            for worker in self.workers.values():
                if not isinstance(worker, str):
                    worker.stop()
            for table in self.tables.values():
                table.close()
            self.progress.end()

    def report(self):
        """Lines that say what is covered and what is missing."""
        lines = [f"{'family':14}{'rows':>7}{'skipped':>9}{'missing':>9}{'est. rest':>11}"]
        for state in self.states:
            skipped = sum(state.problems.values())
            lines.append(f"{state.family.name:14}{state.rows:>7}{skipped:>9}{len(state.left):>9}"
                         f"{len(state.left) * state.cost_s() / 60:>7.1f} min"
                         + (f"  {state.stopped}" if state.stopped else ""))
            for (status, detail), count in state.problems.most_common(3):
                lines.append(f"    {count} × {status}: {detail[:110]}")
        return lines

    def _path(self, family, number):
        suffix = f".{number}" if number > 1 else ""
        return os.path.join(self.folder, self.gpu, f"{family.name}{suffix}.csv")

    def _resume(self, family):
        """Reads what earlier runs measured, under whatever driver."""
        state = Progressed(family, collections.deque())
        done = set()
        for path in glob.glob(glob.escape(os.path.join(self.folder, self.gpu, family.name)) + "*.csv"):
            if os.path.basename(path)[len(family.name)] != ".":
                continue
            for row in read_table(path)[1]:
                key = tuple(row.get(column) or "" for column in family.inputs)
                if row.get("status") not in FINAL or (key in done and family.name != "model_kernels"):
                    continue
                done.add(key)
                self._count(state, row)
        for case in family.cases:
            if tuple(str(case.get(column, "")) for column in family.inputs) not in done:
                state.left.append(case)
        if isinstance(self.workers[family.worker], str):
            state.stopped = self.workers[family.worker]
        return state

    @staticmethod
    def _count(state, row):
        wall_s = float(row.get("wall_s") or 0)
        state.seconds += wall_s
        if row["status"] == "ok":
            state.rows += 1
        else:
            state.problems[row["status"], row.get("detail") or ""] += 1
        if wall_s > 0:
            state.recent.append(wall_s)

    def _next(self, left):
        """The family furthest behind its share, of those whose next case still fits."""
        fitting = [s for s in self.states if s.left and not s.stopped and s.careful_cost_s() <= left]
        same = [s for s in fitting if s.family.worker == self._active]
        if same and self.progress.elapsed_s() - self._turn_started < TURN_S:
            fitting = same
        return min(fitting, key=lambda s: s.seconds / s.family.share, default=None)

    def _measure(self, state, left):
        worker = self._turn(state.family.worker)
        case = state.left[0]
        started = time.monotonic()
        answer = self._check(state.family, worker, case)
        if answer is None:
            most = MOST_S[state.family.worker]
            answer = worker.ask({"do": "time", "family": state.family.name, **case}, min(most, left + 5))
            if answer.get("status") == "timeout" and left < most:
                # The budget ended, not the case's own time: it stays missing.
                state.stopped = "out of time"
                return
        wall_s = time.monotonic() - started
        # A worker may answer with many rows, told apart by a prefix "0.", "1.", …
        rows = _split(answer)
        for index, row in enumerate(rows):
            self._write(state, case, {**row, "wall_s": f"{wall_s if index == 0 else 0:.3f}"})
        state.left.popleft()

    def _turn(self, name):
        """The worker, alone on the GPU as far as it can be."""
        if name != self._active:
            if self._active == "kernels":
                self.workers["kernels"].stop()  # starts again in a second
            elif self._active is not None:
                self.workers[self._active].release()  # PyTorch takes much longer to start
            self._active, self._turn_started = name, self.progress.elapsed_s()
        return self.workers[name]

    def _check(self, family, worker, case):
        """None where the operator's result is right or can't be checked, else what to record."""
        if family.worker != "kernels" or family.name == "device":
            return None
        key = (family.name, case["op"], case["dtype"])
        if key not in self._checked:
            small = {column: CHECKED_SHAPE.get(column, case.get(column, "")) for column in family.inputs}
            small = {column: value if case.get(column) != "" else "" for column, value in small.items()}
            answer = worker.ask({"do": "verify", "family": family.name, **small}, 60)
            self._checked[key] = answer if answer.get("status") == "failed" else None
        wrong = self._checked[key]
        return wrong and {"status": "failed", "detail": "wrong result at a small shape: " + wrong["detail"]}

    def _write(self, state, case, answer):
        row = {"gpu": self.gpu, **case, **{k: v for k, v in answer.items() if k not in case}}
        family = state.family
        if family.name not in self.tables:
            self.tables[family.name] = self._open(family)
        self.tables[family.name].write(row)
        self._count(state, row)

    def _open(self, family):
        """The family's first file that was written under the same driver and libraries."""
        number = 1
        while os.path.exists(path := self._path(family, number)):
            found = read_table(path)[0]
            if not found or all(found.get(key) == " ".join(str(value).split())
                                for key, value in self.facts.items() if key != "date"):
                break
            number += 1
        return Table(path, family.columns, {**self.facts, "family": family.name})


def _split(answer):
    """The rows of an answer: itself, or those of its `N.`-prefixed fields beside the shared ones."""
    count = int(answer.pop("rows", 0) or 0)
    if not count:
        return [answer]
    shared = {key: value for key, value in answer.items() if not key.split(".")[0].isdigit()}
    return [{**shared, **{key.partition(".")[2]: value for key, value in answer.items()
                          if key.startswith(f"{index}.")}} for index in range(count)]


__all__ = ["Campaign", "TableError", "WorkerError"]
