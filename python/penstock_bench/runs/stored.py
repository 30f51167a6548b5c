"""Rows read back from files of results: whole and with what readers rely on, or an Error that says what is wrong.

Readers skip kinds of rows that they do not know.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from penstock import Error
from penstock.calibration.machine import differing
from penstock_bench.engine.suite import NUMBER
from penstock_bench.runs.suites import sample_fields

FIELDS: dict[str, dict[str, Any]] = {  # what readers rely on
    "machine": {"machine": dict, "file_bytes": int, "repeats": int},
    **sample_fields(),
    "ceiling": {"direction": str, "bytes_per_second": NUMBER},
    "missing": {"cause": str},
    "memory": {"bytes": int, "budget_bytes": int, "peak_rss_bytes": int},
}
MACHINE = {"cpu_model", "cores", "memory_bytes", "page_bytes", "architecture", "kernel", "distribution"} | {
    "file_system",
    "mount_options",
    "disk",
    "git_revision",
}
DEVICE = {"name", "model", "total_bytes", "driver_version", "emulated"}
_QUANTITIES = ("bytes", "seconds", "operations", "cores")
_UNITS = ("_us", "_ms", "_s", "_bytes", "_per_second", "_percent")  # at the end of a quantity's name
_MOST_DIGITS = 300  # of an integer: a float holds it
SAMPLES = (*sample_fields(), "ceiling", "memory", "missing")


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of a results file. Raises Error when it is none. A last line that a killed run left cut short becomes a
    row of kind "missing", so that it is told and the rest is of use."""
    rows = _rows(path)
    if not any(row["kind"] in SAMPLES for row in rows):
        raise _no_results(path, "no results in it")
    if not any(row["kind"] == "machine" for row in rows):
        raise _no_results(path, "no machine in it")
    return rows


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise _no_results(path, "it is no text, so no JSON lines") from None
    except OSError as error:
        raise Error.of(error, "read results", str(path), "name a file that you can read") from None
    lines = text.split("\n")
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_checked(json.loads(line, parse_constant=_no_number, parse_float=_number, parse_int=_whole)))
        except (ValueError, RecursionError) as error:
            if number < len(lines) or not rows:
                is_json = not isinstance(error, (json.JSONDecodeError, RecursionError))
                cause = error if is_json else "it is no JSON object"
                raise _no_results(path, f"line {number} is not a result: {cause}") from None
            cause = "the line is cut short: the run ended while writing it"
            rows.append({"kind": "missing", "name": f"line {number}", "cause": cause, "cut_short": True})
    return rows


def unfinished(path: Path, started: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the run in `path` that a run which would begin with the row `started` continues; none when there is
    no such file, or nothing in it. What ended it, and a line cut short, are left out. Raises Error when it was another
    suite's, or another machine's."""
    found = _rows(path) if path.exists() else []
    if not found:
        return []
    first, *rows = found
    if first["kind"] != "machine":
        raise _no_results(path, "it does not begin with the machine")
    differences = [
        f"{name}: {first.get(name)} and {started.get(name)}"
        for name in ("suite", "quick", "file_bytes", "repeats", "definition", "peers", "remote")
        if first.get(name) != started.get(name)
    ]
    differences += differing(first["machine"], started["machine"])
    if differences:
        raise Error(
            operation="continue results",
            file=str(path),
            cause="it is of another run: " + "; ".join(differences),
            advice="leave --resume out, or name another file with --out",
        )
    return [first, *(row for row in rows if row["kind"] != "stopped" and not row.get("cut_short"))]


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _whole(text: str) -> int:
    """The size in a text, if it is not too long: int() has its own limit, of 4300 digits."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _checked(row: Any) -> dict[str, Any]:
    """The row, when it holds what its kind needs; ValueError says what it lacks."""
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
        raise ValueError("an object with a kind is needed")
    for name, kind in FIELDS.get(row["kind"], {}).items():
        if not isinstance(row.get(name), kind) or isinstance(row.get(name), bool):
            raise ValueError(f"{row['kind']} needs a {name}")
    for name, value in row.items():
        quantity = name in _QUANTITIES or name.endswith(_UNITS)
        if quantity and value is not None and (isinstance(value, bool) or not isinstance(value, NUMBER) or value < 0):
            raise ValueError(f"{name} is not a quantity")
    if row.get("seconds") == 0:
        raise ValueError("nothing takes 0 seconds")
    if row["kind"] == "machine":
        device, versions = row["machine"].get("device"), row["machine"].get("versions")
        whole = isinstance(device, dict) and isinstance(versions, dict) and row["machine"].keys() >= MACHINE
        if not whole or not device.keys() >= DEVICE or "penstock" not in versions:
            raise ValueError("the machine is not described whole")
        link = row["machine"].get("link", "")
        if not isinstance(link, str) and not (isinstance(link, dict) and link.keys() >= {"generation", "width"}):
            raise ValueError("the machine's link is not described whole")
    if row["kind"] == "missing" and "name" not in row and not {"path", "direction", "cache"} <= row.keys():
        raise ValueError("missing needs a name, or path, direction and cache")
    return row


def _no_results(path: Path, cause: str) -> Error:
    return Error(
        operation="read results", file=str(path), cause=cause, advice="name a file that `penstock bench` wrote"
    )
