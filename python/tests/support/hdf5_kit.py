"""Helpers of the HDF5 tests: reading through a container's tables with os.pread alone, stock tools, and compressed
chunks for reads that make no transfer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.formats.model import Box, Container, Writer
from penstock.formats.state import FileState

DEBIAN = {"h5dump": "hdf5-tools", "ncdump": "netcdf-bin"}


def whole(shape: tuple[int, ...]) -> Box:
    return Box((0,) * len(shape), tuple(shape))


def fetch(container: Container, name: str, box: Box | None = None) -> bytes:
    """The box in C order, as stored, by pread of the rows and by `decode` of encoded ones."""
    info = container.info(name)
    box = box or whole(info.shape)
    counts = [high - low for low, high in zip(box.start, box.stop, strict=True)]
    item = np.dtype((np.void, info.dtype.itemsize))
    out = np.full(counts, np.frombuffer(info.fill or bytes(item.itemsize), item)[0], item)
    table = container.table(name, box)
    for row, origin in enumerate(table.origin.tolist()):
        low = [max(a, b) for a, b in zip(origin, box.start, strict=True)]
        high = [min(a + c, b, s) for a, c, b, s in zip(origin, info.chunk_shape, box.stop, info.shape, strict=True)]
        place = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, box.start, strict=True))
        if table.encoded[row]:
            part = container.decode(name, Box(tuple(low), tuple(high)))
            out[place] = np.frombuffer(part, item).reshape(out[place].shape)
            continue
        chunk = pread(table.files[table.file_index[row]], int(table.offset_bytes[row]), int(table.bytes[row]))
        inside = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, origin, strict=True))
        out[place] = np.frombuffer(chunk, item)[: np.prod(info.chunk_shape, dtype=int)].reshape(info.chunk_shape)[
            inside
        ]
    return out.tobytes()


def pread(file: str, offset: int, size: int) -> bytes:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        found = os.pread(descriptor, size, offset)
        assert len(found) == size
        return found
    finally:
        os.close(descriptor)


def debian_tool(name: str) -> str:
    """A tool of the distribution, of an older HDF5 than Python packages bring. Must be there for root."""
    found = shutil.which(name)
    if found is None and os.getuid() != 0:
        pytest.skip(f"no {name}; `tools/setup.sh test` installs {DEBIAN[name]}")
    if not found and os.environ.get("PENSTOCK_TESTS_WITHOUT_STOCK_TOOLS"):  # a bare GPU host, where nothing installs
        pytest.skip(f"{name} is not on this host")
    assert found, f"{name} is missing: run tools/setup.sh test"
    return found


def run_tool(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def equal(got: bytes, expected: Any) -> None:
    """`expected` is what h5py or NumPy gives, in the stored byte order."""
    assert got == np.ascontiguousarray(expected).tobytes()


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """int32 values that tell where they belong, whatever the shape grows to."""
    values = np.zeros(shape, np.int64)
    for axis, index in enumerate(np.indices(shape)):
        values = (values * 1009 + index * (axis + 1)) % 1000003
    return values.astype("<i4")


def put(writer: Writer, name: str, before: tuple[int, ...] | None = None) -> None:
    """Writes numbered() into all chunks of the dataset that reach beyond the shape `before`."""
    info = writer.info(name)
    table, values = writer.table(name, whole(info.shape)), numbered(info.shape)
    kind = np.dtype(info.dtype)
    for row, origin in enumerate(table.origin.tolist()):
        stop = [at + size for at, size in zip(origin, info.chunk_shape, strict=True)]
        if before is not None and all(high <= old for high, old in zip(stop, before, strict=True)):
            continue
        part = values[tuple(slice(*bounds) for bounds in zip(origin, stop, strict=True))]
        chunk = np.full(info.chunk_shape, np.frombuffer(info.fill or bytes(kind.itemsize), kind)[0])
        chunk[tuple(slice(0, count) for count in part.shape)] = part
        pwrite(table.files[table.file_index[row]], int(table.offset_bytes[row]), chunk.tobytes())


def pwrite(file: str, offset: int, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        assert os.pwrite(descriptor, content, offset) == len(content)
    finally:
        os.close(descriptor)


def with_filter(path: Path, *numbers: int) -> None:
    """A chunk that claims to have gone through the filters; they are optional when written, so need not be there."""
    import h5py
    from h5py import h5d, h5p, h5s, h5t, h5z

    with h5py.File(path, "w") as file:
        create = h5p.create(h5p.DATASET_CREATE)
        create.set_chunk((4,))
        for number in numbers:
            create.set_filter(number, h5z.FLAG_OPTIONAL)
        dataset = h5d.create(file.id, b"d", h5t.IEEE_F64LE, h5s.create_simple((4,)), create)
        dataset.write_direct_chunk((0,), np.arange(4.0).tobytes())


CODED = np.random.default_rng(8).integers(0, 1000, (400, 1500)).astype("i4")  # 2.4 MB
CODED_NAMES = ("gzip", "foreign", "a chunk a row")
CODED_SELECTIONS: dict[str, Any] = {
    "an element": np.s_[7, 8],
    "a row": np.s_[7],
    "a column": np.s_[:, 7:8],
    "a tile": np.s_[150:350, 100:900],
    "all": ...,
    "rows": [399, 3, 200, 3, 77],
    "many rows": np.random.default_rng(2).permutation(400),
    "a mask": np.arange(400) % 3 == 1,
}


def write_coded(path: Path) -> Path:
    """A file whose datasets CODED_NAMES have CODED."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("gzip", data=CODED, chunks=(64, 130), compression="gzip", shuffle=True)
        file.create_dataset("foreign", data=CODED.astype(">i4"), chunks=(64, 130), compression="gzip")
        file.create_dataset("a chunk a row", data=CODED, chunks=(1, CODED.shape[1]), compression="gzip")
    return path


def count_transfers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each transfer that is begun from here on."""
    made: list[str] = []
    usual = FileState.start_read

    def counted(self: FileState, *given: Any, **options: Any) -> Any:
        made.append("read")
        return usual(self, *given, **options)

    monkeypatch.setattr(FileState, "start_read", counted)
    return made
