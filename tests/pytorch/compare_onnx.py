#!/usr/bin/env python3
"""Compares forecasts of exported ONNX files with those of the same models' configs.

Each model is built with few layers and random weights, exported with both of PyTorch's exporters, and forecast by its
config.json and by its ONNX file: parameters must be equal, FLOPs within 1 %, latencies within 3 %. Needs torch, onnx,
onnxscript and transformers from PyPI. Exit status 1 where a model differs by more.

    tests/pytorch/compare_onnx.py PROGRAM [-o FOLDER] [--only bert,vit] [--exporters dynamo,script] [--gpu A100]
"""
import json
import sys
import tempfile
from pathlib import Path

import comparison

MOST_FLOPS_PERCENT, MOST_LATENCY_PERCENT = 1, 3
# Sizes at which kernels take longer than their launches.
BATCH, TOKENS, PIXELS = 8, 512, 224
TEXT, IMAGE, SPEECH, PAIR = "text", "image", "speech", "pair"
# name: class, fields of the config beside its defaults, input. Small where size does not matter for the comparison.
MODELS = {
    "bert-base": ("BertModel", {}, TEXT),
    "gpt2": ("GPT2LMHeadModel", {"use_cache": False}, TEXT),
    "llama": ("LlamaForCausalLM", {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
                                   "num_attention_heads": 16, "num_key_value_heads": 4, "use_cache": False}, TEXT),
    "vit-base": ("ViTForImageClassification", {}, IMAGE),
    "resnet-50": ("ResNetForImageClassification", {}, IMAGE),
    "mobilenet_v2": ("MobileNetV2ForImageClassification", {}, IMAGE),
    "distilbert": ("DistilBertModel", {}, TEXT),
    "convnext": ("ConvNextForImageClassification", {}, IMAGE),
    "t5": ("T5ForConditionalGeneration", {"use_cache": False, "decoder_start_token_id": 0}, PAIR),
}


def build(name: str):
    """The model in evaluation, its config as it would be published, and an example input."""
    import torch
    import transformers

    kind, fields, what = MODELS[name]
    torch.manual_seed(0)
    model_class = getattr(transformers, kind)
    config = model_class.config_class(**fields)
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    # Exporters store equal tensors once; trained weights are not equal.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.01)
    ids = torch.randint(0, 100, (BATCH, TOKENS))
    inputs = {TEXT: {"input_ids": ids}, PAIR: {"input_ids": ids, "decoder_input_ids": ids},
              IMAGE: {"pixel_values": torch.randn(BATCH, 3, PIXELS, PIXELS)}}[what]
    published = {**config.to_diff_dict(), **config.to_dict(), "architectures": [kind]}
    return model, published, inputs


def export(model, inputs: dict, path: Path, exporter: str):
    import torch

    if exporter == "dynamo":
        torch.onnx.export(model, (), str(path), kwargs=inputs, dynamo=True, verbose=False, optimize=False)
    else:  # batch norms stay as they are
        torch.onnx.export(model, (inputs,), str(path), dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.PRESERVE, input_names=list(inputs))


def compare(args, name: str, exporter: str, folder: Path) -> bool:
    model, config, inputs = build(name)
    parameters = sum(p.numel() for p in model.parameters())
    (folder / name).mkdir(exist_ok=True)
    config_path, path = folder / name / "config.json", folder / f"{name}.{exporter}.onnx"
    config_path.write_text(json.dumps(config, default=str))
    export(model, inputs, path, exporter)
    options = ["--batch", str(BATCH)]
    if "input_ids" in inputs:
        options += ["--seq", str(TOKENS)]
    by_config = comparison.forecast(args.tilecast, config_path, "--dtype", "fp32", "--attention", "eager", *options, gpu=args.gpu)
    by_file = comparison.forecast(args.tilecast, path, "--dtype", "fp32", gpu=args.gpu)
    flops = comparison.percent(by_file["flops"], by_config["flops"])
    latency = comparison.percent(by_file["latency_s"], by_config["latency_s"])
    good = (by_file["parameters"] == parameters and abs(flops) <= MOST_FLOPS_PERCENT
            and abs(latency) <= MOST_LATENCY_PERCENT)
    print(f"{name:14} {exporter:7} parameters {by_file['parameters']:>11} of {parameters:>11}  FLOPs {flops:+6.2f} %  "
          f"latency {latency:+6.2f} %  {'' if good else 'DIFFERS'}", flush=True)
    return good


def main() -> int:
    parser = comparison.parser(__doc__)
    parser.add_argument("-o", "--folder", help="keeps the exported files here")
    parser.add_argument("--exporters", default="dynamo,script")
    parser.add_argument("--gpu", default="A100")
    args = parser.parse_args()
    if not comparison.has_packages("torch", "onnx", "onnxscript", "transformers"):
        return 0
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in filter(lambda name: comparison.is_chosen(name, args.only), MODELS):
            for exporter in args.exporters.split(","):
                try:
                    good = compare(args, name, exporter, folder)
                except Exception as error:  # an exporter's own errors have many types
                    print(f"{name:14} {exporter:7} FAILED: {type(error).__name__}: {str(error)[:300]}", flush=True)
                    good = False
                if not good:
                    failed.append(f"{name} ({exporter})")
    print(f"{len(failed)} differ" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
