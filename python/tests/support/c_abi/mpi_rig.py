"""The MPIs of this machine, for tests that compile a program with each of them and start its ranks."""

from __future__ import annotations

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
