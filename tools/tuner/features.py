"""What the solver model sees of a problem on a chip: the same numbers as src/tuning/features.cc."""

import json
import pathlib

import numpy

LAUNCH_US = 5
COUNT = 98  # features of a problem on a chip
CLASSES = {"gcn5": 0, "cdna": 1, "cdna2": 2}
KEYS = ["direction", "precision", "layout", "n", "c", "h", "w", "k", "oh", "ow", "r", "s", "pad_h",
        "pad_w", "stride_h", "stride_w", "dil_h", "dil_w", "group"]
# README of the data: a layer is everything but direction, precision, layout, bias, input size and
# batch.
LAYER = ["c", "k", "r", "s", "pad_h", "pad_w", "stride_h", "stride_w", "dil_h", "dil_w", "group"]


def folds(rows, seed, count):
    """A fold for each row of numbers, by a hash of them (FNV-1a, then MurmurHash3's finalizer)."""
    def fold(row):
        value = 14695981039346656037 ^ seed
        for byte in ",".join(map(str, row)).encode():
            value = ((value ^ byte) * 1099511628211) & ((1 << 64) - 1)
        value ^= value >> 33
        value = (value * 0xFF51AFD7ED558CCD) & ((1 << 64) - 1)
        value ^= value >> 33
        return value % count
    rows = list(map(tuple, rows.tolist()))
    known = {row: fold(row) for row in set(rows)}
    return numpy.array([known[row] for row in rows])


def layer_folds(table, seed, count):
    """A fold for each row, by its layer."""
    return folds(table[LAYER].values, seed, count)


def read_chip(name, root=pathlib.Path(__file__).resolve().parents[2]):
    """The device file that has the name as an alias ("gfx906_60"), in the units of the features."""
    for path in sorted((root / "data/devices").glob("*.json")):
        device = json.loads(path.read_text())
        if name not in device["aliases"]:
            continue
        value = lambda key: device[key]["value"]
        rate = lambda unit, dtype: device.get(unit, {}).get(dtype, {"value": 0})["value"] / 1e12
        best = lambda dtype: max(rate("vector_flops_per_s", dtype), rate("matrix_flops_per_s", dtype))
        peaks = {d.upper(): best(d) or best("fp32") for d in ("fp32", "fp16", "bf16", "int8")}
        vectors = {d.upper(): rate("vector_flops_per_s", d) or rate("vector_flops_per_s", "fp32")
                   for d in ("fp32", "fp16", "bf16", "int8")}
        return {"units": value("sm_count"), "clock": value("boost_clock_hz") / 1e9,
                "bandwidth": value("memory_bytes_per_s") / 1e9, "l2": value("l2_bytes") / 2**20,
                "vector": rate("vector_flops_per_s", "fp32"), "peaks": peaks, "vectors": vectors,
                "matrix": float(value("matrix_instruction") == "mfma"),
                "class": CLASSES.get(value("architecture"), -1)}
    raise SystemExit(f"no file of data/devices has the alias {name}")


def lg(x):
    return numpy.log2(numpy.maximum(x, 1e-9))


def waste(size, tile):
    return numpy.ceil(size / tile) * tile / size


def twos(size, most):
    return sum((numpy.mod(size, 2**j) == 0).astype(float) for j in range(1, most + 1))


def rooflines(table, chip):
    """Least microseconds of each row on the fastest unit for its type and on the vector unit, a
    launch included: [row, 2]. src/tuning/features.cc: roofline_us, vector_roofline_us."""
    size = lambda key: table[key].values.astype(float)
    pixels = size("n") * size("oh") * size("ow")
    weights = size("k") / size("group") * size("c") * size("r") * size("s")
    precision = table.precision.values
    width = numpy.select([precision == "FP32", precision == "INT8"], [4.0, 1.0], 2.0)
    tensors = size("n") * size("c") * size("h") * size("w") + pixels * size("k") + weights
    memory = tensors * width / chip["bandwidth"] * 1e-3
    return numpy.stack(
        [numpy.maximum(2 * pixels * weights / numpy.array([rates[p] for p in precision]) * 1e-6,
                       memory) + LAUNCH_US for rates in (chip["peaks"], chip["vectors"])], 1)


def features(table, chip):
    """Matrix and names of all rows; `table` has the columns of KEYS."""
    f = {}
    n, c, h, w, k, oh, ow, r, s, g, ph, pw, sh, sw, dh, dw = (
        table[key].values.astype(float)
        for key in ("n", "c", "h", "w", "k", "oh", "ow", "r", "s", "group", "pad_h", "pad_w",
                    "stride_h", "stride_w", "dil_h", "dil_w"))
    direction, precision = table.direction.values, table.precision.values
    cg, kg = c / g, k / g
    for name, value in zip(("n", "cg", "kg", "g", "oh", "ow", "h", "w", "r", "s"),
                           (n, cg, kg, g, oh, ow, h, w, r, s)):
        f["log_" + name] = lg(value)
    for letter in "FBW":
        f[letter] = direction == letter
    for name in ("FP32", "FP16", "BF16", "INT8"):
        f[name] = precision == name
    f["nhwc"] = table.layout.values == "NHWC"
    f["stride1"], f["stride2"] = (sh == 1) & (sw == 1), (sh == 2) & (sw == 2)
    f["log_stride"], f["log_dil"] = lg(sh * sw), lg(numpy.maximum(dh, dw))
    f["pad0"], f["same"] = (ph == 0) & (pw == 0), (2 * ph == r - 1) & (2 * pw == s - 1)
    f["log_pad"] = lg(1 + ph + pw)
    for size in (1, 3, 5):
        f[f"window{size}"] = (r == size) & (s == size)
    f["square"], f["depthwise"], f["ungrouped"] = r == s, (cg == 1) & (g > 1), g == 1
    forward, backward = direction == "F", direction == "B"
    taps, pixels = cg * r * s, n * oh * ow
    gm = numpy.where(backward, taps, kg)
    gn = numpy.where(direction == "W", taps, pixels)
    gk = numpy.where(forward, taps, numpy.where(backward, kg, pixels))
    f["log_m"], f["log_n_"], f["log_k"] = lg(gm), lg(gn), lg(gk)
    size = numpy.select([precision == "FP32", precision == "INT8"], [4.0, 1.0], 2.0)
    flops = 2 * pixels * kg * c * r * s
    x, y, weights = n * c * h * w * size, n * k * oh * ow * size, kg * c * r * s * size
    total = x + y + weights
    f["log_flops"] = lg(flops) - 30
    for name, value in (("x", x), ("y", y), ("w", weights)):
        f["log_bytes_" + name] = lg(value) - 20
    f["log_intensity"] = lg(flops / total)
    peak = numpy.array([chip["peaks"][p] for p in precision])
    compute, vector = flops / peak * 1e-6, flops / chip["vector"] * 1e-6
    memory = total / chip["bandwidth"] * 1e-3
    roofline = numpy.maximum(compute, memory) + LAUNCH_US
    f["log_compute"], f["log_vector"], f["log_memory"] = lg(compute), lg(vector), lg(memory)
    f["log_bound"], f["log_roofline"] = lg(compute / memory), lg(roofline)
    f["log_launch"], f["log_l2"] = lg(1 + compute / LAUNCH_US), lg(total / (chip["l2"] * 2**20))
    for name, value, most in (("n", n, 6), ("cg", cg, 7), ("kg", kg, 7), ("c", c, 3), ("k", k, 3),
                              ("ohow", oh * ow, 6), ("ow", ow, 3), ("w", w, 3), ("hw", h * w, 4),
                              ("pixels", pixels, 7), ("taps", taps, 6)):
        f["twos_" + name] = twos(value, most)
    for name, value, tiles in (("m", gm, (16, 32, 64, 128, 256)), ("n", gn, (32, 64, 128, 256)),
                               ("k", gk, (4, 8, 16, 32))):
        for tile in tiles:
            f[f"waste_{name}{tile}"] = lg(waste(value, tile))
    for tile in (32, 64, 128):
        waves = numpy.ceil(gm / tile) * numpy.ceil(gn / tile) * g / chip["units"]
        f[f"waves{tile}"], f[f"tail{tile}"] = lg(waves), lg(numpy.ceil(waves) / waves)
    for tile in (2, 3, 6):
        f[f"winograd_y{tile}"] = lg(waste(oh, tile) * waste(ow, tile))
        f[f"winograd_x{tile}"] = lg(waste(h, tile) * waste(w, tile))
    f["waste_window3"], f["waste_window2"] = lg(waste(r, 3) * waste(s, 3)), lg(waste(r, 2) * waste(s, 2))
    f["log_tiles2"] = lg(n * numpy.ceil(oh / 2) * numpy.ceil(ow / 2))
    f["waste_kg32"], f["waste_ow16"] = lg(waste(kg, 32)), lg(waste(ow, 16))
    f["waste_ow32"], f["waste_ohow64"] = lg(waste(ow, 32)), lg(waste(oh * ow, 64))
    one = numpy.ones(len(table))
    f["log_units"] = one * (lg(chip["units"]) - 6.5)
    f["log_balance"], f["log_matrix"] = lg(peak / chip["bandwidth"]), lg(peak / chip["vector"])
    f["matrix"], f["log_clock"] = one * chip["matrix"], one * lg(chip["clock"])
    f["log_bandwidth"] = one * (lg(chip["bandwidth"]) - 10)
    for index in range(len(CLASSES)):
        f[f"class{index}"] = one * (chip["class"] == index)
    return numpy.stack([v.astype(float) for v in f.values()], 1).astype("f4"), list(f)
