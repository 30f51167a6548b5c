"""Encoding on the cores of the host: from elements in memory to encoded chunks in scratch, which the engine writes.

What must stay true: scratch holds the chunks of one part; a GPU's elements come by pinned memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock import _core
from penstock._error import Error
from penstock.formats.faults import no_memory
from penstock.formats.model import Places
from penstock.formats.packing.encoding import Encoding
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.pieces import c_strides
from penstock.formats.reading.target import Target

_ALIGNMENT = 4096  # of each chunk in scratch, as O_DIRECT likes


@dataclass(frozen=True)
class Encoded:
    """A part in scratch: `sizes` of its chunks, which begin `stride` bytes apart."""

    scratch: _core.Buffer
    stride: int
    sizes: np.ndarray

    def rows(self, places: Places, numbers: np.ndarray) -> np.ndarray:
        """A table for the engine. `numbers`: of the files, as the plan has them."""
        memory = np.arange(len(self.sizes), dtype=np.int64) * self.stride
        return np.column_stack([numbers[places.file_index], places.offset_bytes, memory, self.sizes])


def encode(mover: Mover, part: Encoding, target: Target, limits: tuple[_core.Stop, float | None]) -> Encoded | None:
    """None: it was stopped, or took too long."""
    encoder = mover.encoder(part.filters, part.chunk_bytes)
    how = (part.swap_bytes, part.fill)
    stride = -(-encoder.most_bytes // _ALIGNMENT) * _ALIGNMENT
    with within_memory(mover, part):
        scratch = mover.take_scratch(part.count * stride, "pinned")
        with near(mover, part, target) as (source, boxes):
            done, row, fault, sizes = _core.encode_chunks(
                mover.raw, encoder, (source, boxes, part.item_bytes), (scratch, stride), *how, *limits
            )
    if fault:
        raise refused_chunk(mover.name, part.dataset, part.origin[row].tolist(), fault)
    return Encoded(scratch, stride, np.frombuffer(sizes, np.int64)) if done == part.count else None


def refused_chunk(file: str, dataset: str, origin: list[int], fault: str) -> Error:
    return Error(
        code="unsupported",
        operation=f"encode dataset {dataset!r} of",
        file=file,
        cause=f"its chunk at {origin} cannot be encoded: {fault}",
        advice="choose another compression, or smaller chunks",
    )


@contextmanager
def within_memory(mover: Mover, part: Encoding) -> Iterator[None]:
    """What lacks memory in there is an Error."""
    try:
        yield
    except MemoryError as error:
        cause = f"there is no memory to encode chunks of {part.chunk_bytes} bytes in"
        raise no_memory(mover.name, cause, part.dataset) from error


class near:  # noqa: N801 - reads as a function
    """Elements where the host can read them, and the boxes there: where they are, or dense in pinned memory."""

    def __init__(self, mover: Mover, part: Encoding, target: Target) -> None:
        self._mover, self._part, self._target = mover, part, target
        self._staging: _core.Buffer | None = None

    def __enter__(self) -> tuple[Any, np.ndarray]:
        part, mover = self._part, self._mover
        if mover.emulated or self._target.device == "host":
            return self._target.memory, part.boxes
        ndim = part.origin.shape[1]
        counts = part.boxes[:, 2 : 2 + ndim]
        size = counts.prod(axis=1) * part.item_bytes
        down, up = part.boxes.copy(), part.boxes.copy()
        down[:, 0] = up[:, 1] = np.cumsum(size) - size
        down[:, 2 + ndim : 2 + 2 * ndim] = up[:, 2 + 2 * ndim :] = c_strides(counts, part.item_bytes)
        self._staging = mover.take_scratch(int(size.sum()), "pinned")
        _core.copy_boxes(mover.raw, self._staging, self._target.memory, down, part.item_bytes)
        return self._staging, up

    def __exit__(self, *_: object) -> None:
        if self._staging is not None:
            self._mover.give_back(self._staging)
