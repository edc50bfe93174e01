#!/usr/bin/env python3
"""Real config.json files (../shared/data/configs) are forecast with the parameters that their names say and in the types that they
name, or refused as a family that is not known.

    tests/check_configs.py <tilecast>
"""
import json
import re
import subprocess
import sys
from pathlib import Path

CONFIGS = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "configs"

# Names that say no total, or a rough one, in billions: the model cards. Mixtral's experts share everything but their MLPs; DeepSeek-R1
# and Kimi K2 without the layer that predicts further tokens; MiMo-7B has 7.8 with it; Nemotron 3's 30B is 31.6.
PUBLISHED = {"Mixtral-8x7B": 46.7, "Mixtral-8x22B": 140.6, "DeepSeek-R1": 671, "DeepSeek-V3": 671, "DeepSeek-V4-Pro": 1600,
             "DeepSeek-V4-Flash": 284, "Kimi-K2": 1026, "MiniMax-M2": 229, "GLM-5": 744, "Step-3.7": 196, "MiMo-7B": 7.8,
             "Lightning-30B": 31.6}
# Active parameters of a token where the name's number is rounded: the report on Nemotron 3 Nano has 3.2, and 3.6 with embeddings.
ACTIVE = {"Lightning-30B": 3.2}
# Parameters of language model and vision tower, as Transformers 5.23 counts them on PyTorch's meta device; of MiniMax M3, whose tower
# is not forecast, those of the language model (5.24).
COUNTED = {"Qwen--Qwen3-VL-235B-A22B-Instruct": 235670022896, "Qwen--Qwen3-VL-32B-Instruct": 33357390064,
           "Qwen--Qwen3-VL-4B-Instruct": 4437815808, "nvidia--Gemma-4-31B-IT-NVFP4": 31273086512,
           "nvidia--Kimi-K2.5-NVFP4": 1026879353328, "nvidia--Qwen3.5-122B-A10B-NVFP4": 122562817776,
           "MiniMaxAI--MiniMax-M3": 426174565632, "nvidia--MiniMax-M3-NVFP4": 426174565632,
           "nvidia--Qwen3.6-27B-NVFP4": 27356728560, "nvidia--Qwen3.6-35B-A3B-NVFP4": 35107181936}
TOLERANCE = 0.05
# Families that are not supported yet; any other refusal is a failure.
UNSUPPORTED = set()
REFUSED = "refused"


def kimi_k3(text: dict) -> int:
    """Parameters of Kimi K3's language model from its config: Transformers has Kimi Linear, not K3."""
    hidden, heads, layers = text["hidden_size"], text["num_attention_heads"], text["num_hidden_layers"]
    linear = text["linear_attn_config"]
    delta, full = len(linear["kda_layers"]), len(linear["full_attn_layers"])
    width, dim = linear["num_heads"] * linear["head_dim"], linear["head_dim"]
    kda = (4 * hidden * width + hidden * width  # q, k, v, output; the gate of full rank
           + hidden * dim + dim * width + hidden * linear["num_heads"]  # decay, update rate
           + 3 * width * linear["short_conv_kernel_size"] + width + linear["num_heads"] + dim)  # convolution, dt_bias, A_log, norm
    nope, rope, value = text["qk_nope_head_dim"], text["qk_rope_head_dim"], text["v_head_dim"]
    query, latent = text["q_lora_rank"], text["kv_lora_rank"]
    mla = (hidden * query + query + query * heads * (nope + rope) + hidden * (latent + rope) + latent
           + latent * heads * (nope + value) + 2 * hidden * heads * value)  # the output, and its gate
    inner, narrow, experts = text["moe_intermediate_size"], text["routed_expert_hidden_size"], text["num_experts"]
    moe = (experts * 3 * narrow * inner + experts * hidden + 2 * hidden * narrow + narrow
           + text["num_shared_experts"] * 3 * hidden * inner)
    dense = text["first_k_dense_replace"]
    return (2 * text["vocab_size"] * hidden + hidden + layers * 2 * hidden + delta * kda + full * mla
            + dense * 3 * hidden * text["intermediate_size"] + (layers - dense) * moe)


def billions(name: str, stated: dict, pattern: str):
    """Of a table of published numbers where it has the name, else the number in the name; None if neither has one."""
    for part, number in stated.items():
        if part in name:
            return number
    sizes = re.findall(pattern, name)
    return float(sizes[0]) if sizes else None


def said(name: str):
    return billions(name, PUBLISHED, r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[bB](?![A-Za-z])")


def active(name: str):
    return billions(name, ACTIVE, r"-A(\d+(?:\.\d+)?)B")


def active_parameters(tilecast: str, folder: Path) -> tuple:
    """Of one token, without and with the embedding table, both of which names count: half the FLOPs of its products."""
    config = json.loads((folder / "config.json").read_text().replace("Infinity", "0"))
    text = config.get("text_config", config)
    command = [tilecast, "forecast", str(folder), "--gpu", "H100", "--format", "json", "--mode", "inference", "--seq", "1",
               "--dtype", "bf16"]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    products = sum(k["flops"] * k["count"] for k in result["kernels"] if k["op"] in ("linear", "matmul", "experts", "grouped_linear"))
    return products / 2e9, (products / 2 + text["vocab_size"] * text["hidden_size"]) / 1e9


def sources_named(folder: Path) -> list:
    """The sources that the forecast's type must have one of; none where the config names no type."""
    text = (folder / "config.json").read_text()
    beside = folder / "hf_quant_config.json"
    if '"quantization_config"' in text:
        return ["quantization_config"]
    if beside.exists() and json.loads(beside.read_text()).get("quantization", {}).get("quant_algo"):
        return ["hf_quant_config.json"]
    return ["torch_dtype", "dtype"] if re.search(r'"(torch_)?dtype"', text) else []


TOKENS = ["--prompt", "128", "--output", "8", "--tp", "8"]


def counts(tilecast: str, folder: Path, forecast: dict) -> list:
    """Parameters in billions that a name may state: those of the model and, of one with a vision tower, of the language model alone
    (Qwen3-VL-4B: 4.44 and 4.02)."""
    text = (folder / "config.json").read_text()
    found = [forecast["parameters"] / 1e9]
    if '"vision_config"' in text and forecast.get("vision") is None:
        command = [tilecast, "forecast", str(folder), "--gpu", "H100", "--format", "json"] + TOKENS
        found.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["parameters"] / 1e9)
    return found


def check(tilecast: str, folder: Path, form: list) -> str:
    command = [tilecast, "forecast", str(folder), "--gpu", "H100", "--format", "json"] + form
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 1 and ("unknown family" in run.stderr or "is not forecast" in run.stderr):
        return REFUSED
    if run.returncode != 0:
        return f"exit {run.returncode}: {run.stderr.strip()}"
    forecast = json.loads(run.stdout)
    billions = said(folder.name)
    if billions and all(abs(found / billions - 1) > TOLERANCE for found in counts(tilecast, folder, forecast)):
        return f"{forecast['parameters'] / 1e9:.2f} G parameters, its name says {billions}"
    counted = COUNTED.get(folder.name)
    if folder.name == "moonshotai--Kimi-K3":
        counted = kimi_k3(json.loads((folder / "config.json").read_text())["text_config"])
    if counted and "--mode" in form and forecast["parameters"] != counted:  # text generation states those of the language model
        return f"{forecast['parameters']} parameters; Transformers counts {counted}"
    sources = sources_named(folder)
    if sources and forecast["dtype_source"] not in sources:
        return f"{forecast['dtype']} ({forecast['dtype_source']}), though the config names a type in {' or '.join(sources)}"
    return ""


def main() -> int:
    if not CONFIGS.is_dir():
        print("skipped: no ../shared/data/configs")
        return 0
    folders = sorted(p for p in CONFIGS.iterdir() if (p / "config.json").exists())
    failed, refused = 0, set()
    for folder in folders:
        for form in (["--mode", "inference", "--seq", "128"], TOKENS):
            problem = check(sys.argv[1], folder, form)
            if problem == REFUSED:
                refused.add(folder.name)
            elif problem:
                print(f"{folder.name} {' '.join(form[:2])}: {problem}")
                failed += 1
        said_active = active(folder.name)
        if said_active and folder.name not in refused:
            found = active_parameters(sys.argv[1], folder)
            if all(abs(f / said_active - 1) > TOLERANCE for f in found):
                print(f"{folder.name}: {found[0]:.2f} to {found[1]:.2f} G active parameters, its name says {said_active}")
                failed += 1
    print(f"{2 * len(folders) - failed} checks passed, {failed} failed; {len(refused)} refused: {', '.join(sorted(refused)) or 'none'}")
    return 1 if failed or set(refused) - UNSUPPORTED else 0


if __name__ == "__main__":
    sys.exit(main())
