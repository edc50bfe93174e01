#!/usr/bin/env python3
"""What tests/cases cannot show: terminals, widths, colors, signals, links and pipes.

    tests/cli_test.py <tilecast> [name of a check ...]
"""
import csv
import fcntl
import json
import lzma
import os
import pty
import random
import re
import resource
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from pathlib import Path

TILECAST = ""
CLEAN = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE")}
TRAINING = ["forecast", "gpt2_large", "--gpu", "H100", "--mode", "training"]
# Few-bit kernels of a vendor that nobody measured: always with a warning.
UNMEASURED = ["forecast", "llama-3-8b", "--gpu", "MI300X", "--dtype", "fp8", "--seq", "512"]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def run(*arguments: str, environment: dict | None = None, **options) -> subprocess.CompletedProcess:
    return subprocess.run([TILECAST, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**CLEAN, **(environment or {})}, timeout=120, **options)


def on_terminal(*arguments: str, columns: int = 100, environment: dict | None = None) -> str:
    """Output on a pseudo-terminal of that width, standard error included."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([TILECAST, *arguments], stdin=follower, stdout=follower, stderr=follower,
                               env={**CLEAN, "TERM": "xterm-256color", **(environment or {})})
    os.close(follower)
    out = b""
    while True:
        if not select.select([leader], [], [], 60)[0]:
            break
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        out += part
    process.wait()
    os.close(leader)
    return out.decode().replace("\r\n", "\n")


def made_up_rows(gpu: str, count: int) -> str:
    lines = ["# made up", "gpu,op,dtype,batch,m,n,k,latency_s,protocol"]
    for i in range(count):
        lines.append(f"{gpu},linear,fp32,1,{64 * (i % 7 + 1)},{96 * (i % 5 + 1)},{32 * (i + 1)},"
                     f"{1e-5 * (i % 9 + 1)},back_to_back")
    return "\n".join(lines) + "\n"


def too_wide(text: str, width: int) -> list:
    return [line for line in ESCAPE.sub("", text).splitlines() if len(line) > width]


def check_no_table_is_wider_than_asked() -> None:
    models = [m["name"] for m in json.loads(run("models", "--format", "json").stdout)]
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        rows.write_text(made_up_rows("T4", 200) + "X9,add,fp32,1,1,1000,1,0.00001,back_to_back\n")
        commands = [["gpus"], ["models"], ["ops"], ["evaluate", str(rows)],
                    ["calibrate", "--gpu", "T4", "--measurements", str(rows), "-o", folder + "/t4.json"],
                    ["train", "--data", str(rows), "-o", folder + "/w", "--trees", "2",
                     "--intervals", "held-out"],
                    ["kernel", "cached_attention", "--gpu", "H100", "--dtype", "bf16", "--batch", "32", "-n", "2048", "-k", "64"],
                    ["forecast", "gpt2_large", "--gpu", "T4", "--mode", "training", "--batch", "64", "--optimizer", "adamw"],
                    ["forecast", "llama-3-8b", "--gpu", "L40S", "--prompt", "256", "--output", "64", "--schedule",
                     "continuous", "--concurrency", "4"]]
        commands += [["forecast", model, "--gpu", "H100"] for model in models]
        prompted = 0
        for model in models:
            command = ["forecast", model, "--gpu", "B200", "--prompt", "100", "--output", "10", "--tp", "2"]
            if run(*command).returncode == 0:
                commands.append(command)
                prompted += 1
        assert prompted >= 10, f"only {prompted} bundled models are forecast token by token"
        for command in commands:
            for width in (60, 80, 120):
                result = run(*command, environment={"COLUMNS": str(width)})
                assert result.returncode == 0, (command, result.stderr)
                assert not too_wide(result.stdout, width), (command, width, too_wide(result.stdout, width))
        for command in ("forecast", "kernel", "evaluate", "train", "calibrate", "gpus", "completion"):
            for width in (60, 80, 120):
                out = run(command, "--help", environment={"COLUMNS": str(width)}).stdout
                wide = [line for line in too_wide(out, width) if not line.startswith(("  tilecast", "Usage", "       tilecast"))
                        and " " in line.strip()]
                assert not wide or all(len(line.split()) <= 3 for line in wide), (command, width, wide)


def check_width_without_columns_is_80_in_pipes_and_the_terminals_own() -> None:
    assert not too_wide(run(*TRAINING).stdout, 80)
    wide, narrow = on_terminal(*TRAINING, columns=150), on_terminal(*TRAINING, columns=64)
    assert too_wide(wide, 100) and not too_wide(narrow.split("tilecast: ")[0], 64)
    with tempfile.TemporaryDirectory() as folder:
        on_terminal(*TRAINING, "-o", folder + "/out.txt", columns=150)
        text = Path(folder + "/out.txt").read_text()
        assert not too_wide(text, 80) and "\x1b" not in text


def check_colors_follow_the_terminal_and_the_environment() -> None:
    prompt = ["forecast", "llama-3-8b", "--gpu", "MI300X", "--prompt", "100", "--output", "4"]
    kernel = ["kernel", "linear", "--gpu", "H100", "--dtype", "int8", "-m", "64"]
    for command in (UNMEASURED, prompt, kernel):
        out = on_terminal(*command)
        assert re.search("\x1b\\[3[2-6]m(compute|memory|latency|network)\x1b\\[0m", out), out
        assert "tilecast: \x1b[33mwarning:\x1b[0m" in out, out
        for environment in ({"NO_COLOR": "1"}, {"CLICOLOR": "0"}, {"TERM": "dumb"},
                            {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}):
            assert "\x1b" not in on_terminal(*command, environment=environment), environment
        piped = run(*command)
        assert "\x1b" not in piped.stdout + piped.stderr
        assert "\x1b" not in run(*command, environment={"CLICOLOR_FORCE": "0"}).stdout
        forced = run(*command, environment={"CLICOLOR_FORCE": "1"})
        assert ESCAPE.sub("", forced.stdout) == piped.stdout and "\x1b[1m" in forced.stdout
    for command in (["gpus"], ["clusters"], ["models"], ["ops"]):
        assert "\x1b[1m" in on_terminal(*command)
    does_not_fit = on_terminal("forecast", "gpt2_large", "--gpu", "T4", "--mode", "training", "--batch", "64")
    assert "\x1b[31mDOES NOT FIT" in does_not_fit


def check_warnings_stand_on_standard_error_or_in_json() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        rows.write_text(made_up_rows("T4", 30) + "X9,add,fp32,1,1,1000,1,0.00001,back_to_back\n")
        calls = [UNMEASURED, ["kernel", "linear", "--gpu", "H100", "--dtype", "int8", "-m", "64"],
                 ["evaluate", str(rows)],
                 ["forecast", "llama-3-8b", "--gpu", "MI300X", "--prompt", "100", "--output", "4"]]
        for command in calls:
            table, as_json = run(*command), run(*command, "--format", "json")
            warnings = json.loads(as_json.stdout)["warnings"]
            assert warnings and as_json.stderr == "", command
            assert table.stderr == "".join(f"tilecast: warning: {w}\n" for w in warnings), (command, table.stderr)
            assert "warning" not in table.stdout
        csv = run(*UNMEASURED, "--format", "csv")
        assert csv.stderr.startswith("tilecast: warning: ") and "warning" not in csv.stdout
        calibrated = run("calibrate", "--gpu", "T4", "--measurements", str(rows), "-o", folder + "/t4.json")
        assert calibrated.stderr == "tilecast: warning: left out all rows of X9: unknown GPU 'X9'\n" \
            or calibrated.stderr.startswith("tilecast: warning: "), calibrated.stderr


def check_output_goes_through_links_and_keeps_permissions() -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "real").mkdir()
        target = base / "real" / "out.json"
        target.write_text("old")
        target.chmod(0o640)
        (base / "link.json").symlink_to("real/out.json")
        assert run(*TRAINING, "--format", "json", "-o", "link.json", cwd=folder).returncode == 0
        assert (base / "link.json").is_symlink() and json.loads(target.read_text())
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        assert sorted(os.listdir(base / "real")) == ["out.json"]
        result = run("gpus", "-o", "/dev/stdout", cwd=folder)
        assert result.stdout == run("gpus").stdout and result.stdout == run("gpus", "-o", "-").stdout


def check_every_command_writes_to_a_file() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_text(made_up_rows("T4", 30))
        for command in (["gpus"], ["models"], ["ops"], TRAINING, ["kernel", "add", "--gpu", "T4", "-n", "9"],
                        ["evaluate", "rows.csv"], ["calibrate", "--gpu", "T4", "--suggest", "3"], ["completion", "bash"]):
            expected = run(*command, cwd=folder)
            for flag in ("-o", "--output-file"):
                result = run(*command, flag, "out.txt", cwd=folder)
                assert result.returncode == 0 and result.stdout == "", (command, result)
                assert Path(folder, "out.txt").read_text() == expected.stdout, command
        # As it was called before.
        assert run("kernel", "add", "--gpu", "T4", "-n", "9", "--output", "old.txt", cwd=folder).returncode == 0
        assert Path(folder, "old.txt").exists()


def check_the_name_of_a_file_chooses_its_view() -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert run(*TRAINING, "-o", "out.json", cwd=folder).returncode == 0
        assert json.loads(Path(folder, "out.json").read_text()) == json.loads(run(*TRAINING, "--format", "json").stdout)
        assert run(*TRAINING, "-o", "out.csv", cwd=folder).returncode == 0
        assert Path(folder, "out.csv").read_text() == run(*TRAINING, "--format", "csv").stdout
        assert run(*TRAINING, "--format", "table", "-o", "table.json", cwd=folder).returncode == 0
        assert Path(folder, "table.json").read_text() == run(*TRAINING).stdout
        # A forecast of yesterday against one of today: nothing differs.
        same = run("compare", "out.json", "out.json", "--format", "json", cwd=folder)
        assert same.returncode == 0, same
        compared = json.loads(same.stdout)
        assert compared["ratio"] == 1 and not compared["options"] and compared["kernels"], compared
        assert all(row["difference_s"] == 0 for row in compared["kernels"]), compared["kernels"]
        seconds = sum(row["a_s"] for row in compared["kernels"])
        forecast = json.loads(Path(folder, "out.json").read_text())
        assert abs(seconds / sum(k["latency_s"] * k["count"] for k in forecast["kernels"]) - 1) < 1e-9


def check_a_file_limit_is_an_error_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        result = run(*TRAINING, "--format", "json", "-o", "out.json", cwd=folder, preexec_fn=limit)
        assert result.returncode == 1 and result.stderr == "tilecast: out.json: cannot write: File too large\n", result
        assert os.listdir(folder) == []
        with open(Path(folder) / "direct.json", "w") as out:
            result = subprocess.run([TILECAST, *TRAINING, "--format", "json"], stdout=out, stderr=subprocess.PIPE,
                                    text=True, env=CLEAN, preexec_fn=limit)
        assert result.returncode == 1 and result.stderr == "tilecast: standard output: cannot write: File too large\n"


def check_signals_leave_no_part_files() -> None:
    # Whenever the signal comes: there is the whole file or none. tests/../base_test.cc stops a write midway.
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        ended = 0
        for i in range(40):
            process = subprocess.Popen([TILECAST, *TRAINING, "--format", "json", "-o", "out.json"], cwd=folder, env=CLEAN,
                                       stderr=subprocess.DEVNULL)
            time.sleep(dice.uniform(0, 0.03))
            process.send_signal(signal.SIGINT if i % 2 else signal.SIGTERM)
            ended += process.wait() < 0
            left = os.listdir(folder)
            assert left in ([], ["out.json"]), left
            if left:
                json.loads(Path(folder, "out.json").read_text())
        assert ended > 0, "no signal came in time"


def check_a_closed_pipe_is_silent() -> None:
    for command in (["gpus", "--format", "json"], [*TRAINING, "--format", "json"]):
        for ignored in (True, False):
            reader, writer = os.pipe()
            os.close(reader)
            result = subprocess.run([TILECAST, *command], stdout=writer, stderr=subprocess.PIPE, text=True, env=CLEAN,
                                    restore_signals=not ignored)
            os.close(writer)
            assert result.returncode == 0 and result.stderr == "", (command, result)
    assert subprocess.run(["bash", "-c", f"set -o pipefail; '{TILECAST}' gpus --format json | head -n 1"],
                          capture_output=True, text=True).stderr == ""


NETWORK = """graph g
input x: fp16[1, 32, 16, 16]
weight w: fp16[32, 32, 3, 3]
weight v: fp16[64, 32, 1, 1]
segment layers x1
  a = conv2d(x, w) {padding=1} "a"
  b = conv2d(a, w) {padding=1} "b"
  c = conv2d(b, w) {padding=1} "c"
  d = conv2d(c, v) "d"
output d
"""


def check_a_sweep_has_the_cycles_of_its_forecasts_and_resumes() -> None:
    lists = {"model": ["net.tcg"], "gpu": ["gemmini"],
             "parameters": {"ACCUMULATOR": [8192, 65536], "DIM": [8, 16], "DMA_WIDTH": [8, 32], "SCRATCHPAD": [16384, 262144]}}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net.tcg").write_text(NETWORK)
        Path(folder, "designs.json").write_text(json.dumps(lists))
        sweep = ["sweep", "designs.json", "-o", "out.csv", "--threads", "2"]
        first = run(*sweep, cwd=folder)
        assert first.returncode == 0, first
        rows = sorted(Path(folder, "out.csv").read_text().splitlines()[1:], key=lambda line: int(line.split(",")[0]))
        assert [int(row.split(",")[0]) for row in rows] == list(range(16)), rows
        for row in rows:
            _, model, gpu, accumulator, dim, dma_width, scratchpad, cycles = row.split(",")[:8]
            spec = f"{gpu}:ACCUMULATOR={accumulator},DIM={dim},DMA_WIDTH={dma_width},SCRATCHPAD={scratchpad}"
            forecast = json.loads(run("forecast", model, "--gpu", spec, "--format", "json", cwd=folder).stdout)
            assert abs(forecast["cycles"] - float(cycles)) <= 0.5, (row, forecast["cycles"])
        # As after a kill: lines are missing, and the last one is cut off.
        text = Path(folder, "out.csv").read_text()
        Path(folder, "out.csv").write_text(text[: len(text) * 2 // 3])
        again = run(*sweep, cwd=folder)
        assert again.stdout.splitlines()[1:] and sorted(again.stdout.splitlines()) == sorted(first.stdout.splitlines()), again
        assert sorted(Path(folder, "out.csv").read_text().splitlines()) == sorted(text.splitlines())


def check_written_mappings_give_the_same_cycles() -> None:
    forecast = ["forecast", "net.tcg", "--gpu", "gemmini", "--format", "csv"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net.tcg").write_text(NETWORK)
        # One layer of three that are alike.
        for name in "abc":
            Path(folder, "one.json").write_text(json.dumps(
                {"schema_version": 1, "layers": [{"layer": name, "mapping": "order=p tile=p2"}]}))
            first = run(*forecast, "--mapping", "one.json", "--write-mappings", "all.json", cwd=folder)
            assert first.returncode == 0 and first.stdout != run(*forecast, cwd=folder).stdout, first
            named = [entry["layer"] for entry in json.loads(Path(folder, "all.json").read_text())["layers"] if "layer" in entry]
            assert named == [name], named
            assert run(*forecast, "--mapping", "all.json", cwd=folder).stdout == first.stdout, name
        # One by name beside that for the shape, also where it takes the only layer of the shape.
        assert run(*forecast, "--write-mappings", "all.json", cwd=folder).returncode == 0
        written = json.loads(Path(folder, "all.json").read_text())
        written["layers"].append({"layer": "d", "mapping": "order=p tile=p2"})
        Path(folder, "both.json").write_text(json.dumps(written))
        both = run(*forecast, "--mapping", "both.json", "--write-mappings", "all.json", cwd=folder)
        assert both.returncode == 0 and not both.stderr, both
        named = [entry for entry in json.loads(Path(folder, "all.json").read_text())["layers"] if "layer" in entry]
        assert [(entry["layer"], entry["mapping"].split()[0]) for entry in named] == [("d", "order=p")], named


def check_options_stand_before_or_after_the_argument() -> None:
    expected = run("forecast", "gpt2_large", "--gpu", "H100", "--batch", "4").stdout
    for line in ("--batch 4 gpt2_large --gpu H100", "--gpu H100 --batch 4 gpt2_large", "--gpu=H100 --batch=4 gpt2_large",
                 "--gpu H100 gpt2_large --batch 4", "--batch 4 --gpu H100 -- gpt2_large"):
        assert run("forecast", *line.split()).stdout == expected, line
    product = run("kernel", "linear", "--gpu", "H100", "-m", "64", "-n", "32").stdout
    for line in ("-m 64 -n 32 --gpu H100 linear", "-m64 -n32 --gpu H100 linear", "linear --m 64 --n=32 --gpu H100"):
        assert run("kernel", *line.split()).stdout == product, line


def check_exit_status_tells_usage_from_lookup() -> None:
    usage = ["foo", "forcast", "--gpu H100 forecast", "forecast", "forecast gpt2_large", "forecast gpt2_large --gpu",
             "forecast gpt2_large --gpu --mode", "forecast gpt2_large --gpo H100", "forecast gpt2_large x --gpu H100",
             "forecast gpt2_large --gpu H100 --gpu A100", "forecast gpt2_large --gpu H100 --batch 0",
             "forecast gpt2_large --gpu H100 --batch 1.5", "forecast gpt2_large --gpu H100 --batch 99999999999999999999",
             "forecast gpt2_large --gpu H100 --rows -1", "forecast gpt2_large --gpu H100 --host-launch-us nan",
             "forecast gpt2_large --gpu H100 --optimizer adamw", "forecast gpt2_large --gpu H100 --kv-dtype fp8",
             "forecast gpt2_large --gpu H100 --seq 4 --prompt 4", "kernel linear --gpu H100 -m 0",
             "kernel linear --gpu H100 --dtype bf61", "kernel linear --gpu H100 --causal=x", "evaluate",
             "evaluate x --format text", "gpus --format csv", "train --data x", "train --data x -o y --trees 0",
             "calibrate --gpu T4", "calibrate --gpu T4 --suggest 2 --measurements x",
             "calibrate --gpu T4 --candidates x", "completion csh"]
    choices = {"mode", "dtype", "attention", "fusion", "optimizer", "predictor", "software", "format"}
    usage += [f"forecast gpt2_large --gpu H100 --{name} wrong" for name in sorted(choices)]
    lookup = ["forecast nothing --gpu H100", "forecast gpt2_large --gpu H1000", "forecast gpt2_large --gpu V100 --dtype bf16",
              "forecast gpt2_large --gpu H100 --seq 4096", "forecast gpt2_large --gpu none.json", "kernel liner --gpu H100",
              "evaluate nothing.csv", "gpus nothing-of-this-name", "forecast gpt2_large --gpu H100 --weights nowhere", "forecast t5-large --gpu H100 "
              "--mode training --attention flash", "train --data nothing -o never-made", "calibrate --gpu X9 --suggest 3"]
    with tempfile.TemporaryDirectory() as folder:
        for status, lines in ((2, usage), (1, lookup)):
            for line in lines:
                result = run(*line.split(), cwd=folder)
                assert result.returncode == status, (line, status, result)
                assert result.stderr.startswith("tilecast: ") and result.stderr.count("\n") == 1, (line, result.stderr)
                assert result.stdout == "" and "bug" not in result.stderr, (line, result)
        for line in ("--help", "-h", "--version", "-V", "forecast --help", "gpus -h", "kernel linear --help"):
            result = run(*line.split(), cwd=folder)
            assert result.returncode == 0 and result.stderr == "" and result.stdout, line


LLAMA = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "vocab_size": 1000, "max_position_embeddings": 512, "rms_norm_eps": 1e-5}


def check_names_of_hugging_face() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = {"HF_HOME": folder, "HF_HUB_CACHE": "", "XDG_CACHE_HOME": folder + "/none"}
        asked = ["forecast", "Meta-LLAMA/llama-3.1-8b", "--gpu", "H100", "--seq", "128", "--format", "json"]
        bundled = json.loads(run(*asked, environment=home).stdout)
        assert bundled["model"] == "llama-3.1-8b" and bundled["parameters"] > 8e9, bundled["model"]
        assert any("read from the bundled model llama-3.1-8b" in text for text in bundled["warnings"]), bundled["warnings"]
        model = Path(folder) / "hub" / "models--meta-llama--Llama-3.1-8B"
        for revision, layers in (("old", 1), ("new", 3)):
            (model / "snapshots" / revision).mkdir(parents=True)
            (model / "snapshots" / revision / "config.json").write_text(json.dumps({**LLAMA, "num_hidden_layers": layers}))
        (model / "refs").mkdir()
        (model / "refs" / "main").write_text("old\n")
        cached = json.loads(run(*asked, environment=home).stdout)
        file = model / "snapshots" / "old" / "config.json"
        assert any(f"read from {file}" in text for text in cached["warnings"]), cached["warnings"]
        (model / "refs" / "main").write_text("new")
        assert json.loads(run(*asked, environment=home).stdout)["parameters"] > cached["parameters"]
        moved = {"HF_HUB_CACHE": folder + "/hub", "HF_HOME": "/nowhere"}
        assert json.loads(run(*asked, environment=moved).stdout)["parameters"] > cached["parameters"]
        other = run("forecast", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", environment=home)
        assert other.returncode == 1 and "did you mean 'llama-3.1-8b'" in other.stderr and folder in other.stderr, other


def check_a_listed_gpu_is_a_template() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for gpu in ("H100", "T4", "MI300X"):
            written = run("gpus", gpu, "--format", "json", "-o", "own.json", cwd=folder)
            assert written.returncode == 0 and written.stderr == "", written
            asked = ["forecast", "gpt2", "--seq", "128", "--gpu"]
            assert run(*asked, "own.json", cwd=folder).stdout == run(*asked, gpu).stdout, gpu
    sources = run("gpus", "h100 pcie").stdout
    assert "boost_clock_hz" in sources and "source" in sources, sources
    assert run("gpus", "hopper").stdout.count("nvidia-h") > 2
    assert {m["name"] for m in json.loads(run("models", "llama-3", "--format", "json").stdout)} >= {"llama-3-8b", "llama-3.1-70b"}
    assert "scheme" in run("ops", "quantized_linear").stdout
    assert run("clusters", "dgx-h100", "--format", "json").stdout.startswith("{")
    nothing = run("gpus", "h1000x")
    assert nothing.returncode == 1 and "h1000x" in nothing.stderr, nothing


def check_numbers_and_dtypes_as_people_write_them() -> None:
    collective = ["collective", "all_reduce", "--cluster", "dgx-h100", "--ranks", "8", "--bytes"]
    assert run(*collective, "1G").stdout == run(*collective, "1000000000").stdout
    assert run(*collective, "1Gi").stdout == run(*collective, "1073741824").stdout
    served = ["forecast", "llama-3-8b", "--gpu", "A100", "--prompt", "1k", "--batch", "4", "--dtype"]
    assert run(*served, "awq").stdout == run(*served, "int4_wo").stdout == run(*served, "gptq").stdout != ""
    for wrong in ("1kk", "k", "1.0001k", "1e400G", "9000000000G"):
        assert run(*collective, wrong).returncode == 2, wrong


def check_help_is_where_it_is_looked_for() -> None:
    assert run().returncode == 0 and run().stdout == run("help").stdout == run("--help").stdout
    assert run("help", "plan").stdout == run("plan", "--help-all").stdout
    wide = {"COLUMNS": "120"}
    for command in ("forecast", "plan"):
        short, full = (run(command, help, environment=wide).stdout for help in ("--help", "--help-all"))
        assert len(short.splitlines()) < 63 < len(full.splitlines()), (command, len(short.splitlines()))
        assert f"tilecast {command} --help-all" in short
    assert "minimax_m3" in run("help", "families").stdout
    wrong = run("help", "plam")
    assert wrong.returncode == 2 and "did you mean 'plan'" in wrong.stderr, wrong


def check_the_doctor_compares_the_card_with_its_file() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tool = Path(folder) / "nvidia-smi"
        tool.write_text("#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 580.1, 345, 1755, 650.00, 81559'\n")
        tool.chmod(0o755)
        path = {"PATH": folder + ":" + os.environ["PATH"]}
        found = json.loads(run("doctor", "--format", "json", environment=path).stdout)
        card = found["gpus"][0]
        assert card["device"] == "nvidia-h100-sxm5-80gb" and card["max_clock_hz"] == 1.755e9, card
        assert len(card["differences"]) == 2 and "--clocks 1755" in card["differences"][0], card
        assert found["version"] and all(len(file["checksum"]) == 16 for file in found["weights"]), found
        assert {part["name"] for part in found["parts"]} >= {"XGBoost", "liblzma", "Python's torch"}
        tool.write_text("#!/bin/sh\nexit 9\n")
        assert json.loads(run("doctor", "--format", "json", environment=path).stdout)["gpus"] == []


def check_kernels_of_the_work_at_hand() -> None:
    words = ["calibrate", "--gpu", "L40S", "--suggest", "8", "--model", "llama-3-8b", "--dtype", "bf16", "--seq", "512"]
    rows = run(*words).stdout.splitlines()
    assert rows[0].startswith("gpu,op,dtype,software,") and len(rows) == 9, rows
    products = [row for row in rows if ",linear,bf16,pytorch," in row]
    assert any("14336" in row and "4096" in row for row in products), rows  # the MLP of Llama 3 8B
    served = run(*words[:-2], "--prompt", "512", "--software", "vllm").stdout
    assert ",vllm," in served and "cached_attention" in served, served
    assert run("calibrate", "--gpu", "L40S", "--suggest", "8", "--dtype", "bf16").returncode == 2


def check_progress_of_what_takes_long() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = {"model": ["mixtral-8x7b"], "gpu": ["H100"], "prompt": list(range(100, 32000))}
        (Path(folder) / "many.json").write_text(json.dumps(spec))
        sweep = ["sweep", "many.json", "-o", "out.csv", "--threads", "1"]
        shown = subprocess.Popen([TILECAST, *sweep], cwd=folder, env=CLEAN, stderr=subprocess.PIPE, text=True)
        first = shown.stderr.readline()
        shown.kill()
        assert re.fullmatch(r"tilecast: +\d+ %  [\d,]+ of [\d,]+ combinations, .* left\n", first), first
        silent = subprocess.Popen([TILECAST, *sweep, "--quiet"], cwd=folder, env=CLEAN, stderr=subprocess.PIPE, text=True)
        time.sleep(4)
        silent.kill()
        assert silent.stderr.read() == ""
        short = run("sweep", "many.json", "-o", "short.csv", "--quiet", "--threads", "0", cwd=folder)
        assert short.returncode == 2, short


SWEEP = {"model": ["gpt2_large"], "gpu": ["T4"], "batch": [1], "seq": list(range(8, 108))}


def sweep_folder(folder: str, spec: dict) -> list:
    (Path(folder) / "many.json").write_text(json.dumps(spec))
    return ["sweep", "many.json", "-o", "out.csv", "--quiet", "--threads", "2"]


def check_a_full_disk_loses_no_row_that_was_said_to_be_done() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep, out = sweep_folder(folder, SWEEP), Path(folder) / "out.csv"
        # As a quota does: writes beyond 4 kB fail, in the middle of a line.
        failed = run(*sweep, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        assert failed.returncode == 1 and failed.stderr == "tilecast: out.csv: cannot write: File too large\n", failed
        rows = out.read_text().splitlines()
        assert out.read_bytes().endswith(b"\n") and 1 < len(rows) < 100, rows
        # The header alone does not fit; the next run begins again.
        cut = run(*sweep[:3], "cut.csv", cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)))
        assert cut.returncode == 1 and "cannot write: File too large" in cut.stderr, cut
        assert run(*sweep[:3], "cut.csv", cwd=folder).returncode == 0
        again = run(*sweep, cwd=folder)
        assert again.returncode == 0, again
        assert out.read_text().splitlines()[:len(rows)] == rows and len(out.read_text().splitlines()) == 101
        if Path("/dev/full").exists():
            for words in (["models"], ["models", "--format", "json"]):
                with open("/dev/full", "wb") as full:
                    result = subprocess.run([TILECAST, *words], stdout=full, stderr=subprocess.PIPE, text=True, env=CLEAN, timeout=60)
                assert result.returncode == 1 and "No space left on device" in result.stderr, result
            result = run("models", "-o", "/dev/full")
            assert result.returncode == 1 and "No space left on device" in result.stderr, result


def check_a_killed_sweep_goes_on_in_both_formats() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = {**SWEEP, "seq": {"from": 8, "to": 1024}, "zip": {"batch": [1, 2], "dtype": ["fp32", "fp16"]}, "where": "seq % 3 != 1"}
        del spec["batch"]
        sweep = sweep_folder(folder, spec)[:3]
        for name in ("out.csv", "out.jsonl"):
            out = Path(folder) / name
            for lines in (5, 100, 400):
                killed = subprocess.Popen([TILECAST, *sweep, name, "--quiet"], cwd=folder, env=CLEAN, stdout=subprocess.DEVNULL)
                while killed.poll() is None and (not out.exists() or out.read_bytes().count(b"\n") < lines):
                    time.sleep(0.01)
                killed.kill()
                killed.wait()
            before = out.read_text().rpartition("\n")[0].splitlines()
            with open(out, "a") as file:
                file.write(before[1][:40])  # a line that was cut
            again = run(*sweep, name, "--quiet", cwd=folder)
            assert again.returncode == 0, again
            rows = out.read_text().splitlines()
            assert rows[:len(before)] == before, "a row was computed again"
            cells = [json.loads(row) for row in rows] if name.endswith("l") else list(csv.DictReader(rows))
            expected = [i for i in range(2 * 1017) if (8 + i // 2) % 3 != 1]
            assert sorted(int(row["index"]) for row in cells) == expected, "a point is missing or there twice"
        by_index = {row["index"]: row for row in cells}
        for row in csv.DictReader((Path(folder) / "out.csv").read_text().splitlines()):
            assert float(row["latency_s"]) == by_index[int(row["index"])]["latency_s"], row
        other = run(*sweep, "other.jsonl", cwd=folder)
        (Path(folder) / "many.json").write_text(json.dumps({**spec, "gpu": ["L4"]}))
        refused = run(*sweep, "other.jsonl", cwd=folder)
        assert other.returncode == 0 and refused.returncode == 1, refused
        assert "other.jsonl: line 1: is of other lists than this sweep's" in refused.stderr, refused


def check_a_sweep_goes_on_from_its_own_rows_only() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = json.loads((Path(__file__).parents[1] / "data/models/gpt2_large.json").read_text())
        (folder / "net").mkdir()
        (folder / "net/config.json").write_text(json.dumps(config))
        spec = {"model": ["net"], "gpu": ["T4"], "batch": [1, 2, 4, 8], "seq": [8]}
        sweep, out, manifest = sweep_folder(name, spec), folder / "out.csv", folder / "out.csv.manifest.json"
        assert run(*sweep, cwd=name).returncode == 0
        rows, written = out.read_bytes(), manifest.read_text()

        def check_refused(message: str) -> None:
            refused = run(*sweep, "--pareto", "max:batch", cwd=name)
            assert refused.returncode == 1 and f"tilecast: out.csv: {message}" in refused.stderr, (message, refused)
            assert out.read_bytes() == rows and refused.stdout == "", (message, refused)
            sweep_folder(name, spec)
            (folder / "net/config.json").write_text(json.dumps(config))
            manifest.write_text(written)

        sweep_folder(name, {**spec, "where": "batch <= 2"})
        check_refused("line 4: is of a point that this sweep leaves out")
        sweep_folder(name, {**spec, "batch": [1, 2, 4, 8, 16]})
        check_refused("its rows are of another spec than this")
        (folder / "net/config.json").write_text(json.dumps({**config, "n_layer": 3}))
        check_refused("its rows were made with another content of 'net'")
        (folder / "net/config.json").rename(folder / "other.json")
        (folder / "net").rmdir()
        refused = run(*sweep, cwd=name)
        assert refused.returncode == 1 and out.read_bytes() == rows, refused
        (folder / "net").mkdir()
        for key, value, message in (("version", "0.0.1", "its rows are by tilecast 0.0.1 (commit "),
                                    ("commit", "0123456789ab", "(commit 0123456789ab), this is "),
                                    ("data", "0", "its rows are by a program with other weights"),
                                    ("files", 5, "out.csv.manifest.json is no manifest of a sweep")):
            (folder / "net/config.json").write_text(json.dumps(config))
            manifest.write_text(json.dumps({**json.loads(written), key: value}))
            refused = run(*sweep, cwd=name)
            assert refused.returncode == 1 and message in refused.stderr and out.read_bytes() == rows, (message, refused)
        manifest.unlink()
        check_refused("out.csv.manifest.json is missing, which says what the rows were made with")
        # The layout of the spec does not count, nor what else lies in the folder.
        (folder / "many.json").write_text(json.dumps(spec, indent=2))
        (folder / "net/notes.txt").write_text("a note")
        assert run(*sweep, cwd=name).returncode == 0 and out.read_bytes() == rows
        # Without rows there is nothing to mix.
        out.unlink()
        sweep_folder(name, {**spec, "batch": [16]})
        assert run(*sweep, cwd=name).returncode == 0 and out.read_text().splitlines()[1].startswith("0,net,T4,16,")


def check_a_sweep_refuses_names_of_other_formats() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_folder(folder, {**SWEEP, "seq": [8]})[:3]
        for output in ("out.json", "out.parquet", "OUT.PARQUET", "out.csv.gz"):
            refused = run(*sweep, output, cwd=folder)
            assert refused.returncode == 1 and f"{output}: a sweep's rows are CSV or JSON lines" in refused.stderr, refused
        assert sorted(os.listdir(folder)) == ["many.json"]


def check_a_number_is_stated_once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = {"model": ["gpt2_large"], "gpu": ["H100:sm_count=160,matrix_flops_per_s.fp16=1e15"], "seq": [512], "dtype": ["fp16"]}
        sweep = sweep_folder(folder, {**spec, "parameters": {"sm_count": [100]}})
        refused = run(*sweep, cwd=folder)
        assert refused.returncode == 1 and "states sm_count already: leave one of them out" in refused.stderr, refused
        # As if all were in the name, the peak included.
        sweep_folder(folder, {**spec, "parameters": {"boost_clock_hz": [1e9]}})
        assert run(*sweep, cwd=folder).returncode == 0
        row = next(csv.DictReader((Path(folder) / "out.csv").read_text().splitlines()))
        forecast = json.loads(run("forecast", "gpt2_large", "--gpu", spec["gpu"][0] + ",boost_clock_hz=1e9", "--seq", "512", "--dtype", "fp16",
                                  "--format", "json").stdout)
        assert abs(float(row["latency_s"]) - forecast["latency_s"]) < 1e-9, (row, forecast["latency_s"])


def check_of_equal_rows_the_front_has_one() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_folder(folder, {**SWEEP, "seq": [64], "host-launch-us": {"from": 1, "to": 20, "step": 0.01}})
        front = run(*sweep, "--pareto", "memory", cwd=folder).stdout.splitlines()
        assert len(front) == 2 and front[1].startswith("0,"), len(front)


def check_the_front_of_a_sweep() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = {"model": ["gpt2_large"], "gpu": ["T4", "A100", "H100"], "batch": [1, 4, 16],
                "parameters": {"memory_bytes_per_s": [3e11, 2e12]}}
        sweep = sweep_folder(folder, spec)[:3]
        answer = json.loads(run(*sweep, "out.csv", "--pareto", "time,memory,min:memory_bytes_per_s", "--format", "json", cwd=folder).stdout)
        rows = list(csv.DictReader((Path(folder) / "out.csv").read_text().splitlines()))
        assert answer["pareto"] == ["min:latency_s", "min:peak_bytes", "min:memory_bytes_per_s"], answer
        numbers = {int(row["index"]): [float(row[name]) for name in ("latency_s", "peak_bytes", "memory_bytes_per_s")] for row in rows}
        beats = lambda a, b: all(x <= y for x, y in zip(a, b)) and a != b
        front = {i for i, own in numbers.items() if not any(beats(other, own) for other in numbers.values())}
        assert set(answer["front"]) == front and 1 < len(front) < 18, (answer, front)
        for wrong, message in (("speed", "no number of a row has this name"), ("batch", "say which is better, min:batch or max:batch"),
                               ("time,latency_s", "is given twice"), ("gpu", "no number of a row has this name")):
            refused = run(*sweep, "other.csv", "--pareto", wrong, cwd=folder)
            assert refused.returncode in (1, 2) and message in refused.stderr, refused
            assert not (Path(folder) / "other.csv").exists()
        page = run(*sweep, "page.html", "--pareto", "time,memory", cwd=folder)
        assert page.returncode == 0 and (Path(folder) / "page.csv").exists(), page
        assert '"kind":"sweep"' in (Path(folder) / "page.html").read_text()


def check_a_sweep_writes_to_one_file_of_its_own() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_folder(folder, {**SWEEP, "seq": list(range(8, 8000))})
        os.mkfifo(Path(folder) / "pipe")
        for path in ("pipe", "/dev/zero", "/dev/null"):
            refused = run(*sweep[:3], path, cwd=folder)
            assert refused.returncode == 1 and f"tilecast: {path}: is no regular file" in refused.stderr, refused
        for path in ("-", "/dev/stdout"):
            refused = run(*sweep[:3], path, cwd=folder)
            assert refused.returncode == 2 and "-o FILE is missing" in refused.stderr, refused
        refused = run(*sweep[:3], ".", cwd=folder)
        assert refused.returncode == 1 and "cannot write: Is a directory" in refused.stderr, refused
        first = subprocess.Popen([TILECAST, *sweep], cwd=folder, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                if (Path(folder) / "out.csv").exists() and (Path(folder) / "out.csv").stat().st_size > 0:
                    break
                time.sleep(0.05)
            second = run(*sweep, cwd=folder)
            assert first.poll() is None, "the first sweep ended too early to see the second refused"
            assert second.returncode == 1 and "out.csv: another run writes to this file" in second.stderr, second
        finally:
            first.kill()
            first.wait()
        rows = (Path(folder) / "out.csv").read_text().splitlines()
        assert len({row.split(",")[0] for row in rows}) == len(rows), "a row is there twice"


def check_a_sweep_of_more_than_64_mib_ends() -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = {"model": ["gpt2_large"], "gpu": ["T4"], "batch": [1], "seq": list(range(1, 1001)),
                "host-launch-us": [round(1 + i / 1000, 3) for i in range(600)]}
        sweep = sweep_folder(folder, {**spec, "seq": [1], "host-launch-us": [1]})
        assert run(*sweep, cwd=folder).returncode == 0
        header, row = (Path(folder) / "out.csv").read_text().splitlines()
        columns, cells = header.split(","), row.split(",")
        sweep = sweep_folder(folder, spec)
        # Stopped after the header, with the manifest of this sweep.
        (Path(folder) / "out.csv").unlink()
        run(*sweep, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        names = [name for name in columns if name in ("seq", "host-launch-us", "batch")]
        sizes = {"seq": spec["seq"], "host-launch-us": spec["host-launch-us"], "batch": [1]}
        total = 600 * 1000
        with open(Path(folder) / "out.csv", "w") as out:
            out.write(header + "\n")
            for index in range(total - 1):
                rest = index
                for name in reversed(names):
                    values = sizes[name]
                    cells[columns.index(name)] = str(values[rest % len(values)]).removesuffix(".0")
                    rest //= len(values)
                cells[0] = str(index)
                out.write(",".join(cells) + "\n")
        assert (Path(folder) / "out.csv").stat().st_size > 64 << 20
        result = run(*sweep, cwd=folder)
        assert result.returncode == 0, result.stderr[-300:]
        with open(Path(folder) / "out.csv") as out:
            assert sum(1 for _ in out) == total + 1


def check_no_output_replaces_what_is_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_bytes((Path(__file__).parents[1] / "data/models/gpt2_large.json").read_bytes())
        before = config.read_bytes()
        os.link(config, Path(folder) / "same.json")
        for path in ("config.json", "./config.json", "same.json"):
            refused = run("forecast", "config.json", "--gpu", "T4", "-o", path, cwd=folder)
            assert refused.returncode == 2 and f"-o {path}: is the file that MODEL names, too" in refused.stderr, refused
        assert config.read_bytes() == before
        # A GPU's name is no file, whatever lies there.
        (Path(folder) / "T4").write_text("an older forecast")
        assert run("forecast", "config.json", "--gpu", "T4", "-o", "T4", cwd=folder).returncode == 0
        assert "80 % interval" in (Path(folder) / "T4").read_text()
        sweep_folder(folder, SWEEP)
        refused = run("sweep", "many.json", "-o", "many.json", cwd=folder)
        assert refused.returncode == 2 and json.loads((Path(folder) / "many.json").read_text()) == SWEEP, refused


def check_a_sweep_whose_rows_all_fail_says_so() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep = sweep_folder(folder, {"model": ["llama-3-8b"], "gpu": ["T4"], "dtype": ["fp8"], "seq": [8, 16]})
        failed = run(*sweep, cwd=folder)
        assert failed.returncode == 1 and "2 of 2 combinations failed" in failed.stderr, failed


def check_small_files_do_not_fill_memory() -> None:
    if not any(part["name"] == "liblzma" and part["found"] for part in json.loads(run("doctor", "--format", "json").stdout)["parts"]):
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.csv.xz").write_bytes(lzma.compress(b"gpu,op,dtype,latency_s\n" + b"a," * (30 << 20)))
        limit = 600 << 20
        limited = lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        if run("--version", preexec_fn=limited).returncode != 0:
            limited = None  # a sanitizer reserves more
        refused = run("evaluate", "a.csv.xz", cwd=folder, preexec_fn=limited)
        assert refused.returncode == 1 and "a.csv.xz: unpacks to more than" in refused.stderr, refused


def main() -> int:
    global TILECAST
    TILECAST = str(Path(sys.argv[1]).resolve())
    checks = [(name, check) for name, check in globals().items()
              if name.startswith("check_") and (len(sys.argv) == 2 or name in sys.argv[2:])]
    failed = 0
    for name, check in checks:
        try:
            check()
        except Exception:
            failed += 1
            print(f"{name} failed:")
            traceback.print_exc(limit=-2, file=sys.stdout)
    print(f"{len(checks) - failed} checks passed, {failed} failed")
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
