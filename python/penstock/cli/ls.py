"""`penstock ls`: the datasets of a file, of any format that penstock.open knows; no element is read."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import Error, open as open_file
from penstock._text import bytes_text, one_line
from penstock.cli import options
from penstock.cli.show import WIDTH, json_object

if TYPE_CHECKING:
    from penstock.formats.dataset import Dataset

_KEYWORD = re.compile(r"(?<![/\w.])(?:decode|device|dtype|format|order|shape)=")


def ls(
    file: Annotated[str, typer.Argument(help="The file, or the folder of a Zarr store or of a raw history.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the datasets of FILE: type, shape, chunks, filters, and their bytes in the file. No element is read.

    Example: penstock ls run42.h5
    """
    from penstock.formats.dataset import Dataset  # NumPy comes with it, which other commands do without

    options.check_name("ls", "FILE", file)
    try:
        with open_file(file, device="host") as opened:
            datasets = [_described(Dataset(opened._file, name)) for name in opened]
            found = {"file": file, "format": opened.format, "datasets": datasets}
    except Error as error:
        advice = _of_a_shell(error.advice)
        if advice == error.advice:
            raise
        code, number = error.code, error.system_code
        told = {"operation": error.operation, "file": error.file, "cause": error.cause, "advice": advice}
        place = {"offset_bytes": error.offset_bytes, "length_bytes": error.length_bytes}
        raise Error(code=code, system_code=number, **told, **place) from None
    if json:
        json_object(found)
    else:
        _print(found)
    return 0


def _of_a_shell(advice: str) -> str:
    """The advice without what only a call of Python takes: keywords."""
    clauses = (
        ", or ".join(part for part in one.split(", or ") if not _KEYWORD.search(part)) for one in advice.split("; ")
    )
    return "; ".join(filter(None, clauses))


def _described(dataset: Dataset) -> dict[str, Any]:
    """One dataset. What of it cannot be told is None, and `problem` says why."""
    fields: dict[str, Any] = dict.fromkeys(("dtype", "shape", "layout", "chunks", "filters", "dims", "bytes"))
    fields = {"name": dataset.name} | fields | {"stored_bytes": None, "problem": None}
    try:
        info = dataset.info
        fields |= {
            "dtype": None if info.refusal else str(info.dtype),
            "shape": dataset.shape,
            "layout": info.layout,
            "chunks": dataset.chunks,
        }
        fields |= {
            "filters": dataset.filters,
            "dims": dataset.dims,
            "bytes": None if info.refusal or info.dtype.host_only else dataset.nbytes,
        }
        fields["problem"] = dataset._file.ask(lambda source: source.hindrance(dataset.name)) or None
        if info.refusal or info.dtype.host_only or info.layout == "compact":
            fields["stored_bytes"] = dataset._file.ask(lambda source: source.stored_bytes(dataset.name))
        else:
            stored = sum(extent.bytes for extent in dataset.extents())
            is_between = info.layout == "record"  # other variables' records, which are read along
            fields["stored_bytes"] = min(stored, dataset.nbytes) if is_between else stored
    except Error as error:
        fields["problem"] = error.cause
    return fields


def _print(found: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    count = len(found["datasets"])
    heading = f"{one_line(found['file'])}: {found['format']}, {count} {'dataset' if count == 1 else 'datasets'}"
    console.print(escape(heading), highlight=False)
    if not count:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", overflow="fold")
    for column in ("type", "shape"):
        table.add_column(column, overflow="fold")
    table.add_column("stored as", overflow="fold")
    for column in ("bytes", "in the file"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found["datasets"]:
        told = [one_line(one["name"]), one["dtype"] or "?", _shape(one["shape"]), _storage(one), _size(one["bytes"])]
        table.add_row(*(escape(text) for text in told), _size(one["stored_bytes"]))
    console.print(table)


def _shape(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "?"
    return " x ".join(map(str, shape)) if shape else "one element"


def _storage(one: dict[str, Any]) -> str:
    """Layout, chunks and filters, and behind them what hinders reading."""
    parts = [one["layout"] or "?"]
    if one["chunks"]:
        parts[0] = f"{'records' if one['layout'] == 'record' else 'chunks'} of {_shape(one['chunks'])}"
    parts += one["filters"] or ()
    told = ", ".join(parts)
    return f"{told}; cannot be read: {one_line(one['problem'])}" if one["problem"] else told


def _size(bytes: int | None) -> str:
    return "?" if bytes is None else bytes_text(bytes)
