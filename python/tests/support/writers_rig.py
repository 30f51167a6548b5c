"""Every writer of Penstock, as tests of faults drive them: each puts a version of its content under one name, and stock
libraries say which version a file holds. Content of a version is wholly told by its number, so that a file of two
versions, or of a part of one, is never taken for either."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from c_abi.history_rig import CHistories

import penstock as ps

COUNT = 3000  # elements of one version: 12 kB
ROWS, COLUMNS = 1, 600  # of one append


class Broken(Exception):
    """A file is there and holds no version of its content."""


def values(version: int) -> np.ndarray:
    return np.arange(COUNT, dtype="<f4") + np.float32(version * 10_000)


def rows(version: int) -> np.ndarray:
    """What a file holds that was appended to so often."""
    return np.repeat(np.arange(version * ROWS, dtype="<f4"), COLUMNS).reshape(version * ROWS, COLUMNS)


def version_of(found: Any) -> int:
    found = np.ravel(np.asarray(found))
    if found.size != COUNT:
        raise Broken(f"{found.size} elements in place of {COUNT}")
    version = int(found[0]) // 10_000
    if not np.array_equal(found, values(version)):
        raise Broken("elements of no version, or of several")
    return version


def steps_of(found: Any) -> int:
    found = np.asarray(found)
    if found.ndim != 2 or found.shape[1] != COLUMNS or not np.array_equal(found, rows(len(found) // ROWS)):
        raise Broken(f"rows that were never appended: shape {found.shape}")
    return len(found) // ROWS


@dataclass(frozen=True)
class Writer:
    """`write(path, version, durable)` takes a file from the version before, or from none, to that one."""

    file: str
    write: Callable[[Path, int, bool], None]
    version: Callable[[Path], int]  # by a stock library; Broken, or an error of that library
    appends: bool = False

    def look(self, path: Path) -> int:
        """The version under the name, 0 where nothing has the name. Broken says why it is none."""
        if not path.exists():
            return 0
        try:
            return self.version(path)
        except Broken:
            raise
        except Exception as error:
            raise Broken(f"{type(error).__name__}: {error}") from error


def by_bytes(path: Path) -> int:
    return version_of(np.fromfile(path, "<f4"))


def by_npy(path: Path) -> int:
    return version_of(np.load(path))


def by_safetensors(path: Path) -> int:
    from safetensors.numpy import load_file

    return version_of(load_file(path)["x"])


def by_h5py(path: Path) -> int:
    import h5py

    with h5py.File(path, "r") as file:
        version = version_of(file["x"][...])
        assert "text" not in file or set(file["text"].asstr()[...]) == {f"version {version}"}
        return version


def by_netcdf(path: Path) -> int:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return version_of(file["x"][...])


def by_zarr(path: Path) -> int:
    import zarr

    return version_of(zarr.open_group(path, mode="r")["x"][...])


def steps_by_h5py(path: Path) -> int:
    import h5py

    with h5py.File(path, "r") as file:
        return steps_of(file["a"][...])


def steps_by_netcdf(path: Path) -> int:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return steps_of(file["a"][...])


def steps_by_zarr(path: Path) -> int:
    import zarr

    return steps_of(zarr.open_group(path, mode="r")["a"][...])


def steps_by_zarr_of_two(path: Path) -> int:
    """As steps_by_zarr, where a compressed variable has the same elements."""
    import zarr

    file = zarr.open_group(path, mode="r")
    assert np.array_equal(file["packed"][...], file["a"][...]), "steps of the compressed variable"
    return steps_of(file["a"][...])


def steps_by_memmap(path: Path) -> int:
    index = json.loads((path / "penstock.json").read_text())
    one = index["variables"]["a"]
    if index["steps"] == 0:
        return steps_of(np.empty((0, COLUMNS), one["dtype"]))
    return steps_of(np.memmap(path / one["file"], one["dtype"], "r", shape=(index["steps"], *one["shape"])))


def core(path_name: str) -> Callable[[Path, int, bool], None]:
    def write(path: Path, version: int, durable: bool) -> None:
        data = values(version)
        with context_by(path_name).create(path, data.nbytes, durable=durable) as file:
            file.write(data)

    return write


@functools.cache
def context_by(path_name: str) -> ps.Context:
    return ps.Context("host", profile=None, path=path_name)


def save(one: bool, **layout: Any) -> Callable[[Path, int, bool], None]:
    def write(path: Path, version: int, durable: bool) -> None:
        data = values(version)
        ps.save(path, data if one else {"x": data}, "host", durable=durable, **layout)

    return write


def made_in_parts(path: Path, version: int, durable: bool) -> None:
    """Datasets in chunks, an attribute, and a group: more structures than `save` makes."""
    data = values(version)
    with ps.create(path, device="host", durable=durable) as file:
        part = file.create_dataset("x", (COUNT,), "f4", chunk_shape=(500,))
        part[:1700] = data[:1700]
        part[1700:] = data[1700:]
        part.attrs["version"] = version
        file["group/more"] = np.arange(version % 7 + 1)


def made_chunk_by_chunk(path: Path, version: int, durable: bool) -> None:
    """Compressed chunks that are each written by one small write."""
    data = values(version)
    with ps.create(path, device="host", durable=durable) as file:
        one = file.create_dataset("x", (COUNT,), "f4", chunk_shape=(COUNT // 4,), compression="gzip")
        for start in range(0, COUNT, COUNT // 4):
            one[start : start + COUNT // 4] = data[start : start + COUNT // 4]


def rewritten(path: Path, version: int, durable: bool) -> None:
    """Compressed chunks of a file that readers know, written anew: some by a list, the others as a whole."""
    data = values(version)
    if version == 1:
        ps.save(path, {"x": data}, "host", durable=durable, **PACKED)
        return
    order = np.random.default_rng(version).permutation(COUNT)
    with ps.open(path, write=True, device="host", durable=durable) as file:
        file["x"][order[:2000]] = data[order[:2000]]
        file["x"][order[2000:]] = data[order[2000:]]


def made_of_text(path: Path, version: int, durable: bool) -> None:
    """Text of variable length, which the format's library writes, beside numbers."""
    with ps.create(path, device="host", durable=durable) as file:
        file["x"] = values(version)
        file["text"] = [f"version {version}"] * 50


def append(**layout: Any) -> Callable[[Path, int, bool], None]:
    def write(path: Path, version: int, durable: bool) -> None:
        new = rows(version)
        if version > 1:
            with ps.open(path, write=True, device="host", durable=durable) as file:
                there = len(file["a"])  # opening may have finished what a journal holds
                if there < len(new):
                    file["a"].append(new[there:])
            return
        with ps.create(path, device="host", durable=durable) as file:
            shape: dict[str, Any] = {"dimensions": ("t", "x"), "resizable": (None, COLUMNS)}
            made = file.create_dataset("a", (0, COLUMNS), "f4", **shape, **layout)
            made.append(new)

    return write


def restart(path: Path, version: int, durable: bool) -> None:
    """The next generation of a restart, whose files lie in a folder of their own."""
    if not path.exists():
        path.mkdir()
        above = os.open(path.parent, os.O_RDONLY)
        os.fsync(above)
        os.close(above)
    ps.Restart(path / "m", device="host", durable=durable).write({"x": values(version)}, attrs={"version": version})


def by_restart(path: Path) -> int:
    """Every file that has its name is whole, to h5py and to a Restart; the version of the newest."""
    import h5py

    found = []
    for one in path.glob("m.?"):
        with h5py.File(one, "r") as file:
            version = version_of(file["x"][...])
            assert file.attrs["version"] == version
            found.append((int(file["penstock"].attrs["generation"]), version))
    if not found:
        return 0
    x = np.empty(COUNT, "<f4")
    facts = ps.Restart(path / "m", device="host").read({"x": x})
    if facts.passed_over or (facts.generation, version_of(x)) != max(found):
        raise Broken(f"{facts.passed_over}; {facts.generation} of {found}")
    return version_of(x)


CHUNKED: dict[str, Any] = {"chunk_shape": (1, 250)}
PACKED: dict[str, Any] = {"chunk_shape": (1500,), "compression": "gzip"}
WRITERS = {
    "buffered": Writer("x.raw1", core("buffered"), by_bytes),
    "uring-buffered": Writer("x.raw2", core("uring-buffered"), by_bytes),
    "mmap": Writer("x.raw3", core("mmap"), by_bytes),
    "auto": Writer("x.raw4", core("auto"), by_bytes),
    "direct": Writer("x.raw5", core("direct"), by_bytes),
    "bytes": Writer("x.bin", save(True), by_bytes),
    "npy": Writer("x.npy", save(True), by_npy),
    "safetensors": Writer("x.safetensors", save(False), by_safetensors),
    "h5": Writer("x.h5", save(False), by_h5py),
    "nc4": Writer("x.nc4", save(False), by_netcdf),
    "nc3": Writer("x.nc3", save(False), by_netcdf),
    "zarr": Writer("x.zarr", save(False), by_zarr),
    "h5-parts": Writer("y.h5", made_in_parts, by_h5py),
    "zarr-parts": Writer("y.zarr", made_in_parts, by_zarr),
    "h5-packed": Writer("z.h5", save(False, **PACKED), by_h5py),
    "h5-packed-chunks": Writer("c.h5", made_chunk_by_chunk, by_h5py),
    "h5-rewritten": Writer("w.h5", rewritten, by_h5py, appends=True),
    "h5-text": Writer("t.h5", made_of_text, by_h5py),
    "nc4-text": Writer("t.nc4", made_of_text, by_netcdf),
    "zarr-text": Writer("t.zarr", made_of_text, by_zarr),
    "nc4-packed": Writer("z.nc4", save(False, **PACKED), by_netcdf),
    "zarr-packed": Writer("z.zarr", save(False, **PACKED), by_zarr),
    "h5-append": Writer("a.h5", append(**CHUNKED), steps_by_h5py, appends=True),
    "nc4-append": Writer("a.nc4", append(**CHUNKED), steps_by_netcdf, appends=True),
    "nc3-append": Writer("a.nc3", append(), steps_by_netcdf, appends=True),
    "zarr-append": Writer("a.zarr", append(**CHUNKED), steps_by_zarr, appends=True),
    "h5-packed-append": Writer("p.h5", append(**CHUNKED, compression="gzip"), steps_by_h5py, appends=True),
    "restart": Writer("r.restart", restart, by_restart, appends=True),
    "zarr-packed-append": Writer("p.zarr", append(**CHUNKED, compression="zstd"), steps_by_zarr, appends=True),
}

_histories: dict[Path, ps.History] = {}  # that are open, by file


def history_step(path: Path, version: int, durable: bool) -> None:
    """One more step of a history, which stays open until close_histories()."""
    if path not in _histories:
        format = {".zarr": "zarr", ".raw": "raw"}.get(path.suffix, "cdf5")
        _histories[path] = ps.History(path, device="host", durable=durable, format=format)
        _histories[path].define("a", ("x",), shape=(COLUMNS,))
        if format == "zarr":
            _histories[path].define("packed", ("x",), shape=(COLUMNS,), compression="gzip", shuffle=False)
    _histories[path].put("a", rows(version)[-1])
    if path.suffix == ".zarr":
        _histories[path].put("packed", rows(version)[-1])
    _histories[path].end_step(version)
    _histories[path].wait()


_shared: dict[Path, CHistories] = {}


def shared_step(path: Path, version: int, durable: bool) -> None:
    """One more step of a store of three processes."""
    if path not in _shared:
        _shared[path] = CHistories(path, 3, "zarr", durable)
        _shared[path].define("a", COLUMNS, "none")
        _shared[path].define("packed", COLUMNS, "gzip")
        _shared[path].begin()
    _shared[path].step(version, dict.fromkeys(("a", "packed"), rows(version)[-1]))


def close_histories() -> None:
    for all_open in (_histories, _shared):
        while all_open:
            all_open.popitem()[1].close()


# Writers whose file stays open between versions: a new one would begin again.
GROWING = {
    "history": Writer("history.nc", history_step, steps_by_netcdf, appends=True),
    "zarr-history": Writer("history.zarr", history_step, steps_by_zarr_of_two, appends=True),
    "zarr-shared": Writer("shared.zarr", shared_step, steps_by_zarr_of_two, appends=True),
    "raw-history": Writer("history.raw", history_step, steps_by_memmap, appends=True),
}


def left_behind(folder: Path, expected: Path | None = None) -> list[str]:
    """Names in a folder besides the one that is expected, and in that one, where it is a folder, names that are not for
    good: temporaries, journals, parts."""
    others = [one.name for one in folder.iterdir() if one != expected]
    inside = list(expected.rglob("*.penstock-*")) if expected is not None and expected.is_dir() else []
    return sorted([*others, *(str(one.relative_to(folder)) for one in inside)])


def empty(folder: Path) -> None:
    for one in folder.iterdir():
        if one.is_dir():
            shutil.rmtree(one)
        else:
            one.unlink()
