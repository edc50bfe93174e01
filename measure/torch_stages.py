#!/usr/bin/env python3
"""Measures a GPU with PyTorch in stages that each have a time limit: power, traces, timm, grouped, convs, transposed, slices, compiled.

    measure/torch_stages.py -o DIR                                       all stages, about 7 minutes
    measure/torch_stages.py -o DIR --stages power,grouped --seconds-each power=60,grouped=40
    measure/torch_stages.py -o DIR --dry-run                             tiny sizes on a CPU, to test the program

Files of DIR: power.csv, power_samples.csv; traces.csv, traces.tar; timm.csv, timm_ops.csv; kernels.csv (grouped, convs, transposed);
slices.csv. Columns as in docs/reference/measurements.md; each module of measure/stages says what is its own. A row is written as soon
as it is measured, also where it fails (`status`, `detail`). The stages run in one process; if that dies, a new one goes on with the next
case; a stage that overruns its time by GRACE_S is given up. Needs torch; transformers (traces), timm (timm, traces), nvidia-ml-py, cupy (slices).
"""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

# Seconds on an H100; the order is that of value.
STAGES = {"power": 105, "timm": 105, "traces": 50, "grouped": 30, "convs": 55, "transposed": 12, "slices": 20, "compiled": 60}
GRACE_S = 20
LEAST_S = 12   # of a stage, to begin it again after its process died


def run_stages(names, seconds, skip, args):
    """All stages named, in this process; lines of stdout tell the parent where it is. `skip`: cases of the first that are done."""
    begin = time.monotonic()
    from stages.common import Bench, ContextLost
    for index, name in enumerate(names):
        print(f"stage {index}", flush=True)
        start = time.monotonic()
        bench = Bench(name, args.output, seconds[name], args.dry_run, args.hold, skip if index == 0 else 0)
        try:
            module = importlib.import_module(f"stages.{name}")
            # The card as nobody uses it, before this process has a CUDA context.
            before = [module.idle_without_context(bench)] if name == "power" and index == 0 and not skip else []
            rows = module.run(bench, *before)
            print(f"{name}: {rows} rows in {time.monotonic() - start:.1f} s (at {time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
        except ContextLost as error:
            print(f"{name}: the CUDA context is lost: {error}", file=sys.stderr, flush=True)
            os._exit(3)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr, flush=True)
            if args.dry_run:
                raise
        finally:
            bench.close()
        bench.free()
    print(f"stage {len(names)}", flush=True)


class Child:
    """The process that runs the stages, seen by its lines `stage N` and `case N`."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.stage, self.case, self.unread, self.since = 0, 0, b"", time.monotonic()

    def read(self):
        self.unread += self.process.stdout.read() or b""
        *lines, self.unread = self.unread.split(b"\n")
        for line in lines:
            word, _, number = line.decode(errors="replace").partition(" ")
            if word == "stage" and number.isdigit():
                self.stage, self.case, self.since = int(number), 0, time.monotonic()
            elif word == "case" and number.isdigit():
                self.case = int(number)

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def watch(command, names, seconds, end):
    """Runs the stages in a child until it ends. Returns (index of the stage to go on with, cases of it to skip, seconds it has used)."""
    child = Child(command)
    while True:
        ended = child.process.poll() is not None
        child.read()
        spent = time.monotonic() - child.since
        if ended:
            return child.stage, child.case, spent
        if time.monotonic() > end or (child.stage < len(names) and spent > seconds[names[child.stage]] + GRACE_S):
            print(f"{names[min(child.stage, len(names) - 1)]}: overran its time", file=sys.stderr, flush=True)
            child.kill()
            return child.stage + 1, 0, 0.0
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="folder of the files")
    parser.add_argument("--stages", default=",".join(STAGES), help="in this order (default: %(default)s)")
    parser.add_argument("--seconds-each", default="", metavar="STAGE=S,...", help="other limits than " +
                        ",".join(f"{name}={limit}" for name, limit in STAGES.items()))
    parser.add_argument("--seconds", type=float, default=430, help="of everything (default: %(default)s)")
    parser.add_argument("--hold", type=float, default=2.0, help="seconds for which a load of `power` is held (default: %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes on a CPU")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--skip", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.stages.split(",")
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        raise SystemExit(f"torch_stages.py: unknown stages {','.join(unknown)}; there are {','.join(STAGES)}")
    seconds = {**STAGES, **{key: float(value) for key, _, value in (part.partition("=") for part in args.seconds_each.split(",") if part)}}
    os.makedirs(args.output, exist_ok=True)
    if args.child:
        run_stages(names, json.loads(args.child), args.skip, args)
        return
    end, skip = time.monotonic() + args.seconds, 0
    while names and time.monotonic() < end:
        command = [sys.executable, os.path.abspath(__file__), "-o", args.output, "--stages", ",".join(names), "--hold", str(args.hold),
                   "--skip", str(skip), "--child", json.dumps(seconds), *(["--dry-run"] if args.dry_run else [])]
        index, skip, spent = watch(command, names, seconds, end)
        names = names[index:]
        if names:  # the child died in this stage: the rest of it in the time that is left, from the next case on
            seconds[names[0]] -= spent if skip else 0.0
            if seconds[names[0]] < LEAST_S or (not skip and spent):
                names, skip = names[1:], 0
    if names:
        print(f"no time for {','.join(names)}", file=sys.stderr)


if __name__ == "__main__":
    main()
