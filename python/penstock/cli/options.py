"""Reading option values: sizes, counts and names, refused with one Error that says what is valid."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock import Error, parse_bytes, path_names
from penstock._publish import check_target
from penstock._sizes import MOST_BYTES

MAX_WORKERS = 512
MAX_DEPTH = 4096


def size(operation: str, option: str, text: str) -> int:
    """Bytes of "4096", "64KiB", "1.5GB". Refuses negative, overflowing and non-numbers."""
    try:
        return parse_bytes(text)
    except Error as error:
        raise refusal(operation, f"{option}: {error.cause}", error.advice) from None


def count(operation: str, option: str, text: str, maximum: int) -> int:
    """A whole number from 1 to maximum."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= maximum:
        raise refusal(operation, f"{option}: '{text}' is not a number from 1 to {maximum}", "or leave it out")
    return int(text)


def _count_or_auto(operation: str, option: str, text: str, maximum: int) -> int:
    """As count; "auto" is 0, which leaves it to the policy."""
    return 0 if text == "auto" else count(operation, option, text, maximum)


def check_range(operation: str, offset_bytes: int, length_bytes: int) -> None:
    if offset_bytes + length_bytes > MOST_BYTES:
        raise refusal(operation, "--offset plus --bytes is more than a file can hold", "use at most 2^63-1 bytes")


def place(operation: str, option: str, text: str) -> Path:
    """A file or directory to use. An empty name, often a variable nobody set, would be the current directory."""
    if not text:
        raise refusal(operation, f"{option}: the name is empty", "give the name of a file or directory")
    return Path(text)


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
    options["workers"] = _count_or_auto(operation, "--workers", given["workers"], MAX_WORKERS)
    options["depth"] = _count_or_auto(operation, "--depth", given["depth"], MAX_DEPTH)
    return options


def refusal(operation: str, cause: str, advice: str) -> Error:
    return Error(operation=operation, cause=cause, advice=advice)
