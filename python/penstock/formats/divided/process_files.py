"""Files of the processes of a model, each with its part of the domain, as one container.

SCALE-RM writes such sets: history.pe000000.nc, history.pe000001.nc and so on. A coordinate says where the part of its
file lies: `size_global`, the length in the whole domain, `start_global`, the number of its first element there, from 1
on, and `halo_local`, elements at both ends that another file may have too. Dimensions without these are whole in each
file, and are taken from the first one. What must stay true: the parts fill the domain, and no element has two; a set
with a gap, or with a file of another set, is refused in a line that names the file; steps count that all files have.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock._arrays.selection import Box
from penstock._error import Error
from penstock.formats.divided.places import Reach, Span, as_told, divisions, is_in_doubt, span_of
from penstock.formats.faults import unknown
from penstock.formats.format import Format
from penstock.formats.model import (
    ChunkLookup,
    ChunkTable,
    Container,
    DatasetInfo,
    FilePart,
    Share,
    Watch,
)

_NUMBER = re.compile(r"#+")
_WITH_DOT = re.compile(r"\.?#+")
_GRID = ("scale_cartesC_prc_num_x", "scale_cartesC_prc_num_y")
_Opener = Callable[[str], Container]


def set_of(name: str, open_file: Callable[[str], tuple[Format, Container]]) -> tuple[Format, Container]:
    """The format of the first file, and the set. `open_file` opens one."""
    kinds: list[Format] = []

    def opened(file: str) -> Container:
        kind, container = open_file(file)
        kinds.append(kind)
        return container

    found = ProcessFiles(name, opened)
    return kinds[0], found


@dataclass(frozen=True)
class _File:
    container: Container
    attributes: Mapping[str, Any]
    spans: Mapping[str, Span]  # of dimensions that are divided
    records: Mapping[str, tuple[int, Any]]  # of dimensions that grow: so many, and the units of their coordinate
    places: Mapping[str, Reach] = field(default_factory=dict)  # of the divided ones, when all files are known

    @property
    def name(self) -> str:
        return self.container.name


class ProcessFiles(Container):
    """A set, opened for reading. `open_file` opens one of its files."""

    def __init__(self, name: str, open_file: _Opener) -> None:
        self.name = name
        self._files: list[_File] = []
        self._shares: dict[str, tuple[DatasetInfo, list[Share] | None]] = {}
        self._parts: dict[str, tuple[Container, str]] = {}  # datasets of files, by the names of shares
        try:
            for number, file in enumerate(_files_of(name)):
                self._files.append(self._look(open_file(file)))
                self._need_alike(number, self._files[-1])
        except BaseException:
            self.close()
            raise
        first = self._files[0]
        self.format, self.part_bytes = first.container.format, first.container.part_bytes
        self._need_whole()
        names = set(first.container.names())
        self._own = {name for name in names if f"{name}G" in names and name not in first.places}
        shared = first.attributes.items()
        self._attributes = {key: value for key, value in shared if all(_has(one, key, value) for one in self._files)}
        self._records = {
            dim: min(one.records[dim][0] for one in self._files) for dim in first.records if dim not in first.places
        }

    def names(self) -> Sequence[str]:
        """Without those that each process has for itself, beside one of the whole domain: CX beside CXG."""
        return [name for name in self._files[0].container.names() if not self._is_own(name)]

    def info(self, name: str) -> DatasetInfo:
        return self._whole(name)[0]

    def shares(self, name: str, box: Box) -> Sequence[Share] | None:
        shares = None if name in self._parts else self._whole(name)[1]
        return None if shares is None else [one for one in shares if _meets(one, box)]

    def table(self, name: str, box: Box) -> ChunkTable:
        container, own = self._place_of(name)
        return container.table(own, box)

    def decode(self, name: str, box: Box) -> bytes | bytearray | memoryview:
        container, own = self._place_of(name)
        return container.decode(own, box)

    def decoding(self, name: str, box: Box) -> Callable[[], bytes | bytearray | memoryview]:
        container, own = self._place_of(name)
        return container.decoding(own, box)

    def values(self, name: str, box: Box) -> np.ndarray:
        container, own = self._place_of(name)
        return container.values(own, box)

    def attributes(self, group: str = "") -> Mapping[str, Any]:
        """Those of the file that all have alike; a group has those of the first file."""
        return self._files[0].container.attributes(group) if group.strip("/") else self._attributes

    def is_group(self, name: str) -> bool:
        return self._files[0].container.is_group(name)

    def watch(self, name: str) -> Watch | None:
        return self._files[0].container.watch(name) if self._is_of_first(name) else None

    def place(self, name: str) -> int | None:
        return self._files[0].container.place(name) if self._is_of_first(name) else None

    def part(self, name: str, box: Box) -> FilePart | None:
        return self._files[0].container.part(name, box) if self._is_of_first(name) else None

    def lookup(self, name: str) -> ChunkLookup | None:
        return self._files[0].container.lookup(name) if self._is_of_first(name) else None

    def stored_bytes(self, name: str) -> int | None:
        return self._files[0].container.stored_bytes(name) if self._is_of_first(name) else None

    def hindrance(self, name: str) -> str:
        return self._files[0].container.hindrance(name) if self._is_of_first(name) else self.info(name).refusal

    def close(self) -> None:
        for one in self._files:
            one.container.close()

    # -- the set

    def _look(self, container: Container) -> _File:
        """What of it must fit the others."""
        try:
            names, attributes = container.names(), container.attributes()
            known = self._files[0].spans if self._files else names
            dims = [dim for dim in known if dim in names]
            coordinates = {dim: info for dim in dims if (info := container.info(dim)).dimensions == (dim,)}
            spans = {dim: found for dim, info in coordinates.items() if (found := span_of(container.name, info))}
            grows = self._files[0].records if self._files else coordinates
            infos = {dim: container.info(dim) for dim in grows if dim in names}
        except BaseException:
            container.close()
            raise
        return _File(container, attributes, spans, dict(_growing(infos)))

    def _need_alike(self, number: int, one: _File) -> None:
        rank = one.attributes.get("rankid")
        if rank is not None and int(np.ravel(rank)[0]) != number:
            raise self._refused(one, f"it says that it is of process {int(np.ravel(rank)[0])}, its name of {number}")
        first = self._files[0]
        theirs, ours = set(one.container.names()), set(first.container.names())
        if theirs != ours:
            name = min(theirs ^ ours)
            has, lacks = (one, first) if name in theirs else (first, one)
            raise self._refused(one, f"{has.name} has {name!r}, and {lacks.name} has not")
        for dim in first.spans:
            size = one.spans[dim].size if dim in one.spans else None
            if size != first.spans[dim].size:
                raise self._refused(
                    one, f"its {dim} is of {size} in all, of {first.name} it is {first.spans[dim].size}"
                )
        for dim, (_, units) in first.records.items():
            if dim not in one.records or one.records[dim][1] != units:
                told = one.records[dim][1] if dim in one.records else "no steps"
                raise self._refused(one, f"its {dim} has {told!r}, that of {first.name} has {units!r}")

    def _refused(self, one: _File, cause: str, advice: str = "") -> Error:
        advice = advice or f"{self.name} is to be of one run of a model: move files of others away"
        return Error(code="damaged", operation="open as a part of a set", file=one.name, cause=cause, advice=advice)

    def _need_whole(self) -> None:
        """That no file is missing, and no element is in two of them."""
        first, count = self._files[0], len(self._files)
        grid = [int(np.ravel(first.attributes[key])[0]) for key in _GRID if key in first.attributes]
        if len(grid) == 2 and grid[0] * grid[1] != count:
            cause = f"it was written by {grid[0]} x {grid[1]} processes, and there are {count} files"
            raise self._refused(first, cause)
        if not first.spans and count > 1:
            raise self._without_places(first)
        self._divide()
        first = self._files[0]
        parts: dict[tuple[Any, ...], str] = {}
        for one in self._files:
            key = tuple(one.places[dim] for dim in first.places)
            if key in parts:
                cause = f"it has the part of the domain that {parts[key]} has"
                halo = next((dim for dim, span in one.spans.items() if is_in_doubt(span)), None)
                raise self._refused(one, cause) if halo is None else self._in_doubt(one, halo, f"{cause}, or ")
            parts[key] = one.name
        for dim in first.places:
            self._need_line(dim)

    def _without_places(self, one: _File) -> Error:
        cause = "no coordinate has start_global and size_global: nothing says which part it is"
        if one.container.format != "hdf5":
            return self._refused(one, cause)
        whole = _WITH_DOT.sub("", self.name)
        shown = f"a snapshot of a file of each process (file_each) is read by the virtual file of them, {whole}"
        there = "open that one" if Path(whole).is_file() else "write it too, by virtual_file"
        return self._refused(one, cause, f"{shown}: {there}")

    def _divide(self) -> None:
        """Gives each file its place in the domain."""
        places: dict[str, Mapping[Span, Reach]] = {}
        for dim in self._files[0].spans:
            spans = {one.spans[dim] for one in self._files}
            found = divisions(spans)
            if len(found) > 1:
                raise self._in_doubt(self._files[0], dim)
            places[dim] = found[0] if found else as_told(spans)
        self._files = [
            replace(one, places={dim: of_span[one.spans[dim]] for dim, of_span in places.items()})
            for one in self._files
        ]

    def _in_doubt(self, one: _File, dim: str, cause: str = "") -> Error:
        wide = f"its halo along {dim} is as wide as its neighbour's part"
        cause = f"{cause}{wide}: nothing says which elements are its own"
        return self._refused(one, cause, "give halo_local as 0 where a file has no neighbour, or write narrower halos")

    def _need_line(self, dim: str) -> None:
        """The parts of a dimension follow each other."""
        end, before = 0, ""
        parts = {one.places[dim]: one for one in reversed(self._files)}
        for place in sorted(parts):
            one = parts[place]
            if place.start < end:
                cause = f"its {dim} begins with element {place.start}, and {before} has those before {end}"
                raise self._refused(one, cause)
            if place.start > end:
                raise self._refused(
                    one, f"no file has the elements {end} to {place.start} of {dim} that come before it"
                )
            end, before = place.stop, one.name
        size = self._files[0].places[dim].size
        if end != size:
            raise self._refused(parts[max(parts)], f"no file has the elements {end} to {size} of {dim} that follow it")

    # -- its datasets

    def _is_of_first(self, name: str) -> bool:
        return name not in self._parts and self._whole(name)[1] is None

    def _place_of(self, name: str) -> tuple[Container, str]:
        """The container of a share, or of a dataset that is not divided."""
        return self._parts.get(name) or (self._files[0].container, name)

    def _whole(self, name: str) -> tuple[DatasetInfo, list[Share] | None]:
        name = name.strip("/")
        if name not in self._shares:
            if self._is_own(name):
                raise unknown(self.name, name, self.names())
            self._shares[name] = self._joined(name)
        return self._shares[name]

    def _is_own(self, name: str) -> bool:
        """Whether each process has it for itself, beside one of the whole domain."""
        return bool(self._own) and bool(self._own & {name, *(self._files[0].container.info(name).dimensions or ())})

    def _joined(self, name: str) -> tuple[DatasetInfo, list[Share] | None]:
        first = self._files[0]
        info = first.container.info(name)
        placed = [dim for dim in info.dimensions or () if dim in first.places]
        files = list({tuple(one.places[dim] for dim in placed): one for one in reversed(self._files)}.values())
        shape = self._shape(info)
        if shape == info.shape and not placed:
            return info, None
        shares = [self._share(one, name, info, shape) for one in files]
        if sum(_elements(share.box) for share in shares) != math.prod(shape):
            raise self._refused(first, f"the files have not all parts of {name!r}: one of them is missing")
        text = "it is text that is divided over files" if info.dtype.host_only else ""
        grows = zip(info.resizable or shape, shape, strict=True)
        largest = tuple(None if most is None else length for most, length in grows)
        return replace(info, shape=shape, resizable=largest, layout="chunked", refusal=info.refusal or text), shares

    def _shape(self, info: DatasetInfo) -> tuple[int, ...]:
        """That the whole has."""
        places = self._files[0].places
        lengths = zip(info.dimensions, info.shape, strict=True) if info.dimensions else ()
        found = tuple(
            places[dim].size if dim in places else min(length, self._records.get(dim, length))
            for dim, length in lengths
        )
        return found or info.shape

    def _share(self, one: _File, name: str, like: DatasetInfo, shape: tuple[int, ...]) -> Share:
        info = one.container.info(name)
        if (info.dtype, info.dimensions, info.order) != (like.dtype, like.dimensions, like.order):
            cause = f"its {name!r} has {info.dtype} over {info.dimensions}"
            raise self._refused(one, f"{cause}, that of the first file {like.dtype} over {like.dimensions}")
        own = f"{Path(one.name).name}:{name}"
        self._parts[own] = one.container, name
        low, high, origin = [], [], []
        for dim, length in zip(info.dimensions or (), shape, strict=True):
            place = one.places.get(dim, Reach(0, length, 0, length))
            low.append(place.skip)
            high.append(place.skip + place.stop - place.start)
            origin.append(place.start)
        return Share(replace(info, name=own), Box(tuple(low), tuple(high)), tuple(origin))


def _files_of(name: str) -> list[str]:
    """By the numbers of their processes. Error where one is missing."""
    folder, last = os.path.split(name)
    runs = list(_NUMBER.finditer(last))
    if len(runs) != 1:
        raise ValueError(f"{name} has {len(runs)} runs of #; the number of a process is one")
    run = runs[0]
    wanted = re.compile(re.escape(last[: run.start()]) + rf"(\d{{{len(run[0])},}})" + re.escape(last[run.end() :]))
    try:
        listed = [one.name for one in Path(folder).iterdir()]
    except OSError as error:
        raise Error.of(error, "open", name, "check the name and its permissions") from None
    numbers = {int(found[1]): one for one in listed if (found := wanted.fullmatch(one))}
    for number in range(max(numbers, default=0) + 1):
        if number not in numbers:
            file = (
                name[: len(name) - len(last)] + last[: run.start()] + str(number).zfill(len(run[0])) + last[run.end() :]
            )
            cause = f"process {number} has no file" if numbers else "there is no file of that name"
            advice = f"{name} stands for the files of processes 0, 1 and so on: bring all of them there"
            raise Error(code="not_found", operation="open", file=file, cause=cause, advice=advice)
    return [str(Path(folder, numbers[number])) for number in sorted(numbers)]


def _growing(infos: Mapping[str, DatasetInfo]) -> Iterator[tuple[str, tuple[int, Any]]]:
    for dim, info in infos.items():
        if info.resizable and info.resizable[0] is None:
            yield dim, (info.shape[0], info.attributes.get("units"))


def _has(one: _File, key: str, value: Any) -> bool:
    return key in one.attributes and np.array_equal(one.attributes[key], value)


def _elements(box: Box) -> int:
    return math.prod(high - low for low, high in zip(box.start, box.stop, strict=True))


def _meets(share: Share, box: Box) -> bool:
    spans = zip(share.origin, share.box.start, share.box.stop, box.start, box.stop, strict=True)
    return all(at < high and at + stop - start > low for at, start, stop, low, high in spans)
