#!/usr/bin/env python3
"""Prints the errors of kernels as Markdown: FP32 kernels of GPUs left out of training, and kernels in low precision,
layers held out of GPUs that were trained on, GPUs left out and architectures left out, with the roofline beside; and what
the intervals hold of left-out rows.

    research/accuracy/kernel_tables.py [weights folder]      default: data/weights

Training writes them (errors.json): a layer's rows are held out together, and each GPU is forecast by models that
saw no row of it, or no row of any GPU of its architecture.
"""
import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPS = {"gemm": "products", "quantized_linear": "products", "attention": "attention, prefill",
       "attention (encoder)": "attention, encoder", "cached_attention": "attention, decode", "experts": "experts",
       "attention (latent)": "latent attention, prefill", "cached_attention (latent)": "latent attention, decode",
       "matmul (warm L2)": "latent attention, products", "linear_scan": "scans, prompts",
       "linear_scan (decode)": "scans, steps", "causal_conv1d (warm L2)": "short convolutions"}


FP32_COLUMNS = ["linear", "matmul", "elementwise", "softmax", "layer_norm"]
POINTWISE = {"add", "add_scalar", "div", "div_scalar", "mul", "mul_scalar", "pow", "pow_scalar", "integer_pow", "relu", "gelu",
             "silu", "tanh", "dropout", "cast", "copy", "activation_backward"}


def print_fp32(errors: list) -> None:
    """Mean error (rows) by GPU; the pointwise operators are joined, weighted by rows."""
    table = defaultdict(lambda: defaultdict(lambda: [0.0, 0]))
    for e in errors:
        column = "elementwise" if e["op"] in POINTWISE else e["op"]
        if e["dtype"] == "fp32" and e["software"] != "rocblas" and column in FP32_COLUMNS:
            cell = table[e["gpu"]][column]
            cell[0] += e["mape_percent"] * e["count"]
            cell[1] += e["count"]
    print("| GPU | " + " | ".join(FP32_COLUMNS) + " |\n|---|" + "--:|" * len(FP32_COLUMNS))
    for gpu in sorted(table):
        cells = [f"{total / count:.1f} ({count})" if count else "-"
                 for total, count in (table[gpu][c] for c in FP32_COLUMNS)]
        print(f"| {gpu} | " + " | ".join(cells) + " |")


def print_pytorch(errors: list, gpu: str) -> None:
    """Mean error (rows) of all kernels of PyTorch on one GPU, by operator and precision."""
    rows = [e for e in errors if e["gpu"] == gpu and e["software"] == "pytorch"]
    dtypes = [d for d in ("fp32", "tf32", "fp16", "bf16", "fp8", "int8") if any(e["dtype"] == d for e in rows)]
    table = defaultdict(dict)
    for e in rows:
        table[e["op"]][e["dtype"]] = f"{e['mape_percent']:.1f} ({e['count']})"
    print("| operator | " + " | ".join(dtypes) + " |\n|---|" + "--:|" * len(dtypes))
    for op in sorted(table):
        print(f"| {op} | " + " | ".join(table[op].get(d, "") for d in dtypes) + " |")


def low_precision(e: dict) -> bool:
    return e["op"] in OPS and e["dtype"] != "fp32" and e["software"] != "rocblas"


def print_rocblas(errors: list) -> None:
    """Mean error (rows) of rocBLAS's products by GPU and precision, over all its operators."""
    table = defaultdict(lambda: defaultdict(lambda: [0.0, 0]))
    for e in errors:
        if e["software"] == "rocblas":
            cell = table[e["dtype"]][e["gpu"]]
            cell[0] += e["mape_percent"] * e["count"]
            cell[1] += e["count"]
    gpus = sorted({gpu for row in table.values() for gpu in row})
    print("| products | " + " | ".join(gpus) + " |\n|---|" + "--:|" * len(gpus))
    for dtype in sorted(table):
        cells = [f"{table[dtype][g][0] / table[dtype][g][1]:.1f} ({table[dtype][g][1]})" if g in table[dtype] else ""
                 for g in gpus]
        print(f"| {dtype} | " + " | ".join(cells) + " |")


def short(gpu: str) -> str:
    """nvidia-h100-sxm5-80gb: H100."""
    return gpu.split("-")[1].upper()


def rows_of(errors: list) -> dict:
    table = defaultdict(dict)
    for e in errors:
        if low_precision(e):
            table[f"{OPS[e['op']]} {e['dtype']}, {e['software']}"][short(e["gpu"])] = e
    return table


def print_table(errors: list, cell) -> None:
    table = rows_of(errors)
    gpus = sorted({gpu for row in table.values() for gpu in row})
    print("| kernels | " + " | ".join(gpus) + " |")
    print("|---|" + "--:|" * len(gpus))
    for kind in sorted(table, key=lambda k: ([*dict.fromkeys(OPS.values())].index(
            next(o for o in OPS.values() if k.startswith(o + " "))), k)):
        print(f"| {kind} | " + " | ".join(cell(table[kind][g]) if g in table[kind] else "" for g in gpus) + " |")


def means(errors: list, title: str) -> None:
    """Mean over GPUs of the mean over software, per operator and precision."""
    groups = defaultdict(lambda: defaultdict(list))
    for e in errors:
        if low_precision(e):
            groups[f"{OPS[e['op']]} {e['dtype']}"][e["gpu"]].append((e["mape_percent"], e["median_percent"]))
    print(f"\n{title}: mean over GPUs of the mean over software, % (median)\n\n| kernels | GPUs | error |\n|---|--:|--:|")
    for kind, by_gpu in groups.items():
        per_gpu = [tuple(sum(x[i] for x in v) / len(v) for i in (0, 1)) for v in by_gpu.values()]
        mean = [sum(p[i] for p in per_gpu) / len(per_gpu) for i in (0, 1)]
        print(f"| {kind} | {len(per_gpu)} | {mean[0]:.1f} ({mean[1]:.1f}) |")


def print_intervals(rows: list) -> None:
    """Share of left-out rows inside their interval. A cell is a GPU and a precision: the mean over software."""
    for left_out, title in (("architecture", "Architectures left out"), ("gpu", "GPUs of a known class left out")):
        print(f"\nIntervals, {title}: share of rows inside, %\n")
        print("| kernels | factor | cells | mean | least | above 95 | below 60 |\n|---|--:|--:|--:|--:|--:|---|")
        kinds = defaultdict(lambda: defaultdict(list))
        factors = {}
        for r in rows:
            if r["left_out"] != left_out:
                continue
            # Of 16-bit types the scheme is what differs.
            precision = r["scheme"] if r["scheme"] != "none" else r["dtype"]
            if r["kv_dtype"] != r["dtype"]:
                precision += f"/{r['kv_dtype']}"
            kinds[r["kind"]][r["gpu"], precision].append(r["inside_percent"])
            factors[r["kind"]] = r["factor"]
        for kind, cells in kinds.items():
            held = {cell: sum(v) / len(v) for cell, v in cells.items()}
            low = ", ".join(f"{short(gpu)} {precision} {v:.0f}" for (gpu, precision), v in sorted(held.items()) if v < 60)
            high = sum(v > 95 for v in held.values())
            print(f"| {kind} | {factors[kind]:.2f} | {len(held)} | {sum(held.values()) / len(held):.0f} | {min(held.values()):.0f} "
                  f"| {high} | {low} |")


def architecture(gpu: str) -> str:
    return json.loads((ROOT / f"data/devices/{gpu}.json").read_text())["architecture"]["value"]


SPLITS = (("architecture", "Architectures left out"), ("gpu", "GPUs of a known class left out"), ("vendor", "Vendors left out"))
VALUES = ("inside_percent", "nested_inside_percent", "width_log", "score_log")


def classes_of(rows: list, left_out: str) -> tuple[dict, dict]:
    """Means of VALUES by cell (a GPU and a precision of a kind, over software) and by class (a kind and an architecture, over cells)."""
    cells, classes = defaultdict(list), defaultdict(list)
    for r in rows:
        if r["left_out"] == left_out:
            cells[r["kind"], r["gpu"], r["dtype"], r["kv_dtype"], r["scheme"]].append([r[v] for v in VALUES])
    mean = {cell: [sum(v) / len(v) for v in zip(*held)] for cell, held in cells.items()}
    for (kind, gpu, *_), values in mean.items():
        classes[kind, architecture(gpu)].append(values)
    return mean, {of: ([sum(v) / len(v) for v in zip(*held)], len(held)) for of, held in classes.items()}


def print_classes(rows: list) -> None:
    """The same by class, judged by what the others alone say (how many cells)."""
    for left_out, title in SPLITS:
        _, classes = classes_of(rows, left_out)
        names = sorted({name for _, name in classes})
        print(f"\nIntervals by class, {title}, by what the others say: share of rows inside, % (cells)\n")
        print("| kernels | " + " | ".join(names) + " |\n|---|" + "--:|" * len(names))
        for kind in dict.fromkeys(kind for kind, _ in classes):
            print(f"| {kind} | " + " | ".join(f"{classes[kind, n][0][1]:.0f} ({classes[kind, n][1]})" if (kind, n) in classes else ""
                                             for n in names) + " |")
    print("\n| left out | judged | classes | that hold 75 to 88 % | cells | below 60 | above 95 | mean | width | score |")
    print("|---|---|" + "--:|" * 8)
    for left_out, title in SPLITS:
        cells, classes = classes_of(rows, left_out)
        for judged, of in (("by the fit of all", 0), ("by the others alone", 1)):
            held, means = [c[of] for c in cells.values()], [c[0][of] for c in classes.values()]
            tail = [f"{sum(c[0][v] for c in classes.values()) / len(classes):.2f}" if of else "" for v in (2, 3)]
            print(f"| {title} | {judged} | {len(means)} | {sum(75 <= m <= 88 for m in means)} | {len(held)} | {sum(h < 60 for h in held)} | "
                  f"{sum(h > 95 for h in held)} | {sum(means) / len(means):.0f} | {' | '.join(tail)} |")


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data/weights"
    errors = json.loads((folder / "errors.json").read_text())
    left_out = {"GPUs": errors["left_out"], "Architectures": errors["left_out_architecture"]}
    for what, rows in left_out.items():
        print(f"FP32 kernels, {what} left out: mean % (rows)\n")
        print_fp32(rows)
        print()
    print("PyTorch's kernels on H100, left out: mean % (rows)\n")
    print_pytorch(errors["left_out"], "nvidia-h100-sxm5-80gb")
    print()
    for what, rows in [("held out", errors["held_out"]), *((f"{w} left out", r) for w, r in left_out.items())]:
        print(f"rocBLAS, {what}: mean % (rows)\n")
        print_rocblas(rows)
        print()
    print("Layers held out: mean % (median)\n")
    print_table(errors["held_out"], lambda e: f"{e['mape_percent']:.1f} ({e['median_percent']:.1f})")
    means(errors["held_out"], "Layers held out")
    for what, rows in left_out.items():
        print(f"\n{what} left out: mean % (median), [roofline]\n")
        print_table(rows, lambda e: f"{e['mape_percent']:.1f} ({e['median_percent']:.1f}) "
                                    f"[{e['roofline_mape_percent']:.0f}]")
        means(rows, f"{what} left out")
    print_intervals(errors["intervals"])
    print_classes(errors["intervals"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
