"""Results as JSON lines: first the machine, then one line a sample, as they are measured, so that an interrupted run
leaves what it had. Readers skip kinds they do not know."""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from penstock import Error


class Results:
    """An open results file; without a path, rows are kept in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self._stream: IO[str] | None = path.open("w") if path is not None else None

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        row = {"kind": kind, **fields}
        self.rows.append(row)
        if self._stream is not None:
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
        return row

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._stream is not None:
            self._stream.close()


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of a results file. Raises Error when it is none."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Error(
            operation="read results",
            file=str(path),
            cause=f"not JSON lines: {error}",
            advice="name a file that `penstock bench` wrote",
        ) from None
    if not rows or not all(isinstance(row, dict) and "kind" in row for row in rows):
        raise Error(
            operation="read results",
            file=str(path),
            cause="no results in it",
            advice="name a file that `penstock bench` wrote",
        )
    return rows


class Stopwatch:
    """Wall and CPU seconds of a block, of the whole process."""

    def __enter__(self) -> Stopwatch:
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu_user_s = usage.ru_utime - self._usage.ru_utime
        self.cpu_system_s = usage.ru_stime - self._usage.ru_stime


def median_rate(rows: Iterable[dict[str, Any]]) -> float | None:
    """Median bytes per second of the rows; None of no rows."""
    rates = [row["bytes_per_second"] for row in rows]
    return statistics.median(rates) if rates else None


def median_cpu(rows: Iterable[dict[str, Any]]) -> float | None:
    """Median CPU seconds (user and system) per 1e9 bytes."""
    costs = [(row["cpu_user_s"] + row["cpu_system_s"]) / (row["bytes"] / 1e9) for row in rows if row["bytes"]]
    return statistics.median(costs) if costs else None
