"""What the suites that use the load generator share: its reports as samples, and its errors as missing rows."""

from __future__ import annotations

import os
from typing import Any

from penstock import Context, Error, _core
from penstock._api import File
from penstock.calibration.stage import MISSING_CODES, wrong_bytes
from penstock.calibration.workspace import FILE_SEED, NotPossible, resident
from penstock_bench import _measure
from penstock_bench.engine.rounds import Sample

Report = dict[str, Any]
DIRECT_AFTER = 0.05  # of the file in the page cache afterwards: no more can have gone through it
WARM_SECONDS = 0.005  # at least one request of each worker
LATENCIES = ("min_us", "mean_us", "p50_us", "p99_us", "p999_us", "max_us")


def run_load(context: Context, file: File, memory: _core.Buffer, **options: Any) -> Report:
    """One run; raises NotPossible, with the cause, where this machine or file lacks what is asked, and where cuFile
    fails: its calls do on machines that say they can (stream calls of libcufile 1.15 without nvidia-fs). Wrong data
    are an Error whoever brought them."""
    try:
        return _measure.run_load(context._raw, [file._raw], memory, **options)
    except Error as error:
        by_cufile = str(options.get("path", "")).startswith("gds") and error.operation in ("read", "write")
        if error.code not in MISSING_CODES and not (by_cufile and error.code == "io_error"):
            raise
        cause = error.cause if error.code in MISSING_CODES else f"cuFile failed: {error}"
        raise NotPossible(cause) from None


def warm_up(context: Context, file: File, memory: _core.Buffer, **options: Any) -> None:
    """The same load for a moment, not counted: workers and page-locked staging memory are there when it is timed. The
    state of the page cache is to be made after it."""
    run_load(context, file, memory, **options | {"seconds": WARM_SECONDS, "check_last": False})


def sample_of(report: Report) -> Sample:
    """What every row of a load says."""
    return {
        "bytes": report["bytes"],
        "seconds": report["seconds"],
        "operations": report["operations"],
        "operations_per_second": report["operations"] / report["seconds"],
        "reached_limit": report["reached_limit"],
        "took": took(report),
        "fallbacks": report["fallbacks"],
        **latency_of(report["reads"] or report["writes"]),
        **cpu(report),
    }


def cpu(report: Report) -> dict[str, float]:
    """CPU seconds, and what share of all cores they were."""
    all_cores = report["seconds"] * len(os.sched_getaffinity(0))
    return {
        "cpu_user_s": report["cpu_user_s"],
        "cpu_system_s": report["cpu_system_s"],
        "cpu_user_percent": 100 * report["cpu_user_s"] / all_cores,
        "cpu_system_percent": 100 * report["cpu_system_s"] / all_cores,
    }


def latency_of(histogram: dict[str, Any] | None) -> dict[str, float]:
    """What was waited for one by one, and its times; nothing where nothing was."""
    return {} if histogram is None else {"timed": histogram["count"]} | {name: histogram[name] for name in LATENCIES}


def took(report: Report) -> str:
    """The path that moved all bytes, or "mixed"."""
    paths = list(report["path_bytes"])
    return paths[0] if len(paths) == 1 else "mixed"


def proved(file: File, bytes: int, before: str, resident_before: float) -> dict[str, Any]:
    """The state of the page cache as found: "direct" where a cold file stayed out of it."""
    after = resident(file, bytes)
    state = "direct" if before == "cold" and after <= DIRECT_AFTER else before
    return {"cache": state, "resident_before": resident_before, "resident_after": after}


def verify_moved(context: Context, file: File, memory: _core.Buffer, moved: list[tuple[int, int]]) -> int:
    """Checks, on the device, every byte that came into memory that mirrors the file. Returns how many they were."""
    for offset, length in moved:
        bad, first = context.verify_stamp(memory.slice(offset, length), offset, FILE_SEED)
        if bad:
            raise wrong_bytes(file.name, first, bad)
    return sum(length for _, length in moved)
