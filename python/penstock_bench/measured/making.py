"""A table from a results file: its head says of which machine, revision and command it is, its cells what was measured.

A results file says all of that but the command, and no revision where the package was not built in a checkout; these
are given. Files of `penstock hmatrix ... --json`, an object a line, are taken too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Error
from penstock._text import bytes_text
from penstock_bench.measured import reduction
from penstock_bench.measured.table import MeasuredTable

FORMAT = "1"


@dataclass(frozen=True)
class Origin:
    """What the rows do not tell, or tell wrongly."""

    title: str  # of its part of the page
    command: str
    revision: str = ""
    date: str = ""
    note: str = ""


def table_of(path: Path, origin: Origin) -> MeasuredTable:
    """Raises Error when the file holds no results, or their revision is unknown."""
    rows = _rows(path)
    first = rows[0]
    facts = first["machine"]
    revision = origin.revision or facts.get("git_revision") or ""
    if not revision or revision.endswith("-dirty"):
        raise Error(
            operation="make a table",
            file=str(path),
            cause=f"the revision is '{revision}', which is no commit",
            advice="say the true one with --revision",
        )
    head = {"penstock table": FORMAT, "title": origin.title, "suite": first.get("suite", "commands")}
    head |= {"made by": origin.command}
    head |= _machine(facts) | {"revision": revision, "date": origin.date, "note": origin.note}
    if "file_bytes" in first:
        head |= {"files": bytes_text(first["file_bytes"]), "rounds": str(first["repeats"])}
    if first.get("kind") == "machine":
        head |= reduction.missing(rows)
    return MeasuredTable({name: value for name, value in head.items() if value}, reduction.cells(rows))


def _rows(path: Path) -> list[dict[str, Any]]:
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    found = [json.loads(line) for line in lines]  # unlike reports, of whatever fields: old rows are to be reduced too
    if all("kind" not in row for row in found) and found:
        return [row | {"command": _short(row["command"])} for row in found]
    if not found or found[0].get("kind") != "machine":
        cause = "it does not begin with a machine"
        raise Error(operation="make a table", file=str(path), cause=cause, advice="name a file of `penstock bench`")
    return found


def _short(command: str) -> str:
    return command.removeprefix("penstock ").replace(" --json", "")


def _machine(facts: dict[str, Any]) -> dict[str, str]:
    """What a number depends on, in words."""
    device, disk, versions = facts["device"], facts.get("disk", {}), facts.get("versions", {})
    driver = device.get("driver_version", 0)
    words = [device["model"]] + [f"driver for CUDA {driver // 1000}.{driver % 1000 // 10}"] * bool(driver)
    link = facts.get("link", "")
    build = versions.get("penstock", {})
    peers = [f"{name} {value}" for name, value in versions.items() if name not in ("penstock", "matplotlib")]
    return {
        "machine": f"{facts['cores']} cores of {facts['cpu_model']}, {bytes_text(facts['memory_bytes'])}",
        "device": ", ".join(words),
        "link": f"PCIe {link['generation']} x{link['width']}" if isinstance(link, dict) else "",
        "system": f"{facts['distribution']}, Linux {facts['kernel']}",
        "storage": f"{facts['file_system']} on {disk.get('name', 'a disk that is not known')}",
        "versions": ", ".join([f"g++ {build['compiler']}"] * ("compiler" in build) + peers),
    }


def of_one_object(path: Path, command: str, machine: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """The object of a command as the rows of a file."""
    return [json.loads(path.read_text()) | {"command": command, "machine": machine}]
