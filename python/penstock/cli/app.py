"""The subcommands, one file each, joined. Other packages add theirs: entry points of the group penstock.commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer

from penstock import Error, __version__
from penstock._extras import absent
from penstock.cli import calibrate, config, doctor, explain, hdf5_driver, hmatrix, ls, read, run, write
from penstock.cli.help import readable

app = typer.Typer(
    name="penstock",
    help="Moves bytes between files and GPU memory, and proves which path they took.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS = (
    doctor.doctor,
    ls.ls,
    read.read,
    write.write,
    explain.explain,
    calibrate.calibrate,
    config.config,
)
for _run in COMMANDS:
    app.command(_run.__name__)(_run)
# What stands behind the program's name is the program's, options too.
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("vfd-path")(hdf5_driver.vfd_path)
app.add_typer(hmatrix.app)


def _add(entry: EntryPoint) -> None:
    """A command of another package. One that cannot be loaded says so when it is called, and hinders no other."""
    try:
        app.command(entry.name)(entry.load())
    except Exception as failure:  # whatever the other package's modules raise
        missing = absent(failure, entry.name)
        cause = missing.cause if missing else f"{entry.value} cannot be loaded: {failure}"
        any_words = {"ignore_unknown_options": True, "allow_extra_args": True}
        refused = _refusing(missing or _unloadable(entry.name, cause))
        app.command(entry.name, help=f"Not available: {cause}", context_settings=any_words)(refused)


def _unloadable(name: str, cause: str) -> Error:
    return Error(operation=name, cause=cause, advice="install the package that adds it again")


def _refusing(error: Error) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


for _entry in sorted(entry_points(group="penstock.commands"), key=lambda entry: entry.name):
    _add(_entry)


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


def main_command() -> Callable[..., Any]:
    """All of it as one command."""
    return readable(typer.main.get_command(app))
