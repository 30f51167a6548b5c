"""`penstock run`: an unmodified program, with libpenstock_preload.so in front of libc's reads and writes.

This process becomes the program: same number, same streams, same signals. What must stay true: a program that the
library cannot reach is refused in words, and none runs without it unnoticed.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from pathlib import Path
from typing import Annotated

import typer

from penstock import Error, _core
from penstock.cli import options, programs

_LIBRARY = "libpenstock_preload.so"


def run(
    program: Annotated[list[str], typer.Argument(help="The program and its arguments, after --.")],
    match: Annotated[
        list[str] | None,
        typer.Option("--match", metavar="GLOB", help="Work on files whose names match only; may be repeated."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a report of the files and what was done for them to FILE, as JSON."
        ),
    ] = None,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable", help="When the program closes a file that it wrote, wait until the file is on stable storage."
        ),
    ] = False,
    least: Annotated[
        str,
        typer.Option(
            "--least", metavar="SIZE", help="Work on a file after the program moved so many bytes of it in order."
        ),
    ] = "8MiB",
    whole_records: Annotated[
        bool,
        typer.Option(
            "--whole-records", help="Programs of gfortran: read records into GPU arrays without gfortran's buffer."
        ),
    ] = False,
) -> int:
    """Run PROGRAM unchanged; start its large reads and writes early, and let them use GPU memory.

    Example: penstock run --report report.json -- ./model input.nml
    """
    for glob in match or []:
        if not glob:
            cause, advice = "--match: the glob is empty, and no file has such a name", "give one, such as '*.nc'"
            raise options.refusal("run", cause, advice)
    found = programs.check(program[0])
    wanted = surroundings("") | {
        "PENSTOCK_RUN_LEAST_BYTES": str(options.size("run", "--least", least)),
        "PENSTOCK_RUN_MATCH": "\n".join(match or []),
        "PENSTOCK_RUN_DURABLE": "1" if durable else "",
    }
    if report is not None:
        wanted["PENSTOCK_RUN_REPORT"] = _new_report(report)
    if whole_records:
        wanted["GFORTRAN_UNFORMATTED_BUFFER_SIZE"] = "1"
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(found, program, _given() | wanted)
    except OSError as failure:
        raise Error(operation="run", file=found, cause=failure.strerror, advice=programs.WITHOUT) from failure


def _given() -> dict[str, str]:
    """The environment as this process was given it. Python adds LC_CTYPE where the locale is C (PEP 538), by which a
    program would take bytes for characters."""
    given = dict(os.environ)
    if given.get("LC_CTYPE") not in ("C.UTF-8", "C.utf8", "UTF-8"):
        return given
    try:
        first = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return given
    if not any(one.startswith(b"LC_CTYPE=") for one in first):
        del given["LC_CTYPE"]
    return given


def surroundings(report: str) -> dict[str, str]:
    """What the environment of a program says that is to have the library, besides options. Raises Error."""
    return {
        "LD_PRELOAD": " ".join(filter(None, [str(_library()), os.environ.get("LD_PRELOAD")])),
        "PENSTOCK_RUN_PROCESS": str(os.getpid()),
        "PENSTOCK_RUN_REPORT": report,
    }


def _library() -> Path:
    folder = Path(str(_core.__file__)).parent / "lib"
    library = (folder / _LIBRARY).resolve()
    if not library.is_file():
        raise Error(
            code="not_found",
            operation="run",
            file=str(library),
            cause="this installation has no library to load into programs",
            advice="run make build in the source tree, or pip install . there",
        )
    if any(one in str(library) for one in " :"):
        raise Error(
            code="unsupported",
            operation="run",
            file=str(library),
            cause="LD_PRELOAD takes no name with a space or a colon",
            advice="install the package in a folder without them",
        )
    return library


def _rank() -> str:
    """What tells the reports of the ranks of an MPI program apart; nothing where there is one process."""
    ranks = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
    sizes = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
    rank = next((os.environ[name] for name in ranks if name in os.environ), None)
    alone = any(os.environ.get(name) == "1" for name in sizes)
    return "" if rank is None or alone else f".rank{rank}"


def _new_report(name: str) -> str:
    """Its whole name: the program may change its folder. An older report goes, so that it is not taken for the new."""
    options.check_name("run", "--report", name)
    path = Path(name + _rank()).absolute()
    try:
        if name.endswith("/") or path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is the name of a folder")
        if path.exists() and stat.S_ISREG(path.stat().st_mode):
            path.unlink()
        path.touch()
    except OSError as failure:
        raise Error(
            operation="run",
            file=name,
            cause=f"the report cannot be written: {failure.strerror}",
            advice="give --report a file in a folder that can be written",
        ) from failure
    return str(path)
