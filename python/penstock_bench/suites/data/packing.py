"""What the suite `data` compares of compressed datasets: one that is written, beside h5py and zarr-python, and one of
Zarr that is read.

Each call that writes makes the file anew, and ends when it is closed. Both write the same chunks of 1 MiB with the same
codec, level and shuffle. h5py packs one chunk after the other; zarr-python packs them in threads, so it has all cores
too, and so has zarrs, zarr-python's way through a library of Rust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import penstock
from penstock.formats.packing.compression import LEVELS
from penstock_bench.suites.data.files import NAME
from penstock_bench.suites.data.pair import Call, Pair, on_device, put_here

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

LARGEST_MIB = 64
CHUNK_ROWS, ROW_ITEMS = 256, 1024  # a chunk is 1 MiB of float32
CODECS = ("gzip", "zstd", "lz4")
ZARRS = "zarrs"


class _Format(NamedTuple):
    suffix: str
    peer: str
    modules: tuple[str, ...]
    shuffle: bool  # as people write it: Zarr's own codecs have none
    codecs: tuple[str, ...]
    write: Callable[[Path, str, np.ndarray], None]
    read: Callable[[Path], np.ndarray]


class _WrittenFile(NamedTuple):
    """What a call returns: a dataset that is in its file."""

    path: Path
    read: Callable[[Path], np.ndarray]

    def get(self) -> np.ndarray:
        """Its elements, by the stock library."""
        return self.read(self.path)


def pairs(run: Run) -> Iterator[Pair]:
    bytes = _mib(run) << 20
    for format, how in _FORMATS.items():
        for codec in how.codecs:
            make = partial(_of_writing, run, how, codec)
            yield Pair(_name(format, codec), how.peer, make, how.modules, 0.02, bytes, by_clock=True)
    for peer, modules in (("zarr", ("zarr",)), (ZARRS, ("zarr", ZARRS))):
        beside = ", zarrs" * (peer == ZARRS)
        make = partial(_of_reading, run, peer)
        yield Pair(f"Zarr zstd: all{beside}", peer, make, modules, 0.02, bytes, by_clock=True)


def names(format: str) -> list[str]:
    """Pairs that write this format."""
    return [_name(format, codec) for codec in _FORMATS[format].codecs]


def _name(format: str, codec: str) -> str:
    kind, _, beside = format.partition(", ")
    shuffled = " and shuffle" * _FORMATS[format].shuffle
    return f"{kind} {codec}{shuffled}: written{', ' * bool(beside)}{beside}"


def _mib(run: Run) -> int:
    return min(LARGEST_MIB, int(run.settings.get("large_mib", 1)))


def _values(run: Run) -> np.ndarray:
    """A smooth field with noise, as fields of a simulation are."""
    rows = _mib(run) * CHUNK_ROWS
    y, x = np.ogrid[:rows, :ROW_ITEMS]
    smooth = 280 + 20 * np.sin(x / 40) * np.cos(y / 30)
    return (smooth + np.random.default_rng(5).normal(0, 0.1, smooth.shape)).astype("f4")


def _of_writing(run: Run, how: _Format, codec: str, stack: ExitStack) -> tuple[Call, Call]:
    fields = [_values(run), _values(run)[::-1].copy()]
    given = [on_device(run, field) for field in fields]
    ours, theirs = (run.workspace.directory / f"{whose}-packed.{how.suffix}" for whose in ("ours", "theirs"))
    layout: Any = {"compression": codec, "chunk_shape": (CHUNK_ROWS, ROW_ITEMS), "shuffle": how.shuffle}

    def write(turn: int) -> _WrittenFile:
        with penstock.create(ours, context=run.context) as file:
            file.create_dataset(NAME, fields[0].shape, "float32", **layout)[...] = given[turn % 2]
        return _WrittenFile(ours, how.read)

    def write_stock(turn: int) -> _WrittenFile:
        how.write(theirs, codec, fields[turn % 2] if run.emulated else given[turn % 2].get())
        return _WrittenFile(theirs, how.read)

    return write, write_stock


def _write_hdf5(path: Path, codec: str, values: np.ndarray) -> None:
    import h5py
    import hdf5plugin

    packed: Any = {
        "gzip": {"compression": "gzip", "compression_opts": LEVELS["gzip"][0]},
        "zstd": hdf5plugin.Zstd(LEVELS["zstd"][0]),
        "lz4": hdf5plugin.LZ4(),
    }[codec]
    with h5py.File(path, "w") as file:
        file.create_dataset(NAME, data=values, chunks=(CHUNK_ROWS, ROW_ITEMS), shuffle=True, **packed)


def _read_hdf5(path: Path) -> np.ndarray:
    import h5py
    import hdf5plugin  # noqa: F401 - zstd and lz4

    with h5py.File(path, "r") as file:
        return file[NAME][...]


def _of_reading(run: Run, peer: str, stack: ExitStack) -> tuple[Call, Call]:
    """Reads a file that zarr-python wrote, and that stays open."""
    import zarr

    path = run.workspace.directory / f"read-{peer}.zarr"
    _write_zarr(path, "zstd", _values(run))
    ours = stack.enter_context(penstock.open(path, context=run.context))[NAME]
    with _pipeline(peer):
        theirs: Any = zarr.open_group(path, mode="r")[NAME]
    read = put_here(run, lambda _: np.asarray(theirs[...]))
    return lambda _: ours[...], read


def _pipeline(peer: str) -> Any:
    """While it lasts arrays of zarr-python are opened with the codecs of zarrs, or with its own."""
    import zarr

    return zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}) if peer == ZARRS else nullcontext()


def _write_by_zarrs(path: Path, codec: str, values: np.ndarray) -> None:
    with _pipeline(ZARRS):
        _write_zarr(path, codec, values)


def _write_zarr(path: Path, codec: str, values: np.ndarray) -> None:
    import numcodecs.zarr3
    import zarr
    from zarr.codecs import GzipCodec, ZstdCodec

    made: dict[str, Callable[[], Any]] = {
        "gzip": lambda: GzipCodec(level=LEVELS["gzip"][0]),
        "zstd": lambda: ZstdCodec(level=LEVELS["zstd"][0]),
        "lz4": lambda: numcodecs.zarr3.LZ4(),
    }
    group = zarr.open_group(path, mode="w")
    chunks = (CHUNK_ROWS, ROW_ITEMS)
    array: Any = group.create_array(NAME, shape=values.shape, dtype="f4", chunks=chunks, compressors=made[codec]())
    array[...] = values


def _read_zarr(path: Path) -> np.ndarray:
    import zarr

    group: Any = zarr.open_group(path, mode="r")
    return np.asarray(group[NAME][...])


_FORMATS = {
    "HDF5": _Format("h5", "h5py", ("h5py", "hdf5plugin"), True, CODECS, _write_hdf5, _read_hdf5),
    "Zarr": _Format("zarr", "zarr", ("zarr", "numcodecs"), False, CODECS, _write_zarr, _read_zarr),
    "Zarr, zarrs": _Format(
        "zarr", ZARRS, ("zarr", "numcodecs", ZARRS), False, ("gzip", "zstd"), _write_by_zarrs, _read_zarr
    ),
}
