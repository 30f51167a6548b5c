"""What `compression=` of a new dataset means: names, levels, and the shape of chunks where the caller gives none.

What must stay true: each format says with its own words what is stored, so that its stock readers undo it; a name or a
level that is not known is a ValueError before anything is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.formats.model import NewDataset, Shape

CHUNK_BYTES = 1 << 20  # of a chunk whose shape is left to us: some for each core, and each quick to read by itself
LEVELS: Mapping[str, tuple[int, int, int]] = {"gzip": (4, 1, 9), "zstd": (3, 1, 22)}  # usual, least, most
NAMES = ("gzip", "zstd", "lz4")


def checked(new: NewDataset) -> NewDataset:
    """Itself. ValueError of what no format could mean."""
    name, level = new.compression, new.compression_level
    if name is not None and name not in NAMES:
        raise ValueError(f"dataset {new.name!r}: compression={name!r} is none of {', '.join(NAMES)}")
    if name is None and (level is not None or new.shuffle is not None):
        given = "compression_level" if level is not None else "shuffle"
        raise ValueError(f"dataset {new.name!r}: {given}= is for datasets with compression=")
    if level is not None:
        _, least, most = LEVELS.get(name or "", (0, 1, 0))
        if isinstance(level, bool) or not hasattr(level, "__index__") or not least <= level <= most:
            levels = f"levels {least} to {most}" if most else "no levels"
            raise ValueError(f"dataset {new.name!r}: compression_level={level!r}, but {name} has {levels}")
    if new.shuffle not in (None, False, True):
        raise TypeError(f"dataset {new.name!r}: shuffle={new.shuffle!r}; it must be True or False")
    if name is not None and not new.shape:
        raise ValueError(f"dataset {new.name!r}: one element without dimensions cannot be compressed")
    return new


def level_of(new: NewDataset) -> int:
    """As it was asked for, or the usual one. The codec must have some."""
    return LEVELS[new.compression or ""][0] if new.compression_level is None else int(new.compression_level)


def chunk_of(new: NewDataset) -> Shape:
    """Chunks of about CHUNK_BYTES that are each one piece of an array in C order, cut to equal parts, so that the last
    one is not mostly padding."""
    chunk = [max(1, extent) for extent in new.shape]
    for axis, extent in enumerate(chunk):
        rest = math.prod(chunk[axis + 1 :]) * new.dtype.itemsize
        most = max(1, CHUNK_BYTES // rest)
        chunk[axis] = -(-extent // -(-extent // most))
        if chunk[axis] > 1:
            break
    return tuple(chunk)


def is_whole(start: Shape, stop: Shape, chunk: Shape, shape: Shape) -> bool:
    """Whether a box is made of whole chunks, of which those at the end of the dataset stop there."""
    sides = zip(start, stop, chunk, shape, strict=True)
    return all(low % size == 0 and (high % size == 0 or high == end) for low, high, size, end in sides)
