#!/usr/bin/env python3
"""Training plans of all bundled models on all clusters: check_plans.py PROGRAM [--nodes 1,2] [--jobs N] [--models A,B] [--clusters A,B]

No plan ends in an internal error, and no candidate fails by a defect. Each candidate is possible: its ranks are all ranks of the
cluster, divide the batch and fit the node. Tensor parallelism divides the heads, key heads and FFN that the config states; the
script reads them without the importers. src/plan/divisibility_test.cc has a sample of it in ctest; this is all of it, minutes.
"""
import argparse
import concurrent.futures
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPACE = ["--cp", "1", "--ep", "1", "--micro-batch-size", "1", "--pipeline-schedule", "1f1b", "--zero", "1,0", "--checkpointing", "full",
         "--sequence-parallel", "off", "--dtype", "bf16", "--memory-reserve", "0", "--format", "json", "--quiet"]


def first(config: dict, *names: str) -> int:
    return next((config[name] for name in names if isinstance(config.get(name), int)), 0)


def dims(config: dict) -> dict:
    config = config.get("text_config", config)
    heads = first(config, "num_attention_heads", "n_head", "num_heads", "decoder_attention_heads", "n_heads")
    # Attention with latents has a key head for each head.
    kv_heads = 0 if "kv_lora_rank" in config else first(config, "num_key_value_heads")
    return {"heads": heads, "kv_heads": kv_heads or heads, "ffn": first(config, "intermediate_size", "n_inner", "ffn_dim", "d_ff", "decoder_ffn_dim"),
            "experts_ffn": first(config, "moe_intermediate_size")}


def wrong(candidate: dict, gpus: int, of_node: int, batch: int, sizes: dict) -> str:
    tp, pp, dp = candidate["tp"], candidate["pp"], candidate["dp"]
    ranks = tp * pp * dp * candidate.get("cp", 1)
    if ranks != gpus:
        return f"{ranks} ranks on {gpus} GPUs"
    if tp > of_node:
        return "tensor parallelism over nodes"
    if batch % (dp * candidate.get("micro_batch_size", 1)):
        return "the batch is not divided"
    if dp % candidate.get("ep", 1):
        return "experts are not divided"
    for name, size in sizes.items():
        if size and size % tp and not (name == "kv_heads" and tp % size == 0):
            return f"tp {tp} for {name} {size}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--nodes", default="1,2")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--models", default="")
    parser.add_argument("--clusters", default="")
    arguments = parser.parse_args()
    models = {path.stem: dims(json.loads(path.read_text())) for path in sorted((ROOT / "data/models").glob("*.json"))}
    clusters = {entry["id"]: entry for entry in json.loads(subprocess.run([arguments.program, "clusters", "--format", "json"], capture_output=True, check=True).stdout)}
    chosen = [(model, cluster, int(nodes)) for model in (arguments.models.split(",") if arguments.models else models)
              for cluster in (arguments.clusters.split(",") if arguments.clusters else clusters) for nodes in arguments.nodes.split(",")]

    def plan(model: str, cluster: str, nodes: int) -> tuple:
        of_node = clusters[cluster]["gpus_per_node"]
        batch = 2 * of_node * nodes
        result = subprocess.run([arguments.program, "plan", model, "--cluster", cluster, "--nodes", str(nodes), "--batch", str(batch), *SPACE],
                                capture_output=True, text=True, timeout=600)
        if result.returncode not in (0, 1) or "this is a bug" in result.stderr:
            return f"status {result.returncode}: {result.stderr.strip()[-300:]}", 0
        if result.returncode == 1:
            return "", 0  # no training, or nothing fits: said in the message
        found = json.loads(result.stdout)
        if found.get("failures"):
            return f"candidates failed: {found['failures']}", 0
        problems = {wrong(c, of_node * nodes, of_node, batch, models[model]) for c in found["candidates"]} - {""}
        return "; ".join(sorted(problems)), len(found["candidates"])

    counts, failed = Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (model, cluster, nodes), (problem, candidates) in zip(chosen, pool.map(lambda c: plan(*c), chosen)):
            counts["plans"] += 1
            counts["candidates"] += candidates
            counts["without candidates"] += candidates == 0
            if counts["plans"] % 100 == 0:
                print(f"{counts['plans']} of {len(chosen)} plans, {failed} wrong", file=sys.stderr, flush=True)
            if problem:
                failed += 1
                print(f"{model} on {nodes} x {cluster}: {problem}", flush=True)
    print(f"{counts['plans']} plans, {counts['candidates']} candidates, {counts['without candidates']} plans without one, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
