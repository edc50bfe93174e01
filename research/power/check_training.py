#!/usr/bin/env python3
"""Published training steps of MPT (llm-foundry) with the boost clock and with the one that power allows.

    check_training.py TILECAST mpt_llm_foundry.csv

FSDP on nodes of 8 GPUs, as GPT-2 of the same sizes with flash attention; rows without offloading and FP8.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

CLUSTERS = {"nvidia-h100-sxm5-80gb": "dgx-h100", "nvidia-a100-sxm4-80gb": "dgx-a100"}


def step(program, folder, row, clocks):
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": int(row["d_model"]), "n_head": int(row["n_heads"]),
              "n_layer": int(row["n_layers"]), "n_positions": int(row["seq"]), "vocab_size": int(row["vocab"]), "activation_function": "gelu"}
    path = Path(folder) / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    zero = "3" if row["sharding"] == "FULL_SHARD" else "2"
    done = subprocess.run([program, "forecast", str(path), "--cluster", CLUSTERS[row["gpu"]], "--mode", "training", "--batch", row["global_batch"],
                           "--seq", row["seq"], "--micro-batch-size", row["micro_batch"], "--dp", row["gpus"], "--zero", zero, "--dtype", "bf16",
                           "--main-params-dtype", "fp32", "--attention", "flash", "--clocks", clocks, "--format", "json",
                           "--checkpointing", "full" if row["checkpointing"] == "1" else "none"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    program, table = sys.argv[1:3]
    with open(table, encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if row["gpu"] in CLUSTERS and row["cpu_offload"] != "1" and row["precision"] != "amp_fp8"]
    errors = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            for clocks in ("boost", "sustained"):
                f = step(program, folder, row, clocks)
                if f is None:
                    continue
                errors.setdefault((row["gpu"], clocks), []).append((f["latency_s"] / float(row["step_s"]) - 1, f["power"]["power_w"],
                                                                    f["power"]["clock_hz"] / 1e6))
    for (gpu, clocks), found in sorted(errors.items()):
        print(f"{gpu}, {clocks}: {len(found)} steps, median error {100 * median(abs(e) for e, _, _ in found):.1f} %, "
              f"bias {100 * median(e for e, _, _ in found):+.1f} %; median {median(w for _, w, _ in found):.0f} W, "
              f"{median(m for _, _, m in found):.0f} MHz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
