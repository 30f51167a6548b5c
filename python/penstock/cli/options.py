"""Reading option values: sizes, counts and names, refused with one Error that says what is valid.

What must stay true: what the command line alone shows to be wrong ends the command with 2, whoever finds it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from penstock import Error, parse_bytes, path_names
from penstock._files.publish import check_target
from penstock._sizes import MOST_BYTES

MAX_WORKERS = 512
MAX_DEPTH = 4096
CHUNK_STEP = 4096  # bytes that --chunk-bytes is a multiple of
DEVICE = re.compile(r"auto|host|cuda(:[0-9]{1,4})?")
MOST_SEED = (1 << 63) - 1
PATH_HELP = f"The path that moves the bytes: {', '.join(path_names())}."


class WrongUsage(Error):
    """The command line is wrong."""

    exit_code = 2


def size(operation: str, option: str, text: str) -> int:
    """Bytes of "4096", "64KiB", "1.5GB". Refuses negative, overflowing and non-numbers."""
    try:
        return parse_bytes(text)
    except Error as error:
        raise refusal(operation, f"{option}: {error.cause}", error.advice) from None


def count(operation: str, option: str, text: str, maximum: int) -> int:
    """A whole number from 1 to maximum."""
    return _whole(operation, option, text, (1, maximum))


def seed(operation: str, text: str) -> int:
    return _whole(operation, "--seed", text, (0, MOST_SEED))


def _whole(operation: str, option: str, text: str, bounds: tuple[int, int]) -> int:
    least, most = bounds
    if not text.isascii() or not text.isdigit() or not least <= int(text[:20]) <= most:
        cause = f"{option}: '{text}' is not a whole number from {least} to {most}"
        raise refusal(operation, cause, f"give one, or leave {option} out")
    return int(text)


def device(operation: str, option: str, text: str) -> str:
    """The name of a device as such; whether the machine has it, opening it tells."""
    if DEVICE.fullmatch(text) is None:
        raise refusal(operation, f"{option}: no device is named '{text}'", "use auto, host, cuda or cuda:N (N from 0)")
    return text


def _count_or_auto(operation: str, option: str, text: str, maximum: int) -> int:
    """As count; "auto" is 0, which leaves it to the policy."""
    return 0 if text == "auto" else count(operation, option, text, maximum)


def check_range(operation: str, offset_bytes: int, length_bytes: int) -> None:
    if offset_bytes + length_bytes > MOST_BYTES:
        raise refusal(operation, "--offset plus --bytes is more than a file can hold", "use at most 2^63-1 bytes")


def place(operation: str, option: str, text: str) -> Path:
    """A file or directory to use. An empty name, often an unset variable, would be the current directory."""
    check_name(operation, option, text)
    return Path(text)


def check_name(operation: str, option: str, text: str) -> None:
    if not text:
        raise refusal(operation, f"{option}: the name is empty", "give the name of a file or directory")


def why_not_there(directory: Path) -> str:
    """What keeps files from being made in a directory; empty when nothing does."""
    if not directory.is_dir():
        return "it is not a directory" if directory.exists() else "there is no such directory"
    if os.statvfs(directory).f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    return "" if os.access(directory, os.W_OK | os.X_OK) else "you may not write there"


def target(operation: str, text: str, sources: Iterable[Path]) -> Path:
    """A file to write with --out, which is none of those that are read. What keeps it from being written is said now,
    not when all is done."""
    found = place(operation, "--out", text)
    for source in sources:
        with suppress(OSError):
            if found.samefile(source):
                raise refusal(operation, f"--out: {text} is what is to be read", "name another file")
    check_target(found, operation, "name a file you can write with --out")
    return found


def path(operation: str, name: str) -> str:
    if name not in path_names():
        raise refusal(operation, f"--path: there is no path named '{name}'", "use one of " + ", ".join(path_names()))
    return name


def transfer(operation: str, given: dict[str, str], strict: bool) -> dict[str, Any]:
    """Options of a transfer from the texts of --path, --chunk-bytes, --workers and --depth."""
    options: dict[str, Any] = {"path": path(operation, given["path"]), "strict": strict, "full_evidence": True}
    if given["chunk_bytes"] != "auto":
        options["chunk_bytes"] = size(operation, "--chunk-bytes", given["chunk_bytes"])
        if options["chunk_bytes"] == 0:
            raise refusal(operation, "--chunk-bytes: 0 bytes move nothing", "leave it out, or use 1MiB, for example")
        if options["chunk_bytes"] % CHUNK_STEP:
            up = -(-options["chunk_bytes"] // CHUNK_STEP) * CHUNK_STEP
            cause = f"--chunk-bytes: {given['chunk_bytes']} is not a multiple of {CHUNK_STEP} bytes"
            raise refusal(operation, cause, f"use {up}, or leave it out")
    options["workers"] = _count_or_auto(operation, "--workers", given["workers"], MAX_WORKERS)
    options["depth"] = _count_or_auto(operation, "--depth", given["depth"], MAX_DEPTH)
    return options


@contextmanager
def shape_of_transfer(operation: str) -> Iterator[None]:
    """A shape that the staging memory does not hold is told by the options that gave it."""
    try:
        yield
    except Error as error:
        if error.operation != "plan":
            raise
        advice = "use a smaller --chunk-bytes, --workers or --depth"
        raise WrongUsage(operation=operation, file=error.file, cause=error.cause, advice=advice) from None


@contextmanager
def usage() -> Iterator[None]:
    """What is refused in here, the command line alone shows to be wrong, unless it is what this build lacks."""
    try:
        yield
    except Error as error:
        if error.code == "unsupported":
            raise
        told = {"operation": error.operation, "file": error.file, "cause": error.cause, "advice": error.advice}
        raise WrongUsage(code=error.code, **told) from None


def refusal(operation: str, cause: str, advice: str) -> Error:
    return WrongUsage(operation=operation, cause=cause, advice=advice)
