"""Rows of results as a table for other programs: CSV, JSON lines or Parquet, by the suffix of the file's name.

Nested objects become columns with dots, lists JSON text. What must stay true: no row and no value is left out; numbers
read back as they were; the same column has the same name in all three.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from penstock import Error
from penstock._files.publish import publish
from penstock.calibration.machine import machine_id

Row = dict[str, Any]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # what spreadsheets run as a formula begins so, or with white space
_ADVICE = "name a file you can write with --out"


def save(path: Path, rows: Iterable[Row], operation: str) -> None:
    """Writes the rows, flattened; the file appears whole or not at all. Raises Error."""
    encode = encoder(path, operation)
    flat = [flatten(row) for row in rows]
    publish(path, encode(flat), operation, _ADVICE)


def encoder(path: Path, operation: str) -> Callable[[list[Row]], bytes]:
    """What makes the file's bytes; Error for an unknown suffix, and for Parquet without pyarrow. Ask before a long
    run, so that it does not end in a refusal."""
    if path.suffix not in _ENCODERS:
        known = ", ".join(_ENCODERS)
        cause = f"the suffix '{path.suffix}' names no format" if path.suffix else "the name has no suffix"
        raise Error(operation=operation, file=str(path), cause=cause, advice=f"use one of {known}")
    if path.suffix == ".parquet":
        _pyarrow(operation, path)
    return _ENCODERS[path.suffix]


def of_results(rows: list[Row]) -> list[Row]:
    """Rows of a results file, each with the columns of the machine that it was measured on. A row says which one that
    is; those of older files do not, and belong to the machine before them."""
    machines: dict[str, Row] = {}
    last, joined = "", []
    for row in rows:
        if row["kind"] == "machine":
            last = row.get("id") or machine_id(row["machine"])
            machines[last] = row["machine"] | {"id": last}
        named = row.get("machine")
        found = machines.get(named if isinstance(named, str) else last)
        rest = {name: value for name, value in row.items() if name != "id" or row["kind"] != "machine"}
        joined.append(rest if found is None else rest | {"machine": found})
    return joined


def flatten(row: Row, prefix: str = "") -> Row:
    flat: Row = {}
    for name, value in row.items():
        column = f"{prefix}{name}"
        if isinstance(value, dict) and value:
            flat |= flatten(value, column + ".")
        else:
            flat[column] = json.dumps(value) if isinstance(value, (list, tuple, dict)) else value
    return flat


def columns(rows: list[Row]) -> list[str]:
    """All columns in the order of their first use; those of the machine last."""
    known = dict.fromkeys(name for row in rows for name in row)
    return sorted(known, key=lambda name: name.startswith("machine."))


def _csv(rows: list[Row]) -> bytes:
    """An absent value is an empty field; true and false are spelled as in JSON; text that a spreadsheet would take for
    a formula gets an apostrophe, which makes it text again."""
    stream = io.StringIO(newline="")
    names = columns(rows)
    writer = csv.writer(_Lines(stream))
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return stream.getvalue().encode(errors="surrogateescape")


class _Lines:
    """Rows end with a line feed alone. The writer ends them with both characters: it quotes a cell that holds either
    only if both end its rows."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    def write(self, row: str) -> None:
        self._stream.write(row.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return str(value).lower() if isinstance(value, bool) else value


def _json_lines(rows: list[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parquet(rows: list[Row]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    arrays = {name: _column([row.get(name) for row in rows]) for name in columns(rows)}
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), stream)
    return stream.getvalue()


def _column(values: list[Any]) -> Any:
    """Numbers stay numbers; a column of several types, or of integers that 64 bits do not hold, is text."""
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    wide = any(isinstance(value, int) and not -(1 << 63) <= value < 1 << 63 for value in values)
    if kinds <= {int, float} and not wide:
        exact = float in kinds and any(isinstance(value, int) and abs(value) > 1 << 53 for value in values)
        kind = pyarrow.string() if exact else pyarrow.float64() if float in kinds else pyarrow.int64()
    else:
        kind = pyarrow.bool_() if kinds == {bool} else pyarrow.string()
    if kind == pyarrow.string():
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        values = [None if value is None else value.encode(errors="backslashreplace").decode() for value in values]
    return pyarrow.array(values, kind)


def _pyarrow(operation: str, path: Path) -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise Error(
            code="unsupported",
            operation=operation,
            file=str(path),
            cause=f"Parquet needs pyarrow: {error}",
            advice="pip install pyarrow, or write .csv or .jsonl",
        ) from None


_ENCODERS: dict[str, Callable[[list[Row]], bytes]] = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
