"""Ranks of mpi4py write one history: a compressed store of Zarr, raw files, or one netCDF file. With each MPI that is
here. Steps that were published stay where a rank dies or cannot write.

PENSTOCK_SIGNALS is the number of kills (3 without it)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from c_abi.mpi_rig import environment_of, kinds_of, ranks_of

import penstock

zarr = pytest.importorskip("zarr", minversion="3")
pytest.importorskip("mpi4py")
PROGRAM = Path(__file__).parents[1] / "support" / "ranks" / "history.py"
LIMIT_S = 120
KILLS = int(os.environ.get("PENSTOCK_SIGNALS", "3"))
SMALL, LARGE = 50, 60_000  # columns: steps that share files, and steps that have one each


class Ranks:
    """What starts the program with an MPI."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.environment = {**os.environ, **environment_of(kind, folder)}

    def command(self, ends: list[int], *arguments: object) -> list[str]:
        """NAME FORMAT COMPRESSION STEPS COLUMNS [HOW] of a rank for each end."""
        options = [str(one) for one in (*arguments[:5], ",".join(map(str, ends)), *arguments[5:])]
        return [f"mpirun{self.kind}", "-n", str(len(ends)), sys.executable, "-m", "mpi4py", str(PROGRAM), *options]

    def run(self, ends: list[int], *arguments: object) -> subprocess.CompletedProcess[str]:
        command = self.command(ends, *arguments)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture(scope="module", params=kinds_of("mpicc"))
def ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    folder = tmp_path_factory.mktemp("mpi")
    if not environment_of(request.param, folder):
        pytest.skip(f"mpi4py does not work with mpirun{request.param}")
    return Ranks(request.param, folder)


def wanted(steps: int, rows: int, columns: int) -> np.ndarray:
    step, y, x = np.ogrid[1 : steps + 1, :rows, :columns]
    return (1000 * (step % 1000) + 100 * y + x % 97).astype("f4")


def check(path: Path, steps: int, rows: int, columns: int) -> None:
    """What zarr-python, without and with consolidated metadata, and penstock.open read."""
    values, times = wanted(steps, rows, columns), 10.0 * np.arange(1, steps + 1)
    for consolidated in (False, True):
        store = zarr.open_group(str(path), mode="r", use_consolidated=consolidated)
        assert store["T"].shape[1:] == (rows, columns) and store["T"].shape[0] >= steps
        for name in ("T", "m"):
            assert np.array_equal(store[name][:steps], values), name
        assert np.array_equal(store["time"][:steps], times)
    with penstock.open(path, device="host") as file:
        assert np.array_equal(file["T"][:steps].to_numpy(), values)
        assert np.array_equal(file["level"][:steps, 0].to_numpy(), times / 10)


@pytest.mark.parametrize(
    "ends",
    [[12], [5, 10, 12], [3, 3, 9, 12], [0, 6, 12, 12], [2, 4, 6, 8, 10, 12, 12, 12]],
    ids=["one", "shorter", "empty", "first_is_empty", "eight"],
)
def test_one_store_has_the_boxes_of_all(ranks: Ranks, tmp_path: Path, ends: list[int]) -> None:
    path = tmp_path / "run.zarr"
    for columns, how in ((SMALL, "durable"), (LARGE, "")) if len(ends) == 3 else ((SMALL, ""),):
        done = ranks.run(ends, path, "zarr", "zstd", 5, columns, how)
        assert done.returncode == 0, done.stderr
        check(path, 5, ends[-1], columns)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["run.zarr"], "and nothing beside it"


def test_xarray_opens_it(ranks: Ranks, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.zarr"
    assert ranks.run([4, 8, 10], path, "zarr", "gzip", 3, SMALL).returncode == 0
    with xarray.open_zarr(path) as opened:
        assert np.array_equal(opened["T"].values, wanted(3, 10, SMALL))
        assert opened["m"].attrs["cell_methods"] == "time: mean"


@pytest.mark.parametrize("form", ["netcdf4", "cdf5", "raw"])
def test_one_file_that_is_not_compressed_has_the_boxes_of_all(ranks: Ranks, tmp_path: Path, form: str) -> None:
    assert ranks.run([12], tmp_path / "alone", form, "none", 4, SMALL).returncode == 0
    done = ranks.run([2, 5, 5, 12], tmp_path / "shared", form, "none", 4, SMALL)
    assert done.returncode == 0, done.stderr
    if form != "raw":
        assert (tmp_path / "shared").read_bytes() == (tmp_path / "alone").read_bytes()
        return
    for file in (tmp_path / "alone").iterdir():
        assert (tmp_path / "shared" / file.name).read_bytes() == file.read_bytes(), file.name


def test_ranks_that_disagree_are_refused_by_all_and_an_older_store_stays(ranks: Ranks, tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    assert ranks.run([4, 8], path, "zarr", "zstd", 2, SMALL).returncode == 0
    for ends, how, words in (
        ([4, 8, 12], "differs", "processes 0 and 2 define different files"),
        ([333, 667, 1000], "", "give each process 334 along it"),
    ):
        done = ranks.run(ends, path, "zarr", "zstd", 2, SMALL, how)
        assert done.returncode != 0
        told = [line for line in done.stderr.splitlines() if " has: " in line]
        assert sorted(line.split()[1] for line in told) == ["0", "1", "2"], done.stderr
        assert all(words in line for line in told), told
    check(path, 2, 8, SMALL)


@pytest.mark.parametrize("columns", [SMALL * 40, LARGE], ids=["small", "large"])
def test_a_rank_that_cannot_write_is_told_by_all(ranks: Ranks, tmp_path: Path, columns: int) -> None:
    path = tmp_path / "run.zarr"
    done = ranks.run([4, 8, 12], path, "zarr", "gzip", 20, columns, "full")
    assert done.returncode != 0
    for rank in range(3):
        assert f"rank {rank} has: " in done.stderr, done.stderr
    assert "File too large" in done.stderr and "step" in done.stderr
    told = max(int(line) for line in done.stdout.split())
    assert told <= 19
    check(path, told, 12, columns)


def is_rank(process: Path) -> bool:
    words = (process / "cmdline").read_bytes().split(b"\0")
    return str(PROGRAM).encode() in words and b"python" in words[0]


def test_a_rank_that_is_killed_leaves_every_step_that_was_published(ranks: Ranks, tmp_path: Path) -> None:
    chance = random.Random(5)
    steps = 0
    for kill in range(KILLS):
        path = tmp_path / f"{kill}.zarr"
        command = ranks.command([4, 8, 10], path, "zarr", "zstd", 0, SMALL)
        launcher = subprocess.Popen(
            command, env=ranks.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert launcher.stdout is not None
        lines = [launcher.stdout.readline()]
        started = ranks_of(launcher.pid, is_rank)
        assert len(started) == 3
        time.sleep(chance.random() / 3)
        os.kill(started[kill % 3], signal.SIGKILL)
        lines += launcher.stdout.readlines()
        launcher.wait(LIMIT_S)
        told = max(int(line) for line in lines if line.strip().isdigit())
        check(path, told, 10, SMALL)
        steps += told
    assert steps > KILLS


def example_of(ranks: Ranks, count: int, name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    program = Path(__file__).parents[3] / "examples" / "history" / name
    words = [f"mpirun{ranks.kind}", "-n", str(count), sys.executable, "-m", "mpi4py", str(program)]
    command = [*words, *map(str, arguments)]
    return subprocess.run(command, env=ranks.environment, capture_output=True, text=True, timeout=LIMIT_S)


def test_the_program_behind_the_figures_prints_what_each_way_took(ranks: Ranks, tmp_path: Path) -> None:
    done = example_of(ranks, 2, "mpi_rates.py", tmp_path, 1, 64)
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["one store", "a store of each rank"], (
        done.stderr
    )
    assert not any(tmp_path.iterdir())


def test_the_example_writes_a_store_of_any_number_of_ranks(ranks: Ranks, tmp_path: Path) -> None:
    for count in (1, 3, 7):
        done = example_of(ranks, count, "mpi_history.py", tmp_path / "run.zarr")
        assert done.stdout == f"5 steps of {count} ranks\n", done.stderr
        step, y, x = np.ogrid[1:6, :23, :60]
        found = zarr.open_group(str(tmp_path / "run.zarr"), mode="r")["T"]
        assert np.array_equal(found[...], (1000 * step + 100 * y + x).astype("f4"))
        assert found.chunks[1] == -(-23 // count)
