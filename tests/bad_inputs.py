#!/usr/bin/env python3
"""Bad values for every flag and field: bad_inputs.py PROGRAM [--seed N] [--count N]

Whatever is given, the program ends by itself within seconds, with status 0, 1 or 2; on 1 with a
message that starts with "tilecast:"; without NaN, infinite or negative times in what it prints,
and without control characters from a file. Flags come from --help, fields from the bundled files.
"""

import argparse
import copy
import functools
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "data")
VALUES = ["-1", "0", "1", "-0", "1.5", "1e3", "1e999", "-1e-9", "nan", "inf", "-inf", "NaN", "9223372036854775807",
          "9223372036854775808", "1" + "0" * 40, "2147483648", "", " ", "abc", "0x10", "1,5", "\x1b[2J", "é" * 200,
          "../../../etc/passwd", "/dev/null", "/", "--gpu", "fp32", "T4", "x" * 5000]
SCHEMAS = os.path.join(os.path.dirname(HERE), "docs", "schema")


def nullable_keys(value):
    """The properties of a JSON schema that may be null."""
    if isinstance(value, list):
        return set().union(*map(nullable_keys, value))
    if not isinstance(value, dict):
        return set()
    own = {name for name, what in value.get("properties", {}).items() if isinstance(what, dict) and "null" in what.get("type", ())}
    return own.union(*map(nullable_keys, value.values()))


def nullable_of(command):
    """The keys of a command's JSON that may be null: docs/schema/forecast.schema.json and the like."""
    starts = {"forecast": ("forecast.", "prompt.", "gpu_comparison.")}.get(command, command)
    return set().union(*(nullable_keys(json.load(open(os.path.join(SCHEMAS, name)))) for name in os.listdir(SCHEMAS) if name.startswith(starts)))


# What each subcommand needs beside the flag that is tried.
COMMANDS = {
    "forecast": [["gpt2_large", "--gpu", "V100"], ["gpt2_large", "--gpu", "V100", "--mode", "training"],
                 ["llama-3.2-1b", "--gpu", "H100", "--prompt", "64", "--output", "8"],
                 ["llama-3.2-1b", "--gpu", "H100", "--prompt", "64", "--output", "8", "--schedule", "continuous", "--concurrency", "2"]],
    "kernel": [["linear", "--gpu", "H100", "-m", "64", "-n", "64", "-k", "64"],
               ["attention", "--gpu", "H100", "--dtype", "bf16", "-m", "64", "-n", "64", "-k", "64"],
               ["experts", "--gpu", "H100", "--dtype", "bf16", "-m", "64", "-n", "64", "-k", "64"],
               ["conv2d", "--gpu", "H100", "-m", "8", "-n", "16", "-k", "8"]],
    "calibrate": [["--gpu", "L4", "--suggest", "3"], ["--gpu", "L4", "--suggest", "3", "--candidates", "rows.csv"],
                  ["--gpu", "L4", "--measurements", "rows.csv", "-o", "out.json"]],
    "evaluate": [["rows.csv"]],
    "train": [["--data", "rows.csv", "-o", "weights"]],
    "gpus": [[]], "clusters": [[]], "models": [[]], "ops": [[]],
    "collective": [["all_reduce", "--cluster", "dgx-h100", "--ranks", "8", "--bytes", "1000"]],
    "shard": [["tables.json", "--cluster", "dgx-a100"]],
}
# These take minutes, or a file's place, not a bad value.
LEFT_OUT = {"--help", "--help-all", "--trees", "--requests"}
FIELD_VALUES = [None, -1, 0, 1, 3, 2 ** 31, 2 ** 62, 2 ** 64, 1.5, -0.0, 1e300, float("nan"), float("inf"), "", "x",
                "\x1b[2J\u009b", "9" * 300, True, [], {}, [1, 2], [None] * 3, {"value": -1}]
KEYS = ["", "x", "\x1b[2J\u009b", "\u202e", "9" * 300, "re:(", "lm_head"]
ROWS = """gpu,op,dtype,batch,heads,kv_heads,queries,keys,head_size,causal,window,kv_dtype,m,n,k,l2,latency_s,status
H100,attention,bf16,4,32,8,1,2048,128,0,512,fp8,,,,cold,1e-5,ok
H100,gemm,bf16,,,,,,,,,,64,128,256,warm,2e-5,ok
T4,softmax,fp32,,,,,,,,,,64,128,,cold,,failed
V100,conv_forward,fp16,8,,,,,,,,,,,,cold,3e-5,ok
"""
# Weights of several types, in each way that a config can say so.
DECODER = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 512,
           "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}
QUANTIZED = [
    {**DECODER, "quantization_config": {
        "quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*"],
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        "config_groups": {"group_0": {"targets": ["re:model.layers.\\d+.mlp.*"], "input_activations": None,
                                      "weights": {"num_bits": 4, "type": "int", "group_size": 128}}}}},
    {**DECODER, "quantization_config": {
        "quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.0*"],
        "quantized_layers": {"model.layers.1.self_attn.o_proj": {"quant_algo": "FP8"},
                             "model.layers.1.mlp.down_proj": {"quant_algo": "NVFP4"}}}},
]
GRAPH = """graph g
input x: fp32[4, 16, 64]
weight w: fp32[64, 64]
segment layers x12
  a = linear(x, w) "first"
  b = softmax(a)
  carry x -> b
output b
"""
# Lists of embedding tables: placements of them.
TABLES = [{
    "sparse_optimizer": "rowwise_adagrad", "embedding_dim": 64,
    "reuse": {"log": {"batch": 4096, "shares": [0.5, 0.2, 0.1, 0.1, 0.1] + [0] * 12}, "zipf": {"zipf_exponent": 1.1}},
    "tables": [{"name": "a", "rows": 1000, "pooling": 2.5, "reuse": "log"}, {"name": "b", "rows": 1000000, "dim": 128, "reuse": "zipf"},
               {"name": "c", "rows": 3, "dtype": "fp16"}]}]
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


class Checker:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.runs, self.accepted, self.failures = 0, 0, []
        self.nullable = functools.cache(nullable_of)

    def run(self, arguments, what, memory=None, message=""):
        """`memory` limits the address space; `message` must be in what standard error says."""
        self.runs += 1
        limit = memory and (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
        try:
            found = subprocess.run([self.program, *arguments], capture_output=True, cwd=self.folder, timeout=120,
                                   preexec_fn=limit,
                                   env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
        except subprocess.TimeoutExpired:
            return self.fail(arguments, what, "did not end")
        except ValueError:
            return None  # the operating system takes no such argument
        out = found.stdout.decode(errors="surrogateescape")
        err = found.stderr.decode(errors="surrogateescape")
        if found.returncode not in (0, 1, 2):
            self.fail(arguments, what, f"status {found.returncode}: {err[:300]}")
        if "this is a bug" in err:
            self.fail(arguments, what, err[:300])
        if found.returncode == 1 and not err.startswith("tilecast:"):
            self.fail(arguments, what, f"message without prefix: {err[:300]!r}")
        if message not in err:
            self.fail(arguments, what, f"expected '{message}', found: {err[:300]}")
        if found.returncode == 2 and not err.strip():
            self.fail(arguments, what, "no message")
        if found.returncode != 2 and (CONTROL.search(out) or CONTROL.search(err)):
            self.fail(arguments, what, f"control characters: {(out + err)[:300]!r}")
        if found.returncode == 0:
            self.accepted += 1
            self.check_output(arguments, what, out)
        return found.returncode

    def check_output(self, arguments, what, out):
        if "json" in arguments and out.startswith("{"):
            self.check_json(arguments, what, json.loads(out), "")
            return
        if re.search(r"(?<![\w/.-])-?(nan|inf)\b", out, re.I):
            self.fail(arguments, what, "not finite: " + out[:300])
        if re.search(r"(?<![\w.e])-\d[\d.]* ?(us|ms|s|B|KiB|MiB|GiB)\b", out):
            self.fail(arguments, what, "negative: " + out[:300])

    def check_json(self, arguments, what, value, key):
        if isinstance(value, dict):
            if "latency_s" in value and "low_s" in value:
                if not 0 < value["low_s"] <= value["latency_s"] <= value["high_s"] or value["utilization_ratio"] > 1.001:
                    self.fail(arguments, what, f"no sound interval or utilization: {value}")
            for name, item in value.items():
                self.check_json(arguments, what, item, name)
        elif isinstance(value, list):
            for item in value:
                self.check_json(arguments, what, item, key)
        elif key.endswith(("_s", "_bytes", "flops", "bytes", "_ratio")):
            # nlohmann-json writes null for what is not finite, too.
            may_be_negative = key == "margin_bytes"  # what is missing, of a model that does not fit
            if value is None and key in self.nullable(arguments[0]):
                return
            if value is None or (isinstance(value, (int, float)) and value < 0 and not may_be_negative):
                self.fail(arguments, what, f"{key} is {value}")

    def fail(self, arguments, what, why):
        self.failures.append(f"{what}: {' '.join(a[:60] for a in arguments)}\n    {why}")


def flags(program, command):
    text = subprocess.run([program, command, "--help-all"], capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*|(?<![\w-])-[a-z]\b", text)) - LEFT_OUT - {"-h"})


def bad_flags(checker, rng, count):
    cases = [(command, base, flag, value) for command, bases in COMMANDS.items() for base in bases
             for flag in flags(checker.program, command) for value in VALUES]
    for command, base, flag, value in rng.sample(cases, min(count, len(cases))):
        arguments = [command, *base, f"{flag}={value}" if flag.startswith("--") else flag]
        if not flag.startswith("--"):
            arguments.append(value)
        checker.run(arguments, "flag")


def bundled(kind):
    """The documents of a folder of data/."""
    documents = []
    for name in sorted(os.listdir(os.path.join(DATA, kind))):
        with open(os.path.join(DATA, kind, name), encoding="utf-8") as file:
            documents.append(json.load(file))
    return documents


def bad_fields(checker, rng, count, kind, documents, arguments_of):
    for number in range(count):
        document = copy.deepcopy(rng.choice(documents))
        for _ in range(rng.choice((1, 1, 2))):
            target = document
            while True:
                key = rng.choice(sorted(target))
                if isinstance(target[key], dict) and target[key] and rng.random() < 0.7:
                    target = target[key]
                    continue
                if rng.random() < 0.1:
                    del target[key]
                elif rng.random() < 0.15:
                    target[rng.choice(KEYS)] = target.pop(key)
                else:
                    target[key] = rng.choice(FIELD_VALUES)
                break
            if not document:
                break
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
        if rng.random() < 0.1:
            text = text[:rng.randrange(len(text))]
        if rng.random() < 0.05:
            text = text.replace("{", '{"name": 1, "name": 2, ', 1)
        path = f"{kind}{number}.json"
        with open(os.path.join(checker.folder, path), "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        if checker.run(arguments_of(path), text[:100] if len(text) < 100 else path) == 0:
            os.remove(os.path.join(checker.folder, path))


def bad_kernels(checker, rng, count):
    """Every operator with sizes, dtypes and settings that may not go together."""
    listed = subprocess.run([checker.program, "ops"], capture_output=True, text=True).stdout
    operators = re.findall(r"^ *([a-z][a-z0-9_]+) ", listed, re.M)[1:]
    sizes = ("0", "-1", "1", "2", "7", "64", "1000", "2147483647", str(1 << 62), str((1 << 63) - 1))
    for _ in range(count):
        arguments = ["kernel", rng.choice(operators), "--format", "json",
                     "--gpu=" + rng.choice(("H100", "T4", "MI100", "P100")),
                     "--dtype=" + rng.choice(("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int64", "bool"))]
        for flag in rng.sample(("--batch", "--m", "--n", "--k", "--heads", "--kv-heads", "--head-dim", "--window",
                                "--num-experts", "--chosen", "--ranks", "--skew", "--padding"), rng.randint(0, 5)):
            arguments.append(f"{flag}={rng.choice(sizes)}")
        for extra in ("--scheme=fp8", "--scheme=int4_wo", "--kv-dtype=fp8", "--causal", "--warm", "--predictor=roofline"):
            if rng.random() < 0.15:
                arguments.append(extra)
        checker.run(arguments, "kernel")


def mutated(rng, text):
    """The text with some of its words or numbers replaced, moved or cut."""
    words = re.split(r"(\W)", text)
    for _ in range(rng.choice((1, 2, 4))):
        at = rng.randrange(len(words))
        words[at] = rng.choice([*VALUES, "", words[rng.randrange(len(words))], words[at] * 2])
    text = "".join(words)
    return text[:rng.randrange(len(text) + 1)] if rng.random() < 0.1 else text


def bad_texts(checker, rng, count, name, text, arguments):
    for number in range(count):
        path = os.path.join(checker.folder, name)
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(mutated(rng, text))
        checker.run(arguments, f"{name} {number}")


def bad_onnx(checker, rng, count):
    """ONNX files with bytes that are cut, changed or repeated; a file whose weights are elsewhere and huge."""
    seeds = os.path.join(HERE, "fuzz", "onnx")
    for number in range(count):
        seed = rng.choice(sorted(os.listdir(seeds)))
        with open(os.path.join(seeds, seed), "rb") as file:
            content = bytearray(file.read())
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(content))
            kind = rng.random()
            if kind < 0.1:
                content = content[:at + 1]
            elif kind < 0.2:
                content[at:at] = content[at:at + rng.randrange(200)]
            else:
                content[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, content[at] ^ 1, rng.randrange(256)))
        with open(os.path.join(checker.folder, "model.onnx"), "wb") as file:
            file.write(content)
        arguments = ["forecast", "model.onnx", "--gpu", "T4", "--format", "json"]
        arguments += {"attention.onnx": ["--dim", "seq=4"], "function.onnx": ["--dim", "n=4"]}.get(seed, [])
        if rng.random() < 0.5:
            arguments.append("--skip-unsupported")
        if rng.random() < 0.3:
            arguments += ["--mode", "training"]
        checker.run(arguments, f"onnx {number}", memory=1 << 30)


def bad_files(checker):
    folder = checker.folder
    os.mkfifo(os.path.join(folder, "pipe"))
    os.mkdir(os.path.join(folder, "folder"))
    with open(os.path.join(folder, "large"), "wb") as file:
        file.truncate(1 << 40)
    with open(os.path.join(folder, "binary"), "wb") as file:
        file.write(bytes(range(256)) * 16)
    with open(os.path.join(folder, "deep"), "w", encoding="utf-8") as file:
        file.write('{"a":' * 100000)
    for name in ("pipe", "folder", "large", "binary", "deep", "none", "/dev/zero", "/dev/full", "/dev/null", "/proc/self/mem",
                 "/proc/self/environ", ".", "/"):
        for arguments in (["forecast", name, "--gpu", "T4"], ["forecast", "gpt2_large", "--gpu", "./" + name
                          if not name.startswith("/") else name],
                          ["forecast", "gpt2_large", "--gpu", "T4", "--calibration", name],
                          ["forecast", "gpt2_large", "--gpu", "T4", "--weights", name],
                          ["calibrate", "--gpu", "L4", "--measurements", name, "-o", "out.json"]):
            if name in (".", "/", "folder") and arguments[0] == "calibrate":
                continue  # a folder to walk
            if checker.run(arguments, "file") == 0:
                checker.fail(arguments, "file", "was accepted")
    # Small as a file, hundreds of megabytes once read.
    for lists, message in ((1_400_000, "out of memory while reading"), (20_000_000, "holds more than 3000000 values")):
        with open(os.path.join(folder, "lists.json"), "w", encoding="utf-8") as file:
            file.write('{"model_type": "gpt2", "x": [' + "[]," * lists + "[]]}")
        checker.run(["forecast", "lists.json", "--gpu", "T4"], "memory", memory=1 << 28, message=message)
    # Too little memory at any place is said, and is no bug. With the first of these the program just starts: libraries take 8.
    first = os.path.getsize(checker.program) // (1 << 20) + 8
    limits = range(first, first + 28, 4)
    for lists in (3_000, 30_000, 300_000):
        with open(os.path.join(folder, "lists.json"), "w", encoding="utf-8") as file:
            file.write('{"model_type": "gpt2", "x": [' + "[]," * lists + "[]]}")
        for mebibytes in limits:
            checker.run(["forecast", "lists.json", "--gpu", "T4"], f"memory {mebibytes} MiB", memory=mebibytes << 20)
    os.remove(os.path.join(folder, "lists.json"))
    for mebibytes in limits:
        for model in (["gpt2_large", "--mode", "training"], ["deepseek-v3", "--prompt", "512", "--output", "64", "--tp", "8"],
                      ["stable-diffusion-1.5", "--mode", "training"]):
            checker.run(["forecast", *model, "--gpu", "H100"], f"memory {mebibytes} MiB", memory=mebibytes << 20)
    left = [name for name in os.listdir(folder) if ".part" in name]
    if left:
        checker.failures.append(f"part files are left: {left}")


def at(value, path):
    for key in path:
        value = value[key]
    return value


def bad_accelerators(checker):
    """Descriptions and mappings that are wrong in one place: the message states it."""
    with open(os.path.join(HERE, "accelerators", "vector.json"), encoding="utf-8") as file:
        vector = json.load(file)
    with open(os.path.join(DATA, "accelerators", "gemmini.json"), encoding="utf-8") as file:
        gemmini = json.load(file)
    with open(os.path.join(checker.folder, "acc.tcg"), "w", encoding="utf-8") as file:
        file.write(GRAPH)
    objects = {name["name"]: i for i, name in enumerate(gemmini["objects"])}
    flow = ("dataflows", "output_stationary")
    l2, dram = ("objects", objects["l2"]), ("objects", objects["dram"])
    quantity = {"value": 3, "unit": "1", "source": "s"}
    # The file, where it is changed, the value there (None: removed), what the message says.
    cases = [
        (vector, ("operand_dtype",), "int16", "'operand_dtype': int16 has 2 bytes, but the elements of the buffer of inputs"),
        (vector, ("accumulator_dtype",), "int8", "'accumulator_dtype': int8 has 1 bytes, but the elements of the buffer of outputs"),
        (vector, ("operand_dtype",), "byte", "expected a data type with its bits"),
        (vector, ("objects",), None, "'objects': expected a list of objects"),
        (vector, flow + ("order",), "nkqprsck", "which repeats 'k'"),
        (vector, flow + ("order",), "nkqprsz", "which has 'z'"),
        (vector, flow + ("order",), "nqprsc", "'k' is missing"),
        (vector, flow + ("stored_element", "unit"), "bit", 'expected "B", found "bit"'),
        (vector, flow + ("store_applies",), ["relu", "nonsense"], "store_applies: unknown operator 'nonsense'"),
        (vector, flow + ("compute",), {}, "expected at least one kind of layer"),
        (vector, ("objects", 5, "ports", "unit"), "port", 'expected "1" (a count or a share), found "port"'),
        (vector, ("objects", 5, "ports", "value"), 0, "expected a value from 1 to 1000000, found 0"),
        (vector, ("objects", 5, "ports"), 3, 'expected {"value": …, "unit": "1", "source": …}, found 3'),
        (vector, ("objects", 5, "bytes", "value"), 16, "layer 'first': not even the smallest tile of the layer runs ("),
        (vector, flow + ("load_input", "operation"), "lode", "no unit has the operation 'lode'; did you mean 'load'"),
        (vector, ("objects", 5, "ways"), quantity, "is a field of caches; this is of type sram"),
        (vector, ("objects", 1, "contains"), ["vector", "dma_in"], "object 'dma_out': no instruction can reach it"),
        (vector, ("objects", 2, "operations", "mac", "latency", "value"), "c / (LANES - 32)", "divides by zero"),
        (vector, ("objects", 2, "operations", "mac", "latency", "value"), "c * 1e12", "expected a time from 0 to"),
        (vector, ("objects", 2, "operations", "mac", "latency", "value"), "lanes", "unknown name 'lanes'"),
        (vector, ("host", "macs_per_cycle"), {**quantity, "value": 0, "unit": "MAC/cycle"}, "expected a value from"),
        (gemmini, l2 + ("backing",), None, "'backing': is missing: the memory that serves the misses of a cache"),
        (gemmini, l2 + ("backing",), "l2", "no other memory is named 'l2'"),
        (gemmini, l2 + ("ways",), quantity, "3 ways do not divide its 8192 lines"),
        (gemmini, dram + ("backing",), "l2", "is a field of caches; this is of type dram"),
    ]
    for source, path, value, message in cases:
        changed = copy.deepcopy(source)
        if value is None:
            del at(changed, path[:-1])[path[-1]]
        else:
            at(changed, path[:-1])[path[-1]] = value
        with open(os.path.join(checker.folder, "acc.json"), "w", encoding="utf-8") as file:
            json.dump(changed, file)
        arguments = ["forecast", "acc.tcg", "--gpu", "acc.json"]
        if checker.run(arguments, f"accelerator: {'.'.join(map(str, path))} = {value}", message=message) == 0:
            checker.fail(arguments, f"{path} = {value}", "was accepted")
    mapping = {"schema_version": 1, "layers": [{"layer": "first", "mapping": "order=k tile=k16"}]}
    texts = [
        (mapping, "accepted"),
        ({**mapping, "layers": [{"layer": "fist", "mapping": "order=k tile=k16"}]}, "is 'fist'; did you mean 'first'"),
        ({**mapping, "layers": 2 * mapping["layers"]}, "layers[1]: is for layer 'first', as"),
        ({**mapping, "layers": [{"mapping": "order=k"}]}, "state the name of the layer, or its sizes"),
        ({**mapping, "layers": [{"layer": "first"}]}, "mapping"),
        ({**mapping, "layers": [{"layer": "first", "mapping": "order=k tile=k65"}]}, "layer 'first': the tile has k65"),
        ({**mapping, "layers": {}}, "'layers': expected a list"),
        ({**mapping, "layers": []}, "'layers': is empty; leave the file out"),
        ({**mapping, "layers": [{"layer": "first", "kind": "conv", "mapping": "order=k"}]}, "expected product, depthwise"),
        ({**mapping, "layers": [{"layer": "first", "kind": "pooling", "mapping": "order=k"}]},
         "layer 'first' is of another kind or shape: it is product, k 64, c 64, p 64; the entry states pooling"),
        ({**mapping, "layers": [{"sizes": "k 64, c 64, p 64", "kind": "pooling", "mapping": "order=k"}]},
         "layers[0]: the layers 'k 64, c 64, p 64' on gemmini are of the kind product; the entry states pooling"),
        ({**mapping, "layer": []}, "layer"),
    ]
    for content, message in texts:
        with open(os.path.join(checker.folder, "mappings.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)
        accepted = message == "accepted"
        arguments = ["forecast", "acc.tcg", "--gpu", "gemmini", "--mapping", "mappings.json"]
        status = checker.run(arguments, "mappings", message="" if accepted else message)
        if (status == 0) != accepted:
            checker.fail(arguments, json.dumps(content), f"status {status}")
    for text, message in (("order=kk tile=k16", "names 'k' twice"), ("tile=k16,k8", "names 'k' twice"),
                          ("order=k order=c", "'order=' is given twice"), ("order=k tile=k16,,c4", "an empty size"),
                          ("order=z", "unknown dimension 'z'"), ("tile=k16", "does not cover the layer"),
                          ("k=16", "expected 'order=…' or 'tile=…'"), ("order=k tile=k0", "expected a size from 1 to")):
        if checker.run(["forecast", "acc.tcg", "--gpu", "gemmini", "--mapping", text], "mapping", message=message) == 0:
            checker.fail([text], "mapping", "was accepted")
    for name, message in (("gemini", "unknown accelerator 'gemini'; did you mean 'gemmini'"),
                          ("gemmini-17", "known: gemmini, gemmini-16"), ("none:DIM=8", "unknown accelerator 'none'"),
                          ("gemmini: DIMM=8", "unknown parameter 'DIMM'; did you mean 'DIM'"),
                          ("gemmini:DIM=3", "expected a value from 4 to 64, found 3"), ("gemmini:DIMM=8", "unknown parameter 'DIMM'"),
                          ("gemmini:dataflow=none", "unknown dataflow 'none'; it has: weight_stationary")):
        if checker.run(["forecast", "acc.tcg", "--gpu", name], "accelerator", message=message) == 0:
            checker.fail([name], "accelerator", "was accepted")
    for text in ("DIM", "DIM=", "=8", "DIM=1e999"):
        if checker.run(["forecast", "acc.tcg", "--gpu", "gemmini", "--parameters", text], "accelerator",
                       message=f"expected NAME=N, found '{text}'") == 0:
            checker.fail([text], "accelerator", "was accepted")
    lists = {"model": ["acc.tcg"], "gpu": ["gemmini"]}
    for content, message in (({**lists, "dtype": ["int8"]}, "--dtype has no effect on an accelerator"),
                             ({**lists, "mode": ["training"]}, "accelerators run forward passes only"),
                             ({**lists, "dataflow": ["os"]}, "a dataflow is stated with the device"),
                             ({**lists, "gpu": ["gemmini:DIM=8"], "parameters": {"DIM": [4]}}, "'gemmini:DIM=8' states DIM, and so do"),
                             ({**lists, "parameters": {"DIM": [8, 1024]}}, "expected a value from 4 to 64, found 1024"),
                             ({**lists, "gpu": ["gemmini: DIM = 8"], "parameters": {"DIM": [4]}}, "'gemmini: DIM = 8' states DIM, and so do"),
                             ({**lists, "parameters": {"DIM": [16, 8, 16]}}, "'parameters.DIM': lists '16' twice"),
                             ({**lists, "parameters": {"DIM": [16, "1.6e1"]}}, "'parameters.DIM': lists '1.6e1' twice"),
                             ({**lists, "model": ["acc.tcg", "acc.tcg"]}, "'model': lists 'acc.tcg' twice"),
                             ({**lists, "gpu": ["gemmini", "gemmini"]}, "'gpu': lists 'gemmini' twice"),
                             ({**lists, "batch": [1, 1]}, "'batch': lists '1' twice"),
                             ({**lists, "parameters": {"DIM": 8}}, "'parameters.DIM': expected a list of at least one value"),
                             ({"model": ["acc.tcg"], "gpu": ["gemmini", "H100"], "parameters": {"DIM": [8]}}, "a GPU has no number 'DIM'")):
        with open(os.path.join(checker.folder, "sweep.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)
        if checker.run(["sweep", "sweep.json", "-o", "sweep.csv"], "sweep", message=message) == 0:
            checker.fail([json.dumps(content)], "sweep", "was accepted")
    if checker.run(["forecast", "acc.tcg", "--gpu", "gemmini", "--batch", "2"], "batch", message="a graph file fixes its shapes") == 0:
        checker.fail(["--batch 2"], "accelerator", "was accepted")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=250, help="of each kind")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "rows.csv"), "w", encoding="utf-8") as file:
            file.write("gpu,op,dtype,batch,m,n,k,latency_s\nL4,linear,fp32,1,640,2432,384,0.0001\n")
        with open(os.path.join(folder, "tables.json"), "w", encoding="utf-8") as file:
            json.dump(TABLES[0], file)
        checker = Checker(os.path.abspath(args.program), folder)
        rng = random.Random(args.seed)
        bad_files(checker)
        bad_accelerators(checker)
        bad_flags(checker, rng, args.count)
        bad_kernels(checker, rng, 2 * args.count)
        bad_onnx(checker, rng, 2 * args.count)
        bad_fields(checker, rng, args.count, "models", bundled("models"),
                   lambda path: ["forecast", path, "--gpu", "H100", "--format", "json"])
        bad_fields(checker, rng, args.count, "quantized", QUANTIZED,
                   lambda path: ["forecast", path, "--gpu", "H100", "--format", "json"])
        bad_fields(checker, rng, args.count, "tables", TABLES,
                   lambda path: ["shard", path, "--cluster", "dgx-a100", "--format", "json"])
        bad_texts(checker, rng, args.count, "tables2.json", json.dumps(TABLES[0]),
                  ["shard", "tables2.json", "--cluster", "dgx-a100", "--format", "json"])
        bad_fields(checker, rng, args.count, "devices", bundled("devices"),
                   lambda path: ["forecast", "gpt2_large", "--gpu", path, "--format", "json"])
        bad_fields(checker, rng, args.count, "accelerators", bundled("accelerators"),
                   lambda path: ["forecast", "acc.tcg", "--gpu", path, "--format", "json"])
        bad_texts(checker, rng, args.count, "rows2.csv", ROWS, ["evaluate", "rows2.csv", "--format", "json"])
        bad_texts(checker, rng, args.count, "g.tcg", GRAPH, ["forecast", "g.tcg", "--gpu", "H100", "--format", "json"])
    for failure in checker.failures[:40]:
        print(failure)
    print(f"{checker.runs} runs, {checker.accepted} accepted, {len(checker.failures)} failures")
    return 1 if checker.failures else 0


if __name__ == "__main__":
    sys.exit(main())
