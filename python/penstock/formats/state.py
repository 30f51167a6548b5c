"""FileState: all of an open file but its face: who answers for it, what moves its bytes, and what is under way.

A DataFile, its groups and its datasets share one, so that any of them keeps the file open. What must stay true: closing
waits for all that is under way; a new file appears under its name only when all of it is written, and never when an
error passed; a file that is dropped without being closed says so, and what was written to it is gone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from penstock import _core
from penstock._api import Context, Outcome
from penstock._arrays.array import Array
from penstock._arrays.selection import Selection
from penstock._told import Evidence
from penstock.formats.attributes import Attributes, Write, may_be_name, need_utf8
from penstock.formats.faults import incomplete, refused, unknown
from penstock.formats.model import ChunkTable, Container, DatasetInfo, Extent, NewDataset, Writer
from penstock.formats.packing import rewriting
from penstock.formats.packing.encoding import Placing
from penstock.formats.packing.one_chunk import ChunkSums, ChunkWrites, Done, UnderWay
from penstock.formats.packing.rewriting import ChunkOrder, WriteOptions, Writing
from penstock.formats.packing.texts import Texts, is_written, write_all
from penstock.formats.pending import Pending
from penstock.formats.reading import objects, rows, small
from penstock.formats.reading.decoders.decoding import check_choice
from penstock.formats.reading.editing import Editor, Editors
from penstock.formats.reading.execution import Execution, Job
from penstock.formats.reading.mover import Mover
from penstock.formats.reading.plan import stored_extents
from penstock.formats.reading.quick import Found, QuickReadsOfFile
from penstock.formats.reading.record import Record, outcome_of_tally
from penstock.formats.reading.request import Request, parts_of, read_job, user_shape
from penstock.formats.reading.source import MetadataSource, Opened
from penstock.formats.reading.target import Target, stream_handle
from penstock.formats.writing import appended, check_kind, checked_value, value_of, way_of, write_job


class FileState:
    """Of one open file. Picklable where another process can open the file of that name itself."""

    def __init__(self, opened: Opened, context: Context, decode: str = "auto", external: bool = False) -> None:
        self.name, self.kind, self.format = opened.name, opened.format, opened.format.name
        self.context = context
        self._source = MetadataSource(opened)
        self._placing = Placing(self._source.writer)
        self._decode, self._external = check_choice(decode), external
        self._tally, self._order = _core.SmallTally(), ChunkOrder()
        self._was_read = False  # by a small read
        self.quick = QuickReadsOfFile()
        self._editors = Editors(context._raw, self._tally, self._source)
        # The record must not hold this: in a circle, neither goes before the collector comes.
        self._record = Record(partial(outcome_of_tally, self._tally))
        self._made_mover: Mover | None = None
        self._made_chunks: ChunkWrites | None = None
        self._pending: set[Pending | UnderWay] = set()  # under way; held, so that dropping one does not cancel it
        self._failed_write: BaseException | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """TypeError where no other process can open it."""
        anew = "it is closed" if self.closed else self._source.anew
        if isinstance(anew, str):
            raise TypeError(f"{self.name} cannot be pickled: {anew}")
        return _opened, (anew,)

    # -- what is made when something needs it: a file that is opened for one row needs none of it

    @property
    def _mover(self) -> Mover:
        if self._made_mover is None:
            with self._source.lock:
                if self._made_mover is None:
                    self._made_mover = Mover(self.context, self._source.decode, self.kind.library, self.name)
        return self._made_mover

    @property
    def _chunks(self) -> ChunkWrites:
        if self._made_chunks is None:
            with self._source.lock:
                if self._made_chunks is None:
                    sums = ChunkSums()
                    self._record.also(sums.outcome)
                    self._made_chunks = ChunkWrites(self._mover, self._source, self._record.add, sums)
        return self._made_chunks

    # -- what is known of the file

    @property
    def writable(self) -> bool:
        return self._source.writable

    @property
    def closed(self) -> bool:
        return self._source.closed

    @property
    def device(self) -> str:
        """Where arrays are read to."""
        return self.context._place[0]

    def evidence(self) -> Evidence:
        """How all bytes of this file went so far."""
        return self._record.evidence()

    def info(self, name: str) -> DatasetInfo:
        return self.infos([name])[0]

    def infos(self, names: Sequence[str]) -> list[DatasetInfo]:
        with self._source.metadata() as source:
            for name in names:
                if not may_be_name(name):
                    raise unknown(self.name, name, source.names())
            return [source.info(name) for name in names]

    def names(self) -> Sequence[str]:
        with self._source.metadata() as source:
            return list(source.names())

    def names_in(self, group: str) -> Sequence[str]:
        with self._source.metadata() as source:
            return list(source.names_in(group))

    def described(self, name: str) -> DatasetInfo | None:
        """As info(), or None of a group."""
        with self._source.metadata() as source:
            if not may_be_name(name):
                raise unknown(self.name, name, source.names())
            return source.described(name)

    def ask(self, question: Callable[[Container], Any]) -> Any:
        """The answer to what needs nothing that a FileState adds."""
        with self._source.metadata() as source:
            return question(source)

    def attributes(self, group: str) -> Attributes:
        with self._source.metadata() as source:
            return Attributes(source.attributes(group), self.attribute_writer(group))

    def attribute_writer(self, name: str) -> Write | None:
        def write(values: Mapping[str, Any]) -> None:
            need_utf8(self.kind, f"dataset {name!r}: an attribute" if name else "an attribute", values)
            with self._source.writer() as writer:
                writer.set_attributes(name, values)

        return write if self.writable else None

    def extents(self, wanted: Request) -> list[Extent]:
        if wanted.info.dtype.host_only:
            return []
        with self._source.metadata() as source:
            parts = parts_of(source, wanted)
        return [extent for part in parts for extent in stored_extents(part.info, part.selection, part.table)]

    # -- reading

    def start_read(
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
        with self._order.lock if self.writable else nullcontext():
            if self.writable:
                self._settle(cancel=False)  # what is being written is read back whole
            with self._source.data() as source:
                job, results = read_job(self._mover, source, objects.others(requests), handle, decode)
                if len(results) < len(requests):
                    is_strict = bool(options.get("strict") or self.context._strict)
                    job.plan.notes += objects.notes_of(requests, self._mover, is_strict)
                    results = objects.merged(source, requests, results)
            if job.plan.gaps and (options.get("strict") or self.context._strict):
                raise incomplete(self.name, job.plan.gaps[0])
            return self._start(job, options, lambda _: take(results), background)

    def small_reader(self, info: DatasetInfo, asked: tuple[bool, Any]) -> Found:
        """None where all reads are to be transfers. `asked`: whether it is the dataset's first, and the index of it."""
        with self._source.data() as source:
            if self.writable or (info.filters and (self._decode == "gpu" or self._mover.is_given_decoder)):
                return None, True
            return small.Readers(self.context._raw, self._tally, lambda: self._mover).reader_of(source, info, asked)

    def read_first(self, info: DatasetInfo, index: Any) -> Array | None:
        """A small box of a file of which nothing was read: often that is all. None: others have to read it."""
        if self._was_read or self.writable or self.context._open is None:
            return None
        with self._source.data() as source:
            found = small.read_first(self.context._raw, self._tally, source, (info, index))
        self._was_read = found is not None
        return found

    def lend(self, reader: _core.SmallReader) -> bool:
        """Opens the file for a small reader. False: it cannot be had now."""
        self._source.need_open()
        return self._editors.lend(self._mover, reader) if self.writable else small.lend(self._mover, reader)

    def editor(self, name: str, at_once: bool = False) -> Editor | None:
        """Of one dataset of a file that is changed in place; None: transfers read and write it now (Editors.of)."""
        if self._pending or self.context._open is None or not self._source.owns_unpublished:
            return None
        return self._editors.of(name, at_once)

    def read_small(self, reader: _core.SmallReader, index: Any) -> Any:
        """The file is not open for the reader. The first read of a file is often its last."""
        self._source.need_open()
        if not self._was_read:
            self._was_read = True
            found = reader.read_once(index)
            if found is not False:
                return found
        return reader.read(index) if self.lend(reader) else None

    def read_part(self, wanted: Request) -> Any:
        """A small box in one range of one file, or None. Where parts of a dataset are files, none is kept open."""
        if self.writable or not small.may_be_part(wanted):
            return None
        with self._source.data() as source:
            part = source.part(wanted.info.name, wanted.selection.box)
        return None if part is None else small.read_part(self.context._raw, self._tally, part, wanted)

    def read_whole(self, infos: Sequence[DatasetInfo]) -> list[Array] | None:
        """All of several small datasets, or None: start_read() has to read them."""
        if self.writable or not self.context._place[1]:
            return None
        with self._source.data() as source:
            return small.read_whole(self.context._raw, self._tally, source, infos)

    def known_rows(self, info: DatasetInfo) -> rows.KnownRows | None:
        """Of one dataset; None where lists of rows are left to transfers."""
        with self._source.data() as source:
            return None if self.writable else rows.known_rows(self._mover, source, info, self._tally)

    def read_rows(self, known: rows.KnownRows, wanted: Request) -> Any:
        """Rows out of the page cache; None: start_read() has to read them."""
        self._source.need_open()
        return rows.read_rows(self._mover, known, wanted)

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

    def writer(self) -> AbstractContextManager[Writer]:
        """TypeError when the file was opened for reading."""
        return self._source.writer()

    def create(self, new: Sequence[NewDataset]) -> None:
        with self._source.writer() as writer:
            self._created(writer, new)

    def _created(self, writer: Writer, new: Sequence[NewDataset]) -> Sequence[ChunkTable | None]:
        for one in new:
            need_utf8(self.kind, "the name", one.name)
            need_utf8(self.kind, f"dataset {one.name!r}: the name of a dimension", one.dimensions)
            need_utf8(self.kind, f"dataset {one.name!r}: an attribute", one.attributes)
        return writer.create(new)

    def start_new(
        self,
        new: Sequence[NewDataset],
        targets: Sequence[Target | Texts],
        how: tuple[int | None, Mapping[str, Any]],
        *,
        background: bool = True,
    ) -> Pending[Outcome]:
        """Adds datasets, and starts writing them in one submission. `how`: handle of a stream, and options."""
        handle, options = how
        with self._source.writer() as writer:
            tables = self._created(writer, [replace(one, is_written_at_once=True) for one in new])
            infos = [writer.info(one.name) for one in new]
            shapes = [Selection.all_of(user_shape(info)) for info in infos]
            requests = [Request(*each) for each in zip(infos, shapes, targets, strict=True)]
            pairs = [pair for pair in zip(requests, tables, strict=True) if not is_written(pair[0].info)]
            requests, texts = [one for one, _ in pairs], [one for one in requests if is_written(one.info)]
            ways = [way_of(writer, one, table, (self._mover, self._placing)) for one, table in pairs]
            job = write_job(self._mover, requests, ways, handle)
            job.plan.notes += write_all(writer, texts)
        with self._order.lock:
            pending = self._start(job, options, lambda outcome: outcome, background)
            for one in (one for one, way in zip(requests, ways, strict=True) if way.table is None):
                self._order.add(pending, one.info.name, one.stored.box)
        return pending

    def start_write(
        self, requests: Sequence[Request], stream: Any, options: Mapping[str, Any], *, background: bool = True
    ) -> Pending[Any]:
        checked = partial(checked_value, self._mover, stream=stream_handle(stream))
        made = self._source.writer, lambda: self._mover, self._settle, checked, self.start_read, self._start_write
        with self._order.lock:
            return rewriting.start(Writing(self._order, *made), requests, WriteOptions(stream, options, background))

    def _start_write(
        self, requests: Sequence[Request], stream: Any, options: Mapping[str, Any], *, background: bool
    ) -> Pending[Any]:
        handle = stream_handle(stream)
        texts = [one for one in requests if is_written(one.info)]
        plain = [one for one in requests if not is_written(one.info)]
        requests = [one._replace(out=checked_value(self._mover, one, handle)) for one in plain]  # before room is made
        with self._source.writer(changes=bool(texts)) as writer:
            ways = [way_of(writer, one, None, (self._mover, self._placing)) for one in requests]
            for one, way in zip(requests, ways, strict=True):
                if way.table is not None:
                    self._need_own(writer, one.info.name, way.table.files)
            job = write_job(self._mover, requests, ways, handle)
            job.plan.notes += write_all(writer, texts)
        return self._start(job, options, lambda outcome: outcome, background)

    def write_chunk(self, name: str, index: Any, value: Any) -> Done | None:
        """One small compressed chunk, on this thread; None: start_write() has to write it."""
        asked = self._chunks.asked(name, index, value)
        if asked is None:
            return None
        under_way = UnderWay()
        with self._order.lock:
            self._order.wait(name, asked.box)
            self._settle(reads=True)
            self._order.add(under_way, name, asked.box)
            self._pending.add(under_way)
        with under_way.among(self._pending, self._failed):
            return self._chunks.write(asked, under_way)

    def write_rows(self, editor: Editor, rows: Any, value: Any) -> bool:
        """Listed rows, on this thread, for which reads and close() wait; False: start_write() has to write them."""
        under_way = UnderWay()
        with self._order.lock:
            if self._pending:
                return False
            self._pending.add(under_way)
        with under_way.among(self._pending, self._failed):
            return editor.write_rows(self.lend, rows, value)

    def _failed(self, error: BaseException) -> None:
        self._failed_write = self._failed_write or error

    def _need_own(self, writer: Writer, name: str, files: Sequence[str]) -> None:
        """A file says itself where its elements lie, and may name any file: others are written to when asked for."""
        for other in (one for one in files if not writer.is_own(one)):
            if not self._external:
                cause = f"its elements lie in another file, {other}"
                raise refused(self.name, cause, "external=True of open() allows it, for files that you trust", name)
            self._source.note_other(other)

    def append(self, name: str, value: Any, stream: Any, options: Mapping[str, Any]) -> Outcome:
        target = value_of(value, stream_handle(stream))
        with self._order.lock:
            with self._source.writer() as writer:
                info = writer.info(name)
                check_kind(self._mover, info, target)  # before anything grows
                selection = appended(info, target)
                writer.extend(info.name, (info.shape[0] + selection.counts[0], *info.shape[1:]))
                wanted = Request(writer.info(info.name), selection, target)
            pending = self.start_write([wanted], stream, options, background=False)
        return pending.result()

    # -- the end

    def _settle(self, cancel: bool = False, reads: bool = False) -> None:
        for pending in [one for one in list(self._pending) if not (reads and one.writes)]:
            if cancel:
                pending.cancel()
            pending._finish()

    def close(self) -> None:
        """Waits for what is under way, then a new file gets its name. Does nothing the second time. Raises Error where
        it cannot, or a write failed or was cancelled; then it is let go as by abandon()."""
        if self.closed or self._source.closes_in_child(publishes=True):
            return
        self._tally.close()
        self._settle(cancel=False)
        with self._source.lock:
            if self._source.closed:
                return
            try:
                if self._made_mover is not None:
                    self._made_mover.close()
                if self._failed_write is not None:
                    raise self._failed_write  # part of the file was never written
                self._source.publish()
            finally:
                self._source.close()

    def abandon(self) -> None:
        """Cancels what is under way and lets go: a new file never appears."""
        if not self.closed and not self._source.closes_in_child():
            self._tally.close()
            self._settle(cancel=True)
            with self._source.lock:
                if self._made_mover is not None:
                    self._made_mover.abandon()
                self._source.close()

    def __del__(self) -> None:
        if self.__dict__.get("_source") is not None and self._source.owns_unpublished:
            self._source.close()  # first: a warning may be an error
            said = f"{self.name} was never closed: what was written to it is gone"
            warnings.warn(said, ResourceWarning, 2, source=self)


def _opened(anew: Callable[[], Any]) -> FileState:
    return anew()._file
