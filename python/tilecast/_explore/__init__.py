"""`tilecast.explore`: designs of a device that does not exist, by an optimizer, under limits of the user."""
from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile

import pyarrow
import pyarrow.parquet
from pyarrow import csv

from .. import _sweep
from .._errors import InputError, IoError
from .._sweep.job import hash_of
from .._sweep.store import Store
from .search import Search
from .spec import RESULTS, Space, add_definitions, device_word, evaluate, forecast_options, names_in, read_space, totals

_MANIFEST = "_explore.json"
# Rows of a chunk of a batch: enough chunks for the workers of a small cluster, as a row may take seconds.
_CHUNKS = 32
# How far a design is off a limit that is no number: a forecast that fails, or that does not fit into the memory.
_MISSED = 1.0


@dataclasses.dataclass(frozen=True)
class Exploration:
    """What a search found, as tables of pyarrow.

    designs: a row for each distinct design, in the order in which they were asked: its parameters and definitions, totals (`time` in
    seconds, `energy` in joules, `cost`), the objectives, `feasible`, `on_front`, and `error`, why it has no forecast or which limit it
    misses. front: the feasible ones that no other one beats in all objectives, by the first objective.
    """
    designs: pyarrow.Table
    front: pyarrow.Table
    objectives: tuple

    def __repr__(self) -> str:
        return f"Exploration({self.designs.num_rows} designs, {self.front.num_rows} on the front of {', '.join(self.objectives)})"

    def write(self, path, table: str = "designs") -> None:
        """Writes `designs` or `front` as .parquet, .csv or .json, by the path's ending. Raises InputError for another ending."""
        write_table(getattr(self, table), os.fspath(path))


def write_table(table: pyarrow.Table, path: str) -> None:
    sink = pyarrow.BufferOutputStream()
    if path.endswith(".parquet"):
        pyarrow.parquet.write_table(table, sink, compression="zstd")
    elif path.endswith(".csv"):
        csv.write_csv(table, sink)
    elif path.endswith(".json"):
        sink.write(json.dumps(table.to_pylist(), indent=1).encode())
    else:
        raise InputError(f"'{path}': expected a name that ends in .parquet, .csv or .json")
    folder, name = os.path.split(os.path.abspath(path))
    Store(folder).write(name, sink.getvalue())


@dataclasses.dataclass
class _Design:
    """values: the parameters, what is defined and the totals; misses: of each limit, of the memory and of the forecasts; options: of each
    forecast."""
    parameters: dict
    values: dict
    misses: list
    device: str = ""
    options: list = dataclasses.field(default_factory=list)
    objectives: list = dataclasses.field(default_factory=list)
    error: str = ""

    @property
    def feasible(self) -> bool:
        return not any(self.misses)


class _Explorer:
    def __init__(self, space: Space, sweep_settings: dict, folder: Store):
        self.space, self.settings, self.folder = space, sweep_settings, folder
        known = {entry.name for entry in space.parameters} | set(space.definitions)
        limits = [limit.names(space.where) for limit in space.limits]
        # Limits with names that only forecasts give, and all such names.
        self.later = [not names <= known for names in limits]
        self.needed = set().union(*limits, *(names_in(entry.expression, space.where) for entry in space.objectives)) - known
        self.designs: dict = {}
        self.batches = 0

    def _begin(self, parameters: dict) -> _Design:
        """A design with the limits that need no forecast. One that expressions have no value for is no error of the spec."""
        design = _Design(parameters, {name: float(value) for name, value in parameters.items()}, [0.0] * (len(self.space.limits) + 2))
        try:
            add_definitions(self.space, design.values)
            design.device = device_word(self.space, parameters, design.values)
            design.options = [forecast_options(self.space, row, design.values) for row in self.space.forecasts]
            self._add_misses(design, later=False)
        except InputError as error:
            design.error, design.misses[-1] = str(error), _MISSED
        return design

    def _add_misses(self, design: _Design, later: bool) -> None:
        missed = []
        for i, limit in enumerate(self.space.limits):
            if self.later[i] == later:
                design.misses[i] = limit.violation(design.values, f"{self.space.where}: limits")
                missed += [limit.text] if design.misses[i] else []
        if missed and not design.error:
            design.error = "misses " + ", ".join(missed)

    def _forecast(self, designs: list, name: str) -> None:
        rows = [{**options, "gpu": design.device} for design in designs for options in design.options]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = {name: [row.get(name) for row in rows] for name in names}
        chunk_rows = max(1, -(-len(rows) // _CHUNKS))
        summary = _sweep.sweep(table, out=f"{self.folder.path}/{name}", filesystem=self.folder.filesystem, chunk_rows=chunk_rows, quiet=True,
                               **self.settings)
        results = summary.table([*RESULTS, "error"]).to_pylist()
        for i, design in enumerate(designs):
            count = len(self.space.forecasts)
            self._finish(design, results[i * count:(i + 1) * count])

    def _finish(self, design: _Design, results: list) -> None:
        errors = [f"{row.name}: {result['error']}" for row, result in zip(self.space.forecasts, results) if result["error"]]
        if errors:
            design.error, design.misses[-1] = errors[0], _MISSED
            return
        design.values.update(totals(self.space, results))
        where = self.space.where
        for name in sorted(self.needed - set(design.values)):
            # The kind of a forecast decides which numbers it has, so no design has this one.
            raise InputError(f"{where}: limits or objectives: '{name}': the forecasts have no such number")
        if self.space.must_fit and any(result["fits"] is False for result in results):
            design.error, design.misses[-2] = "does not fit into the memory", _MISSED
        try:
            self._add_misses(design, later=True)
            design.objectives = [evaluate(entry.expression, design.values, f"{where}: objectives") for entry in self.space.objectives]
        except InputError as error:
            design.error, design.misses[-1] = str(error), _MISSED

    def answer(self, asked: list, whole: bool) -> list:
        """Objectives and misses of the designs. Those that were asked before are not forecast again. whole: they are all of a batch."""
        keys = [json.dumps(parameters, sort_keys=True) for parameters in asked]
        fresh = []
        for key, parameters in zip(keys, asked):
            if key not in self.designs:
                self.designs[key] = self._begin(parameters)
                if self.designs[key].feasible:
                    fresh.append(self.designs[key])
        if fresh:
            # A longer search asks the whole batch: another question, so a folder of its own.
            self._forecast(fresh, f"batch-{self.batches:05}" + ("" if whole else f"-first-{len(asked)}"))
            self.batches += 1
        worst = [-math.inf if entry.maximize else math.inf for entry in self.space.objectives]
        return [(self.designs[key].objectives or worst, self.designs[key].misses) for key in keys]


def on_front(points: list) -> list:
    """For each point, smaller being better, whether no other one is at least as good everywhere and better somewhere."""
    order = sorted(range(len(points)), key=lambda i: points[i])
    front: list = []
    for i in order:
        # Sorted so, a point is only beaten by earlier ones, then also by one that nothing beats.
        if not any(all(a <= b for a, b in zip(points[j], points[i])) and points[j] != points[i] for j in front):
            front.append(i)
    chosen = set(front)
    return [i in chosen for i in range(len(points))]


def _tables(space: Space, designs: list) -> tuple:
    signs = [-1.0 if entry.maximize else 1.0 for entry in space.objectives]
    feasible = [i for i, design in enumerate(designs) if design.feasible]
    points = [tuple(sign * value for sign, value in zip(signs, designs[i].objectives)) for i in feasible]
    chosen = {i for i, chosen in zip(feasible, on_front(points)) if chosen}
    names = list(dict.fromkeys(name for design in designs for name in design.values))
    columns = {"design": list(range(len(designs))), "device": [design.device for design in designs]}
    for entry in space.parameters:
        columns[entry.name] = [design.parameters[entry.name] for design in designs]
    columns.update({name: [design.values.get(name) for design in designs] for name in names if name not in columns})
    for i, entry in enumerate(space.objectives):
        if entry.expression not in columns:
            columns[entry.text] = [design.objectives[i] if design.objectives else None for design in designs]
    columns["feasible"] = [design.feasible for design in designs]
    columns["on_front"] = [i in chosen for i in range(len(designs))]
    columns["error"] = [design.error or None for design in designs]
    table = pyarrow.table(columns)
    order = sorted(chosen, key=lambda i: (signs[0] * designs[i].objectives[0], i))
    return table, table.take(pyarrow.array(order, pyarrow.int64()))


def _check_state(folder: Store, question: dict) -> None:
    """Writes what is asked. Raises InputError if the folder holds something else."""
    folder.create()
    names = folder.names()
    if _MANIFEST not in names:
        if [name for name in names if not name.startswith(".")]:
            raise InputError(f"{folder.shown}: holds other files and no search; name another folder")
        folder.write_new(_MANIFEST, json.dumps(question, sort_keys=True).encode())
    try:
        old = json.loads(folder.read(_MANIFEST))
    except ValueError as error:
        raise InputError(f"{folder.shown}: '{_MANIFEST}' is damaged ({error}); remove the folder") from error
    if old != question:
        raise InputError(f"{folder.shown}: holds another search; name another folder, or remove this one")


def _search(explorer: _Explorer, search: Search, designs: int, batch: int, show) -> None:
    """Whole batches are asked, so that a longer search asks the same ones first; of the last one only what is left is forecast."""
    asked = 0
    while asked < designs:
        parameters = search.ask(batch)[:designs - asked]
        answers = explorer.answer(parameters, len(parameters) == batch)
        asked += len(answers)
        if asked < designs:
            search.tell(answers)
        if show is not None:
            show(asked, designs)


def explore(spec, *, objectives, designs, batch, sampler, seed, on, state, filesystem=None, workers=None, engine=None, weights=None,
            calibration=None, show=None) -> Exploration:
    """See tilecast.explore, which has the defaults."""
    space = read_space(spec, objectives)
    if designs < 1 or batch < 1:
        raise InputError(f"`designs` and `batch`: expected 1 or more, found {designs} and {batch}")
    if state is None and on != "local":
        raise InputError("`state` is missing: a folder that all workers see, for the batches of the search")
    search = Search(space, sampler, seed, batch)
    settings = {"on": on, "workers": workers, "engine": engine, "weights": weights, "calibration": calibration}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Store(state if state is not None else temporary, filesystem)
        # The batches check what they ask; this says so before the first one.
        _check_state(folder, {"spec": hash_of(space.content), "objectives": [entry.text for entry in space.objectives], "seed": seed,
                              "batch": batch, "sampler": sampler})
        explorer = _Explorer(space, settings, folder)
        _search(explorer, search, designs, batch, show)
    table, front = _tables(space, list(explorer.designs.values()))
    return Exploration(table, front, tuple(entry.text for entry in space.objectives))


__all__ = ["Exploration", "IoError", "explore", "on_front", "write_table"]
