#!/usr/bin/env python3
"""Small inputs that ask for much: budget_test.py PROGRAM [NAME …]

Each ends within seconds and 600 MB, with the right answer or an error that says what was reached.
"""

import gzip
import json
import lzma
import os
import random
import subprocess
import sys
import tempfile
import time

# Of a core. With -O3 and nothing beside it each takes 3 s at most; builds of development are slower.
MOST_SECONDS = 6
MOST_BYTES = 600 << 20
TILECAST = ""


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def whole(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def part(field: int, content) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def node(op: str, inputs: list, outputs: list, attributes: bytes = b"", domain: str = "") -> bytes:
    content = b"".join(part(1, name) for name in inputs) + b"".join(part(2, name) for name in outputs)
    return part(1, content + part(4, op) + attributes + (part(7, domain) if domain else b""))


def value(field: int, name: str, kind: int = 1, shape: tuple = (2, 4)) -> bytes:
    dims = b"".join(part(1, whole(1, size)) for size in shape)
    return part(field, part(1, name) + part(2, part(1, whole(1, kind) + part(2, dims))))


def integers(name: str, values: list) -> bytes:
    raw = b"".join(number.to_bytes(8, "little") for number in values)
    return part(5, whole(1, len(values)) + whole(2, 7) + part(8, name) + part(9, raw))


WEIGHT = part(5, whole(1, 4) + whole(1, 4) + whole(2, 1) + part(8, "w") + part(9, bytes(64)))


def body(nodes: bytes, result: str) -> bytes:
    """The attribute of a Loop that carries one tensor "s"."""
    graph = value(11, "i", 7, ()) + value(11, "g", 9, ()) + value(11, "s") + nodes + value(12, "g", 9, ()) + value(12, result)
    return part(5, part(1, "body") + part(6, graph) + whole(20, 5))


def model(graph: bytes, functions: bytes = b"") -> bytes:
    return whole(1, 8) + part(8, whole(2, 18)) + part(7, graph + value(11, "x") + value(12, "y")) + functions


def loop(trips: int, inner: bytes, depth: int = 1) -> bytes:
    """Loops in loops around nodes that make "r" from "s"."""
    nodes = inner
    for _ in range(depth - 1):
        nodes = node("Loop", ["n", "", "s"], ["r"], body(nodes, "r"))
    return WEIGHT + integers("n", [trips]) + node("Loop", ["n", "", "x"], ["y"], body(nodes, "r"))


def function(name: str, nodes: bytes) -> bytes:
    # In a function, nodes are field 7, where they are field 1 of a graph.
    return part(25, part(1, name) + part(4, "a") + part(4, "w") + part(5, "b") + nodes + part(9, whole(2, 18)) + part(10, "own"))


def call(op: str, inputs: list, outputs: list, domain: str = "own") -> bytes:
    content = b"".join(part(1, name) for name in inputs) + b"".join(part(2, name) for name in outputs)
    return part(7, content + part(4, op) + (part(7, domain) if domain else b""))


def nested(levels: int) -> bytes:
    functions = function("f0", call("MatMul", ["a", "w"], ["b"], ""))
    for i in range(1, levels):
        functions += function(f"f{i}", call(f"f{i - 1}", ["a", "w"], ["c"]) + call(f"f{i - 1}", ["c", "w"], ["b"]))
    return model(WEIGHT + node(f"f{levels - 1}", ["x", "w"], ["y"], b"", "own"), functions)


class Run:
    def __init__(self, arguments, folder):
        start = time.monotonic()
        with open(os.path.join(folder, "out.txt"), "w+b") as out, open(os.path.join(folder, "err.txt"), "w+b") as errors:
            process = subprocess.Popen([TILECAST, *arguments], cwd=folder, stdout=out, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - start
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            self.bytes = usage.ru_maxrss * 1024
            self.status = process.returncode
            out.seek(0)
            errors.seek(0)
            self.out, self.errors = out.read().decode(errors="replace"), errors.read().decode(errors="replace")


DECODER = {"model_type": "nemotron-nas", "architectures": ["DeciLMForCausalLM"], "hidden_size": 4096, "vocab_size": 1000,
           "num_attention_heads": 8, "max_position_embeddings": 4096, "hidden_act": "silu"}


def layers(count: int, **fields) -> dict:
    """A decoder all layers of which differ, in an order that does not repeat."""
    sizes = random.Random(1).sample(range(1, 10_000), min(count, 9_999)) * (count // 9_999 + 1)
    blocks = [{"attention": {"n_heads_in_group": 1}, "ffn": {"ffn_mult": 256 * size * 3 / 2 / 4096}} for size in sizes[:count]]
    return {**DECODER, "num_hidden_layers": count, "block_configs": blocks, **fields}


def quantized(names: list) -> dict:
    return {"quantization_config": {
        "quant_method": "compressed-tensors", "format": "float-quantized", "ignore": names,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
                                      "input_activations": {"num_bits": 8, "type": "float", "dynamic": True}}}}}


def write(folder: str, name: str, content) -> None:
    mode = "wb" if isinstance(content, bytes) else "w"
    with open(os.path.join(folder, name), mode) as file:
        file.write(content if isinstance(content, (bytes, str)) else json.dumps(content))


ON = ["--gpu", "H100"]
TRAINING = [*ON, "--mode", "training"]
PIPELINE = ["forecast", "llama-3-8b", "--cluster", "dgx-h100", "--mode", "training"]
RELU = node("Relu", ["s"], ["r"])
PRODUCT = node("MatMul", ["s", "w"], ["r"])


def named(name: str) -> bytes:
    """A node with a name of its own."""
    return part(1, part(1, "s") + part(2, "r") + part(3, name) + part(4, "Relu"))


def line(count: int) -> bytes:
    names = ["x", *(f"v{i}" for i in range(1, count)), "y"]
    return b"".join(node("Relu", [names[i]], [names[i + 1]]) for i in range(count))


def chain(count: int) -> str:
    nodes = "".join(f"t{i + 1} = relu(t{i})\n" for i in range(count))
    return f"graph g\ninput t0: fp32[64, 64]\n{nodes}output t{count}\n"


def notation(op: str, name: str) -> str:
    return f'graph g\ninput x: fp32[2, 2]\ny = {op}(x) "{name}"\noutput y\n'


ROWS = b"gpu,op,dtype,latency_s\n"
STEPS = "c.json: more than 268,435,456 steps of comparing modules with the patterns of a quantization config"

# What is asked: a file with its content, the command, and what the error says; "": an answer.
CASES = {
    "loop": ("m.onnx", lambda: model(loop(9_999, RELU)), ["forecast", "m.onnx", *ON], ""),
    "loop_training": ("m.onnx", lambda: model(loop(9_999, PRODUCT)), ["forecast", "m.onnx", *TRAINING], ""),
    "loop_in_loop": ("m.onnx", lambda: model(loop(300, RELU, 3)), ["forecast", "m.onnx", *ON],
                     "m.onnx: more than 60080 nodes, with loops and functions written out; the file has 4; --max-memory allows more"),
    "loop_in_loop_training": ("m.onnx", lambda: model(loop(38, RELU, 3)), ["forecast", "m.onnx", *TRAINING], "depends on no weight"),
    "loop_in_loop_trained": ("m.onnx", lambda: model(loop(38, PRODUCT, 3)), ["forecast", "m.onnx", *TRAINING], ""),
    "loop_of_constants": ("m.onnx", lambda: model(loop(9_999, node("ConstantOfShape", ["many"], ["z"]) + RELU) + integers("many", [1 << 14])),
                          ["forecast", "m.onnx", *ON],
                          "m.onnx: more than 16,777,216 elements of constants and lists that are computed before the model runs"),
    "loop_of_long_names": ("m.onnx", lambda: model(loop(9_999, named("n" * 1_000_000))), ["forecast", "m.onnx", *ON], ""),
    "functions": ("m.onnx", lambda: nested(26), ["forecast", "m.onnx", *TRAINING], "more than 61040 nodes, with loops and functions"),
    "functions_training": ("m.onnx", lambda: nested(15), ["forecast", "m.onnx", *TRAINING, "--fusion", "pointwise"], ""),
    "empty_nodes": ("m.onnx", lambda: model((4 << 20) * part(1, b"")), ["forecast", "m.onnx", *ON],
                    "the graph takes more than 512 MiB of memory; is it an ONNX file of a model? --max-memory allows more"),
    "empty_inputs": ("m.onnx", lambda: model(part(1, (8 << 20) * part(1, b""))), ["forecast", "m.onnx", *ON], "the graph takes more than"),
    "many_nodes": ("m.onnx", lambda: model(line(60_000)), ["forecast", "m.onnx", *ON], ""),
    "csv_xz": ("a.csv.xz", lambda: lzma.compress(ROWS + b"a," * (30 << 20)), ["evaluate", "a.csv.xz"], "a.csv.xz: unpacks to more than"),
    "csv_cells": ("a.csv", lambda: ROWS + b"," * (30 << 20), ["evaluate", "a.csv"], "a.csv: line 2: more than 16384 cells"),
    "csv_cell": ("a.csv", lambda: ROWS + b"a" * (60 << 20), ["evaluate", "a.csv"], "a.csv: line 2: a cell of more than 1048576 bytes"),
    "csv_rows": ("a.csv", lambda: ROWS + b",,,\n" * (8 << 20), ["evaluate", "a.csv"],
                 "the table takes more than 512 MiB of memory; divide the file, or allow more with --max-memory"),
    "json_values": ("c.json", lambda: '{"model_type": "gpt2", "x": [' + "[]," * 5_000_000 + "[]]}", ["forecast", "c.json", *ON],
                    "c.json: holds more than 3000000 values; is it the right file? --max-memory allows more"),
    "experts": ("", None, ["kernel", "experts", *ON, "--num-experts", "100000000", "--skew", "101"], "an uneven load of 100000000 experts"),
    "experts_even": ("", None, ["kernel", "experts", *ON, "--num-experts", "100000000"], ""),
    "microbatches": ("", None, [*PIPELINE, "--pp", "8", "--batch", "30000", "--microbatches", "30000"],
                     "the pipeline with all of its micro-batches: more than 350,000 operations of a training step"),
    "microbatches_of_one_gpu": ("", None, [*PIPELINE, "--batch", "2000000000", "--microbatches", "2000000000"],
                                "2000000000 passes of micro-batches through parts of the model are too many to simulate"),
    "layers": ("c.json", lambda: layers(3000), ["forecast", "c.json", *ON], ""),
    "layers_quantized": ("c.json", lambda: layers(3000, **quantized(["lm_head"])), ["forecast", "c.json", *ON], ""),
    "layers_quantized_prompt": ("c.json", lambda: layers(3000, **quantized(["lm_head"])), ["forecast", "c.json", *ON, "--prompt", "64", "--output", "8"], ""),
    "layers_quantized_globs": ("c.json", lambda: layers(3000, **quantized([f"*layers.{i}.x*y" for i in range(5000)])), ["forecast", "c.json", *ON], ""),
    "layers_quantized_regexes": ("c.json", lambda: layers(3000, **quantized([f"re:.*layers\\.{i}\\..*x.*y" for i in range(12)])),
                                 ["forecast", "c.json", *ON], ""),
    "layers_quantized_prompt_regexes": ("c.json", lambda: layers(3000, **quantized([f"re:.*layers\\.{i}\\..*x.*y" for i in range(12)])),
                                        ["forecast", "c.json", *ON, "--prompt", "64", "--output", "8"], ""),
    "layers_quantized_classes": ("c.json", lambda: layers(3000, **quantized([f"re:.*[l]ayers.\\d+.x{i}" for i in range(12)])),
                                 ["forecast", "c.json", *ON], STEPS),
    "layers_quantized_stars": ("c.json", lambda: layers(3000, **quantized(["re:" + ".*" * 240 + f"[z]{i}" for i in range(50)])),
                               ["forecast", "c.json", *ON], STEPS),
    "layers_quantized_counts": ("c.json", lambda: layers(3000, **quantized([f"re:((.{{9}}){{9}}){{9}}|b{i}" for i in range(50)])),
                                ["forecast", "c.json", *ON], STEPS),
    "layers_quantized_many_globs": ("c.json", lambda: layers(3000, **quantized(["*" + "a*r*s*" * 80 + str(i) for i in range(1000)])),
                                    ["forecast", "c.json", *ON], STEPS),
    "globs": ("c.json", lambda: layers(80, **quantized([f"a{i}*" for i in range(1_000_000)])), ["forecast", "c.json", *ON], ""),
    "fusion": ("g.tcg", lambda: chain(60_000), ["forecast", "g.tcg", *ON, "--fusion", "pointwise"], ""),
    "long_name": ("g.tcg", lambda: notation("relu", "n" * 2_000_000), ["forecast", "g.tcg", *ON], ""),
    "long_operator": ("g.tcg", lambda: notation("r" * 2_000_000, "n"), ["forecast", "g.tcg", *ON], "unknown operator"),
    "long_type": ("c.json", lambda: layers(4, model_type="l" * 2_000_000), ["forecast", "c.json", *ON], ""),
    "long_onnx_operator": ("m.onnx", lambda: model(node("R" * 2_000_000, ["x"], ["y"])), ["forecast", "m.onnx", *ON], "R..."),
    "trace_spaces": ("t.json.gz", lambda: gzip.compress(b'{"traceEvents": [' + b" " * (200 << 20)), ["trace", "t.json.gz"],
                     "a single value has more than 16 MiB"),
    "trace_events": ("t.json.gz", lambda: gzip.compress(b'{"traceEvents": [' + b'{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1},' * 1_000_000),
                     ["trace", "t.json.gz", "--max-memory", "20MB"], "more than 125,000 events of a profiler trace"),
    # What the two options end.
    "max_seconds_plan": ("", None, ["plan", "llama-3-70b", "--cluster", "dgx-h100", "--nodes", "8", "--batch", "512", "--quiet", "--max-seconds", "0.5"],
                         "tilecast: stopped after 0.5 s, the limit, while "),
    "max_seconds_server": ("", None, ["forecast", "llama-3-8b", *ON, "--prompt", "1000", "--output", "1000", "--concurrency", "256",
                                      "--requests", "100000", "--max-seconds", "0.1"], "tilecast: stopped after 0.1 s, the limit, while "),
    "max_memory": ("m.onnx", lambda: model(line(60_000)), ["forecast", "m.onnx", *ON, "--max-memory", "20MB"], "--max-memory allows more"),
}


def check(name: str, folder: str) -> str:
    """"": the case ends as it should; else what is wrong."""
    file, content, arguments, error = CASES[name]
    size = 0
    if file:
        write(folder, file, content())
        size = os.path.getsize(os.path.join(folder, file))
    run = Run(arguments, folder)
    print(f"{name:26} {size:>9} B  {run.cpu_seconds:5.1f} s of a core  {run.bytes >> 20:>4} MiB  {run.errors.splitlines()[-1][:160] if run.status else 'answered'}",
          flush=True)
    if run.cpu_seconds > MOST_SECONDS or run.bytes > MOST_BYTES:
        return f"{run.cpu_seconds:.1f} s and {run.bytes >> 20} MiB"
    if run.status != (1 if error else 0) or error not in run.errors:
        return f"expected {error!r}, found status {run.status} and {run.errors[:300]!r}"
    return ""


def main() -> int:
    global TILECAST
    TILECAST = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or CASES:
            wrong = check(name, folder)
            if wrong:
                failures.append(f"{name}: {wrong}")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
