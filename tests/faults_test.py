#!/usr/bin/env python3
"""Disks that are full, quotas, kills and folders that nobody may write to, in the middle of each command that writes.

    tests/faults_test.py <tilecast> <libfaults.so>

tests/support/faults.cc, preloaded, makes one call after the other fail that changes a file: each
creation, write (half of it), fsync and rename. Whatever happens, a file that a command replaces
has its old content or the whole new one; a sweep keeps each row that was in the file; a failure
is said and leaves no part file; and the next run gives what an undisturbed run gives.
"""
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

TILECAST = ""
FAULTS = ""
OLD = "what was there before\n" * 10

ROWS = "gpu,op,dtype,batch,m,n,k,latency_s,protocol\n" + "".join(
    f"T4,linear,fp32,1,{64 * (i % 7 + 1)},{96 * (i % 5 + 1)},{32 * (i + 1)},{1e-5 * (i % 9 + 1)},back_to_back\n" for i in range(200))
TABLES = {"sparse_optimizer": "rowwise_adagrad", "embedding_dim": 64,
           "tables": [{"name": "a", "rows": 1000, "pooling": 2.5}, {"name": "b", "rows": 100000, "dim": 128}]}
SWEEP = {"model": ["gpt2_large"], "gpu": ["T4"], "batch": [1], "seq": list(range(8, 18))}
FILES = {"rows.csv": ROWS, "tables.json": json.dumps(TABLES), "many.json": json.dumps(SWEEP)}

# Each command that writes a file, with its output's name at the end.
COMMANDS = [
    ["forecast", "gpt2_large", "--gpu", "H100", "--format", "json", "-o", "out.json"],
    ["forecast", "gpt2_large", "--gpu", "H100", "--format", "csv", "-o", "out.csv"],
    ["forecast", "llama-3-8b", "--gpu", "H100", "--prompt", "64", "--output", "8", "-o", "out.txt"],
    ["compare", "gpt2_large", "bert_large", "--gpu", "H100", "-o", "out.txt"],
    ["kernel", "linear", "--gpu", "H100", "-m", "64", "-n", "64", "-k", "64", "-o", "out.txt"],
    ["collective", "all_reduce", "--cluster", "dgx-h100", "--ranks", "8", "--bytes", "1000", "-o", "out.txt"],
    ["plan", "gpt2_large", "--cluster", "dgx-h100", "--batch", "8", "--seq", "64", "--dtype", "bf16", "-o", "out.txt"],
    ["shard", "tables.json", "--cluster", "dgx-a100", "-o", "out.json"],
    ["evaluate", "rows.csv", "-o", "out.txt"],
    ["calibrate", "--gpu", "T4", "--measurements", "rows.csv", "-o", "out.json"],
    ["calibrate", "--gpu", "L4", "--suggest", "3", "-o", "out.csv"],
    ["tune", "gemm m=4096 n=512 k=1024 dtype=fp16", "--gpu", "MI250X", "-o", "out.txt"],
    ["gpus", "-o", "out.txt"], ["clusters", "-o", "out.txt"], ["models", "-o", "out.txt"], ["ops", "-o", "out.txt"],
    ["doctor", "-o", "out.txt"], ["completion", "bash", "-o", "out.txt"],
]
SWEEPS = [["sweep", "many.json", "--quiet", "--threads", "2", "-o", name] for name in ("out.csv", "out.jsonl")]
TRAIN = ["train", "--data", "rows.csv", "--trees", "2", "--intervals", "held-out", "-o", "weights"]


def run(command: list, folder: Path, fault: str = "", at: int = 0, **options) -> subprocess.CompletedProcess:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    if fault:
        environment |= {"LD_PRELOAD": FAULTS, "FAULT": fault, "FAULT_AT": str(at), "FAULT_FOLDER": str(folder)}
    return subprocess.run([TILECAST, *command], cwd=folder, env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, **options)


def fill(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_text(content)


def text_of(path: Path) -> str:
    """Of any file: weights are no text."""
    return path.read_bytes().decode(errors="surrogateescape")


def content(folder: Path) -> dict:
    """The files of a folder, but those that the command reads."""
    return {str(path.relative_to(folder)): text_of(path) for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in FILES}


def undisturbed(command: list) -> dict:
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name))
        result = run(command, Path(name))
        assert result.returncode == 0, (command, result.stderr)
        return content(Path(name))


def parts(folder: Path) -> list:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def check_failed(result: subprocess.CompletedProcess, fault: str, what: tuple) -> None:
    if fault == "kill":
        assert result.returncode == -signal.SIGKILL, (what, result)
    else:
        assert result.returncode == 1 and ": cannot " in result.stderr and os.strerror(int(fault)) in result.stderr, (what, result)


FULL = [str(errno.ENOSPC), str(errno.EDQUOT), str(errno.EIO)]


def check_a_file_is_the_old_or_the_new_one() -> None:
    stopped = 0
    for command in COMMANDS:
        whole, target = undisturbed(command), command[-1]
        for fault in ["kill", *FULL]:
            for before in (None, OLD):
                for at in range(1, 50):
                    with tempfile.TemporaryDirectory() as name:
                        folder = Path(name).resolve()
                        fill(folder)
                        if before:
                            (folder / target).write_text(before)
                        result = run(command, folder, fault, at)
                        if result.returncode == 0:
                            assert content(folder) == whole, (command, fault, at)
                            break
                        what = (command, fault, at, before is not None)
                        stopped += 1
                        check_failed(result, fault, what)
                        found = text_of(folder / target) if (folder / target).exists() else None
                        assert found in (before, whole[target]), what
                        assert fault == "kill" or not parts(folder), (what, parts(folder))
                        # What a kill left behind stays, and is in nobody's way.
                        left = parts(folder)
                        assert run(command, folder).returncode == 0, what
                        assert text_of(folder / target) == whole[target] and parts(folder) == left, what
                else:
                    raise AssertionError((command, fault, "never came to its end"))
                assert at > 3, (command, fault, at, "no call failed: is the library preloaded?")
    print(f"  {stopped} runs stopped in the middle of {len(COMMANDS)} commands")


def check_a_sweep_keeps_its_rows() -> None:
    for command in SWEEPS:
        whole = undisturbed(command)
        rows = sorted(whole[command[-1]].splitlines())
        for fault in ["kill", *FULL]:
            for at in range(1, 60):
                with tempfile.TemporaryDirectory() as name:
                    folder = Path(name).resolve()
                    fill(folder)
                    result = run(command, folder, fault, at)
                    if result.returncode == 0:
                        break
                    check_failed(result, fault, (command, fault, at))
                    text = text_of(folder / command[-1]) if (folder / command[-1]).exists() else ""
                    kept = text[:text.rfind("\n") + 1].splitlines()
                    assert set(kept) <= set(rows) and len(set(kept)) == len(kept), (fault, at, kept)
                    assert fault == "kill" or text == "" or text.endswith("\n") or len(kept) == 0, (fault, at, text)
                    # Stopped again while it goes on, then undisturbed: no row that was there is lost.
                    for again in (1, 2, 4):
                        run(command, folder, fault, again)
                        text = text_of(folder / command[-1]) if (folder / command[-1]).exists() else ""
                        assert set(kept) <= set(text.splitlines()), (fault, at, again)
                    assert run(command, folder).returncode == 0, (fault, at)
                    assert sorted(text_of(folder / command[-1]).splitlines()) == rows, (fault, at)
            else:
                raise AssertionError((command, fault, "never came to its end"))
            assert at > len(rows), (fault, at)


def check_weights_are_the_old_or_the_new_ones() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        fill(folder)
        first = run(TRAIN, folder)
        if first.returncode != 0:  # XGBoost is missing
            print("  train: skipped:", first.stderr.strip())
            return
        whole = content(folder)
    for fault in ["kill", *FULL]:
        for at in range(1, 200):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name).resolve()
                fill(folder)
                result = run(TRAIN, folder, fault, at)
                if result.returncode == 0:
                    assert content(folder) == whole, (fault, at)
                    break
                check_failed(result, fault, (fault, at))
                for path, text in content(folder).items():
                    # Checkpoints are what the next run goes on from.
                    assert path.endswith(".part") or "/checkpoints/" in path or whole[path] == text, (fault, at, path)
                assert fault == "kill" or not [path for path in content(folder) if path.endswith(".part")], (fault, at)
                assert run(TRAIN, folder).returncode == 0, (fault, at)
                assert {k: v for k, v in content(folder).items() if not k.endswith(".part")} == whole, (fault, at)
        else:
            raise AssertionError((fault, "never came to its end"))
        assert at > 3, (fault, at)


def check_a_real_disk_that_is_full() -> None:
    """A file system of 16 kB, in a name space of its own: as root, or where users may have one."""
    script = r"""
set -eu
mount -t tmpfs -o size=16k none "$1"
cd "$1"; shift
printf 'old\n' > out.json
head -c 12288 /dev/zero > ballast || true
code=0; "$@" 2>> "$ERRORS" || code=$?
[ "$code" = 1 ]; [ "$(cat out.json)" = old ]; [ "$(ls -A)" = "$(printf 'ballast\nout.json')" ]
rm ballast; mount -o remount,size=4m .
"$@"; [ -s out.json ]; [ "$(ls -A)" = out.json ]
mount -o remount,ro .
cp out.json "$COPY"
code=0; "$@" 2>> "$ERRORS" || code=$?
[ "$code" = 1 ]; cmp out.json "$COPY"
"""
    if shutil.which("unshare") is None or subprocess.run(
            ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode != 0:
        print("  skipped: this machine lets nobody mount a tmpfs")
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as outside:
        command = [TILECAST, "forecast", "gpt2_large", "--gpu", "H100", "--format", "json", "-o", "out.json"]
        errors = Path(outside, "errors")
        result = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", folder, *command], capture_output=True, text=True,
                                env={**os.environ, "ERRORS": str(errors), "COPY": str(Path(outside, "copy"))}, timeout=120)
        said = errors.read_text() if errors.exists() else ""
        assert result.returncode == 0, (result, said)
        assert said.splitlines()[0] == "tilecast: out.json: cannot write: No space left on device", said
        assert "Read-only file system" in said, said


def check_a_folder_that_may_not_be_written() -> None:
    nobody = 65534
    for command in [*COMMANDS, *SWEEPS, TRAIN]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            fill(folder)
            folder.chmod(0o555)
            try:
                result = run(command, folder, **({"user": nobody, "group": nobody} if os.geteuid() == 0 else {}))
                if command == TRAIN and "XGBoost" in result.stderr:
                    continue
                assert result.returncode == 1 and "Permission denied" in result.stderr, (command, result)
                assert not content(folder), command
            finally:
                folder.chmod(0o755)


def main() -> int:
    global TILECAST, FAULTS
    TILECAST, FAULTS = (str(Path(argument).resolve()) for argument in sys.argv[1:3])
    failed = 0
    checks = [check for name, check in globals().items() if name.startswith("check_") and name != "check_failed"
              and (len(sys.argv) == 3 or name in sys.argv[3:])]
    for check in checks:
        print(check.__name__)
        try:
            check()
        except Exception:
            failed += 1
            traceback.print_exc(limit=-2, file=sys.stdout)
    print(f"{len(checks) - failed} checks passed, {failed} failed")
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
