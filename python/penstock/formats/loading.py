"""All datasets of a file or group that can be read, and why others cannot.

One that is damaged, or of a kind that Penstock does not read, must not hide the good ones. What must stay true: all are
read in one submission; only when that fails are they read one by one; nothing is left out without a warning that names
it; an error that is not of one dataset (no memory, a cancelled read, a failing device) is raised.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from penstock._arrays.array import Array
from penstock._error import Error
from penstock.formats.faults import not_loaded
from penstock.formats.reading.request import Request, request
from penstock.formats.state import FileState

# Codes of errors that are of a dataset, or of the part of the disk that it lies on.
_OF_DATASETS = {"damaged", "unsupported", "not_found", "permission_denied", "io_error", "end_of_file"}


class UnreadableWarning(UserWarning):
    """Datasets were left out, because they cannot be read."""


class Loaded(dict[str, Array]):
    """Arrays by name. `unreadable`: the Error of each dataset that could not be read; asking for one raises it."""

    def __init__(self, arrays: Mapping[str, Array], unreadable: Mapping[str, Error]) -> None:
        super().__init__(arrays)
        self.unreadable = dict(unreadable)

    def __missing__(self, name: str) -> Array:
        if name in self.unreadable:
            raise self.unreadable[name]
        raise not_loaded(name, [*self, *self.unreadable])


def load_all(file: FileState, names: Mapping[str, str], stream: Any, options: Mapping[str, Any]) -> Loaded:
    """`names`: whole names, by those that the result has. Raises Error when none can be read, and, in strict, of the
    first that cannot."""
    small = _small(file, names) if stream is None and not options else None
    if small is not None:
        return small
    wanted: dict[str, Request] = {}
    unreadable: dict[str, Error] = {}
    for name, whole in names.items():
        try:
            wanted[name] = request(file.info(whole))
        except Error as error:
            unreadable[name] = error
        except KeyError:
            unreadable[name] = _other_now(file.name, name)
    is_strict = bool(options.get("strict") or file.context._strict)
    if unreadable and (is_strict or not wanted):
        raise next(iter(unreadable.values()))
    try:
        arrays = _read(file, wanted, stream, options)
    except Error as error:
        if is_strict or error.code not in _OF_DATASETS or len(wanted) < 2:
            raise
        arrays = _read_each(file, wanted, (stream, options), unreadable)
        if not arrays:
            raise
    if unreadable:
        causes = "; ".join(f"{name} ({error.cause})" for name, error in unreadable.items())
        text = f"{file.name}: left out, because they cannot be read: {causes}. load(names=[...]) reads those you name"
        warnings.warn(text, UnreadableWarning, stacklevel=_callers_level())
    return Loaded({name: arrays[name] for name in names if name in arrays}, unreadable)


def _small(file: FileState, names: Mapping[str, str]) -> Loaded | None:
    """Small datasets that can all be read; None: it takes more to read them, or to say which cannot be."""
    try:
        arrays = file.read_whole(file.infos([*names.values()]))
    except (Error, KeyError):
        return None
    return None if arrays is None else Loaded(dict(zip(names, arrays, strict=True)), {})


def _other_now(file: str, name: str) -> Error:
    cause = "it was listed, and is not a dataset now: the file has changed, or its storage failed for a moment"
    operation = f"read dataset {name!r} of"
    return Error(code="io_error", operation=operation, file=file, cause=cause, advice="open the file again")


def _callers_level() -> int:
    """Of warn() in load_all, for the first frame outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("penstock."):
        level, frame = level + 1, frame.f_back
    return level


def _read(file: FileState, wanted: Mapping[str, Request], stream: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    results = file.start_read(list(wanted.values()), stream, options, background=False).result()
    return dict(zip(wanted, results, strict=True))


def _read_each(
    file: FileState, wanted: Mapping[str, Request], how: tuple[Any, Mapping[str, Any]], unreadable: dict[str, Error]
) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, one in wanted.items():
        try:
            arrays |= _read(file, {name: one}, *how)
        except Error as error:
            if error.code not in _OF_DATASETS:
                raise
            unreadable[name] = error
    return arrays
