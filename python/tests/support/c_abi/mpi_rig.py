"""The MPIs of this machine, for tests that compile a program with each of them and start its ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from c_abi.compilers import works
from c_abi.snapshot_rig import LIBRARY

# OpenMPI starts nothing as root, nor more ranks than cores, unless it is told to.
MAY_START = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def kinds_of(compiler: str) -> list[Any]:
    """What Debian puts behind the names of each MPI's programs, to be parameters of a fixture: the first MPI that has
    this compiler, then others for the long tests. '' where there is none."""
    found = [kind for kind in (".openmpi", ".mpich") if works(compiler + kind)] or [""]
    return [found[0], *(pytest.param(kind, marks=pytest.mark.long) for kind in found[1:])]


def marks_of(compiler: str, kinds: list[Any], language: str) -> list[pytest.MarkDecorator]:
    """Marks of a module that needs the compiler and the installed library."""
    return [
        pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library"),
        pytest.mark.skipif(not works(f"{compiler}{kinds[0]}"), reason=f"there is no MPI with a {language} compiler"),
    ]


def says_to(file: Path) -> list[str]:
    """Put before a program of ranks: their messages go to the end of the file. MPICH's launcher may lose what a rank
    says before it ends all others."""
    return ["sh", "-c", 'said=$0; exec "$@" 2>>"$said"', str(file)]


def lines_of_each(command: list[str], environment: dict[str, str], limit_s: float) -> list[str]:
    """What ranks say on stderr, each to a file of its own: launchers may mix the lines of several. The launcher and its
    options come first in the command, then "--", then the program. Fails where the program does."""
    at = command.index("--")
    with TemporaryDirectory() as folder:
        into = ["sh", "-c", 'said=$0; exec "$@" 2>"$said.$$"', f"{folder}/said"]
        whole = [*command[:at], *into, *command[at + 1 :]]
        done = subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=limit_s)
        said = [one.read_text().splitlines() for one in sorted(Path(folder).iterdir())]
    assert done.returncode == 0, (done.stderr, said)
    return [line for lines in said for line in lines]


@cache
def environment_of(kind: str, folder: Path) -> dict[str, str]:
    """In which Python's mpi4py is of this MPI. Wheels of it ask for MPICH by a name that Debian does not have, which it
    gets in the folder. Empty: there is no mpi4py that works."""
    more = dict(MAY_START)
    if kind == ".mpich":
        found = sorted(Path("/usr/lib").glob("*/libmpich.so.12"))
        if found:
            (folder / "libmpi.so.12").symlink_to(found[0])
        more |= {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    program = "import os; from mpi4py.MPI import COMM_WORLD as all; os.write(1, b'%d ' % all.size)"
    command = [f"mpirun{kind}", "-n", "2", sys.executable, "-c", program]
    try:
        done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return more if done.stdout.split() == ["2", "2"] else {}


def ranks_of(launcher: int, is_rank: Callable[[Path], bool]) -> list[int]:
    """Processes below the launcher for whose folder of /proc this is true."""
    parents: dict[int, int] = {}
    found = []
    for one in Path("/proc").iterdir():
        if not one.name.isdigit():
            continue
        try:
            parents[int(one.name)] = int((one / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if is_rank(one):
                found.append(int(one.name))
        except OSError:  # it went
            continue
    below = []
    for one in found:
        at = parents.get(one, 0)
        while at not in (0, 1, launcher):
            at = parents.get(at, 0)
        below += [one] if at == launcher else []
    return sorted(below)
