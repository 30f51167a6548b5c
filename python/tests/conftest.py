"""Shared fixtures and settings: no profile turns a choice, commands listen to signals, and rigs are found by all.

The rigs, kits and the command lie in support/; pytest has that folder on its path, and so has each process that a test
starts. What runs as a process of its own lies in programs/.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

gc.disable()  # until all tests are collected: nothing of them is garbage
os.environ["PENSTOCK_PROFILES"] = ""  # no profile of the machine the tests run on may turn a choice
TESTS = Path(__file__).resolve().parent
SUPPORT = str(TESTS / "support")
FOUND = os.environ.get("PYTHONPATH", "").split(os.pathsep)
if SUPPORT not in FOUND:
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*FOUND, SUPPORT]))
from command import Ran, run_penstock  # noqa: E402

from penstock import Context  # noqa: E402

# What a shell starts in the background ignores SIGINT, under nohup SIGHUP, and hands that on: commands here are to be
# interrupted.
for number, answer in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, answer)


# Half of all time: each step of every writer killed or starved, random files, all pages' blocks, long solves.
LONG = {
    *("api/test_many_files", "api/test_stuck", "durable/test_faults_writing", "durable/test_interrupts"),
    *("durable/test_killed", "durable/test_power_cuts", "durable/test_signals_at_steps", "hdf5/test_faults"),
    *("hdf5/test_fuzz", "hdf5/test_kill", "history/test_killed", "hmatrix/test_command", "hmatrix/test_memory"),
    *("hmatrix/test_solves", "hmatrix/test_thin", "native/test_each_write", "netcdf/test_fuzz"),
    *("newcomer/test_native", "suites/test_hacapk", "zarr/test_fuzz"),
}
# Modules of about 20 s and more, the longest first: workers begin with them. A file is one worker's, and a long one
# that is begun last leaves the others with nothing to do. pytest-xdist would begin with files of many tests.
FIRST = (
    *("docs/test_readme", "newcomer/test_native", "durable/test_faults_writing", "vfd/test_h5py_tests"),
    *("durable/test_signals_at_steps", "history/test_mpi_store", "api/test_include", "api/test_stuck"),
    *("hmatrix/test_command", "suites/test_hacapk", "durable/test_power_cuts", "hdf5/test_faults"),
    *("suites/test_gpu_io", "cli/test_shell", "vfd/test_cost", "api/test_many_files"),
    *("durable/test_interrupts", "hdf5/test_many_sources", "preload/test_ends", "gpu/test_random"),
    *("hmatrix/test_solves", "history/test_killed", "suites/test_per_process", "restart/test_mpi"),
    *("hmatrix/test_thin", "suites/test_simulation_ranks", "vfd/test_compiled", "zarr/test_rewriting"),
    *("newcomer/test_suite", "picks/test_rewriting", "bench/test_command", "newcomer/test_format"),
    *("picks/test_picks", "zarr/test_fuzz"),
)
SLOW = {line for line in (TESTS / "slow.txt").read_text().splitlines() if line and not line.startswith("#")}


# Where not all tests have time, other modules come first in each turn, so that in some turns all are run.
TURN = os.environ.get("PENSTOCK_TEST_TURN", "")


def place_of(module: str) -> int:
    """In which order modules are begun."""
    if TURN:
        return zlib.crc32(f"{TURN} {module}".encode())
    return FIRST.index(module) if module in FIRST else len(FIRST)


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # of pytest-xdist: files are begun in the order that they have here


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place_of(f"{item.path.parent.name}/{item.path.stem}"))
    products: dict[tuple[Path, str], list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            products.setdefault((item.path, item.originalname), []).append(item)
        blocks_of_a_page = item.name.startswith("test_blocks_run_as_written") and "[README.md]" not in item.name
        module = f"{item.path.parent.name}/{item.path.stem}"
        if module in LONG or blocks_of_a_page:
            item.add_marker(pytest.mark.long)
        if {module, f"{module}::{item.name.partition('[')[0]}"} & SLOW:
            item.add_marker(pytest.mark.slow)
    for cases in products.values():
        for case in beyond_the_sample(cases):
            case.add_marker(pytest.mark.exhaustive)


def pytest_collection_finish() -> None:
    """What thousands of tests brought stays, and is not looked through again whenever one of them collects garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


# What begins later is skipped: .ci/run gives the long tests the time that is left.
ENDS_S = time.monotonic() + float(os.environ.get("PENSTOCK_TEST_SECONDS", "inf"))


def pytest_runtest_setup() -> None:
    if time.monotonic() > ENDS_S:
        pytest.skip("no time was left (PENSTOCK_TEST_SECONDS)")


def beyond_the_sample(cases: list[pytest.Function]) -> list[pytest.Function]:
    """The cases of a product that are left when each value of each of its axes has one. With the first case is taken
    whichever has the most values that none before it had, so that the choice is the same in every run."""
    values = [{(name, repr(value)) for name, value in case.callspec.params.items()} for case in cases]
    left, taken = set[tuple[str, str]]().union(*values), set[int]()
    while left:
        best = max(range(len(cases)), key=lambda number: len(values[number] & left))
        taken.add(best)
        left -= values[best]
    return [case for number, case in enumerate(cases) if number not in taken]


@pytest.fixture
def context() -> Context:
    return Context("host")


@pytest.fixture
def penstock() -> Callable[..., Ran]:
    return run_penstock


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A file of an odd size, so that every path has a tail to get right."""
    path = tmp_path / "sample.bin"
    path.write_bytes(random.Random(3).randbytes(5_000_003))
    return path
