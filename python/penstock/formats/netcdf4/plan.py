"""Which dimensions new variables have: known ones, or new ones, found by name in their group and in those above.

What must stay true: two variables that name one dimension agree on its length, or on its having none; nothing here
touches the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from h5py import h5d, h5f, h5o

from penstock.formats.faults import refused
from penstock.formats.hdf5.open import name_bytes, names_of
from penstock.formats.model import NewDataset
from penstock.formats.netcdf4.dims import Dimension, dimension, is_scale


@dataclass(frozen=True)
class Planned:
    """A variable to make, and its dimensions."""

    dataset: NewDataset
    dimensions: tuple[Dimension, ...]


class Registry:
    """Dimensions of a file: those it has, and those that are to be made."""

    def __init__(self, file: str, metadata: h5f.FileID) -> None:
        self._file = file
        self.stored: dict[str, Dimension] = {}
        self.new: dict[str, Dimension] = {}
        for name in names_of(metadata):
            dataset = h5o.open(metadata, name_bytes(name))
            if isinstance(dataset, h5d.DatasetID) and is_scale(dataset):
                self.stored[name] = dimension(dataset, {})._replace(path=name)

    def plan(self, datasets: Sequence[NewDataset]) -> list[Planned]:
        """Plans in the order of the datasets. Coordinate variables say first where their dimensions belong."""
        before = dict(self.new)
        order = sorted(range(len(datasets)), key=lambda index: not _is_coordinate(datasets[index]))
        try:
            plans = {index: self._plan(datasets[index]) for index in order}
        except BaseException:
            self.new = before
            raise
        return [plans[index] for index in range(len(datasets))]

    def _plan(self, new: NewDataset) -> Planned:
        names = new.dimensions or (None,) * len(new.shape)
        if len(names) != len(new.shape):
            raise refused(self._file, f"{len(names)} names for {len(new.shape)} dimensions", "", new.name)
        most, used = list(new.resizable or new.shape), []
        for axis, (name, extent) in enumerate(zip(names, new.shape, strict=True)):
            found = self._named(new, name, most[axis]) if name is not None else None
            found = found or self._like(new, most[axis], used)
            if found is None:
                found = self._add(new, name, most[axis])
            if found.length is None:
                most[axis] = None  # type: ignore[call-overload]  - a variable of an unlimited dimension can grow
            elif found.length != extent:
                raise self._disagrees(new, found, extent)
            used.append(found)
        resizable = tuple(most) if None in most else None
        return Planned(replace(new, resizable=resizable, dimensions=None), tuple(used))

    def _named(self, new: NewDataset, name: str, length: int | None) -> Dimension | None:
        """The nearest dimension of that name. One further above with another length is another dimension."""
        group = new.name.rpartition("/")[0]
        for depth, place in enumerate(_above(group)):
            path = f"{place}/{name}".strip("/")
            found = self.stored.get(path) or self.new.get(path)
            if found is None:
                continue
            if found.length is None or found.length == length:
                return found
            if depth == 0:
                raise self._disagrees(new, found, length)
            return None
        return None

    def _like(self, new: NewDataset, length: int | None, used: Sequence[Dimension]) -> Dimension | None:
        """For a dimension without a name: one that was named after the same length."""
        if new.dimensions is not None:
            return None
        for path, found in {**self.stored, **self.new}.items():
            alike = found.length == length and found not in used and "/" not in path
            if alike and found.name.startswith("record" if length is None else f"dim_{length}"):
                return found
        return None

    def _add(self, new: NewDataset, name: str | None, length: int | None) -> Dimension:
        group = new.name.rpartition("/")[0] if name is not None else ""
        plain = name if name is not None else "record" if length is None else f"dim_{length}"
        if not plain or "/" in plain:
            raise refused(self._file, f"{plain!r} is not a valid name for a dimension", "", new.name)
        turns = itertools.count(1)
        paths = (f"{group}/{plain}{'' if turn == 1 else f'_{turn}'}".strip("/") for turn in turns)
        path = next(one for one in paths if name is not None or (one not in self.stored and one not in self.new))
        self.new[path] = Dimension(path, length)
        return self.new[path]

    def _disagrees(self, new: NewDataset, found: Dimension, extent: int | None) -> Exception:
        lengths = f"{found.length if found.length is not None else 'no fixed length'}, not {extent or 'unlimited'}"
        return refused(self._file, f"dimension {found.name!r} has length {lengths}", "", new.name)


def _is_coordinate(new: NewDataset) -> bool:
    return bool(new.dimensions) and new.dimensions[0] == new.name.rpartition("/")[2]


def _above(group: str) -> Iterator[str]:
    """The group, those that it lies in, and the root."""
    while group:
        yield group
        group = group.rpartition("/")[0]
    yield ""
