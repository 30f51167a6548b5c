"""The subcommands, one file each, joined."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli import (
    bench,
    calibrate,
    compare,
    doctor,
    explain,
    export,
    gdsio,
    h5bench,
    hmatrix,
    read,
    report,
    write,
)

app = typer.Typer(
    name="penstock",
    help="Moves bytes between files and GPU memory, and proves which path they took.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS = (
    doctor.doctor,
    read.read,
    write.write,
    explain.explain,
    calibrate.calibrate,
    bench.bench,
    h5bench.h5bench,
    report.report,
    compare.compare,
    export.export,
    gdsio.gdsio,
)
for _run in COMMANDS:
    app.command(_run.__name__)(_run)
app.add_typer(hmatrix.app)


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
