"""The results files that a page is made of, and the names of their rows: A12 is line 12 of file A.

What must stay true: all are of one machine and one file system, and what is put together was measured in one way;
everything that a page states names the rows it comes from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Error
from penstock_bench.runs import stored
from penstock_bench.runs.compare import differences

Rows = list[dict[str, Any]]
FEW = 12  # rows that are named in the line; more are folded


@dataclass(frozen=True)
class Source:
    """One results file."""

    letter: str
    name: str
    digest: str  # SHA-256, its beginning
    rows: Rows


def read(paths: list[Path]) -> list[Source]:
    """Raises Error when a file cannot be read, or does not belong with the first."""
    found = []
    for number, path in enumerate(paths):
        letter = _letters(number)
        rows = [row | {"source": f"{letter}{line}"} for line, row in enumerate(stored.read(path), 1)]
        found.append(Source(letter, path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:16], rows))
    for other in found[1:]:
        _need_alike(found[0], other)
    _need_one_size(found)
    return found


def _letters(number: int) -> str:
    """A to Z, then AA and on."""
    text = chr(ord("A") + number % 26)
    return text if number < 26 else _letters(number // 26 - 1) + text


def _need_alike(first: Source, other: Source) -> None:
    unlike = [text for text in differences(first.rows, other.rows) if not text.startswith("file_bytes")]
    if unlike:
        raise Error(
            operation="report",
            file=other.name,
            cause=f"it is of another machine or file system than {first.name}: " + "; ".join(unlike),
            advice="make a page for each, or see `penstock compare`",
        )


def _need_one_size(sources: Iterable[Source]) -> None:
    """Samples of one suite are put together, so they have to be of files of one size."""
    sizes: dict[str, tuple[int, str]] = {}
    for source in sources:
        machine = next(row for row in source.rows if row["kind"] == "machine")
        known = sizes.setdefault(machine.get("suite", ""), (machine["file_bytes"], source.name))
        if known[0] != machine["file_bytes"]:
            raise Error(
                operation="report",
                file=source.name,
                cause=f"its files have {machine['file_bytes']} bytes, those of {known[1]} {known[0]}, in one suite",
                advice="give one of them, or see `penstock compare`",
            )


def names_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Names of the rows, in order, each once; none of rows that come from no file."""
    return list(dict.fromkeys(row["source"] for row in rows if "source" in row))


def spans(names: Iterable[str]) -> list[str]:
    """The names in the order of the files, with neighbouring lines put together: A12–A15."""
    found: list[tuple[str, int, int]] = []
    for letter, line in sorted({_parts(name) for name in names}, key=lambda part: (len(part[0]), *part)):
        if found and found[-1][0] == letter and found[-1][2] + 1 == line:
            found[-1] = (letter, found[-1][1], line)
        else:
            found.append((letter, line, line))
    return [f"{letter}{first}" if first == last else f"{letter}{first}–{letter}{last}" for letter, first, last in found]


def _parts(name: str) -> tuple[str, int]:
    letter = name.rstrip("0123456789")
    return letter, int(name[len(letter) :])
