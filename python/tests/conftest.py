"""Shared fixtures: the installed command run as a user would, and a scratch file with known content."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

os.environ["PENSTOCK_PROFILES"] = ""  # no profile of the machine the tests run on may turn a choice
from penstock import Context, cli

# What a shell starts in the background ignores SIGINT, under nohup SIGHUP, and hands that on: commands here are to be
# interrupted.
for number, answer in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, answer)

PENSTOCK = [sys.executable, "-c", "import sys; from penstock.cli import main; sys.exit(main())"]
LIMIT_S = 120  # "in bounded time" of every command here


# Half of all time: each step of every writer killed or starved, random files, all pages' blocks, long solves.
LONG = {
    *("test_bench_hacapk", "test_faults_writing", "test_fuzz_hdf5", "test_fuzz_netcdf3", "test_fuzz_zarr"),
    *("test_hdf5_faults", "test_hdf5_kill", "test_hmatrix_command", "test_interrupts", "test_many_files"),
    *("test_power_cuts", "test_signals_at_steps", "test_stuck"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        blocks_of_a_page = item.name.startswith("test_blocks_run_as_written") and "[README.md]" not in item.name
        if item.path.stem in LONG or blocks_of_a_page:
            item.add_marker(pytest.mark.long)


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


def run_penstock(*arguments: str | Path, **options: Any) -> Ran:
    environment = os.environ | {"PENSTOCK_PROGRESS": "0"} | options.pop("env", {})
    done = subprocess.run(
        [*PENSTOCK, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, env=environment, **options
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def without_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the command in this process: it does not listen to signals. It would listen on after its end, and end this
    process at a signal that some later test sends to itself."""
    monkeypatch.setattr(cli, "_listen", lambda _answer: None)
    monkeypatch.setattr(cli._Signals, "listen", lambda _signals: None)


def mount_is_listed(place: Path) -> bool:
    """Whether the system tells this process of the mount that holds a folder: not in a chroot whose / is none."""
    descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    finally:
        os.close(descriptor)
    number = next(line.split()[1] for line in facts.splitlines() if line.startswith("mnt_id:"))
    return any(line.split()[0] == number for line in Path("/proc/self/mountinfo").read_text().splitlines())


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


def assert_one_line_error(ran: Ran, *words: str) -> None:
    """Not 0, nothing on stdout, one line on stderr without a traceback, holding all words."""
    assert ran.code not in (0, None), ran.out
    assert ran.err.startswith("penstock: ")
    assert ran.err.count("\n") == 1, ran.err
    assert "Traceback" not in ran.err
    assert "internal error" not in ran.err, ran.err
    for word in words:
        assert word in ran.err, ran.err
