"""The command `penstock`. One file a subcommand; this one joins them and turns every failure into one line on stderr.

Exit codes: 0 all was done as asked; 1 it was not; 2 the command line is wrong; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any

import typer

from penstock import Error, __version__
from penstock.cli import bench, doctor, read, report, write

app = typer.Typer(
    name="penstock",
    help="Moves bytes between files and GPU memory, and proves which path they took.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Terminated(KeyboardInterrupt):
    """SIGTERM, treated like Ctrl-C so that everything is cleaned up."""


class Stopped(Exception):
    """An interrupt on its way past typer, which would answer it without a word."""

    def __init__(self, word: str, code: int) -> None:
        super().__init__(word)
        self.code = code


def _command(run: Callable[..., int]) -> None:
    @functools.wraps(run)
    def guarded(*arguments: Any, **options: Any) -> int:
        try:
            return run(*arguments, **options)
        except Terminated:
            raise Stopped("terminated", 143) from None
        except KeyboardInterrupt:
            raise Stopped("interrupted", 130) from None

    app.command(run.__name__)(guarded)


for _run in (doctor.doctor, read.read, write.write, bench.bench, report.report):
    _command(_run)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"penstock {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app(args=given or ["--help"], prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as failure:
        return _explain(failure)
    return code if isinstance(code, int) else 0


def _explain(failure: BaseException) -> int:
    if isinstance(failure, SystemExit):
        return failure.code if isinstance(failure.code, int) else 1
    if isinstance(failure, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be flushed there
        return 1
    text, code = _line(failure)
    sys.stderr.write("penstock: " + " ".join(text.split()) + "\n")
    return code


def _line(failure: BaseException) -> tuple[str, int]:
    """What to say of a failure, and the exit code."""
    if isinstance(failure, Stopped):
        found = (str(failure), failure.code)
    elif isinstance(failure, (KeyboardInterrupt, typer.Abort)):
        found = ("interrupted", 130)
    elif isinstance(failure, Error):
        found = (str(failure), 1)
    elif hasattr(failure, "format_message"):  # a wrong command line, found by typer
        found = (f"{failure.format_message()} See penstock --help.", int(getattr(failure, "exit_code", 2)))
    elif isinstance(failure, OSError):
        found = (f"{failure.filename or 'operating system'}: {failure.strerror or failure}", 1)
    elif isinstance(failure, MemoryError):
        found = (f"out of memory: {failure}; ask for less, or close other programs", 1)
    else:
        found = (f"internal error, please report it: {type(failure).__name__}: {failure}", 1)
    return found
