"""The command `tilecast explore`, which the program hands on to Python, as the optimizer is a library of Python."""
from __future__ import annotations

import argparse
import json
import sys

from . import Error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tilecast explore",
                                     description="Searches designs of a GPU or accelerator; docs/guide/explore_devices.md describes the spec.")
    parser.add_argument("spec", metavar="SPEC", help="JSON file")
    parser.add_argument("--objective", action="append", metavar="EXPRESSION", help="several times: a front; 'max:...' is maximized")
    parser.add_argument("--designs", type=int, default=400, metavar="N", help="designs to ask for (400)")
    parser.add_argument("--batch", type=int, default=50, metavar="N", help="designs at a time (50)")
    parser.add_argument("--sampler", choices=("nsga2", "tpe", "random"), help="nsga2 with several objectives, else tpe")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--state", metavar="FOLDER", help="keeps the batches: a run that was killed continues")
    parser.add_argument("-o", "--output", metavar="FILE", help="all designs: .parquet, .csv or .json")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table", help="of the front, on standard output")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="of the table (20)")
    parser.add_argument("--on", choices=("local", "ray", "spark", "dask"), default="local", help="who does the forecasts (local)")
    parser.add_argument("--workers", type=int, metavar="N", help="threads, or tasks at once")
    parser.add_argument("--engine", metavar="JSON", default="{}", help='settings of the engine: {"address": "auto"}')
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
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
    found = explore(arguments.spec, objectives=arguments.objective, designs=arguments.designs, batch=arguments.batch,
                    sampler=arguments.sampler, seed=arguments.seed, state=arguments.state, on=arguments.on, workers=arguments.workers,
                    engine=json.loads(arguments.engine), show=None if arguments.quiet else show)
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
