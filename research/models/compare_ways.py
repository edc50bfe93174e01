#!/usr/bin/env python3
"""Forecasts of a config and of the same model imported from PyTorch: parameters, FLOPs, kernels, latency and memory of both ways.

    research/models/compare_ways.py build/release/tilecast

Exit status 1 if parameters differ, FLOPs by more than 1 %, or latency by more than 3 %. Needs torch and transformers.
"""
import collections
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/pytorch"))
import comparison  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SMALL_LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 2816,
               "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 32000,
               "max_position_embeddings": 2048, "tie_word_embeddings": False, "rms_norm_eps": 1e-6, "hidden_act": "silu"}
# (name, config or bundled model, batch, tokens)
CASES = [("bert-base", "bert-base", 8, 512), ("gpt2", None, 8, 512), ("llama, small", SMALL_LLAMA, 4, 512), ("vit-base", "vit-base", 16, 0),
         ("resnet-50", None, 32, 0), ("mobilenet_v2", None, 32, 0)]
DEFAULTS = {"gpt2": ("GPT2Config", "GPT2LMHeadModel"), "resnet-50": ("ResNetConfig", "ResNetForImageClassification"),
            "mobilenet_v2": ("MobileNetV2Config", "MobileNetV2ForImageClassification")}
MOST_FLOPS_PERCENT, MOST_LATENCY_PERCENT = 1.0, 3.0


def config_of(name, source):
    import transformers
    if isinstance(source, dict):
        return source
    if source is not None:
        return json.loads((ROOT / "data" / "models" / f"{source}.json").read_text())
    config, architecture = DEFAULTS[name]
    return {**getattr(transformers, config)().to_dict(), "architectures": [architecture]}


def module_of(fields):
    import torch
    import transformers
    plain = {key: value for key, value in fields.items() if key not in ("model_type", "architectures")}
    config = transformers.AutoConfig.for_model(fields["model_type"], **plain)
    config.use_cache = False
    with torch.device("meta"):
        return getattr(transformers, fields["architectures"][0])._from_config(config, attn_implementation="eager")


def inputs_of(module, batch, tokens):
    import torch
    if tokens:
        return {"input_ids": torch.zeros(batch, tokens, dtype=torch.long)}
    side = getattr(module.config, "image_size", 224)
    return {"pixel_values": torch.zeros(batch, 3, side, side)}


def kinds(result):
    counts, seconds = collections.Counter(), collections.Counter()
    for kernel in result["kernels"]:
        counts[kernel["op"]] += kernel["count"]
        seconds[kernel["op"]] += kernel["count"] * kernel["latency_s"]
    return counts, seconds


def main():
    parser = comparison.parser(__doc__)
    parser.add_argument("--mode", choices=["inference", "training"], default="inference")
    parser.add_argument("--explain", action="store_true", help="time and number of the kernels of each operator")
    args = parser.parse_args()
    if not comparison.has_packages("torch", "transformers"):
        return 0
    from tilecast_torch import package
    failed = 0
    print(f"{'model':14} {'parameters':>12} {'same':>5} {'FLOPs':>10} {'imported %':>10} {'latency ms':>10} {'imported %':>10} "
          f"{'kernels':>8} {'imported':>8} {'memory MiB':>10} {'imported %':>10}")
    for name, source, batch, tokens in CASES:
        if not comparison.is_chosen(name, args.only):
            continue
        fields = config_of(name, source)
        with tempfile.TemporaryDirectory() as folder:
            config, graph = Path(folder) / "config.json", Path(folder) / "graph.tcg"
            config.write_text(json.dumps(fields, default=str))
            module = module_of(fields)
            graph.write_text(package.export_graph(module, (), inputs_of(module, batch, tokens), mode=args.mode))
            step = ["--optimizer", "none"] if args.mode == "training" else []
            options = ["--batch", str(batch), "--dtype", "fp32", *(["--seq", str(tokens)] if tokens else []),
                       "--attention", "eager", *step, *(["--loss", "none"] if args.mode == "training" else [])]
            ours = comparison.forecast(args.tilecast, config, "--mode", args.mode, *options)
            imported = comparison.forecast(args.tilecast, graph, "--mode", args.mode, *step)

        def percent(key, part=None):
            a, b = (r[part][key] if part else r[key] for r in (ours, imported))
            return comparison.percent(b, a)

        same = ours["parameters"] == imported["parameters"]
        bad = not same or abs(percent("flops")) > MOST_FLOPS_PERCENT or abs(percent("latency_s")) > MOST_LATENCY_PERCENT
        failed += bad
        (counts, seconds), (others, theirs) = kinds(ours), kinds(imported)
        print(f"{name:14} {ours['parameters']:12} {'yes' if same else 'NO':>5} {ours['flops'] / 1e9:9.1f}G {percent('flops'):+10.2f} "
              f"{1e3 * ours['latency_s']:10.3f} {percent('latency_s'):+10.2f} {sum(counts.values()):8} {sum(others.values()):8} "
              f"{ours['memory']['peak_bytes'] / 2**20:10.0f} {percent('peak_bytes', 'memory'):+10.2f}{'  FAIL' if bad else ''}", flush=True)
        if args.explain:
            for op in sorted({*seconds, *theirs}, key=lambda op: -max(seconds[op], theirs[op])):
                print(f"    {op:28} {counts[op]:6} x {1e3 * seconds[op]:9.3f} ms   imported {others[op]:6} x {1e3 * theirs[op]:9.3f} ms")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
