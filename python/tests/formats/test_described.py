"""The mover end to end on the host device: any layout through the engine, from files whose chunks Python describes."""

from __future__ import annotations

import random
from pathlib import Path

import formats_rig as rig
import numpy as np
import pytest
from format_kit import same

import penstock
from penstock._shared import shared_context
from penstock.formats.datafile import DataFile
from penstock.formats.described import Described
from penstock.formats.format import Format
from penstock.formats.model import Box, ChunkTable, DatasetInfo
from penstock.formats.reading.source import Opened
from penstock.formats.state import FileState


@pytest.mark.parametrize("seed", range(60))
def test_any_layout_reads_as_numpy_would(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    stored = rig.stored_at_random(chance)
    expected = rig.values(stored).astype(stored.info.dtype.native.dtype)
    with rig.opened(tmp_path, stored) as file:
        for _ in range(5):
            index = tuple(
                chance.randrange(n)
                if n and chance.random() < 0.2
                else slice(*sorted(chance.choices(range(n + 1), k=2)))
                for n in stored.info.shape
            )
            found = np.asarray(file["x"][index])
            assert found.tobytes() == np.ascontiguousarray(expected[index]).tobytes()
            assert found.shape == expected[index].shape
            out = np.zeros(expected[index].shape, expected.dtype)
            assert file["x"].read(index, out=out) is out
            assert out.tobytes() == found.tobytes()


@pytest.mark.parametrize("seed", range(10))
def test_fortran_order_comes_as_a_view_in_the_users_order(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    stored = rig.stored_at_random(chance)
    expected = rig.values(stored).T
    with rig.opened(tmp_path, stored, order="F") as file:
        dataset = file["x"]
        assert dataset.shape == expected.shape
        index = (slice(None, None, 2),) * min(1, expected.ndim)
        found = np.asarray(dataset[index])
        assert found.shape == expected[index].shape
        assert found.tobytes() == expected[index].astype(found.dtype).tobytes()
        out = np.zeros(expected.shape, found.dtype, order="F")
        dataset.read(out=out)
        assert out.tobytes() == expected.astype(out.dtype).tobytes()
        if min(expected.shape, default=0) > 1 and expected.ndim > 1:
            with pytest.raises(ValueError, match="Fortran"):
                dataset.read(out=np.zeros(expected.shape, found.dtype))


def many_chunks(folder: Path, count: int) -> tuple[Described, np.ndarray]:
    """Chunks of 800 bytes in shuffled order, with holes."""
    order = np.random.default_rng(1).permutation(count).astype(np.int64)
    content = np.random.default_rng(2).random((count, 100))
    raw = np.zeros((count, 9000 // 8))
    raw[order, :100] = content
    (folder / "many").write_bytes(raw.tobytes())
    info = DatasetInfo("x", (count * 100,), penstock.DType.of("float64"), (100,), layout="chunked")
    origin = (np.arange(count) * 100).reshape(-1, 1)
    columns = (np.zeros(count, np.int32), origin, order * 9000, np.full(count, 800), np.zeros(count, bool))
    return Described("many", {"x": (info, ChunkTable((str(folder / "many"),), *columns))}), content.reshape(-1)


def test_ten_thousand_chunks_are_read_in_one_batch(tmp_path: Path) -> None:
    container, expected = many_chunks(tmp_path, 10_000)
    with DataFile(FileState(Opened("many", Format("described"), container), shared_context("host"))) as file:
        same(file["x"].read(), expected)
        counts = file.evidence()["formats"]
    assert counts["batches"] == 1
    assert counts["ranges"] == 10_000
    assert counts["range_bytes"] == expected.nbytes


def test_what_the_host_decodes_is_named(tmp_path: Path) -> None:
    stored = next(one for one in map(rig.stored_at_random, map(random.Random, range(100))) if one.table.encoded.any())
    with rig.opened(tmp_path, stored) as file:
        file["x"].read()
        assert file.evidence()["formats"]["host_decoded_bytes"] > 0


def test_a_decoder_that_gives_too_little_is_an_error(tmp_path: Path) -> None:
    stored = next(
        one
        for one in map(rig.stored_at_random, map(random.Random, range(100)))
        if one.table.encoded.all() and len(one.table.bytes)
    )
    with rig.opened(tmp_path, stored) as file:
        file._file._source._opened.container.decoders["x"] = lambda box: b""  # type: ignore[union-attr]
        with pytest.raises(penstock.Error, match="0 bytes instead of"):
            file["x"].read()


def test_a_dataset_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    stored = rig.stored_at_random(random.Random(1))
    with rig.opened(tmp_path, stored, refusal="its filter needs a key") as file:
        assert "needs a key" in repr(file["x"])
        with pytest.raises(penstock.Error, match="needs a key"):
            file["x"].read()


def test_extents_of_encoded_chunks_are_those_stored(tmp_path: Path) -> None:
    stored = next(
        one
        for one in map(rig.stored_at_random, map(random.Random, range(100)))
        if one.table.encoded.all() and len(one.table.bytes)
    )
    with rig.opened(tmp_path, stored) as file:
        assert sum(extent.bytes for extent in file["x"].extents()) == int(stored.table.bytes.sum())


def test_boxes_of_a_table_are_those_that_were_asked_for(tmp_path: Path) -> None:
    container, _ = many_chunks(tmp_path, 100)
    assert container.table("x", Box((150,), (420,))).origin.ravel().tolist() == [100, 200, 300, 400]
