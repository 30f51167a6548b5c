"""The answer first, in three sentences at most: what the default achieves here, and what to know before using it.

Each kind of suite says what it has to say, most important first; sentences are taken in turn from those present. What
must stay true: each sentence comes with the rows it is of.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from penstock._text import rate_text
from penstock_bench.engine import kinds
from penstock_bench.engine.cells import durable_rate
from penstock_bench.engine.promises import Medians
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.sources import Statement
from penstock_bench.report import figures as drawing
from penstock_bench.suites.first_touch import table as first_touch_show

Rows = list[dict[str, Any]]
SENTENCES = 3
CASES = (
    ("read", "hot", ("hot",), "reads a file in the page cache"),
    ("read", "cold", ("cold", "direct"), "one that is not"),
    ("write", "hot", ("hot",), "writes over one in the page cache"),
    ("write", "cold", ("cold", "direct"), "over one that is not"),
)


def verdict(rows: Rows) -> list[Statement]:
    """At most three sentences; fewer when the rows say less."""
    said = [kinds.resolve(kind.says)(kinds.own(rows, kind)) for kind in kinds.present(rows) if kind.says]
    in_turn = [one for turn in zip_longest(*said) for one in turn if one is not None]
    return in_turn[:SENTENCES]


# -- grids


def of_grid(rows: Rows) -> list[Statement]:
    groups = drawing.whole_file(rows)
    said, used = [], []
    for direction, cache, _, what in CASES:
        mine = groups.get((direction, cache, "auto"))
        if mine:
            took = ", ".join(sorted({row["took"] for row in mine}))
            said.append(f"{what} at {rate_text(median_rate(mine) or 0)} (path {took})")
            used += mine
    if not said:
        return []
    return [Statement(f"By itself Penstock {_joined(said)}.", used), _rivals(groups), *_ceiling(rows, groups)]


def _rivals(groups: dict[Any, Rows]) -> Statement:
    faster, used = [], []
    for direction, cache, rivals, _ in CASES:
        mine = groups.get((direction, cache, "auto"))
        if not mine:
            continue
        path, theirs = _faster(groups, mine, direction, rivals)
        used += mine + theirs
        if path:
            faster.append(f"{path} ({direction}, {drawing.STATE_WORDS[cache]})")
    if faster:
        return Statement("Faster in every repeat: " + ", ".join(faster) + ".", used)
    return Statement("No path asked for by name was faster in every repeat.", used)


def _faster(groups: dict[Any, Rows], mine: Rows, direction: str, caches: tuple[str, ...]) -> tuple[str, Rows]:
    """The fastest path whose slowest repeat beats the default's fastest one, empty when there is none; and the rows of
    all that were compared."""
    bound = max(row["bytes_per_second"] for row in mine)
    rivals = {
        path: group
        for (way, cache, path), group in groups.items()
        if way == direction and cache in caches and path != "auto"
    }
    slowest = [(min(row["bytes_per_second"] for row in group), path) for path, group in rivals.items()]
    speed, path = max(slowest, default=(0.0, ""))
    used = [row for group in rivals.values() for row in group]
    return (f"{path}, at least {rate_text(speed)}" if speed > bound else ""), used


def _ceiling(rows: Rows, groups: dict[Any, Rows]) -> list[Statement]:
    copies = [row for row in rows if row["kind"] == "ceiling" and row["direction"] == "read"]
    hot = groups.get(("read", "hot", "auto"), [])
    ceiling, rate = median_rate(copies), median_rate(hot)
    if not ceiling or not rate:
        return []
    text = f"The read from the page cache reaches {rate / ceiling:.0%} of a plain copy from pinned memory."
    return [Statement(text, hot + copies)]


# -- promises and peers


def of_core(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "core")
    found = []
    hot, cold = medians.rate("hot read"), medians.rate("cold read")
    if hot and cold:
        share = medians.ratio("hot read", "copy to device")
        beside = f" ({share:.0%} of a plain copy)" if share else ""
        text = f"With default settings a file in the page cache is read at {rate_text(hot)}{beside}, "
        used = [row for name in ("hot read", "cold read", "copy to device") for row in medians.rows.get(name, [])]
        found.append(Statement(text + f"one that is not at {rate_text(cold)}.", used))
    return found + _promises(rows, "core")


def of_formats(rows: Rows) -> list[Statement]:
    medians = Medians(rows, "formats")
    found = []
    rate, share = medians.rate("HDF5 read"), medians.ratio("HDF5 read", "raw read")
    if rate and share:
        used = medians.rows["HDF5 read"] + medians.rows["raw read"]
        text = f"An array of an HDF5 file in the page cache is read at {rate_text(rate)}, {share:.0%} of a raw file."
        found.append(Statement(text, used))
    return found + _promises(rows, "formats")


def _promises(rows: Rows, name: str) -> list[Statement]:
    kind = kinds.KINDS[name]
    judged = [check for check in kinds.checks(rows, kind) if check.passed is not None]
    if not judged:
        return []
    failed = [check.what for check in judged if not check.passed]
    text = f"Of the {len(judged)} promises of the suite {name} that hold for such a machine, "
    text += "all were kept." if not failed else f"{len(failed)} were not kept: {', '.join(failed)}."
    return [Statement(text, [row for row in rows if row["kind"] == kind.row])]


# -- problem sizes


def of_first_touch(rows: Rows) -> list[Statement]:
    """Reads of the page cache over sizes; then what is not cached, and new files with fsync, at the largest size that
    both have."""
    hot = _touched(rows, "read", "hot", "gpu")
    if len(hot) < 2:
        return []
    rates = {size: median_rate(group) or 0.0 for size, group in hot.items()}
    most = max(rates, key=lambda size: rates[size])
    half = min(size for size, rate in rates.items() if rate >= rates[most] / 2)
    text = (
        f"Particles in the page cache are read into device memory at up to {rate_text(rates[most])} "
        f"({first_touch_show.count_text(most)} of them), at half of that or more from "
        f"{first_touch_show.count_text(half)} on"
    )
    used = hot[most] + hot[half]
    managed = _touched(rows, "read", "hot", "cpu")
    if managed:
        size = max(managed)
        text += f"; into managed memory that the CPU touched first at {rate_text(median_rate(managed[size]) or 0)}"
        text += f" ({first_touch_show.count_text(size)})"
        used = used + managed[size]
    return [Statement(text + ".", used), *_disk(rows)]


def _touched(rows: Rows, direction: str, cache: str, touch: str) -> dict[int, Rows]:
    """The default on raw files at its own shape, by particles: device memory, or what the CPU can touch first."""
    found: dict[int, Rows] = {}
    wanted = (direction, touch, {"gpu": "device", "cpu": "managed"}[touch], "raw", "auto", cache, 0, 0)
    for (particles, *rest), group in first_touch_show.groups(rows).items():
        if tuple(rest) == wanted:
            found[particles] = group
    return found


def _disk(rows: Rows) -> list[Statement]:
    cold, new = _touched(rows, "read", "cold", "gpu"), _touched(rows, "write", "new", "gpu")
    both = cold.keys() & new.keys()
    written = durable_rate(new[max(both)]) if both else None
    if written is None:
        return []
    size = max(both)
    text = (
        f"{first_touch_show.count_text(size)} particles that are not in the page cache are read at "
        f"{rate_text(median_rate(cold[size]) or 0)}, and written to a new file at {rate_text(written)} with fsync."
    )
    return [Statement(text, cold[size] + new[size])]


def _joined(words: list[str]) -> str:
    return " and ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " and " + words[-1]
