"""A config of each family of the importer, small enough to count its memory in seconds: the configs of tests/model_types with fewer
layers and experts. Sizes of layers, heads and vocabulary are the model's own.

Used by tests/check_memory.py and tests/pytorch/memory_models.py for models named "types/LABEL". Needs Python's standard library only.
"""
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "model_types"
PREFIX = "types/"
FEW_LAYERS = 4  # more than three: tilecast folds the repetitions of a layer from there on
MOST_LAYERS = 6
FEW_EXPERTS = 8
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
CHOSEN = ("num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token")
DEPTH_OF_STAGES = ("resnet", "regnet", "convnext", "convnextv2", "swin", "efficientnet", "mobilenet_v1", "mobilenet_v2")
# DeepSeek-V2's default, 1407, is no multiple of 16 bytes, which grouped products need.
ALIGNED = {"deepseek_v2": {"moe_intermediate_size": 1408}}


def rows():
    """Label → row of tests/model_types."""
    found = {}
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[row["label"]] = row
    return found


def depth(config):
    """FEW_LAYERS, or as many up to MOST_LAYERS as have all kinds of layers."""
    kinds = config.get("layer_types") or []
    return next((count for count in range(FEW_LAYERS, MOST_LAYERS) if set(kinds[:count]) == set(kinds)), MOST_LAYERS)


def smaller(config):
    """The config with few layers and experts, its lists of layers as long."""
    config = json.loads(json.dumps(config))
    config.update(ALIGNED.get(config["model_type"], {}))
    for name in ("out_features", "out_indices", "stage_names"):  # of backbones, by the number of layers
        config.pop(name, None)
    if config["model_type"] in DEPTH_OF_STAGES:
        return config
    kept = depth(config)
    layers = {key: config[key] for key in LAYERS if isinstance(config.get(key), int)}
    for key, count in layers.items():
        config[key] = min(count, kept)
        for name, value in config.items():
            if isinstance(value, list) and len(value) == count > config[key]:
                config[name] = value[:config[key]]
    if "num_hidden_groups" in config:
        config["num_hidden_groups"] = min(config["num_hidden_groups"], kept)
    for name, value in config.items():
        if name == "per_layer_config":
            config[name] = {layer: fields for layer, fields in value.items() if int(layer) < kept}
    chosen = max((config[key] for key in CHOSEN if isinstance(config.get(key), int)), default=0)
    for key in EXPERTS:
        if isinstance(config.get(key), int):
            config[key] = min(config[key], max(FEW_EXPERTS, chosen + 2))
    if config.get("n_group"):
        config["n_group"], config["topk_group"] = 1, 1
    return config


def config_of(name):
    """(class of Transformers, config) of "types/LABEL"."""
    row = rows()[name.removeprefix(PREFIX)]
    return row["class"], {**smaller(row["config"]), "architectures": [row["class"]]}
