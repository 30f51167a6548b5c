"""Rows of a run become the cells of its table.

Samples of one name, or with the same settings where they have none, are a cell. What the samples measured becomes a
median with its interval; what they have in common is a label. Promises, and what a suite says of its samples that their
medians do not tell, are judged from the rows and are cells of their own.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from penstock_bench.engine.cells import BYTES_MIN
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.listing import Cell, SuitePage
from penstock_bench.measured.table import BOUND_DIGITS, DIGITS, HIGH, LOW, PARTICLE_BYTES, rounded
from penstock_bench.runs.suites import SUITES, checks, present

Rows = list[dict[str, Any]]
NO_SAMPLES = ("machine", "missing", "stopped", "profile")
COMMAND = "command"  # kind of what a command of the product printed as JSON
SETTINGS = {"ratio", "tolerance", "tol", "eps", "eta"}  # labels, though they are no whole numbers
NOT_KEPT = {
    "round", "repeat", "machine", "source", "served", "fallbacks", "reached_limit", "latency_cycles", "turn", "busy",
    "timed", "direct_by", "min_us", "max_us", "p999_us", "p50_cycles", "p99_cycles", "p999_cycles", "mean_cycles",
    "cpu_user_s", "cpu_system_s", "verify_s", "verified_bytes", "resident_before", "resident_after",
    "resident_fraction", "media_read_bytes", "media_write_bytes", "media_reads", "media_writes", "create_s", "close_s",
    "open_s", "fsync_s", "read_back_s", "file_system", "mount_options", "submissions", "registered_before", "plans",
    "hits", "misses", "joined", "evictions", "write_backs", "data_bytes", "file", "synced_seconds", "operations",
    "continued", "restarted_because", "sweeps_before", "duplicates_removed", "leaves_left_to_host", "leaf_size",
    "capacitance_farad", "stopped_by", "store", "rank_sum", "repairs", "full_rank_leaves", "command", "eta", "mesh",
    "assembled_on", "place", "cpu_user_percent", "cpu_system_percent",
}  # fmt: skip
PAGES = {one.row: one.page for one in SUITES.values()}  # by the kind of row
PRECISE = {"capacitance_over_4pi_eps0": 7}  # digits of what is computed and compared with what is known
SAME = 1e-3  # relative: two medians that are told as one
VARYING = {"took", "bytes", "seconds", "requests"}  # are no part of a key
BOUNDED = {  # quantities that have an interval; of others the median says enough
    "bytes_per_second", "operations_per_second", "durable_bytes_per_second", "seconds", "median_us", "median_ms",
    "p50_us", "mean_us", "product_s", "solve_s", "read_s", "assemble_s", "total_s",
}  # fmt: skip

DERIVED: dict[str, Callable[[dict[str, Any]], float]] = {  # per sample; where a field is absent, so is what it gives
    "cpu_s_per_gb": lambda row: (row["cpu_user_s"] + row["cpu_system_s"]) / (row["bytes"] / 1e9),
    "durable_bytes_per_second": lambda row: row["bytes"] / (row["seconds"] + row["fsync_s"]),
    "bytes_a_media_write": lambda row: row["media_write_bytes"] / row["media_writes"],
}


def cells(rows: Rows) -> list[Cell]:
    """All cells of one run."""
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        if row.get("kind", COMMAND) not in NO_SAMPLES:
            groups[_key(row)].append(row)
    return [_cell(group) for group in groups.values()] + _promises(rows) + _said(rows)


def missing(rows: Rows) -> dict[str, str]:
    """Head lines of what was not measured: names by cause."""
    from penstock_bench.report.show import missing_name

    causes: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        if row["kind"] == "missing":
            causes[row["cause"]][missing_name(row)] = None
        elif row["kind"] == "stopped":
            causes[f"ended at its {row['cause']}"][f"{row['planned'] - row['done']} of {row['planned']} cells"] = None
    named = {cause: list(names) for cause, names in causes.items()}
    return {
        f"not measured {turn}": f"{names[0]}{f' and {len(names) - 1} more' * (len(names) > 1)}: {cause}"
        for turn, (cause, names) in enumerate(named.items(), 1)
    }


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    kind = row.get("kind", COMMAND)
    if "name" in row:
        return kind, row["name"], row["took"] if row.get("way") == "auto" else ""
    if kind == COMMAND:
        return kind, row["command"]
    settings = {name: value for name, value in row.items() if name not in NOT_KEPT | VARYING}
    return kind, *sorted((name, value) for name, value in settings.items() if not isinstance(value, (float, list)))


def _cell(group: Rows) -> Cell:
    first = group[0]
    kind = first.get("kind", COMMAND)
    page = PAGES.get(kind, SuitePage())
    cell: Cell = {"kind": kind, "n": len(group)}
    if not page.told or not all(name in first for name in page.told):
        cell["name"] = first.get("name") or first.get("command", "")
    dropped = NOT_KEPT - page.kept | page.left_out | {"kind", "name"}
    for name in dict.fromkeys(name for row in group for name in row if name not in dropped):
        cell |= _field(name, [row[name] for row in group if row.get(name) is not None])
    for name, value in DERIVED.items():
        cell |= _derived(name, value, group)
    return _short({name: value for name, value in cell.items() if value != ""})


def _short(cell: Cell) -> Cell:
    """Without what follows from the rest, as `MeasuredTable.rows` has it."""
    size, moved, rate = cell.get("request_bytes", 0), cell.get("bytes"), cell.get("bytes_per_second", 0.0)
    gone = {"took"} if cell.get("took") in (cell.get("path"), cell.get("way")) else set()
    timed = "operations_per_second" in cell or isinstance(moved, float)  # for as long as it takes
    if rate and cell["kind"] != "hmatrix" and (timed or (isinstance(moved, int) and moved >= BYTES_MIN)):
        gone |= {"seconds", "seconds" + LOW, "seconds" + HIGH}
    if timed or moved in (size, PARTICLE_BYTES * cell.get("particles", 0)):
        gone.add("bytes")
    each = cell.get("operations_per_second", 0.0)
    if each and abs(each * size / rate - 1) < SAME:
        gone |= {name for name in cell if name.startswith("operations_per_second")}
    return {name: value for name, value in cell.items() if name not in gone}


def _field(name: str, values: list[Any]) -> Cell:
    if not values or isinstance(values[0], (dict, list)):
        return {}
    if isinstance(values[0], (str, bool)):
        return {name: statistics.mode(values)}
    if name in SETTINGS or (isinstance(values[0], int) and len(set(values)) == 1):
        return {name: values[0]}
    return _measured(name, values)


def _measured(name: str, values: list[float]) -> Cell:
    found = estimate(values)
    cell: Cell = {name: rounded(found.median, PRECISE.get(name, DIGITS))}
    if name in BOUNDED and found.low is not None and found.high is not None and len(set(values)) > 1:
        cell |= {name + LOW: rounded(found.low, BOUND_DIGITS), name + HIGH: rounded(found.high, BOUND_DIGITS)}
    return cell


def _derived(name: str, value: Callable[[dict[str, Any]], float], group: Rows) -> Cell:
    try:
        return _measured(name, [value(row) for row in group])
    except (KeyError, ZeroDivisionError, TypeError):
        return {}


def _promises(rows: Rows) -> list[Cell]:
    found = []
    for suite in present([row for row in rows if "kind" in row]):
        for check in checks(rows, suite):
            if check.value is not None:
                cell = {"kind": "promise", "name": check.what, "value": rounded(check.value)}
                sign = "at least" if check.at_least else "at most"
                bound = {"bound": rounded(check.bound), "sign": sign, "unit": check.unit}
                found.append(cell | {name: value for name, value in bound.items() if value != "" and check.here})
    return found


def _said(rows: Rows) -> list[Cell]:
    """What a suite says by its samples, of suites that say so."""
    suites = present([row for row in rows if "kind" in row])
    return [cell for suite in suites if suite.summary for cell in suite.summary(rows)]
