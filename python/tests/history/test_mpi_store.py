"""Ranks of MPI write one store: of Zarr, compressed, and of raw files. With each MPI that is here.

The values are those of one process. Steps that were published stay where a rank dies or cannot write.

PENSTOCK_SIGNALS is the number of kills (6 without it)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START, kinds_of, marks_of, ranks_of
from c_abi.snapshot_rig import LIBRARY

import penstock

zarr = pytest.importorskip("zarr", minversion="3")
TREE = Path(__file__).parents[3]
LIMIT_S = 120
KILLS = int(os.environ.get("PENSTOCK_SIGNALS", "6"))
SMALL, LARGE = 50, 60_000  # columns: steps that share files, and steps that have one each
KINDS = kinds_of("mpicc")
pytestmark = marks_of("mpicc", KINDS, "C")


@pytest.fixture(scope="module", params=KINDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The launcher, and the program that it starts with so many ranks."""
    folder = tmp_path_factory.mktemp("mpi")
    source = TREE / "python" / "tests" / "support" / "ranks" / "mpi_store.c"
    command = [f"mpicc{request.param}", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}", str(source)]
    subprocess.run([*command, str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", "store"], cwd=folder, check=True)
    return [f"mpirun{request.param}", "-n", "{}", str(folder / "store")]


def started(program: list[str], ends: list[int], *arguments: object) -> list[str]:
    """NAME FORMAT COMPRESSION STEPS COLUMNS of a rank for each end."""
    options = [str(one) for one in (*arguments[:5], ",".join(map(str, ends)), *arguments[5:])]
    return [one.format(len(ends)) for one in program] + options


def run(command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **MAY_START, **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)


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
        assert np.array_equal(store["level"][:steps, 0], times / 10)
    with penstock.open(path, device="host") as file:
        assert np.array_equal(file["T"][:steps].to_numpy(), values)
        assert np.array_equal(file["time_bnds"][:steps].to_numpy()[:, 1], times)


@pytest.mark.parametrize(
    ("ends", "blocks"),
    [([12], 1), ([4, 8, 12], 3), ([5, 10, 12], 3), ([3, 3, 9, 12], 4), ([0, 6, 12, 12], 2), ([2, 5, 9], 9)],
    ids=["one", "equal", "shorter", "empty", "first_is_empty", "uneven"],
)
@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
def test_the_values_are_those_of_one_process(
    program: list[str], tmp_path: Path, ends: list[int], blocks: int, compression: str
) -> None:
    path = tmp_path / "run.zarr"
    for columns in (SMALL, LARGE) if len(ends) == 3 and compression != "none" else (SMALL,):
        done = run(started(program, ends, path, "zarr", compression, 5, columns))
        assert done.returncode == 0, done.stderr
        check(path, 5, ends[-1], columns)
        chunks = [one.name for one in (path / "T").iterdir() if one.name.startswith("c.")]
        assert len({one.split(".")[2] for one in chunks}) == blocks, chunks
        assert sorted(one.name for one in tmp_path.iterdir()) == ["run.zarr"], "and nothing beside it"


@pytest.mark.parametrize("ends", [[4, 8, 12], [0, 5, 12]])
def test_raw_files_have_the_boxes_of_all(program: list[str], tmp_path: Path, ends: list[int]) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    assert run(started(program, [12], alone, "raw", "none", 4, SMALL)).returncode == 0
    done = run(started(program, ends, shared, "raw", "none", 4, SMALL), DURABLE="1")
    assert done.returncode == 0, done.stderr
    for file in alone.iterdir():
        assert (shared / file.name).read_bytes() == file.read_bytes(), file.name
    assert np.array_equal(np.fromfile(shared / "T.raw", "<f4").reshape(4, 12, SMALL), wanted(4, 12, SMALL))


def test_xarray_opens_it(program: list[str], tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.zarr"
    assert run(started(program, [4, 8, 10], path, "zarr", "zstd", 3, SMALL), DURABLE="1").returncode == 0
    with xarray.open_zarr(path) as opened:
        assert np.array_equal(opened["T"].values, wanted(3, 10, SMALL))
        assert opened["m"].attrs["cell_methods"] == "time: mean"


def test_boxes_that_make_too_many_files_are_refused_by_all(program: list[str], tmp_path: Path) -> None:
    older = tmp_path / "run.zarr"
    assert run(started(program, [4, 8], older, "zarr", "zstd", 2, SMALL)).returncode == 0
    done = run(started(program, [333, 667, 1000], older, "zarr", "zstd", 2, SMALL))
    assert done.returncode != 0
    for rank in range(3):
        assert f"rank {rank} has: " in done.stderr
    assert "multiples of 1 along 'y', so the 333 of this process" in done.stderr
    assert "give each process 334 along it, and the last one what is left" in done.stderr
    check(older, 2, 8, SMALL)


@pytest.mark.parametrize("columns", [SMALL * 40, LARGE], ids=["small", "large"])
def test_a_rank_that_cannot_write_is_told_by_all(program: list[str], tmp_path: Path, columns: int) -> None:
    path = tmp_path / "run.zarr"
    done = run(started(program, [4, 8, 12], path, "zarr", "gzip", 20, columns, "full"))
    assert done.returncode != 0
    for rank in range(3):
        assert f"rank {rank} has: " in done.stderr, done.stderr
    assert "File too large" in done.stderr and "step" in done.stderr
    told = max(int(line) for line in done.stdout.split())
    assert told <= 19
    check(path, told, 12, columns)


def test_times_that_differ_are_refused_by_all(program: list[str], tmp_path: Path) -> None:
    path = tmp_path / "run.zarr"
    done = run(started(program, [4, 8, 12], path, "zarr", "gzip", 20, SMALL, "times"))
    assert done.returncode != 0
    for rank in range(3):
        assert f"rank {rank} has: end step: the ranks give different times, from 30 to 30.5" in done.stderr, done.stderr
    told = max(int(line) for line in done.stdout.split())
    check(path, told, 12, SMALL)
    assert zarr.open_group(str(path), mode="r")["time"].shape[0] <= 2, "steps before it"


@pytest.mark.parametrize("form", ["zarr", "netcdf4"])
def test_boxes_with_gaps_are_refused_by_all_unless_they_are_meant(
    program: list[str], tmp_path: Path, form: str
) -> None:
    path = tmp_path / "run"
    done = run(started(program, [4, 8, 12], path, form, "none", 3, SMALL, "gap"))
    assert done.returncode != 0 and not path.exists()
    for rank in range(3):
        assert f"rank {rank} has: " in done.stderr
    assert "the boxes that the processes have of 'T' leave gaps, or overlap; let each element" in done.stderr
    done = run(started(program, [4, 8, 12], path, form, "none", 3, SMALL, "gaps"))
    assert done.returncode == 0, done.stderr
    with penstock.open(path, device="host", format=form) as file:
        found = file["T"][:].to_numpy()
    assert np.array_equal(found[:, :11], wanted(3, 12, SMALL)[:, :11])
    assert np.isnan(found[:, 11]).all() if form == "zarr" else not found[:, 11].any()


def runs(program: Path) -> Callable[[Path], bool]:
    return lambda process: (process / "exe").readlink() == program


@pytest.mark.parametrize(("compression", "columns"), [("zstd", SMALL), ("gzip", LARGE), ("none", LARGE)])
def test_a_rank_that_is_killed_leaves_every_step_that_was_published(
    program: list[str], tmp_path: Path, compression: str, columns: int
) -> None:
    chance = random.Random(5)
    steps = 0
    for kill in range(KILLS):
        path = tmp_path / f"{kill}.zarr"
        command = started(program, [4, 8, 10], path, "zarr", compression, 0, columns)
        launcher = subprocess.Popen(
            command, env={**os.environ, **MAY_START}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert launcher.stdout is not None
        lines = [launcher.stdout.readline()]
        ranks = ranks_of(launcher.pid, runs(Path(command[3])))
        assert len(ranks) == 3
        time.sleep(chance.random() / 3)
        os.kill(ranks[kill % 3], signal.SIGKILL)
        lines += launcher.stdout.readlines()
        launcher.wait(LIMIT_S)
        told = max(int(line) for line in lines if line.strip().isdigit())
        check(path, told, 10, columns)
        steps += told
    assert steps > KILLS


def test_the_program_behind_the_figures_prints_what_each_way_took(program: list[str], tmp_path: Path) -> None:
    kind = program[0].removeprefix("mpirun")
    source = TREE / "examples" / "history" / "mpi_rates.c"
    command = [f"mpicc{kind}", "-Wall", "-Wextra", "-Werror", f"-I{TREE / 'include'}", str(source), str(LIBRARY), "-lm"]
    subprocess.run([*command, f"-Wl,-rpath,{LIBRARY.parent}", "-o", "rates"], cwd=tmp_path, check=True)
    done = run([program[0], "-n", "2", str(tmp_path / "rates"), str(tmp_path), "1", "64"])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines][:2] == ["one store", "a store of each rank"] and len(lines) == 4
    assert float(lines[3].split()[-4]) == 1.0, "MiB of a step that is not compressed"


@pytest.mark.skipif(not works(f"mpifort{KINDS[0]}"), reason="there is no MPI with a Fortran compiler")
def test_fortran_writes_it_too(program: list[str], tmp_path: Path) -> None:
    kind = program[0].removeprefix("mpirun")
    sources = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in ("", "_history", "_mpi")]
    sources.append(TREE / "examples" / "history" / "mpi_history.f90")
    command = [f"mpifort{kind}", *map(str, sources), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}", "-o", "history"]
    subprocess.run(command, cwd=tmp_path, check=True)
    for ranks in (1, 3, 4):
        done = run([program[0], "-n", str(ranks), str(tmp_path / "history"), str(tmp_path / "run.zarr")])
        assert done.stdout == f"5 steps of {ranks} ranks\n", done.stderr
        step, y, x = np.ogrid[1:6, :23, :60]
        found = zarr.open_group(str(tmp_path / "run.zarr"), mode="r")["T"]
        assert np.array_equal(found[...], (1000 * step + 100 * y + x).astype("f4"))
        assert found.chunks[1] == -(-23 // ranks) and "zstd" in str(found.metadata.codecs).lower()


@pytest.mark.skipif(not works(f"mpifort{KINDS[0]}"), reason="there is no MPI with a Fortran compiler")
@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("10d0*step", "10d0*step + rank", ["the ranks give different times, from 10.0", "give the same time on each"]),
        ("[nx, rows]", "[nx, max(rows - 1, 0_c_int64_t)]", ["of 'T' leave gaps, or overlap"]),
    ],
    ids=["times", "gaps"],
)
def test_fortran_refuses_what_c_does(
    program: list[str], tmp_path: Path, right: str, wrong: str, words: list[str]
) -> None:
    kind = program[0].removeprefix("mpirun")
    sources = [TREE / "bindings" / "fortran" / f"penstock{one}.f90" for one in ("", "_history", "_mpi")]
    example = (TREE / "examples" / "history" / "mpi_history.f90").read_text()
    assert example.count(right) == 1
    (tmp_path / "wrong.f90").write_text(example.replace(right, wrong))
    command = [f"mpifort{kind}", *map(str, sources), "wrong.f90", str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*command, "-o", "wrong"], cwd=tmp_path, check=True)
    done = run([program[0], "-n", "3", str(tmp_path / "wrong"), str(tmp_path / "run.zarr")])
    assert done.returncode != 0
    for one in words:
        assert one in done.stderr, done.stderr
