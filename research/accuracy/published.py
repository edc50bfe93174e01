#!/usr/bin/env python3
"""Published runs of training and of servers beside forecasts with the settings that their sources state.

    research/accuracy/published.py build/release/tilecast ../shared/data            prints the table
    research/accuracy/published.py build/release/tilecast ../shared/data --write    writes it into docs/published.md

Rows are taken by rules, not by their errors. Training: MPT by llm-foundry, one node of 8 GPUs, bf16, FSDP, 2,048 tokens, no offload
(training/mpt_llm_foundry.csv). Servers: Llama 3.1 70B in FP8 on vLLM by InferenceX, 1,024 tokens in and out, 4 and 64 clients
(servers/inferencex.csv.xz). Files whose numbers were written down from memory (published/large_runs.csv) are not used here.
"""
import csv
import io
import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "published.md"
SETTINGS = ROOT / "research" / "servers" / "settings.json"
BEGIN, END = "<!-- published: begin -->\n", "<!-- published: end -->\n"
CLUSTERS = {"nvidia-h100-sxm5-80gb": "dgx-h100", "nvidia-a100-sxm4-80gb": "dgx-a100"}
SHORT = {"nvidia-h100-sxm5-80gb": "H100", "nvidia-a100-sxm4-80gb": "A100 80GB", "nvidia-h200-sxm-141gb": "H200", "nvidia-b200-sxm-180gb": "B200"}


def forecast(program, *words):
    done = subprocess.run([program, "forecast", *map(str, words), "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout)


def line(run, gpu, setting, unit, published, low, ours, high):
    def shown(value):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    return (f"| {run} | {gpu} | {setting} | {shown(published)} {unit} | {shown(ours)} | {shown(low)} to {shown(high)} | "
            f"{100 * (ours / published - 1):+.1f} % |"), ours / published


def training(program, data):
    """Tokens a second and GPU. MPT has a GPT-2's layers: learned positions, biases, GELU, tied embeddings; no dropout."""
    for row in csv.DictReader(open(data / "training" / "mpt_llm_foundry.csv", encoding="utf-8")):
        if (row["gpus"], row["seq"], row["precision"], row["sharding"], row["cpu_offload"]) != ("8", "2048", "amp_bf16", "FULL_SHARD", "0") \
                or row["gpu"] not in CLUSTERS:
            continue
        config = {"model_type": "gpt2", "n_embd": int(row["d_model"]), "n_head": int(row["n_heads"]), "n_layer": int(row["n_layers"]),
                  "n_positions": 2048, "vocab_size": int(row["vocab"]), "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
                  "activation_function": "gelu"}  # one kernel, torch.nn.GELU; GPT-2's own gelu_new is eight
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "config.json"
            path.write_text(json.dumps(config))
            found = forecast(program, path, "--cluster", CLUSTERS[row["gpu"]], "--mode", "training", "--batch", row["global_batch"], "--seq", 2048,
                             "--micro-batch-size", row["micro_batch"], "--dp", 8, "--zero", 3, "--dtype", "bf16", "--main-params-dtype", "fp32",
                             "--attention", "flash", "--optimizer", "adamw", "--loss", "full",
                             "--checkpointing", "full" if row["checkpointing"] == "1" else "none")
        speed = [int(row["global_batch"]) * 2048 / 8 / found[key] for key in ("latency_high_s", "latency_s", "latency_low_s")]
        yield line(f"MPT {row['model']}, training", "8 x " + SHORT[row["gpu"]],
                   f"FSDP, batch {row['global_batch']}, micro-batch {row['micro_batch']}" + (", recomputed" if row["checkpointing"] == "1" else ""),
                   "tokens/s/GPU", float(row["tokens_s_gpu"]), *speed)


def server_options(row):
    """What the row does not say, by the rules of research/servers/settings.json."""
    options = {}
    for rule in json.loads(SETTINGS.read_text(encoding="utf-8"))["rules"]:
        if all(row.get(key) in (value if isinstance(value, list) else [value]) for key, value in rule["match"].items()):
            options |= rule.get("options", {})
    for name, value in options.items():
        yield "--" + name.replace("_", "-")
        yield {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value).format(clients=row["clients"])


def servers(program, data):
    """Mean time per output token over all requests."""
    text = lzma.open(data / "servers" / "inferencex.csv.xz", "rt", encoding="utf-8").read()
    for row in csv.DictReader(io.StringIO(text)):
        wanted = row["model"] == "meta-llama--Meta-Llama-3.1-70B" and row["software"] == "vllm" and row["dtype"] == "fp8"
        if not wanted or row["origin"] != "InferenceX" or row["clients"] not in ("4", "64") or row["prompt_max"] != "1024" or row["output_max"] != "1024":
            continue
        found = forecast(program, "llama-3.1-70b", "--gpu", row["gpu"], "--software", "vllm", "--dtype", "fp8", "--kv-dtype", row["cache_dtype"] or "bf16",
                         "--tp", row["tp"], "--prompt", f"{row['prompt_min']}:{row['prompt_max']}", "--output", f"{row['output_min']}:{row['output_max']}",
                         "--concurrency", row["clients"], "--requests", row["requests"], "--max-num-batched-tokens", row["step_prompt_tokens"],
                         *server_options(row))
        mean = found["serving"]["all"]["time_per_output_token"]["mean"]
        yield line("Llama 3.1 70B FP8, vLLM server", f"{row['gpus']} x {SHORT[row['gpu']]}", f"{row['clients']} clients, {row['date']}",
                   "ms/token", 1e3 * float(row["tpot_mean_s"]), *(1e3 * mean[key] for key in ("low_s", "seconds", "high_s")))


def main():
    program, data = sys.argv[1], Path(sys.argv[2])
    text = "| run | GPUs | setting | published | forecast | 80 % interval | error |\n|---|---|---|--:|--:|--:|--:|\n"
    for name, rows in (("training", list(training(program, data))), ("servers", list(servers(program, data)))):
        text += "".join(row + "\n" for row, _ in rows)
        errors = sorted(abs(ratio - 1) for _, ratio in rows)
        text += f"| **{name}: {len(rows)} runs** | | | | | | mean {100 * sum(errors) / len(errors):.1f} %, worst {100 * errors[-1]:.1f} % |\n"
    if "--write" not in sys.argv:
        print(text, end="")
        return
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    PAGE.write_text(head + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
