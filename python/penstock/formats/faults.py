"""How formats say that a file is damaged, that they cannot do something, or that a name is unknown.

One wording for all formats. What must stay true: a message names the file, and the dataset where one is concerned; it
says what was found, and what can be done where something can.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock._error import Error

FOREIGN_BYTES = 64
MATLAB5 = b"MATLAB 5.0 MAT-file"
_FOREIGN = (
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself", "git lfs pull"),
    (MATLAB5, "a MATLAB 5 file, which Penstock does not read", "scipy.io.loadmat reads it"),
    (b"\x0e\x03\x13\x01", "an HDF4 file, which Penstock does not read", "h4toh5 makes an HDF5 file of it"),
    (b"\x1f\x8b", "compressed by gzip", "gunzip it first"),
    (b"PK\x03\x04", "a ZIP archive", "unpack it first"),
)
UNHARMED = "the file has its old datasets and steps"


class LinkError(Error, KeyError):
    """A link leads nowhere: in h5py that is a KeyError, which get() takes for absence."""


@contextmanager
def told(operation: str, file: str, advice: str) -> Iterator[None]:
    """What the system refuses in the block as an Error."""
    try:
        yield
    except OSError as error:
        raise Error.of(error, operation, file, advice) from error


def damaged(file: str, cause: str, dataset: str = "", advice: str = "the file is damaged") -> Error:
    """The bytes of the file contradict its format, or each other."""
    return Error(
        code="damaged",
        operation=f"read dataset {dataset!r} of" if dataset else "read the metadata of",
        file=file,
        cause=cause,
        advice=advice,
    )


def cut_short(file: str, cause: str, dataset: str = "") -> Error:
    """The file lacks bytes that it says it has; `cause` gives both numbers."""
    return damaged(file, cause, dataset, "it was cut short: copy or download it again")


def no_memory(file: str, cause: str, dataset: str) -> Error:
    """There is not enough memory for what is to be read: nothing is said of the file."""
    advice = "free memory, or read the dataset in parts"
    operation = f"read dataset {dataset!r} of" if dataset else "read"
    return Error(code="out_of_memory", operation=operation, file=file, cause=cause, advice=advice)


def foreign_of(begin: bytes) -> tuple[str, str] | None:
    """(what a file that begins so is, what to do with it), of files that Penstock does not read."""
    return next(((what, way) for start, what, way in _FOREIGN if begin.startswith(start)), None)


def foreign(file: str, format: str, begin: bytes) -> Error:
    """A file that is none of the format: `begin`, its first FOREIGN_BYTES, may say what it is."""
    if begin and not any(begin):
        return damaged(file, f"it begins with {len(begin)} zeros, as no {format} file does")
    cause = f"it is no {format} file: it begins with {begin[:8]!r}"
    advice = "look whether it is the right file; format= names another"
    known = foreign_of(begin)
    if known is not None:
        cause, advice = f"it is {known[0]}", known[1]
    if not begin:
        cause, advice = "it is empty", "copy or download it again"
    elif begin.lstrip()[:5].lower() in (b"<!doc", b"<html", b"<?xml"):
        cause, advice = "it is a web page, as a failed download leaves one", "download it again"
    return Error(code="unsupported", operation="open", file=file, cause=cause, advice=advice)


def unsupported(file: str, cause: str, advice: str = "", dataset: str = "") -> Error:
    """The file may be right, but this cannot be done with it."""
    operation = f"use dataset {dataset!r} of" if dataset else "use"
    return Error(code="unsupported", operation=operation, file=file, cause=cause, advice=advice)


def incomplete(file: str, cause: str) -> Error:
    """Data that are not there would read as fill values, which a strict read refuses."""
    advice = "put what is missing there; without strict it reads as fill values, and the evidence says so"
    return Error(code="fallback_refused", operation="read", file=file, cause=cause, advice=advice)


def refused(file: str, cause: str, advice: str = "", dataset: str = "") -> Error:
    """What was asked for when writing cannot be expressed in the format."""
    operation = f"write dataset {dataset!r} of" if dataset else "write"
    return Error(operation=operation, file=file, cause=cause, advice=advice)


def unknown(file: str, name: str, names: Iterable[str]) -> KeyError:
    """No dataset of that name; says which come closest."""
    return KeyError(f"{file} has no dataset {name!r}{_close(name, names)}")


def not_loaded(name: str, names: Iterable[str]) -> KeyError:
    """No array of that name is among those that a load returned."""
    return KeyError(f"no array {name!r} was loaded{_close(name, names)}")


def _close(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.4)
    return f"; close names: {', '.join(near)}" if near else ""


def host_alone(file: str, dataset: str, elements: str, device: str) -> Error:
    """Elements that only host memory holds, where a strict read must bring them to a GPU."""
    cause = f"its elements are {elements}, which have no fixed size and stay in host memory, not on {device}"
    advice = 'read it with device="host"; without strict it comes as an array of NumPy, and the evidence says so'
    operation = f"read dataset {dataset!r} of"
    return Error(code="fallback_refused", operation=operation, file=file, cause=cause, advice=advice)
