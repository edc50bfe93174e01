#!/usr/bin/env python3
"""The tables of parameters and FLOPs that tests/model_types_test.cc compares Tilecast with.

Each model type's default config of transformers is instantiated on PyTorch's meta device (encoders on the
CPU where their code looks at values); torch.utils.flop_counter counts one pass with eager attention. A line
of tests/model_types/NAME.jsonl is one type, labelled by its name, or one with other fields:
    {"label", "type", "class", "batch", "seq", "parameters", "forward_flops", "training_flops", "config"}
`config` is what save_pretrained writes, with the class in `architectures` (encoders), or all fields but
NOISE (decoders); `seq` 0: the config fixes the length.
`training_flops` counts forward and backward. Not counted of decoders: the tables of rotary angles, and
within recurrent layers (Mamba-2, gated delta nets) everything but their linear layers, for transformers'
slow fallback runs other products than the libraries' kernels. `forward_flops` is null where transformers
does other work than the model needs, `training_flops` where PyTorch cannot count it: experts and scans of
decoders have no products in the backward pass that it counts.
Needs torch and transformers.

    tests/pytorch/model_types.py encoders|decoders|multimodal [LABEL...]     rewrites a table, or only the lines of some labels
"""
import argparse
import json
import math
import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "model_types"

# Encoders and the like. type: class, kind of input, batch, seq
TYPES = {
    "encoders": {
        **{t: (c, "text", 2, 128) for t, c in {
            "bert": "BertForMaskedLM", "roberta": "RobertaForMaskedLM", "xlm-roberta": "XLMRobertaForMaskedLM",
            "camembert": "CamembertForMaskedLM", "data2vec-text": "Data2VecTextForMaskedLM",
            "ernie": "ErnieForPreTraining", "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
            "xlm-roberta-xl": "XLMRobertaXLForMaskedLM", "megatron-bert": "MegatronBertForPreTraining",
            "distilbert": "DistilBertForMaskedLM", "albert": "AlbertForPreTraining", "electra": "ElectraForPreTraining",
            "deberta-v2": "DebertaV2ForMaskedLM", "mpnet": "MPNetForMaskedLM", "modernbert": "ModernBertForMaskedLM",
        }.items()},
        **{t: (c, "seq2seq", 2, 96) for t, c in {
            "bart": "BartForConditionalGeneration", "mbart": "MBartForConditionalGeneration", "marian": "MarianMTModel",
            "pegasus": "PegasusForConditionalGeneration", "m2m_100": "M2M100ForConditionalGeneration",
            "plbart": "PLBartForConditionalGeneration", "blenderbot": "BlenderbotForConditionalGeneration",
            "blenderbot-small": "BlenderbotSmallForConditionalGeneration", "t5": "T5ForConditionalGeneration",
            "mt5": "MT5ForConditionalGeneration", "umt5": "UMT5ForConditionalGeneration",
        }.items()},
        **{t: (c, "image", 2, 0) for t, c in {
            "vit": "ViTForImageClassification", "deit": "DeiTForImageClassification", "beit": "BeitForImageClassification",
            "dinov2": "Dinov2ForImageClassification", "dinov2_with_registers": "Dinov2WithRegistersForImageClassification",
            "swin": "SwinForImageClassification", "resnet": "ResNetForImageClassification",
            "regnet": "RegNetForImageClassification", "mobilenet_v1": "MobileNetV1ForImageClassification",
            "mobilenet_v2": "MobileNetV2ForImageClassification", "efficientnet": "EfficientNetForImageClassification",
            "convnext": "ConvNextForImageClassification", "convnextv2": "ConvNextV2ForImageClassification",
        }.items()},
        "clip": ("CLIPModel", "pair", 2, 77), "siglip": ("SiglipModel", "pair", 2, 64),
        "siglip2": ("Siglip2Model", "patches", 2, 64), "whisper": ("WhisperForConditionalGeneration", "mel", 2, 64),
        "wav2vec2": ("Wav2Vec2ForCTC", "wave", 2, 32000), "hubert": ("HubertForCTC", "wave", 2, 32000),
    },
}

# The same types with other fields, as published models have them: label: type, class, kind of input, batch, seq, fields.
V3_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
           "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
           "pos_att_type": "p2c|c2p", "position_biased_input": False, "max_relative_positions": -1}
VARIANTS = {
    "encoders": {
        "deberta-v3-base": ("deberta-v2", "DebertaV2ForSequenceClassification", "text", 2, 128, V3_BASE),
        "deberta-v2-xlarge": ("deberta-v2", "DebertaV2Model", "text", 1, 64,
                              {**V3_BASE, "conv_kernel_size": 3, "conv_act": "gelu", "share_att_key": False, "num_hidden_layers": 3}),
        "bert-tokens": ("bert", "BertForTokenClassification", "text", 2, 64, {"num_labels": 9}),
        "bert-model": ("bert", "BertModel", "text", 2, 64, {}),
        "roberta-classes": ("roberta", "RobertaForSequenceClassification", "text", 2, 64, {"num_labels": 3}),
        "distilbert-classes": ("distilbert", "DistilBertForSequenceClassification", "text", 2, 64, {}),
        "distilbert-answers": ("distilbert", "DistilBertForQuestionAnswering", "text", 2, 64, {}),
        "albert-groups": ("albert", "AlbertForMaskedLM", "text", 2, 64,
                          {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_groups": 5, "inner_group_num": 2}),
        "electra-masked": ("electra", "ElectraForMaskedLM", "text", 2, 64, {}),
        "electra-classes": ("electra", "ElectraForSequenceClassification", "text", 2, 64, {}),
        "mpnet-model": ("mpnet", "MPNetModel", "text", 2, 64, {}),
        "modernbert-classes": ("modernbert", "ModernBertForSequenceClassification", "text", 2, 200,
                               {"num_hidden_layers": 6, "attention_bias": True, "norm_bias": True}),
        "bart-classes": ("bart", "BartForSequenceClassification", "seq2seq", 1, 40, {}),
        "marian-two-tables": ("marian", "MarianMTModel", "seq2seq", 2, 40,
                              {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 60000, "vocab_size": 58101}),
        "deit-teacher": ("deit", "DeiTForImageClassificationWithTeacher", "image", 2, 0, {"num_labels": 1000}),
        "beit-biases": ("beit", "BeitForImageClassification", "image", 2, 0, {"use_relative_position_bias": True}),
        "beit-model": ("beit", "BeitModel", "image", 2, 0,
                       {"use_shared_relative_position_bias": True, "use_mask_token": True, "use_mean_pooling": False}),
        "dinov2-giant": ("dinov2", "Dinov2Model", "image", 1, 0, {"use_swiglu_ffn": True, "image_size": 518, "num_hidden_layers": 2}),
        "swin-window-12": ("swin", "SwinModel", "image", 1, 0, {"image_size": 384, "window_size": 12, "depths": [2, 2, 3, 2]}),
        "resnet-18": ("resnet", "ResNetForImageClassification", "image", 2, 0,
                      {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "num_labels": 1000}),
        "resnet-early-stride": ("resnet", "ResNetModel", "image", 2, 0, {"downsample_in_bottleneck": True, "downsample_in_first_stage": True}),
        "regnet-x": ("regnet", "RegNetForImageClassification", "image", 2, 0, {"layer_type": "x", "groups_width": 16}),
        "mobilenet-v1-0.75": ("mobilenet_v1", "MobileNetV1ForImageClassification", "image", 2, 0, {"depth_multiplier": 0.75, "image_size": 192}),
        "mobilenet-v2-1.4": ("mobilenet_v2", "MobileNetV2ForImageClassification", "image", 2, 0,
                             {"depth_multiplier": 1.4, "tf_padding": False, "num_labels": 1001}),
        "mobilenet-v2-0.35": ("mobilenet_v2", "MobileNetV2Model", "image", 2, 0,
                              {"depth_multiplier": 0.35, "image_size": 96, "first_layer_is_expansion": False}),
        "efficientnet-b0": ("efficientnet", "EfficientNetForImageClassification", "image", 2, 0,
                            {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280, "image_size": 224}),
        "efficientnet-odd": ("efficientnet", "EfficientNetModel", "image", 1, 0,
                             {"width_coefficient": 1.0, "depth_coefficient": 1.1, "hidden_dim": 1280, "image_size": 240, "depthwise_padding": [5, 16]}),
        "convnext-no-scale": ("convnext", "ConvNextModel", "image", 2, 0, {"layer_scale_init_value": 0.0, "depths": [1, 2, 1, 1]}),
        "wav2vec2-large": ("wav2vec2", "Wav2Vec2ForCTC", "wave", 1, 8000,
                           {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True, "num_hidden_layers": 2}),
        "hubert-classes": ("hubert", "HubertForSequenceClassification", "wave", 1, 8000,
                           {"conv_pos_batch_norm": True, "feat_proj_layer_norm": False, "num_conv_pos_embeddings": 127, "num_labels": 5}),
    },
}


DECODERS = """afmoe arcee bamba biogpt bloom codegen cohere cohere2 cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4
ernie4_5 ernie4_5_moe exaone4 exaone_moe falcon flex_olmo gemma gemma2 gemma3_text gemma4_text glm glm4 glm4_moe glm4_moe_lite
glm_moe_dsa gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granite_swa granitemoe granitemoe_swa granitemoehybrid
granitemoeshared helium hy_v3 jais2 kimi_linear llama llama4_text mamba2 mimo_v2_flash minimax_m2 minimax_m3_vl_text ministral3 mistral mixtral mpt nanochat
nemotron nemotron_h olmo olmo2 olmo3 olmoe opt persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_5_moe_text qwen3_5_text
qwen3_moe qwen3_next seed_oss smollm3 solar_open stablelm starcoder2 vaultgemma xglm youtu""".split()
# Fields that a default config lacks, or in which it contradicts itself.
DECODER_FIELDS = {"deepseek_v2": {"num_experts_per_tok": 6}, "nemotron": {"num_key_value_heads": 8},
                  "glm4_moe": {"head_dim": 128}}
# Fields of all models that say nothing about their shape.
NOISE = ("transformers_version", "_attn_implementation", "id2label", "label2id", "dtype", "_name_or_path",
         "initializer_range", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id", "problem_type",
         "output_attentions", "output_hidden_states", "return_dict", "chunk_size_feed_forward")
# Language models with a vision tower. type: fields that a default config lacks, or in which it contradicts itself.
MULTIMODAL = {
    "qwen2_vl": {}, "qwen2_5_vl": {}, "qwen3_vl": {}, "qwen3_vl_moe": {}, "qwen3_5": {}, "qwen3_5_moe": {}, "kimi_k25": {},
    "gemma3": {"vision_config": {"image_size": 896, "patch_size": 14}},
    "gemma4": {"vision_config": {"model_type": "gemma4_vision"}},
    "llama4": {"vision_config": {"hidden_size": 1408, "vision_output_dim": 4096}},
    "mistral3": {},
}
# transformers computes every expert for every token.
DECODERS_NOT_COUNTED = ("llama4_text",)
DECODER_BATCH, DECODER_SEQ = 2, 128


def inputs_of(kind: str, config, batch: int, seq: int, device) -> dict:
    import torch

    ids = torch.zeros(batch, seq, dtype=torch.long, device=device)
    if kind == "seq2seq":
        ids[:, -1] = config.eos_token_id  # which classifiers look for
    vision = getattr(config, "vision_config", config)
    if kind in ("image", "pair"):
        side = getattr(vision, "image_size", 224)  # 224: the size of ImageNet's crops, where a config names none
        pixels = torch.zeros(batch, 3, side, side, device=device)
        return {"pixel_values": pixels, **({"input_ids": ids} if kind == "pair" else {})}
    if kind == "patches":  # an image of num_patches patches
        side = int(vision.num_patches ** 0.5)
        return {"input_ids": ids, "spatial_shapes": torch.full((batch, 2), side),
                "pixel_values": torch.zeros(batch, side * side, 3 * vision.patch_size ** 2, device=device),
                "pixel_attention_mask": torch.ones(batch, side * side, dtype=torch.long, device=device)}
    if kind == "wave":
        return {"input_values": torch.zeros(batch, seq, device=device)}
    if kind == "mel":
        mel = torch.zeros(batch, config.num_mel_bins, 2 * config.max_source_positions, device=device)
        return {"input_features": mel, "decoder_input_ids": ids, "use_cache": False}
    if kind == "seq2seq":
        return {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}
    return {"input_ids": ids}


def convolution_backward(dy, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask, *rest, **named):
    """Each gradient has as many FLOPs as the forward pass. PyTorch 2.13's own formula leaves out the division by `groups`."""
    forward = 2 * math.prod(dy) * math.prod(weight[1:])  # shapes: dy [b, o, ...], weight [o, c / groups, ...]
    return forward * (bool(mask[0]) + bool(mask[1]))


def counted(model, inputs: dict, training: bool) -> int:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model.train(training)
    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.convolution_backward: convolution_backward})
    with counter, torch.set_grad_enabled(training):
        output = model(**inputs)
        if training:
            # The outputs that a loss reads; encoder_last_hidden_state and the like are on the way to them.
            heads = [t for t in output.to_tuple() if torch.is_tensor(t) and t.requires_grad]
            sum(t.float().sum() for t in heads).backward()
    return counter.get_total_flops()


def row(name: str, of: tuple, fields: dict, label: str) -> dict:
    import torch
    import transformers

    class_name, kind, batch, seq = of

    def fresh():
        config = transformers.AutoConfig.for_model(name, **fields)
        config._attn_implementation = "eager"
        return config

    written = dict(fresh().to_diff_dict(), architectures=[class_name])
    written.pop("transformers_version", None)
    written.pop("_attn_implementation", None)

    def count(device: str, training: bool) -> tuple:
        with torch.device(device):
            model = getattr(transformers, class_name)._from_config(fresh())
        for field in ("layerdrop", "mask_time_prob", "mask_feature_prob"):  # random numbers of layers and of masks
            for part in (model.config, *model.modules()):
                if hasattr(part, field):
                    setattr(part, field, 0.0)
        for part in model.modules():  # wav2vec 2.0 asks for a gradient of its input, for the sake of checkpointing
            if hasattr(part, "_requires_grad"):
                part._requires_grad = False
        parameters = sum(p.numel() for p in model.parameters())
        return parameters, counted(model, inputs_of(kind, model.config, batch, seq, device), training)

    def on_some_device(training: bool):
        try:
            return count("meta", training)
        except (NotImplementedError, RuntimeError) as error:
            print(f"{name}: on the CPU, for the meta device says: {str(error).splitlines()[0][:100]}", file=sys.stderr)
            return count("cpu", training)

    parameters, forward = on_some_device(False)
    training = on_some_device(True)[1]
    return {"label": label, "type": name, "class": class_name, "batch": batch, "seq": seq, "parameters": parameters,
            "forward_flops": forward, "training_flops": training, "config": written}


def is_recurrent(module) -> bool:
    return hasattr(module, "conv1d") and hasattr(module, "A_log") or type(module).__name__.endswith("DeltaAttention")


def counted_decoder(model) -> int:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    # A ready mask: making one looks at values, which the meta device does not have.
    inputs = {"input_ids": torch.zeros(DECODER_BATCH, DECODER_SEQ, dtype=torch.long, device="meta"), "use_cache": False,
              "attention_mask": torch.zeros(DECODER_BATCH, 1, DECODER_SEQ, DECODER_SEQ, device="meta")}
    kind = model.config.model_type
    if kind in ("opt", "biogpt", "xglm"):  # which would count positions from the mask
        inputs["position_ids"] = inputs["input_ids"]
    if kind in ("bloom", "mpt", "falcon", "mamba2", "xglm"):
        inputs["attention_mask"] = None
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(**{k: v for k, v in inputs.items() if v is not None})
    by_module = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    root = type(model).__name__
    total = by_module["Global"]
    for name, module in model.named_modules():
        if name.endswith("rotary_emb") and "." in name:
            total -= by_module.get(f"{root}.{name}", 0)
        if is_recurrent(module):
            total -= by_module.get(f"{root}.{name}", 0)
            for part, child in module.named_modules():
                if isinstance(child, torch.nn.Linear):
                    total += by_module.get(f"{root}.{name}.{part}", 0)
    return total


def decoder_row(name: str) -> dict:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **DECODER_FIELDS.get(name, {}))
    written = {k: v for k, v in json.loads(config.to_json_string(use_diff=False)).items() if k not in NOISE}
    config._attn_implementation = "eager"
    config._experts_implementation = "batched_mm"
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.eval()
    return {"label": name, "type": name, "class": type(model).__name__, "batch": DECODER_BATCH, "seq": DECODER_SEQ,
            "parameters": sum(p.numel() for p in model.parameters()),
            "forward_flops": None if name in DECODERS_NOT_COUNTED else counted_decoder(model), "training_flops": None, "config": written}


def multimodal_row(name: str) -> dict:
    """The whole model: `vision_parameters` are those of the tower with its projector."""
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **MULTIMODAL[name])

    def bare(fields):
        return {k: bare(v) if isinstance(v, dict) else v for k, v in fields.items() if k not in NOISE and k != "audio_config"}

    written = bare(json.loads(config.to_json_string(use_diff=False)))
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config)
    parameters = list(model.named_parameters())
    return {"label": name, "type": name, "class": type(model).__name__, "batch": 1, "seq": 64,
            "parameters": sum(p.numel() for _, p in parameters),
            "vision_parameters": sum(p.numel() for n, p in parameters if "language_model" not in n and n != "lm_head.weight"),
            "forward_flops": None, "training_flops": None, "config": written}


def rows_of(table: str) -> dict:
    """The label of each line, and what counts it."""
    if table == "multimodal":
        return {name: (lambda name=name: multimodal_row(name)) for name in MULTIMODAL}
    if table == "decoders":
        return {name: (lambda name=name: decoder_row(name)) for name in DECODERS}
    every = {name: (name, of, {}) for name, of in TYPES[table].items()}
    every |= {label: (of[0], of[1:5], of[5]) for label, of in VARIANTS.get(table, {}).items()}
    return {label: (lambda label=label, of=of: row(of[0], of[1], of[2], label)) for label, of in every.items()}


def shown(number) -> str:
    return "not counted" if number is None else f"{number:.6e}"


def main() -> int:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description="Rewrites a table of tests/model_types.")
    parser.add_argument("table", choices=[*TYPES, "decoders", "multimodal"])
    parser.add_argument("labels", nargs="*")
    given = parser.parse_args()
    path = FOLDER / f"{given.table}.jsonl"
    known = {}
    if path.exists():
        known = {r["label"]: r for r in map(json.loads, path.read_text().splitlines())}
    every = rows_of(given.table)
    for label, count in every.items():
        if given.labels and label not in given.labels:
            continue
        try:
            known[label] = line = count()
            print(f"{label:22} {line['parameters']:15,} {shown(line['forward_flops'])} {shown(line['training_flops'])}", flush=True)
        except Exception as error:  # the others are still counted
            print(f"{label}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    path.write_text("".join(json.dumps(known[label]) + "\n" for label in every if label in known))
    return 0


if __name__ == "__main__":
    sys.exit(main())
