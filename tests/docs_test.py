#!/usr/bin/env python3
"""Runs every command of the README and of docs/guide and docs/explanation, and follows the links of all pages.

    tests/docs_test.py PROGRAM [--update]

- A block that begins with "$ build/release/tilecast ..." shows a command with its output, which is compared (and rewritten with --update);
  of a command that ends in "| head ..." or "| grep ..." standard output alone is shown.
- Each line of a sh block that begins with "tilecast" or "build/release/tilecast" must end with exit status 0. Commands of a page run one
  after the other in one folder. A block after "<!-- not run: REASON -->" is left out.
- A block that begins with "```json file=NAME" (or csv) is a file of the page's commands. FILES are files of all pages.
- A python block that makes `forecast = tilecast.forecast("MODEL", option="...")`: the numbers in comments beside `print(forecast....)` must stand in
  the table of the same command.
"""
import ast
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for folder in ("guide", "explanation") for page in (ROOT / "docs" / folder).glob("*.md"))]
LINKED = [page for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("research/**/*.md")]]
# What examples call files of the reader.
FILES = {
    "path/to/config.json": "data/models/llama-3.1-8b.json",
    "path/to/vision/config.json": "tests/data/vision_config.json",
    "resnet50.onnx": "tests/fuzz/onnx/images.onnx",
    "model.onnx": "tests/fuzz/onnx/attention.onnx",
    "model.gguf": "tests/fuzz/gguf/llama_q4_k_m",
    "tables.json": "data/models/dlrm_mlperf.json",
    "path/to/pipeline": "tests/data/pixart_pipeline",
    "trace.json.gz": "tests/data/profiler_trace.json.gz",
}
BLOCK = re.compile(r"(?P<mark><!-- not run: [^>]*-->\n)?```(?P<kind>[^\n]*)\n(?P<body>.*?)```", re.S)
PIPE = re.compile(r"(.*?) \| ((?:head|grep) [^|;&<>`$]*)")
EXAMPLE = re.compile(r"\$ build/release/tilecast ((?:[^\n]*\\\n)*[^\n]*)\n(.*)", re.S)
COMMAND = re.compile(r"^(?:build/release/)?tilecast\s")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def commands(body):
    """The lines of a sh block that call the program, continued lines joined, as lists of words; what a ';' divides is several."""
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        if COMMAND.match(line):
            words = shlex.split(line, comments=True)
            part = []
            for word in [*words, ";"]:
                if word.endswith(";"):
                    part += [word[:-1]] if word != ";" else []
                    if part:
                        yield part[1:]
                    part = []
                else:
                    part.append(word)


def forecast_words(body):
    """The command that a python block asks `tilecast.forecast` for; None: it does not."""
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "tilecast.forecast" \
                and [ast.unparse(target) for target in node.targets] == ["forecast"]:
            words = ["forecast", *(str(ast.literal_eval(value)) for value in node.value.args)]
            for option in node.value.keywords:
                words += ["--" + option.arg.replace("_", "-"), str(ast.literal_eval(option.value))]
            return words
    return None


def shown_numbers(body):
    """Numbers with their units that comments beside print(forecast....) show."""
    for comment in re.findall(r"^print\(forecast\.[^)]*\) *# *(.*)$", body, re.M):
        yield from re.findall(r"[\d.,]+ [A-Za-z/]+", comment)


def check(page, program, update):
    """How many commands a page has, and how many fail or show something else."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    count = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, source in FILES.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, Path(folder) / name, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / source, Path(folder) / name)
        for block in BLOCK.finditer(text):
            name = re.search(r"file=(\S+)", block["kind"])
            if name:
                (Path(folder) / name[1]).write_text(block["body"], encoding="utf-8")

        def run(words):
            nonlocal count
            count += 1
            return subprocess.run([program, *words], capture_output=True, text=True, env=environment, cwd=folder, check=False)

        def visit(block):
            nonlocal failed
            if block["mark"]:
                return block[0]
            example = EXAMPLE.fullmatch(block["body"])
            if example and not block["kind"]:
                line = re.sub(r" *\\\n\s*", " ", example[1])
                pipe = PIPE.fullmatch(line)
                done = run(shlex.split(pipe[1] if pipe else line))
                found = done.stdout + done.stderr
                if pipe:
                    found = subprocess.run(shlex.split(pipe[2]), input=done.stdout, capture_output=True, text=True, check=False).stdout
                if found != example[2] or done.returncode:
                    failed += 1
                    print(f"{page}: tilecast {example[1]}: exit status {done.returncode}")
                    print("".join(difflib.unified_diff(example[2].splitlines(True), found.splitlines(True), "shown", "found")))
                return f"```\n$ build/release/tilecast {example[1]}\n{found}```"
            if block["kind"] == "python" and (words := forecast_words(block["body"])):
                table = run(words).stdout
                for number in shown_numbers(block["body"]):
                    if number not in table:
                        failed += 1
                        print(f"{page}: {number} is not in the output of tilecast {shlex.join(words)}")
            if block["kind"] == "sh":
                for words in commands(block["body"]):
                    done = run(words)
                    if done.returncode:
                        failed += 1
                        print(f"{page}: tilecast {shlex.join(words)}: exit status {done.returncode}\n{done.stderr}")
            return block[0]

        new = BLOCK.sub(visit, text)
    if update and new != text:
        path.write_text(new, encoding="utf-8")
    return count, failed


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*?)\s*$", text, re.M)}


def broken_links():
    """A line for each link of a page to a file or heading that is not there."""
    for page in LINKED:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for link in LINK.findall(text):
            if re.match(r"https?:|mailto:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                yield f"{page.relative_to(ROOT)}: link to {link}: no such file"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{page.relative_to(ROOT)}: link to {link}: no such heading"


def main():
    program, update = os.path.abspath(sys.argv[1]), "--update" in sys.argv[2:]
    results = [check(page, program, update) for page in PAGES]
    count, failed = (sum(numbers) for numbers in zip(*results))
    broken = list(broken_links())
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{len(PAGES)} pages, {count} commands, {failed} differ or fail; {len(broken)} broken links")
    sys.exit(1 if broken or (failed and not update) else 0)


if __name__ == "__main__":
    main()
