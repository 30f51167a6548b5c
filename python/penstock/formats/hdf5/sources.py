"""Which sources of a virtual dataset are not there: HDF5 then gives fill values without a word, Penstock says so.

Sources are looked for where HDF5 looks for them, and opened: one that has another name, or lacks the dataset, is as
good as none; one that cannot be opened is an Error. What must stay true: a read is told of the sources that its part of
the dataset needs, and only those are opened; where a source of unlimited extent decides the shape, every read is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h5py import h5p, h5s

from penstock._error import Error
from penstock.formats.faults import unsupported
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Shape

if TYPE_CHECKING:
    from penstock.formats.hdf5.stored import Stored

MOST_SOURCES = 1 << 16


class SourceFile(Protocol):
    """What is needed of the file that holds a source."""

    def info(self, name: str) -> DatasetInfo: ...
    def table(self, name: str, box: Box) -> ChunkTable: ...
    def gaps(self, name: str, box: Box) -> tuple[str, ...]: ...
    def close(self) -> None: ...


Opener = Callable[[str], SourceFile]


class _Part(NamedTuple):
    """One source file's share of a mapping. `printf`: the mapping counts its files."""

    box: Box | None
    file: str
    dataset: str


class Sources:
    """Of one virtual dataset. What was found of a source is kept."""

    def __init__(self, stored: Stored) -> None:
        create, shape = stored.dataset.get_create_plist(), stored.info.shape[: stored.rank]
        self._stored, self._count = stored, create.get_virtual_count()
        self._parts: list[_Part] = []
        if self._count <= MOST_SOURCES:
            self._parts = [part for index in range(self._count) for part in _parts(create, index, shape)]
        self._causes: dict[int, str] = {}

    def gaps(self, source: Opener, box: Box) -> tuple[str, ...]:
        """Why parts of the box are fill values, one text a source. `source`: opens a file, once."""
        if self._count > MOST_SOURCES:
            return (f"whether all of its {self._count} sources are there was not looked at",)
        for number, part in enumerate(self._parts):
            if number not in self._causes and _meets(part.box, box):
                self._causes[number] = _absence(source, self._stored, part)
        found = [self._causes[number] for number, part in enumerate(self._parts) if _meets(part.box, box)]
        return tuple(dict.fromkeys(cause for cause in found if cause))


def _meets(part: Box | None, box: Box) -> bool:
    """The box may have more dimensions than HDF5 knows of, behind its own."""
    if part is None:
        return True
    spans = zip(part.start, part.stop, box.start, box.stop, strict=False)
    return all(max(low, first) < min(high, last) for low, high, first, last in spans)


def _parts(create: h5p.PropDCID, index: int, shape: Shape) -> Iterator[_Part]:
    file, dataset = create.get_virtual_filename(index), create.get_virtual_dsetname(index)
    space = create.get_virtual_vspace(index)
    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        low, high = space.get_select_bounds()
        yield _Part(Box(low, tuple(last + 1 for last in high)), file, dataset)
        return
    start, stride, count, block = space.get_regular_hyperslab()
    axis = next((axis for axis in range(len(shape)) if h5s.UNLIMITED in (count[axis], block[axis])), None)
    stop = [at + (n - 1) * step + size for at, step, n, size in zip(start, stride, count, block, strict=True)]
    if axis is None:
        yield _Part(Box(start, tuple(stop)), _plain(file), _plain(dataset))
    elif not (_counts(file) or _counts(dataset)):
        yield _Part(None, _plain(file), _plain(dataset))
    else:
        for number in range(min(MOST_SOURCES, max(0, -(-(shape[axis] - start[axis]) // stride[axis])))):
            low, high = list(start), list(stop)
            low[axis] = start[axis] + number * stride[axis]
            high[axis] = low[axis] + block[axis]
            yield _Part(Box(tuple(low), tuple(high)), _plain(file, number), _plain(dataset, number))


def _counts(pattern: str) -> bool:
    return "%b" in pattern.replace("%%", "")


def _plain(pattern: str, number: int | None = None) -> str:
    """The name that a pattern means for the block of that number."""
    counted = (part if number is None else part.replace("%b", str(number)) for part in pattern.split("%%"))
    return "%".join(counted)


def _absence(open_source: Opener, stored: Stored, part: _Part) -> str:
    """Why the source gives nothing; empty: it is there."""
    paths = [stored.home] if part.file == "." else places(part.file, stored)
    cause = f"its source file {part.file!r} is not there"
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110 - raises nothing, whatever the name
            continue
        try:
            source = open_source(path)
        except Error as error:  # HDF5 fails there too
            text = f"its source file {path!r} cannot be read: {error.cause}"
            raise unsupported(stored.home, text, error.advice, stored.info.name) from error
        try:
            shape = source.info(part.dataset).shape
        except KeyError:
            cause = f"its source file {path!r} has no dataset {part.dataset!r}"
            continue
        gaps = source.gaps(part.dataset, Box((0,) * len(shape), shape))
        return f"of its source {path!r}: {gaps[0]}" if gaps else ""
    return cause


def places(file: str, stored: Stored) -> list[str]:
    """Where HDF5 looks for a source file, in its order: the prefixes that are set, the folder of the file that names
    it, the working directory, and the folder that the file really lies in. An absolute name is looked for there, then
    its last part in these."""
    home, given = Path(stored.home).absolute(), os.fsencode(stored.dataset.get_access_plist().get_virtual_prefix())
    prefixes = [*os.environ.get("HDF5_VDS_PREFIX", "").split(":"), os.fsdecode(given)]
    folders = [prefix.replace("${ORIGIN}", str(home.parent), 1) for prefix in prefixes if prefix]
    last = os.path.basename(file) if os.path.isabs(file) else file  # noqa: PTH117, PTH119 - a Path drops a last slash
    first = [file] if last != file else []
    return [*first, *(f"{folder}/{last}" for folder in (*folders, home.parent, ".", home.resolve().parent))]
