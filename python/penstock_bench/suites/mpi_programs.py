"""Programs that a suite builds on the spot with the site's compilers, and runs as processes of MPI.

What must stay true: when a call of this module leaves, by an error or a signal as well, all processes have ended
(children.py); what is not there is told in words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from penstock import Error
from penstock.calibration.workspace import NotPossible
from penstock_bench.suites.children import finished

LIMIT_S = 120  # of a compiler, and of a program that does nothing
ENVIRONMENT = {  # more processes than cores, and as root in a container; each MPI heeds its own
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A compiler, or a program that does nothing."""
    return finished(command, LIMIT_S, env=os.environ | ENVIRONMENT)


def starter() -> tuple[str, str]:
    """mpirun, where there is an mpicc too and it starts a program; else why not."""
    found = shutil.which("mpirun") or shutil.which("mpiexec")
    missing = [name for name, one in (("mpicc", shutil.which("mpicc")), ("mpirun", found)) if not one]
    if missing or found is None:
        return "", f"there is no {' and no '.join(missing)}"
    try:
        done = ran([found, "-n", "1", "true"])
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{found} starts no program ({error})"
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        return "", f"{found} starts no program ({words})"
    return found, ""


@dataclass(frozen=True)
class BuiltPrograms:
    """Builds and runs for a command, whose name its errors tell: `operation`."""

    operation: str

    def compile(self, command: list[str]) -> None:
        """Raises Error with the first line that the compiler says."""
        try:
            done = ran(command)
            words = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0] if done.returncode else ""
        except subprocess.TimeoutExpired:
            words = f"it took more than {LIMIT_S} s"
        if words:
            raise Error(
                operation=self.operation,
                cause=f"{Path(command[0]).name} cannot build a program: {words}",
                advice="see that it builds C or Fortran by itself",
            )

    def output(self, command: list[str], limit_s: float, scratch: Path) -> str:
        """What a command with all its processes prints. They are a session of their own, and end with this call.

        What mpirun keeps for them is in `scratch`, which goes with the run: a killed mpirun leaves it behind.
        """
        try:
            done = finished(command, limit_s, env=os.environ | ENVIRONMENT | {"TMPDIR": str(scratch)})
        except OSError as error:
            raise self.failed(f"{command[0]} does not start: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise NotPossible(f"its processes did not end within {limit_s:g} s") from None
        if done.returncode:
            raise self.failed(_words(done.stderr, done.returncode))
        return done.stdout

    def failed(self, cause: str) -> Error:
        return Error(operation=self.operation, cause=f"a program failed: {cause}", advice="see docs/bench.md")


def _words(said: str, code: int) -> str:
    """The line in which a process says what failed, else the first."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line.removeprefix("failed: ") for line in lines if line.startswith("failed: ")]
    ended = f"it was ended by signal {-code}" if code < 0 else f"exit code {code}"
    return (told or lines or [ended])[0]
