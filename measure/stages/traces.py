"""Stage `traces`: traces of PyTorch's profiler of set-ups whose step was also timed without it.

traces.tar: NAME.json.gz, one step each (CPU and CUDA, shapes, no stacks), at most MOST_BYTES together. traces.csv: the median
synchronised step without the profiler (`latency_s`), the host's part of it (`host_s`: until the launches return), the same step under the
profiler (`profiled_s`), bytes and events of the trace.
"""

import gzip
import io
import json
import os
import tarfile
import tempfile
import time

import torch

from . import images, llama
from .common import Replay, precision, quartiles, rows_of, side_stream, side_stream_again

COLUMNS = ["gpu", "stage", "name", "model", "mode", "dtype", "compiled", "graph", "optimizer", "batch", "seq", "image_size", "channels_last",
           "parameters", "latency_s", "p25_s", "p75_s", "runs", "host_s", "profiled_s", "trace_bytes", "trace_events", "config", "status",
           "detail", "wall_s"]
MOST_BYTES = 4 * 2 ** 20
WARMUP = 4
RUNS = (7, 25)
RUN_SECONDS = 0.5


def of_transformers(name, sizes, mode, batch, seq, dtype="bf16"):
    """A model of Transformers from its config; with `mode` training under amp where the dtype says so, and AdamW."""
    def make(bench):
        import transformers
        options = dict(sizes)
        if bench.small:
            options.update(num_hidden_layers=1, vocab_size=min(sizes["vocab_size"], 512))
        config = transformers.AutoConfig.for_model(name, **options)
        config.use_cache = False
        maker = transformers.AutoModelForMaskedLM if name == "bert" else transformers.AutoModelForCausalLM
        with torch.device(bench.device):
            model = maker.from_config(config, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32)
        model.train(mode == "training")
        length = 8 if bench.small else seq
        ids = torch.randint(config.vocab_size, (batch, length), device=bench.device)
        fields = {"config": json.dumps(config.to_diff_dict(), sort_keys=True, default=str), "parameters": model.num_parameters()}
        if mode == "inference":
            def infer():
                with torch.inference_mode():
                    model(input_ids=ids)
            return infer, fields
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

        def step():
            with torch.autocast(bench.device, torch.bfloat16):
                loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return step, fields
    return make


def of_timm(**case):
    def make(bench):
        job = images.Job(bench, {"channels_last": 1, "image_size": 224, "cudnn_benchmark": 0, "dtype": "amp", **case,
                                 **({"image_size": 64} if bench.small and case["model"].startswith("resnet") else {})})
        return job.step, {"parameters": job.parameters, "image_size": 224}
    return make


def llama_training(bench):
    model, step, _ = llama.training_step(bench, capturable=False)
    return step, {"parameters": sum(p.numel() for p in model.parameters())}


def llama_decode(bench):
    """A decode step replayed from a CUDA graph."""
    stream, entered = side_stream(bench)
    with entered:
        model, step, _, _ = llama.decode_step(bench, batch=8, cached=2048)
        step()
    bench.sync()
    replay = Replay(bench, [step], stream)
    if replay.why:
        raise NotImplementedError(replay.why)

    def replayed():
        with side_stream_again(stream):
            replay()
    return replayed, {"parameters": sum(p.numel() for p in model.parameters())}


QWEN2 = dict(hidden_size=896, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, vocab_size=151936,
             tie_word_embeddings=True)
BERT = dict(vocab_size=30522)
# name: (fields of the row, maker)
SETUPS = {
    "qwen2_0.5b_inference_b1": (dict(model="qwen2-0.5b", mode="inference", dtype="bf16", batch=1, seq=512),
                                of_transformers("qwen2", QWEN2, "inference", 1, 512)),
    "resnet50_training": (dict(model="resnet50", mode="training", dtype="amp", batch=64, image_size=224, channels_last=1, optimizer="sgd"),
                          of_timm(model="resnet50", mode="training", batch=64)),
    "llama_1b_training": (dict(model="llama-12-layers", mode="training", dtype="bf16", batch=4, seq=2048, optimizer="adamw-fused"),
                          llama_training),
    "bert_base_training": (dict(model="bert-base", mode="training", dtype="amp", batch=16, seq=256, optimizer="adamw-foreach"),
                           of_transformers("bert", BERT, "training", 16, 256, "amp")),
    "qwen2_0.5b_inference_b8": (dict(model="qwen2-0.5b", mode="inference", dtype="bf16", batch=8, seq=512),
                                of_transformers("qwen2", QWEN2, "inference", 8, 512)),
    "vit_b16_inference": (dict(model="vit_base_patch16_224", mode="inference", dtype="amp", batch=32, image_size=224),
                          of_timm(model="vit_base_patch16_224", mode="inference", batch=32)),
    "llama_decode_graph": (dict(model="llama-12-layers", mode="decode", dtype="bf16", batch=8, seq=2048, graph=1), llama_decode),
    "llama_1b_training_2_layers": (dict(model="llama-2-layers", mode="training", dtype="bf16", batch=1, seq=512, optimizer="adamw-fused"),
                                   lambda bench: (lambda made: (made[1], {"parameters": sum(p.numel() for p in made[0].parameters())}))(
                                       llama.training_step(bench, 1, 512, False, layers=2))),
    "vit_b16_compiled": (dict(model="vit_base_patch16_224", mode="inference", dtype="amp", batch=32, image_size=224, compiled=1),
                         of_timm(model="vit_base_patch16_224", mode="inference", batch=32, compiled=1)),
}


def timed(bench, step):
    for _ in range(WARMUP):
        step()
        bench.sync()
    steps, host, spent = [], [], 0.0
    while len(steps) < RUNS[0] or (len(steps) < RUNS[1] and spent < RUN_SECONDS):
        start = time.perf_counter()
        step()
        host.append(time.perf_counter() - start)
        bench.sync()
        steps.append(time.perf_counter() - start)
        spent += steps[-1]
    return {**quartiles(steps), "host_s": quartiles(host)["latency_s"]}


def trace(bench, step):
    """(the trace's JSON, seconds of the traced step)."""
    activities = [torch.profiler.ProfilerActivity.CPU] + ([] if bench.dry else [torch.profiler.ProfilerActivity.CUDA])
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        with torch.profiler.profile(activities=activities, record_shapes=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=1),
                                    on_trace_ready=lambda done: done.export_chrome_trace(path)) as profile:
            for _ in range(2):
                start = time.perf_counter()
                step()
                bench.sync()
                seconds = time.perf_counter() - start
                profile.step()
        with open(path, "rb") as stream:
            return stream.read(), seconds
    finally:
        os.unlink(path)


def add(path, name, content):
    """A member of the tar, which is whole again afterwards."""
    with tarfile.open(path, "a") as archive:
        member = tarfile.TarInfo(name)
        member.size, member.mtime = len(content), int(time.time())
        archive.addfile(member, io.BytesIO(content))


def run(bench):
    table, path = bench.table("traces.csv", COLUMNS), os.path.join(bench.folder, "traces.tar")

    def measure(case):
        torch._dynamo.reset()
        precision("bf16")
        step, fields = SETUPS[case["name"]][1](bench)
        row = {**fields, **timed(bench, step)}
        content, row["profiled_s"] = trace(bench, step)
        packed = gzip.compress(content, 9)
        row.update(trace_bytes=len(packed), trace_events=content.count(b'"ph": "X"') or content.count(b'"ph":"X"'))
        used = os.path.getsize(path) if os.path.exists(path) else 0
        if used + len(packed) > MOST_BYTES:
            row["detail"] = "the trace is left out: too large beside the others"
        else:
            add(path, f"{case['name']}.json.gz", packed)
        return row
    cases = [{"name": name, **fields} for name, (fields, _) in SETUPS.items()]
    return rows_of(bench, table, cases, measure, reserve_s=3.0)
