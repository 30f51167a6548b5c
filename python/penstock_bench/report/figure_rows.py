"""Which rows each figure is drawn of: what its caption names.

What must stay true: a row that changes what a figure shows is among them, and they are chosen by what the figure itself
chooses by.
"""

from __future__ import annotations

from typing import Any

from penstock_bench.report import figures, peers
from penstock_bench.suites.first_touch import figures as first_touch_figure
from penstock_bench.suites.gpu_io import figures as gpu_io_figures

Rows = list[dict[str, Any]]


def of_peers(rows: Rows) -> Rows:
    probes = peers.probes_by_name(rows)
    names = [name for _, bars in peers.PANELS for name, _, _ in bars]
    return [row for name in [*names, "copy to device"] for row in probes.get(name, [])]


def of_whole_file(rows: Rows) -> Rows:
    return [row for group in figures.whole_file(rows).values() for row in group]


def of_bandwidth(rows: Rows) -> Rows:
    return of_whole_file(rows) + [row for row in rows if row["kind"] == "ceiling"]


def of_request_size(rows: Rows) -> Rows:
    return [row for sizes in figures.by_request(rows).values() for group in sizes.values() for row in group]


def of_first_touch(rows: Rows) -> Rows:
    drawn = [row for row in rows if row["kind"] == "first-touch" and first_touch_figure.is_drawn(row)]
    return drawn + [row for row in rows if row["kind"] == "engine" and "particles" in row]


def of_choice(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "choice"]


def of_io_size(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "io-size"]


def of_reads(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "read"]


def of_copies(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "copy"]


def of_gpu_io_blocks(rows: Rows) -> Rows:
    return gpu_io_figures.of_blocks(rows) + gpu_io_figures.of_rings(rows) + gpu_io_figures.of_ceilings(rows)


def of_gpu_io_latency(rows: Rows) -> Rows:
    return gpu_io_figures.of_latency(rows)


def of_gpu_io_rates(rows: Rows) -> Rows:
    return gpu_io_figures.of_rates(rows)
