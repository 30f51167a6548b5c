"""Decoding on the device, here the emulated one: framing, choice, batches, and the whole way with a decoder of ours."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import decoder_kit as kit
import numpy as np
import pytest
from stream_decoder import HostStreams

import penstock
from penstock._arrays.dtype import DType
from penstock._arrays.selection import select
from penstock._shared import shared_context
from penstock.formats.model import ZLIB, ChunkTable, DatasetInfo, Recipe
from penstock.formats.reading import plan as plans, unpacking
from penstock.formats.reading.decoders import decoding, nvcomp_library, rates
from penstock.formats.reading.decoders.rates import ChunkWork, Kind, Verdict
from penstock.formats.reading.pieces import Wanted
from penstock.formats.reading.plan import BatchPlan

pytest.importorskip("h5py")


def opened(path: Path, **options: Any) -> penstock.DataFile:
    file = penstock.open(path, device="host", **options)
    file._file._mover.decoder = HostStreams()
    return file


@pytest.fixture(params=["usual", "small"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches as usual, and of one chunk or a few."""
    if request.param == "small":
        monkeypatch.setattr(plans, "DECODED_BYTES", 10_000)
        monkeypatch.setattr(plans, "BATCH_FILES", 2)


# -- the whole way


@pytest.mark.parametrize("codec", ["deflate", "gzip", "zstd", "lz4"])
def test_the_decoder_of_these_tests_keeps_the_contract(codec: str) -> None:
    kit.check_streams(shared_context("host"), HostStreams(), codec)


@pytest.mark.parametrize("kind", ["u1", "<f4", ">i2", "<c16", "S3"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_hdf5_deflate(tmp_path: Path, limits: None, kind: str, shuffle: bool) -> None:
    content = kit.smooth(kind=kind)
    kit.hdf5(tmp_path / "x.h5", content, shuffle=shuffle)
    if kind != "S3":
        kit.check_selections(opened, tmp_path / "x.h5", "x", content)
        return
    with opened(tmp_path / "x.h5", decode="gpu") as file:
        assert file["x"][...].to_numpy().tobytes() == content.tobytes()


def test_elements_of_an_array_type_are_shuffled_as_a_whole(tmp_path: Path) -> None:
    import h5py

    content = kit.smooth((100, 3))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        kind = np.dtype(("<f4", (3,)))
        file.create_dataset("x", (100,), kind, chunks=(30,), compression="gzip", shuffle=True)[...] = content
    with opened(tmp_path / "x.h5", decode="gpu") as file:
        assert np.array_equal(np.asarray(file["x"][10:90, 1:]), content[10:90, 1:])


def test_hdf5_zstd(tmp_path: Path, limits: None) -> None:
    kit.hdf5_zstd(tmp_path / "x.h5", kit.smooth())
    kit.check_selections(opened, tmp_path / "x.h5", "x", kit.smooth())


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("layout", [{}, {"shards": (128, 32)}, {"order": "F"}])
def test_zarr(tmp_path: Path, limits: None, codec: str, layout: Mapping[str, Any]) -> None:
    codecs = pytest.importorskip("zarr.codecs")
    compressor = {"gzip": codecs.GzipCodec, "zstd": codecs.ZstdCodec}[codec]()
    if "order" in layout:
        layout = {"filters": codecs.TransposeCodec(order=(1, 0))}
    kit.check_zarr(opened, tmp_path / "x.zarr", compressor, **layout)


@pytest.mark.parametrize("codec", ["Zlib", "LZ4"])
def test_zarr_version_2(tmp_path: Path, codec: str) -> None:
    pytest.importorskip("zarr")
    compressor = getattr(pytest.importorskip("numcodecs"), codec)()
    import zarr

    content = kit.smooth()
    zarr.create_array(tmp_path / "x.zarr", data=content, chunks=(64, 16), compressors=compressor, zarr_format=2)
    kit.check_selections(opened, tmp_path / "x.zarr", "", content)


def test_chunks_that_are_not_stored_are_filled(tmp_path: Path, limits: None) -> None:
    kit.check_chunks_that_are_not_stored(opened, tmp_path / "x.h5")


def test_many_datasets_share_a_batch(tmp_path: Path, limits: None) -> None:
    kit.check_many(opened, tmp_path / "x.h5")


def test_a_damaged_chunk_of_one_dataset_of_many_is_named(tmp_path: Path) -> None:
    import h5py

    kit.write_damaged(tmp_path / "x.h5", "short")
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        for name in ("a", "b", "z"):
            file.create_dataset(name, data=kit.smooth(), chunks=(64, 16), compression="gzip")
    with opened(tmp_path / "x.h5") as file, pytest.raises(penstock.Error, match=r"'x'.*chunk at \[64, 16\]"):
        file.load(["a", "b", "x", "z"], decode="gpu")


@pytest.mark.parametrize("fault", kit.FAULTS)
def test_a_damaged_chunk_is_an_error_that_names_it(tmp_path: Path, fault: str) -> None:
    kit.check_damaged(opened, tmp_path / "x.h5", fault)


def test_a_wrong_checksum_of_gzip_is_an_error_that_says_both(tmp_path: Path) -> None:
    kit.check_damaged_zarr(opened, tmp_path / "x.zarr", pytest.importorskip("zarr.codecs").GzipCodec())


def test_what_follows_a_stream_and_its_checksum_does_not_matter(tmp_path: Path) -> None:
    import h5py

    kit.hdf5(tmp_path / "x.h5", kit.smooth())
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        chunk = kit.smooth((203, 70))[64:128, 16:32]
        for padding, at in ((b"\0" * 4, (64, 16)), (b"\1\2\3", (0, 0))):
            chunk = kit.smooth()[at[0] : at[0] + 64, at[1] : at[1] + 16]
            file["x"].id.write_direct_chunk(at, zlib.compress(chunk.tobytes()) + padding)
    with opened(tmp_path / "x.h5", decode="gpu") as file:
        assert np.array_equal(file["x"][...].to_numpy(), kit.smooth())
    kit.write_damaged(tmp_path / "y.h5", "other")
    raw = kit.damaged("other", b"abc" * 50)
    assert (
        unpacking.host_checksum(ZLIB, raw[2:], 150) == zlib.adler32(b"abc" * 50) != zlib.adler32(b"?bc" + b"abc" * 49)
    )
    two = gzip.compress(b"ab") + gzip.compress(b"c") + b"\0\0"
    gzipped = Recipe("gzip", checksum="crc32", check_at=8, check_order="<")
    assert unpacking.host_checksum(gzipped, two, 3) == zlib.crc32(b"abc")
    assert unpacking.host_checksum(gzipped, two[:-5], 3) is None
    assert unpacking.host_checksum(ZLIB, b"\xff\xff", 9) is None
    assert unpacking.host_checksum(gzipped, two, 2) is None, "more than a chunk holds"
    assert unpacking.host_checksum(ZLIB, zlib.compress(bytes(10_000_000))[2:], 150) is None


def test_without_checksums_other_bytes_go_unnoticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the checksum is for."""
    kit.write_damaged(tmp_path / "x.h5", "other")
    monkeypatch.setattr(unpacking, "_verify", lambda *_: None)
    with opened(tmp_path / "x.h5", decode="gpu") as file:
        assert not np.array_equal(file["x"][...].to_numpy(), kit.smooth())


def test_chunks_that_skipped_filters_go_to_the_host(tmp_path: Path) -> None:
    kit.check_masks(opened, tmp_path / "x.h5")


def test_reads_in_the_background_and_into_memory_of_others(tmp_path: Path, limits: None) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth(), shuffle=True)
    with opened(tmp_path / "x.h5") as file:
        out = np.zeros((203, 70), "f4")
        pending = file["x"].start_read(out=out, decode="gpu")
        assert pending.result() is out
        assert np.array_equal(out, kit.smooth())
        assert pending.bytes_done == pending.bytes_total > 0


# -- choice


def test_on_the_emulated_device_the_host_decodes_unless_asked_otherwise(tmp_path: Path) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth())
    with penstock.open(tmp_path / "x.h5", device="host") as file:
        assert np.array_equal(file["x"][...].to_numpy(), kit.smooth())
        assert file.evidence()["formats"]["decoders"] == {"host by libdeflate": kit.smooth().nbytes}
        assert file.evidence()["notes"] == []
        with pytest.raises(penstock.Error, match="'x' on the GPU.*emulated.*decode=") as caught:
            file["x"].read(decode="gpu")
        assert caught.value.code == "unsupported"
        with pytest.raises(ValueError, match="auto, host, gpu"):
            file["x"].read(decode="cuda")
    with pytest.raises(ValueError, match="'fast'"):
        penstock.open(tmp_path / "x.h5", device="host", decode="fast")
    with pytest.raises(penstock.Error, match="emulated"):
        penstock.load(tmp_path / "x.h5", "host", decode="gpu")


def test_a_read_says_otherwise_than_its_file(tmp_path: Path) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth())
    with opened(tmp_path / "x.h5", decode="gpu") as file:
        file["x"].read(decode="host")
        assert file.evidence()["formats"]["gpu_decoded_bytes"] == 0
        file.load()
        assert file.evidence()["formats"]["gpu_decoded_bytes"] == 20 * 4096


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({"fletcher32": True}, "deflate, fletcher32"),
        ({"compression": "lzf"}, "this has lzf"),
        ({"scaleoffset": 2}, "scaleoffset"),
    ],
)
def test_other_filters_go_to_the_host_and_evidence_says_so(tmp_path: Path, filters: dict[str, Any], why: str) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth(), **filters)
    with opened(tmp_path / "x.h5") as file:
        file["x"].read()
        assert file.evidence()["formats"]["gpu_decoded_bytes"] == 0
        assert any("decoded on the host" in note and why in note for note in file.evidence()["notes"])
        with pytest.raises(penstock.Error, match=why):
            file["x"].read(decode="gpu")


def test_compact_datasets_and_other_codecs_are_refused_for_the_gpu(tmp_path: Path) -> None:
    zarr, codecs = pytest.importorskip("zarr"), pytest.importorskip("zarr.codecs")
    for name, compressor in (("blosc", codecs.BloscCodec()), ("crc32c", codecs.Crc32cCodec())):
        zarr.create_array(tmp_path / name, data=kit.smooth(), chunks=(64, 16), compressors=compressor)
        with opened(tmp_path / name, format="zarr") as file, pytest.raises(penstock.Error, match=f"this has {name}"):
            file[""].read(decode="gpu")


def info_of(**changes: Any) -> DatasetInfo:
    values: dict[str, Any] = {"chunk_shape": (10,), "recipe": Recipe("deflate", 2, 4)}
    return DatasetInfo("x", (30,), DType.of("<f4"), **values | changes)


def table_of(sizes: list[int], host_only: list[bool] | None = None) -> ChunkTable:
    count = len(sizes)
    offsets = np.arange(count, dtype=np.int64) * 1000
    origin = np.arange(count, dtype=np.int64).reshape(-1, 1) * 10
    only = None if host_only is None else np.array(host_only)
    return ChunkTable(
        ("a",), np.zeros(count, np.int32), origin, offsets, np.array(sizes, np.int64), np.ones(count, bool), only
    )


def test_auto_takes_the_side_that_is_faster_and_says_why(tmp_path: Path) -> None:
    import h5py

    kit.hdf5(tmp_path / "x.h5", kit.smooth())
    with h5py.File(tmp_path / "x.h5", "a") as file:
        for name in ("a", "b"):
            file.create_dataset(name, data=kit.smooth(), chunks=(101, 14), compression="gzip")
    for side, word in (("cores", "host"), ("device", "GPU")):
        with opened(tmp_path / "x.h5") as file, kit.preferred(file, side):
            file.load(["a", "b", "x"])
            told = [f"{name}: decoded on the {word}: a test prefers the {side}" for name in ("a", "b", "x")]
            assert set(told) <= set(file.evidence()["notes"])
            (decoder,) = file.evidence()["formats"]["decoders"]
            assert decoder == {"cores": "host by libdeflate", "device": "gpu by zlib"}[side]


def test_chunks_of_a_call_that_are_alike_go_one_way() -> None:
    asked = []

    class Counts(kit.Prefers):
        def choose(self, work: ChunkWork, by_cores: bool) -> Verdict:
            asked.append((work, by_cores))
            return super().choose(work, by_cores)

    wish = decoding.Wish("auto", 100, Counts("device"))
    means = decoding.Means(HostStreams(), "no library")
    for sizes in ([30, 30, 30], [30, 31, 32], [3, 4, 3]):
        decoding.choose(info_of(), table_of(sizes), wish, means)
    assert asked == [(ChunkWork(Kind("deflate", 40, stored), 100), False) for stored in (32, 4)]


def test_reads_tell_what_they_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_DECODED", 0)  # these chunks are decoded as soon as they come
    kit.hdf5(tmp_path / "x.h5", kit.smooth((256, 80)))  # whole chunks: parts of a few are decoded to be kept
    for side in ("cores", "device"):
        with opened(tmp_path / "x.h5") as file, kit.preferred(file, side):
            known = file._file._mover.rates._known
            file["x"].read()
            if side == "device":
                assert not known, "the first one loads code"
                file["x"].read()
            (((known_side, kind), found),) = known.items()
            assert (known_side, kind.codec, kind.chunk_bytes, list(found)) == (side, "deflate", 4096, [5])
            before = found[5].correction
            assert before > 0
            file["x"].read(decode="gpu")
            file["x"].read(decode="host")
            assert found[5].correction == before, "these were no choice"


def test_the_choice_is_made_chunk_by_chunk() -> None:
    auto, host, gpu = (decoding.Wish(decode, 100, kit.Prefers("device")) for decode in decoding.CHOICES)

    class Picky(HostStreams):
        """Takes no large chunks."""

        def refusal(self, codec: str, chunk_bytes: int) -> str:
            return f"{codec} of {chunk_bytes} bytes is too much" if chunk_bytes > 40 else ""

    table = table_of([50, 0, 60], [False, False, True])
    found = decoding.choose(info_of(), table, auto, decoding.Means(Picky(), ""))
    assert found.on_device is not None
    assert found.on_device.tolist() == [True, False, False]
    assert "2 of 3 chunks" in found.note
    assert decoding.choose(info_of(), table, host, decoding.Means(Picky(), "")) == decoding.ON_HOST
    assert "absent" in decoding.choose(info_of(), table, auto, decoding.Means("it is absent", "")).note
    for changes, why in (
        ({"chunk_shape": (11,)}, "44 bytes is too much"),
        ({"edge_cut": True}, "different sizes"),
        ({"recipe": Recipe("zstd", shuffle_bytes=7)}, "elements of 7"),
        ({"recipe": "none knows"}, "none knows"),
    ):
        found = decoding.choose(info_of(**changes), table, auto, decoding.Means(Picky(), ""))
        assert found.on_device is None
        assert why in found.note
        with pytest.raises(penstock.Error, match=why):
            decoding.choose(info_of(**changes), table, gpu, decoding.Means(Picky(), ""))


# -- framing, batches


def planned(table: ChunkTable, **changes: Any) -> BatchPlan:
    plan, selection = BatchPlan(), select((30,), slice(None))
    choice = decoding.Choice(np.ones(len(table.bytes), bool))
    plan.add(Wanted(info_of(**changes), selection, 0, 0, (4,)), table, choice)
    return plan


def test_framing_is_cut_off_and_near_streams_are_one_range() -> None:
    plan = planned(table_of([50, 60, 70]))
    assert plan.packed[0].offset.tolist() == [2, 1002, 2002]
    assert plan.packed[0].sizes.tolist() == [48, 58, 68]
    assert plan.packed[0].stream_bytes.tolist() == [44, 54, 64]
    (batch,) = plan.batches()
    assert batch.staged[:, [1, 3]].tolist() == [[2, 2068]]
    assert (batch.unpacks[0][1] - batch.staged[0, 2]).tolist() == [0, 1000, 2000]
    assert plan.total_bytes == 48 + 58 + 68
    assert plans.SCRATCH_BYTES >= batch.scratch_bytes >= 2068


def test_a_chunk_shorter_than_its_framing_is_damaged() -> None:
    with pytest.raises(penstock.Error, match=r"chunk at \[10\] is too short"):
        planned(table_of([50, 6, 70]))


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(table_of([50, 60, 70]))
    assert [len(batch.unpacks[0][1]) for batch in plan.batches(80)] == [2, 1]
    assert len(list(plan.batches(1))) == 3
    monkeypatch.setattr(plans, "BATCH_CHUNKS", 2)
    assert len(list(plan.batches(1000))) == 2


# -- the library


def test_without_nvcomp_the_reason_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    nvcomp_library.library.cache_clear()
    monkeypatch.setattr(nvcomp_library, "_names", lambda: iter(["libnvcomp-of-none.so"]))
    assert "nvidia-libnvcomp" in str(nvcomp_library.library())
    nvcomp_library.library.cache_clear()
    monkeypatch.setattr(nvcomp_library, "_names", lambda: iter(["libc.so.6"]))
    assert "lacks the function nvcompGetProperties" in str(nvcomp_library.library())
    nvcomp_library.library.cache_clear()
