#!/usr/bin/env python3
"""Compares the kernels of a forecast with the per-node label CSVs of the NeuSight data set.

For each label CSV of bert_large, gpt2_large and opt_13 (one layer with prologue and epilogue, node
by node with measured times) it lists every node that launches a kernel, the node of Tilecast's graph
that stands for it, and what has no partner. A node that launches nothing shows the call overhead
alone (about 7 to 35 us); times are counted above that.

    research/laws/compare_labels.py <scripts/asplos of the NeuSight repository> [--gpu V100]
"""
import argparse
import csv
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Nodes of the traced graph that are Python values or views: they launch nothing.
NO_KERNEL = re.compile(
    r"^(size|dim|getitem|getattr|view|permute|transpose|split|unsqueeze|expand|finfo|type|to|reshape|"
    r"add|sub|mul|pow|eq|gt|lt|ne|cumsum|long|arange|full|ones|tensor|dropout|masked_fill_)(_\d+)?$")

# What a traced node becomes in Tilecast's graph: pattern of the label's name → names of our nodes.
RULES = {
    "bert_large": [
        (r"^bert_embeddings_(\w+_embeddings)$", [r"embeddings.\1"]),
        (r"^bert_embeddings_layer_norm$", ["embeddings.LayerNorm"]),
        (r"^bert_embeddings_dropout$", ["embeddings.dropout"]),
        (r"^bert_encoder_layer_0_attention_self_(query|key|value)$", [r"encoder.layer.0.attention.self.\1"]),
        (r"^bert_encoder_layer_0_attention_self_dropout$", ["encoder.layer.0.attention.self.dropout"]),
        (r"^bert_encoder_layer_0_attention_output_dense$", ["encoder.layer.0.attention.output.dense"]),
        (r"^bert_encoder_layer_0_attention_output_dropout$", ["encoder.layer.0.attention.output.dropout"]),
        (r"^bert_encoder_layer_0_attention_output_layer_norm$", ["encoder.layer.0.attention.output.LayerNorm"]),
        (r"^bert_encoder_layer_0_(intermediate|output)_dense$", [r"encoder.layer.0.\1.dense"]),
        (r"^bert_encoder_layer_0_output_dropout$", ["encoder.layer.0.output.dropout"]),
        (r"^bert_encoder_layer_0_output_layer_norm$", ["encoder.layer.0.output.LayerNorm"]),
        (r"^matmul$", ["encoder.layer.0.attention.self.scores"]),
        (r"^matmul_1$", ["encoder.layer.0.attention.self.context"]),
        (r"^truediv$", ["encoder.layer.0.attention.self.scale"]),
        (r"^softmax$", ["encoder.layer.0.attention.self.softmax"]),
        (r"^contiguous$", ["encoder.layer.0.attention.self.merge"]),
        (r"^gelu$", ["encoder.layer.0.intermediate.act"]),
        (r"^gelu_1$", ["cls.predictions.transform.act"]),
        (r"^bert_pooler_dense$", ["pooler.dense"]),
        (r"^bert_pooler_activation$", ["pooler.act"]),
        (r"^cls_predictions_transform_dense$", ["cls.predictions.transform.dense"]),
        (r"^cls_predictions_transform_layer_norm$", ["cls.predictions.transform.LayerNorm"]),
        (r"^cls_predictions_decoder$", ["cls.predictions.decoder"]),
        (r"^cls_seq_relationship$", ["cls.seq_relationship"]),
        (r"^sub$", ["extended_mask"]), (r"^mul$", ["extended_mask"]),
        (r"^add_2$", ["embeddings.add"]), (r"^add(_1|_3)$", ["embeddings.add_positions"]),
        (r"^ones$", ["attention_mask"]), (r"^classifier$", ["cls.seq_relationship"]),
        (r"^add_7$", ["encoder.layer.0.attention.self.mask"]),
        (r"^add_9$", ["encoder.layer.0.attention.output.residual"]),
        (r"^add_10$", ["encoder.layer.0.output.residual"]),
    ],
    "gpt2_large": [
        (r"^transformer_wte$", ["wte"]), (r"^transformer_wpe$", ["wpe"]), (r"^add_1$", ["add_embeddings"]),
        (r"^transformer_drop$", ["drop"]), (r"^transformer_h_0_ln_(\d)$", [r"h.0.ln_\1"]),
        (r"^addmm$", ["h.0.attn.c_attn"]), (r"^addmm_1$", ["h.0.attn.c_proj"]),
        (r"^addmm_2$", ["h.0.mlp.c_fc"]), (r"^addmm_3$", ["h.0.mlp.c_proj"]),
        (r"^matmul$", ["h.0.attn.scores"]), (r"^matmul_1$", ["h.0.attn.context"]),
        (r"^truediv$", ["h.0.attn.scale"]), (r"^where$", ["h.0.attn.mask"]),
        (r"^softmax$", ["h.0.attn.softmax"]), (r"^transformer_h_0_attn_attn_dropout$", ["h.0.attn.attn_dropout"]),
        (r"^contiguous$", ["h.0.attn.merge"]), (r"^transformer_h_0_attn_resid_dropout$", ["h.0.attn.resid_dropout"]),
        (r"^add_10$", ["h.0.attn.residual"]), (r"^add_15$", ["h.0.mlp.residual"]),
        (r"^(mul|mul_1|mul_2|mul_3|pow_2|add_12|add_13|tanh)$", ["h.0.mlp.act"]),
        (r"^transformer_h_0_mlp_dropout$", ["h.0.mlp.dropout"]),
        (r"^transformer_ln_f$", ["ln_f"]), (r"^lm_head$", ["lm_head"]),
    ],
    "opt_13": [
        (r"^model_decoder_embed_tokens$", ["decoder.embed_tokens"]), (r"^embedding$", ["decoder.embed_positions"]),
        (r"^add_5$", ["decoder.add_embeddings"]),
        (r"^model_decoder_layers_0_self_attn_layer_norm$", ["decoder.layers.0.self_attn_layer_norm"]),
        (r"^model_decoder_layers_0_self_attn_(q|k|v)_proj$", [r"decoder.layers.0.self_attn.\1_proj"]),
        (r"^mul_1$", ["decoder.layers.0.self_attn.scale"]),
        (r"^contiguous$", ["decoder.layers.0.self_attn.k_copy"]), (r"^contiguous_1$", ["decoder.layers.0.self_attn.v_copy"]),
        (r"^contiguous_2$", ["decoder.layers.0.self_attn.q_copy"]),
        (r"^bmm$", ["decoder.layers.0.self_attn.scores"]), (r"^bmm_1$", ["decoder.layers.0.self_attn.context"]),
        (r"^add_6$", ["decoder.layers.0.self_attn.mask"]), (r"^max_1$", ["decoder.layers.0.self_attn.clamp"]),
        (r"^softmax$", ["decoder.layers.0.self_attn.softmax"]), (r"^reshape$", ["decoder.layers.0.self_attn.merge"]),
        (r"^model_decoder_layers_0_self_attn_out_proj$", ["decoder.layers.0.self_attn.out_proj"]),
        (r"^add_7$", ["decoder.layers.0.self_attn.residual"]), (r"^add_8$", ["decoder.layers.0.residual"]),
        (r"^model_decoder_layers_0_final_layer_norm$", ["decoder.layers.0.final_layer_norm"]),
        (r"^model_decoder_layers_0_(fc1|fc2|activation_fn)$", [r"decoder.layers.0.\1"]),
        (r"^model_decoder_final_layer_norm$", ["decoder.final_layer_norm"]), (r"^lm_head$", ["lm_head"]),
        (r"^(full|lt|masked_fill_)$", ["causal_mask"]), (r"^(sub_1|to_2|masked_fill|bool_1|masked_fill_1)$", ["expand_mask"]),
    ],
}


def forecast(model: str, gpu: str, mode: str, seq: int, batch: int, options: list = ()) -> list:
    command = [str(ROOT / "build/release/tilecast"), "forecast", model, "--gpu", gpu, "--mode", mode,
               "--seq", str(seq), "--batch", str(batch), "--dtype", "fp32", "--attention", "eager", "--format", "json", *options]
    if mode == "training":
        command += ["--optimizer", "none", "--loss", "memory"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["kernels"]


def partner(model: str, name: str):
    for pattern, targets in RULES[model]:
        match = re.match(pattern, name)
        if match:
            return [match.expand(t) for t in targets]
    return None


def compare(path: Path, limit: float) -> bool:
    """Prints the comparison of one CSV; says whether nothing above the limit is missing."""
    match = re.match(r"(.+)-(inf|train)-(\d+)-(\d+)$", path.stem)
    model, mode, seq, batch = match[1], match[2], int(match[3]), int(match[4])
    csv.field_size_limit(sys.maxsize)
    nodes = list(csv.DictReader(path.open()))
    kernels = forecast(model, path.parent.name, "training" if mode == "train" else "inference", seq, batch)
    ours = {(k["name"], k["phase"]) for k in kernels}
    # What a node that launches nothing takes: the call alone.
    floor = sorted(float(n["fw_latency"]) for n in nodes if n["Name"].startswith(("view", "size")))[0]
    phases = [("forward", "fw_latency")] + ([("backward", "bw_latency")] if mode == "train" else [])
    ok = True
    for phase, column in phases:
        layer = sum(max(0.0, float(n[column]) - floor) for n in nodes if re.search(r"_0_|matmul|bmm|softmax|truediv|addmm", n["Name"]))
        missing, matched = [], 0
        for node in nodes:
            cost = max(0.0, float(node[column]) - floor) + (float(node["acc_latency"]) if phase == "backward" else 0)
            targets = partner(model, node["Name"])
            if targets and all((t, phase) in ours for t in targets):
                matched += 1
                continue
            share = cost / layer
            if targets is None and NO_KERNEL.match(node["Name"]) and share < limit:
                continue
            if share >= limit:
                missing.append(f"{node['Name']} {node['input_shapes']}: {cost:.3f} ms, {100 * share:.2f} % of the layer")
        ok = ok and not missing
        print(f"{path.parent.name}/{path.stem} {phase}: layer {layer:.2f} ms, {matched} nodes matched, "
              f"{len(missing)} missing above {100 * limit:.1f} %")
        for line in missing:
            print("   missing " + line)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--gpu", default="", help="only folders with this in their name")
    parser.add_argument("--limit", type=float, default=0.005, help="share of the layer that may be missing")
    arguments = parser.parse_args()
    paths = [p for p in sorted((arguments.data / "label").glob("*/*.csv"))
             if p.stem.split("-")[0] in RULES and arguments.gpu in p.parent.name]
    if not paths:
        parser.error("no label CSVs there")
    results = [compare(path, arguments.limit) for path in paths]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
