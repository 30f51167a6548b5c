"""What the suite `data` compares: for each thing a call of Penstock, and the call that people make today.

Both give the elements as an array of NumPy. A pair opens its files anew for each call, or once for all, and says so in
its name. More pairs are more lines here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from penstock_bench.engine.rounds import need
from penstock_bench.suites.data import edits, large, many, packing, steps, training
from penstock_bench.suites.data.files import CHUNK_ROWS, NAME, ROW_BYTES, gzip_place, place, plain_place
from penstock_bench.suites.data.pair import Call, Pair, row_of

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run


def pairs(run: Run) -> list[Pair]:
    return [*_opening(run), *_rows(run), *_picked(run), *_gzip(run), *_whole(run), *_others(run)]


def _others(run: Run) -> list[Pair]:
    timed = (edits, steps, large, many, packing, training)
    return [pair for module in timed for pair in module.pairs(run)]


# -- open a file, read one row, close it


def _opening(run: Run) -> Iterator[Pair]:
    for format, peer, module, theirs in (
        ("HDF5", "h5py", "h5py", _h5py),
        ("netCDF-4", "netCDF4", "netCDF4", _netcdf4),
        ("netCDF classic", "SciPy", "scipy", _scipy),
        ("NPY", "numpy.load", "numpy", _memmap),
        ("safetensors", "safetensors", "safetensors", _safetensors),
        ("Zarr", "zarr", "zarr", _zarr),
    ):
        make = partial(_of_opening, run, format, theirs)
        yield Pair(f"{format}: open, a row, close", peer, make, (module,))


def _of_opening(run: Run, format: str, theirs: Callable[[Path, int], np.ndarray], _: ExitStack) -> tuple[Call, Call]:
    path, context, name = place(run, format), run.context, "data" if format == "NPY" else NAME

    def ours(turn: int) -> np.ndarray:
        with penstock.open(path, context=context) as file:
            return np.asarray(file[name][row_of(run, turn)])

    return ours, lambda turn: theirs(path, row_of(run, turn))


def _h5py(path: Path, row: int) -> np.ndarray:
    import h5py

    with h5py.File(path, "r") as file:
        return file[NAME][row]


def _netcdf4(path: Path, row: int) -> np.ndarray:
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return np.asarray(file[NAME][row])


def _scipy(path: Path, row: int) -> np.ndarray:
    import scipy.io

    with scipy.io.netcdf_file(path, "r", mmap=False) as file:
        return file.variables[NAME][row].astype("f4")


def _memmap(path: Path, row: int) -> np.ndarray:
    return np.load(path, mmap_mode="r")[row].copy()


def _safetensors(path: Path, row: int) -> np.ndarray:
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        return file.get_slice(NAME)[row]


def _zarr(path: Path, row: int) -> np.ndarray:
    import zarr

    group: Any = zarr.open_group(path, mode="r")
    return np.asarray(group[NAME][row])


# -- of open files


def _rows(run: Run) -> Iterator[Pair]:
    yield Pair("HDF5: a row", "h5py", partial(_of_open, run, place(run, "HDF5")), ("h5py",), 10)
    yield Pair("HDF5: a row into memory of NumPy", "h5py", partial(_of_out, run), ("h5py",), 10)
    yield Pair("HDF5: each eighth row of 64", "h5py", partial(_of_steps, run), ("h5py",), 10, 8 * ROW_BYTES)
    yield Pair("HDF5: by name, a row", "h5py", partial(_of_name, run), ("h5py",))
    yield Pair("Zarr: a row", "zarr", partial(_of_open_zarr, run), ("zarr",))


def _opened(run: Run, stack: ExitStack, path: Path) -> tuple[Any, Any]:
    """The dataset for Penstock, and for h5py."""
    import h5py

    ours = stack.enter_context(penstock.open(path, context=run.context))
    return ours[NAME], stack.enter_context(h5py.File(path, "r"))[NAME]


def _of_open(run: Run, path: Path, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, path)
    return lambda turn: np.asarray(ours[row_of(run, turn)]), lambda turn: theirs[row_of(run, turn)]


def _of_out(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, place(run, "HDF5"))
    out, other = np.empty(ROW_BYTES // 4, "f4"), np.empty(ROW_BYTES // 4, "f4")

    def read_direct(turn: int) -> np.ndarray:
        theirs.read_direct(other, np.s_[row_of(run, turn)])
        return other

    return lambda turn: ours.read(row_of(run, turn), out=out), read_direct


def _of_steps(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, place(run, "HDF5"))
    return lambda turn: np.asarray(ours[turn % 8 : 64 : 8]), lambda turn: theirs[turn % 8 : 64 : 8]


def _of_name(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    """The first read of a dataset of an open file: each turn asks for it by name."""
    import h5py

    ours = stack.enter_context(penstock.open(place(run, "HDF5"), context=run.context))
    theirs = stack.enter_context(h5py.File(place(run, "HDF5"), "r"))
    return lambda turn: np.asarray(ours[NAME][row_of(run, turn)]), lambda turn: theirs[NAME][row_of(run, turn)]


def _of_open_zarr(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    import zarr

    ours = stack.enter_context(penstock.open(place(run, "Zarr"), context=run.context))[NAME]
    theirs: Any = zarr.open_group(place(run, "Zarr"), mode="r")[NAME]
    return lambda turn: np.asarray(ours[row_of(run, turn)]), lambda turn: theirs[row_of(run, turn)]


# -- rows at random: an eighth of all, none twice


def _picked(run: Run) -> Iterator[Pair]:
    for name, path in (("HDF5", place(run, "HDF5")), ("HDF5 gzip", gzip_place(run))):
        make = partial(_of_picked, run, path)
        yield Pair(f"{name}: an eighth of the rows at random", "h5py", make, ("h5py",), bytes=run.bytes // 8)


def _of_picked(run: Run, path: Path, stack: ExitStack) -> tuple[Call, Call]:
    """h5py takes ascending numbers: its users sort them, and put the rows in their order again."""
    ours, theirs = _opened(run, stack, path)
    count, random = run.bytes // ROW_BYTES, np.random.default_rng(7)
    lists = [random.permutation(count)[: count // 8] for _ in range(16)]

    def sorted_first(turn: int) -> np.ndarray:
        rows, order = np.unique(lists[turn % 16], return_inverse=True)
        return theirs[rows][order]

    return lambda turn: np.asarray(ours[lists[turn % 16]]), sorted_first


# -- compressed chunks


def _gzip(run: Run) -> Iterator[Pair]:
    path, chunk = gzip_place(run), CHUNK_ROWS * ROW_BYTES
    yield Pair("HDF5 gzip: open, a chunk, close", "h5py", partial(_of_gzip, run), ("h5py",), bytes=chunk)
    yield Pair("HDF5 gzip: a row", "h5py", partial(_of_open, run, path), ("h5py",), 4)
    yield Pair("HDF5 gzip: all", "h5py", partial(_of_all, run), ("h5py",), bytes=run.bytes)


def _of_gzip(run: Run, _: ExitStack) -> tuple[Call, Call]:
    import h5py

    path, context = gzip_place(run), run.context

    def chunk_of(turn: int) -> slice:
        first = row_of(run, turn) // CHUNK_ROWS * CHUNK_ROWS
        return slice(first, first + CHUNK_ROWS)

    def ours(turn: int) -> np.ndarray:
        with penstock.open(path, context=context) as file:
            return np.asarray(file[NAME][chunk_of(turn)])

    def theirs(turn: int) -> np.ndarray:
        with h5py.File(path, "r") as file:
            return file[NAME][chunk_of(turn)]

    return ours, theirs


def _of_all(run: Run, stack: ExitStack) -> tuple[Call, Call]:
    ours, theirs = _opened(run, stack, gzip_place(run))
    return lambda _: np.asarray(ours[...]), lambda _: theirs[...]


# -- whole files


def _whole(run: Run) -> Iterator[Pair]:
    npy, plain = place(run, "NPY"), plain_place(run)
    for name, peer, path, theirs in (
        ("NPY: load", "numpy.load", npy, np.load),
        ("bytes: load", "numpy.fromfile", plain, partial(np.fromfile, dtype=np.uint8)),
    ):
        yield Pair(name, peer, partial(_of_load, run, path, theirs), bytes=run.bytes)


def _of_load(run: Run, path: Path, theirs: Callable[[Path], Any], _: ExitStack) -> tuple[Call, Call]:
    """On the device that a run is for, as a caller names it: what a context of one's own saves is no part of it."""
    device = run.context.device["name"]
    return lambda _: np.asarray(penstock.load(path, device)), lambda _: theirs(path)


def needed(pair: Pair) -> None:
    """Absent where the other library is not installed."""
    need(*pair.modules)
