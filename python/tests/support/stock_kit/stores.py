"""Writes a case by the format's stock library, and reads it so: what Penstock must read.

One Store for each format. `types`, `filters` and `variants` are what the library here can write; what it lacks is left
out, and the table at the end of a run says what was covered.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
from stock_kit.cases import Case, Store

NUMBERS = ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8")
NAME = "data"


def _put(dataset: Any, case: Case) -> None:
    """All or a part of the values, by the library's own assignment."""
    if case.written == "none":
        return
    values = case.values()
    if not case.shape:
        dataset[...] = values
    elif values.size:
        part = case.written_part()
        dataset[part] = values[part]


# ---- HDF5, by h5py and hdf5plugin


def _hdf5_filters() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {
        "none": {},
        "gzip": {"compression": "gzip"},
        "shuffle+gzip": {"compression": "gzip", "shuffle": True},
        "fletcher32": {"fletcher32": True},
        "shuffle+gzip+fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "scaleoffset": {"scaleoffset": 0},
    }
    with contextlib.suppress(ImportError):
        import hdf5plugin

        plugins = ("Blosc", "Blosc2", "BZip2", "LZ4", "Bitshuffle", "Zstd")
        found |= {one.lower(): dict(getattr(hdf5plugin, one)()) for one in plugins}
    return found


def _write_hdf5(path: Path, case: Case) -> None:
    import h5py

    options = dict(_hdf5_filters()[case.filter])
    dtype = case.dtype
    if case.filter == "scaleoffset":
        if dtype.kind not in "iu":
            options = {}
        elif dtype.itemsize == 8:
            options = {"scaleoffset": 20}
    if case.chunks is not None:
        limits = tuple(None if axis in case.grows else extent for axis, extent in enumerate(case.shape))
        options |= {"chunks": case.chunks, "maxshape": limits}
    with h5py.File(path, "w", libver=case.variant) as file:
        if dtype.kind in "iuf" and case.seed % 2:
            options["fillvalue"] = 7
        _put(file.create_dataset(NAME, case.shape, dtype, **options), case)


def _read_hdf5(path: Path) -> np.ndarray:
    import h5py

    with h5py.File(path) as file:
        return np.asarray(file[NAME][()])


# ---- netCDF, by netCDF4


_NETCDF4: dict[str, dict[str, Any]] = {
    "none": {},
    "zlib": {"compression": "zlib", "shuffle": False},
    "shuffle+zlib": {"compression": "zlib"},
    "fletcher32": {"fletcher32": True},
    "zstd": {"compression": "zstd"},
    "bzip2": {"compression": "bzip2"},
    "quantized": {"compression": "zlib", "significant_digits": 3},
}


def _write_netcdf(path: Path, case: Case) -> None:
    import netCDF4

    dtype, is_classic = case.dtype, case.variant != "NETCDF4"
    options: dict[str, Any] = {}
    if not is_classic:
        options = dict(_NETCDF4[case.filter])
        if case.filter == "quantized" and dtype.kind != "f":
            options = {}
        if dtype.kind != "S" and dtype.itemsize > 1:
            options["endian"] = "big" if dtype.str[0] == ">" else "little"
        if case.chunks is not None:
            options["chunksizes"] = case.chunks
    with netCDF4.Dataset(path, "w", format=case.variant) as file:
        file.set_fill_on()
        for axis, extent in enumerate(case.shape):
            file.createDimension(f"d{axis}", None if axis in case.grows else extent)
        names = tuple(f"d{axis}" for axis in range(len(case.shape)))
        kind = "S1" if dtype.kind == "S" else dtype.newbyteorder("=") if is_classic else dtype
        variable = file.createVariable(NAME, kind, names, **options)
        file.createVariable("other", "i1" if is_classic else "i4", names[:1])
        variable.set_auto_maskandscale(False)
        variable.set_auto_chartostring(False)
        _put(variable, case)


def _read_netcdf(path: Path) -> np.ndarray:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        variable = file[NAME]
        variable.set_auto_maskandscale(False)
        variable.set_auto_chartostring(False)
        return np.asarray(variable[...])


# ---- Zarr, by zarr-python


def _zarr2_codecs(case: Case) -> dict[str, Any]:
    import numcodecs

    dtype = case.dtype
    compressors = {
        **{"blosc": numcodecs.Blosc("lz4"), "blosc-zstd": numcodecs.Blosc("zstd", shuffle=2), "zlib": numcodecs.Zlib()},
        **{"gzip": numcodecs.GZip(), "bz2": numcodecs.BZ2(), "lz4": numcodecs.LZ4(), "zstd": numcodecs.Zstd()},
    }
    filters = {"shuffle": numcodecs.Shuffle(dtype.itemsize), "crc32": numcodecs.CRC32(), "adler32": numcodecs.Adler32()}
    if dtype.kind in "iu":
        filters["delta"] = numcodecs.Delta(dtype)
    names = case.filter.split("+")
    return {
        "compressors": next((compressors[one] for one in names if one in compressors), None),
        "filters": [filters[one] for one in names if one in filters] or None,
    }


def _order(case: Case) -> tuple[int, ...]:
    return tuple(int(one) for one in np.random.default_rng(case.seed).permutation(len(case.shape)))


def _zarr3_codecs(case: Case) -> dict[str, Any]:
    from zarr import codecs

    known = {
        **{
            "gzip": codecs.GzipCodec,
            "zstd": codecs.ZstdCodec,
            "crc32c": codecs.Crc32cCodec,
            "blosc": codecs.BloscCodec,
        },
    }
    names = case.filter.split("+")
    options: dict[str, Any] = {"compressors": [known[one]() for one in names if one in known] or None}
    if "transposed" in names:
        options["filters"] = [codecs.TransposeCodec(order=_order(case))]
    if "sharded" in names and case.chunks is not None:
        options["shards"] = tuple((1 + (case.seed + axis) % 3) * one for axis, one in enumerate(case.chunks))
    return options


def _write_zarr(path: Path, case: Case) -> None:
    import zarr

    version = int(case.variant[0])
    options = _zarr2_codecs(case) if version == 2 else _zarr3_codecs(case)
    if version == 2:
        options["order"] = case.variant[1]
        options["chunk_key_encoding"] = {"name": "v2", "separator": "/" if case.seed % 2 else "."}
    root = zarr.open_group(path, mode="w", zarr_format=version)
    chunks = case.chunks or tuple(max(1, one) for one in case.shape)
    dtype = case.dtype
    fill = 7 if dtype.kind in "iuf" and case.seed % 3 == 0 else None
    array = root.create_array(NAME, shape=case.shape, chunks=chunks, dtype=dtype, fill_value=fill, **options)
    _put(array, case)


def _read_zarr(path: Path) -> np.ndarray:
    import zarr

    return np.asarray(zarr.open_group(path, mode="r")[NAME][...])


# ---- NPY, by NumPy


def _write_npy(path: Path, case: Case) -> None:
    values = case.values()
    with path.open("wb") as file:
        np.lib.format.write_array(
            file, np.asfortranarray(values) if case.variant[0] == "F" else values, (int(case.variant[1]), 0)
        )


_ZARR_TYPES = (*NUMBERS, "bool", "<c8", ">c16")
STORES = (
    Store(
        **{"format": "hdf5", "suffix": ".h5", "variants": ("earliest", "v110", "latest")},
        types=(*NUMBERS, "bool", "<c8", ">c16", "S5", "V3", "record"),
        filters=tuple(_hdf5_filters()),
        **{"write": _write_hdf5, "read": _read_hdf5},
    ),
    Store(
        **{"format": "netcdf4", "suffix": ".nc", "variants": ("NETCDF4",), "least": 1},
        types=tuple(one for one in NUMBERS if one[-2:] != "f2") + ("S1",),
        filters=tuple(_NETCDF4),
        **{"write": _write_netcdf, "read": _read_netcdf},
    ),
    Store(
        **{"format": "netcdf3", "suffix": ".nc3", "filters": ("none",), "may_grow": "first", "least": 1},
        types=("i1", "i2", "i4", "f4", "f8", "S1"),
        variants=("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"),
        **{"write": _write_netcdf, "read": _read_netcdf},
    ),
    Store(
        **{"format": "zarr2", "suffix": ".zarr", "variants": ("2C", "2F"), "may_grow": "none", "types": _ZARR_TYPES},
        filters=(
            *("none", "blosc", "blosc-zstd", "zlib", "gzip", "bz2", "lz4", "zstd", "shuffle+zlib"),
            *("delta+zstd", "crc32", "adler32+lz4"),
        ),
        **{"write": _write_zarr, "read": _read_zarr},
    ),
    Store(
        **{"format": "zarr3", "suffix": ".zarr", "variants": ("3",), "may_grow": "none", "types": _ZARR_TYPES},
        filters=(
            *("none", "gzip", "zstd", "blosc", "crc32c", "zstd+crc32c", "transposed", "transposed+gzip", "sharded"),
            *("sharded+zstd", "sharded+transposed+blosc"),
        ),
        **{"write": _write_zarr, "read": _read_zarr},
    ),
    Store(
        **{
            "format": "npy",
            "suffix": ".npy",
            "variants": ("C1", "C2", "C3", "F1", "F2"),
            "filters": ("none",),
            "may_grow": "none",
        },
        types=(*NUMBERS, "bool", "<c8", ">c16", "S5", "<U3", ">U3", "V3", "<M8[ns]", "<m8[s]", "record"),
        **{"write": _write_npy, "read": np.load},
    ),
)
