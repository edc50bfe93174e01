"""The file kernels.csv of the stages `grouped`, `convs` and `transposed`."""

COLUMNS = ["gpu", "stage", "op", "dtype", "direction", "batch", "m", "n", "k", "trans_a", "trans_b", "groups", "counts", "division", "model",
           "channels", "height", "width", "filters", "kernel_height", "kernel_width", "stride", "padding", "channels_last", "mode", "rows",
           "columns", "table_rows", "top_k", "tensors", "elements", "load", "l2", "protocol", "latency_s", "p25_s", "p75_s", "runs",
           "launches", "operand_bytes", "kernel_count", "kernel_name", "status", "detail", "wall_s"]


def table(bench):
    return bench.table("kernels.csv", COLUMNS)
