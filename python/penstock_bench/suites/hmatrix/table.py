"""Tables of the suite `hmatrix` for the terminal and the page: the two published ones, and what stands beside them."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from rich import box
from rich.table import Table

from penstock_bench.engine.cells import are_named, gigabytes, source_names
from penstock_bench.engine.numbers import three_figures

Rows = list[dict[str, Any]]
Column = tuple[str, Callable[[Rows], str]]


def _median(field: str, show: Callable[[float], str] = three_figures) -> Callable[[Rows], str]:
    def text(group: Rows) -> str:
        values = [row[field] for row in group if field in row]
        return show(statistics.median(values)) if values else ""

    return text


def _rate(group: Rows) -> str:
    return gigabytes(statistics.median(row["bytes_per_second"] for row in group))


def _count(value: float) -> str:
    return f"{value:g}"


def _small(value: float) -> str:
    return f"{value:.1e}"


TIMES: tuple[Column, ...] = (
    ("solve s", _median("seconds")),
    ("read s", _median("read_s")),
    ("other s", _median("other_s")),
    ("write s", _median("write_s")),
    ("GB read", _median("bytes_read", lambda value: three_figures(value / 1e9))),
    ("GB/s", _rate),
    ("hit rate", _median("hit_rate", lambda value: f"{value:.3f}")),
    ("sweeps", _median("sweeps", _count)),
)
SUBJECTS: dict[str, tuple[str, tuple[Column, ...]]] = {
    "build": (
        "Building",
        (
            ("total s", _median("seconds")),
            ("assemble s", _median("assemble_s")),
            ("write s", _median("write_s")),
            ("unknowns", _median("unknowns", _count)),
            ("GB as doubles", _median("bytes_fp64", lambda value: three_figures(value / 1e9))),
            ("GB stored", _median("bytes_stored", lambda value: three_figures(value / 1e9))),
            ("error", _median("sampled_error", _small)),
        ),
    ),
    "path": ("Parity mode, by path", TIMES),
    "pins": ("Parity mode, by batches that stay in memory", TIMES),
    "best": (
        "To a tolerance, cold, in the same memory",
        (*TIMES, ("matrices", _median("matrices_read")), ("residual", _median("relative_residual", _small))),
    ),
    "product": ("Products in memory", (("GB/s", _rate),)),
    "beside": (
        "Beside HACApK, doubles in memory, on the host's cores",
        (
            ("build s", _median("seconds")),
            ("product ms", _median("product_s", lambda value: three_figures(1e3 * value))),
            ("solve s", _median("solve_s")),
            ("iterations", _median("iterations", _count)),
            ("residual", _median("relative_residual", _small)),
            ("low-rank leaves", _median("low_rank_leaves", _count)),
            ("dense leaves", _median("dense_leaves", _count)),
            ("GB", _median("bytes_fp64", lambda value: three_figures(value / 1e9))),
        ),
    ),
    "ceiling": ("Ceilings", (("GB/s", _rate),)),
}


def tables(rows: Rows, kind: str) -> list[Table]:
    mine = [row for row in rows if row["kind"] == kind]
    made = []
    for subject, (title, columns) in SUBJECTS.items():
        cells: dict[str, Rows] = {}
        for row in mine:
            if row["subject"] == subject:
                cells.setdefault(row["name"], []).append(row)
        if cells:
            made.append(_table(title, columns, cells, are_named(rows)))
    return made


def _table(title: str, columns: tuple[Column, ...], cells: dict[str, Rows], named: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", caption_justify="left")
    table.add_column("cell", overflow="fold")
    for name, _ in (*columns, ("n", None)):
        table.add_column(name, justify="right", no_wrap=True)
    if named:
        table.add_column("rows", overflow="fold")
    for name, group in cells.items():
        texts = [show(group) for _, show in columns]
        table.add_row(name, *texts, str(len(group)), *([source_names(group)] if named else []))
    return table
