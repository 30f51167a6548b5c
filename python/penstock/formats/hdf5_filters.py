"""Names of HDF5 filters, and whether this process can undo them.

Filters are undone by the HDF5 library on the host. Those that are not in it come from the package hdf5plugin, which is
loaded when the first dataset needs it. What must stay true: a filter that is not there is named in the error.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace

from h5py import h5p, h5z

from penstock.formats.faults import unsupported
from penstock.formats.model import ZLIB, Recipe

# Numbers registered with The HDF Group.
_NAMES = {
    1: "deflate",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    307: "bzip2",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32013: "zfp",
    32015: "zstd",
    32017: "sz",
    32024: "sz3",
    32026: "blosc2",
}


_SHUFFLE = 2
# A chunk of deflate is a zlib stream: 2 bytes before it, and a checksum behind.
_RECIPES = {1: ZLIB, 32015: Recipe("zstd")}


def numbers_of(create: h5p.PropDCID) -> list[int]:
    return [create.get_filter(index)[0] for index in range(create.get_nfilters())]


def filters_of(create: h5p.PropDCID) -> tuple[str, ...]:
    return tuple(_NAMES.get(number, f"filter {number}") for number in numbers_of(create))


def recipe_of(create: h5p.PropDCID) -> Recipe | str:
    """How a device undoes all of the filters; or why only the HDF5 library can."""
    numbers, shuffle = numbers_of(create), 1
    if numbers[:1] == [_SHUFFLE] and len(numbers) > 1:
        values = create.get_filter(0)[2]
        shuffle, numbers = int(values[0]) if values else 1, numbers[1:]
    if len(numbers) == 1 and numbers[0] in _RECIPES:
        return replace(_RECIPES[numbers[0]], shuffle_bytes=max(1, shuffle))
    names = ", ".join(filters_of(create)) or "none"
    return f"of HDF5 filters, [shuffle +] deflate and [shuffle +] zstd are undone on a GPU; this has {names}"


def check_available(file: str, dataset: str, create: h5p.PropDCID) -> None:
    """Raises Error naming the filters that cannot be undone here."""
    missing = [number for number in numbers_of(create) if not h5z.filter_avail(number)]
    if missing and importlib.util.find_spec("hdf5plugin") is not None:
        import hdf5plugin  # noqa: F401 - registers its filters

        missing = [number for number in missing if not h5z.filter_avail(number)]
    if missing:
        names = ", ".join(_NAMES.get(number, str(number)) for number in missing)
        advice = "pip install hdf5plugin" if max(missing) > 255 else "use an HDF5 library that has it"
        raise unsupported(file, f"this process lacks HDF5 filter {names}", advice, dataset)
