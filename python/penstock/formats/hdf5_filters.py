"""Names of HDF5 filters, and whether this process can undo them.

Filters are undone by the HDF5 library on the host. Those that are not in it come from the package hdf5plugin, which is
loaded when the first dataset needs it. What must stay true: a filter that is not there is named in the error.
"""

from __future__ import annotations

import importlib.util

from h5py import h5p, h5z

from penstock.formats.faults import unsupported

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


def numbers_of(create: h5p.PropDCID) -> list[int]:
    return [create.get_filter(index)[0] for index in range(create.get_nfilters())]


def filters_of(create: h5p.PropDCID) -> tuple[str, ...]:
    return tuple(_NAMES.get(number, f"filter {number}") for number in numbers_of(create))


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
