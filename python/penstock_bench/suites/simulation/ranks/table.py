"""Tables of files of all ranks: a line a file and a number of ranks, a column a way; and of restarts."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from penstock_bench.engine.table_parts import grouped, median_text, new_table
from penstock_bench.suites.simulation.ranks.cases import WAYS

Rows = list[dict[str, Any]]


def of_ranks(mine: Rows) -> list[Table]:
    rows = [row for row in mine if "by" in row]
    return ([_of_files(rows)] if rows else []) + _of_restarts([row for row in mine if "writers" in row])


def _of_files(rows: Rows) -> Table:
    ways = [way for way in WAYS if any(row["by"] == way for row in rows)]
    columns = [column for way in ways for column in (f"{way}, ms", "begin ms", "fsync ms")]
    table = new_table(("file", "ranks"), (*columns, "n"), ())
    for (file, ranks), group in grouped(rows, "file_kind", "ranks").items():
        cells = [cell for way in ways for cell in _cells([row for row in group if row["by"] == way])]
        table.add_row(file, str(ranks), *cells, str(max(sum(row["by"] == way for row in group) for way in ways)))
    sizes = " and ".join(dict.fromkeys(f"{row['bytes'] / 2**20:.3g} MiB" for row in rows))
    table.caption = f"one file of all ranks, {sizes}, in the page cache; begin: rank 0's own, until data can be written"
    return table


def _cells(group: Rows) -> list[str]:
    if not group:
        return ["-"] * 3
    begun = [row for row in group if "layout_ms" in row]
    whole, fsync = (median_text(group, lambda row, field=field: row[field] * 1e3) for field in ("seconds", "fsync_s"))
    return [whole, median_text(begun, lambda row: row["layout_ms"]) if begun else "-", fsync]


def _of_restarts(rows: Rows) -> list[Table]:
    if not rows:
        return []
    table = new_table(("written by", "read by"), ("write ms", "read ms", "n"), ())
    for (writers, readers), group in grouped(rows, "writers", "ranks").items():
        times = [median_text(group, lambda row, field=field: row[field] * 1e3) for field in ("write_s", "seconds")]
        table.add_row(f"{writers} ranks", f"{readers} ranks", *times, str(len(group)))
    table.caption = f"a restart of {rows[0]['bytes'] / 2**20:.3g} MiB, written to stable storage, read with checksums"
    return [table]
