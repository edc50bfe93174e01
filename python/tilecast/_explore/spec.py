"""What a search asks: the parameters of a device, what follows from them, limits, forecasts and objectives."""
from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from typing import NoReturn

from .. import _core
from .._errors import InputError, NotFoundError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_COMPARISON = re.compile(r"<=|>=|<|>")
_KEYS = ("device", "parameters", "numbers", "definitions", "limits", "must_fit", "forecasts", "objectives")
_TOTALS = {"time": "latency_s", "energy": "energy_j", "cost": "cost"}


def evaluate(text: str, values: dict, where: str) -> float:
    """An expression of data files: numbers, names, + - * / %, min, max, ceil, floor, log2. Raises InputError."""
    return _core._evaluate(text, values, where)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A range (`low` to `high`, both included), or a list of `choices`. sets: it is the device's number of its name."""
    name: str
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    whole: bool = False
    choices: tuple = ()
    sets: bool = True


@dataclasses.dataclass(frozen=True)
class Limit:
    """`left` must not be more than `right`."""
    text: str
    left: str
    right: str

    def violation(self, values: dict, where: str) -> float:
        """By how much it is missed, as a part of the limit; 0 where it is met."""
        left, right = evaluate(self.left, values, where), evaluate(self.right, values, where)
        return max(0.0, left - right) / max(abs(right), 1e-30)


@dataclasses.dataclass(frozen=True)
class Objective:
    text: str
    expression: str
    maximize: bool


@dataclasses.dataclass(frozen=True)
class ForecastRow:
    """A forecast that counts `weight` times. options: of tilecast.forecast; a text that begins with "=" is an expression."""
    name: str
    weight: float
    options: dict


@dataclasses.dataclass(frozen=True)
class Space:
    where: str
    device: str
    parameters: tuple
    numbers: dict
    definitions: dict
    limits: tuple
    must_fit: bool
    forecasts: tuple
    objectives: tuple
    content: dict


def _fail(where: str, what: str) -> NoReturn:
    raise InputError(f"{where}: {what}")


def _only(entry: dict, known, where: str) -> None:
    if not isinstance(entry, dict):
        _fail(where, f"expected an object, found {json.dumps(entry)}")
    for key in entry:
        if key not in known:
            _fail(where, f"unknown key '{key}'; known: {', '.join(known)}")


def _number(entry: dict, key: str, where: str) -> float:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        _fail(where, f"'{key}': expected a number, found {json.dumps(value)}")
    return float(value) if isinstance(value, float) else value


def _parameter(name: str, entry, where: str) -> Parameter:
    where = f"{where}: parameters: '{name}'"
    # Accelerators have parameters like DIM; rates of GPUs are set by dtype: matrix_flops_per_s.bf16.
    if not _NAME.match(name):
        _fail(where, "expected a name of letters, digits and underscores; for a number with a dot use 'numbers'")
    if isinstance(entry, list):
        entry = {"choices": entry}
    _only(entry, ("from", "to", "step", "log", "whole", "choices", "sets"), where)
    sets = bool(entry.get("sets", True))
    if "choices" in entry:
        choices = entry["choices"]
        if not isinstance(choices, list) or not choices or any(isinstance(c, bool) or not isinstance(c, (int, float)) for c in choices):
            _fail(where, f"expected a list of numbers, found {json.dumps(choices)}")
        return Parameter(name, choices=tuple(choices), sets=sets)
    low, high = _number(entry, "from", where), _number(entry, "to", where)
    step = _number(entry, "step", where) if "step" in entry else None
    if low > high:
        _fail(where, f"'from' {low} is more than 'to' {high}")
    if step is not None and step <= 0:
        _fail(where, f"'step': expected a number above 0, found {step}")
    log = bool(entry.get("log", False))
    if log and (low <= 0 or step is not None):
        _fail(where, "'log' needs a range above 0 and no 'step'")
    # 64 to 200 in steps of 4 are whole numbers; 1e9 to 2e9 may be any.
    whole = bool(entry.get("whole", step is not None and all(isinstance(n, int) for n in (low, high, step))))
    return Parameter(name, low, high, step, log, whole, sets=sets)


def _limits(text, where: str) -> list:
    """"a <= b and c > d" as two limits."""
    if not isinstance(text, str):
        _fail(where, f"expected an expression, found {json.dumps(text)}")
    limits = []
    for part in re.split(r"\band\b", text):
        found = _COMPARISON.findall(part)
        if len(found) != 1:
            _fail(where, f"'{text}': expected EXPRESSION <= EXPRESSION, one comparison of <=, <, >=, > each")
        left, right = _COMPARISON.split(part)
        if found[0].startswith(">"):
            left, right = right, left
        limits.append(Limit(part.strip(), left.strip(), right.strip()))
    return limits


def _objective(text, where: str) -> Objective:
    if not isinstance(text, str) or not text.strip():
        _fail(where, f"objectives: expected an expression, found {json.dumps(text)}")
    expression, maximize = text.strip(), False
    if expression.startswith(("max:", "min:")):
        expression, maximize = expression[4:].strip(), expression.startswith("max:")
    return Objective(text, expression, maximize)


def _forecast(entry, number: int, where: str) -> ForecastRow:
    where = f"{where}: forecasts[{number}]"
    if not isinstance(entry, dict) or "model" not in entry:
        _fail(where, "expected an object with a 'model'")
    if "gpu" in entry:
        _fail(where, "'gpu' is the device that is sought")
    name, weight = entry.get("name", f"f{number + 1}"), entry.get("weight", 1)
    if not isinstance(name, str) or not _NAME.match(name):
        _fail(where, f"'name': expected letters, digits and underscores, found {json.dumps(name)}")
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
        _fail(where, f"'weight': expected a number of 0 or more, found {json.dumps(weight)}")
    return ForecastRow(name, weight, {key.replace("-", "_"): value for key, value in entry.items() if key not in ("name", "weight")})


def _content(source) -> tuple:
    if isinstance(source, dict):
        return source, "the spec"
    where = os.fspath(source)
    try:
        with open(where, encoding="utf-8") as file:
            return json.load(file), where
    except OSError as error:
        raise NotFoundError(f"{where}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error


def read_space(source, objectives=None) -> Space:
    """source: a path or a dict. objectives: in place of those of the spec. Raises InputError that names the place."""
    content, where = _content(source)
    _only(content, _KEYS, where)
    for key, kind in (("device", str), ("parameters", dict), ("forecasts", list)):
        if not isinstance(content.get(key), kind) or not content[key]:
            _fail(where, f"'{key}' is missing: expected {'a name' if kind is str else 'entries'}")
    given = objectives or content.get("objectives") or ["time"]
    given = [given] if isinstance(given, str) else list(given)
    space = Space(where, content["device"], tuple(_parameter(name, entry, where) for name, entry in content["parameters"].items()),
                  dict(content.get("numbers", {})), dict(content.get("definitions", {})),
                  tuple(limit for text in content.get("limits", []) for limit in _limits(text, f"{where}: limits")),
                  bool(content.get("must_fit", True)),
                  tuple(_forecast(entry, i, where) for i, entry in enumerate(content["forecasts"])),
                  tuple(_objective(text, where) for text in given), content)
    names = [entry.name for entry in space.forecasts]
    if len(set(names)) < len(names):
        _fail(where, f"forecasts: names are there twice: {', '.join(names)}")
    return space


def with_definitions(space: Space, parameters: dict) -> dict:
    """The parameters and what is defined by them, in the order of the spec."""
    values = {name: float(value) for name, value in parameters.items()}
    for name, text in space.definitions.items():
        values[name] = evaluate(str(text), values, f"{space.where}: definitions: '{name}'")
    return values


def _digits(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def device_word(space: Space, parameters: dict, values: dict) -> str:
    """The device as `gpu` of a forecast: "H100:sm_count=160,memory_bytes=192000000000"."""
    numbers = {entry.name: parameters[entry.name] for entry in space.parameters if entry.sets and entry.name not in space.numbers}
    for name, text in space.numbers.items():
        numbers[name] = evaluate(str(text), values, f"{space.where}: numbers: '{name}'")
    if not numbers:
        return space.device
    return space.device + ("," if "=" in space.device else ":") + ",".join(f"{name}={_digits(value)}" for name, value in numbers.items())


def forecast_options(space: Space, row: ForecastRow, values: dict) -> dict:
    return {key: evaluate(value[1:], values, f"{space.where}: forecasts: '{row.name}': '{key}'")
            if isinstance(value, str) and value.startswith("=") else value for key, value in row.options.items()}


def totals(space: Space, results: list) -> dict:
    """Weighted sums of what the forecasts say, and each number by the forecast's name: "chat_tpot_s"."""
    values = {}
    for name, column in _TOTALS.items():
        parts = [result[column] for result in results]
        if all(part is not None for part in parts):
            values[name] = math.fsum(row.weight * part for row, part in zip(space.forecasts, parts))
    for row, result in zip(space.forecasts, results):
        values.update({f"{row.name}_{column}": float(value) for column, value in result.items()
                       if isinstance(value, (int, float)) and value is not None})
    return values
