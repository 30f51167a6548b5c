"""Which format a file has, and what opens, makes or appends to it.

What the file says of itself (its first bytes) counts more than its name; the name decides for files that say nothing,
and for new ones. A file whose suffix is that of one format alone is first tried as that. What must stay true: a row of
FORMATS is all that modules outside of a format's folder know of it; that folder is imported only when a file of the
format is used; a library that is missing is named with the line that installs it.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from penstock import _core
from penstock._api import Context
from penstock._error import Error
from penstock._extras import install
from penstock._files.descriptor import read_at
from penstock._text import guess
from penstock.formats.faults import FOREIGN_BYTES, MATLAB5, foreign_of
from penstock.formats.format import Format, ReadAt
from penstock.formats.model import Container
from penstock.formats.simple.single import reading

_FIRST_BYTES = 8200  # with the five first places where HDF5 may begin


def _json_end(at: ReadAt) -> int:
    return 8 + int.from_bytes(at(0, 8), "little")


def _is_safetensors(at: ReadAt, file_bytes: int) -> bool:
    """The length of a JSON object that the file holds, and its first and last byte."""
    return at(8, 1) == b"{" and 10 <= _json_end(at) <= file_bytes and at(_json_end(at) - 1, 1) in (b"}", b" ")


_HDF5_BEGINS = (b"\x89HDF\r\n\x1a\n",)
_HDF5_STARTS = (0, *(512 << power for power in range(12)))  # a user block may come first
FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(
            "hdf5",
            (".h5", ".hdf5", ".hdf", ".he5"),
            "hdf5.reader:Hdf5",
            "hdf5.write:Hdf5Writer",
            has_compression=True,
            sees_kind=True,
            begins=_HDF5_BEGINS,
            starts=_HDF5_STARTS,
            root_marks=(("_NCProperties", "netcdf4"),),
            library="HDF5",
            keeps_bytes=True,
            writes_text=True,
        ),
        Format(
            "netcdf4",
            (".nc", ".nc4", ".cdf"),
            "netcdf4.reader:NetCDF4",
            "netcdf4.write:NetCDF4Writer",
            has_compression=True,
            shares_suffix=True,
            begins=_HDF5_BEGINS,
            starts=_HDF5_STARTS,
            library="HDF5",
            keeps_bytes=True,
            writes_text=True,
            has_text=True,
        ),
        Format(
            "netcdf3",
            (".nc3",),
            "netcdf3.reader:NetCDF3",
            "netcdf3.write:NetCDF3Writer",
            begins=tuple(
                b"CDF%c" % version for version in range(1, 9)
            ),  # its reader refuses those that it does not know
            has_groups=False,
            has_text=True,
        ),
        Format(
            "npy",
            (".npy",),
            "simple.npy:open_npy",
            "simple.npy:npy_writer",
            single=True,
            sees_kind=True,
            begins=(b"\x93NUMPY",),
        ),
        Format(
            "safetensors",
            (".safetensors",),
            "simple.safetensors:open_safetensors",
            "simple.safetensors:safetensors_writer",
            sees_kind=True,
            is_begin=_is_safetensors,
            has_groups=False,
        ),
        Format(
            "zarr",
            (".zarr",),
            "zarr.reader:Zarr",
            "zarr.write:ZarrWriter",
            marks=("zarr.json", ".zgroup", ".zarray", ".zmetadata"),
            library="zlib and numcodecs",
            has_shards=True,
            has_compression=True,
            always_grows=True,
            writes_text=True,
            fill_mark="zarr.fill:fill_mark",
        ),
        Format(
            "raw-history",
            (),
            "simple.raw_history:RawHistory",
            "simple.raw_history:refuse_writing",
            marks=("penstock.json",),
            has_groups=False,
        ),
        Format("raw", (), "simple.raw:open_raw", "simple.raw:raw_writer", single=True, needs_dtype=True),
    )
}
# Those of several datasets, for type checkers: load() gives a dict.
Several = Literal["hdf5", "netcdf4", "netcdf3", "safetensors", "zarr", "raw-history"]
_BY_SUFFIX = {suffix: one for one in FORMATS.values() for suffix in one.suffixes}


_Signed = tuple[tuple[bytes, ...], tuple[int, ...], list[Format]]


def signed(formats: Mapping[str, Format]) -> list[_Signed]:
    """First bytes; where they may be, ascending; and the formats that begin so."""
    kinds = dict.fromkeys((one.begins, one.starts) for one in formats.values() if one.begins)
    return [(*kind, [one for one in formats.values() if (one.begins, one.starts) == kind]) for kind in kinds]


_SIGNED = signed(FORMATS)
BARE = (".bin", ".raw")  # suffixes of what is elements and nothing else; to open such a file needs their type
TOLD = next(one for one in FORMATS.values() if one.needs_dtype)  # the format of files whose elements a caller tells
TOLD_BY_AN_INDEX = "raw-history"  # that of folders of such files
# Formats that open() does not read: their first bytes, and what does.
_OTHERS = {
    "hmat": (b"PSHMAT\r\n", "penstock.hmatrix opens it"),
    "MATLAB 5": (MATLAB5, "scipy.io.loadmat reads it"),
}


def listing() -> str:
    """Formats and their suffixes, for messages."""
    return f"{_suffixes()}, or raw with dtype= and shape="


def _suffixes() -> str:
    return ", ".join(f"{one.name} ({' '.join(one.suffixes)})" for one in FORMATS.values() if one.suffixes)


def no_format(name: str, bare: str = "") -> ValueError:
    """Refuses a new file whose format neither its name nor `format` says. `bare`: what else is told of raw files."""
    suffix = Path(name).suffix
    cause = f"the suffix of {name} is that of no known format" if suffix else f"{name} has no suffix to say its format"
    return ValueError(
        f"{cause}: {_suffixes()}, {TOLD.name}{bare}; format= names one{guess(suffix.lower(), _BY_SUFFIX)}"
    )


def need_bare(name: str, is_array: bool) -> None:
    """ValueError for an array whose type and shape would be lost in a file that is not named as one of plain bytes."""
    if is_array and Path(name).suffix.lower() not in BARE:
        raise no_format(name, f" ({' '.join(BARE)}), which keeps neither type nor shape")


def by_suffix(name: str | os.PathLike[str]) -> Format | None:
    """A slash behind the name, as shells complete those of folders, says nothing."""
    text = name if type(name) is str else os.fsdecode(name)
    known = _BY_SUFFIX.get(text[text.rfind(".") :])
    if known is not None and text[text.rfind("/") + 1] != ".":  # as most names are, in a third of the time
        return known
    return _BY_SUFFIX.get(os.path.splitext(text.rstrip("/"))[1].lower())  # noqa: PTH122 - as file_bytes


def by_name(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}{guess(name, FORMATS)}")
    return FORMATS[name]


def of_file(name: str) -> Format:
    """The format of an existing file or folder. Raises Error listing the formats when it is none of them."""
    if os.path.isdir(name):  # noqa: PTH112 - raises nothing, whatever the name
        found = _of_folder(name)
        if found is None:
            marks = ", ".join(f"{'/'.join(one.marks)} of {one.name}" for one in FORMATS.values() if one.marks)
            raise _unknown(name, f"it is a folder without a document that tells of arrays: {marks}")
        return found
    found = by_content(name) or by_suffix(name)
    if found is None:
        need_bytes(name)
        with reading(name) as (descriptor, _):
            foreign = foreign_of(read_at(descriptor, FOREIGN_BYTES, 0))
        if foreign is not None:
            cause, advice = f"it is {foreign[0]}", foreign[1]
            raise Error(code="unsupported", operation="open", file=name, cause=cause, advice=advice)
        raise _unknown(name, "neither its name nor its first bytes are those of a known format")
    return found


def _of_folder(name: str) -> Format | None:
    """Error where the system does not let this process look into it."""
    there = lambda mark: os.path.exists(f"{name}/{mark}")  # noqa: E731, PTH110 - raises nothing
    kind = next((one for one in FORMATS.values() if any(map(there, one.marks))), None)
    if kind is None and not os.access(name, os.X_OK, effective_ids=True):
        denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        raise Error.of(denied, "open", name, "check its permissions")
    return kind


def by_content(name: str) -> Format | None:
    """What the bytes of a regular file say. Of formats that begin alike: the one its suffix names, or the first."""
    with reading(name) as (descriptor, status):
        return _by_bytes(name, descriptor, read_at(descriptor, _FIRST_BYTES, 0), status.st_size)


def _by_bytes(name: str, descriptor: int, begin: bytes, file_bytes: int) -> Format | None:
    def at(offset: int, size: int) -> bytes:
        return begin[offset : offset + size] or read_at(descriptor, size, offset)

    first, alike = file_bytes, []
    for begins, starts, formats in _SIGNED:
        start = _core.find_begin(descriptor, begins, starts, first)
        if start < first:
            first, alike = start, formats
    if not alike:  # what only looks like a format comes behind all others
        alike = [one for one in FORMATS.values() if one.is_begin is not None and one.is_begin(at, file_bytes)]
    named = by_suffix(name)
    return named if named in alike else next(iter(alike), None)


def marks(
    formats: list[tuple[tuple[bytes, ...], tuple[int, ...], list[Format]]],
) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    """What a file may have that load_plain() leaves to others, as the core takes it."""
    return (
        *((one, starts) for begins, starts, _ in formats for one in begins),
        (b"{", (8,)),  # see _is_safetensors
        *((begin[:16], (0,)) for begin, _ in _OTHERS.values()),
    )


_MARKS = marks(_SIGNED)


def load_plain(context: Context, name: str) -> _core.Buffer | None:
    """All bytes of a file that is of no known format. None: it may be of one, or a transfer must be made."""
    return None if by_suffix(name) is not None else _core.load_small(context._raw, name, _MARKS)


def is_plain(name: str) -> bool:
    """Neither its bytes nor its suffix are those of a known format. Error for one of a format that open() does not
    read."""
    if by_suffix(name) is not None:
        return False
    if not os.path.isfile(name):  # noqa: PTH113 - raises nothing
        return not os.path.isdir(name)  # noqa: PTH112 - raises nothing
    with reading(name) as (descriptor, status):
        begin = read_at(descriptor, _FIRST_BYTES, 0)
        if _by_bytes(name, descriptor, begin, status.st_size) is not None:
            return False
    _need_bytes(name, begin)
    return True


def shown_by(name: str) -> Format | None:
    """What a file or folder says of itself, whatever its name."""
    if os.path.isdir(name):  # noqa: PTH112 - raises nothing, whatever the name
        return _of_folder(name)
    return by_content(name) if os.path.isfile(name) else None  # noqa: PTH113 - raises nothing, whatever the name


def content_of(name: str) -> str | None:
    """The name of the format that the bytes of a file or folder show, also of one that open() does not read."""
    found = shown_by(name)
    if found is not None:
        return found.name
    return _other_of(name) if os.path.isfile(name) else None  # noqa: PTH113 - raises nothing, whatever the name


def _other_of(name: str) -> str | None:
    with reading(name) as (descriptor, _):
        return _other_by_bytes(read_at(descriptor, FOREIGN_BYTES, 0))


def _other_by_bytes(begin: bytes) -> str | None:
    return next((one for one, (start, _) in _OTHERS.items() if begin.startswith(start)), None)


def need_bytes(name: str) -> None:
    """Error for a file of a format that open() does not read: its bytes would be taken for what it holds."""
    with reading(name) as (descriptor, _):
        _need_bytes(name, read_at(descriptor, FOREIGN_BYTES, 0))


def _need_bytes(name: str, begin: bytes) -> None:
    known = _other_by_bytes(begin)
    if known is not None:
        advice = f"{_OTHERS[known][1]}; format='raw' with dtype= takes all its bytes as elements"
        cause = f"it is a {known} file, which Penstock does not read as arrays"
        raise Error(code="unsupported", operation="open", file=name, cause=cause, advice=advice)


def need_no_format(name: str) -> None:
    """TypeError for a file of a known format whose elements were told: its header would be taken for some of them, and
    written over."""
    named = by_suffix(name)
    known = content_of(name) or (named.name if named is not None else None)
    if known is not None:
        proper = "leave them out to open its datasets" if known in FORMATS else _OTHERS[known][1]
        raise TypeError(
            f"dtype= and shape= are for raw files, {name} is {known}: {proper}; "
            "format='raw' takes all its bytes as elements"
        )


def _unknown(name: str, cause: str) -> Error:
    return Error(
        code="unsupported",
        operation="open",
        file=name,
        cause=cause,
        advice=f"known are {listing()}; format= names one",
    )


_INTERNAL = frozenset({"self", "name", "append", "depth"})  # not for users
_OF_CALLS = ("device", "context", "durable", "write", "decode", "external")  # options that no format knows of


def function(format: Format, use: Literal["reader", "writer"], name: str = "") -> Callable[..., Any]:
    """What reads or writes; errors name the file `name`. Options that the format does not have are a TypeError."""
    try:
        return partial(_made, format, loaded(format.reader if use == "reader" else format.writer))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "penstock":
            raise
        raise Error(
            code="unsupported",
            operation="open" if use == "reader" else "write",
            file=name,
            cause=f"{format.name} files need the package {missing}, which is not installed",
            advice=install(missing),
        ) from error


def opened(format: Format, name: str, options: Mapping[str, Any], *, is_told: bool = False) -> tuple[Format, Container]:
    """The file, and its format: where neither its name nor the caller says it, a mark at its root tells formats apart
    that begin alike. Files that are named as the format's are not asked for marks."""
    container: Container = function(format, "reader", name)(name, **options)
    if not format.root_marks or is_told or by_suffix(name) is format:
        return format, container
    marked = next((FORMATS[other] for mark, other in format.root_marks if container.has_at_root(mark)), None)
    if marked is None:
        return format, container
    container.close()
    return marked, function(marked, "reader", name)(name, **options)


@cache
def loaded(place: str) -> Any:
    """What "module:name" is, below penstock.formats."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"penstock.formats.{module}"), name)


def _made(format: Format, make: Callable[..., Any], name: str, **options: Any) -> Any:
    if options:
        known = inspect.signature(make).parameters
        unknown = [option for option in options if option not in known]
        if unknown:
            own = ", ".join(option for option in known if option not in _INTERNAL) or "none"
            near = difflib.get_close_matches(unknown[0], (*_OF_CALLS, *known), 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{format.name} files have no option {unknown[0]!r}; options of the format: {own}{meant}")
    return make(name, **options)
