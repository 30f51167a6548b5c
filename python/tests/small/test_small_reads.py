"""Small reads of datasets: the values, errors and evidence of every other read, whoever makes them."""

from __future__ import annotations

import os
import pickle
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from places import examples
from small_files import DATASETS, SHAPE, find, values

import penstock
from penstock import _core
from penstock._arrays.dtype import DType
from penstock._shared import shared_context
from penstock.formats.described import Described
from penstock.formats.model import ChunkTable, DatasetInfo, Watch
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.small import Readers

h5py = pytest.importorskip("h5py")


def parts(extent: int) -> st.SearchStrategy[Any]:
    ends = st.none() | st.integers(-extent - 2, extent + 2)
    steps = st.sampled_from([None, 1, 1, 1, 2, -1])
    numbers = st.integers(-extent, extent - 1)
    return numbers | numbers.map(np.int64) | numbers.map(np.array) | st.builds(slice, ends, ends, steps)


@st.composite
def indices(draw: st.DrawFn) -> Any:
    chosen = [draw(parts(extent)) for extent in SHAPE]
    count = draw(st.integers(0, len(SHAPE)))
    index: tuple[Any, ...] = tuple(chosen[:count])
    if draw(st.booleans()):  # the rest of the dimensions stands where the Ellipsis does
        behind = draw(st.integers(0, count))
        index = (*chosen[: count - behind], ..., *chosen[len(SHAPE) - behind :])
    return index[0] if len(index) == 1 and draw(st.booleans()) else index


@pytest.mark.parametrize(("file_name", "name", "dtype"), DATASETS)
def test_reads_are_as_numpy_indexes(folder: Path, file_name: str, name: str | None, dtype: str) -> None:
    with penstock.open(folder / file_name, device="host") as file:
        dataset, whole = find(file, name), values(dtype)

        @settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
        @given(indices())
        def check(index: Any) -> None:
            found = dataset[index]
            expected = whole[index]
            assert found.shape == expected.shape
            assert found.dtype == dataset.dtype
            np.testing.assert_array_equal(np.asarray(found), expected)

        check()
        tally = file._file._tally
        assert tally.reads or tally.kept_reads
        assert bool(tally.kept_reads) == (name in ("packed", "summed"))


def test_missing_chunks_read_as_the_fill_value(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        expected = np.full(SHAPE, -1.0)
        expected[8:24] = values()[8:24]
        for row in range(SHAPE[0]):
            np.testing.assert_array_equal(np.asarray(file["holes"][row]), expected[row])


def test_a_chunk_that_is_shorter_than_its_elements_is_no_small_read(tmp_path: Path) -> None:
    """What reads it then is what says so."""
    name = tmp_path / "data"
    name.write_bytes(values().tobytes())
    info = DatasetInfo("x", (4, 10), DType.of("float64"), (2, 10))
    columns = (np.array([[0, 0], [2, 0]]), np.array([0, 160]), np.array([160, 152]), np.zeros(2, bool))
    table = ChunkTable((str(name),), np.zeros(2, np.int32), *columns)
    status = name.stat()

    class Watched(Described):
        def watch(self, dataset: str) -> Watch:
            return Watch(str(name), status.st_dev, status.st_ino)

    mover = Mover(shared_context("host"), lambda *_: b"")
    readers = Readers(mover.raw, _core.SmallTally(), lambda: mover)
    assert readers.reader_of(Watched("x", {"x": (info, table)}), info) == (None, True)
    whole = replace(table, bytes=np.array([160, 160]))
    assert readers.reader_of(Watched("x", {"x": (info, whole)}), info)[0] is not None


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.array])
def test_whatever_is_a_whole_number_is_an_index(opened: tuple[penstock.DataFile, penstock.Dataset], kind: Any) -> None:
    file, dataset = opened
    for number in range(3):
        np.testing.assert_array_equal(np.asarray(dataset[kind(number)]), values()[number])
    assert file._file._tally.reads == 5, "natively"


def test_evidence_counts_them_all(opened: tuple[penstock.DataFile, penstock.Dataset]) -> None:
    file, dataset = opened
    row = dataset.nbytes // SHAPE[0]
    for number in range(20):
        dataset[number]
        dataset[number, 2:4]
    found = file.evidence()
    assert found["path"] == "buffered"
    assert found["formats"]["requested_bytes"] == 22 * row + 20 * row // 3
    assert found["formats"]["range_bytes"] == found["formats"]["requested_bytes"]
    assert found["formats"]["batches"] == 42
    [share] = found["paths"]
    assert (share["bytes"], share["operations"]) == (found["formats"]["requested_bytes"], 42)
    assert share["host_copies_bytes"] == 0, "the host reads to where the bytes belong"
    assert len(found["plan"].splitlines()) == 2, "one line for each size"


def test_rows_of_chunks_that_are_kept_take_no_transfer(folder: Path) -> None:
    with penstock.open(folder / "x.h5", device="host") as file:
        dataset, tally = file["packed"], file._file._tally
        for _ in range(2):  # the first decodes; the reader is made at the second
            np.testing.assert_array_equal(np.asarray(dataset[0]), values()[0])
        before = file.evidence()["formats"]
        for row in (0, 1, 2):
            np.testing.assert_array_equal(np.asarray(dataset[row]), values()[row])
        after = file.evidence()["formats"]
        row = dataset.nbytes // SHAPE[0]
        assert tally.kept_bytes == 4 * row
        assert after["requested_bytes"] - before["requested_bytes"] == 3 * row
        assert after["decoders"]["host in an earlier read"] == 4 * row
        assert (after["range_bytes"], after["host_decoded_bytes"]) == (before["range_bytes"], row)
        assert np.asarray(dataset[3:6]).shape == (3, *SHAPE[1:])  # of chunks that are not kept
        assert tally.kept_bytes == 4 * row


@pytest.mark.parametrize("change", ["written", "touched"])
def test_kept_chunks_of_a_file_that_changed_are_not_read(folder: Path, tmp_path: Path, change: str) -> None:
    name = tmp_path / "x.h5"
    name.write_bytes((folder / "x.h5").read_bytes())
    while time.time_ns() - name.stat().st_ctime_ns < 2_100_000_000:
        time.sleep(0.1)
    with penstock.open(name, device="host") as file:
        dataset = file["packed"]
        for _ in range(3):
            dataset[0]
        assert file._file._tally.kept_reads == 2
        status = name.stat()
        if change == "written":
            with name.open("r+b") as other:
                other.write(b"x")
        os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))  # the time of the content is as it was
        np.asarray(dataset[0])  # as every read would: HDF5 files are known by that time
        assert file._file._tally.kept_reads == 2


@pytest.mark.parametrize(
    ("index", "kind"),
    [(40, IndexError), (-41, IndexError), ((0, 0, 0, 0), IndexError), ("absent", KeyError), (None, TypeError),
     (True, TypeError), (1.5, TypeError), ((..., ...), IndexError), (1 << 70, IndexError)],
)  # fmt: skip
def test_wrong_indices_are_refused_as_by_every_read(
    opened: tuple[penstock.DataFile, penstock.Dataset], folder: Path, index: Any, kind: type[Exception]
) -> None:
    _, dataset = opened
    with penstock.open(folder / "x.h5", device="host") as other, pytest.raises(kind) as first:
        other["contiguous"][index]
    with pytest.raises(kind) as later:
        dataset[index]
    assert str(first.value) == str(later.value)


def test_a_closed_file_says_so(folder: Path) -> None:
    file = penstock.open(folder / "x.h5", device="host")
    dataset = file["contiguous"]
    for _ in range(3):
        dataset[1]
    file.close()
    with pytest.raises(ValueError, match="is closed"):
        dataset[1]


def test_a_closed_context_says_so(folder: Path) -> None:
    with penstock.Context(device="host") as context:
        file = penstock.open(folder / "x.h5", context=context)
        dataset = file["contiguous"]
        for _ in range(3):
            dataset[1]
    with pytest.raises(ValueError, match="context is closed"):
        dataset[1]


@pytest.mark.parametrize("change", ["replaced", "touched", "cut"])
def test_a_file_that_changed_is_not_read_as_it_was(folder: Path, tmp_path: Path, change: str) -> None:
    name = tmp_path / "x.h5"
    name.write_bytes((folder / "x.h5").read_bytes())
    with penstock.open(name, device="host") as file:
        dataset = file["contiguous"]
        for _ in range(3):
            dataset[1]
        if change == "replaced":
            other = tmp_path / "other"
            other.write_bytes(name.read_bytes())
            os.utime(other, ns=(name.stat().st_atime_ns, name.stat().st_mtime_ns))
            other.replace(name)
        elif change == "touched":
            os.utime(name, ns=(0, name.stat().st_mtime_ns + 1))
        else:
            os.truncate(name, 4000)
        with pytest.raises(penstock.Error, match="changed or replaced"):
            dataset[1]


def test_a_file_that_is_cut_under_a_format_that_allows_it_says_where_it_ends(folder: Path, tmp_path: Path) -> None:
    name = tmp_path / "x.npy"
    name.write_bytes((folder / "c.npy").read_bytes())
    with penstock.open(name, device="host") as file:
        dataset = find(file, None)
        for _ in range(3):
            dataset[39]
        os.truncate(name, name.stat().st_size - 8)
        np.testing.assert_array_equal(np.asarray(dataset[38]), values()[38])
        with pytest.raises(penstock.Error, match="ended 8 bytes early"):
            dataset[39]


def test_readers_keep_no_file_open(folder: Path, tmp_path: Path) -> None:
    """What bounds the open files may close any that no transfer needs."""
    names = []
    for number in range(100):
        names.append(tmp_path / f"{number}.npy")
        np.save(names[-1], values() + number)
    files = [penstock.open(name, device="host") for name in names]
    datasets = [find(file, None) for file in files]
    for _ in range(3):
        for number, dataset in enumerate(datasets):
            np.testing.assert_array_equal(np.asarray(dataset[number % 40]), values()[number % 40] + number)
    assert 1 <= len(open_below(tmp_path)) <= 64
    for file in files:
        file.close()
    assert open_below(tmp_path) == set()


def open_below(folder: Path) -> set[Path]:
    """Files in a folder that this process has open."""
    found = set()
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # the one that listed them
            found.add(descriptor.readlink())
    return {one for one in found if one.is_relative_to(folder)}


def test_threads_read_one_dataset(opened: tuple[penstock.DataFile, penstock.Dataset]) -> None:
    _, dataset = opened
    wrong: list[int] = []

    def read(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, SHAPE[0], 300).tolist():
            if (np.asarray(dataset[number]) != values()[number]).any():
                wrong.append(number)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_in_a_forked_child_the_file_is_the_parents(opened: tuple[penstock.DataFile, penstock.Dataset]) -> None:
    file, dataset = opened
    packed, out = file["packed"], np.empty(SHAPE[1:], "i4")
    packed.read(1, out=out)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for work in (lambda: dataset[1], lambda: packed.read(1, out=out)):
                try:
                    work()
                    os.write(write, b"it was read")
                except penstock.Error as error:
                    os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read, 4096).decode()
    os.close(read)
    os.close(write)
    assert told.count("fork") == 2
    assert "it was read" not in told


# -- reads of plain files


def test_a_small_read_of_a_file_tells_what_a_transfer_tells(tmp_path: Path) -> None:
    name = tmp_path / "data"
    name.write_bytes(bytes(range(256)) * 64)
    with penstock.Context(device="host") as context, context.open(name) as file:
        memories = [context.allocate(4096), np.empty(4096, "u1"), bytearray(4096), memoryview(bytearray(4096))]
        for memory in memories:
            small = file.read(memory, 256)
            transfer = file.start_read(memory, 256).result()
            waited = file.read(memory, 256, strict=False)  # options ask for a transfer
            assert isinstance(small._told, _core.SmallRead)
            assert isinstance(waited._told, _core.Outcome)  # it is put into words when it is asked for
            for other in (transfer, waited):
                assert (small.bytes, small.reached_end, small.path) == (other.bytes, other.reached_end, other.path)
            same = {key for key in waited.evidence if key not in ("reason", "pinned_peak_bytes")}
            assert {key: small.evidence[key] for key in same} == {key: waited.evidence[key] for key in same}
            assert bytes(memory)[:256] == bytes(range(256))
            assert small.evidence is small.evidence


def test_what_no_small_read_can_tell_is_told_as_before(tmp_path: Path) -> None:
    name = tmp_path / "data"
    name.write_bytes(bytes(5000))
    with penstock.Context(device="host") as context, context.open(name) as file:
        memory = np.empty(4096, "u1")
        end = file.read(memory, 4096)
        assert (end.bytes, end.reached_end) == (904, True)
        with pytest.raises(penstock.Error, match="beyond"):
            file.read(memory, 5001)
        with pytest.raises(ValueError, match="offset_bytes"):
            file.read(memory, -1)
        with pytest.raises(TypeError):
            file.read(memory, "begin")  # type: ignore[arg-type]
        with pytest.raises((penstock.Error, BufferError, ValueError)):
            file.read(bytes(4096))
        with pytest.raises(penstock.Error, match="contiguous|memory"):
            file.read(object())
        with pytest.raises(penstock.Error, match="Python objects"):
            file.read(np.empty(512, object))


def test_an_outcome_does_not_change() -> None:
    told: Any = {"path": "buffered"}
    one, same = (penstock.Outcome(4, 2.0, False, "buffered", told) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != penstock.Outcome(5, 2.0, False, "buffered", told)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.bytes_per_second == 2
    assert repr(one).startswith("Outcome(bytes=4, seconds=2.0, reached_end=False, path='buffered'")
    for change in (lambda: setattr(one, "bytes", 5), lambda: delattr(one, "bytes"), lambda: setattr(one, "more", 5)):
        with pytest.raises(AttributeError, match="does not change"):
            change()
