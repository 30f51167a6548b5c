"""Boxes of some MiB of compressed chunks, decoded by all cores in front of the copy, without a plan and a transfer."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdf5_kit import count_transfers

import penstock
from penstock.formats.reading.kept import MOST_CHUNKS, KeptChunks

h5py = pytest.importorskip("h5py")

WHOLE = np.random.default_rng(8).integers(0, 1000, (1000, 1500)).astype("i4")  # 6 MB
CHUNKS = (100, 130)  # 50.8 KiB; the last ones reach beyond the end
BOXES = {
    "a row": np.s_[7],
    "a column": np.s_[:, 7:8],
    "a tile": np.s_[250:650, 100:900],
    "the end": np.s_[333:, 1111:],
    "all": ...,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("coded") / "x.h5"
    with h5py.File(made, "w") as file:
        file.create_dataset("gzip", data=WHOLE, chunks=CHUNKS, compression="gzip", shuffle=True)
        file.create_dataset("foreign", data=WHOLE.astype(">i4"), chunks=CHUNKS, compression="gzip")
        holes = file.create_dataset("holes", WHOLE.shape, "i4", chunks=CHUNKS, compression="gzip", fillvalue=-3)
        holes[:500] = WHOLE[:500]
        few = WHOLE[:250, :500]
        file.create_dataset("one chunk", data=few[:, :250], chunks=(250, 250), compression="gzip", shuffle=True)
        file.create_dataset("two chunks", data=few, chunks=(125, 500), compression="gzip", shuffle=True)
        file.create_dataset("side by side", data=few, chunks=(250, 250), compression="gzip", shuffle=True)
        file.create_dataset("two foreign", data=few.astype(">i4"), chunks=(125, 500), compression="gzip")
        file.create_dataset("a chunk a row", data=WHOLE, chunks=(1, WHOLE.shape[1]), compression="gzip", shuffle=True)
    long_ago = time.time() - 60  # of a file that changed just now no decoded chunk is kept
    os.utime(made, (long_ago, long_ago))
    while time.time_ns() - made.stat().st_ctime_ns < 2_100_000_000:
        time.sleep(0.1)
    return made


@pytest.mark.parametrize("name", ["gzip", "foreign"])
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_have_the_elements_at_the_first_read_and_the_second(
    path: Path, name: str, box: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = count_transfers(monkeypatch)
    with penstock.open(path, device="host") as file:
        first = file[name][box]
        out = np.zeros_like(WHOLE[box])
        file[name].read(box, out=out)
        assert np.array_equal(np.asarray(first), WHOLE[box]) and np.array_equal(out, WHOLE[box])
        told = file.evidence()
    assert not made
    assert told["formats"]["requested_bytes"] == 2 * out.nbytes
    assert set(told["paths"][0]) and told["path"] == "buffered"


def test_chunks_of_which_a_part_was_taken_are_kept(path: Path) -> None:
    with penstock.open(path, device="host") as file:
        np.asarray(file["gzip"][BOXES["a tile"]])
        before = file.evidence()
        np.asarray(file["gzip"][260:640, 140:890])
        after = file.evidence()
    assert after["paths"][0]["bytes"] == before["paths"][0]["bytes"] > 0, "the second read asks the file for nothing"


def test_chunks_are_kept_too_where_others_were_before(path: Path) -> None:
    with penstock.open(path, device="host") as file:
        np.asarray(file["gzip"][310:590, 140:800])  # nearly half of the chunks
        np.asarray(file["gzip"][BOXES["a tile"]])
        before = file.evidence()
        np.asarray(file["gzip"][BOXES["a tile"]])
        after = file.evidence()
    assert after["paths"][0]["bytes"] == before["paths"][0]["bytes"] > 0


@pytest.mark.parametrize("name", ["one chunk", "two chunks", "side by side", "two foreign"])
def test_chunks_that_are_read_whole_again_are_kept(path: Path, name: str) -> None:
    with h5py.File(path) as plain:
        wanted = plain[name][...]
    asked = []
    with penstock.open(path, device="host") as file:
        for _ in range(4):
            out = np.zeros(wanted.shape, "i4")
            file[name].read(out=out)
            assert np.array_equal(out, wanted) and np.array_equal(np.asarray(file[name][...]), wanted)
            asked.append(file.evidence()["paths"][0]["bytes"])
    assert len(set(asked)) == 1, "the second reads are the last ones of the file"


def test_chunks_that_are_read_whole_once_are_not_kept(path: Path) -> None:
    asked = []
    with penstock.open(path, device="host") as file:
        for name in ("one chunk", "two chunks", "side by side"):
            file[name][...]
            asked.append(len(file._file._mover.kept.chunks))
    assert asked == [0, 0, 0]


def test_little_is_noted_of_tiny_chunks_and_of_many_files() -> None:
    kept, chunk = KeptChunks(), np.arange(3, dtype="u1")
    numbers = [kept.kind((f"c/{number}", 0), (), 1) for number in range(MOST_CHUNKS + 1)]
    for number in numbers:
        kept.keep((number, 0, 3, 0), chunk)
    assert len(kept.chunks) == len(kept._kinds) == MOST_CHUNKS
    found = kept.find((numbers[-1], 0, 3, 0))
    assert found is not None and found.tolist() == [0, 1, 2] and not found.flags.writeable
    assert kept.find((numbers[0], 0, 3, 0)) is None
    assert kept.kind(("c/7", 0), (), 1) == numbers[7]
    assert kept.kind(("c/0", 0), (), 1) not in numbers, "the chunks of a kind that is found no more are of none"
    kept.close()
    assert not len(kept.chunks) and found.tolist() == [0, 1, 2], "what was found stays"
    kept.keep((numbers[0], 0, 3, 0), chunk)
    assert not len(kept.chunks), "by a read that was under way"


def test_what_is_not_simple_is_left_to_a_transfer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_transfers(monkeypatch)
    with penstock.open(path, device="host") as file:
        holes = np.asarray(file["holes"][400:600])
    assert made and np.array_equal(holes[:100], WHOLE[400:500]) and (holes[100:] == -3).all()


@pytest.mark.parametrize("fault", ["stream", "short file"])
def test_damage_is_told_as_by_each_read(path: Path, tmp_path: Path, fault: str) -> None:
    damaged = tmp_path / "damaged.h5"
    with h5py.File(path) as file:
        at, size = (lambda one: (one.byte_offset, one.size))(file["gzip"].id.get_chunk_info(8))
    content = bytearray(path.read_bytes())
    if fault == "stream":
        content[at + 4 : at + size] = bytes(size - 4)
    else:
        del content[at + size // 2 :]
    damaged.write_bytes(content)
    told = []
    for _ in range(2):
        with pytest.raises(penstock.Error) as raised, penstock.open(damaged, device="host") as file:
            file["gzip"][...]
        told.append(str(raised.value))
    assert told[0] == told[1] and "damaged.h5" in told[0]


def test_a_file_that_changes_is_not_read_as_it_was(path: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.h5", tmp_path / "other.h5"
    copy.write_bytes(path.read_bytes())
    with h5py.File(other, "w") as file:
        file.create_dataset("gzip", data=WHOLE + 1, chunks=CHUNKS, compression="gzip", shuffle=True)
    with penstock.open(copy, device="host") as file:
        assert np.array_equal(np.asarray(file["gzip"][BOXES["a tile"]]), WHOLE[BOXES["a tile"]])
        copy.write_bytes(other.read_bytes())
        with pytest.raises(penstock.Error, match="changed"):
            file["gzip"][BOXES["a tile"]]


ROWS = {
    "in any order": [7, 3, 999, 500, 0],
    "some named again": [5, 2, 5, 5, 900, 2],
    "from the end": np.array([-1, -1000, 4], "i4"),
    "by a mask": np.arange(len(WHOLE)) % 50 == 3,
    "in a tuple": (np.array([40, 30, 20]),),
}


@pytest.mark.parametrize("name", ["gzip", "foreign", "a chunk a row"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_have_the_elements(path: Path, name: str, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_transfers(monkeypatch)
    with penstock.open(path, device="host") as file:
        for _ in range(2):  # the second finds chunks, of which a part was taken
            first = file[name][rows]
            out = np.zeros_like(WHOLE[rows])
            file[name].read(rows, out=out)
            assert np.array_equal(np.asarray(first), WHOLE[rows]) and np.array_equal(out, WHOLE[rows])
        assert file.evidence()["formats"]["requested_bytes"] == 4 * out.nbytes
    assert not made


def test_rows_that_are_none_are_refused(path: Path) -> None:
    with penstock.open(path, device="host") as file:
        for rows in ([1, len(WHOLE)], [-len(WHOLE) - 1]):
            with pytest.raises(IndexError):
                file["gzip"][rows]
        with pytest.raises(TypeError, match="float64"):
            file["gzip"][np.array([1.5])]
        with pytest.raises(ValueError, match="shape"):
            file["gzip"].read([1, 2], out=np.zeros((3, WHOLE.shape[1]), "i4"))


def test_longer_lists_are_left_to_transfers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, most = count_transfers(monkeypatch), 128 * 1024
    values = np.random.default_rng(2).integers(0, 9, 200_000, "u1")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(20_000,), compression="gzip")
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        for count, transfers in ((most, 0), (most + 1, 1)):
            assert np.array_equal(np.asarray(file["x"][np.arange(count)]), values[:count])
            assert len(made) == transfers
