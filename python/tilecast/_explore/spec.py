"""What a search asks: the parameters of a device, what follows from them, limits, forecasts and objectives."""
from __future__ import annotations

import dataclasses
import difflib
import json
import math
import os
import re
import sys
from typing import NoReturn

from .. import _core
from .._errors import InputError, NotFoundError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_COMPARISON = re.compile(r"<=|>=|<|>")
_KEYS = ("device", "parameters", "numbers", "definitions", "limits", "must_fit", "forecasts", "objectives")
_TOTALS = {"time": "latency_s", "energy": "energy_j", "cost": "cost"}
# Columns of a forecast that limits and objectives may name: NAME_latency_s.
RESULTS = ("latency_s", "ttft_s", "tpot_s", "tokens_per_s", "power_w", "energy_j", "energy_per_token_j", "cost", "cost_per_million_tokens",
           "utilization_ratio", "peak_bytes", "fits")
# Columns of the answer, and functions of expressions.
_TAKEN = {"design", "device", "feasible", "on_front", "error", "min", "max", "ceil", "floor", "log2", "and", "or", *_TOTALS}
# Whole numbers up to here are exact in a float: 2^53.
_LARGEST_WHOLE = 2**53
# Of a limit with < or > that is just met: more than 0, and less than any other miss.
_LEAST_MISS = sys.float_info.min


def evaluate(text: str, values: dict, where: str) -> float:
    """An expression of data files: numbers, names, + - * / %, min, max, ceil, floor, log2. Raises InputError."""
    return _core._evaluate(text, values, where)


def names_in(text: str, where: str) -> set:
    """Names that an expression uses. Raises InputError for what is none."""
    return set(_core._names_in(text, where))


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
    """`left` must not be more than `right`; strict: it must be less."""
    text: str
    left: str
    right: str
    strict: bool = False

    def names(self, where: str) -> set:
        return names_in(self.left, where) | names_in(self.right, where)

    def violation(self, values: dict, where: str) -> float:
        """By how much it is missed, as a part of the limit; 0 where it is met."""
        left, right = evaluate(self.left, values, where), evaluate(self.right, values, where)
        if left < right or (left == right and not self.strict):
            return 0.0
        return max((left - right) / max(abs(right), 1e-30), _LEAST_MISS)


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


def _flag(entry: dict, key: str, default: bool, where: str) -> bool:
    value = entry.get(key, default)
    if not isinstance(value, bool):
        _fail(where, f"'{key}': expected true or false, found {json.dumps(value)}")
    return value


def _word(entry: dict, key: str, words: tuple, where: str):
    """One of the words, None where there is no such key."""
    if key in entry and entry[key] not in words:
        _fail(where, f"'{key}': expected {' or '.join(words)}, found {json.dumps(entry[key])}")
    return entry.get(key)


def _choices(name: str, entry: dict, where: str) -> Parameter:
    _only(entry, ("choices", "sets"), where)
    choices = entry["choices"]
    if not isinstance(choices, list) or not choices or any(isinstance(c, bool) or not isinstance(c, (int, float)) for c in choices):
        _fail(where, f"expected a list of numbers, found {json.dumps(choices)}")
    return Parameter(name, choices=tuple(choices), sets=_flag(entry, "sets", True, where))


def _is_whole(name: str, entry: dict, sets: bool, where: str) -> bool:
    """Whether numbers between the ends are whole ones, as in a range of a sweep."""
    kind = _word(entry, "type", ("whole", "number"), where)
    if kind is not None:
        return kind == "whole"
    of_gpu = _core._is_whole_number_of_gpu(name) if sets else None
    return of_gpu if of_gpu is not None else all(isinstance(entry[key], int) for key in ("from", "to", "step") if key in entry)


def _range(name: str, entry: dict, where: str) -> Parameter:
    _only(entry, ("from", "to", "step", "scale", "type", "sets"), where)
    numbers = {key: _number(entry, key, where) for key in ("from", "to", "step") if key in entry or key != "step"}
    if numbers["from"] > numbers["to"]:
        _fail(where, f"'from' {numbers['from']} is more than 'to' {numbers['to']}")
    if numbers.get("step", 1) <= 0:
        _fail(where, f"'step': expected a number above 0, found {numbers['step']}")
    log = _word(entry, "scale", ("linear", "log2"), where) == "log2"
    if log and (numbers["from"] <= 0 or "step" in numbers):
        _fail(where, "'scale' log2 needs a range above 0 and no 'step'")
    sets = _flag(entry, "sets", True, where)
    whole = _is_whole(name, entry, sets, where)
    for key, number in numbers.items():
        if whole and (number != math.floor(number) or abs(number) > _LARGEST_WHOLE):
            _fail(where, f"'{key}': expected a whole number, found {number}")
    return Parameter(name, numbers["from"], numbers["to"], numbers.get("step"), log, whole, sets=sets)


def _parameter(name: str, entry, where: str) -> Parameter:
    where = f"{where}: parameters: '{name}'"
    # Accelerators have parameters like DIM; rates of GPUs are set by dtype: matrix_flops_per_s.bf16.
    if not _NAME.match(name):
        _fail(where, "expected a name of letters, digits and underscores; for a number with a dot use 'numbers'")
    if isinstance(entry, list):
        entry = {"choices": entry}
    if not isinstance(entry, dict):
        _fail(where, f"expected a list of numbers, or a range with 'from' and 'to', found {json.dumps(entry)}")
    return (_choices if "choices" in entry else _range)(name, entry, where)


def _expressions(content: dict, key: str, where: str) -> dict:
    """Names with their expressions."""
    entries = content.get(key, {})
    if not isinstance(entries, dict):
        _fail(where, f"'{key}': expected an object of names with expressions, found {json.dumps(entries)}")
    for name, value in entries.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            _fail(where, f"{key}: '{name}': expected an expression, found {json.dumps(value)}")
    return {name: str(value) for name, value in entries.items()}


def _texts(value, key: str, where: str) -> list:
    """One text, or a list of them."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)):
        _fail(where, f"'{key}': expected an expression, or a list of them, found {json.dumps(value, default=repr)}")
    return list(value)


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
        limits.append(Limit(part.strip(), left.strip(), right.strip(), strict="=" not in found[0]))
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


def _unique(pairs: list) -> dict:
    """Raises ValueError for a key that is there twice, which JSON's reader would drop."""
    found: dict = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key '{key}' is there twice in one object")
        found[key] = value
    return found


def _content(source) -> tuple:
    if isinstance(source, dict):
        return source, "the spec"
    where = os.fspath(source)
    try:
        with open(where, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=_unique), where
    except OSError as error:
        raise NotFoundError(f"{where}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error


def _check_known(names: set, known: set, where: str) -> None:
    for name in sorted(names - known):
        close = difflib.get_close_matches(name, known, 1)
        _fail(where, f"unknown name '{name}'" + (f"; did you mean '{close[0]}'" if close else f"; known: {', '.join(sorted(known))}"))


def _check_names(space: Space) -> None:
    """Each expression can be read and has only names that there are, before anything is forecast."""
    where = space.where
    totals_known = set(_TOTALS) | {f"{row.name}_{column}" for row in space.forecasts for column in RESULTS}
    known: set = set()
    for kind, names in (("parameters", [entry.name for entry in space.parameters]), ("definitions", list(space.definitions))):
        for name in names:
            if name in _TAKEN | totals_known | known:
                _fail(where, f"{kind}: '{name}': the name is taken; give another one")
            if not _NAME.match(name):
                _fail(where, f"{kind}: '{name}': expected a name of letters, digits and underscores")
            if kind == "definitions":
                place = f"{where}: definitions: '{name}'"
                _check_known(names_in(space.definitions[name], place), known, place)
            known.add(name)
    for name, text in space.numbers.items():
        _check_known(names_in(text, f"{where}: numbers: '{name}'"), known, f"{where}: numbers: '{name}'")
    for row in space.forecasts:
        for key, value in row.options.items():
            if isinstance(value, str) and value.startswith("="):
                place = f"{where}: forecasts: '{row.name}': '{key}'"
                _check_known(names_in(value[1:], place), known, place)
    for limit in space.limits:
        _check_known(limit.names(f"{where}: limits"), known | totals_known, f"{where}: limits: '{limit.text}'")
    for entry in space.objectives:
        _check_known(names_in(entry.expression, f"{where}: objectives"), known | totals_known, f"{where}: objectives: '{entry.text}'")


def read_space(source, objectives=None) -> Space:
    """source: a path or a dict. objectives: in place of those of the spec. Raises InputError that names the place."""
    content, where = _content(source)
    _only(content, _KEYS, where)
    for key, kind in (("device", str), ("parameters", dict), ("forecasts", list)):
        if not isinstance(content.get(key), kind) or not content[key]:
            _fail(where, f"'{key}' is missing: expected {'a name' if kind is str else 'entries'}")
    given = _texts(objectives or content.get("objectives") or ["time"], "objectives", where)
    limits = _texts(content.get("limits", []), "limits", where)
    space = Space(where, content["device"], tuple(_parameter(name, entry, where) for name, entry in content["parameters"].items()),
                  _expressions(content, "numbers", where), _expressions(content, "definitions", where),
                  tuple(limit for text in limits for limit in _limits(text, f"{where}: limits")),
                  _flag(content, "must_fit", True, where),
                  tuple(_forecast(entry, i, where) for i, entry in enumerate(content["forecasts"])),
                  tuple(_objective(text, where) for text in given), content)
    names = [entry.name for entry in space.forecasts]
    if len(set(names)) < len(names):
        _fail(where, f"forecasts: names are there twice: {', '.join(names)}")
    _check_names(space)
    return space


def add_definitions(space: Space, values: dict) -> None:
    """Adds what is defined by the parameters, in the order of the spec."""
    for name, text in space.definitions.items():
        values[name] = evaluate(text, values, f"{space.where}: definitions: '{name}'")


def _digits(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def device_word(space: Space, parameters: dict, values: dict) -> str:
    """The device as `gpu` of a forecast: "H100:sm_count=160,memory_bytes=192000000000"."""
    numbers = {entry.name: parameters[entry.name] for entry in space.parameters if entry.sets and entry.name not in space.numbers}
    for name, text in space.numbers.items():
        numbers[name] = evaluate(text, values, f"{space.where}: numbers: '{name}'")
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
