"""Results as JSON lines: first the machine, then one line a sample, as they are measured, so that an interrupted run
leaves what it had and can be continued. Every row bears the name of its machine. runs/stored.py reads them.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from penstock import Error
from penstock.calibration.machine import machine_id


class Results:
    """An open results file; without a path, rows are kept in memory only. `earlier` are rows of a run that this one
    continues: they come first, and the file that holds them is replaced when they are written again. What an older file
    holds stays until there is something new to write: a run that is refused destroys no results."""

    def __init__(self, path: Path | None, earlier: Iterable[dict[str, Any]] = ()) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self._machine = ""
        self._begun = bool(kept := list(earlier))  # the file is this run's
        self._waiting = ""  # lines that are written with the first sample
        self._stream: IO[str] | None = None
        self._made = path is not None and not path.exists()
        self._written = False  # some of it, whole
        if path is not None and kept:
            self._replace(path, kept)
        elif path is not None:
            self._stream = self._opened(path, "a")

    def _replace(self, path: Path, kept: list[dict[str, Any]]) -> None:
        """Writes the rows of the earlier run beside its file, which then is the new one."""
        new = path.with_name(path.name + ".new")
        try:
            self._stream = self._opened(new, "w")
            for row in kept:
                self._keep(row)
            self._write(self._waiting)
            self._waiting = ""
            new.replace(path)
        except BaseException:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        row = {"kind": kind, **fields}
        if kind == "machine":
            row["id"] = machine_id(row["machine"])
        else:
            row["machine"] = self._machine
        self._keep(row)
        if kind != "machine" and self._waiting:
            self._clear()
            self._write(self._waiting)
            self._waiting = ""
        return row

    def has(self, kind: str, **fields: Any) -> bool:
        """Whether a row of this kind holds all these fields: then it need not be measured again."""
        return any(row["kind"] == kind and fields.items() <= row.items() for row in self.rows)

    def _keep(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if row["kind"] == "machine":
            self._machine = row["id"]
        if self._stream is not None:
            self._waiting += json.dumps(row) + "\n"

    def _clear(self) -> None:
        """The file is this run's from its first sample on. Pipes and terminals hold nothing to clear."""
        if not self._begun and self._stream is not None and self._stream.seekable():
            with suppress(OSError):
                self._stream.truncate(0)
        self._begun = True

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
            self._written = True
        except OSError as error:
            raise Error.of(error, "write results", str(self.path), "write them elsewhere with --out") from None

    @staticmethod
    def _opened(path: Path, mode: str) -> IO[str]:
        try:
            return path.open(mode)
        except OSError as error:
            raise Error.of(error, "write results", str(path), "name a file you can write with --out") from None

    def __enter__(self) -> Results:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._stream is not None:
            with suppress(OSError):  # a full disk, of which add() has told
                self._stream.close()
            if self._made and not self._written and self.path is not None:
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)


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

    def cpu(self) -> dict[str, float]:
        """CPU seconds as fields of a row."""
        return {"cpu_user_s": self.cpu_user_s, "cpu_system_s": self.cpu_system_s}


def latency_fields(seconds: list[float]) -> dict[str, Any]:
    """Percentiles of single requests, in microseconds: of rank ceil(share * n), so each is a time that was seen."""
    each = sorted(seconds)
    shares = {"p50_us": 0.5, "p99_us": 0.99, "p999_us": 0.999}
    found = {name: each[math.ceil(share * len(each)) - 1] * 1e6 for name, share in shares.items()}
    return found | {"max_us": each[-1] * 1e6, "median_us": found["p50_us"], "requests": len(each)}


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_rate(rows: Iterable[dict[str, Any]]) -> float | None:
    """Median bytes per second of the rows; None of no rows."""
    rates = [row["bytes_per_second"] for row in rows]
    return statistics.median(rates) if rates else None


def median_cpu(rows: Iterable[dict[str, Any]]) -> float | None:
    """Median CPU seconds (user and system) per 1e9 bytes."""
    costs = [(row["cpu_user_s"] + row["cpu_system_s"]) / (row["bytes"] / 1e9) for row in rows if row["bytes"]]
    return statistics.median(costs) if costs else None
