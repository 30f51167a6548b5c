"""The conformance kit of device decoders: every codec, every pipeline of filters, and what damaged chunks give.

Run with a decoder of the emulated device everywhere, and with nvCOMP on a GPU. h5py and zarr-python write the files and
say what is right; `Open` opens one so that reads are decoded by the decoder that is tested.
"""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock import Context, _core
from penstock.formats.reading.decoders.decoding import STREAM_ALIGNMENT, DeviceDecoder, Streams
from penstock.formats.reading.decoders.rates import ChunkWork, DecodeRates, Side, Verdict

Open = Callable[..., penstock.DataFile]
SELECTIONS = (..., np.s_[3:170:5, ::-2], np.s_[64], np.s_[-1, 3], np.s_[0:0], np.s_[130:200, 0:7])
FAULTS = ("garbage", "short", "long", "empty", "cut", "other", "checksum")


class Prefers(DecodeRates):
    """Says who decodes, whatever it takes."""

    def __init__(self, side: Side) -> None:
        super().__init__(cores=1)
        self._side = side

    def choose(self, work: ChunkWork, by_cores: bool) -> Verdict:
        return Verdict(self._side, f"a test prefers the {self._side}")


@contextmanager
def preferred(file: penstock.DataFile, side: Side) -> Iterator[None]:
    """By all files of its context, until the block ends."""
    kept = file._file._mover.context._kept
    before = kept.pop(DecodeRates, None)
    kept[DecodeRates] = Prefers(side)
    try:
        yield
    finally:
        del kept[DecodeRates]
        kept.update({} if before is None else {DecodeRates: before})


def smooth(shape: tuple[int, ...] = (203, 70), kind: str = "<f4") -> np.ndarray:
    """Numbers that compress as those of a simulation do."""
    size = int(np.prod(shape))
    return (np.sin(np.arange(size) / 50) * 1000).reshape(shape).astype(kind)


def encode(codec: str, raw: bytes) -> bytes:
    if codec == "deflate":
        return zlib.compress(raw)[2:-4]
    if codec == "gzip":
        return gzip.compress(raw)
    module = pytest.importorskip(f"numcodecs.{codec}")
    packed = bytes(module.compress(raw, 1))
    return packed[4:] if codec == "lz4" else packed


def damaged(fault: str, raw: bytes) -> bytes:
    """A zlib stream that is not that of the chunk."""
    if fault == "garbage":
        return b"\x78\x9c" + b"\xff" * 300 + b"\0\0\0\0"
    whole = zlib.compress(raw)
    if fault == "other":  # what flipped bits can give: a good stream of other bytes
        return zlib.compress(b"?" + raw[1:])[:-4] + whole[-4:]
    if fault == "checksum":
        return whole[:-1] + bytes([whole[-1] ^ 1])
    if fault == "cut":
        return whole[: len(whole) // 2]
    return zlib.compress({"short": raw[: len(raw) // 2], "long": raw + raw, "empty": b""}[fault])


def check_streams(context: Context, decoder: DeviceDecoder, codec: str) -> None:
    """Streams of different lengths in one memory; nothing outside the chunks is written."""
    assert decoder.refusal(codec, 50_000) == ""
    chance = np.random.default_rng(1)
    chunks = [smooth((12_500,)).tobytes(), bytes(50_000), chance.bytes(40_003), chance.bytes(100) * 5, b"x"]
    packed = [encode(codec, chunk) for chunk in chunks]
    room = [-(-len(one) // STREAM_ALIGNMENT) * STREAM_ALIGNMENT for one in packed]
    offset = np.cumsum([0, *room[:-1]])
    to = sum(room) + np.arange(len(chunks)) * 50_048
    memory = np.full(int(to[-1]) + 50_048, 0xA5, np.uint8)
    for at, one in zip(offset, packed, strict=True):
        memory[at : at + len(one)] = np.frombuffer(one, np.uint8)
    buffer = _core.allocate(context._raw, len(memory), "device", "none")
    context._raw.copy_to_device(buffer, memory)
    sizes = np.array([len(one) for one in packed])
    decoded = decoder.decode(Streams(codec, buffer, offset, sizes, to, np.array([len(one) for one in chunks])))
    context._raw.copy_to_host(memory, buffer)
    assert decoded.faults == {}
    assert decoded.bytes.tolist() == [len(one) for one in chunks]
    for at, chunk in zip(to, chunks, strict=True):
        assert memory[at : at + len(chunk)].tobytes() == chunk
        assert (memory[at + len(chunk) : at + 50_048] == 0xA5).all()


def hdf5(path: Path, content: np.ndarray, **options: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=content, **{"chunks": (64, 16), "compression": "gzip"} | options)


def hdf5_zstd(path: Path, content: np.ndarray) -> None:
    """Shuffled and packed as filter 32015 does, without needing it: chunks are written as they are stored."""
    h5py, module = pytest.importorskip("h5py"), pytest.importorskip("numcodecs.zstd")
    layout = {"chunks": (64, 16), "shuffle": True, "compression": 32015, "allow_unknown_filter": True}
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", content.shape, content.dtype, **layout)
        for row, column in itertools.product(range(0, content.shape[0], 64), range(0, content.shape[1], 16)):
            chunk = np.zeros((64, 16), content.dtype)
            part = content[row : row + 64, column : column + 16]
            chunk[: part.shape[0], : part.shape[1]] = part
            planes = np.frombuffer(chunk.tobytes(), np.uint8).reshape(-1, content.dtype.itemsize).T
            x.id.write_direct_chunk((row, column), bytes(module.compress(planes.tobytes(), 3)))


def check_selections(open: Open, path: Path, name: str, content: np.ndarray) -> None:
    with open(path, decode="gpu") as file:
        for index in SELECTIONS:
            found = file[name][index].to_numpy()
            assert np.array_equal(found, content[index]), index
            assert found.dtype == content.dtype.newbyteorder("=")
        counts = file.evidence()["formats"]
        assert counts["host_decoded_bytes"] == 0
        assert list(counts["decoders"]) == [file._file._mover.decoder.name]
        assert counts["decoders"][file._file._mover.decoder.name] == counts["gpu_decoded_bytes"] > 0


def check_zarr(open: Open, path: Path, compressor: Any, **layout: Any) -> None:
    zarr = pytest.importorskip("zarr")
    content = smooth(kind=">f8")
    options = {"chunks": (64, 16), "compressors": compressor} | layout
    array = zarr.open_group(path, mode="w").create_array("x", shape=content.shape, dtype=content.dtype, **options)
    array[...] = content
    check_selections(open, path, "x", content)


def check_chunks_that_are_not_stored(open: Open, path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        layout = {"chunks": (64, 16), "compression": "gzip", "shuffle": True}
        file.create_dataset("x", (203, 70), "f4", fillvalue=7, **layout)[64:128, 20:40] = 1
        content = file["x"][...]
    check_selections(open, path, "x", content)


def check_many(open: Open, path: Path) -> None:
    """Datasets of several codecs, and plain ones, in one submission; little fits a batch."""
    h5py = pytest.importorskip("h5py")
    content = {
        f"{kind}{number}": smooth((100, 33 + number), kind) for kind in ("u1", "i2", "f8") for number in range(5)
    }
    with h5py.File(path, "w") as file:
        for number, (name, values) in enumerate(content.items()):
            filters = {"compression": "gzip", "shuffle": number % 2 == 0} if number % 3 else {}
            file.create_dataset(name, data=values, chunks=(17, 8), **filters)
    with open(path, decode="gpu") as file:
        found = file.load()
        assert all(np.array_equal(found[name].to_numpy(), values) for name, values in content.items())


def write_damaged(path: Path, fault: str) -> None:
    """The chunk at [64, 16] is another stream than it should be."""
    h5py = pytest.importorskip("h5py")
    hdf5(path, smooth())
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((64, 16), damaged(fault, smooth((64, 16)).tobytes()))


def check_damaged(open: Open, path: Path, fault: str) -> None:
    """An error names dataset, chunk and decoder; what is whole can still be read."""
    write_damaged(path, fault)
    with open(path, decode="gpu") as file:
        with pytest.raises(penstock.Error, match=r"'x'.*chunk at \[64, 16\] is damaged.*gpu by") as caught:
            file["x"].read()
        assert caught.value.code == "damaged"
        assert caught.value.length_bytes > 0
        assert np.array_equal(file["x"][:64].to_numpy(), smooth()[:64])


def check_damaged_zarr(open: Open, path: Path, compressor: Any) -> None:
    """A checksum that is not that of the chunk, in one chunk file of many."""
    zarr = pytest.importorskip("zarr")
    content = smooth()
    array = zarr.open_group(path, mode="w").create_array(
        "x", shape=content.shape, dtype=content.dtype, chunks=(64, 16), compressors=compressor
    )
    array[...] = content
    chunk = path / "x" / "c" / "1" / "2"
    stored = bytearray(chunk.read_bytes())
    stored[-8] ^= 0x10
    chunk.write_bytes(stored)
    with open(path, decode="gpu") as file:
        with pytest.raises(penstock.Error, match=r"chunk at \[64, 32\] is damaged: its crc32 is .* the file says"):
            file["x"].read()
        assert np.array_equal(file["x"][:64].to_numpy(), content[:64])


def write_with_mask(path: Path) -> None:
    """The first chunk was stored without deflate."""
    h5py = pytest.importorskip("h5py")
    hdf5(path, smooth(), shuffle=True)
    with h5py.File(path, "r+") as file:
        planes = np.frombuffer(smooth()[:64, :16].tobytes(), np.uint8).reshape(-1, 4).T
        file["x"].id.write_direct_chunk((0, 0), planes.tobytes(), filter_mask=2)


def check_masks(open: Open, path: Path) -> None:
    write_with_mask(path)
    with open(path, decode="auto") as file, preferred(file, "device"):
        assert np.array_equal(file["x"][...].to_numpy(), smooth())
        counts, notes = file.evidence()["formats"], file.evidence()["notes"]
        assert counts["host_decoded_bytes"] == 64 * 16 * 4
        assert counts["gpu_decoded_bytes"] == 19 * 64 * 16 * 4
        assert any("1 of 20 chunks did not go through all of the filters" in note for note in notes)
        assert set(counts["decoders"]) == {"host by libdeflate", file._file._mover.decoder.name}
        with pytest.raises(penstock.Error, match="1 of 20 chunks"):
            file["x"].read(decode="gpu")
        assert np.array_equal(file["x"].read(np.s_[64:], decode="gpu").to_numpy(), smooth()[64:])
