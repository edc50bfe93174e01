"""The rows of a sweep: a table with a column for each option, in an order in which it is fast."""
from __future__ import annotations

import hashlib
import json
import os

import pyarrow
import pyarrow.compute as compute

from .._errors import InputError, UnsupportedError

INDEX = "index"
_LARGEST_KEY = 2**62


def _word(value):
    """A value beside others of its column as text, as forecast_many reads it."""
    if value is None or value != value:  # NaN: how NumPy and pandas mark a missing value
        return None
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _array(values) -> pyarrow.Array:
    values = list(values)
    if any(isinstance(value, dict) for value in values):
        return pyarrow.array([_word(value) for value in values], pyarrow.string())
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, OverflowError):
        return pyarrow.array([_word(value) for value in values], pyarrow.string())


def _is_list(value) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict))


def _from_mapping(source) -> pyarrow.Table:
    columns = {str(name): _array(source[name]) for name in source.keys() if _is_list(source[name])}
    sizes = {name: len(column) for name, column in columns.items()}
    rows = next(iter(sizes.values()), 1)
    for name, size in sizes.items():
        if size != rows:
            raise InputError(f"column '{name}' has {size} rows; expected {rows}; all combinations of lists are a spec: tilecast.SweepSpec(...)")
    return with_constants(pyarrow.table(columns), {name: source[name] for name in source.keys() if name not in columns}, rows)


def with_constants(table: pyarrow.Table, options: dict, rows: int | None = None) -> pyarrow.Table:
    """With columns that have one value each. Raises InputError for a column that is there."""
    rows = table.num_rows if rows is None else rows
    for name, value in options.items():
        if name in table.column_names:
            raise InputError(f"column '{name}' is there twice")
        one = _array([value])
        table = table.append_column(name, pyarrow.nulls(rows, one.type) if value is None else pyarrow.repeat(one[0], rows)) \
            if table.num_columns else pyarrow.table({name: pyarrow.repeat(one[0], rows)})
    return table


def _plain(name: str, column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """A column of one of few types."""
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        return _plain(name, column.cast(kind.value_type))
    if pyarrow.types.is_null(kind) or pyarrow.types.is_large_string(kind) or kind == getattr(pyarrow, "string_view", pyarrow.string)():
        return column.cast(pyarrow.string())
    if pyarrow.types.is_string(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind):
        return column
    if pyarrow.types.is_float32(kind) or pyarrow.types.is_float64(kind):
        return column
    raise UnsupportedError(f"column '{name}': expected text, whole numbers, floats or booleans, found '{kind}'; convert the column")


def read_table(source, options: dict) -> pyarrow.Table:
    """A table of pyarrow. source: as of forecast_many. Raises TypeError for what is no table, UnsupportedError for other types."""
    if hasattr(source, "__arrow_c_stream__"):
        table = pyarrow.table(source)
    elif hasattr(source, "__arrow_c_array__"):
        table = pyarrow.Table.from_batches([pyarrow.record_batch(source)])
    elif hasattr(source, "keys"):
        table = _from_mapping(source)
    else:
        raise TypeError("expected a table (of pyarrow, polars, pandas, DuckDB, ... or a dict of lists), or the path or the dict of a spec, "
                        f"found {type(source).__name__}")
    table = table.rename_columns([name.replace("-", "_") for name in table.column_names])
    table = with_constants(table, options)
    if len(set(table.column_names)) < table.num_columns:
        raise InputError(f"columns are there twice: {', '.join(table.column_names)}")
    if INDEX in table.column_names:
        raise InputError(f"column '{INDEX}' is no option; the results have a column of that name, which is the place of the row")
    return pyarrow.table({name: _plain(name, table[name]) for name in table.column_names})


def _codes(column: pyarrow.ChunkedArray) -> tuple:
    """A whole number for each value, the same for equal ones, and how many there are."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pyarrow.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.indices.cast(pyarrow.int64()), max(len(encoded.dictionary), 1)


def _sorted_codes(column: pyarrow.ChunkedArray) -> tuple:
    """Codes whose order is that of the values."""
    codes, count = _codes(column)
    values = column.combine_chunks().dictionary_encode(null_encoding="encode").dictionary
    rank = compute.rank(values, tiebreaker="dense").cast(pyarrow.int64())
    return rank.take(codes), count + 1


def alike_together(table: pyarrow.Table) -> pyarrow.Table:
    """The rows in another order, with a column `index`: those that are alike but for GPU and batch together, by batch.

    Equal rows are then in one chunk, where they are forecast once, and the graphs of a chunk are few.
    """
    def rank(name):
        return 3 if name == "gpu" else 2 if name.startswith("parameters.") else 1 if name == "batch" else 0
    order = sorted(table.column_names, key=rank)
    key, size = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), table.num_rows), 1
    for name in order:
        codes, count = (_sorted_codes if name == "batch" else _codes)(table[name])
        if size * count > _LARGEST_KEY:
            key, size = _sorted_codes(pyarrow.chunked_array([key]))
        key, size = compute.add(compute.multiply(key, count), codes), size * count
    places = compute.sort_indices(key)
    return table.take(places).add_column(0, INDEX, places.cast(pyarrow.int64()))


def content_hash(table: pyarrow.Table) -> str:
    """Of names, types and values, whatever the chunks and the version of pyarrow."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):
            column = column.combine_chunks()
        encoded = column.dictionary_encode(null_encoding="encode")
        digest.update(json.dumps([name, str(column.type), [repr(value) for value in encoded.dictionary.to_pylist()]]).encode())
        digest.update(encoded.indices.cast(pyarrow.int32()).buffers()[1] or b"")
    return digest.hexdigest()
