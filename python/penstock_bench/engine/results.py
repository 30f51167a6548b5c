"""Results as JSON lines: first the machine, then one line a sample, as they are measured, so that an interrupted run
leaves what it had and can be continued. Every row bears the name of its machine. Readers skip kinds they do not know.
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
from penstock.calibration.machine import differing, machine_id
from penstock_bench.engine.kinds import NUMBER, sample_fields

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
    except UnicodeDecodeError as error:
        raise _no_results(path, f"not JSON lines: {error}") from None
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
                raise _no_results(path, f"line {number} is not a result: {error}") from None
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
