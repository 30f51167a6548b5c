"""A plan executed with NumPy: what a device and the engine would do, in loops that are easy to trust.

And datasets at random: chunked, cut at the edges or padded, partly missing, partly encoded, in two files.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock._arrays.dtype import DType
from penstock._shared import shared_context
from penstock.formats.datafile import DataFile
from penstock.formats.described import Described
from penstock.formats.format import Format
from penstock.formats.model import ChunkTable, DatasetInfo
from penstock.formats.reading import pieces, plan
from penstock.formats.reading.plan import BatchPlan
from penstock.formats.reading.source import Opened
from penstock.formats.state import FileState


def copy_boxes(to: np.ndarray, source: np.ndarray, table: np.ndarray, item_bytes: int, swap_bytes: int = 0) -> None:
    """As _core.copy_boxes, one item at a time."""
    ndim = (table.shape[1] - 2) // 3
    for row in table.tolist():
        extents, near, far = row[2 : 2 + ndim], row[2 + ndim : 2 + 2 * ndim], row[2 + 2 * ndim :]
        for index in np.ndindex(*extents):
            at = row[0] + sum(i * stride for i, stride in zip(index, near, strict=True))
            begin = row[1] + sum(i * stride for i, stride in zip(index, far, strict=True))
            assert 0 <= at <= len(to) - item_bytes
            assert 0 <= begin <= len(source) - item_bytes
            item = source[begin : begin + item_bytes].copy()
            to[at : at + item_bytes] = item.reshape(-1, swap_bytes)[:, ::-1].reshape(-1) if swap_bytes else item


def fill_boxes(to: np.ndarray, table: np.ndarray, item: bytes) -> None:
    """As _core.fill_boxes."""
    ndim = (table.shape[1] - 1) // 2
    boxes = np.concatenate([table[:, :1], 0 * table[:, :1], table[:, 1:], 0 * table[:, 1 : 1 + ndim]], axis=1)
    copy_boxes(to, np.frombuffer(item, np.uint8), boxes, len(item))


@dataclass
class Stored:
    """A dataset at random: what it holds, as bytes [*shape, itemsize] in stored order, and the files it lies in."""

    info: DatasetInfo
    table: ChunkTable
    content: np.ndarray
    files: dict[str, np.ndarray]


def stored_at_random(chance: random.Random) -> Stored:
    shape = tuple(chance.choice([0, 1, 2, 3, 5, 7, 8, 13]) for _ in range(chance.randint(0, 3)))
    dtype = DType.of(chance.choice(["u1", "<i2", ">i4", "<f8", ">c16", "V3"]))
    contiguous = chance.random() < 0.3
    chunk = tuple(max(1, n) if contiguous else chance.randint(1, max(1, n + 2)) for n in shape)
    fill = chance.randbytes(dtype.itemsize)
    info = DatasetInfo("x", shape, dtype, chunk, edge_cut=chance.random() < 0.5, fill=fill)
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    content = np.frombuffer(chance.randbytes(size), np.uint8).reshape(*shape, dtype.itemsize).copy()
    files = [bytearray(chance.randbytes(chance.randint(0, 50))) for _ in range(2)]
    rows = []
    for origin in itertools.product(*(range(0, n, c) for n, c in zip(shape, chunk, strict=True))):
        inside = tuple(slice(o, min(o + c, n)) for o, c, n in zip(origin, chunk, shape, strict=True))
        if chance.random() < 0.15:
            content[inside] = np.frombuffer(fill, np.uint8)  # not stored
            continue
        part = content[inside]
        if not info.edge_cut:
            part = np.pad(part, [(0, c - n) for c, n in zip(chunk, part.shape, strict=False)] + [(0, 0)])
        file = chance.randrange(2)
        files[file] += chance.randbytes(chance.choice([0, 0, 5]))
        rows.append((file, origin, len(files[file]), part.nbytes, chance.random() < 0.15))
        files[file] += part.tobytes()
    chance.shuffle(rows)
    table = ChunkTable(
        ("a", "b"),
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int64).reshape(len(rows), len(shape)),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
        np.array([row[4] for row in rows], bool),
    )
    return Stored(
        info, table, content, {name: np.frombuffer(bytes(raw), np.uint8) for name, raw in zip("ab", files, strict=True)}
    )


def read(made: BatchPlan, stored: Stored, memory: np.ndarray) -> None:
    """Executes a plan of reads; asserts what a plan promises of its batches."""
    for fill in made.fills:
        fill_boxes(memory, fill.table, fill.item)
    for batch in made.batches():
        scratch, used = np.zeros(batch.scratch_bytes, np.uint8), np.zeros(batch.scratch_bytes, int)
        for file, offset, at, size in batch.staged.tolist():
            assert offset + size <= len(stored.files[made.files[file]])
            scratch[at : at + size] = stored.files[made.files[file]][offset : offset + size]
            used[at : at + size] += 1
        assert (used <= 1).all()
        for table in batch.direct.values():
            for file, offset, at, size in table.tolist():
                memory[at : at + size] = stored.files[made.files[file]][offset : offset + size]
        for move in batch.moves:
            copy_boxes(memory, memory if move.in_place else scratch, move.table, move.item_bytes, move.swap_bytes)
    for decode in made.decodes:
        box = np.ascontiguousarray(stored.content[tuple(slice(a, b) for a, b in zip(*decode.box, strict=True))])
        assert box.nbytes == decode.bytes
        copy_boxes(memory, box.reshape(-1), decode.table, decode.item_bytes, decode.swap_bytes)


def write(made: BatchPlan, memory: np.ndarray, files: dict[str, np.ndarray]) -> None:
    """Executes a plan of writes; asserts that no byte of a file is written twice."""
    written = {name: np.zeros(len(file), int) for name, file in files.items()}
    for batch in made.batches():
        scratch = np.zeros(batch.scratch_bytes, np.uint8)
        for padding in batch.paddings:
            fill_boxes(scratch, padding.table, padding.item)
        for move in batch.moves:
            copy_boxes(scratch, memory, move.table, move.item_bytes, move.swap_bytes)
        for source, table in [(scratch, batch.staged), *((memory, table) for table in batch.direct.values())]:
            for file, offset, at, size in table.tolist():
                files[made.files[file]][offset : offset + size] = source[at : at + size]
                written[made.files[file]][offset : offset + size] += 1
    assert all((counts <= 1).all() for counts in written.values())


def opened(folder: Path, stored: Stored, device: str = "host", **changes: object) -> DataFile:
    """A file on disk of a dataset at random."""
    for name, content in stored.files.items():
        (folder / name).write_bytes(content.tobytes())
    table = replace(stored.table, files=tuple(str(folder / name) for name in stored.table.files))
    decoders = {"x": lambda box: stored.content[tuple(slice(a, b) for a, b in zip(*box, strict=True))].tobytes()}
    container = Described("described", {"x": (replace(stored.info, **changes), table)}, decoders)
    return DataFile(FileState(Opened("described", Format("described"), container), shared_context(device)))


def values(stored: Stored) -> np.ndarray:
    """What the dataset holds, as NumPy sees it."""
    dtype = stored.info.dtype.dtype
    return np.frombuffer(stored.content.tobytes(), dtype).reshape(stored.info.shape)


@pytest.fixture
def shrink(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Limits so small that a few bytes meet all of them."""

    def shrink(chance: random.Random) -> None:
        for module, name, values in (
            (pieces, "GAP_BYTES", [0, 3, 16, 4096]),
            (pieces, "DIRECT_BYTES", [1, 16, 100, 1 << 18]),
            (pieces, "PIECE_BYTES", [16, 48, 200, 1 << 26]),
            (plan, "SCRATCH_BYTES", [64, 256, 1 << 27]),
            (plan, "BATCH_PIECES", [1, 3, 1000]),
            (plan, "BATCH_FILES", [1, 256]),
            (plan, "PAGED_BYTES", [8, 32 << 10]),
            (plan, "DECODE_BYTES", [16, 100, 1 << 26]),
        ):
            value = chance.choice(values)
            monkeypatch.setattr(module, name, value)
            if hasattr(plan, name):
                monkeypatch.setattr(plan, name, value)

    return shrink


def index_at_random(chance: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    parts: list[Any] = []
    for n in shape:
        if chance.random() < 0.2 and n:
            parts.append(chance.randrange(-n, n))
        else:
            ends = [chance.choice([None, chance.randint(-n - 1, n + 1)]) for _ in range(2)]
            parts.append(slice(*ends, chance.choice([None, None, 1, 2, 3, -1, -2])))
    return tuple(parts)


def swapped(content: np.ndarray, dtype: DType) -> np.ndarray:
    """Bytes in the order of this machine."""
    word = dtype.swap_bytes
    return content.reshape(-1, word)[:, ::-1].reshape(content.shape) if word and content.size else content
