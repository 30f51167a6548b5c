"""Which format a file has, and what opens, makes or appends to it.

What the file says of itself (its first bytes) counts more than its name; the name decides for files that say nothing,
and for new ones. A file whose suffix is that of one format alone is first tried as that. What must stay true: a
format's module is imported only when a file of it is used; a library that is missing is named with the line that
installs it.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock._descriptor import read_at
from penstock._error import Error
from penstock._extras import install
from penstock.formats.faults import FOREIGN_BYTES, MATLAB5
from penstock.formats.simple.single import reading


@dataclass(frozen=True)
class Format:
    """`reader` and `writer` are "module:class" below penstock.formats. A writer takes append=True to change a file."""

    name: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str
    single: bool = False  # holds one dataset
    shares_suffix: bool = False  # files of another format are named so too


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("hdf5", (".h5", ".hdf5", ".hdf", ".he5"), "hdf5.reader:Hdf5", "hdf5.write:Hdf5Writer"),
        Format(
            "netcdf4",
            (".nc", ".nc4", ".cdf"),
            "netcdf4.reader:NetCDF4",
            "netcdf4.write:NetCDF4Writer",
            shares_suffix=True,
        ),
        Format("netcdf3", (".nc3",), "netcdf3.reader:NetCDF3", "netcdf3.write:NetCDF3Writer"),
        Format("npy", (".npy",), "simple.npy:open_npy", "simple.npy:NpyWriter", single=True),
        Format(
            "safetensors",
            (".safetensors",),
            "simple.safetensors:open_safetensors",
            "simple.safetensors:SafetensorsWriter",
        ),
        Format("zarr", (".zarr",), "zarr.reader:Zarr", "zarr.write:ZarrWriter"),
        Format("raw", (), "simple.raw:open_raw", "simple.raw:RawWriter", single=True),
    )
}
_BY_SUFFIX = {suffix: one for one in FORMATS.values() for suffix in one.suffixes}
_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = b"CDF"
_NPY = b"\x93NUMPY"
_ZARR = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
# Formats that open() does not read: their first bytes, and what does.
_OTHERS = {
    "hmat": (b"PSHMAT\r\n", "penstock.hmatrix opens it"),
    "MATLAB 5": (MATLAB5, "scipy.io.loadmat reads it"),
}
_FIRST_BYTES = 8200  # with the five first places where HDF5 may begin
_HDF5_STARTS = [0, *(512 << power for power in range(12))]  # a user block may come first


def listing() -> str:
    """Formats and their suffixes, for messages."""
    shown = [f"{one.name} ({' '.join(one.suffixes)})" for one in FORMATS.values() if one.suffixes]
    return f"{', '.join(shown)}, or raw with dtype= and shape="


def by_suffix(name: str | os.PathLike[str]) -> Format | None:
    """A slash behind the name, as shells complete those of folders, says nothing."""
    return _BY_SUFFIX.get(os.path.splitext(os.fsdecode(name).rstrip("/"))[1].lower())  # noqa: PTH122 - as file_bytes


def by_name(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def of_file(name: str) -> Format:
    """The format of an existing file or folder. Raises Error listing the formats when it is none of them."""
    named = by_suffix(name)
    if os.path.isdir(name):  # noqa: PTH112 - raises nothing, whatever the name
        if any(Path(name, mark).exists() for mark in _ZARR):
            return FORMATS["zarr"]
        raise _unknown(name, "it is a folder without the metadata of Zarr")
    found = by_content(name) or named
    if found is None:
        need_bytes(name)
        raise _unknown(name, "neither its name nor its first bytes are those of a known format")
    return found


def by_content(name: str) -> Format | None:
    """What the bytes of a regular file say."""
    with reading(name) as (descriptor, status):
        begin = read_at(descriptor, _FIRST_BYTES, 0)
        if begin.startswith(_CLASSIC) and b"\0" < begin[3:4] < b"\t":  # an unknown version is told by its reader
            return FORMATS["netcdf3"]
        if begin.startswith(_NPY):
            return FORMATS["npy"]
        for start in (start for start in _HDF5_STARTS if start < status.st_size):
            there = begin[start : start + len(_HDF5)] or read_at(descriptor, len(_HDF5), start)
            if there == _HDF5:
                return FORMATS["netcdf4"] if by_suffix(name) is FORMATS["netcdf4"] else FORMATS["hdf5"]
        if _begins_as_safetensors(begin, status.st_size) and read_at(descriptor, 1, _json_end(begin) - 1) in b"} ":
            return FORMATS["safetensors"]
    return None


def _json_end(begin: bytes) -> int:
    return 8 + int.from_bytes(begin[:8], "little")


def _begins_as_safetensors(begin: bytes, file_bytes: int) -> bool:
    """The length of a JSON object that the file holds, and its first byte."""
    return begin[8:9] == b"{" and 10 <= _json_end(begin) <= file_bytes


def content_of(name: str) -> str | None:
    """The name of the format that the bytes of a file or folder show, also of one that open() does not read."""
    if os.path.isdir(name):  # noqa: PTH112 - raises nothing, whatever the name
        return "zarr" if any(Path(name, mark).exists() for mark in _ZARR) else None
    if not os.path.isfile(name):  # noqa: PTH113 - raises nothing, whatever the name
        return None
    found = by_content(name)
    return _other_of(name) if found is None else found.name


def _other_of(name: str) -> str | None:
    with reading(name) as (descriptor, _):
        begin = read_at(descriptor, FOREIGN_BYTES, 0)
    return next((one for one, (start, _) in _OTHERS.items() if begin.startswith(start)), None)


def need_bytes(name: str) -> None:
    """Error for a file of a format that open() does not read: its bytes would be taken for what it holds."""
    known = _other_of(name)
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


def function(format: Format, use: str) -> Callable[..., Any]:
    """What reads or writes; use is "reader" or "writer". Options that the format does not have are a TypeError."""
    place = format.reader if use == "reader" else format.writer
    module, _, name = place.partition(":")
    try:
        return partial(_made, format, getattr(importlib.import_module(f"penstock.formats.{module}"), name))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "penstock":
            raise
        raise Error(
            code="unsupported",
            operation="open",
            cause=f"{format.name} files need the package {missing}, which is not installed",
            advice=install(missing),
        ) from error


def _made(format: Format, make: Callable[..., Any], name: str, **options: Any) -> Any:
    if options:
        known = inspect.signature(make).parameters
        unknown = [option for option in options if option not in known]
        if unknown:
            own = ", ".join(option for option in known if option not in _INTERNAL) or "none"
            raise TypeError(f"{format.name} files have no option {unknown[0]!r}; options of the format: {own}")
    return make(name, **options)
