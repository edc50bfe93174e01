#!/usr/bin/env python3
"""Runs the program on made-up command lines and damaged files, and counts what must not happen.

    tools/campaign.py PROGRAM [--seed N] [--count N] [--jobs N] [--keep FOLDER] [--only KIND]

Counted are crashes (a signal, a status beside 0, 1 and 2), internal errors ("this is a bug"), runs
of more than 10 s of processor time, of more than 1 GiB, and wrong answers: numbers that are not
finite, times or sizes below 0, control characters, a failure without a message, a file that a
failed run has left. The inputs of what was found stay in FOLDER, with the command that shows it.

Beside tests/bad_inputs.py, which tries one bad value at a time, the command lines have any number
of options at once, with values that fit beside others that do not, and files are damaged by their
structure: protobuf fields of ONNX, nodes of JSON, cells of CSV, lines of graphs, bytes of all.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS, MEMORY = 10, 1 << 30
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
NUMBERS = [0, 1, -1, 2, 3, 7, 16, 64, 100, 255, 256, 1023, 4096, 65536, 10 ** 6, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 62,
           2 ** 63 - 1, 2 ** 63, 2 ** 64, 10 ** 30, 0.5, 1e-9, 1e-300, 1e300, 1.5, -2.5]
TEXTS = ["", " ", "x", "nan", "inf", "-inf", "1e999", "0x10", "1,5", "1:2", "8:4", "1:2:3", "a" * 3000, "\x1b[2Jx", "é" * 50, "'", '"', "\\",
         "../../etc/passwd", "/dev/null", "/dev/zero", ".", "--", "-", "=", "%s%n", "{tp}", "$(id)", "\u202e", "ä,ö", "T4", "H100", "fp32"]


def number(rng: random.Random) -> str:
    if rng.random() < 0.7:
        return str(rng.choice([1, 1, 2, 4, 8, 16, 32, 64, 128, 512, 1024, 2048, 4096]))
    return str(rng.choice(NUMBERS))


class Options:
    """The options of a command, from its help: a flag and what its value looks like."""

    def __init__(self, program: str, command: str):
        text = subprocess.run([program, command, "--help-all"], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}).stdout
        self.all = {}
        for flag, value in re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)(?: ([^\s\[]+))?", text, re.M):
            if flag not in ("--help", "--help-all", "--output-file", "--trees"):
                self.all[flag] = value or ""

    def draw(self, rng: random.Random, files: dict) -> list:
        flag = rng.choice(sorted(self.all))
        shape = self.all[flag]
        if shape == "" or shape.startswith("-"):
            return [flag] if rng.random() < 0.95 else [f"{flag}={rng.choice(TEXTS)}"]
        if rng.random() < 0.07:
            value = rng.choice(TEXTS)
        elif flag == "--gpu":
            value = rng.choice(files["gpus"])
        elif flag == "--gpus":
            value = ",".join(rng.choices(files["gpus"], k=rng.randint(1, 4)))
        elif flag == "--cluster":
            value = rng.choice(files["clusters"])
        elif "|" in shape and shape.upper() != shape:
            value = rng.choice(shape.split("|"))
        elif "DTYPE" in shape or shape == "D":
            value = rng.choice(["fp32", "tf32", "bf16", "fp16", "amp", "fp8", "int8", "fp4", "int4_wo", "fp8_wo", "nvfp4", "mxfp4_wo", "int64"])
        elif "FILE" in shape or "PATH" in shape:
            value = rng.choice(files["any"])
        elif "LOW:HIGH" in shape and rng.random() < 0.3:
            value = f"{number(rng)}:{number(rng)}"
        elif "LIST" in shape:
            value = ",".join(number(rng) for _ in range(rng.randint(1, 4)))
        else:
            value = number(rng)
        return [flag, value] if rng.random() < 0.8 else [f"{flag}={value}"]


# Files, damaged.

def hostile(rng: random.Random):
    return rng.choice([*NUMBERS, *TEXTS, None, True, False, [], {}, [[]], [1, 2], {"value": -1}, [None] * 5])


def nodes_of(value, found: list) -> list:
    for key in (list(value) if isinstance(value, dict) else range(len(value))):
        found.append((value, key))
        if isinstance(value[key], (dict, list)) and value[key]:
            nodes_of(value[key], found)
    return found


def damaged_json(rng: random.Random, text: str) -> bytes:
    document = json.loads(text)
    if rng.random() < 0.5:  # nothing but other sizes, most of which fit
        sizes = [(parent, key) for parent, key in nodes_of(document, []) if type(parent[key]) in (int, float)]
        for parent, key in rng.sample(sizes, min(len(sizes), rng.choice([1, 1, 2, 4]))):
            other, place = rng.choice(sizes)
            value = rng.choice([parent[key] * 2, parent[key] // 2, parent[key] + 1, 1, 2, 3, other[place], parent[key] * 64, rng.choice(NUMBERS)])
            fraction = isinstance(parent[key], float) or rng.random() < 0.1 or value != value
            parent[key] = value if fraction else int(min(value, 1e40))
        return json.dumps(document).encode()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = nodes_of(document, [])
        if not places:
            break
        parent, key = rng.choice(places)
        what = rng.random()
        if what < 0.15:
            del parent[key]
        elif what < 0.25 and isinstance(parent, dict):
            parent[rng.choice(TEXTS)] = parent.pop(key)
        elif what < 0.35:
            other, place = rng.choice(places)
            try:
                parent[key] = copy.deepcopy(other[place])
            except (KeyError, IndexError):
                pass
        elif what < 0.5 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool) and parent[key] == parent[key]:
            try:
                parent[key] = rng.choice([parent[key] * 1000, -parent[key], parent[key] + 1, parent[key] / 3, int(parent[key]) - 1])
            except OverflowError:
                parent[key] = 0
        elif what < 0.55 and isinstance(parent[key], list):
            parent[key] = parent[key] * rng.choice([2, 50])
        else:
            parent[key] = hostile(rng)
    out = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    return damaged_bytes(rng, out.encode(errors="surrogatepass"), 0.1)


def damaged_bytes(rng: random.Random, data: bytes, chance: float = 1) -> bytes:
    if rng.random() >= chance or not data:
        return data
    content = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(content) + 1)
        what = rng.random()
        if what < 0.4 and at < len(content):
            content[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256), content[at] ^ 1 << rng.randrange(8)])
        elif what < 0.6:
            content[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4, 16])))
        elif what < 0.75:
            del content[at:at + rng.choice([1, 4, 64])]
        elif what < 0.85:
            start = rng.randrange(len(content) + 1)
            content[at:at] = content[start:start + rng.choice([8, 100])]
        elif what < 0.92:
            content = content[:at]
        else:
            content[at:at] = b"\xff" * 9 + b"\x01"
        if not content:
            break
    return bytes(content)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def fields_of(data: bytes):
    """The fields of a protobuf message, or None where it is none."""
    fields, at = [], 0

    def read() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError

    try:
        while at < len(data):
            tag = read()
            kind = tag & 7
            if tag >> 3 == 0 or kind not in (0, 1, 2, 5):
                return None
            if kind == 0:
                fields.append([tag, read()])
                continue
            length = {1: 8, 5: 4}.get(kind) or (read() if kind == 2 else 0)
            if at + length > len(data):
                return None
            fields.append([tag, data[at:at + length]])
            at += length
    except (IndexError, ValueError):
        return None
    return fields


def message_of(fields: list) -> bytes:
    out = b""
    for tag, value in fields:
        out += varint(tag) + (varint(value) if tag & 7 == 0 else varint(len(value)) + value if tag & 7 == 2 else value)
    return out


def damaged_message(rng: random.Random, data: bytes, depth: int = 0) -> bytes:
    fields = fields_of(data)
    if not fields or depth > 8:
        return damaged_bytes(rng, data)
    at = rng.randrange(len(fields))
    tag, value = fields[at]
    deeper = isinstance(value, bytes) and tag & 7 == 2 and len(value) > 1 and rng.random() < 0.85
    if deeper:
        fields[at][1] = damaged_message(rng, value, depth + 1)
        return message_of(fields)
    what = rng.random()
    if what < 0.15:
        del fields[at]
    elif what < 0.3:
        fields.insert(at, copy.copy(rng.choice(fields)))
    elif what < 0.4:
        other = rng.randrange(len(fields))
        fields[at], fields[other] = fields[other], fields[at]
    elif what < 0.5:
        fields[at][0] = (rng.randrange(1, 30) << 3) | tag & 7
    elif tag & 7 == 0:
        fields[at][1] = rng.choice([0, 1, 2, 7, 2 ** 31, 2 ** 32, 2 ** 62, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1, value + 1])
    elif isinstance(value, bytes):
        values = [b"", value * 2, damaged_bytes(rng, value), b"\x1b[2J", b"\xff\xfe",
                  b"".join(rng.choice([2 ** 63 - 1, 0, 2 ** 64 - 1, 1]).to_bytes(8, "little") for _ in range(len(value) // 8 or 1))]
        fields[at][1] = rng.choice(values) if tag & 7 == 2 else bytes(len(value))
    return message_of(fields)


def damaged_lines(rng: random.Random, text: str) -> bytes:
    """Of CSV and graphs: cells, words and lines."""
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not lines:
            break
        at = rng.randrange(len(lines))
        what = rng.random()
        if what < 0.1:
            del lines[at]
        elif what < 0.2:
            lines.insert(at, rng.choice(lines))
        elif what < 0.25:
            lines[at] = lines[at] * rng.choice([2, 20])
        else:
            parts = re.split(r"([,\s\[\]{}=:()])", lines[at])
            place = rng.randrange(len(parts))
            parts[place] = str(rng.choice([*NUMBERS, *TEXTS, rng.choice(parts), ""]))
            lines[at] = "".join(parts)
    return damaged_bytes(rng, ("\n".join(lines) + "\n").encode(errors="surrogatepass"), 0.15)


class Campaign:
    def __init__(self, program: str, keep: Path):
        self.program, self.keep = str(Path(program).resolve()), keep
        self.options = {command: Options(self.program, command) for command in
                        ("forecast", "compare", "kernel", "collective", "plan", "shard", "evaluate", "calibrate", "tune", "gpus", "clusters", "models", "ops")}
        read = lambda pattern: [path.read_text(errors="replace") for path in sorted(ROOT.glob(pattern))]
        self.models = [path.stem for path in sorted((ROOT / "data/models").glob("*.json"))]
        self.gpus = [path.stem for path in sorted((ROOT / "data/devices").glob("*.json"))] + ["H100", "T4", "A100", "MI250X"]
        self.clusters = [path.stem for path in sorted((ROOT / "data/clusters").glob("*.json"))]
        self.operators = [op["name"] for op in json.loads(subprocess.run([self.program, "ops", "--format", "json"], capture_output=True, text=True).stdout)]
        self.configs = read("data/models/*.json") + read("tests/fuzz/config/*.json")
        self.devices, self.cluster_files = read("data/devices/*.json"), read("data/clusters/*.json")
        self.accelerators = read("data/accelerators/*.json")
        self.onnx = [path.read_bytes() for path in sorted((ROOT / "tests/fuzz/onnx").iterdir())]
        self.gguf = [path.read_bytes() for path in sorted((ROOT / "tests/fuzz/gguf").iterdir())]
        self.graphs = read("tests/fuzz/graph/*.tcg")
        self.tables = read("tests/fuzz/tables/*")
        self.csv = read("tests/fuzz/csv/*") + read("tests/fuzz/trace/*") + read("tests/data/*.csv")
        self.rows = read("tests/fuzz/csv/kit.csv")
        self.calibrations = read("tests/fuzz/calibration/*.json")

    def model(self, rng: random.Random) -> str:
        return rng.choice(self.models)

    def command_line(self, rng: random.Random, folder: Path) -> list:
        """Any number of options of one command, on bundled models and GPUs."""
        command = rng.choice(["forecast"] * 8 + ["kernel"] * 4 + ["plan", "compare", "collective", "collective", "gpus", "models", "clusters", "ops", "calibrate", "evaluate", "tune", "shard"])
        files = {"gpus": self.gpus, "clusters": self.clusters, "any": ["/dev/null", ".", "missing.json", "rows.csv", "out.x"]}
        (folder / "rows.csv").write_text(rng.choice(self.csv))
        line = {
            "forecast": lambda: [self.model(rng), "--gpu", rng.choice(self.gpus)] + rng.choice([[], ["--mode", "training"], ["--prompt", number(rng), "--output", number(rng)]]),
            "compare": lambda: [self.model(rng), self.model(rng), "--gpu", rng.choice(self.gpus)],
            "kernel": lambda: [rng.choice(self.operators), "--gpu", rng.choice(self.gpus)],
            "plan": lambda: [self.model(rng), "--cluster", rng.choice(self.clusters), "--batch", rng.choice(["8", "64"]), "--seq", "128"],
            "collective": lambda: [rng.choice(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]), "--cluster", rng.choice(self.clusters), "--ranks", number(rng), "--bytes", number(rng)],
            "calibrate": lambda: ["--gpu", rng.choice(self.gpus), "--suggest", rng.choice(["1", "3", number(rng)])],
            "evaluate": lambda: ["rows.csv"],
            "tune": lambda: [rng.choice(["gemm m=4096 n=512 k=1024 dtype=fp16", "conv n=1 c=3 h=8 w=8 k=4 y=3 x=3", "gemm m=" + number(rng)]), "--gpu", "MI250X"],
            "shard": lambda: ["rows.csv", "--cluster", rng.choice(self.clusters)],
        }.get(command, list)()
        line = [command, *line]
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3, 5])):
            more = self.options[command].draw(rng, files)
            if more[0].split("=")[0] not in line or rng.random() < 0.05:
                line += more
        if rng.random() < 0.05:
            del line[rng.randrange(1, len(line)) if len(line) > 1 else 0]
        return line or ["help"]

    def damaged(self, rng: random.Random, folder: Path, kind: str) -> list:
        """A command that reads a damaged file."""
        gpu = ["--gpu", rng.choice(["H100", "T4", "L40S", "MI250X", "B200"])]
        how = rng.choice([[], ["--mode", "training", "--batch", "2"], ["--format", "json"], ["--batch", number(rng), "--seq", number(rng)],
                          ["--prompt", "64", "--output", "8"], ["--fusion", "pointwise"], ["--mode", "training", "--optimizer", "adamw", "--checkpointing", "full"]])

        def put(name: str, content: bytes) -> str:
            (folder / name).write_bytes(content)
            return name

        if kind == "onnx":
            content = rng.choice(self.onnx)
            for _ in range(rng.choice([1, 1, 2, 3])):
                content = damaged_message(rng, content)
            return ["forecast", put("m.onnx", content), *gpu, *how, *rng.choice([[], ["--skip-unsupported"], ["--dim", "batch=2"]])]
        if kind == "config":
            return ["forecast", put("config.json", damaged_json(rng, rng.choice(self.configs))), *gpu, *how]
        if kind == "graph":
            return ["forecast", put("g.tcg", damaged_lines(rng, rng.choice(self.graphs))), *gpu, *how]
        if kind == "gguf":
            return ["forecast", put("m.gguf", damaged_bytes(rng, rng.choice(self.gguf))), *gpu, *how]
        if kind == "device":
            name = put("d.json", damaged_json(rng, rng.choice(self.devices)))
            return rng.choice([["forecast", "gpt2_large", "--gpu", name, *how], ["kernel", rng.choice(self.operators), "--gpu", name],
                               ["forecast", "llama-3.2-1b", "--gpu", name, "--prompt", "64", "--output", "8"]])
        if kind == "accelerator":
            return ["forecast", "resnet-50", "--gpu", put("d.json", damaged_json(rng, rng.choice(self.accelerators)))]
        if kind == "cluster":
            name = put("c.json", damaged_json(rng, rng.choice(self.cluster_files)))
            return rng.choice([["forecast", "gpt2_large", "--cluster", name, "--mode", "training", "--dp", "2", "--batch", "4"],
                               ["collective", "all_reduce", "--cluster", name, "--ranks", number(rng), "--bytes", number(rng)],
                               ["plan", "gpt2_large", "--cluster", name, "--batch", "8", "--seq", "64", "--dtype", "bf16"]])
        if kind == "csv":
            name = put("t.csv", damaged_lines(rng, rng.choice(self.csv)))
            return rng.choice([["evaluate", name], ["calibrate", "--gpu", "T4", "--measurements", name, "-o", "out.json"],
                               ["forecast", "llama-3.2-1b", "--gpu", "H100", "--prompt", "64", "--output", "8", "--schedule", "continuous", "--trace", name],
                               ["calibrate", "--gpu", "L4", "--suggest", "3", "--candidates", name]])
        if kind == "tables":
            return ["shard", put("t.json", damaged_json(rng, rng.choice(self.tables))), "--cluster", "dgx-a100"]
        if kind == "calibration":
            text = rng.choice([text for text in self.calibrations if text.lstrip().startswith("{")])
            try:
                content = damaged_json(rng, text)
            except ValueError:
                content = damaged_bytes(rng, text.encode())
            return ["forecast", "gpt2_large", "--gpu", "L4", "--calibration", put("k.json", content)]
        # A sweep of few rows: its lists are any.
        spec = {"model": rng.sample(self.models, 2), "gpu": rng.sample(self.gpus, 2), "batch": [1, 2], "seq": [16, 32]}
        return ["sweep", put("s.json", damaged_json(rng, json.dumps(spec))), "-o", "out.csv", "--quiet", "--threads", "1"]

    KINDS = ["line"] * 8 + ["onnx"] * 6 + ["config"] * 6 + ["graph"] * 3 + ["gguf", "device", "device", "accelerator", "cluster", "csv", "csv", "tables", "calibration", "sweep"]

    def one(self, seed: int, number_of_run: int, only: str) -> tuple:
        rng = random.Random(f"{seed}/{number_of_run}")
        kind = only or rng.choice(self.KINDS)
        folder = Path(tempfile.mkdtemp(prefix="campaign-"))
        try:
            line = self.command_line(rng, folder) if kind == "line" else self.damaged(rng, folder, kind)
            if any("\0" in part for part in line):
                return kind, "skipped", 0.0
            before = set(os.listdir(folder))
            limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                process = subprocess.Popen([self.program, *(part.encode(errors="surrogatepass") for part in line)], cwd=folder, stdin=subprocess.DEVNULL,
                                           stdout=out, stderr=err, preexec_fn=limit, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                out.seek(0), err.seek(0)
                text, said = out.read().decode(errors="surrogateescape"), err.read().decode(errors="surrogateescape")
            code, seconds = process.returncode, usage.ru_utime + usage.ru_stime
            found = None
            if code not in (0, 1, 2):
                found = f"status {code}"
            elif "this is a bug" in said:
                found = "internal error"
            # A plan is a search of up to a minute, with progress.
            elif seconds > (120 if line[0] == "plan" else SECONDS):
                found = f"{seconds:.0f} s of processor time"
            elif usage.ru_maxrss * 1024 > MEMORY:
                found = f"{usage.ru_maxrss / 1024:.0f} MiB"
            elif code != 0 and not said.strip():
                found = "fails without a message"
            elif code == 1 and not said.startswith("tilecast:"):
                found = "message without a prefix"
            elif code != 2 and (CONTROL.search(text) or CONTROL.search(said)):
                found = "control characters"
            elif code == 0 and re.search(r"(?<![\w/.-])-?(nan|inf)\b", text):
                found = "not finite"
            # Plans say by how much memory others differ.
            elif code == 0 and line[0] != "compare" and re.search(r"(?<![\w.e+-])-\d[\d.]* ?(us|ms|s|B|KiB|MiB|GiB)\b",
                                                                  re.sub(r"\bmemory +-", "memory ", text) if line[0] == "plan" else text):
                found = "negative"
            elif code != 0 and kind != "sweep" and set(os.listdir(folder)) - before:
                found = "a failed run left a file"
            if found:
                place = self.keep / f"{kind}-{seed}-{number_of_run}"
                shutil.copytree(folder, place, dirs_exist_ok=True)
                (place / "command.json").write_text(json.dumps({"found": found, "line": line, "said": said[-2000:], "seconds": seconds, "kib": usage.ru_maxrss}, indent=1))
            return kind, found or f"status {code}", seconds
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first run: campaigns in pieces")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", default="campaign-found")
    parser.add_argument("--only", default="", help="line, onnx, config, graph, gguf, device, accelerator, cluster, csv, tables, calibration or sweep")
    arguments = parser.parse_args()
    keep = Path(arguments.keep)
    keep.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(arguments.program, keep.resolve())
    counts, findings, longest, started = Counter(), [], 0.0, time.time()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        numbers = range(arguments.first, arguments.first + arguments.count)
        for i, (kind, found, seconds) in zip(numbers, pool.map(lambda n: campaign.one(arguments.seed, n, arguments.only), numbers)):
            counts[kind, found if found.startswith("status") and found[7:] in "012" or found == "skipped" else "found"] += 1
            longest = max(longest, seconds)
            if (i + 1 - arguments.first) % 1000 == 0:
                print(f"{i + 1 - arguments.first} runs, {len(findings)} found", file=sys.stderr, flush=True)
            if found not in ("status 0", "status 1", "status 2", "skipped"):
                findings.append((kind, i, found))
                print(f"{kind}-{arguments.seed}-{i}: {found}", flush=True)
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:12}" + "".join(f"  {what} {counts[kind, what]:6}" for what in ("status 0", "status 1", "status 2", "skipped", "found")))
    print(f"{sum(counts.values())} runs in {time.time() - started:.0f} s, longest {longest:.1f} s of processor time, {len(findings)} found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
