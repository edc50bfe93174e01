#!/usr/bin/env python3
"""Fits the law of a GPU's power to loads that were held for seconds (data/measurements/*/stages/power.csv.xz).

  fit_power.py             constants of all cards; errors of power and of the clock that holds, each card left out
"""

import csv
import lzma
import math
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CARDS = {"nvidia-h100-sxm5-80gb": "hbm3", "nvidia-h200-sxm-141gb": "hbm3e"}
BOOST_HZ = 1.98e9
LIMIT_W = 700.0
# FLOP/s of the data sheet, which are the same for both cards.
PEAK = {"bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12, "tf32": 494.7e12, "fp32": 66.9e12}

# Constants in the order of the fit: (name, first guess).
NAMES = [("voltage_at_rest", 0.57), ("idle_share", 0.11), ("clock_share", 0.07), ("busy_share", 0.08), ("matrix_16_bit_j_per_flop", 1.0e-12),
         ("matrix_8_bit_j_per_flop", 0.6e-12), ("matrix_tf32_j_per_flop", 1.9e-12), ("lanes_fp32_j_per_flop", 9.8e-12), ("attention_16_bit_j_per_flop", 1.6e-12),
         ("hbm3_j_per_byte", 115e-12), ("hbm3e_j_per_byte", 97e-12), ("l2_j_per_byte", 37e-12), ("stream_j_per_flop", 28e-12), ("norm_j_per_flop", 103e-12),
         ("softmax_j_per_flop", 166e-12), ("empty_rows_j_per_flop", 0.3e-12)]
UNITS = {"bf16": "matrix_16_bit_j_per_flop", "fp16": "matrix_16_bit_j_per_flop", "fp8": "matrix_8_bit_j_per_flop", "tf32": "matrix_tf32_j_per_flop", "fp32": "lanes_fp32_j_per_flop"}


def read(card):
    """The sustained rows, with the time of the burst of the same load."""
    path = ROOT / "data/measurements" / card / "stages/power.csv.xz"
    with lzma.open(path, "rt") as text:
        rows = list(csv.DictReader(line for line in text if not line.startswith("#")))
    burst = {row["name"]: float(row["latency_s"] or 0) for row in rows if row["load"] == "burst"}
    out = []
    for row in rows:
        if row["load"] != "sustained" or row["status"] != "ok":
            continue
        number = lambda key, row=row: float(row[key] or 0)
        seconds = number("latency_s")
        load = {"card": card, "name": row["name"], "op": row["op"], "power": number("energy_power_w"), "hz": number("sm_clock_hz"),
                "seconds": seconds, "burst": burst.get(row["name"], 0.0), "capped": number("power_capped_share") > 0.5,
                "flops": number("flops"), "dtype": row["dtype"], "dram": number("dram_bytes"), "busy": 0.0 if row["op"] in ("idle", "spin") else 1.0,
                "l2": 0.0, "heads_on_key": number("heads") / max(1.0, number("kv_heads"))}
        size = {"fp32": 4, "bf16": 2}.get(row["dtype"], 1)
        if row["op"] == "gelu":
            load["l2"] = 2 * size * number("columns")
        elif row["name"] == "l2_add_fp32":
            load["l2"] = 3 * size * number("columns")
        out.append(load)
    return out


def voltage(c, share):
    """Of the voltage at the highest clock."""
    return c["voltage_at_rest"] + (1 - c["voltage_at_rest"]) * share


# Rows of a tile of queries: of one query with its heads on a key head the others are empty.
DECODE_TILE_ROWS = 64


def energy_per_flop(c, load):
    if load["op"] == "cached_attention":
        return c["matrix_16_bit_j_per_flop"] + (DECODE_TILE_ROWS / load["heads_on_key"] - 1) * c["empty_rows_j_per_flop"]
    if load["op"].startswith("attention"):
        return c["attention_16_bit_j_per_flop"]
    kind = {"add": "stream_j_per_flop", "gelu": "stream_j_per_flop", "reduce_sum": "stream_j_per_flop", "softmax": "softmax_j_per_flop", "layer_norm": "norm_j_per_flop"}
    if load["op"] in kind:
        return c[kind[load["op"]]]
    return c[UNITS.get(load["dtype"], "lanes_fp32_j_per_flop")]


def power(c, load, hz, seconds):
    share = hz / BOOST_HZ
    v2 = voltage(c, share) ** 2
    watts = LIMIT_W * (c["idle_share"] + (c["clock_share"] + load["busy"] * c["busy_share"]) * share * v2)
    if seconds > 0:
        switched = load["flops"] * energy_per_flop(c, load) + load["l2"] * c["l2_j_per_byte"]
        watts += (v2 * switched + load["dram"] * c[CARDS[load["card"]] + "_j_per_byte"]) / seconds
    return watts


# What is no single kernel, or half of the time nothing, says nothing about one constant.
def in_fit(load):
    return load["op"] not in ("training_step", "decode_step", "gemm_and_pause") and load["name"] != "skinny_256"


def pause_product(c, load):
    """Power of a product that runs in 0.47 of the time beside one thread that waits."""
    product = min(load["burst_of_product"] / load["seconds"], 1)
    alone = {**load, "seconds": load["burst_of_product"]}
    waiting = {**load, "busy": 0.0, "flops": 0.0, "dram": 0.0}
    return product * power(c, alone, load["hz"], load["burst_of_product"]) + (1 - product) * power(c, waiting, load["hz"], 0)


def constants(values):
    return {name: value * first for (name, first), value in zip(NAMES, values)}


def least_squares(errors, x):
    """Levenberg and Marquardt's method, with weights that count rows beyond 10 % less."""
    damping = 1e-3
    for _ in range(60):
        e = errors(x)
        weight = 1 / np.sqrt(1 + (e / 0.1) ** 2)
        jacobian = np.stack([(errors(x + 1e-5 * unit) - e) / 1e-5 for unit in np.eye(len(x))], axis=1)
        a = jacobian.T @ (weight[:, None] * jacobian)
        step = np.linalg.solve(a + damping * np.diag(np.diag(a)), -jacobian.T @ (weight * e))
        loss = lambda y: np.sum(np.sqrt(1 + (errors(y) / 0.1) ** 2))
        if loss(x + step) < loss(x):
            x, damping = x + step, damping / 3
        else:
            damping *= 4
    return x


def fit(loads):
    def errors(values):
        c = constants(values)
        out = [math.log(power(c, load, load["hz"], load["seconds"]) / load["power"]) for load in loads if in_fit(load)]
        out += [math.log(pause_product(c, load) / load["power"]) for load in loads if load["op"] == "gemm_and_pause"]
        # Constants that no row of the card shows stay where they are.
        return out + [1e-3 * (value - 1) for value in values]

    return constants(least_squares(lambda values: np.array(errors(values)), np.ones(len(NAMES))))


def reached(loads):
    """Share of the peak at the clock that holds, which capped products reach: the median."""
    shares = [load["flops"] / load["seconds"] / (PEAK[load["dtype"]] * load["hz"] / BOOST_HZ)
              for load in loads if load["capped"] and load["op"] in ("gemm", "conv_forward") and load["name"] not in ("skinny_64", "skinny_256")]
    return float(np.median(shares))


def held(c, load, share_of_peak, limit):
    """The clock and the time at which the power is the limit's, from the time of a burst."""
    low, high = 0.3 * BOOST_HZ, BOOST_HZ

    def seconds(hz):
        if load["op"] in ("gemm", "matmul", "conv_forward"):
            return max(load["burst"], load["flops"] / (share_of_peak * PEAK[load["dtype"]] * hz / BOOST_HZ))
        return load["burst"]

    if power(c, load, high, seconds(high)) <= limit:
        return high, seconds(high)
    for _ in range(40):
        middle = (low + high) / 2
        if power(c, load, middle, seconds(middle)) > limit:
            high = middle
        else:
            low = middle
    return low, seconds(low)


def report(c, loads, share_of_peak, title):
    power_errors, clock_errors, time_errors, before = [], [], [], []
    print(f"\n{title}: measured W, forecast W; capped: clock MHz, forecast; time / burst, forecast")
    for load in loads:
        watts = pause_product(c, load) if load["op"] == "gemm_and_pause" else power(c, load, load["hz"], load["seconds"])
        line = f"  {load['name']:24s} {load['power']:6.1f} {watts:6.1f}"
        if in_fit(load) or load["op"] == "gemm_and_pause":
            power_errors.append(abs(watts / load["power"] - 1))
        if load["burst"] > 0 and in_fit(load):
            hz, seconds = held(c, load, share_of_peak, LIMIT_W * HELD)
            clock_errors.append(abs(hz / load["hz"] - 1))
            time_errors.append(abs(seconds / load["seconds"] - 1))
            before.append(abs(load["burst"] / load["seconds"] - 1))
            line += f"   {load['hz'] / 1e6:6.0f} {hz / 1e6:6.0f}   {load['seconds'] / load['burst']:5.2f} {seconds / load['burst']:5.2f}"
        print(line)
    median = lambda x: 100 * float(np.median(x))
    mean = lambda x: 100 * float(np.mean(x))
    print(f"  power at the measured clock: median {median(power_errors):.1f} %, mean {mean(power_errors):.1f}, worst {100 * max(power_errors):.1f}; "
          f"clock: median {median(clock_errors):.1f}, mean {mean(clock_errors):.1f}; time: mean {mean(time_errors):.1f} (burst: {mean(before):.1f})")


# Cards that FP32 products bring to their power limit (NeuSight's kernels): limit in W, peak FLOP/s, nm, and J per FLOP of all power for
# tiles of 128 x 128 (data/laws/matmul.json: the law of FP32 tiles).
LIMITED = {"nvidia-p4": (75, 5.70e12, 16, 18.5e-12), "nvidia-t4": (70, 8.14e12, 12, 17.6e-12), "nvidia-a100-pcie-40gb": (250, 19.5e12, 7, 15e-12),
           "nvidia-l4": (72, 30.3e12, 4, 8.2e-12)}


def lane_energy(c, card):
    """J per FLOP at the voltage of the highest clock, where the limit holds: lanes run at 0.97 of their peak at the clock."""
    limit, peak, _, total = LIMITED[card]
    rate = limit * HELD / total
    share = rate / (0.97 * peak)
    v2 = voltage(c, share) ** 2
    still = limit * (c["idle_share"] + (c["clock_share"] + c["busy_share"]) * share * v2)
    return (limit * HELD - still) / rate / v2, share


HELD = 0.975


def main():
    global HELD
    rows = {card: read(card) for card in CARDS}
    for loads in rows.values():
        product = next(load["burst"] for load in loads if load["name"] == "bf16_8192")
        for load in loads:
            load["burst_of_product"] = product
    everything = [load for loads in rows.values() for load in loads]
    HELD = float(np.median([load["power"] / LIMIT_W for load in everything if load["capped"]]))
    print(f"held_share {HELD:.4f}")
    c = fit(everything)
    share = reached(everything)
    print(f"reached_share {share:.3f}")
    for name, value in c.items():
        print(f"{name} {value:.4g}")
    ratios = []
    for card, (_, _, nm, _) in LIMITED.items():
        energy, clock = lane_energy(c, card)
        ratios += [energy / c["lanes_fp32_j_per_flop"]] if nm >= 6.5 else []
        print(f"{card}: {nm} nm, {1e12 * energy:.1f} pJ per FLOP on lanes, at {clock:.2f} of the highest clock")
    print(f"old_process_ratio {math.exp(np.mean(np.log(ratios))):.3f}")
    for card, loads in rows.items():
        report(c, loads, share, card)
    for card, loads in rows.items():
        others = [load for load in everything if load["card"] != card]
        left_out = fit(others)
        memory = CARDS[card] + "_j_per_byte"
        other = next(CARDS[load["card"]] for load in others) + "_j_per_byte"
        left_out[memory] = left_out[other]
        report(left_out, loads, reached(others), f"{card} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
