#!/usr/bin/env python3
"""Reports (`--format html`): one file each, whose policy allows its own script and style alone, and which shows the numbers of the JSON.

report_html_test.py PROGRAM [--screenshots FOLDER]

With Selenium, chromium and chromedriver, each report is opened in a browser: no error on its console, the numbers of its headline are
those of the JSON, charts explain their marks, names with markup stay texts, and nothing is wider than a phone. Without them that part
is skipped. --screenshots keeps pictures at 1280 and 390 px, light and dark.
"""
import base64
import hashlib
import html
import http.client
import json
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import browser

PROGRAM = ""
SCREENSHOTS: "Path | None" = None
MOST_BYTES = 1_000_000
HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1>\"'&amp;"
CASES = Path(__file__).resolve().parent / "cases"

# Command lines without their format; a name with .case: the command line and the files of that case.
REPORTS = {
    "pass": "forecast bert-base --gpu H100",
    "training": "forecast llama-3.2-1b --gpu H100 --mode training --batch 2 --seq 1024",
    "several_gpus": "forecast llama-3-8b --gpu H100 --mode training --seq 2048 --batch 16 --cluster dgx-h100 --tp 4 --pp 2 --microbatches 8",
    "does_not_fit": "forecast llama-3.1-70b --gpu L4",
    "generation": "forecast llama-3-8b --gpu H100 --prompt 1024 --output 128 --batch 4",
    "server": "forecast llama-3-8b --gpu H100 --prompt 512 --output 64 --rate 4 --requests 200 --ttft-s 0.5",
    "recommendation": "forecast dlrm_mlperf --gpu A100 --cluster dgx-a100 --batch 4096",
    "accelerator": "forecast resnet-50 --gpu gemmini-16",
    "compare_gpus": "forecast llama-3-8b --gpus H100,A100,L40S,T4",
    "compare_servers": "forecast llama-3.2-1b --gpus H100,L40S,T4 --prompt 256 --output 32 --rate 4 --requests 100 --tpot-s 0.05",
    "memory": "forecast gpt2 --gpu A100 --mode training --batch 8 --memory-timeline",
    "compare": "compare H100 A100 --model gpt2 --mode training --batch 2 --seq 512",
    "kernel": "kernel linear --gpu A100 -m 4096 -n 5120 -k 1280",
    "collective": "collective all_reduce --cluster dgx-h100 --ranks 8 --bytes 67108864",
    "plan": "plan gpt2 --gpu H100 --num-gpus 2 --batch 8 --seq 512 --dtype bf16 --price-per-gpu-hour 2 --quiet",
    "plan_gpus": "plan gpt2 --gpus H100,A100 --num-gpus 2 --batch 8 --seq 512 --dtype bf16 --tp 1 --quiet",
    "plan_serving": "plan llama-3.2-1b --gpus H100,L4 --num-gpus 1 --prompt 512 --output 64 --tpot-s 0.02 --dtype bf16 --quiet",
    "shard": "shard dlrm_mlperf --cluster dgx-a100",
    "tune": 'tune "conv n=32 c=256 h=56 w=56 k=64 r=1 s=1 dtype=fp32 dir=F" --gpu gfx906_60 --top 3',
    "product": 'tune "gemm m=4096 n=512 k=1024 trans_a=T dtype=fp16" --gpu MI100 --top 3',
    "gpus": "gpus",
    "data_file": "gpus H100",
    "share": "share_mps.case",
    "trace": "trace.case",
    "trace_there": "trace_batch_images.case",
    "allocate": "allocate_fairness.case",
    "arrivals": "allocate_arrivals.case",
    "sharing_evaluation": "evaluate_sharing.case",
    "server_evaluation": "evaluate_servers.case",
    "accelerator_evaluation": "accelerator_evaluate.case",
    "tune_evaluation": "evaluate_find.case",
    "calibrate": "calibrate_pairs.case",
    "sweep": "sweep_pareto.case",
}
# Answers whose pages have no chart: tables alone.
NO_CHART = {"gpus", "data_file", "accelerator_evaluation", "tune_evaluation", "calibrate"}


def files_of_case(name: str, folder: Path) -> str:
    """Writes the files of a case; returns its command line."""
    command, current = "", None
    for line in (CASES / name).read_text().splitlines(keepends=True):
        if line.startswith("$ tilecast ") and not command:
            command = line.removeprefix("$ tilecast ").strip()
        elif line.startswith("--- file "):
            current = folder / line.removeprefix("--- file ").strip()
            current.write_text("")
        elif line.startswith("--- "):
            current = None
        elif current is not None:
            current.write_text(current.read_text() + line)
    return command


def run(words: "list[str]", folder: Path, ok: bool = True) -> str:
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == ok, (words, done.stderr)
    return done.stdout if ok else done.stderr


def with_format(command: str, form: str) -> "list[str]":
    words = shlex.split(command)
    return [*words, form] if words[-1] == "--memory-timeline" else [*words, "--format", form]


def data_of(page: str) -> dict:
    """What lies in the page for its script."""
    found = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1, len(found)
    return json.loads(found[0])


def hash_of(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def scoreboard_rows(count: int) -> str:
    rows = [f"T4,add,fp32,1,1,{1000 * (i + 1)},1,{(1 + i % 7) * 1e-5 + i * 1e-9:.9f},back_to_back\n" for i in range(count)]
    rows += [f"T4,linear,fp32,1,{256 * (i % 16 + 1)},512,512,{1e-4 * (i + 1):.6f},back_to_back\n" for i in range(20)]
    rows.append(f"T4,\"{HOSTILE.replace(chr(34), chr(34) * 2)}\",fp32,1,1,1000,1,0.00001,back_to_back\n")
    return "# gpu: T4, made up\ngpu,op,dtype,batch,m,n,k,latency_s,protocol\n" + "".join(rows)


class Pages:
    """All reports, written once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.pages: "dict[str, Path]" = {}
        self.json: "dict[str, dict]" = {}
        for name, command in REPORTS.items():
            place = folder / name
            place.mkdir()
            if command.endswith(".case"):
                command = files_of_case(command, place)
            self.add(name, command, place)
        self.hostile()

    def add(self, name: str, command: str, place: Path) -> None:
        place.mkdir(exist_ok=True)
        self.pages[name] = place / "report.html"
        self.pages[name].write_text(run(with_format(command, "html"), place))
        answer = json.loads(run(with_format(command, "json"), place))
        self.json[name] = answer if isinstance(answer, dict) else {"entries": answer}

    def hostile(self) -> None:
        """Names with markup from every kind of input."""
        place = self.folder / "hostile_jobs"
        place.mkdir()
        jobs = [{"name": HOSTILE + str(i), "model": "gpt2", "batch": 1, "prompt": 64, "output": 16, "steps": 100} for i in range(2)]
        (place / "jobs.json").write_text(json.dumps({"jobs": jobs}))
        self.add("hostile_jobs", "allocate jobs.json --pool 1xH100,1xL4", place)
        place = self.folder / "hostile_share"
        place.mkdir()
        (place / "jobs.json").write_text(json.dumps({"jobs": [{k: v for k, v in job.items() if k != "steps"} for job in jobs]}))
        self.add("hostile_share", "share --gpu H100 --jobs jobs.json", place)
        place = self.folder / "hostile_graph"
        place.mkdir()
        config = json.loads(run(["models", "gpt2", "--format", "json"], place))
        config["architectures"] = ["GPT2LMHeadModel"]
        model = place / ("<img src=x onerror=hacked=1>\"'\u202e")
        model.mkdir()
        (model / "config.json").write_text(json.dumps(config))
        self.add("hostile_model", shlex.join(["forecast", model.name, "--gpu", "H100"]), place)
        place = self.folder / "scoreboard"
        place.mkdir()
        (place / "rows.csv").write_text(scoreboard_rows(3000))
        self.add("scoreboard", "evaluate rows.csv", place)


class Structure(unittest.TestCase):
    @staticmethod
    def each():
        return [(name, path.read_text()) for name, path in PAGES.pages.items()]

    def test_the_policy_allows_the_script_and_the_style_of_the_page_alone(self):
        for _, page in self.each():
            self.assertTrue(page.startswith("<!DOCTYPE html>"))
            policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page).group(1)
            scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
            styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
            self.assertEqual((len(scripts), len(styles)), (1, 1))
            self.assertEqual(policy, f"default-src 'none'; script-src '{hash_of(scripts[0])}'; style-src '{hash_of(styles[0])}'; "
                             "base-uri 'none'; form-action 'none'")
            self.assertNotRegex(scripts[0], r"(?m)^(import|export) |\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|\beval\(|\bfetch\(|XMLHttpRequest|localStorage")

    def test_modules_share_their_names(self):
        """Joined into one script, they have one scope."""
        script = re.search(r'<script type="module">(.*?)</script>', PAGES.pages["pass"].read_text(), re.DOTALL).group(1)
        names = re.findall(r"(?m)^(?:const|let|function|class) (\w+)", script)
        self.assertGreater(len(names), 100)
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_nothing_is_loaded(self):
        for _, page in self.each():
            without_data = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
            self.assertNotRegex(without_data, r"""\s(src|href)=["'](?!#)""")
            self.assertNotRegex(without_data, r"@import|url\(")

    def test_a_page_is_small(self):
        for _, page in self.each():
            self.assertLessEqual(len(page.encode()), MOST_BYTES)

    def test_the_answer_is_that_of_json(self):
        for name, page in self.each():
            data = data_of(page)
            if name == "scoreboard":
                continue  # it has points, too
            self.assertEqual(data["left_out"], [])
            answer = data["answer"] if isinstance(data["answer"], dict) else {"entries": data["answer"]}
            self.assertEqual(answer, PAGES.json[name])
            self.assertTrue(data["command"].startswith("tilecast "))

    def test_markup_in_names_cannot_end_the_data(self):
        for _, page in self.each():
            self.assertEqual(len(re.findall(r"<script", page)), 2)
            self.assertEqual(len(re.findall(r"</script", page)), 2)
            self.assertNotIn("<img", page.split("<noscript>")[0])
            self.assertNotIn("<img", re.search(r"<noscript>(.*?)</noscript>", page, re.DOTALL).group(1))

    def test_without_scripts_the_table_is_shown(self):
        page = PAGES.pages["pass"].read_text()
        table = html.unescape(re.search(r"<noscript><pre>(.*?)</pre></noscript>", page, re.DOTALL).group(1))
        self.assertIn("bert-base on NVIDIA H100", table)

    def test_roofs_and_rates_of_kernels(self):
        answer = PAGES.json["pass"]
        self.assertEqual({roof["dtype"] for roof in answer["roofs"]}, {"fp32"})
        for kernel in answer["kernels"]:
            self.assertAlmostEqual(kernel["total_s"], kernel["count"] * kernel["latency_s"])
            self.assertAlmostEqual(kernel["flops_per_s"] / (kernel["flops"] / kernel["latency_s"] or 1), 1 if kernel["flops"] else 0)
            self.assertAlmostEqual(kernel["flops_per_byte"], kernel["flops"] / kernel["bytes"])

    def test_a_scoreboard_has_the_worst_measurements(self):
        data = data_of(PAGES.pages["scoreboard"].read_text())
        points = data["answer"]["points"]
        self.assertEqual(len(points), 1500)
        self.assertEqual(data["answer"]["points_left_out"], 3020 - 1500)
        errors = [point["error_percent"] for point in points]
        self.assertEqual(errors, sorted(errors, reverse=True))
        for point in points[:50]:
            self.assertAlmostEqual(point["error_percent"], 100 * abs(point["forecast_s"] / point["measured_s"] - 1))
        self.assertEqual(PAGES.json["scoreboard"]["points"], [])
        counted = sum(row["count"] for row in data["answer"]["rows"])
        self.assertEqual(counted, 3020)

    def test_what_has_no_room_is_left_out_and_counted(self):
        place = PAGES.folder / "large"
        place.mkdir()
        (place / "rows.csv").write_text(scoreboard_rows(6000))
        page = run(["evaluate", "rows.csv", "--points", "6020", "--format", "html"], place)
        self.assertLessEqual(len(page.encode()), MOST_BYTES)
        data = data_of(page)
        shown = len(data["answer"]["points"])
        self.assertEqual(data["left_out"], [{"count": 6020 - shown, "list": "points"}])
        # Numbers have six digits there, before anything is left out.
        for point in data["answer"]["points"]:
            self.assertEqual(point["forecast_s"], float(f"{point['forecast_s']:.6g}"))

    def test_a_file_that_ends_in_html_is_a_report(self):
        place = PAGES.folder / "files"
        place.mkdir()
        self.assertEqual(run(["forecast", "gpt2", "--gpu", "T4", "-o", "r.html"], place), "")
        self.assertEqual(data_of((place / "r.html").read_text())["command"], "tilecast forecast gpt2 --gpu T4 -o r.html")

    def test_what_has_no_json_has_no_page(self):
        self.assertIn("--format", run(["completion", "bash", "--format", "html"], PAGES.folder, ok=False))


def numbers_in(value) -> set:
    """All numbers, and how many entries lists have."""
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()))
    if isinstance(value, list):
        return {len(value)}.union(*map(numbers_in, value))
    return {value} if isinstance(value, (int, float)) else set()


# The figures that a page shows first, by the fields that they are.
FIGURES = {
    "pass": {"time of a pass": ["latency_s"], "memory of a GPU": ["memory", "peak_bytes"], "MFU": ["mfu_ratio"]},
    "training": {"time of a step": ["latency_s"], "throughput": ["tokens_per_s"]},
    "generation": {"time to first token": ["time_to_first_token", "seconds"], "whole request": ["request", "seconds"]},
    "server": {"time to first token, p99": ["serving", "steady", "time_to_first_token", "p99", "seconds"]},
    "collective": {"time": ["latency_s"]},
    "share": {"sum of relative speeds": ["sum_of_relative_speeds"]},
    "shard": {"time of a step": ["cost", "total_s"]},
    "plan": {"time of a step": ["candidates", 0, "latency_s"]},
    "plan_serving": {"tokens/s of a GPU": ["candidates", 0, "gpu_tokens_per_s"]},
    "accelerator": {"cycles": ["cycles"]},
    "trace": {"span": ["span_s"], "kernels": ["kernels_s"], "would save": ["gain_s"]},
    "trace_there": {"span there": ["carried", "span_s"], "kernels there": ["carried", "kernels_s"]},
    "compare": {"second over first": ["ratio"]},
    "allocate": {"value of fairness": ["value"]},
}


class InTheBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if reason := browser.missing():
            print(f"report_html_test: the pages are not opened: {reason}", file=sys.stderr)
            raise unittest.SkipTest(reason)
        cls.driver = cls.enterClassContext(browser.browser())

    def js(self, script: str, *values):
        return self.driver.execute_script(script, *values)

    def open(self, path: "Path | str", width: int = 1280, dark: bool = False):
        self.shape(width, dark)
        self.driver.get(path if isinstance(path, str) else path.as_uri())
        self.assertEqual([entry["message"] for entry in self.driver.get_log("browser")], [])

    def shape(self, width: int, dark: bool, height: int = 900):
        browser.color(self.driver, dark)
        browser.resize(self.driver, width, height)
        # Charts redraw at the next frame.
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def picture(self, name: str, width: int, dark: bool):
        if SCREENSHOTS is None:
            return
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.shape(width, dark, min(4000, self.js("return document.documentElement.scrollHeight")))
        self.driver.save_screenshot(str(SCREENSHOTS / f"{name}_{width}_{'dark' if dark else 'light'}.png"))

    def test_each_page_shows_its_answer(self):
        for name, path in PAGES.pages.items():
            with self.subTest(name):
                self.open(path)
                self.assertEqual(self.js("return typeof window.hacked + document.images.length"), "undefined0")
                known = numbers_in(data_of(path.read_text())["answer"])
                shown = self.js("return [...document.querySelectorAll('.figures dd')].map((d) => d.dataset.value)")
                for value in shown:
                    if value.replace(".", "", 1).replace("e-", "").isdigit():
                        self.assertIn(float(value), known)
                charts = self.js("return document.querySelectorAll('figure.chart svg').length")
                self.assertEqual(charts > 0, name not in NO_CHART)
                self.assertEqual(self.js("return [...document.querySelectorAll('figure.chart .plot > svg')].filter((s) => !s.querySelector('title').textContent).length"), 0)
                self.assertEqual(self.js("return document.body.textContent.match(/undefined|NaN|\\[object/g)"), None)
                for width, dark in ((1280, False), (1280, True), (390, False), (390, True)):
                    self.shape(width, dark)
                    self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), width)
                    self.picture(name, width, dark)

    def test_figures_are_the_numbers_of_the_json(self):
        for name, figures in FIGURES.items():
            with self.subTest(name):
                self.open(PAGES.pages[name])
                shown = self.js("return Object.fromEntries([...document.querySelectorAll('.figures > div')].map("
                                "(d) => [d.querySelector('dt').textContent, d.querySelector('dd').dataset.value]))")
                for label, path in figures.items():
                    value = PAGES.json[name]
                    for key in path:
                        value = value[key]
                    self.assertEqual(float(shown[label]), value)

    def test_marks_explain_themselves_to_keyboards(self):
        self.open(PAGES.pages["pass"])
        found = self.js("""
            const figure = document.querySelector('figure.chart'), marks = figure.querySelectorAll('.mark');
            marks[0].focus();
            const first = figure.querySelector('.tip').textContent;
            marks[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
            return {first, second: figure.querySelector('.tip').textContent, hidden: figure.querySelector('.tip').hidden,
                    stops: figure.querySelectorAll('[tabindex="0"]').length, label: marks[0].getAttribute('aria-label'),
                    moved: document.activeElement === marks[1]};""")
        self.assertIn("ms", found["first"])
        self.assertNotEqual(found["first"], found["second"])
        self.assertEqual((found["stops"], found["moved"], found["hidden"]), (1, True, False))
        self.assertIn("limited by", found["label"])

    def test_tables_sort(self):
        self.open(PAGES.pages["pass"])
        column = """return [...document.querySelector('details').querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent)"""
        self.js("document.querySelector('details').open = true; document.querySelector('details th button').click()")
        rising = self.js(column)
        self.assertEqual(rising, sorted(rising, key=str.lower))
        self.js("document.querySelector('details th button').click()")
        self.assertEqual(self.js("return document.querySelector('details th').getAttribute('aria-sort')"), "descending")

    def test_a_scoreboard_filters(self):
        self.open(PAGES.pages["scoreboard"])
        count = "return document.querySelectorAll('section:last-of-type tbody tr, tbody tr').length"
        before = self.js(count)
        self.js("""const list = document.querySelector('select[data-field=op]'); list.value = 'linear';
                   list.dispatchEvent(new Event('change'))""")
        self.assertLess(self.js(count), before)

    def test_names_with_markup_are_texts(self):
        for name in ("hostile_jobs", "hostile_share"):
            self.open(PAGES.pages[name])
            self.assertIn(HOSTILE + "0", self.js("return document.body.textContent"))
        self.open(PAGES.pages["hostile_model"])
        title = self.js("return document.querySelector('h1').textContent")
        self.assertIn("<img src=x onerror=hacked=1>\"'", title)
        self.assertNotIn("\u202e", title)

    def test_the_service_gives_pages_that_say_how_to_ask_again(self):
        with subprocess.Popen([PROGRAM, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True) as service:
            try:
                port = int(service.stdout.readline().split("/v1/")[0].rsplit(":", 1)[1])
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
                asked = {"model": "gpt2", "gpu": "H100", "batch": 4, "mode": "training"}
                connection.request("POST", "/v1/forecast?format=html", json.dumps(asked))
                response = connection.getresponse()
                page = response.read().decode()
                connection.close()
            finally:
                service.terminate()
        self.assertEqual(response.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("script-src 'sha256-", response.headers["Content-Security-Policy"])
        path = PAGES.folder / "served.html"
        path.write_text(page)
        self.open(path)
        command = shlex.split(self.js("return document.querySelector('pre.command').textContent"))
        self.assertEqual(command[0], "tilecast")
        again = json.loads(run([*command[1:], "--format", "json"], PAGES.folder))
        self.assertEqual(again["latency_s"], data_of(page)["answer"]["latency_s"])

    def test_print_has_one_column_of_charts(self):
        self.open(PAGES.pages["pass"])
        self.js("window.dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.js("return document.querySelector('figure.chart svg').getAttribute('width')"), "680")


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        SCREENSHOTS = Path(sys.argv.pop(at + 1)).resolve()
        sys.argv.pop(at)
    with tempfile.TemporaryDirectory() as temporary:
        PAGES = Pages(Path(temporary))
        unittest.main()
