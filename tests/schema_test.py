#!/usr/bin/env python3
"""Checks the JSON output of every command against docs/schema.

    tests/schema_test.py <tilecast>

Needs python3-jsonschema. A key that the schema does not know fails, and so does one that is missing.
"""
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = {path.name: json.loads(path.read_text()) for path in (ROOT / "docs/schema").glob("*.schema.json")}
ROWS = """# gpu: T4, made up
gpu,op,dtype,batch,m,n,k,latency_s,protocol
T4,add,fp32,1,1,50000000,1,0.0025,back_to_back
T4,linear,fp32,1,4096,4096,4096,0.035,back_to_back
X9,add,fp32,1,1,1000,1,0.00001,back_to_back
"""
FIND = """direction,precision,layout,n,c,h,w,k,oh,ow,r,s,pad_h,pad_w,stride_h,stride_w,dil_h,dil_w,group,solver,time_ms
F,FP32,NCHW,32,256,56,56,64,56,56,1,1,0,0,1,1,1,1,1,GemmFwd1x1_0_1,0.5
F,FP32,NCHW,32,256,56,56,64,56,56,1,1,0,0,1,1,1,1,1,ConvAsm1x1U,0.4
F,FP32,NCHW,32,256,56,56,64,56,56,1,1,0,0,1,1,1,1,1,MadeUp,0.1
"""
OWN_GPU = json.dumps({
    "schema_version": 1, "id": "mine", "name": "Mine", "vendor": "me",
    "memory_bytes": {"value": 85899345920, "unit": "B", "source": "made up"},
    "memory_bytes_per_s": {"value": 2e12, "unit": "B/s", "source": "made up"},
    "sm_count": {"value": 100, "unit": "1", "source": "made up"},
    "boost_clock_hz": {"value": 1.5e9, "unit": "Hz", "source": "made up"},
    "links": [{"kind": "pcie", "bytes_per_s": {"value": 3.2e10, "unit": "B/s", "source": "made up"}}],
    "vector_flops_per_s": {"fp32": {"value": 3.84e13, "unit": "FLOP/s", "source": "made up"}}})
GRAPH = """graph g
input x: fp32[8, 512]
weight w: fp32[64, 512]
y = linear(x, w) "first"
"""
TOWER = """{"model_type": "qwen3_vl", "vision_config": {"depth": 4, "deepstack_visual_indexes": [1], "out_hidden_size": 512},
 "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 1000, "max_position_embeddings": 8192}}"""
FORECASTS = [
    "gpt2_large --gpu H100 --mode training --batch 4",
    "gpt2_large --gpu T4 --mode training --optimizer adamw --batch 64",  # does not fit
    "bert_large --gpu MI210 --fusion pointwise",
    "t5-large --gpu P4",
    "stable-diffusion-1.5 --gpu A100 --dtype fp16",
    "whisper-large-v3 --gpu L4",
    "switchxl4 --gpu V100",
    "llama-3-8b --gpu H100 --dtype fp8 --attention flash --software vllm",
    "llama-3-8b --gpu L40S --mode training --dtype amp --optimizer sgd",
    "vit-base --gpu mine.json --predictor roofline",
    "g.tcg --gpu A100",
    "dlrm_mlperf --gpu H100 --mode training --batch 4096",
    "dlrm_mlperf --cluster dgx-a100 --mode training --batch 65536 --dp 8",
    "opt --gpu H200 --batch 1 --host-launch-us 0",
    "gpt2_med --gpu A100-SXM4-40GB --mode training --batch 8 --dp 2 --tp 2 --zero 1 --optimizer adamw",
    "llama-3.2-1b --cluster dgx-h100 --mode training --dtype bf16 --batch 64 --pp 4 --dp 8 --microbatches 4",
    "gpt2_med --cluster dgx-a100 --mode training",
    "gpt2_med --gpu H100 --mode training --checkpointing full --loss full --optimizer adamw --optimizer-impl fused",
]
TIMELINES = [
    "gpt2_med --gpu H100 --mode training --optimizer adamw --zero-grad zeros",
    "bert_large --gpu T4 --batch 64",
    "g.tcg --gpu A100",
]
POWER = [
    "gpt2_med --gpu H100 --mode training",
    "gpt2_med --gpu A100 --mode training --pp 2 --batch 4 --microbatches 4",
    "llama-3.2-1b --gpu H100 --prompt 64 --output 8 --rate 20 --requests 50",
]
PROMPTS = [
    "llama-3-8b --gpu H100 --prompt 1024 --output 64 --batch 8",
    "mixtral-8x7b --gpu H100 --prompt 512 --output 16 --tp 2 --kv-dtype fp8",
    "llama-3-8b --gpu L40S --prompt 256 --output 32 --schedule continuous --concurrency 8",
    "llama-3-8b --gpu L40S --prompt 256 --output 32 --schedule continuous --rate 2",
    "gpt-oss-20b --gpu H100 --prompt 100 --output 1",
    "qwen3-30b-a3b --cluster hgx-h200 --prompt 512 --output 16 --batch 8 --tp 2 --pp 2 --dp 2 --ep 4",
    "deepseek-v3 --gpu H200 --prompt 512 --output 16 --batch 8 --tp 8 --speculative-tokens 2 --acceptance-rate 0.8",
    "llama-3-8b --gpu H100 --prompt 256 --output 32 --schedule continuous --rate 8 --replicas 2 --prefill-workers 1",
    "deepseek-v2-lite --gpu H200 --prompt 100 --output 10 --skew 80 --software trtllm",
    "llama-3.2-1b --gpu mine.json --prompt 64 --output 4 --tp 2 --dtype fp32 --predictor roofline",
    "vl.json --gpu H100 --prompt 64 --output 4",
    "vl.json --gpu H100 --prompt 64 --output 4 --images 3 --image-size 300 --tp 2",
    "vl.json --gpu H100 --prompt 64 --output 4 --images 1 --schedule continuous --concurrency 4 --requests 20",
]
COMPARISONS = [
    "gpt2_large --gpus H100,V100,P4 --mode training --batch 4",
    "llama-3-8b --gpus H100,V100 --prompt 256 --output 16 --dtype fp8",
    "llama-3-8b --gpus H100,L40S --prompt 256 --output 16 --schedule continuous --concurrency 4",
]
ACCELERATORS = ["resnet-50 --gpu gemmini"]
KERNELS = [
    "linear --gpu A100 -m 4096 -n 5120 -k 1280",
    "softmax --gpu MI100 -m 8192 -n 1024",
    "cached_attention --gpu H100 --dtype bf16 --batch 32 --keys 2048 --head-dim 128 --heads 32 --kv-heads 8",
    "experts --gpu L40S --dtype bf16 --scheme fp8 -m 64 -n 1536 -k 4096 --experts 128 --chosen 8",
    "linear --gpu H100 --dtype int8 -m 4096 -n 4096 -k 4096",  # extrapolated
    "all_reduce --gpu H100 --dtype bf16 -n 1000000 --ranks 4",
    "add --gpu mine.json -n 100000 --predictor roofline",
]


def validator(name: str) -> jsonschema.protocols.Validator:
    schema = SCHEMAS[name + ".schema.json"]
    jsonschema.Draft202012Validator.check_schema(schema)
    resolver = jsonschema.RefResolver("", schema, store=SCHEMAS)
    return jsonschema.Draft202012Validator(schema, resolver=resolver)


class Checks:
    def __init__(self, tilecast: str, folder: str):
        self.tilecast, self.folder, self.failed, self.count = tilecast, folder, 0, 0

    def run(self, arguments: str) -> str:
        result = subprocess.run([self.tilecast, *shlex.split(arguments)], cwd=self.folder, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"tilecast {arguments}: {result.stderr}")
        return result.stdout

    def check(self, name: str, text: str, what: str) -> None:
        self.count += 1
        for error in validator(name).iter_errors(json.loads(text)):
            self.failed += 1
            place = "/".join(str(part) for part in error.absolute_path)
            print(f"{what}: {name}.schema.json: at '{place}': {error.message[:300]}")

    def command(self, name: str, arguments: str) -> None:
        output = self.run(arguments + " --format json")
        self.check(name, output, "tilecast " + arguments)


def refuses(name: str, value: object) -> bool:
    return not validator(name).is_valid(value)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("rows.csv", ROWS), ("find_gfx906.csv", FIND), ("mine.json", OWN_GPU), ("g.tcg", GRAPH), ("vl.json", TOWER)):
            (Path(folder) / name).write_text(content)
        checks = Checks(str(Path(sys.argv[1]).resolve()), folder)
        for request in FORECASTS:
            checks.command("forecast", "forecast " + request)
        for request in TIMELINES:
            text = checks.run(f"forecast {request} --memory-timeline json")
            checks.check("memory", text, "tilecast forecast --memory-timeline " + request)
        for request in POWER:
            checks.check("power", checks.run(f"forecast {request} --power-timeline json"), "tilecast forecast --power-timeline " + request)
        for request in PROMPTS:
            checks.command("prompt", "forecast " + request)
        for request in COMPARISONS:
            checks.command("gpu_comparison", "forecast " + request)
        for request in ACCELERATORS:
            checks.command("accelerator", "forecast " + request)
        for request in KERNELS:
            checks.command("kernel", "kernel " + request)
        for name in ("gpus", "clusters", "models", "ops"):
            checks.command(name, name)
        checks.command("plan", "plan gpt2_med --cluster a100-sxm-4 --batch 16 --seq 1024 --price-per-gpu-hour 1.5")
        checks.command("plan_gpus", "plan gpt2_med --gpus H100,A100 --batch 16 --seq 1024 --dtype bf16 --zero 0")
        checks.command("plan_serving", "plan llama-3-8b --gpus H100,L40S --num-gpus 4 --prompt 1024 --output 128 --tpot-s 0.02 --price-per-gpu-hour H100=2,L40S=1")
        checks.command("plan_serving", "plan llama-3-8b --gpu L40S --prompt 1024 --output 128 --tpot-s 0.03 --rate 20 --price-per-gpu-hour 1")
        checks.command("plan_serving", "plan llama-3-8b --gpu H100 --num-gpus 1 --prompt 1024 --output 128 --price-per-gpu-hour aws-on-demand --objective energy")
        checks.command("gpu_comparison", "forecast gpt2 --gpus H100,L4 --prompt 64 --output 8 --price-per-gpu-hour aws-on-demand")
        checks.command("prompt", "forecast gpt2 --gpu H100 --prompt 64 --output 8 --price-per-gpu-hour aws-on-demand")
        checks.command("plan", "plan qwen3-30b-a3b --cluster dgx-h100 --batch 64 --seq 4096 --dtype bf16 --micro-batch-size 4")
        checks.command("collective", "collective all_reduce --cluster dgx-a100 --ranks 16 --bytes 1000000")
        checks.command("shard", "shard dlrm_mlperf --cluster dgx-a100")
        checks.command("tune", "tune 256-56-56-1x1-64-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F --gpu gfx906_60")
        checks.command("tune_product", "tune \"gemm m=4096 n=512 k=1024 dtype=fp16\" --gpu MI100")
        checks.command("evaluate", "evaluate rows.csv")
        checks.command("tune_evaluation", "evaluate find_gfx906.csv")
        suggested = checks.run("calibrate --gpu L4 --suggest 20").splitlines()
        header, rows = suggested[0], [row + "0.001,back_to_back" for row in suggested[1:]]
        (Path(folder) / "few.csv").write_text("\n".join([header + ",protocol", *rows]) + "\n")
        checks.run("calibrate --gpu L4 --measurements few.csv -o l4.json")
        checks.check("calibration", (Path(folder) / "l4.json").read_text(), "tilecast calibrate")
        for path in sorted((ROOT / "data/clusters").glob("*.json")):
            checks.check("cluster_file", path.read_text(), str(path))
        for path in sorted((ROOT / "tests/fuzz/sweep").glob("*.json")):
            checks.check("sweep_spec", path.read_text(), str(path))
        checks.check("errors", (ROOT / "data/weights/errors.json").read_text(), "tilecast train")
        # The schemas do refuse: a key too many, a key too few, a display string for a number.
        entry = json.loads(checks.run("gpus --format json"))[0]
        assert refuses("gpus", [{**entry, "extra": 1}])
        assert refuses("gpus", [{k: v for k, v in entry.items() if k != "power_w"}])
        assert refuses("gpus", [{**entry, "memory_bytes": "32.0 GiB"}])
        spec = {"model": ["gpt2_large"], "gpu": ["H100"]}
        assert not refuses("sweep_spec", spec) and refuses("sweep_spec", {**spec, "batch": {"from": 1}})
        assert refuses("sweep_spec", {**spec, "mode": ["trainig"]}) and refuses("sweep_spec", {**spec, "bacth": [1]})
    print(f"{checks.count} outputs checked, {checks.failed} errors")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
