"""Names of HDF5 filters, and whether this process can undo them.

Most filters are undone on all cores, by a pipeline of the core. What it does not know is left to the HDF5 library.
Those that are not in it come from the package hdf5plugin, which is loaded when the first dataset needs it. What must
stay true: a filter that is not there is named in the error.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

from h5py import h5p, h5z

from penstock import _core
from penstock.formats.faults import unsupported
from penstock.formats.model import ZLIB, DatasetInfo, Filter, NewDataset, Recipe
from penstock.formats.packing.compression import LEVELS, level_of

# Numbers registered with The HDF Group, under the names that the tools of each use.
_NAMES = {
    1: "deflate",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    305: "lzo",
    307: "bzip2",
    32000: "lzf",
    32001: "blosc",
    32002: "mafisc",
    32003: "snappy",
    32004: "lz4",
    32008: "bitshuffle",
    32009: "spdp",
    32012: "jpeg-ls",
    32013: "zfp",
    32014: "fpzip",
    32015: "zstd",
    32016: "b3d",
    32017: "sz",
    32018: "fcidecomp",
    32019: "jpeg",
    32020: "vbz",
    32021: "fapec",
    32022: "bitgroom",
    32023: "granular-bitround",
    32024: "sz3",
    32026: "blosc2",
    32028: "sperr",
    32033: "htj2k",
}
# Those of the package hdf5plugin 7; a test compares with the package. Not all builds of it have sz, sz3 and sperr.
PLUGIN = frozenset({307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028, 32033})
_OF_HDF5 = 255  # the largest number of the library's own filters
_LZF = 32000


_SHUFFLE = 2
# A chunk of deflate is a zlib stream: 2 bytes before it, and a checksum behind.
_RECIPES = {1: ZLIB, 32015: Recipe("zstd")}


class ToldFilters:
    """Filters by the core's names, with the methods of HDF5's list of properties that tell them."""

    def __init__(self, filters: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
        self._filters = filters

    def get_nfilters(self) -> int:
        return len(self._filters)

    def get_filter(self, at: int) -> tuple[int, int, tuple[int, ...], bytes]:
        name, values = self._filters[at]
        return _NUMBER_OF[name], 0, values, b""


def numbers_of(create: h5p.PropDCID | ToldFilters) -> list[int]:
    return [create.get_filter(index)[0] for index in range(create.get_nfilters())]


def filters_of(create: h5p.PropDCID | ToldFilters) -> tuple[str, ...]:
    return tuple(_NAMES.get(number, f"filter {number}") for number in numbers_of(create))


def recipe_of(create: h5p.PropDCID | ToldFilters) -> Recipe | str:
    """How a device undoes all of the filters; or why only the HDF5 library can."""
    numbers, shuffle = numbers_of(create), 1
    if numbers[:1] == [_SHUFFLE] and len(numbers) > 1:
        values = create.get_filter(0)[2]
        shuffle, numbers = int(values[0]) if values else 1, numbers[1:]
    if len(numbers) == 1 and numbers[0] in _RECIPES:
        return replace(_RECIPES[numbers[0]], shuffle_bytes=max(1, shuffle))
    names = ", ".join(filters_of(create)) or "none"
    return f"of HDF5 filters, [shuffle +] deflate and [shuffle +] zstd are undone on a GPU; this has {names}"


# Filters that the core undoes, and its names of them.
_PIPELINE = {
    **{1: "deflate", 2: "shuffle", 3: "fletcher32", 307: "bz2", 32000: "lzf", 32001: "blosc"},
    **{32026: "blosc2", 4: "szip", 5: "nbit", 6: "scaleoffset", 32004: "hdf5-lz4", 32008: "bitshuffle", 32015: "zstd"},
}
_NUMBER_OF = {name: number for number, name in _PIPELINE.items()}
_NUMBERS = {"zstd": 32015, "lz4": 32004}
_BLOSC, _SNAPPY = 32001, 3  # value 6 of blosc: what packs inside


def pipeline_of(create: h5p.PropDCID | ToldFilters) -> tuple[Filter, ...] | str:
    """How the host's cores undo all of the filters; or why only the HDF5 library can."""
    filters = [create.get_filter(index) for index in range(create.get_nfilters())]
    others = [_NAMES.get(number, f"filter {number}") for number, _, _, _ in filters if number not in _PIPELINE]
    others += ["snappy in blosc" for number, _, values, _ in filters if number == _BLOSC and values[6:7] == (_SNAPPY,)]
    if others:
        return f"only the HDF5 library undoes {', '.join(others)}"
    return tuple(Filter(_PIPELINE[number], tuple(int(one) for one in values)) for number, _, values, _ in filters)


def told_of(create: ToldFilters) -> dict[str, Any]:
    """As a DatasetInfo tells them."""
    return {"filters": filters_of(create), "recipe": recipe_of(create), "pipeline": pipeline_of(create)}


def set_filters(create: h5p.PropDCID, new: NewDataset) -> None:
    """That chunks are to go through. Those of plugins as h5py writes them: a reader needs the plugin, we do not."""
    if new.compression is None:
        return
    if new.shuffle is not False and new.dtype.itemsize > 1:
        create.set_shuffle()
    if new.compression == "gzip":
        create.set_deflate(level_of(new))
    else:
        values = (level_of(new),) if new.compression in LEVELS else ()
        create.set_filter(_NUMBERS[new.compression], h5z.FLAG_OPTIONAL, values)


def encoder_of(info: DatasetInfo) -> tuple[Filter, ...]:
    """What its chunks go through, for an Encoder; nothing where there is none for one of them."""
    known = _core.encoded_filters()
    if isinstance(info.pipeline, str) or any(one.name not in known for one in info.pipeline):
        return ()
    usual = {"zstd": LEVELS["zstd"][0], "deflate": LEVELS["gzip"][0]}
    filters = []
    for name, values in info.pipeline:
        most = {"zstd": 22, "deflate": 9}.get(name)
        level = values[0] if most and values and 1 <= values[0] <= most else usual.get(name)
        filters.append(Filter(name, values if level is None else (level,)))
    return tuple(filters)


def check_available(file: str, dataset: str, create: h5p.PropDCID) -> None:
    """Raises Error naming the filters that cannot be undone here."""
    missing = [number for number in numbers_of(create) if not h5z.filter_avail(number)]
    has_plugin = bool(missing) and importlib.util.find_spec("hdf5plugin") is not None
    if has_plugin:
        import hdf5plugin  # noqa: F401 - registers its filters

        missing = [number for number in missing if not h5z.filter_avail(number)]
    if missing:
        names = ", ".join(_told(create, number) for number in missing)
        advice = "; ".join(dict.fromkeys(_advice(number, has_plugin) for number in missing))
        raise unsupported(file, f"this process lacks HDF5 filter {names}", advice, dataset)


def _told(create: h5p.PropDCID, number: int) -> str:
    """The name; of one that is not known here, its number and the name that its writer left in the file."""
    if number in _NAMES:
        return _NAMES[number]
    found = next(create.get_filter(at) for at in range(create.get_nfilters()) if create.get_filter(at)[0] == number)
    name = found[3].split(b"\0")[0].decode("utf-8", "replace")
    return f"{number} ({name!r})" if name else str(number)


def _advice(number: int, has_plugin: bool) -> str:
    """What has the filter: never a package that has it not."""
    if number in PLUGIN:
        return "pip install --upgrade hdf5plugin" if has_plugin else "pip install hdf5plugin"
    if number == _LZF:
        return "lzf is of h5py: pip install --upgrade h5py"
    if number <= _OF_HDF5:
        return f"use an h5py whose HDF5 library was built with {_NAMES.get(number, number)}"
    return f"no package of Python is known to have it: HDF5_PLUGIN_PATH names a folder with its plugin, number {number}"
