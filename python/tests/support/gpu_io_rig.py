"""The suite `gpu-io` at a tiny size on the emulated device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock_bench.engine import definition
from penstock_bench.runs import definitions, session

Rows = list[dict[str, Any]]
BYTES = 1 << 20
SMALL = {
    "ram_bytes": "1MiB",
    "cell_seconds": 0.002,
    "warm_seconds": 0.002,
    "service_threads": [1],
    "slots": 64,
    "threads": 2048,
    "block_threads": [1, 64],
    "rings": [1, 4],
    "host_threads": [2, 2],
    "write_bytes": ["64KiB", "512KiB"],
    "cache_write_bytes": ["64KiB", "512KiB"],
    "cache_bytes": "256KiB",
    "sweep_bytes": "512KiB",
    "sweeps": 2,
    "miss_rows": 32,
    "gather_rows": 100,
    "peer_rows": 50,
    "data_bytes": ["4MiB", "900TiB"],
}


def tiny(**settings: Any) -> definition.Definition:
    whole = definitions.load("gpu-io", True)
    table = whole.settings["gpu-io"] | SMALL | settings
    return replace(whole, file_bytes=BYTES, repeats=1, seconds=60.0, settings={"gpu-io": table})


def run(place: Path, chosen: definition.Definition, **options: Any) -> Rows:
    request = session.Request(chosen, "host", place, place / "rows.jsonl", True, **options)
    return session.run(request, lambda *_: None)


def cells(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows if row["kind"] == "gpu-io"}


def missing(rows: Rows) -> dict[str, str]:
    return {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
