"""History: fields of a running model, written step by step to a file that other programs read, while the model runs.

What must stay true: types and shapes of arrays are compared with their definition before anything is packed; nothing is
converted but numbers to the type of the file; put() returns when the array may change.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from penstock import _core
from penstock._arrays.dtype import DType
from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._files.open_files import with_room
from penstock._shared import shared_context
from penstock._sizes import lengths_of
from penstock._told import Evidence, evidence_of
from penstock.formats.reading.target import stream_handle
from penstock.history.arrays import PlainArray, PutField, SeenArray, numbers, plain
from penstock.history.grid import ScaleGrid
from penstock.history.together import HistoryRanks
from penstock.history.values import (
    Halo,
    attributes_of,
    compression_of,
    halo_of,
    names_of,
    need_texts,
    number_of,
    plain_name,
    whole_shape,
)

if TYPE_CHECKING:
    from penstock._api import Context, FileName
    from penstock._files.communicator import Communicator


@dataclass(frozen=True)
class HistoryFacts:
    """How far a history is, and where the time went.

    Attributes:
        steps_ended, steps_written: ended by the model; whose data, of this process, are in the file.
        steps_published: seen by readers of the file.
        step_bytes, slot_bytes: of one step in the file, where nothing is compressed; of the memory of all slots.
        put_seconds: in put() and end_step(), without waits.
        wait_seconds: for a free slot: the file is slower than the model.
        write_seconds: in the background, from a packed slot to a step that readers see.
        stored_bytes: of all steps that were written, as the file has them.
        encode_seconds: of write_seconds, for the compression.
        evidence: which way the last step went, or without slots the last field; None before the first.
    """

    steps_ended: int
    steps_written: int
    steps_published: int
    step_bytes: int
    slot_bytes: int
    put_seconds: float
    wait_seconds: float
    write_seconds: float
    stored_bytes: int
    encode_seconds: float
    evidence: Evidence | None


def history_split(length: int, processes: int, process: int) -> tuple[int, int]:
    """(start, shape) along one dimension of boxes of which any store can be made: each process has as many elements as
    the others, the last one that has some may have fewer, and those behind it have none.

        start, rows = penstock.history_split(1000, comm.size, comm.rank)
    """
    return _core.history_split(length, processes, process)


class History:
    """Fields of a running model, written step by step to a file that other programs read.

        with penstock.History("out.nc", time_units="seconds since 2000-01-01") as history:
            history.define("T", ("z", "y", "x"), like=T, halo=(0, 2, 2), attrs={"units": "K"})
            for step in range(1, steps + 1):
                advance(T)
                history.put("T", T)
                history.end_step(60.0 * step)

    The file appears at the first put(), whole and without steps. A thread writes a step that ended, and readers see it
    once it is whole; the model waits only where no slot is free. A step that failed is told by the next call and by
    close(); the steps before it stay readable, and so they do when the process ends at any moment. An error that leaves
    the block is passed on, and the steps that ended are written.

    Args:
        name: of the file, or of the folder of a store. An older one is replaced; what is no store is not.
        format: "cdf5" or "cdf2", which are classic netCDF, "netcdf4", "hdf5", "zarr", version 3, or "raw".
        time_units, calendar: as CF has them; without units the times are plain numbers.
        start_time: where the first interval of a mean begins.
        memory: where fields lie: "device", "host", or "auto", that of the device: the emulated one is the host.
        slots: memory for so many steps that are not in the file yet; 1 to 64. 0: none, put() writes before it returns.
        durable: a step that readers see survives a power cut.
        replace: False refuses a name that is there.
        may_have_gaps: with comm: elements of global_shape may be in no box, as those of land in an ocean. They are 0,
            and missing in Zarr.
        path: see penstock.path_names().
        compression: of each field, in "netcdf4", "hdf5" and "zarr": "gzip", which all readers know, "zstd" or "lz4",
            which take a plugin in HDF5. Cores of the host compress in the background.
        compression_level: gzip 1 to 9, zstd 1 to 22; None: 4 and 3.
        shuffle: False leaves the bytes of an element together.
        encode_threads: that compress a step; 0: one for each CPU of the process.
        attrs: of the file.
        comm: of mpi4py, or what has its rank, size and allgather: its processes write one file, each its box of the
            variables. All of them make a History, and call begin(), or the first put(), end_step(), wait() and close();
            where one fails in these, all raise its message.
        device, context: as of penstock.open().
    """

    def __init__(  # noqa: PLR0913 - one keyword a choice
        self,
        name: FileName,
        *,
        format: str = "cdf5",
        time_units: str = "",
        calendar: str = "standard",
        start_time: float = 0.0,
        memory: Literal["auto", "device", "host"] = "auto",
        slots: int = 2,
        durable: bool = False,
        replace: bool = True,
        may_have_gaps: bool = False,
        path: str = "auto",
        compression: Literal["gzip", "zstd", "lz4", "none"] | None = None,
        compression_level: int | None = None,
        shuffle: bool | None = None,
        encode_threads: int = 0,
        attrs: Mapping[str, Any] | None = None,
        comm: Communicator | None = None,
        device: str = "auto",
        context: Context | None = None,
    ) -> None:
        self.name = file_name(name, "open history")
        self._time = time_units, calendar
        self._fields: dict[str, PutField] = {}
        self._seen: dict[str, SeenArray] = {}
        self._begun = False
        self._ranks = HistoryRanks(comm, self.name) if comm is not None and comm.size > 1 else None
        self._open(
            context,
            (device, memory),
            format=format,
            time_units=time_units,
            calendar=calendar,
            start_time=start_time,
            slots=slots,
            durable=durable,
            replace=replace,
            may_have_gaps=may_have_gaps,
            path=path,
            compression=compression_of(compression, compression_level, shuffle),
            encode_threads=encode_threads,
        )
        # Arrays of named streams, by step, until they are packed: a step has its slot once the step before in that slot
        # is written.
        self._held: deque[list[Any]] = deque([[]], maxlen=int(slots) + 1)
        self._end = weakref.finalize(self, _leave, self._raw)  # also when the interpreter ends
        self.set_attrs(attrs or {})

    def _open(self, context: Context | None, place: tuple[str, str], **options: Any) -> None:
        def opened() -> None:
            device, memory = place
            need_texts(memory=memory, **options)
            found = context or shared_context(device)
            if memory == "auto":
                memory = "host" if found._place[1] else "device"
            self._context = found._raw
            self._raw = _core.history(self._context, self.name, memory=memory, **options)

        if self._ranks:
            options.update(self._ranks.numbers())
            self._ranks.open(opened)
        else:
            opened()

    def define(  # noqa: PLR0913 - one keyword a choice
        self,
        name: str,
        dims: Sequence[str],
        *,
        like: Any = None,
        shape: Sequence[int] | None = None,
        halo: Halo = (),
        dtype: Any = "float32",
        source_dtype: Any = None,
        statistic: Literal["mean", "minimum", "maximum"] | None = None,
        keep_bits: int = 0,
        file_dims: Sequence[str] | None = None,
        compression: Literal["gzip", "zstd", "lz4", "none"] | None = None,
        compression_level: int | None = None,
        shuffle: bool | None = None,
        chunk_shape: Sequence[int] = (),
        global_shape: Sequence[int] = (),
        start: Sequence[int] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """A field with a value for each step. Before the first put().

        Args:
            dims: names of the dimensions of the array, without time.
            like: an array as put() will get it, halo included; or `shape`, without halo, and `source_dtype`, which is
                that of the file where it is not said.
            halo: elements of the array that are not written: for each dimension a number of both sides, or a pair.
            dtype: in the file. float32 and float64 take float32, float64, int32 and int64.
            statistic: of all that is put between two ends of steps: "mean", "minimum" or "maximum".
            keep_bits: of the mantissa, for files that compress well; 0: all.
            file_dims: the same names in the order that the file is to have.
            compression, compression_level, shuffle: as of the history; None: what the history has.
            chunk_shape: of compressed chunks, in the order of `dims`; layers of the last dimensions, 1 MiB at most,
                where it is not said.
            global_shape, start: of several processes: of all their boxes together, and where the box of this one
                begins there. Boxes may be empty. Without them process 0 writes the variable, and the others put it too.
            attrs: text and numbers. CF knows "units", "standard_name", "long_name", "_FillValue" and others.
        """
        if (like is None) == (shape is None):
            raise TypeError(f"variable {name!r}: give like= or shape=, one of them")
        need_texts(name=name, statistic=statistic)
        packing = compression_of(compression, compression_level, shuffle)
        dimensions, stored = names_of(name, dims), DType.of(dtype)
        low, high = halo_of(name, halo, len(dimensions))
        around = [a + b for a, b in zip(low, high, strict=True)]
        target = None if like is None else numbers(name, like)
        source = DType.of(source_dtype or stored) if target is None else target.dtype
        whole = whole_shape(name, shape if target is None else target.shape, around, has_halo=target is not None)
        written = [n - more for n, more in zip(whole, around, strict=True)]
        if min(written, default=1) < (0 if len(global_shape) else 1):
            raise ValueError(f"variable {name!r}: nothing of the shape {whole} is left without its halo of {around}")
        self._raw.define(
            name=name,
            dimensions=dimensions,
            shape=written,
            halo_low=low,
            halo_high=high,
            dtype=plain_name(name, stored),
            source_dtype=plain_name(name, source),
            statistic=statistic or "",
            keep_bits=keep_bits,
            file_dimensions=names_of(name, file_dims or ()),
            compression=packing if compression is not None else None,
            chunk_shape=lengths_of(f"variable {name!r}: chunk_shape", chunk_shape),
            global_shape=lengths_of(f"variable {name!r}: global_shape", global_shape),
            start=lengths_of(f"variable {name!r}: start", start),
            attributes=attributes_of(attrs or {}, stored.name),
        )
        self._fields[name] = PutField(source, whole, stored.name)

    def constant(
        self, name: str, values: Any, dims: Sequence[str] = (), attrs: Mapping[str, Any] | None = None
    ) -> None:
        """Values that do not change, such as coordinates and masks: numbers of the host. They are in the file from its
        first moment on. Before the first put()."""
        import numpy as np

        need_texts(name=name)
        array = np.asarray(values)
        dtype = DType.of(array.dtype)
        self._raw.define_constant(
            name=name,
            dimensions=names_of(name, dims),
            shape=list(array.shape),
            dtype=dtype.native.name,
            values=array.astype(array.dtype.newbyteorder("="), copy=False).tobytes(),
            attributes=attributes_of(attrs or {}, dtype.name),
        )

    def set_attrs(self, attrs: Mapping[str, Any], variable: str = "") -> None:
        """Text and numbers of a variable, of "time", or of the file; each replaces one of its name. Before the first
        put()."""
        need_texts(variable=variable)
        of_type = self._fields[variable].stored if variable in self._fields else ""
        for attribute in attributes_of(attrs, of_type):
            self._raw.set_attribute(variable, attribute)

    def use_preset(self, layout: str, grid: ScaleGrid, *, title: str = "", **words: str) -> None:
        """Coordinates, and attributes of the file and of all that was defined before, as a known model writes them.
        What was set before, and what is set later, goes before them. The times have bounds.

        Args:
            layout: "scale", of SCALE-RM.
            words: source, institution, and mapping: the projection of the map, as CF names it in grid_mapping_name.
        """
        need_texts(layout=layout, title=title, **words)
        if unknown := set(words) - {"source", "institution", "mapping"}:
            raise TypeError(f"use_preset has no argument {min(unknown)!r}")
        texts = {"source": "", "institution": "", "mapping": "", **words}
        self._raw.use_preset(layout=layout, title=title, **texts, **grid.told())

    def begin(self) -> None:
        """Makes the file; the first put() does it where this was not called. Definitions end with it."""
        if self._ranks:
            self._ranks.begin(self._raw)
        else:
            with_room(self._raw.begin)
        self._begun = True

    def put(self, name: str, array: Any, stream: Any = None) -> None:
        """The field of this step, which may change once put() has returned: an array of any library, with any strides.
        A variable with a statistic takes several. Raises Error of another shape, type or device, and of a step that
        failed before; of several processes, that one is told by end_step(), to all.

        Args:
            stream: makes the field: an object with .ptr, .cuda_stream or __cuda_stream__, or an integer handle. Its
                work comes first, put() does not wait for the device, and the field may be changed by later work of
                this stream. Without it put() waits until the field is packed."""
        if self._ranks and not self._begun:
            self.begin()
        named = stream_handle(stream)
        seen, found = self._seen.get(name), plain(array)
        try:
            if seen is not None and found is not None and seen.key == found.key and (named or not found.stream):
                self._raw.put_at(name, (found.address, seen.strides, named or 0))
            else:
                self._put_anew(name, array, found, named)
        except Error as error:
            if self._ranks is None or not self._ranks.keeps(error):
                raise
        if named:
            self._held[-1].append(array)

    def _put_anew(self, name: str, array: Any, found: PlainArray | None, named: int | None) -> None:
        """Compares the array with the definition. The next one like it is put by its address."""
        field = self._fields.get(name)
        if field is None:
            raise self._refused(f"no variable {name!r} is defined", f"defined are: {', '.join(self._fields) or 'none'}")
        target = numbers(name, array, named)
        if target.dtype != field.dtype:
            cause = f"variable {name!r} is defined for arrays of {field.dtype}, and this one has {target.dtype}"
            raise self._refused(cause, f"convert it to {field.dtype}, or define the variable like it")
        if target.shape != field.shape:
            cause = f"variable {name!r} is defined for arrays of shape {field.shape}, and this one has {target.shape}"
            raise self._refused(cause, "give the array with its halo, or define the variable like it")
        if named is None and target.stream is not None:
            _core.synchronize_stream(self._context, target.stream)
        given = name, target.memory, (target.base, list(target.strides), named or 0)
        if self._begun:
            self._raw.put(*given)
        else:
            with_room(lambda: self._raw.put(*given))
            self._begun = True
        if found is not None:
            self._seen[name] = SeenArray(found.key, list(target.strides))

    def end_step(self, time: Any) -> None:
        """The step is whole; `time` is later than that of the step before. A number in the units of the history, or
        where it has units a datetime, a numpy.datetime64 or a date of cftime, which takes the package cftime."""
        if self._ranks:
            self._ranks.end_step(self._raw, lambda: number_of(time, *self._time))
        else:
            self._raw.end_step(number_of(time, *self._time))
        self._held.append([])

    def wait(self) -> None:
        """Until readers see every step that ended. Raises Error of a step that failed."""
        if self._ranks:
            self._ranks.wait(self._raw)
        else:
            self._raw.wait()

    def facts(self) -> HistoryFacts:
        """How far it is, and where the time went."""
        told = self._raw.facts()
        evidence = evidence_of(told.pop("evidence_json"))
        has_moved = told["steps_published"] or evidence["paths"]
        return HistoryFacts(**told, evidence=evidence if has_moved else None)

    def close(self) -> None:
        """Waits until readers see every step that ended, and closes the file. Raises Error of a step that failed, and
        of fields that were put without an end of their step. Does nothing the second time. An interrupt while it waits
        leaves the history open."""
        ranks, self._ranks = self._ranks, None
        if ranks:
            ranks.close(self._raw)
        self._raw.close()
        self._held.clear()
        self._end.detach()

    def _refused(self, cause: str, advice: str) -> Error:
        return Error(operation="put", file=self.name, cause=cause, advice=advice)

    def __enter__(self) -> History:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            _leave(self._raw)


def _leave(raw: _core.History) -> None:
    """Closes without an error of its own: another one is told, or the program has let the history go."""
    with contextlib.suppress(Error):
        raw.close()
