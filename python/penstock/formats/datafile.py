"""DataFile: an open file of a scientific format, as a mapping of lazy datasets.

It joins the format (metadata), the mover (bytes) and the user. What must stay true: closing waits for all that is under
way; a new file appears under its name only when all of it is written, and never when an error passes.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock._api import Context, Outcome
from penstock._dtype import DType
from penstock._selection import Selection
from penstock._told import Evidence
from penstock.formats.attributes import Attributes, Write, need_utf8
from penstock.formats.dataset import Dataset
from penstock.formats.faults import incomplete, refused, unknown
from penstock.formats.group import Group
from penstock.formats.model import DatasetInfo, Extent, NewDataset
from penstock.formats.pending import Pending
from penstock.formats.reading.decoding import check_choice
from penstock.formats.reading.job import Request, read_job, table_of, user_shape
from penstock.formats.reading.mover import Execution, Job, Mover
from penstock.formats.reading.ranges import stored_extents
from penstock.formats.reading.record import Record
from penstock.formats.reading.source import Opened, Source
from penstock.formats.reading.target import stream_handle
from penstock.formats.writing import appended, check_kind, value_of, values_of, write_job

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._options import LayoutOptions, TransferOptions

_LAYOUT = tuple(one.name for one in fields(NewDataset) if one.name not in ("name", "shape", "dtype"))
# The library that decodes on the host.
_LIBRARIES = {"hdf5": "HDF5", "netcdf4": "HDF5", "zarr": "zlib and numcodecs"}


class DataFile(Group):
    """A mapping from names of datasets to Dataset. As a context manager: closes; a new file gets its name only if no
    error passed. Made by penstock.open and penstock.create."""

    def __init__(self, opened: Opened, context: Context, decode: str = "auto", external: bool = False) -> None:
        super().__init__(self, "")
        self.name, self.format = opened.name, opened.format
        self._source = Source(opened)
        self._context = context
        self._decode, self._external = check_choice(decode), external
        library = _LIBRARIES.get(opened.format, "the format's library")
        self._mover = Mover(context, self._source.decode, library, self.name)
        self._record = Record()
        self._pending: set[Pending] = set()  # under way; held, so that dropping one does not cancel it
        self._failed_write: BaseException | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which opens the file of that name itself. TypeError where none can."""
        anew = "it is closed" if self.closed else self._source.anew
        if isinstance(anew, str):
            raise TypeError(f"{self.name} cannot be pickled: {anew}")
        return anew, ()

    # -- what is known of the file

    @property
    def writable(self) -> bool:
        """Whether datasets can be written, made or appended to."""
        return self._source.writable

    @property
    def closed(self) -> bool:
        """Whether close() was called, or the block has ended."""
        return self._source.closed

    @property
    def device(self) -> str:
        """Where arrays are read to."""
        return self._mover.device

    @property
    def context(self) -> Context:
        """That moves its bytes."""
        return self._context

    def evidence(self) -> Evidence:
        """How all bytes of this file went so far: paths, fallbacks, and under "formats" the bytes that were requested,
        read in ranges, filled in, and decoded, by whom."""
        return self._record.evidence()

    def _info(self, name: str) -> DatasetInfo:
        return self._infos([name])[0]

    def _infos(self, names: Sequence[str]) -> list[DatasetInfo]:
        with self._source.metadata() as source:
            for name in names:
                if not _can_be(name):
                    raise unknown(self.name, name, source.names())
            return [source.info(name) for name in names]

    def _names(self) -> Sequence[str]:
        with self._source.metadata() as source:
            return list(source.names())

    def _is_group(self, name: str) -> bool:
        """Where a format can tell without looking through all names; else False."""
        with self._source.metadata() as source:
            ask = getattr(source, "is_group", None)
            return ask is not None and _can_be(name) and bool(ask(name))

    def _hindrance(self, name: str) -> str:
        """Why the dataset cannot be read here as things are; empty: nothing is known to hinder. Raises as _info."""
        with self._source.metadata() as source:
            ask = getattr(source, "hindrance", None)
            return source.info(name).refusal if ask is None else ask(name)

    def _attributes(self, group: str) -> Attributes:
        with self._source.metadata() as source:
            return Attributes(source.attributes(group), self._attribute_writer(group))

    def _attribute_writer(self, name: str) -> Write | None:
        def write(values: Mapping[str, Any]) -> None:
            need_utf8(self.format, f"dataset {name!r}: an attribute" if name else "an attribute", values)
            with self._source.writer() as writer:
                writer.set_attributes(name, values)

        return write if self.writable else None

    def _extents(self, wanted: Request) -> list[Extent]:
        with self._source.metadata() as source:
            return stored_extents(wanted, table_of(source, wanted))

    # -- reading

    def _start_read(
        self,
        requests: Sequence[Request],
        stream: Any,
        options: Mapping[str, Any],
        *,
        background: bool = True,
        take: Callable[[list[Any]], Any] = lambda results: results,
    ) -> Pending[Any]:
        handle, options = stream_handle(stream), dict(options)
        decode = check_choice(options.pop("decode", self._decode))
        if self.writable:
            self._settle(cancel=False)  # what is being written is read back whole
        with self._source.data() as source:
            reading = read_job(self._mover, source, requests, handle, decode)
        if reading.job.plan.gaps and (options.get("strict") or self._context._strict):
            raise incomplete(self.name, reading.job.plan.gaps[0])
        return self._start(reading.job, options, lambda _: take(reading.results), background)

    def _start(
        self, job: Job, options: Mapping[str, Any], result: Callable[[Outcome], Any], background: bool
    ) -> Pending[Any]:
        job.options, job.finished = dict(options) | {"caller_waits": not background}, self._record.add
        pending = Pending(Execution(self._mover, job), result, self._ended)
        self._pending.add(pending)
        return pending.begin(background)

    def _ended(self, pending: Pending[Any]) -> None:
        self._pending.discard(pending)
        if pending.failure is not None and pending.writes:
            self._failed_write = self._failed_write or pending.failure

    # -- writing

    def create_dataset(self, name: str, shape: Sequence[int], dtype: Any, **layout: Unpack[LayoutOptions]) -> Dataset:
        """Adds a dataset without writing it; `dataset[...] = value` and `append` fill it.

        Args:
            shape: elements per dimension.
            dtype: anything DType.of takes.
            layout: chunk_shape, resizable (largest extents, None: unlimited), dimensions (names), attributes; see
                LayoutOptions.
        """
        return self.create_datasets({name: (shape, dtype, layout)})[name]

    def create_datasets(self, datasets: Mapping[str, Sequence[Any]]) -> dict[str, Dataset]:
        """Adds datasets in one go, which some formats do much faster than one by one. Values are (shape, dtype), or
        (shape, dtype, layout) with a dict of what create_dataset takes as `layout`."""
        new = [self._new(name, *description) for name, description in datasets.items()]
        if self.format != "zarr" and any(one.shard_shape is not None for one in new):
            raise TypeError(f"shard_shape is for Zarr; {self.format} has no shards")
        with self._source.writer() as writer:
            writer.create(new)
        return {name: Dataset(self, name) for name in datasets}

    def __setitem__(self, name: str, value: Any) -> None:
        """A new dataset with this content: an array of any library, on the file's device or in host memory."""
        self.write_many({name: value}).result()

    def write_many(
        self, values: Mapping[str, Any], *, stream: Any = None, **options: Unpack[TransferOptions]
    ) -> Pending[Outcome]:
        """Starts writing new datasets in one submission. The values must not change until it is done."""
        handle = stream_handle(stream)
        targets = values_of(values, handle)
        with self._source.writer() as writer:
            tables = writer.create([self._new(name, one.shape, one.dtype.native) for name, one in targets.items()])
            infos = [writer.info(name) for name in targets]
            shapes = [Selection.all_of(user_shape(info)) for info in infos]
            requests = [Request(*each) for each in zip(infos, shapes, targets.values(), strict=True)]
            job = write_job(self._mover, requests, tables, handle)
        return self._start(job, options, lambda outcome: outcome, True)

    def _new(self, name: str, shape: Sequence[int], dtype: Any, layout: Mapping[str, Any] | None = None) -> NewDataset:
        new = _new_dataset(name, shape, dtype, layout)
        need_utf8(self.format, "the name", name)
        need_utf8(self.format, f"dataset {name!r}: the name of a dimension", new.dimensions)
        need_utf8(self.format, f"dataset {name!r}: an attribute", new.attributes)
        return new

    def _start_write(self, requests: Sequence[Request], stream: Any, options: Mapping[str, Any]) -> Pending[Any]:
        handle = stream_handle(stream)
        with self._source.writer() as writer:
            tables = [writer.table(one.info.name, one.stored.box) for one in requests]
            for one, table in zip(requests, tables, strict=True):
                self._need_own(writer, one.info.name, table.files)
            job = write_job(self._mover, requests, tables, handle)
        return self._start(job, options, lambda outcome: outcome, True)

    def _need_own(self, writer: Any, name: str, files: Sequence[str]) -> None:
        """A file says itself where its elements lie, and may name any file: others are written to when asked for."""
        is_own = getattr(writer, "is_own", None)  # formats whose elements may lie elsewhere
        for other in () if is_own is None else files:
            if is_own(other):
                continue
            if not self._external:
                cause = f"its elements lie in another file, {other}"
                raise refused(self.name, cause, "external=True of open() allows it, for files that you trust", name)
            self._source.note_other(other)

    def _append(self, dataset: Dataset, value: Any, stream: Any, options: Mapping[str, Any]) -> Outcome:
        target = value_of(value, stream_handle(stream))
        with self._source.writer() as writer:
            info = writer.info(dataset.name)
            check_kind(self._mover, info, target)  # before anything grows
            selection = appended(info, target)
            writer.extend(info.name, (info.shape[0] + selection.counts[0], *info.shape[1:]))
            wanted = Request(writer.info(info.name), selection, target)
        return self._start_write([wanted], stream, options).result()

    # -- the end

    def _settle(self, cancel: bool) -> None:
        for pending in list(self._pending):
            if cancel:
                pending.cancel()
            pending._finish()

    def close(self) -> None:
        """Waits for what is under way. A new file gets its name. Does nothing the second time. Raises Error when the
        file cannot be finished, or a write failed or was cancelled; then it is let go as by abandon()."""
        if self.closed:
            return
        self._settle(cancel=False)
        with self._source.lock:
            if self.closed:
                return
            try:
                self._mover.close()
                if self._failed_write is not None:
                    raise self._failed_write  # part of the file was never written
                self._source.publish()
            finally:
                self._source.close()

    def abandon(self) -> None:
        """Cancels what is under way and lets go: a new file never appears."""
        if not self.closed:
            self._settle(cancel=True)
            with self._source.lock:
                self._mover.abandon()
                self._source.close()

    def __del__(self) -> None:
        if self.__dict__.get("_source") is not None and self._source.owns_unpublished:
            self._source.close()  # first: a warning may be an error
            said = f"{self.name} was never closed: what was written to it is gone"
            warnings.warn(said, ResourceWarning, 2, source=self)

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self.close()
        finally:  # an interrupt may come before close() has begun
            self.abandon()


def _can_be(name: str) -> bool:
    """Whether a file may have the name: half characters stand for bytes that are no UTF-8, others for nothing."""
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _new_dataset(name: str, shape: Sequence[int], dtype: Any, layout: Mapping[str, Any] | None = None) -> NewDataset:
    if isinstance(shape, int):
        shape = (shape,)
    unknown = [one for one in layout or {} if one not in _LAYOUT]
    if unknown:
        raise TypeError(f"dataset {name!r}: there is no {unknown[0]}=; there are {', '.join(_LAYOUT)}")
    try:
        extents = tuple(operator.index(extent) for extent in shape)
        kind = DType.of(dtype)
    except TypeError as error:
        raise TypeError(f"dataset {name!r}: {error}") from error
    return NewDataset(name, extents, kind, **(layout or {})).checked()
