"""Measures the kernels of a list, `tilecast calibrate --suggest` writes such, and fills in their times."""

import csv
import io
import os
import sys

from kit.families import families
from kit.table import TableError

# Tilecast's names of operators and sizes where the kit's differ.
OPS = {"cached_attention": "attention", "conv2d": "conv_forward", "conv2d_input_backward": "conv_backward_data",
       "conv2d_weight_backward": "conv_backward_weight"}
COLUMNS = {"head_size": "head_dim"}
PRODUCTS = ("linear", "matmul", "gemm")  # of cuBLAS in all software, unless quantized
DEFAULTS = {"batch": 1, "load": "burst", "l2": "cold", "causal": 1}
MOST_S = 60


def read_list(path):
    """Comments, columns and rows (dicts) of the file. Throws TableError."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = file.read().splitlines(keepends=True)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from error
    comments = [line for line in lines if line.startswith("#")]
    reader = csv.DictReader([line for line in lines if not line.startswith("#")])
    columns = list(reader.fieldnames or [])
    missing = [name for name in ("gpu", "op", "dtype", "latency_s") if name not in columns]
    if missing:
        raise TableError(f"{path}: has no column '{missing[0]}'; expected gpu, op, dtype, latency_s and sizes, as "
                         "'tilecast calibrate --suggest N -o FILE' writes them")
    return comments, columns, list(reader)


def write_list(path, comments, columns, rows):
    """Replaces the file: it is whole at any time."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    try:
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write("".join(comments) + text.getvalue())
        os.replace(path + ".part", path)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from error


def case_of(row, by_op):
    """The family and case of a row, or a sentence why the kit does not measure it."""
    op = OPS.get(row["op"], row["op"])
    own_kernel = row.get("software") not in (None, "", "pytorch") and op not in PRODUCTS
    if own_kernel or row.get("scheme") or row.get("kv_dtype"):
        return None, "a kernel of serving software: measure it with that software"
    family = by_op.get(op)
    if family is None:
        return None, f"the kit has no operator '{row['op']}'"
    rows, columns = row.get("rows"), row.get("columns")
    given = {**row, "op": op, "m": row.get("m") or rows, "n": row.get("n") or columns}
    if op == "linear":
        given.update(trans_a=0, trans_b=1)
    elif family.name == "matmul":
        given.update(trans_a=0, trans_b=0)
    if row["op"] == "cached_attention":
        given["causal"] = 0
    case = {}
    for column in family.inputs:
        value = given.get(column) or given.get(COLUMNS.get(column, column))
        case[column] = DEFAULTS.get(column, "") if value in (None, "") else value
    return (family, case), ""


def measure_list(path, worker, facts, gpu, deadline):
    """Fills in the missing times, one row after another; `deadline(s)`: whether s seconds are left. The report's lines."""
    comments, columns, rows = read_list(path)
    if facts.get("simulated") and not any(line.startswith("# simulated") for line in comments):
        comments = [f"# simulated: {facts['simulated']}\n", *comments]
    by_op = {case["op"]: family for family in families() if family.worker == "kernels" and family.name != "device"
             for case in family.cases}
    measured, problems, left = 0, {}, 0
    for row in rows:
        if row.get("latency_s"):
            continue
        found, problem = case_of(row, by_op)
        if found and not deadline(1):
            left += 1
            continue
        if found:
            family, case = found
            answer = worker.ask({"do": "time", "family": family.name, **case}, MOST_S)
            problem = "" if answer.get("status") == "ok" else answer.get("detail") or answer.get("status")
        if problem:
            problems[problem] = problems.get(problem, 0) + 1
            continue
        row["latency_s"], row["gpu"] = answer["latency_s"], gpu
        measured += 1
        write_list(path, comments, columns, rows)
        print(f"\r{measured} kernels measured", end="", file=sys.stderr, flush=True)
    if measured:
        print(file=sys.stderr)
    lines = [f"{path}: {measured} of {len(rows)} kernels measured now"]
    lines += [f"  {count} not measured: {problem}" for problem, count in problems.items()]
    if left:
        lines.append(f"  {left} left: out of time; run again to go on")
    return lines
