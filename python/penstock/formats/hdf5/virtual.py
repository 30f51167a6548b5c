"""Virtual datasets: where the bytes lie that their mappings lead to, followed from file to file.

Plain mappings (one box of a source to one box here, same type, source without filters) become runs of the source
files. What must stay true: a dataset whose meaning is not fully told by such runs, because a mapping is unlimited,
strided, converts, overlaps another or meets a source that is smaller than it says, has none and is read by HDF5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from h5py import h5p, h5s

from penstock._error import Error
from penstock.formats.hdf5.runs import Block, Runs, c_strides, runs_from
from penstock.formats.hdf5.sources import MOST_SOURCES, Opener, in_turn, places
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Shape

if TYPE_CHECKING:
    from penstock.formats.hdf5.stored import Stored

MOST_DEPTH = 8

BoxOf = tuple[Shape, Shape]  # start, counts


class _NotPlain(Exception):
    """HDF5 must read it."""


def runs_of(open_source: Opener, stored: Stored) -> Runs | None:
    """None: HDF5 must read it."""
    create, info = stored.dataset.get_create_plist(), stored.info
    if stored.item_dims or create.get_virtual_count() > MOST_SOURCES:
        return None
    with in_turn(open_source) as source:
        try:
            blocks = [
                block
                for index in range(create.get_virtual_count())
                for block in _blocks(source, stored, _mapping(create, index, info.shape))
            ]
        except (_NotPlain, Error, KeyError):
            return None
    return runs_from(blocks, info.shape, info.dtype.itemsize)


def _mapping(create: h5p.PropDCID, index: int, shape: Shape) -> tuple[str, str, BoxOf, BoxOf | None]:
    """(file, dataset, box here, box of the source or None for all of it)."""
    here = _box_of(create.get_virtual_vspace(index)) or ((0,) * len(shape), shape)
    file, dataset = create.get_virtual_filename(index), create.get_virtual_dsetname(index)
    if "%" in file or "%" in dataset:
        raise _NotPlain
    return file, dataset, here, _box_of(create.get_virtual_srcspace(index))


def _box_of(space: h5s.SpaceID) -> BoxOf | None:
    """A selection that is one box; None when it is everything."""
    kind = space.get_select_type()
    if kind == h5s.SEL_ALL:
        return None
    if kind != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        raise _NotPlain
    start, stride, count, block = space.get_regular_hyperslab()
    if h5s.UNLIMITED in (*count, *block):
        raise _NotPlain
    if any(n > 1 and step != size for n, step, size in zip(count, stride, block, strict=True)):
        raise _NotPlain
    return start, tuple(n * size for n, size in zip(count, block, strict=True))


def _blocks(open_source: Opener, stored: Stored, mapping: tuple[str, str, BoxOf, BoxOf | None]) -> Iterator[Block]:
    file, name, here, there = mapping
    path = stored.home if file == "." else _source_path(file, stored)
    if path is None:
        return  # HDF5 gives the fill value where a source is missing
    source = open_source(path)
    info = source.info(name)
    start, counts = there or ((0,) * info.ndim, info.shape)
    box = Box(start, tuple(low + n for low, n in zip(start, counts, strict=True)))
    fits = len(start) == info.ndim and all(high <= extent for high, extent in zip(box.stop, info.shape, strict=True))
    if not fits or info.refusal or info.dtype != stored.info.dtype or prod(counts) != prod(here[1]):
        raise _NotPlain
    table = source.table(name, box)
    if table.encoded.any():
        raise _NotPlain
    yield from _placed(info, table, box, here, stored.info)


def _placed(info: DatasetInfo, table: ChunkTable, box: Box, here: BoxOf, to: DatasetInfo) -> Iterator[Block]:
    """The part of each stored chunk of the source that is mapped, as a block of the virtual dataset."""
    axes = _axes(tuple(high - low for low, high in zip(box.start, box.stop, strict=True)), here[1])
    steps = c_strides(info.chunk_shape, info.dtype.itemsize)
    covered = 0
    for row, origin in enumerate(table.origin.tolist()):
        columns = zip(box.start, box.stop, origin, info.chunk_shape, strict=True)
        spans = [(max(low, at), min(high, at + chunk)) for low, high, at, chunk in columns]
        covered += prod(high - low for low, high in spans)
        inside = sum((low - at) * step for (low, _), at, step in zip(spans, origin, steps, strict=True))
        start, counts, strides = list(here[0]), [1] * to.ndim, [to.dtype.itemsize] * to.ndim
        for axis, target in axes:
            low, high = spans[axis]
            start[target] += low - box.start[axis]
            counts[target], strides[target] = high - low, steps[axis]
        file = table.files[int(table.file_index[row])]
        yield Block(tuple(start), tuple(counts), tuple(strides), file, int(table.offset_bytes[row]) + inside)
    if covered != prod(here[1]) and (info.fill or to.fill):
        raise _NotPlain  # not stored in the source: its fill value counts, not ours


def _axes(source: Shape, here: Shape) -> list[tuple[int, int]]:
    """Pairs of dimensions that mean the same; those of extent 1 may be on one side only."""
    long_source = [axis for axis, count in enumerate(source) if count != 1]
    long_here = [axis for axis, count in enumerate(here) if count != 1]
    if [source[axis] for axis in long_source] != [here[axis] for axis in long_here]:
        raise _NotPlain
    return list(zip(long_source, long_here, strict=True))


def _source_path(file: str, stored: Stored) -> str | None:
    """The first place that has the file. None: no place has it, so that HDF5 gives the fill value."""
    if os.environ.get("HDF5_VDS_PREFIX"):  # settings that only HDF5 should interpret
        raise _NotPlain
    return next((path for path in places(file, stored) if os.path.exists(path)), None)  # noqa: PTH110 - as there
