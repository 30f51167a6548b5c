"""Small reads and writes of a file that is changed in place, without a plan, a job and a transfer.

A program that sets one row after the other asks a million times for a few KiB, as one that reads rows does. The native
reader of small reads does both as long as the metadata stay as they are: where elements lie was learned from the
writer, and the source counts what may change that (`changes`). What must stay true: bytes, shapes, errors and evidence
are those of transfers; what is being written in the background is read back whole, so that nothing goes this way then;
a file that another took the name of is neither read nor written.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penstock import _core
from penstock._arrays.array import Array
from penstock._error import Error
from penstock.formats.model import Box, Container
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.small import LOOKED_UP, described, lend, may_be_native, plain_chunks
from penstock.formats.reading.source import MetadataSource

_MOST_KEPT = 64


class Editor(NamedTuple):
    """Of one dataset. `plain`: the type of its elements, as NumPy has it."""

    native: _core.SmallReader
    plain: Any

    def write(self, lend: Callable[[_core.SmallReader], bool], index: Any, value: Any) -> bool:
        """False: a transfer has to write it. `lend` opens the file for it."""
        done = self.native.write_from(index, value)
        if done is False and lend(self.native):
            done = self.native.write_from(index, value)
        return done is True

    def write_rows(self, lend: Callable[[_core.SmallReader], bool], rows: Any, value: Any) -> bool:
        """As write(). Rows go in the order of the file: a mapping of that file would change while it is read."""
        base = value.base
        while isinstance(base, np.ndarray):
            base = base.base
        return not isinstance(base, (mmap.mmap, memoryview)) and self.write(lend, rows, value)


class Editors:
    """Those of an open file. One is made at the second question between two changes: it takes as long as a transfer.
    Many rows take longer: for them it is made at once."""

    def __init__(self, context: _core.Context, tally: _core.SmallTally, source: MetadataSource) -> None:
        self._context, self._tally, self._source = context, tally, source
        self._known: dict[str, tuple[int, Editor | bool]] = {}  # changes; True: the next question makes one

    def of(self, name: str, at_once: bool = False) -> Editor | None:
        """None: transfers read and write the dataset now."""
        changes, known = self._known.get(name, (-1, False))
        if changes == self._source.changes:
            return known if isinstance(known, Editor) else self._made(name) if known else None
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[name] = self._source.changes, True
        return self._made(name) if at_once else None

    def lend(self, mover: Mover, reader: _core.SmallReader) -> bool:
        """Opens the file for one of them. False: there is no room for it, or another file has the name now."""
        try:
            with self._source.writer(changes=False):
                return lend(mover, reader, writes=True)
        except Error:
            return False

    def _made(self, name: str) -> Editor | None:
        with self._source.data() as source:
            changes = self._source.changes
            try:
                made = _editor_of((self._context, self._tally), source, name)
            except (Error, KeyError, ValueError):  # a transfer tells it
                made = None
        self._known[name] = changes, made or False
        return made


def _editor_of(native: tuple[_core.Context, _core.SmallTally], container: Container, name: str) -> Editor | None:
    """None where elements go through filters, or lie in other files or in many chunks."""
    info = container.info(name)
    if info.filters or not may_be_native(info):
        return None
    grid = [-(-extent // chunk) for extent, chunk in zip(info.shape, info.chunk_shape, strict=True)]
    watch = container.watch(name) if math.prod(grid) <= LOOKED_UP else None
    if watch is None:
        return None
    chunks = plain_chunks(info, container.table(name, Box((0,) * info.ndim, info.shape)), watch)
    if chunks is None:
        return None
    how = {"array_class": Array, "dtype": info.dtype.native, "backwards": info.order != "C", "coded": None}
    reader = _core.SmallReader(*native, described(info, chunks) | how, (*watch, None))
    return Editor(reader, info.dtype.native.dtype)
