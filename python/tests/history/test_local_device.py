"""Processes of one machine take its GPUs in turn, by the number that they give or that their launcher gives them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_abi.compilers import works
from c_abi.mpi_rig import MAY_START

import penstock
from penstock import _core

LIMIT_S = 120
VARIABLES = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"),
    *("SLURM_LOCALID", "LOCAL_RANK"),
)
# The rank sees two GPUs, whatever the machine has, and writes once: lines of ranks may mix.
RANK = """
import os, penstock
from penstock import _core
_core.cuda_devices = lambda: (2, "")
os.write(1, f"{penstock.local_device()} ".encode())
"""


@pytest.fixture(autouse=True)
def started_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def three_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "cuda_devices", lambda: (3, ""))


def test_it_opens_a_context_here() -> None:
    count, _ = _core.cuda_devices()
    assert penstock.local_device() == ("cuda:0" if count else "host")
    with penstock.Context(penstock.local_device(7)) as context:
        assert context.device["name"] == (f"cuda:{7 % count}" if count else "host")


@pytest.mark.usefixtures("three_gpus")
def test_processes_take_the_gpus_in_turn() -> None:
    assert [penstock.local_device(number) for number in range(5)] == ["cuda:0", "cuda:1", "cuda:2", "cuda:0", "cuda:1"]
    assert penstock.local_device(np.int64(4)) == "cuda:1"


def test_without_a_gpu_it_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "cuda_devices", lambda: (0, "no driver"))
    assert [penstock.local_device(), penstock.local_device(2)] == ["host", "host"]


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize("name", VARIABLES)
def test_each_launcher_gives_the_number(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert penstock.local_device() == "cuda:0"
    monkeypatch.setenv(name, "5")
    assert penstock.local_device() == "cuda:2"
    assert penstock.local_device(1) == "cuda:1", "what the caller gives goes first"


@pytest.mark.usefixtures("three_gpus")
def test_the_launcher_that_is_nearest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_LOCALID", "0")  # of the process that started mpirun
    monkeypatch.setenv("MPI_LOCALRANKID", "2")
    assert penstock.local_device() == "cuda:2"


@pytest.mark.usefixtures("three_gpus")
def test_what_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="local_process is -1; processes of a machine count from 0"):
        penstock.local_device(-1)
    with pytest.raises(TypeError):
        penstock.local_device(1.5)  # type: ignore[arg-type]
    for text in ("", "-1", "one", "²"):
        monkeypatch.setenv("SLURM_LOCALID", text)
        with pytest.raises(penstock.Error, match=f"SLURM_LOCALID is {text!r}, which is no number; unset it"):
            penstock.local_device()


@pytest.mark.parametrize("kind", [".openmpi", ".mpich"])
def test_ranks_of_mpirun_take_them_in_turn(tmp_path: Path, kind: str) -> None:
    if not works(f"mpirun{kind}"):
        pytest.skip(f"there is no mpirun{kind}")
    command = [f"mpirun{kind}", "-n", "3", sys.executable, "-c", RANK]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **MAY_START}, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert sorted(done.stdout.split()) == ["cuda:0", "cuda:0", "cuda:1"], done.stderr
