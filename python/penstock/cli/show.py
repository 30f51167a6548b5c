"""What the command prints: JSON objects, tables for people, and a progress bar on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock._api import Progress
from penstock.cli import one_line

WIDTH = 120  # of tables that go to a file


def json_object(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")


def bytes_text(count: float) -> str:
    """Binary units: "4 MiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def rate_text(bytes_per_second: float) -> str:
    """Decimal units: "4.52 GB/s"."""
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_second >= factor:
            return f"{bytes_per_second / factor:.3g} {unit}"
    return f"{bytes_per_second:.3g} B/s"


def seconds_text(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def wants_progress() -> bool:
    """On a terminal, or when PENSTOCK_PROGRESS is set to anything but 0."""
    forced = os.environ.get("PENSTOCK_PROGRESS")
    return forced != "0" if forced else sys.stderr.isatty()


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Yields a function (done_bytes, total_bytes), or None where nobody looks."""
    if not wants_progress():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
    console = Console(stderr=True, force_terminal=True)
    with Progress(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def transfer_text(fields: dict[str, Any]) -> str:
    """The result of read or write for a person; every number is also in the JSON object."""
    gigabytes = fields["bytes"] / 1e9
    cpu = fields["cpu_user_s"] + fields["cpu_system_s"]
    lines = [
        f"{fields['operation']} {one_line(fields['file'])}: {bytes_text(fields['bytes'])} in "
        f"{seconds_text(fields['seconds'])}, {rate_text(fields['bytes_per_second'])}, "
        f"path {fields['path']}, device {fields['device']}",
        f"  cpu      {fields['cpu_user_s']:.3f} s user, {fields['cpu_system_s']:.3f} s system"
        + (f", {cpu / gigabytes:.3f} s/GB" if gigabytes >= 0.001 else ""),
    ]
    lines += _evidence_lines(fields["evidence"])
    if "verified" in fields:
        lines.append("  verified every byte was read back and checked on the device")
    if "sha256" in fields:
        lines.append(f"  sha256   {fields['sha256']}")
    return "\n".join(lines) + "\n"


def _evidence_lines(evidence: dict[str, Any]) -> list[str]:
    lines = []
    for share in evidence["paths"]:
        copies = (
            "straight from the registered mapping"
            if share["from_pinned_mapping"]
            else (f"{bytes_text(share['host_copies_bytes'])} through staging memory")
        )
        lines.append(
            f"  path     {share['path']}: {share['bytes']} bytes in {share['operations']} operations, {copies}"
        )
    for name in ("before", "after"):
        found = evidence.get(f"residency_{name}")
        if found and found["sampled_pages"]:
            percent = 100 * found["resident_pages"] / found["sampled_pages"]
            lines.append(f"  cache    {percent:.0f} % of the range in the page cache {name} ({found['source']})")
    io = evidence.get("process_io")
    if io:
        lines.append(f"  storage  {io['read_bytes']} bytes fetched, {io['write_bytes']} bytes sent, by /proc/self/io")
    for one in evidence["fallbacks"]:
        lines.append(f"  fallback {one['wanted']} -> {one['took']}, {one['bytes']} bytes: {one['cause']}")
    lines += [f"  note     {note}" for note in evidence["notes"]]
    lines += [f"  plan     {step}" for step in evidence["plan"].splitlines()]
    return lines
