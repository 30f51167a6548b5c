"""What the command prints: JSON objects, tables for people, and a progress bar on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock._api import Progress
from penstock._text import bytes_text, one_line, rate_text, seconds_text

Step = Callable[[int, int, str], None]  # (done, total, what)
WIDTH = 120  # of tables that go to a file
LINE_SECONDS = 2.0  # between two lines of progress where no bar can be drawn


def json_object(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")


def wants_progress() -> bool:
    """On a terminal, or when PENSTOCK_PROGRESS is set to anything but 0."""
    forced = os.environ.get("PENSTOCK_PROGRESS")
    return forced != "0" if forced else sys.stderr.isatty()


def _is_dumb() -> bool:
    """A terminal (or a log) that cannot move its cursor: a bar would show nothing there."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


def _line_writer() -> Callable[[str], None]:
    """A function that writes a line to stderr: at once the first time, then one in `LINE_SECONDS` at most."""
    next_at = 0.0

    def write(text: str) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at = time.monotonic() + LINE_SECONDS
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    return write


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Yields a function (done_bytes, total_bytes), or None where no terminal shows it."""
    if not wants_progress():
        yield None
        return
    if _is_dumb():
        write = _line_writer()
        yield lambda done, total: write(f"{what}: {bytes_text(done)} of {bytes_text(total)}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
    console = Console(stderr=True, force_terminal=True)
    with Progress(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def steps(name: str) -> Iterator[Step]:
    """Yields a function (done, total, what) that tells where a run of steps is: on a terminal."""
    if not wants_progress():
        yield lambda done, total, what: None
        return
    if _is_dumb():
        write = _line_writer()
        yield lambda done, total, what: write(f"{name}: {what}, {done} of {total or '?'}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True, force_terminal=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def step(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total or None, description=what)

        yield step


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
