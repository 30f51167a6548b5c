"""The kinds of suites, in one table: what runs them, which rows they write, and which tables and figures show those.

A new kind of suite is a module and an entry here; nothing else has to know it. What must stay true: everything is named
as "module:function" below penstock_bench and imported when it is used, so that reading a results file loads no device
code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]
NUMBER = (int, float)
MOVED = {"bytes": int, "bytes_per_second": NUMBER, "cpu_user_s": NUMBER, "cpu_system_s": NUMBER}
LOAD = {"operations": int, "seconds": NUMBER}
NAMED: dict[str, Any] = MOVED | {"name": str}  # rows of one name are samples of the same thing
TRIAL = dict.fromkeys(("path", "direction", "cache", "buffer", "first_touch", "took"), str) | dict.fromkeys(
    ("request_bytes", "workers", "depth"), int
)
TOUCHED = dict.fromkeys(("path", "direction", "format", "buffer", "first_touch", "cache", "took"), str) | dict.fromkeys(
    ("particles", "chunk_bytes", "workers"), int
)
GRID = "grid"  # of suites that name no other
_PROBES = "engine.show:probe_tables"


@dataclass(frozen=True)
class Drawing:
    """A figure: (rows) -> matplotlib Figure, or None when the rows do not hold what it shows."""

    function: str
    caption: str
    rows: str  # (rows) -> those that it is drawn of


@dataclass(frozen=True)
class Kind:
    """One kind of suite. A TOML file is of it that says `kind = NAME`, or that has a table [NAME]."""

    run: str  # (session.Run) -> None
    row: str  # the kind of its samples
    fields: dict[str, Any]  # what readers rely on in a sample, by type
    heading: str = ""  # of its tables on the page
    tables: str = _PROBES  # (rows, kind of the samples) -> list of rich tables
    checks: str = ""  # (rows) -> list[promises.Check]
    figures: tuple[str, ...] = ()  # of FIGURES
    says: str = ""  # (rows) -> list[report.sources.Statement], the most important first: for the verdict
    cells: str = ""  # (rows) -> list[engine.rules.Cell]: what decision rules are made of
    summary: str = ""  # (rows) -> cells of a table of medians, of what the medians by themselves do not tell
    peers: tuple[str, ...] = ()  # what else it can measure, as --peers names it
    file_count: int = 3  # of the suite's size that it needs room for
    makes_files: bool = True  # source and target are there when it starts
    takes_remote: bool = False  # it measures a second directory too


FIGURES: dict[str, Drawing] = {  # in the order of the page
    "peers": Drawing(
        "report.peers:beside_peers",
        "Penstock at its default settings beside the ceilings and peers measured in the same run.",
        "report.figure_rows:of_peers",
    ),
    "bandwidth": Drawing(
        "report.figures:bandwidth_by_path",
        "Bandwidth of every path, one request for the whole file, at the settings Penstock chooses by itself.",
        "report.figure_rows:of_bandwidth",
    ),
    "request-size": Drawing(
        "report.figures:bandwidth_by_size",
        "Bandwidth against request size: where the lines bend is the smallest request worth making.",
        "report.figure_rows:of_request_size",
    ),
    "cpu": Drawing(
        "report.figures:cpu_by_path",
        "What a gigabyte costs in CPU time, every thread of the process counted.",
        "report.figure_rows:of_whole_file",
    ),
    "first-touch": Drawing(
        "suites.first_touch.figures:by_problem_size",
        "Bandwidth against problem size: device memory, which the GPU touched first, and managed memory, which the CPU "
        "touched first. Filled marks: in the page cache, or new files. Writes are counted with fsync.",
        "report.figure_rows:of_first_touch",
    ),
    "choice": Drawing(
        "suites.choice.figures:choice_figure",
        "How near each way of choosing comes to the fastest path, by request size. 1 is the fastest measured. "
        "Writes end when the call returns, without fsync.",
        "report.figure_rows:of_choice",
    ),
    "io-size": Drawing(
        "report.suite_figures:io_size_figure",
        "Sequential reads of a cold file by many workers: bandwidth and CPU against the size of a request. Plain is "
        "pread into page-locked memory, then a copy to the device, in each worker.",
        "report.figure_rows:of_io_size",
    ),
    "multiplicity": Drawing(
        "report.suite_figures:multiplicity_figure",
        "Reads of a file against how many are at once. Into host memory by threads that wait, or in one submission of "
        "aio or io_uring (hot: from the page cache); to the device by threads, or in one submission (batch, stream). "
        "Dashed: kept in flight, and told of by callbacks. Hollow marks: samples that differ by more than a factor of "
        "two.",
        "report.figure_rows:of_reads",
    ),
    "copies": Drawing(
        "report.suite_figures:copies_figure",
        "Copies between host and device against how many are at once. Dashed: pageable memory. Hollow marks: "
        "samples that differ by more than a factor of two.",
        "report.figure_rows:of_copies",
    ),
    "gpu-io-blocks": Drawing(
        "suites.gpu_io.figures:blocks_figure",
        "Random 4 KiB reads that the device makes of a file in memory, by threads a block at a constant number of "
        "threads: how many a second, and how long one takes. Dashed: what the device reads itself, without a host.",
        "report.figure_rows:of_gpu_io_blocks",
    ),
    "gpu-io-latency": Drawing(
        "suites.gpu_io.figures:latency_figure",
        "How long requests of the device take, all rounds together: the share that took no longer, by threads a block, "
        "in cycles of the device's clock (below) and in microseconds (above). Dashed: one request alone.",
        "report.figure_rows:of_gpu_io_latency",
    ),
    "gpu-io-rates": Drawing(
        "suites.gpu_io.figures:rates_figure",
        "What the device reaches by itself, beside ceilings and other ways measured in the same rounds (grey). "
        "Medians; whiskers are their 95 % intervals.",
        "report.figure_rows:of_gpu_io_rates",
    ),
    "hmatrix-time": Drawing(
        "suites.hmatrix.figures:time_figure",
        "Seconds of a solver whose matrix is larger than its memory, by how its batches come, and what of it is "
        "reading. Above from the disk, below from the page cache: left by path, in each share of memory; right by "
        "batches that stay in memory.",
        "suites.hmatrix.figures:of_time",
    ),
    "hmatrix-read": Drawing(
        "suites.hmatrix.figures:read_figure",
        "What a solve reads from storage and how long it takes, from cold files in the same memory: BiCGSTAB on "
        "doubles, as published codes run it, and the default of penstock.hmatrix.",
        "suites.hmatrix.figures:of_best",
    ),
}
KINDS: dict[str, Kind] = {
    GRID: Kind(
        "engine.grid:run_suite",
        "trial",
        MOVED | TRIAL,
        heading="Paths",
        tables="engine.show:trial_tables",
        figures=("bandwidth", "request-size", "cpu"),
        says="report.verdict:of_grid",
        cells="engine.rules:trial_cells",
    ),
    "core": Kind(
        "suites.core.suite:run_suite",
        "core",
        NAMED,
        heading="Promises, baselines and peers",
        checks="suites.core.targets:checks",
        says="report.verdict:of_core",
        figures=("peers",),
        peers=("kvikio", "cufile", "torch", "safetensors", "fio"),
    ),
    "choice": Kind(
        "suites.choice.suite:run_suite",
        "choice",
        NAMED | {"way": str, "direction": str, "cache": str, "request_bytes": int, "seconds": NUMBER, "took": str},
        heading="The measured choice",
        tables="suites.choice.table:tables",
        checks="suites.choice.judge:checks",
        figures=("choice",),
        says="suites.choice.words:of_choice",
        cells="suites.choice.words:cells",
        summary="suites.choice.judge:summary",
        peers=("kvikio",),
    ),
    "formats": Kind(
        "suites.formats.suite:run_suite",
        "formats",
        NAMED,
        heading="Formats",
        checks="suites.formats.targets:checks",
        says="report.verdict:of_formats",
        figures=("peers",),
        peers=("h5py", "numpy", "safetensors"),
    ),
    "first-touch": Kind(
        "suites.first_touch.suite:run_suite",
        "first-touch",
        NAMED | TOUCHED,
        heading="Problem sizes",
        tables="suites.first_touch.table:tables",
        says="report.verdict:of_first_touch",
        cells="engine.rules:touch_cells",
        figures=("first-touch",),
        file_count=4,
        makes_files=False,
    ),
    "io-size": Kind(
        "suites.io_size:run_suite",
        "io-size",
        NAMED | LOAD | {"path": str, "request_bytes": int, "workers": int, "place": str, "cache": str, "took": str},
        heading="Request sizes, many workers",
        tables="engine.suite_tables:io_size_tables",
        figures=("io-size",),
        says="report.suite_verdict:of_io_size",
        cells="engine.rules:io_size_cells",
        file_count=1,
        makes_files=False,
        takes_remote=True,
    ),
    "multiplicity": Kind(
        "suites.multiplicity:run_suite",
        "multiplicity",
        NAMED | LOAD | {"subject": str, "way": str, "request_bytes": int, "multiplicity": int, "order": str},
        heading="Requests at once",
        tables="engine.suite_tables:multiplicity_tables",
        figures=("multiplicity", "copies"),
        says="report.suite_verdict:of_multiplicity",
        file_count=2,
        makes_files=False,
    ),
    "gpu-io": Kind(
        "suites.gpu_io.suite:run_suite",
        "gpu-io",
        NAMED | LOAD | {"subject": str, "request_bytes": int, "order": str},
        heading="Requests that the device makes",
        tables="suites.gpu_io.table:tables",
        checks="suites.gpu_io.judge:checks",
        figures=("gpu-io-blocks", "gpu-io-latency", "gpu-io-rates"),
        says="suites.gpu_io.words:of_gpu_io",
        peers=("cufile", "numpy"),
        makes_files=False,
    ),
    "hmatrix": Kind(
        "suites.hmatrix.suite:run_suite",
        "hmatrix",
        {"name": str, "bytes": int, "bytes_per_second": NUMBER, "subject": str, "seconds": NUMBER},
        heading="A solver larger than its memory",
        tables="suites.hmatrix.table:tables",
        checks="suites.hmatrix.judge:checks",
        figures=("hmatrix-time", "hmatrix-read"),
        says="suites.hmatrix.words:of_hmatrix",
        file_count=1,
        makes_files=False,
    ),
}
PEERS = frozenset(peer for kind in KINDS.values() for peer in kind.peers)


def resolve(place: str) -> Callable[..., Any]:
    """The function that "module:function" names."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(f"penstock_bench.{module}"), name)
    return function


def sample_fields() -> dict[str, dict[str, Any]]:
    """What readers rely on, by the kind of row."""
    return {kind.row: kind.fields for kind in KINDS.values()}


def present(rows: Rows) -> list[Kind]:
    """The kinds of suites that rows are of, in the order of the table."""
    found = {row["kind"] for row in rows}
    return [kind for kind in KINDS.values() if kind.row in found]


def own(rows: Rows, kind: Kind) -> Rows:
    """The rows of those runs that hold samples of the kind. Each run begins with its machine, so that machine, files
    and ceilings are of the same run."""
    runs: list[Rows] = []
    for row in rows:
        if row["kind"] == "machine" or not runs:
            runs.append([])
        runs[-1].append(row)
    return [row for run in runs if any(row["kind"] == kind.row for row in run) for row in run]


def checks(rows: Rows, kind: Kind) -> list[Any]:
    """The promises of a kind, judged by the rows: its own, and what checking takes, of any whose rows tell it."""
    mine = own(rows, kind)
    found = resolve(kind.checks)(mine) if kind.checks else []
    return found + resolve("engine.promises:checking")(mine, kind.row)


def figures(rows: Rows) -> dict[str, Any]:
    """All figures that the rows can feed, by name."""
    wanted = {name for kind in present(rows) for name in kind.figures}
    made = {name: resolve(one.function)(rows) for name, one in FIGURES.items() if name in wanted}
    return {name: figure for name, figure in made.items() if figure is not None}
