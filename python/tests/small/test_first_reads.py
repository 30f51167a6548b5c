"""Small reads that come first, of chunks that are not decoded yet, and into memory of NumPy: they tell what every read
tells."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_files import DATASETS, SHAPE, find, values

import penstock
from penstock.formats.dataset import Dataset
from penstock.formats.state import FileState

h5py = pytest.importorskip("h5py")


def told(file: penstock.DataFile) -> dict[str, Any]:
    """The evidence, without what differs from one read to the next."""
    found: dict[str, Any] = dict(file.evidence())
    paths = [
        {key: share[key] for key in ("path", "bytes", "operations", "past_page_cache")} for share in found["paths"]
    ]
    return {"path": found["path"], "paths": paths, "formats": found["formats"]}


@pytest.mark.parametrize("stored", DATASETS)
@pytest.mark.parametrize("index", [3, slice(4, 5), (5, slice(1, 3)), (slice(6, 12), 2)])
def test_the_first_read_tells_what_every_read_tells(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stored: tuple[str, str | None, str], index: Any
) -> None:
    file_name, name, dtype = stored
    found = []
    for native in (True, False):
        if not native:
            monkeypatch.setattr(Dataset, "_small", lambda *_: None)
            monkeypatch.setattr(FileState, "read_part", lambda *_: None)
        with penstock.open(folder / file_name, device="host") as file:
            np.testing.assert_array_equal(np.asarray(find(file, name)[index]), values(dtype)[index])
            many = file_name == "f.npy" or name == "chunked"  # ranges: some of these have more than a small read does
            if not many:
                is_one = file_name != "x.zarr" or index != (slice(6, 12), 2)  # range of a chunk
                assert bool(file._file._tally.reads) == (native and is_one)
            found.append(told(file))
    one, other = found
    if name in ("packed", "summed", "chunked") or file_name == "f.npy" or isinstance(index, tuple):
        for each in found:  # ranges that touch or nearly do are one for a plan
            each["paths"] = None
            each["formats"] = {key: each["formats"][key] for key in ("requested_bytes", "decoders", "filled_bytes")}
    assert one == other


def test_one_read_of_a_file_makes_no_reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], FileState.small_reader
    monkeypatch.setattr(FileState, "small_reader", lambda *asked, **how: made.append(1) or make(*asked, **how))
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset = file["contiguous"]
        for count in (0, 1, 1):
            np.testing.assert_array_equal(np.asarray(dataset[3]), values()[3])
            assert len(made) == count
        assert file._file._tally.reads == 3


def test_a_chunk_is_decoded_where_it_is_read(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset, tally = file["packed"], file._file._tally
        np.testing.assert_array_equal(np.asarray(dataset[3:6, :, 4:8]), values()[3:6, :, 4:8])
        assert (tally.reads, tally.kept_reads) == (1, 0), "a whole chunk"
        assert file.evidence()["formats"]["decoders"] == {"host by libdeflate": 3 * 6 * 4 * 4}
        dataset[3, :, 4:8]
        assert (tally.reads, tally.kept_reads) == (2, 0), "which is not kept"
        dataset[4, :, 4:8]
        assert (tally.reads, tally.kept_reads) == (2, 1), "as one of which a part is read"


@pytest.mark.parametrize("decode", ["gpu", "host"])
def test_who_decodes_is_what_was_asked_for(folder: Path, decode: str) -> None:
    with penstock.open(folder / "x.h5", device="host", decode=decode) as file:
        if decode == "host":
            np.testing.assert_array_equal(np.asarray(file["packed"][1]), values()[1])
            return
        for _ in range(3):
            with pytest.raises(penstock.Error, match="on the GPU"):
                file["packed"][1]


def test_a_damaged_chunk_is_told_by_the_first_read_and_all_others(folder: Path, tmp_path: Path) -> None:
    name = tmp_path / "x.h5"
    name.write_bytes((folder / "x.h5").read_bytes())
    with penstock.open(name, device="host") as file:
        place = file["packed"].extents((0, slice(None), slice(0, 4)))[0]
    with name.open("r+b") as stream:
        stream.seek(place.offset_bytes + 2)
        stream.write(bytes(place.bytes - 2))
    with penstock.open(name, device="host") as file:
        dataset = file["packed"]
        for _ in range(3):
            with pytest.raises(penstock.Error, match=r"its chunk at \[0, 0, 0\] is damaged") as error:
                dataset[0]
            assert error.value.offset_bytes == place.offset_bytes
        np.testing.assert_array_equal(np.asarray(dataset[0, :, 8:]), values()[0, :, 8:])


def test_chunks_that_are_absent_or_skipped_a_filter_read_as_they_are(tmp_path: Path) -> None:
    content = np.arange(64, dtype="<i4").reshape(8, 8)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("x", (8, 8), "<i4", chunks=(3, 8), compression="gzip", shuffle=True, fillvalue=7)
        made[0:3] = content[0:3]
        made.id.write_direct_chunk((3, 0), zlib.compress(content[3:6].tobytes()), filter_mask=1)  # not shuffled
    expected = np.full((8, 8), 7, "<i4")
    expected[:6] = content[:6]
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        for row in (7, 4, 1, 5, 6, 2):
            np.testing.assert_array_equal(np.asarray(file["x"][row]), expected[row])
        assert file._file._tally.reads == 2, "two of the first chunk"


# -- into memory of NumPy


def test_a_small_read_fills_an_array_of_numpy(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        for name in ("contiguous", "foreign", "chunked", "packed"):
            dataset, before = file[name], file._file._tally.reads + file._file._tally.kept_reads
            for index in (2, slice(3, 5), (4, slice(0, 6, 2), slice(1, 4)), (1, 2, 3)):
                expected = values(dataset.info.dtype.typestr)[index]
                out = np.empty(np.shape(expected), dataset.dtype.dtype)
                assert dataset.read(index, out=out) is out
                np.testing.assert_array_equal(out, expected)
            more = 1 if name == "chunked" else 4  # most boxes of that one are many ranges
            assert file._file._tally.reads + file._file._tally.kept_reads >= before + more
    with penstock.open(folder / "x.h5", device="host") as file:
        file["contiguous"].read(1, out=np.empty(SHAPE[1:]))
        assert file.evidence()["paths"][0]["host_copies_bytes"] == 0, "there was no device in between"


@pytest.mark.parametrize(
    "out",
    [np.empty((6, 9)), np.empty((6, 10), "f4"), np.empty((6, 10), ">f8"), np.empty((1, 6, 10)),
     np.empty((6, 20))[:, ::2], np.broadcast_to(np.zeros(10), (6, 10))],
)  # fmt: skip
def test_memory_that_does_not_fit_is_refused_as_by_every_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, out: np.ndarray
) -> None:
    told = []
    for native in (True, False):
        if not native:
            monkeypatch.setattr(Dataset, "_small_into", lambda *_: False)
        with penstock.open(folder / "x.h5", device="host") as file:
            with pytest.raises((TypeError, ValueError, BufferError)) as error:
                file["contiguous"].read(1, out=out)
            told.append((type(error.value), str(error.value)))
    assert told[0] == told[1]
