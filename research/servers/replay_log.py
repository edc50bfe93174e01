#!/usr/bin/env python3
"""A vLLM server's log of requests, replayed: forecast and log side by side.

    research/servers/replay_log.py build/release/tilecast FOLDER [--svg replay.svg]

FOLDER has llmservingsim_rtx4090_requests.csv.xz, _timeseries.csv.xz and _meta.json of LLMServingSim's bench: 300 requests to
Llama 3.1 8B on one RTX 4090. The trace is the log's queued_s (when the engine has a request), prompt and output; TTFT counts
from there. Prints means of TTFT, TPOT and requests a second, the median error of one request's TTFT, and every ten seconds how
many requests run and wait; --svg draws both over time.
"""
import argparse
import csv
import json
import lzma
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PREFIX = "llmservingsim_rtx4090_"


def table(folder, name):
    with lzma.open(folder / f"{PREFIX}{name}.csv.xz", "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def forecast(tilecast, meta, rows, options):
    """Forecast of the server under the log's requests."""
    asked = meta["engine_kwargs"]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.csv"
        lines = ["arrival_s,prompt,output", *(f"{r['queued_s']},{r['prompt']},{r['output']}" for r in rows)]
        trace.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [tilecast, "forecast", asked["model"].split("/")[-1].lower(), "--software", "vllm", "--gpu", "rtx4090",
                   "--dtype", "bf16", "--trace", str(trace), "--max-num-seqs", str(asked["max_num_seqs"]),
                   "--max-num-batched-tokens", str(asked["max_num_batched_tokens"]), "--max-model-len",
                   str(asked["max_model_len"]), "--gpu-memory-utilization", str(meta["kv_cache"]["gpu_memory_utilization"]),
                   "--format", "json", *options]
        run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def running_and_waiting(times, at):
    """Of requests (arrival, first token, last token): how many decode, and how many wait for their first token. A preempted one
    counts as running here, as waiting in the log."""
    running = sum(1 for _, first, last in times if first <= at < last)
    waiting = sum(1 for arrival, first, _ in times if arrival <= at < first)
    return running, waiting


def summary(times, outputs):
    ttft = statistics.mean(first - arrival for arrival, first, _ in times)
    tpot = statistics.mean((last - first) / (n - 1) for (_, first, last), n in zip(times, outputs) if n > 1)
    return ttft, tpot, len(times) / (max(t[2] for t in times) - min(t[0] for t in times))


def draw(path, logged, forecast_times, series):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(8, 5))
    seconds = [float(s["t_s"]) for s in series]
    end = int(max(t[2] for t in forecast_times)) + 1
    for axis, column, name in zip(axes, (0, 1), ("running", "waiting")):
        axis.plot(seconds, [int(s[name]) for s in series], color="black", label="log")
        counts = [running_and_waiting(forecast_times, t)[column] for t in range(end)]
        axis.plot(range(end), counts, color="tab:orange", linestyle="--",
                  label=f"forecast{', with preempted ones' if column == 0 else ''}")
        axis.set_ylabel(f"requests {name}")
        axis.legend(frameon=False)
    axes[1].set_xlabel("seconds")
    (log, ours) = (len(logged) / max(t[2] for t in logged), len(logged) / max(t[2] for t in forecast_times))
    axes[0].set_title(f"vLLM on an RTX 4090: {log:.2f} requests a second in the log, {ours:.2f} in the forecast")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilecast")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--svg")
    parser.add_argument("options", nargs="*", help="further options of the forecast, after --")
    args = parser.parse_args()
    meta = json.loads((args.folder / f"{PREFIX}meta.json").read_text(encoding="utf-8"))
    rows, series = table(args.folder, "requests"), table(args.folder, "timeseries")
    answer = forecast(args.tilecast, meta, rows, args.options)
    outputs = [int(r["output"]) for r in rows]
    logged = [(float(r["queued_s"]), float(r["first_token_s"]), float(r["last_token_s"])) for r in rows]
    traced = answer["serving"]["traced_requests"]
    times = [(t["arrival_s"], t["first_token_s"], t["last_token_s"]) for t in traced]
    for name, log, ours in zip(("TTFT, mean s", "TPOT, mean s", "requests/s"), summary(logged, outputs), summary(times, outputs)):
        print(f"{name:24} log {log:9.4f}  forecast {ours:9.4f}  {100 * (ours / log - 1):+6.1f} %")
    errors = [abs((b[1] - b[0]) / (a[1] - a[0]) - 1) for a, b in zip(logged, times)]
    print(f"median error of one request's TTFT {100 * statistics.median(errors):.1f} %")
    pool = answer["cache_pool"]["blocks"], meta["kv_cache"]["num_gpu_blocks"]
    print(f"blocks: log {pool[1]}, forecast {pool[0]}; preemptions forecast: {answer['serving']['preemptions']}")
    print("second   running log, forecast   waiting log, forecast")
    for at in series[9::10]:
        running, waiting = running_and_waiting(times, float(at["t_s"]))
        print(f"{float(at['t_s']):6.0f} {at['running']:>13} {running:9} {at['waiting']:>13} {waiting:9}")
    if args.svg:
        draw(args.svg, logged, times, series)


if __name__ == "__main__":
    main()
