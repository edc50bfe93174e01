"""A worker without a GPU, for dry runs and tests: it answers like the real ones, with made-up times.

Environment, for tests: SIMULATED_CRASH_EVERY=N ends the process at every N-th case;
SIMULATED_DELAY_S seconds per case; SIMULATED_HANG=family never answers for that family.
"""

import hashlib
import os
import sys
import time

FACTS = {"gpu_name": "Simulated GPU", "simulated": "yes: the times are made up", "driver": "0",
         "cuda_runtime": "0"}


def answer(request):
    if request["do"] == "facts":
        return {"status": "ok", **FACTS}
    if request["do"] != "time":
        return {"status": "ok"}
    noise = int(hashlib.sha256(repr(sorted(request.items())).encode()).hexdigest()[:8], 16) / 2 ** 32
    if noise > 0.99:
        return {"status": "out_of_memory", "detail": "operands do not fit (simulated)"}
    sizes = [int(request.get(key) or 1) for key in ("batch", "m", "n", "k")]
    work = 1.0
    for size in sizes:
        work *= max(size, 1)
    seconds = 2e-6 + work / 1e13 * (1 + noise)
    if request["family"] == "model_kernels":
        return {"status": "ok", "rows": "2", "0.kernel_name": "gemm, simulated", "0.calls": "12",
                "0.total_s": f"{seconds:.6g}", "1.kernel_name": "softmax", "1.calls": "12",
                "1.total_s": f"{seconds / 9:.6g}"}
    return {"status": "ok", "latency_s": f"{seconds:.6g}", "p25_s": f"{seconds * 0.99:.6g}",
            "p75_s": f"{seconds * 1.01:.6g}", "runs": "5", "launches": "1"}


def main():
    crash_every = int(os.environ.get("SIMULATED_CRASH_EVERY", 0))
    delay_s = float(os.environ.get("SIMULATED_DELAY_S", 0))
    cases = 0
    for line in sys.stdin:
        request = dict(field.partition("=")[::2] for field in line.rstrip("\n").split("\t"))
        if request["do"] == "time":
            cases += 1
            if crash_every and cases % crash_every == 0:
                os._exit(9)
            if request["family"] == os.environ.get("SIMULATED_HANG"):
                time.sleep(3600)
            time.sleep(delay_s)
        print("\t".join(f"{key}={value}" for key, value in answer(request).items()), flush=True)


if __name__ == "__main__":
    main()
