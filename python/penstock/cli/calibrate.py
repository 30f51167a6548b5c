"""`penstock calibrate`: measures what each path costs here and writes it down as a machine profile."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import Context, Error, profile_folders
from penstock._files.publish import check_target, publish
from penstock._text import bytes_text, rate_text
from penstock.cli import options, show

if TYPE_CHECKING:
    from penstock.calibration.profile import Found

LEAST_BYTES = 16 << 20
_PROFILE_ROOM = 1 << 20  # bytes: several times what the longest profile takes
_NO_FOLDER = "there is no folder for profiles: PENSTOCK_PROFILES is empty, or this user has no home"
_ADVICE = "name a file you can write with --out"


def calibrate(
    place: Annotated[str, typer.Argument(metavar="PATH", help="A directory on the file system to measure.")] = ".",
    device: Annotated[
        str, typer.Option(help="Device to measure: auto (a GPU if there is one), host, cuda:0, ...")
    ] = "auto",
    seconds: Annotated[
        str, typer.Option(help="Seconds to measure; making the test files takes additional time.")
    ] = "60",
    file_bytes: Annotated[
        str, typer.Option(help="Size of each of the two test files, removed in the end; at least 16MiB.")
    ] = "512MiB",
    out: Annotated[
        str | None,
        typer.Option("--out", help="File of the profile; by default in the folder where Penstock looks for profiles."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure the speed of each path on this machine and write the numbers to a profile.

    Path "auto" then chooses by this profile, which is valid for this machine, kernel, driver and file system only.
    The command measures direction, size, page-cache state, alignment, kind of memory and first touch.

    Example: penstock calibrate /scratch --seconds 30
    """
    from penstock.calibration.profile import Calibration, profile_text
    from penstock.calibration.workspace import Workspace

    directory = options.place("calibrate", "PATH", place)
    limit = options.count("calibrate", "--seconds", seconds, 86400)
    size = options.size("calibrate", "--file-bytes", file_bytes)
    if size < LEAST_BYTES:
        raise options.refusal("calibrate", f"--file-bytes: {file_bytes} is too small", "use at least 16MiB")
    with Context(options.device("calibrate", "--device", device), profile=None) as context:
        target = options.place("calibrate", "--out", out) if out is not None else _default_name(context, directory)
        _need_folder(target)
        _need_place(directory)
        room = Workspace(context, directory, size, named=("calibrate", "PATH"))
        with room as workspace, show.steps("calibrate") as step:
            if not json:
                made = f"two files of {bytes_text(size)} under {directory}"
                sys.stdout.write(f"at most {limit} s; {made}, removed afterwards\n")
                sys.stdout.flush()
            step(0, 0, "making the files")
            workspace.make(workspace.source)
            workspace.make(workspace.target)
            found = Calibration(context, workspace, limit, step).run()
            text = profile_text(context, directory, found)
    _publish_or_print(target, text, json)
    with Context(device, profile=target):
        pass  # what was written is understood, and of this machine
    if json:
        show.json_object({"profile": str(target), "cells": len(found.samples), "missing": found.missing})
    else:
        sys.stdout.write(_summary(found) + f"profile: {target}\n")
    return 0


def _default_name(context: Context, directory: Path) -> Path:
    """One file for each device and file system: a new calibration replaces the last."""
    folders = profile_folders()
    if not folders:
        raise Error(operation="calibrate", cause=_NO_FOLDER, advice="name a file with --out")
    from penstock.calibration.machine import mount_of

    _need_place(directory)
    number = directory.stat().st_dev
    words = (mount_of(directory)["type"], f"{os.major(number)}-{os.minor(number)}", context.device["model"])
    name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in words)
    return folders[0] / f"{name}.csv"


def _need_place(directory: Path) -> None:
    """Before anything is said or made."""
    cause = options.why_not_there(directory)
    if cause:
        advice = "name a directory that you can write to, on the file system to measure"
        raise Error(code="not_found", operation="calibrate", file=str(directory), cause=cause, advice=advice)


def _need_folder(target: Path) -> None:
    """Now rather than after a minute of measuring."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Error.of(error, "write profile", str(target), _ADVICE) from None
    check_target(target, "write profile", _ADVICE)
    free = shutil.disk_usage(target.parent).free
    if free < _PROFILE_ROOM:
        cause = f"{free} bytes are free, a profile may need {_PROFILE_ROOM}"
        raise Error(code="no_space", operation="write profile", file=str(target), cause=cause, advice=_ADVICE)


def _publish_or_print(target: Path, text: str, json: bool) -> None:
    """What was measured is not lost with the disk that was full in the end."""
    content = text.encode(errors="surrogateescape")
    try:
        publish(
            target, content, "write profile", "its text is on standard output, from its title on: keep it in a file"
        )
    except Error:
        if json:
            show.json_object({"profile": None, "text": text})
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        raise


def _summary(found: Found) -> str:
    """The fastest path by direction, state and size, runs of sizes together."""
    plain = [c for c in found.samples if c.memory == "device" and c.aligned and not (c.workers or c.chunk_bytes)]
    lines = []
    for direction in ("read", "write"):
        for cached in (True, False):
            cells = [cell for cell in plain if (cell.direction, cell.cached) == (direction, cached)]
            lines += _bands(found, cells, f"{direction} {'hot' if cached else 'cold'}")
    return "\n".join(lines + _missing(found.missing)) + "\n"


def _missing(missing: dict[str, str]) -> list[str]:
    """A line for each cause, with the paths it is of; the profile lists every one of them."""
    paths: dict[str, list[str]] = {}
    for what, cause in sorted(missing.items()):
        paths.setdefault(cause, []).append(what.split()[1])
    return [f"not measured: {', '.join(dict.fromkeys(named))}: {cause}" for cause, named in paths.items()]


def _bands(found: Found, cells: list, what: str) -> list[str]:
    lines: list[str] = []
    last = ""
    for bytes in sorted({cell.bytes for cell in cells}):
        best = min((cell for cell in cells if cell.bytes == bytes), key=found.seconds)
        rate = rate_text(bytes / found.seconds(best))
        if best.path == last:
            lines[-1] = lines[-1].split(" .. ")[0] + f" .. {bytes_text(bytes)} {rate}"
        else:
            lines.append(f"{what:10} {best.path:15} {bytes_text(bytes)} {rate}")
        last = best.path
    return lines
