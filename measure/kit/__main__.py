"""`python3 -m kit`: one campaign. measure/run.sh builds the worker and calls this."""

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile

from kit import card
from kit.campaign import Campaign, TableError, WorkerError
from kit.families import families
from kit.listed import measure_list
from kit.progress import Progress
from kit.worker import Worker

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURE = os.path.dirname(HERE)
SIMULATED = [sys.executable, os.path.join(MEASURE, "tests", "simulated_worker.py")]


def arguments():
    parser = argparse.ArgumentParser(
        prog="measure/run.sh",
        description="Measures what this machine's NVIDIA GPU really takes: kernels and whole models. "
        "The most valuable missing part comes first; stops by itself in time; a later run goes on.")
    parser.add_argument("--minutes", type=float, default=9, help="time to spend (default: 9)")
    parser.add_argument("-o", dest="folder",
                        help="where DIR/<gpu id>/<family>.csv go (default: data/measurements; of a dry run: a new "
                        "temporary folder)")
    parser.add_argument("--families", help="comma-separated; default: all")
    parser.add_argument("--list", metavar="FILE.csv",
                        help="measure the kernels of this list only ('tilecast calibrate --suggest' writes one) and fill "
                        "in their times")
    parser.add_argument("--show-families", action="store_true", help="print the families and how many cases they have")
    parser.add_argument("--dry-run", action="store_true",
                        help="no GPU: a simulated one answers; its rows are marked as such")
    parser.add_argument("--kernels-worker", default=os.path.join(card.REPOSITORY, "build", "measure", "tilecast_measure"),
                        help="the program that times kernels")
    parser.add_argument("--python", default=os.environ.get("TILECAST_PYTHON", sys.executable),
                        help="a Python with PyTorch and Transformers, for whole models")
    return parser.parse_args()


def chosen(parser_arguments):
    everything = families()
    if not parser_arguments.families:
        return everything
    wanted = parser_arguments.families.split(",")
    known = [family.name for family in everything]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"measure/run.sh: unknown family '{unknown[0]}'; known: {', '.join(known)}")
    return [family for family in everything if family.name in wanted]


def output_folder(args):
    """Made-up times stay out of the source tree."""
    if args.folder:
        return args.folder
    if args.dry_run:
        return tempfile.mkdtemp(prefix="tilecast-dry-run-")
    return os.path.join(card.REPOSITORY, "data", "measurements")


def make_workers(args):
    """Worker or reason by name, and the facts of the card from the first that answers."""
    if args.dry_run:
        workers = {name: Worker(SIMULATED) for name in ("kernels", "models")}
    else:
        workers = {"kernels": Worker([args.kernels_worker]),
                   "models": Worker([args.python, os.path.join(MEASURE, "models.py"), "--serve"])}
    facts, reasons = {}, {}
    for name, worker in workers.items():
        if name == "kernels" and not args.dry_run and not os.path.exists(args.kernels_worker):
            reasons[name] = "not built: needs nvcc and cuBLASLt (see the messages of measure/run.sh)"
            continue
        try:
            answer = worker.check()
            answer.pop("status")
            facts = {**answer, **facts}
        except WorkerError as error:
            reasons[name] = str(error).splitlines()[-1]
    if not facts:
        raise SystemExit("measure/run.sh: nothing can be measured on this machine.\n"
                         + "\n".join(f"  {name}: {reason}" for name, reason in reasons.items()))
    return {name: reasons.get(name, worker) for name, worker in workers.items()}, facts


def commit():
    git = shutil.which("git")
    if git is None:
        return "unknown"
    found = subprocess.run([git, "-C", card.REPOSITORY, "rev-parse", "--short=12", "HEAD"],
                           capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def run_list(args, workers, facts, gpu, progress):
    worker = workers["kernels"]
    if isinstance(worker, str):
        raise SystemExit(f"measure/run.sh: kernels: {worker}")
    try:
        lines = measure_list(args.list, worker, facts, gpu,
                             lambda seconds: progress.budget_s - progress.elapsed_s() > seconds)
    except TableError as error:
        raise SystemExit(f"measure/run.sh: {error}") from None
    finally:
        worker.stop()
    print("\n".join(lines))
    print(f"now: tilecast calibrate --gpu {gpu} --measurements {args.list} -o {gpu}.json")
    return 0


def main():
    args = arguments()
    if not args.minutes > 0:
        raise SystemExit("measure/run.sh: --minutes: expected more than 0")
    selected = chosen(args)
    if args.show_families:
        for family in selected:
            print(f"{family.name:14}{len(family.cases):>6} cases, {100 * family.share:.0f} % of the time")
        return 0
    progress = Progress(60 * args.minutes)
    workers, facts = make_workers(args)
    identifier, known = card.device_id(facts["gpu_name"])
    print(f"measuring {facts['gpu_name']} as {identifier}", file=sys.stderr)
    if not known:
        print("  no file in data/devices has that name among its aliases: add it there, so that "
              "tilecast evaluate finds the card", file=sys.stderr)
    if args.list:
        return run_list(args, workers, facts, identifier, progress)
    header = {"measured_by": f"Tilecast measurement kit, commit {commit()}", **facts,
              "date": datetime.date.today().isoformat()}
    folder = output_folder(args)
    if args.dry_run:
        print(f"dry run: made-up rows go to {folder}", file=sys.stderr)
    try:
        campaign = Campaign(folder, identifier, header, selected, workers, progress)
    except TableError as error:
        raise SystemExit(f"measure/run.sh: {error}") from None
    status = 0
    try:
        campaign.run()
    except KeyboardInterrupt:
        print("stopped by Ctrl-C: the rows so far are whole; run again to go on", file=sys.stderr)
        status = 130
    except (TableError, WorkerError) as error:
        print(f"measure/run.sh: {error}", file=sys.stderr)
        status = 1
    print("\n".join(campaign.report()))
    print(f"rows are in {os.path.join(folder, identifier)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
