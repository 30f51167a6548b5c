"""Restart: all that a model needs to go on, in two files of which one is always whole.

What must stay true: types and shapes of arrays are compared with what is stored before anything moves, and nothing is
converted; a generation that is damaged is never passed over without a warning; of several processes, all take the same
generation or all raise an error.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock import _core
from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._files.open_files import with_room
from penstock._shared import shared_context
from penstock._text import need_characters
from penstock._told import Evidence, evidence_of
from penstock.formats.loading import UnreadableWarning
from penstock.formats.reading.target import target_of
from penstock.restart.together import Alone, Together
from penstock.restart.values import attribute_of, attribute_value, field_of

if TYPE_CHECKING:
    from penstock._api import Context, FileName

Boxes = Mapping[str, tuple[Sequence[int], Sequence[int]]]


@dataclass(frozen=True)
class RestartFacts:
    """What a write or a read of a restart did.

    Attributes:
        generation: that was written or read; the first one is 1.
        data_bytes: of this process.
        seconds: of the call.
        passed_over: why one of the files was not taken; empty: both are whole.
        is_locked: of a write: other writers of the name are refused. False: the file system has no locks.
        evidence: which way the data went.
    """

    generation: int
    data_bytes: int
    seconds: float
    passed_over: str
    is_locked: bool
    evidence: Evidence


class Restart:
    """All that a model needs to go on, in two files of which one is always whole: NAME.0 and NAME.1.

        restart = penstock.Restart("run/restart")
        step = 0
        if restart.find():
            restart.read({"density": density, "gas/x": x})
            step = restart.attrs["step"]
        for step in range(step + 1, steps + 1):
            advance(density, x)
            restart.write({"density": density, "gas/x": x}, attrs={"step": step})

    A write makes the next generation in the place of the older one of the two, once all of it is on stable storage: a
    process, a machine or a disk that ends at any moment leaves a whole one. Each MiB of a field has a checksum, made
    where the array is. The files are HDF5.

    From its first write on the name is that of this Restart, until it is closed or the process ends: another writer of
    the name, of this program too, is refused. Readers are not.

    Args:
        name: of the files, without .0 and .1.
        memory: where arrays lie: "device", "host", or "auto", that of the device: the emulated one is the host.
        durable: a generation that was written survives a power cut.
        comm: a communicator of mpi4py, or another one with rank, size, bcast and allgather: its processes write one
            file, each its box of the fields, and any number of processes reads it. All of them call find, read and
            write.
        path: see penstock.path_names().
        device, context: as of penstock.open().
    """

    def __init__(  # noqa: PLR0913 - one keyword a choice
        self,
        name: FileName,
        *,
        memory: Literal["auto", "device", "host"] = "auto",
        durable: bool = True,
        comm: Any = None,
        path: str = "auto",
        device: str = "auto",
        context: Context | None = None,
    ) -> None:
        self.name = file_name(name, "open restart")
        context = context or shared_context(device)
        if memory not in ("auto", "device", "host"):
            raise ValueError(f"memory is {memory!r}; use one of auto, device, host")
        on_host = memory == "host" or (memory == "auto" and bool(context._place[1]))
        if not isinstance(durable, bool):
            raise TypeError(f"durable is True or False, not {durable!r:.100}")
        self._together = Alone() if comm is None else Together(comm)
        need_characters("path=", path)
        where = self._together.rank, self._together.size
        self._raw = _core.restart(context._raw, self.name, (*where, on_host, durable, path))
        self._end = weakref.finalize(self, self._raw.release)  # also when the interpreter ends

    def write(
        self, fields: Mapping[str, Any], attrs: Mapping[str, Any] | None = None, boxes: Boxes | None = None
    ) -> RestartFacts:
        """The next generation: arrays of any library, each with its elements one behind the other.

        Args:
            fields: by name; names with slashes are groups of the file.
            attrs: text, numbers and small arrays, such as the time and the state of a random generator. The same in all
                processes.
            boxes: of several processes, for fields that this one has a part of: name -> (shape of the whole field,
                where the array begins in it).

        Raises Error with the name of the field; then both generations are as they were.
        """
        own = self._together
        parts = own.each_own(lambda: _parts_of(fields, boxes))

        def told() -> int:
            values = {name: attribute_of(name, value) for name, value in _named("attrs", attrs or {}).items()}
            self._raw.clear()
            for name, value in values.items():
                self._raw.set_attribute(name, value)
            return self._raw.digest(parts)

        own.same(own.each(told), self.name)
        try:
            part = own.first(lambda: with_room(lambda: self._raw.begin(parts, b"")))
            own.others(lambda: with_room(lambda: self._raw.begin(parts, part)))
            moved = own.each(lambda: self._raw.move(parts))
            facts = own.first(lambda: self._raw.commit(moved))
        finally:
            self._raw.abandon()
        return self._told(facts)

    def close(self) -> None:
        """Lets others write the name. Of several processes, where the first one has closed. A later write takes the
        name again."""
        self._raw.release()

    def __enter__(self) -> Restart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find(self) -> bool:
        """Looks for the newest generation. False: there is none. Raises Error where files are there and none is
        whole: a model must not begin anew because its restart is damaged."""
        own = self._together
        found = own.each(lambda: self._raw.generation() if with_room(self._raw.find) else 0)
        own.same(found, self.name)
        return found[0] != 0

    @property
    def generation(self) -> int:
        """The number of what was found or read."""
        return self._raw.generation()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What the fields of the generation that was found or read have, by name."""
        return {name: tuple(self._raw.stored(name)[1]) for name in self._raw.field_names()}

    @property
    def dtypes(self) -> dict[str, str]:
        """Of these fields, as NumPy names them."""
        return {name: self._raw.stored(name)[0] for name in self._raw.field_names()}

    @property
    def attrs(self) -> dict[str, Any]:
        """What the generation that was found or read has."""
        return {name: attribute_value(self._raw.attribute(name)) for name in self._raw.attribute_names()}

    def read(self, fields: Mapping[str, Any], boxes: Boxes | None = None) -> RestartFacts:
        """Fills these arrays from the newest generation; each has the type and, with its box, the shape of the field.

        A generation that is damaged is passed over for the older one, with an UnreadableWarning: ask for `attrs`
        afterwards. Raises Error where no generation is whole, and where it has a field in another shape or type.
        """
        own = self._together
        if not any(own.each(lambda: _is_found(self._raw))) and not self.find():
            cause, advice = "there is no generation", "call find first, and begin from the start where it says so"
            raise Error(operation="read restart", file=self.name, cause=cause, advice=advice)
        parts = own.each_own(lambda: _parts_of(_to_be_filled(fields), boxes))
        while True:
            found = own.each(lambda: self._raw.read_found(parts))
            faults = [fault for fault, _ in found if fault]
            if not faults:
                return self._told(found[own.rank][1])
            self._pass_over(faults[0])

    def _pass_over(self, fault: str) -> None:
        self._together.each(lambda: self._raw.pass_over(fault))

    def _told(self, facts: dict[str, Any]) -> RestartFacts:
        told = dict(facts)
        evidence = evidence_of(told.pop("evidence_json"))
        if told["passed_over"]:
            text = f"restart {self.name}: generation {told['generation']} was taken; {told['passed_over']}"
            warnings.warn(UnreadableWarning(text), stacklevel=3)
        return RestartFacts(**told, evidence=evidence)


def _named(what: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} are a dict by name, not {type(given).__name__}")
    return given


def _parts_of(fields: Mapping[str, Any], boxes: Boxes | None) -> list[Any]:
    if unknown := set(_named("boxes", boxes or {})) - set(_named("fields", fields)):
        raise ValueError(f"boxes= names {', '.join(sorted(map(str, unknown)))}, which are no fields")
    return [field_of(name, array, (boxes or {}).get(name)) for name, array in fields.items()]


def _to_be_filled(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same fields. ValueError: one has no memory, as a number of NumPy has none, or none that may be written."""
    for name, array in _named("fields", fields).items():
        if target_of(array).readonly:
            raise ValueError(f"field {name!r} is read-only; give an array that can be written")
    return fields


def _is_found(raw: _core.Restart) -> bool:
    try:
        return raw.generation() > 0
    except Error:
        return False
