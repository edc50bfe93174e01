"""Views of forecasts of both kinds: tables for notebooks, DataFrames and plots."""
from __future__ import annotations

import html
import json

_SHOWN_KERNELS = 15


def to_dict(forecast) -> dict:
    return json.loads(forecast.to_json())


def _seconds(kernel) -> float:
    return kernel.latency_s * kernel.count


def kernel_records(rows) -> list:
    """One flat dict for each kernel, with the columns of `--format csv`."""
    before = ("name", "op", "phase", "dtype")
    after = ("count", "latency_s", "low_s", "high_s", "flops", "bytes", "limit", "tile", "waves", "utilization_ratio",
             "predictor", "extrapolated")
    return [{**{key: getattr(row, key) for key in before}, **row.shape, **{key: getattr(row, key) for key in after}}
            for row in rows]


def to_pandas(forecast):
    """A DataFrame of the kernels. Needs pandas."""
    import pandas
    return pandas.DataFrame(kernel_records(forecast.kernels))


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _bytes(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"


def _interval(estimate) -> str:
    return f"{_time(estimate.seconds)} ({_time(estimate.low_s)} to {_time(estimate.high_s)})"


def _totals(forecast) -> list:
    """Names and texts of the totals."""
    rows = [("latency", _interval(forecast.latency))]
    if hasattr(forecast, "ttft"):
        rows += [("time to first token", _interval(forecast.ttft)), ("time per output token", _interval(forecast.tpot)),
                 ("throughput", f"{forecast.tokens_per_s:,.0f} tokens/s")]
    elif forecast.mode == "training":
        rows += [("forward", _time(forecast.forward_s)), ("backward", _time(forecast.backward_s))]
        if forecast.optimizer_s > 0:
            rows.append(("optimizer", _time(forecast.optimizer_s)))
    memory = forecast.memory
    fits = "fits into" if memory.fits else "does not fit into"
    # Text generation has a limit of its own (`gpu_memory_utilization`) within what programs see.
    limit = memory.device_bytes if memory.fits else memory.usable_bytes
    rows.append(("memory", f"{_bytes(memory.peak_bytes)}, {fits} {_bytes(limit)}"))
    return rows


def _title(forecast) -> str:
    what = f"prompt {forecast.prompt}, output {forecast.output}" if hasattr(forecast, "ttft") else forecast.mode
    return f"{forecast.model} on {forecast.gpu_name}: {what}, batch {forecast.batch}, {forecast.dtype}"


def _html_table(header, rows) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{'<thead><tr>' + head + '</tr></thead>' if header else ''}<tbody>{body}</tbody></table>"


def repr_html(forecast) -> str:
    """Totals, warnings, and the kernels that take the most time."""
    rows = sorted(forecast.kernels, key=_seconds, reverse=True)
    total = sum(map(_seconds, rows)) or 1.0
    kernels_shown = [(row.name, row.op, row.phase, row.count, _time(row.latency_s) + ("*" if row.extrapolated else ""),
                      f"{100 * _seconds(row) / total:.1f} %", row.limit, f"{100 * row.utilization_ratio:.0f} %")
                     for row in rows[:_SHOWN_KERNELS]]
    parts = [f"<b>{html.escape(_title(forecast))}</b>", _html_table((), _totals(forecast))]
    parts += [f"<p>{html.escape(warning)}</p>" for warning in forecast.warnings]
    parts.append(_html_table(("kernel", "operator", "phase", "count", "each", "share", "bound", "use"), kernels_shown))
    if len(rows) > _SHOWN_KERNELS:
        rest = sum(map(_seconds, rows[_SHOWN_KERNELS:]))
        parts.append(f"<p>{len(rows) - _SHOWN_KERNELS} more rows: {100 * rest / total:.1f} %</p>")
    return "".join(parts)


def _time_by_operator(rows, most: int) -> list:
    """Seconds by operator and phase, the largest first; the rest is one entry."""
    seconds: dict = {}
    for row in rows:
        name = row.op if row.phase == "forward" or row.phase in row.op else f"{row.op} ({row.phase})"
        seconds[name] = seconds.get(name, 0.0) + _seconds(row)
    ordered = sorted(seconds.items(), key=lambda item: item[1], reverse=True)
    if len(ordered) > most:
        ordered = [*ordered[:most - 1], ("others", sum(value for _, value in ordered[most - 1:]))]
    return ordered


def _memory_parts(memory) -> list:
    source = getattr(memory, "at_peak", memory)
    names = ["weights", "cache", "activations"]
    if source is not memory:
        names = ["weights", "optimizer", "inputs", "cache", "gradients", "activations", "temporaries", "loss"]
    parts = [(name, getattr(source, name + "_bytes")) for name in names]
    parts += [(name, getattr(memory, name + "_bytes")) for name in ("workspace", "framework")]
    return [(name, count) for name, count in parts if count > 0]


def plot(forecast, most: int = 12):
    """A figure of matplotlib: time by operator, and memory by what it is for. Needs matplotlib."""
    from matplotlib import pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), width_ratios=(3, 2), layout="constrained")
    figure.suptitle(_title(forecast))
    entries = _time_by_operator(forecast.kernels, most)[::-1]
    left.barh([name for name, _ in entries], [1e3 * value for _, value in entries], color="tab:blue")
    left.set_xlabel("ms")
    left.set_title(f"time by operator; latency {_interval(forecast.latency)}", fontsize=10)
    parts = _memory_parts(forecast.memory)[::-1]
    right.barh([name for name, _ in parts], [count / 2**30 for _, count in parts], color="tab:green")
    right.axvline(forecast.memory.device_bytes / 2**30, color="tab:red", linestyle="--", linewidth=1)
    right.set_xlabel("GiB; dashed: what programs see")
    right.set_title(f"memory at the peak: {_bytes(forecast.memory.peak_bytes)}", fontsize=10)
    return figure
