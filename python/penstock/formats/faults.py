"""How formats say that a file is damaged, that they cannot do something, or that a name is unknown.

One wording for all formats. What must stay true: a message names the file, and the dataset where one is concerned; it
says what was found, and what can be done where something can.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock._error import Error

kUnharmed = "the file has its old datasets and steps"


@contextmanager
def told(operation: str, file: str, advice: str) -> Iterator[None]:
    """What the system refuses in the block as an Error."""
    try:
        yield
    except OSError as error:
        raise Error.of(error, operation, file, advice) from error


def damaged(file: str, cause: str, dataset: str = "") -> Error:
    """The bytes of the file contradict its format, or each other."""
    return Error(
        code="damaged",
        operation=f"read dataset {dataset!r} of" if dataset else "read the metadata of",
        file=file,
        cause=cause,
        advice="the file is damaged or was cut short",
    )


def unsupported(file: str, cause: str, advice: str = "", dataset: str = "") -> Error:
    """The file may be right, but this cannot be done with it."""
    operation = f"use dataset {dataset!r} of" if dataset else "use"
    return Error(code="unsupported", operation=operation, file=file, cause=cause, advice=advice)


def refused(file: str, cause: str, advice: str = "", dataset: str = "") -> Error:
    """What was asked for when writing cannot be expressed in the format."""
    operation = f"write dataset {dataset!r} of" if dataset else "write"
    return Error(operation=operation, file=file, cause=cause, advice=advice)


def unknown(file: str, name: str, names: Iterable[str]) -> KeyError:
    """No dataset of that name; says which come closest."""
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.4)
    hint = f"; close names: {', '.join(near)}" if near else ""
    return KeyError(f"{file} has no dataset {name!r}{hint}")
