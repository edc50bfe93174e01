"""Stage `slices`: processes that share the GPU in turns (no MPS): how long is each one's slice of time, what does a switch take?

slices.csv: one row an interval in which a process ran on the GPU, by %globaltimer. The kernel `watch` reads the timer all the time for
`seconds`; it was off the GPU between two readings more than GAP_NS apart. `stamp` kernels do a fixed work each and write when they began
and ended; those less than GAP_NS apart are one interval (`launches` of them). `request`: one stamp kernel launched and waited for every
2 ms; `wait_s` is what the host saw. In `queue` variants each process has its launches queued ahead.
"""

import json
import os
import subprocess
import sys
import time

if __name__ != "__main__":
    from .common import text

GAP_NS = 20_000
MOST = 400         # intervals of a process that are kept
SECONDS = 1.0
CODE = r"""
__device__ unsigned long long now() { unsigned long long t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
extern "C" __global__ void watch(unsigned long long* gaps, unsigned long long* ends, int most, unsigned long long run_ns,
                                 unsigned long long gap_ns) {
  const bool first = blockIdx.x == 0 && threadIdx.x == 0;
  const unsigned long long start = now();
  unsigned long long last = start;
  int count = 0;
  while (last - start < run_ns) {
    const unsigned long long t = now();
    if (first && t - last > gap_ns && count < most) { gaps[2 * count] = last; gaps[2 * count + 1] = t; ++count; }
    last = t;
  }
  if (first) { ends[0] = start; ends[1] = last; ends[2] = count; }
}
extern "C" __global__ void stamp(unsigned long long* stamps, int index, int work, float* out) {
  const unsigned long long start = now();
  float x = threadIdx.x;
  for (int i = 0; i < work; ++i) { x = fmaf(x, 0.5f, 1.0f); }
  asm volatile("" : "+f"(x));  // the loop is done before the timer is read
  if (blockIdx.x == 0 && threadIdx.x == 0) { stamps[2 * index] = start; stamps[2 * index + 1] = now(); if (x == -1.0f) { *out = x; } }
}
"""
# variant: what each process runs: (kind, blocks, work of a stamp kernel in dependent FMAs: about 2 ns each)
VARIANTS = {
    "alone_watch": [("watch", 1, 0)], "pair_watch": [("watch", 1, 0)] * 2, "pair_watch_full": [("watch", 1056, 0)] * 2,
    "triple_watch": [("watch", 1, 0)] * 3, "alone_queue": [("stamp", 132, 100_000)], "pair_queue": [("stamp", 132, 100_000)] * 2,
    "pair_queue_short_long": [("stamp", 132, 10_000), ("stamp", 132, 2_000_000)],
    "watch_and_requests": [("watch", 132, 0), ("request", 132, 10_000)], "queue_and_requests": [("stamp", 132, 100_000), ("request", 132, 10_000)],
    "alone_requests": [("request", 132, 10_000)],
}


def merged(stamps):
    """[(start, end, launches)] of launches that follow each other within GAP_NS."""
    intervals = []
    for start, end in stamps:
        if intervals and start - intervals[-1][1] < GAP_NS:
            intervals[-1] = (intervals[-1][0], end, intervals[-1][2] + 1)
        else:
            intervals.append((start, end, 1))
    return intervals


class Card:
    """The kernels by CuPy."""

    def __init__(self):
        import cupy
        self.cupy = cupy
        module = cupy.RawModule(code=CODE)
        self.watch, self.stamp = module.get_function("watch"), module.get_function("stamp")
        self.stamps, self.out = cupy.zeros(2 * 20000, dtype=cupy.uint64), cupy.zeros(1, dtype=cupy.float32)
        self.gaps, self.ends = cupy.zeros(2 * MOST, dtype=cupy.uint64), cupy.zeros(3, dtype=cupy.uint64)
        for kind in ("watch", "stamp", "request"):
            self.run(kind, 1, 1000, 0.001)

    def launch(self, index, blocks, work):
        self.stamp((blocks,), (128,), (self.stamps, self.cupy.int32(index), self.cupy.int32(work), self.out))

    def run(self, kind, blocks, work, seconds):
        """[(start, end, launches, wait_s)] of one run."""
        cupy, wait = self.cupy, self.cupy.cuda.get_current_stream().synchronize
        if kind == "watch":
            self.watch((blocks,), (128,), (self.gaps, self.ends, cupy.int32(MOST), cupy.uint64(int(seconds * 1e9)), cupy.uint64(GAP_NS)))
            wait()
            start, end, count = (int(value) for value in self.ends.get())
            gaps = self.gaps.get().reshape(-1, 2)[:count].tolist()
            starts, ends = [start, *(gap[1] for gap in gaps)], [*(gap[0] for gap in gaps), end]
            return [(a, b, 1, "") for a, b in zip(starts, ends)]
        begin, index, waits = time.perf_counter(), 0, []
        events = []
        while time.perf_counter() - begin < seconds and index < 20000:
            if kind == "request":
                before = time.perf_counter()
                self.launch(index, blocks, work)
                wait()
                waits.append(time.perf_counter() - before)
                time.sleep(0.002)
            else:
                self.launch(index, blocks, work)
                if index % 16 == 0:  # at most 64 launches ahead
                    events.append(cupy.cuda.Event())
                    events[-1].record()
                    if len(events) > 4:
                        events.pop(0).synchronize()
            index += 1
        wait()
        stamps = self.stamps.get().reshape(-1, 2)[:index].tolist()
        if kind == "request":
            return [(a, b, 1, seen) for (a, b), seen in zip(stamps, waits)]
        return [(*interval, "") for interval in merged(stamps)]


class Simulated:
    def run(self, kind, blocks, work, seconds):
        now = time.perf_counter_ns()
        time.sleep(0.01)
        return [(*interval, "") for interval in merged([(now, now + 1000), (now + 2000, now + 3000), (now + 90_000, now + 91_000)])]


def child(dry):
    """Reads one line of JSON a run: kind, blocks, work, seconds; answers with its intervals."""
    card = Simulated() if dry else Card()
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            answer = card.run(*json.loads(line))[:MOST]
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


def run(bench):
    columns = ["gpu", "stage", "variant", "process", "kind", "blocks", "work", "start_ns", "end_ns", "launches", "wait_s", "status", "detail",
               "wall_s"]
    table = bench.table("slices.csv", columns)
    command = [sys.executable, os.path.abspath(__file__), *(["--dry-run"] if bench.dry else [])]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    rows = 0
    try:
        for process in processes:
            if process.stdout.readline().strip() != "ready":
                table.write({"gpu": bench.gpu(), "stage": bench.stage, "status": "failed", "detail": "a process did not start (CuPy?)"})
                return 1
        for variant, parts in VARIANTS.items():
            if bench.late(2 * SECONDS):
                break
            print(f"case {rows}", flush=True)
            rows += run_variant(bench, table, variant, list(zip(processes, parts)))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return rows


def run_variant(bench, table, variant, running):
    start = time.monotonic()
    for process, part in running:
        process.stdin.write(json.dumps([*part, 0.01 if bench.dry else SECONDS]) + "\n")
        process.stdin.flush()
    answers = [json.loads(process.stdout.readline() or '"the process ended"') for process, _ in running]
    first = min((answer[0][0] for answer in answers if isinstance(answer, list) and answer), default=0)
    rows = 0
    for index, ((_, (kind, blocks, work)), answer) in enumerate(zip(running, answers)):
        shared = {"gpu": bench.gpu(), "stage": bench.stage, "variant": variant, "process": index, "kind": kind, "blocks": blocks,
                  "work": work, "wall_s": f"{time.monotonic() - start:.3f}"}
        if not isinstance(answer, list):
            table.write({**shared, "status": "failed", "detail": answer[:240]})
            continue
        for begin, end, launches, wait_s in answer:
            table.write({**shared, "start_ns": begin - first, "end_ns": end - first, "launches": launches, "wait_s": text(wait_s), "status": "ok"})
        rows += len(answer)
    return rows


if __name__ == "__main__":
    child("--dry-run" in sys.argv)
