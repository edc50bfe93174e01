"""The command `tilecast explore`, which the program hands on to Python, as the optimizer is a library of Python."""
from __future__ import annotations

import argparse
import json
import sys

from . import Error, InputError


def _object(text: str) -> dict:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InputError(f"--engine: expected a JSON object, found '{text}'")
    return value


def _parser() -> argparse.ArgumentParser:
    """What the program passes on. It has checked words and numbers, and tilecast.explore has the defaults."""
    parser = argparse.ArgumentParser(prog="tilecast explore", argument_default=argparse.SUPPRESS)
    parser.add_argument("spec", metavar="SPEC")
    parser.add_argument("--objective", action="append", dest="objectives")
    for name in ("designs", "batch", "seed", "workers"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("sampler", "state", "on", "engine"):
        parser.add_argument(f"--{name}")
    parser.add_argument("-o", "--output", default="")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--quiet", action="store_true", default=False)
    return parser


def _cell(value) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(rows: list, names: list) -> str:
    cells = [names] + [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths)).rstrip() for line in cells)


def _show_front(found, arguments) -> None:
    rows = found.front.to_pylist()
    if arguments.format == "json":
        print(json.dumps(rows, indent=1))
    elif arguments.format == "csv":
        import pyarrow.csv
        sink = sys.stdout.buffer
        pyarrow.csv.write_csv(found.front, sink)
    else:
        left_out = ("device", "feasible", "on_front", "error")
        print(_table(rows[:arguments.rows], [name for name in found.front.column_names if name not in left_out]))
        if len(rows) > arguments.rows:
            print(f"{len(rows) - arguments.rows} more: --rows")


def _explore(arguments) -> int:
    from . import explore
    from ._explore import write_table

    def show(asked, designs):
        print(f"tilecast: {asked} of {designs} designs", file=sys.stderr)
    own = ("spec", "output", "format", "rows", "quiet")
    settings = {name: value for name, value in vars(arguments).items() if name not in own}
    if "engine" in settings:
        settings["engine"] = _object(settings["engine"])
    found = explore(arguments.spec, show=None if arguments.quiet else show, **settings)
    if arguments.output:
        write_table(found.designs, arguments.output)
    if not found.front.num_rows:
        errors = [error for error in found.designs["error"].to_pylist() if error]
        print(f"tilecast: none of {found.designs.num_rows} designs meets all limits; the last one {errors[-1]}", file=sys.stderr)
        return 1
    _show_front(found, arguments)
    return 0


def main(words=None) -> int:
    try:
        return _explore(_parser().parse_args(words))
    except (Error, ImportError, ValueError) as error:
        print(f"tilecast: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
