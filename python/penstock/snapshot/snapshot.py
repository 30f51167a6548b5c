"""Snapshot: all fields of a model at one moment, written by one call to a new HDF5 file.

What must stay true: nothing is converted or copied; whatever is wrong is told before a file is made; arrays may change
when write() has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock import _core
from penstock._files.file_name import file_name
from penstock._shared import shared_context
from penstock._text import need_characters
from penstock._told import Evidence, evidence_of
from penstock.formats.reading.target import Target, stream_handle
from penstock.formats.writing import value_of
from penstock.snapshot.cells import CellCalls, CellGrid, Positions, counted, given_cells, together
from penstock.snapshot.together import NewField, SnapshotRanks
from penstock.snapshot.values import attributes_of, box_of, cells_of, masses_of, numbers_of, type_name

if TYPE_CHECKING:
    from penstock._api import Context, FileName
    from penstock._files.communicator import Communicator


@dataclass(frozen=True)
class SnapshotFacts:
    """How long a snapshot took, and which way its data went.

    Attributes:
        file_bytes, data_bytes: of the file; of all fields.
        layout_seconds: until the place of each byte was known.
        write_seconds: from there until the file had its name.
        evidence: of the transfer of the data.
    """

    file_bytes: int
    data_bytes: int
    layout_seconds: float
    write_seconds: float
    evidence: Evidence


class Snapshot:
    """All fields of a model at one moment, written by one call to a new HDF5 file.

        fields = {"PartType1/Coordinates": positions, "PartType1/Masses": masses}
        snapshot = penstock.Snapshot("snapshot_042.hdf5", fields)
        snapshot.use_preset("gadget4", box_size=100.0, time=0.5)
        snapshot.set_attrs("Header", {"Comment": "a test"})
        facts = snapshot.write()

    The file appears under its name, whole, when all is written. Until then, and after an error or an interrupt, a file
    that had the name stays as it was. Arrays are on the device or, with memory="host", on the host; they have their
    elements in C order, and are kept until write() takes them.

    With `comm`, each process of MPI has a Snapshot and gives the rows that it has. One file has the rows of all, or
    each process has its own. All of them make the Snapshot and call add_dataset(), add_cells() or sort_by_cells(), and
    write(), in one order: where one fails in these, or where they add other datasets, all raise an Error that says so.

    Args:
        name: of the file. An older one is replaced.
        fields: arrays of any library, by the path of their dataset. More by add_dataset() and write().
        memory: where fields lie: "device", "host", or "auto", that of the device: the emulated one is the host.
        durable: when write() returns, the file survives a power cut.
        replace: False refuses a name that is there.
        path: see penstock.path_names().
        chunk_rows: store datasets in chunks of so many rows; 0: one element behind the other.
        checksums: each chunk has a Fletcher-32, which readers compare: SWIFT has it, with 8192 rows.
        comm: of mpi4py, or what has its rank, size, allgather and bcast.
        file_each: each process writes NAME.N.hdf5.
        virtual_file: process 0 also writes NAME.hdf5, whose datasets are those of all files together.
        device, context: as of penstock.open().
    """

    def __init__(  # noqa: PLR0913 - one keyword a choice
        self,
        name: FileName,
        fields: Mapping[str, Any] | None = None,
        *,
        memory: Literal["auto", "device", "host"] = "auto",
        durable: bool = False,
        replace: bool = True,
        path: str = "auto",
        chunk_rows: int = 0,
        checksums: bool = False,
        comm: Communicator | None = None,
        file_each: bool = False,
        virtual_file: bool = False,
        device: str = "auto",
        context: Context | None = None,
    ) -> None:
        self._chunks = chunk_rows, checksums
        self._fields: dict[str, Target] = {}
        self._ranks = SnapshotRanks(comm)

        def opened() -> None:
            self.name = self._ranks.name = file_name(name, "open snapshot")
            found = context or shared_context(device)
            self._context = found._raw
            self._raw = _core.snapshot(
                self._context,
                self.name,
                memory=("host" if found._place[1] else "device") if memory == "auto" else memory,
                durable=durable,
                replace=replace,
                path=path,
                file_each=file_each,
                virtual_file=virtual_file,
                **self._ranks.numbers(),
            )

        self._ranks.each_own(opened, "opens a snapshot")
        self._add(lambda: _new_fields(fields or {}, None), "opens a snapshot")

    def add_group(self, path: str) -> None:
        """The group and those above it, which may be there already."""
        self._raw.add_group(_path(path))

    def add_link(self, path: str, target: str, file: str = "") -> None:
        """A soft link: another name for `target`, a path from the root, or with `file` a path in that file. Nothing
        needs to be there."""
        self._raw.add_link(_path(path), _path(target), _path(file))

    def add_dataset(self, path: str, array: Any, stream: Any = None, *, is_whole: bool = False) -> None:
        """A dataset with type, shape and elements of the array; groups of the path that lack are made. `stream`: work
        that is queued there comes first. Raises Error of a path that is there, and of memory of another place than
        that of the snapshot; then the snapshot is as it was.

        Of several processes, each gives its rows, along the first dimension, in the order of the processes. `is_whole`:
        the array is all of the dataset, on each of them, as one value always is. The call is collective: where one
        of them fails, all raise its message."""
        self._add(lambda: [_new_field(path, array, stream, is_whole)], "adds a dataset")

    def add_cells(self, cells: Sequence[int], box_size: float | Sequence[float], positions: Mapping[int, Any]) -> None:
        """The group Cells of SWIFT, by which swiftsimio loads a part of the box: how many particles each cell has,
        where they lie, and the bounds of their positions. After the datasets of the particles.

        Of several processes, each gives the positions of its own particles. A cell is of one process, which has all its
        particles of a type. The call is collective: where one of them fails, all raise its message.

        Args:
            cells: their number along each dimension.
            box_size: one length, or three.
            positions: of each type of particles, by its number: arrays of the host, or of the device where the fields
                are there. Raises Error where they do not lie sorted by cell: penstock.cell_order() tells how to sort
                them, and sort_by_cells() does it.
        """
        call = CellCalls("adds cells", self._raw.add_cells, self._raw.count_cells)
        self._make_cells(lambda: given_cells(cells, box_size, positions), call)

    def sort_by_cells(
        self, cells: Sequence[int], box_size: float | Sequence[float], positions: Mapping[int, Any]
    ) -> None:
        """In place of add_cells() where particles lie in any order: the device finds the order of cells, and write()
        puts the rows of each dataset of PartTypeN that has a row a particle into that order. Arrays stay as they are.

        Of several processes, each sorts its own particles, as add_cells() has them.

        Args:
            cells, box_size: as of add_cells().
            positions: of each type of particles, by its number: arrays that lie where the fields do.
        """
        call = CellCalls("sorts by cells", self._raw.sort_by_cells, self._raw.sort_and_count)
        self._make_cells(lambda: given_cells(cells, box_size, positions), call)

    def _make_cells(self, look: Callable[[], tuple[CellGrid, list[Positions]]], call: CellCalls) -> None:
        grid, types = self._ranks.grid(look, call.act)
        if self._ranks.alone:
            call.alone((grid.cells, grid.box_size), types)
            return
        told = self._ranks.each(lambda: counted(call, grid, types), call.act)
        self._ranks.each_own(lambda: self._raw.add_counted_cells(*together(grid, told)), call.act)

    def set_attrs(self, path: str, attrs: Mapping[str, Any]) -> None:
        """Attributes of a group or a dataset that was added; "/" is the file. Each replaces one of its name.

        A number is one value, and an array of numbers an array, also of one number: readers tell them apart. NumPy's
        numbers keep their type; int becomes int64, float float64. Text has a fixed length, all of an array the same.
        """
        for attribute in attributes_of(attrs):
            self._raw.set_attribute(_path(path), attribute)

    def use_preset(  # noqa: PLR0913 - one keyword a choice
        self,
        layout: str,
        *,
        time: float = 0.0,
        is_cosmological: bool = False,
        is_periodic: bool = True,
        scale_factor: float = 1.0,
        box_size: float | Sequence[float] = 0.0,
        hubble_param: float = 1.0,
        omega_matter: float = 0.0,
        omega_lambda: float = 0.0,
        omega_baryon: float = 0.0,
        unit_length_cm: float = 1.0,
        unit_mass_g: float = 1.0,
        unit_time_s: float = 1.0,
        mass_table: Sequence[float] = (),
        run_name: str = "",
        system: str = "",
        code_version: str = "",
        date: str = "",
    ) -> None:
        """All groups, links and attributes that a code writes besides its data: of the header, of units, and of each
        dataset PartTypeN/NAME that was added before. Attributes that are set later replace them.

        Args:
            layout: "gadget4", "swift", "arepo", "gizmo" or "gothic".
            time: in the unit of time.
            is_cosmological: coordinates are comoving.
            scale_factor: 1 / (1 + redshift).
            box_size: one length, or three.
            hubble_param: h, in 100 km/s/Mpc.
            unit_length_cm, unit_mass_g, unit_time_s: of the datasets.
            mass_table: of each type whose particles have one mass; SWIFT: the mean at the begin.
            system: the machine.
            date: SWIFT writes it as "12:31:00 2026-03-01 UTC".
        """
        self._raw.use_preset(
            layout=layout,
            time=time,
            is_cosmological=is_cosmological,
            is_periodic=is_periodic,
            scale_factor=scale_factor,
            box_size=box_of(box_size),
            hubble_param=hubble_param,
            omega_matter=omega_matter,
            omega_lambda=omega_lambda,
            omega_baryon=omega_baryon,
            unit_length_cm=unit_length_cm,
            unit_mass_g=unit_mass_g,
            unit_time_s=unit_time_s,
            mass_table=masses_of(mass_table),
            run_name=run_name,
            system=system,
            code_version=code_version,
            date=date,
        )

    def write(self, fields: Mapping[str, Any] | None = None, *, stream: Any = None) -> SnapshotFacts:
        """Adds these fields, and writes all. `stream`: work that is queued there comes first. Raises Error with the
        name of the dataset; then the file is not there, and a second call may follow. Where the memory of one of these
        fields is of another place than that of the snapshot, none of them is added. Afterwards the snapshot is done:
        each moment is a Snapshot of its own."""
        self._add(lambda: _new_fields(fields or {}, stream), "writes")
        self._ranks.each_own(self._wait_for_streams)
        told = self._ranks.write(self._raw, self._given)
        self._fields.clear()
        evidence = evidence_of(told.pop("evidence_json"))
        return SnapshotFacts(**told, evidence=evidence)

    def _wait_for_streams(self) -> None:
        for target in self._fields.values():
            if target.stream is not None:
                _core.synchronize_stream(self._context, target.stream)

    def _given(self) -> list[tuple[str, Any, int, int]]:
        return [_given(path, one) for path, one in self._fields.items()]

    def _add(self, look: Callable[[], list[tuple[NewField, Target]]], act: str) -> None:
        """The datasets that `look` gives. What is wrong with one is told before any of them is added."""

        def looked() -> list[tuple[NewField, Target]]:
            found = look()
            for field, target in found:
                self._raw.check_memory(_given(field.path, target))
            return found

        new, rows = self._ranks.fields(looked, act)

        def added() -> None:
            for (field, target), each in zip(new, rows, strict=True):
                self._add_one(field, target, each)

        if new:
            self._ranks.each_own(added, act)

    def _add_one(self, field: NewField, target: Target, process_rows: list[int]) -> None:
        chunk_rows, checksums = self._chunks if target.shape else (0, False)
        self._raw.add_dataset(
            path=field.path,
            dtype=field.dtype,
            shape=list(target.shape),
            process_rows=process_rows,
            chunk_rows=chunk_rows,
            has_checksums=checksums,
        )
        self._fields[field.path] = target


def _given(path: str, target: Target) -> tuple[str, Any, int, int]:
    """As the core takes it."""
    return path, target.memory, target.base, target.nbytes


def _new_fields(fields: Mapping[str, Any], stream: Any) -> list[tuple[NewField, Target]]:
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields are a dict of paths and arrays, not {type(fields).__name__}")
    return [_new_field(path, array, stream) for path, array in fields.items()]


def _new_field(path: str, array: Any, stream: Any, is_whole: bool = False) -> tuple[NewField, Target]:
    target = value_of(array, stream_handle(stream))
    if not isinstance(target, Target):
        raise TypeError(f"dataset {_path(path)!r} is text of any length: give an array of fixed length (numpy S)")
    dtype = type_name(_path(path), target.dtype)
    if not target.is_order("C"):
        raise ValueError(f"dataset {path!r}: the array is not in C order; give numpy.ascontiguousarray(array)")
    if is_whole or not target.shape:
        return NewField(path, dtype, tuple(target.shape), None), target
    return NewField(path, dtype, tuple(target.shape[1:]), target.shape[0]), target


def cell_order(positions: Any, cells: Sequence[int], box_size: float | Sequence[float]) -> Any:
    """The particles in the order of SWIFT's cells, as an array of NumPy: `array[order]` of each array of these
    particles sorts them for Snapshot.add_cells().

        order = penstock.cell_order(positions, (16, 16, 16), box_size)
        fields = {path: array[order] for path, array in fields.items()}

    Args:
        positions: an array of the host, of three numbers each, float32 or float64.
        cells: their number along each dimension.
        box_size: one length, or three.
    """
    import numpy as np

    told = numbers_of(positions)
    order = np.empty(len(told[1]), "uint64")
    _core.cell_order(shared_context("host")._raw, (cells_of(cells), box_of(box_size)), told, order)
    return order


def _path(path: str) -> str:
    if not isinstance(path, str):
        raise TypeError(f"a path is a str, not {type(path).__name__}")
    need_characters("the path", path)
    return path
