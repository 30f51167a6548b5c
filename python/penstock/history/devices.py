"""Which GPU a process takes that shares a machine with others.

What must stay true: the rule is that of penstock_local_device in C; a process that does not know its number is told so
only where the launcher's word for it is no number, because one that was started alone has none.
"""

from __future__ import annotations

import operator
import os

from penstock import _core
from penstock._error import Error

# What launchers tell a process, of its number among those of its machine. Slurm's and torchrun's come last: ranks that
# mpirun starts inherit those of the process that started mpirun.
_VARIABLES = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"),
    *("SLURM_LOCALID", "LOCAL_RANK"),
)


def local_device(local_process: int | None = None) -> str:
    """The device for a process that is so many-eth, from 0, on its machine: "cuda:N" in turn, or "host" without a GPU.

        context = penstock.Context(penstock.local_device())

    Args:
        local_process: None asks the variables of the environment that the launcher sets: OMPI_COMM_WORLD_LOCAL_RANK of
            OpenMPI, MPI_LOCALRANKID of MPICH and Intel MPI, MV2_COMM_WORLD_LOCAL_RANK of MVAPICH, SLURM_LOCALID of
            srun, LOCAL_RANK of torchrun; the first of them that is set. A process without any is number 0.
    """
    number = _told() if local_process is None else operator.index(local_process)
    if number < 0:
        raise ValueError(f"local_process is {number}; processes of a machine count from 0")
    count, _ = _core.cuda_devices()
    return f"cuda:{number % count}" if count else "host"


def _told() -> int:
    """The number that the launcher gave this process, or 0."""
    for name in _VARIABLES:
        text = os.environ.get(name)
        if text is None:
            continue
        if not (text.isascii() and text.isdigit()):
            raise Error(operation="find device", cause=f"{name} is {text!r}, which is no number", advice="unset it")
        return int(text)
    return 0
