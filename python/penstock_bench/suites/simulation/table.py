"""The tables of the suite `simulation`, a line a way: of the flow model, of the cluster, and of particles."""

from __future__ import annotations

import statistics
from operator import itemgetter
from typing import Any

from rich.table import Table

from penstock_bench.engine.cells import are_named, source_names
from penstock_bench.engine.numbers import three_figures
from penstock_bench.engine.promises import Medians
from penstock_bench.engine.table_parts import median_text, new_table
from penstock_bench.suites.simulation import cluster, packing, particles
from penstock_bench.suites.simulation.judge import added_seconds, slower_percent
from penstock_bench.suites.simulation.measure import ENGINE
from penstock_bench.suites.simulation.ranks.table import of_ranks
from penstock_bench.suites.simulation.ways import WAYS

Rows = list[dict[str, Any]]
OF_STEPS = ("ms a step", "compute ms", "slower %", "stall ms", "first ms", "wait ms")
COLUMNS = (*OF_STEPS, "close s", "total s", "added s", "GB/s", "n")


def tables(rows: Rows, kind: str) -> list[Table]:
    medians = Medians(rows, kind)
    table = new_table(("way",), COLUMNS, ["rows"] * are_named(rows))
    mine = [row for row in rows if row["kind"] == kind]
    for way in (*WAYS, ENGINE):
        group = [row for row in mine if row["name"] == way]
        if not group:
            continue
        slower, added = (three_figures(value) if value is not None else "-" for value in _beside(medians, way))
        times = [median_text([row for row in group if field in row], itemgetter(field)) for field in TIMES]
        rate = median_text([row for row in group if row["bytes"]], lambda row: row["bytes_per_second"] / 1e9)
        step = median_text(group, lambda row: row["seconds"] * 1e3 / row["steps"])
        total = median_text(group, itemgetter("seconds"))
        cells = [step, times[0], slower, *times[1:], total, added, rate, str(len(group))]
        table.add_row(way, *cells, *([source_names(group)] if are_named(rows) else []))
    if mine:
        one = next((row for row in mine if "substeps" in row), mine[0])
        table.caption = f"{one['steps']} steps of {one['step_bytes'] / 2**20:.3g} MiB, each {one.get('substeps', 0)} "
        table.caption += "time steps of the model; medians"
    return [table, *_of_cluster(mine), *_of_particles(mine), *of_ranks(mine), *_of_packing(mine)]


def _of_cluster(mine: Rows) -> list[Table]:
    table = new_table(("way",), ("ms a step", "compute ms", "stall ms", "first ms", "KiB a step", "n"), ())
    rows = [row for row in mine if row["name"] in cluster.WAYS]
    for way in cluster.WAYS:
        group = [row for row in rows if row["name"] == way]
        if not group:
            continue
        step = median_text(group, lambda row: row["seconds"] * 1e3 / row["steps"])
        times = [median_text(group, itemgetter(field)) for field in TIMES[:3]]
        size = median_text(group, lambda row: row["step_bytes"] / 1024)
        table.add_row(way, step, *times, size, str(len(group)))
    if not rows:
        return []
    table.caption = (
        f"{rows[0]['bodies']} bodies, {rows[0]['steps']} steps, each {rows[0]['substeps']} of the cluster's "
    )
    table.caption += "longest time steps; medians"
    return [table]


def _of_particles(mine: Rows) -> list[Table]:
    table = new_table(("way",), ("ms", "GB/s", "/ plain bytes", "n"), ())
    rows = [row for row in mine if row["name"] in particles.WAYS]
    alone = [row["seconds"] for row in rows if row["name"] == particles.PLAIN]
    for way in particles.WAYS:
        group = [row for row in rows if row["name"] == way]
        if not group:
            continue
        beside = statistics.median(alone) / statistics.median(row["seconds"] for row in group) if alone else None
        rates = [median_text(group, lambda row: row["seconds"] * 1e3)]
        rates.append(median_text(group, lambda row: row["bytes_per_second"] / 1e9))
        table.add_row(way, *rates, three_figures(beside) if beside else "-", str(len(group)))
    if not rows:
        return []
    table.caption = (
        f"one file of {rows[0]['step_bytes'] / 2**20:.3g} MiB, on stable storage when its time ends; medians"
    )
    return [table]


def _of_packing(mine: Rows) -> list[Table]:
    rows = [row for row in mine if "codec" in row]
    if not rows:
        return []
    kinds = list(dict.fromkeys(row["values"] for row in rows))
    table = new_table(("way",), [column for one in kinds for column in (f"{one}, MB/s", "file")] + ["n"], ())
    for way in packing.WAYS:
        groups = [[row for row in rows if (row["values"], row["codec"]) == (one, way)] for one in kinds]
        if not all(groups):
            continue
        rate, share = (lambda row: row["core_bytes_per_second"] / 1e6), itemgetter("file_share")
        cells = [cell for group in groups for cell in (median_text(group, rate), median_text(group, share))]
        table.add_row(way, *cells, str(len(groups[0])))
    table.caption = "MB of float32 that a core packs in a second, and bytes of the file for each byte; medians"
    return [table]


TIMES = ("compute_ms", "stall_ms", "first_stall_ms", "wait_ms", "close_s")


def _beside(medians: Medians, way: str) -> tuple[float | None, float | None]:
    """Nothing of the engine, which computes nothing."""
    return (None, None) if way == ENGINE else (slower_percent(medians, way), added_seconds(medians, way))
