"""Which sources of a virtual dataset are not there: HDF5 then gives fill values without a word, Penstock says so.

Sources are looked for where HDF5 looks for them, and opened: one that has another name, or lacks the dataset, is as
good as none; one that cannot be opened is an Error. What must stay true: a read is told of the sources that its part of
the dataset needs, and only those are opened; where a source of unlimited extent decides the shape, every read is told.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h5py import h5p, h5s

from penstock._error import Error
from penstock.formats.faults import unsupported
from penstock.formats.model import Box, ChunkTable, DatasetInfo, Shape

if TYPE_CHECKING:
    from penstock.formats.hdf5.stored import Stored

MOST_SOURCES = 1 << 16
_MOST_OPEN = 8
_NOT_TOLD = -1  # of a mapping: which elements of its box are a source's


class SourceFile(Protocol):
    """What is needed of the file that holds a source."""

    def info(self, name: str) -> DatasetInfo: ...
    def table(self, name: str, box: Box) -> ChunkTable: ...
    def gaps(self, name: str, box: Box) -> tuple[str, ...]: ...
    def close(self) -> None: ...


Opener = Callable[[str], SourceFile]


@contextmanager
def in_turn(open_source: Opener) -> Iterator[Opener]:
    """Opens sources, each once while no more than _MOST_OPEN others are asked for: a virtual dataset may have more
    than the process may have open."""
    held: OrderedDict[str, SourceFile] = OrderedDict()

    def source(path: str) -> SourceFile:
        if path in held:
            held.move_to_end(path)
            return held[path]
        if len(held) == _MOST_OPEN:
            held.popitem(last=False)[1].close()
        held[path] = open_source(path)
        return held[path]

    try:
        yield source
    finally:
        for one in held.values():
            one.close()


class _Part(NamedTuple):
    """One source file's share of a mapping. `box`: around all that it gives; None: it has no end. `mapping`: its
    number, where the box tells too much; None: all of the box is the source's."""

    box: Box | None
    file: str
    dataset: str
    mapping: int | None = None


class Sources:
    """Of one virtual dataset. What was found of a source is kept."""

    def __init__(self, stored: Stored) -> None:
        create, shape = stored.dataset.get_create_plist(), stored.info.shape[: stored.rank]
        self._stored, self._create, self._count = stored, create, create.get_virtual_count()
        self._parts: list[_Part] = []
        if self._count <= MOST_SOURCES:
            self._parts = [part for index in range(self._count) for part in _parts(create, index, shape)]
        self._found: dict[int, tuple[str, str]] = {}  # why it gives nothing, and the path of its file

    def gaps(self, source: Opener, box: Box) -> tuple[str, ...]:
        """Why parts of the box are fill values, one text a source. `source`: opens a file."""
        if self._count > MOST_SOURCES:
            return (f"whether all of its {self._count} sources are there was not looked at",)
        return tuple(dict.fromkeys(cause for cause, _ in self._of(source, box) if cause))

    def files(self, source: Opener, box: Box) -> set[str]:
        """Paths of the sources that are there, and that HDF5 surely opens for a part."""
        wanted = self._meeting(box)
        pairs = zip(wanted, self._of(source, box), strict=True)
        return {path for number, (cause, path) in pairs if not cause and self._is_needed(self._parts[number], box)}

    def _meeting(self, box: Box) -> list[int]:
        return [number for number, part in enumerate(self._parts) if _meets(part.box, box)]

    def _of(self, source: Opener, box: Box) -> list[tuple[str, str]]:
        wanted = self._meeting(box)
        for number in wanted:
            if number not in self._found:
                self._found[number] = _absence(source, self._stored, self._parts[number])
        return [self._found[number] for number in wanted]

    def _is_needed(self, part: _Part, box: Box) -> bool:
        """Whether the source gives an element of the part; False also where that is not known."""
        if part.box is None or part.mapping == _NOT_TOLD:
            return False
        if part.mapping is None:
            return True
        space, rank = self._create.get_virtual_vspace(part.mapping), len(part.box.start)
        counts = tuple(high - low for low, high in zip(box.start[:rank], box.stop[:rank], strict=True))
        try:
            space.select_hyperslab(box.start[:rank], counts, op=h5s.SELECT_AND)
        except (ValueError, RuntimeError, OSError):  # of single points
            return False
        return space.get_select_npoints() > 0

    def moved(self, stored: Stored) -> None:
        """The dataset was opened again."""
        self._stored = stored


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
        yield _Part(Box(low, tuple(last + 1 for last in high)), file, dataset, index)
        return
    start, stride, count, block = space.get_regular_hyperslab()
    axis = next((axis for axis in range(len(shape)) if h5s.UNLIMITED in (count[axis], block[axis])), None)
    stop = [at + (n - 1) * step + size for at, step, n, size in zip(start, stride, count, block, strict=True)]
    if axis is None:
        yield _Part(Box(start, tuple(stop)), _plain(file), _plain(dataset), index)
    elif not (_counts(file) or _counts(dataset)):
        yield _Part(None, _plain(file), _plain(dataset))
    else:
        others = [one for one in range(len(shape)) if one != axis]
        is_whole = all(count[one] == 1 or stride[one] == block[one] for one in others)
        for number in range(min(MOST_SOURCES, max(0, -(-(shape[axis] - start[axis]) // stride[axis])))):
            low, high = list(start), list(stop)
            low[axis] = start[axis] + number * stride[axis]
            high[axis] = low[axis] + block[axis]
            within = Box(tuple(low), tuple(high))
            yield _Part(within, _plain(file, number), _plain(dataset, number), None if is_whole else _NOT_TOLD)


def _counts(pattern: str) -> bool:
    return "%b" in pattern.replace("%%", "")


def _plain(pattern: str, number: int | None = None) -> str:
    """The name that a pattern means for the block of that number."""
    counted = (part if number is None else part.replace("%b", str(number)) for part in pattern.split("%%"))
    return "%".join(counted)


def _absence(open_source: Opener, stored: Stored, part: _Part) -> tuple[str, str]:
    """(why the source gives nothing, its path); the first is empty where it is there."""
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
        return (f"of its source {path!r}: {gaps[0]}" if gaps else ""), path
    return cause, ""


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
