"""data/tuning/solvers.json: what problems the public databases list each of MIOpen's solvers for."""

import json
import re

import numpy

# What MIOpen takes where it has neither database nor a search, as far as its documentation of the
# immediate mode says it: kernels that are compiled once for all shapes ("dynamic"), the assembly
# ones first, then GEMM, the naive kernels last.
FALLBACK = [("ConvBinWinogradRxSf3x2", 1), ("ConvBinWinogradRxSf2x3g1", 2),
            ("ConvBinWinogradRxSf2x3", 3), ("ConvBinWinogradRxS", 4), ("ConvBinWinograd3x3U", 5),
            ("ConvAsmImplicitGemm", 6), ("Gemm", 7), ("ConvDirectNaive", 8)]


CLASS_OF = {"gfx906": "gcn5", "gfx908": "cdna", "gfx90a": "cdna2"}


def algorithm(solver):
    if solver == "fft":
        return "FFT"
    if solver.startswith("Gemm"):
        return "GEMM"
    if "Winograd" in solver:
        return "Winograd"
    return "ImplicitGEMM" if "Igemm" in solver or "ImplicitGemm" in solver else "Direct"


def unit(solver):
    """The unit that a solver computes on, by the family that its name states: those that use the
    matrix unit where there is one, and those that are written for the vector unit."""
    fastest = ("Xdlops" in solver or "Mlir" in solver or "Multipass" in solver
               or solver.startswith("Gemm"))
    return "fastest" if fastest else "vector"


def transform(solver):
    """Results and taps of a Winograd transform's tile in height and in width, as the name states
    them. ConvBinWinograd3x3U and RxS do not: a guess, which all measured rows keep (at most 1.9 times
    the vector unit's rate; the tile allows 2.25)."""
    if algorithm(solver) != "Winograd":
        return None
    numbers = re.search(r"<(.*)>|f(\dx\d)", solver)
    tile = [int(n) for n in re.split("[-x]", numbers[1] or numbers[2])] if numbers else [2, 3]
    return tile if len(tile) == 4 else tile * 2


def fallback_rank(solver):
    return next((rank for start, rank in FALLBACK if solver.startswith(start)), None)


def span(rows, low, high=None):
    return [int(rows[[low, high or low]].values.min()), int(rows[[low, high or low]].values.max())]


def workspace(rows):
    """The rule that gives all of a solver's workspaces: "none", GEMM's "unrolled" image, "strided"
    copies of both images or, where there is a stride, of the "strided_input"; else what covers all
    of them, in tensors x, y and w of 4 bytes an element."""
    size = rows.precision.map({"FP32": 4, "FP16": 2, "BF16": 2, "INT8": 1})
    image = rows.r * rows.s * rows.c * rows.oh * rows.ow * size
    strided = rows.n * (rows.c + rows.k) * rows.oh * rows.ow * size
    for name, value in (("none", 0), ("unrolled", image), ("strided", strided)):
        if (rows.workspace == value).mean() > 0.999:
            return name
    copy = rows.n * rows.c * rows.oh * rows.ow * size * (rows[["stride_h", "stride_w"]].max(1) > 1)
    if ((rows.workspace == copy) | (rows.workspace == 0)).all():
        return "strided_input"
    all_three = 4 * (rows.n * rows.c * rows.h * rows.w + rows.n * rows.k * rows.oh * rows.ow
                     + rows.k * rows.c // rows.group * rows.r * rows.s)
    return float(numpy.ceil((rows.workspace / all_three).max() * 100) / 100)


def entry(solver, rows, matrix_archs):
    on = [arch in matrix_archs for arch in rows.arch.unique()]
    item = {"name": solver, "algorithm": algorithm(solver),
            "passes": "".join(p for p in "FBW" if (rows.direction == p).any()),
            "dtypes": [d for d in ("FP32", "FP16", "BF16", "INT8") if (rows.precision == d).any()],
            "layouts": [l for l in ("NCHW", "NHWC") if (rows.layout == l).any()],
            "r": span(rows, "r"), "s": span(rows, "s"), "stride": span(rows, "stride_h", "stride_w"),
            "dil": span(rows, "dil_h", "dil_w"), "pad": span(rows, "pad_h", "pad_w"),
            "group": span(rows, "group"),
            "measured_on": [CLASS_OF[a] for a in sorted(rows.arch.unique())],
            "matrix_unit": "needed" if "Xdlops" in solver and all(on) else
                           "not_used" if "Mlir" in solver and not any(on) else "either",
            "unit": unit(solver), "workspace": workspace(rows)}
    # One filter size and no other: 1x1, 3x3. MIOpen's code for such solvers tests both axes.
    if (rows.r == rows.s).all() and item["r"][0] < item["r"][1]:
        item["square_only"] = True
    if transform(solver) is not None:
        item["transform"] = transform(solver)
    if fallback_rank(solver) is not None:
        item["fallback_rank"] = fallback_rank(solver)
    return item


def takes(item, table, has_matrix_unit):
    """Which rows a solver of the table takes, on a chip of its class: Solver::takes."""
    fits = numpy.ones(len(table), bool)
    if item["matrix_unit"] != "either":
        fits &= (item["matrix_unit"] == "needed") == has_matrix_unit
    fits &= table.direction.isin(list(item["passes"])).values
    fits &= table.precision.isin(item["dtypes"]).values & table.layout.isin(item["layouts"]).values
    for key in ("r", "s", "stride_h", "stride_w", "dil_h", "dil_w", "pad_h", "pad_w"):
        fits &= table[key].between(*item[key.split("_")[0]]).values
    if item.get("square_only"):
        fits &= (table.r == table.s).values
    if item["group"][1] == 1:
        fits &= (table.group == 1).values
    return fits


def entries(rows, heads, matrix_archs):
    return [dict(entry(solver, mine, matrix_archs), head=heads[solver])
            for solver, mine in rows.groupby("solver")]


def write(path, solvers):
    text = ",\n  ".join(json.dumps(s) for s in solvers)
    source = ("MIOpen find databases at 2d1fd99 (2024-10, MIT): the extent of the problems that "
              "each solver is listed for; not MIOpen's own code")
    path.write_text('{"schema_version": 1,\n "source": ' + json.dumps(source) +
                    ',\n "solvers": [\n  ' + text + "]}\n")
