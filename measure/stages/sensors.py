"""Power, energy and clocks of the card by NVML, read by a thread while a load runs."""

import contextlib
import threading
import time

PERIOD_S = 0.01
POWER_INSTANT = 186   # NVML_FI_DEV_POWER_INSTANT, in mW
MEMORY_TEMPERATURE = 82   # NVML_FI_DEV_MEMORY_TEMP, in degrees Celsius
POWER_CAP = 0x4       # nvmlClocksThrottleReasonSwPowerCap


class Nvml:
    """The first card's sensors; a dry run has made-up ones."""

    def __init__(self, dry=False):
        self.dry = dry
        if dry:
            return
        import pynvml
        pynvml.nvmlInit()
        self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)

    def field(self, field):
        value = self.nvml.nvmlDeviceGetFieldValues(self.handle, [field])[0]
        if value.nvmlReturn != 0:
            return None
        return value.value.uiVal

    def read(self):
        """One sample; a sensor that the card lacks is missing."""
        now = time.perf_counter()
        if self.dry:
            return {"t_s": now, "energy_j": int(now * 10) * 40.0, "power_w": 400.0, "average_power_w": 400.0, "sm_clock_hz": 1.5e9,
                    "memory_clock_hz": 2.6e9, "temperature_c": 50, "memory_temperature_c": 60, "throttle": POWER_CAP}
        n, h = self.nvml, self.handle
        sample = {"t_s": now}
        for key, read in (
                ("energy_j", lambda: n.nvmlDeviceGetTotalEnergyConsumption(h) / 1e3),
                ("power_w", lambda: self.field(POWER_INSTANT) / 1e3),
                ("average_power_w", lambda: n.nvmlDeviceGetPowerUsage(h) / 1e3),
                ("sm_clock_hz", lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM) * 1e6),
                ("memory_clock_hz", lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM) * 1e6),
                ("temperature_c", lambda: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)),
                ("memory_temperature_c", lambda: self.field(MEMORY_TEMPERATURE)),
                ("throttle", lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(h))):
            with contextlib.suppress(Exception):
                sample[key] = read()
        return sample


class Sampler:
    """Reads the sensors every PERIOD_S between `with` and its end."""

    def __init__(self, nvml):
        self.nvml, self.samples, self._stop = nvml, [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._stop.is_set():
            self.samples.append(self.nvml.read())
            self._stop.wait(PERIOD_S)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else ""


def summary(samples, start, end):
    """Sensors between two times of time.perf_counter.

    The energy counter steps a few times a second: joules and seconds are those between its first and last step in the window.
    """
    inside = [s for s in samples if start <= s["t_s"] <= end]
    row = {key: mean([s.get(key) for s in inside]) for key in ("power_w", "average_power_w", "sm_clock_hz", "memory_clock_hz",
                                                                "temperature_c", "memory_temperature_c")}
    reasons = [s["throttle"] for s in inside if "throttle" in s]
    if reasons:
        union = 0
        for reason in reasons:
            union |= reason
        row["throttle_reasons"] = hex(union)
        row["power_capped_share"] = sum(1 for reason in reasons if reason & POWER_CAP) / len(reasons)
    clocks = [s["sm_clock_hz"] for s in inside if "sm_clock_hz" in s]
    if clocks:
        row["lowest_sm_clock_hz"], row["highest_sm_clock_hz"] = min(clocks), max(clocks)
    counted = [s for s in inside if "energy_j" in s]
    steps = [b for a, b in zip(counted, counted[1:]) if b["energy_j"] != a["energy_j"]]
    if len(steps) > 1:
        row["energy_j"] = steps[-1]["energy_j"] - steps[0]["energy_j"]
        row["energy_window_s"] = steps[-1]["t_s"] - steps[0]["t_s"]
        row["energy_power_w"] = row["energy_j"] / row["energy_window_s"]
        row["energy_steps"] = len(steps)
    row["samples"] = len(inside)
    return row
