"""Chunks with Fletcher-32: the HDF5 library compares each sum, of whole chunks and of the last one, which has zeros
behind its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import penstock


def written(name: Path, fields: dict[str, Any], **options: Any) -> None:
    penstock.Snapshot(name, fields, device="host", checksums=True, **options).write()


ROWS = (1, 2, 7, 8, 9, 16, 8191, 8192, 8193, 20_000)


@pytest.mark.parametrize("rows", [1, 8, 8192])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_h5py_reads_chunks_of_any_size_and_finds_their_sums_right(tmp_path: Path, rows: int, dtype: str) -> None:
    draw = np.random.default_rng(4)
    counts = [one for one in ROWS if one // rows < 3000]
    fields = {f"x{n}": draw.integers(0, 255, (n, 3)).astype(dtype) for n in counts}
    fields |= {f"line{n}": draw.integers(0, 255, n).astype(dtype) for n in counts}
    fields |= {"none": np.zeros((0, 3), dtype), "zeros": np.zeros(2 * rows + 1, dtype)}
    fields |= {"ones": np.full(2 * rows + 1, 255).astype(dtype), "one value": np.array(3, dtype)}
    written(tmp_path / "s.hdf5", fields, chunk_rows=rows)
    with h5py.File(tmp_path / "s.hdf5") as file:
        for path, array in fields.items():
            np.testing.assert_array_equal(file[path][()], array, err_msg=path)
            assert file[path].fletcher32 == (array.ndim > 0 and array.size > 0), path
            assert array.size == 0 or array.ndim == 0 or file[path].chunks == (min(rows, len(array)), *array.shape[1:])


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    name, field = tmp_path / "s.hdf5", np.arange(1000.0)
    written(name, {"x": field}, chunk_rows=300)
    with h5py.File(name) as file:
        at = file["x"].id.get_chunk_info(3).byte_offset
        assert file["x"].id.get_chunk_info(3).size == 300 * 8 + 4
    image = bytearray(name.read_bytes())
    image[at + 5] ^= 1
    name.write_bytes(image)
    with h5py.File(name) as file:
        np.testing.assert_array_equal(file["x"][:900], field[:900])
        with pytest.raises(OSError, match="[Cc]hecksum|filter|read"):
            file["x"][900:]


def test_sums_of_device_memory_are_those_of_the_host(tmp_path: Path) -> None:
    context = penstock.Context("host")
    field = np.random.default_rng(5).random(100_003).astype("f4")
    buffer = context.allocate(field.nbytes)
    field.tofile(tmp_path / "x")
    with context.open(tmp_path / "x") as file:
        file.read(buffer)
    array = penstock.Array(buffer, "float32", field.shape)
    snapshot = penstock.Snapshot(
        tmp_path / "s.hdf5", {"x": array}, memory="device", context=context, chunk_rows=8192, checksums=True
    )
    snapshot.write()
    with h5py.File(tmp_path / "s.hdf5") as file:
        np.testing.assert_array_equal(file["x"][...], field)


def test_chunks_alone_and_wrong_ones(tmp_path: Path) -> None:
    field = np.arange(20.0)
    penstock.Snapshot(tmp_path / "s.hdf5", {"x": field}, device="host", chunk_rows=8).write()
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert file["x"].chunks == (8,) and not file["x"].fletcher32
        np.testing.assert_array_equal(file["x"][...], field)
    with pytest.raises(penstock.Error, match="has checksums and no chunks"):
        written(tmp_path / "t.hdf5", {"x": field})
    with pytest.raises(ValueError, match="chunk_rows"):
        written(tmp_path / "t.hdf5", {"x": field}, chunk_rows=-1)
