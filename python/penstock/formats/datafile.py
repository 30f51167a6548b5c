"""DataFile: an open file of a scientific format, as a mapping of lazy datasets.

It joins the format (metadata), the mover (bytes) and the user. What must stay true: calls into the format are made one
at a time, whatever threads do; closing waits for all that is under way; a new file appears under its name only when all
of it is written, and never when an error passes.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock._api import Context, Outcome
from penstock._dtype import DType
from penstock._error import Error
from penstock.formats.attributes import Attributes, Write
from penstock.formats.dataset import Dataset
from penstock.formats.group import Group
from penstock.formats.like import as_like
from penstock.formats.model import Box, Container, DatasetInfo, Extent, NewDataset, Writer
from penstock.formats.mover import Execution, Job, Mover
from penstock.formats.pending import Pending
from penstock.formats.ranges import stored_extents
from penstock.formats.reading import Request, read_job, request, table_of, user_shape
from penstock.formats.record import Record
from penstock.formats.selection import Selection
from penstock.formats.target import stream_handle
from penstock.formats.writing import value_of, write_job

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import TransferOptions


@dataclass(frozen=True)
class Opened:
    """What a format gives: a container to read, a writer, or (a file that is appended to) both."""

    name: str
    format: str
    container: Container | None = None
    writer: Writer | None = None
    reopen: Callable[[], Container] | None = None  # of a file that was written, and published
    durable: bool = False


class DataFile(Group):
    """A mapping from names of datasets to Dataset. As a context manager: closes; a new file gets its name only if no
    error passed. Made by penstock.open and penstock.create."""

    def __init__(self, opened: Opened, context: Context) -> None:
        super().__init__(self, "")
        self.name, self.format = opened.name, opened.format
        self._opened = opened
        self._context = context
        self._lock = threading.RLock()
        self._mover = Mover(context, self._decode_alone)
        self._record = Record()
        self._pending: weakref.WeakSet[Pending] = weakref.WeakSet()
        self._closed = False
        self._process = os.getpid()

    # -- what is known of the file

    @property
    def writable(self) -> bool:
        return self._opened.writer is not None and not self._closed

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def device(self) -> str:
        """Where arrays are read to."""
        return self._mover.device

    @property
    def context(self) -> Context:
        return self._context

    def evidence(self) -> dict[str, Any]:
        """How all bytes of this file went so far: paths, fallbacks, and under "formats" the bytes that were requested,
        read in ranges, filled in, and decoded on the host."""
        return self._record.evidence()

    @contextmanager
    def _metadata(self) -> Iterator[Container | Writer]:
        """Whoever answers questions about datasets now, alone."""
        with self._lock:
            if not self._closed:
                self._need_own_process()
                yield self._opened.writer or self._opened.container  # type: ignore[misc]
                return
            if self._opened.reopen is None:
                raise ValueError(f"{self.name} is closed")
            container = self._opened.reopen()
            try:
                yield container
            finally:
                container.close()

    def _need_own_process(self) -> None:
        if os.getpid() != self._process:
            raise Error(
                code="unsupported",
                operation="use",
                file=self.name,
                cause="the file was opened before fork(), in the parent process",
                advice="open it in the child",
            )

    def _need_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.name} is closed")
        self._need_own_process()

    def _info(self, name: str) -> DatasetInfo:
        with self._metadata() as source:
            return source.info(name)

    def _names(self) -> Sequence[str]:
        with self._metadata() as source:
            return list(source.names())

    def _attributes(self, group: str) -> Attributes:
        with self._metadata() as source:
            return Attributes(source.attributes(group), self._attribute_writer(group))

    def _attribute_writer(self, name: str) -> Write | None:
        if not self.writable:
            return None

        def write(values: Mapping[str, Any]) -> None:
            with self._lock:
                self._need_open()
                assert self._opened.writer is not None
                self._opened.writer.set_attributes(name, values)

        return write

    def _extents(self, wanted: Request) -> list[Extent]:
        with self._metadata() as source:
            return stored_extents(wanted, table_of(source, wanted))

    # -- reading

    def _decode_alone(self, name: str, box: Box) -> Any:
        with self._lock:
            assert self._opened.container is not None
            return self._opened.container.decode(name, box)

    def read_many(
        self, names: Sequence[str] | Mapping[str, Any], *, stream: Any = None, **options: Unpack[TransferOptions]
    ) -> Pending:
        """Starts reading several datasets in one submission, into one new buffer that their arrays share.

        `names`: full names, or a mapping from names to selections (None: all), or to memory to fill (as `out`).
        `result()` of what it returns is a dict of arrays.
        """
        chosen = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
        requests = [_wanted(self._info(name), wish) for name, wish in chosen.items()]
        return self._start_read(requests, stream, options, take=lambda got: dict(zip(chosen, got, strict=True)))

    def load(self, *, like: Any = None, stream: Any = None, **options: Unpack[TransferOptions]) -> dict[str, Any]:
        """All datasets, read in one submission. `like`: an array of the library whose arrays you want."""
        got = self.read_many(list(self._names()), stream=stream, **options).result()
        return {name: as_like(array, like) for name, array in got.items()}

    def _start_read(
        self,
        requests: Sequence[Request],
        stream: Any,
        options: Mapping[str, Any],
        *,
        background: bool = True,
        take: Callable[[list[Any]], Any] = lambda results: results,
    ) -> Pending:
        handle = stream_handle(stream)
        with self._lock:
            self._need_open()
            if self._opened.container is None:
                raise ValueError(f"{self.name} is being written; open it for reading when it is closed")
            reading = read_job(self._mover, self._opened.container, requests, handle)
        return self._start(reading.job, options, lambda _: take(reading.results), background)

    def _start(
        self, job: Job, options: Mapping[str, Any], result: Callable[[Outcome], Any], background: bool
    ) -> Pending:
        job.options, job.finished = dict(options), self._record.add
        pending = Pending(Execution(self._mover, job), result, background)
        self._pending.add(pending)
        return pending

    # -- writing

    def _need_writer(self) -> Writer:
        self._need_open()
        if self._opened.writer is None:
            raise TypeError(
                f"{self.name} was opened for reading; use penstock.open(name, write=True) or penstock.create"
            )
        return self._opened.writer

    def create_dataset(self, name: str, shape: Sequence[int], dtype: Any, **layout: Any) -> Dataset:
        """Adds a dataset without writing it; `dataset[...] = value` and `append` fill it.

        Args:
            shape: elements per dimension.
            dtype: anything DType.of takes.
            layout: chunk_shape, resizable (largest extents, None: unlimited), dimensions (names), attributes; see
                NewDataset.
        """
        new = NewDataset(name, tuple(int(n) for n in shape), DType.of(dtype), **layout)
        with self._lock:
            self._need_writer().create([new])
        return Dataset(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        """A new dataset with this content: an array of any library, on the file's device or in host memory."""
        self.write_many({name: value}).result()

    def write_many(
        self, values: Mapping[str, Any], *, stream: Any = None, **options: Unpack[TransferOptions]
    ) -> Pending:
        """Starts writing new datasets in one submission. The values must not change until it is done."""
        handle = stream_handle(stream)
        targets = {name: value_of(value, handle) for name, value in values.items()}
        with self._lock:
            writer = self._need_writer()
            tables = writer.create([NewDataset(name, one.shape, one.dtype.native) for name, one in targets.items()])
            infos = [writer.info(name) for name in targets]
            shapes = [Selection.all_of(user_shape(info)) for info in infos]
            requests = [Request(*each) for each in zip(infos, shapes, targets.values(), strict=True)]
            job = write_job(self._mover, requests, tables, handle)
        return self._start(job, options, lambda outcome: outcome, True)

    def _start_write(self, requests: Sequence[Request], stream: Any, options: Mapping[str, Any]) -> Pending:
        handle = stream_handle(stream)
        with self._lock:
            writer = self._need_writer()
            tables = [writer.table(one.info.name, one.stored.box) for one in requests]
            job = write_job(self._mover, requests, tables, handle)
        return self._start(job, options, lambda outcome: outcome, True)

    def _append(self, dataset: Dataset, value: Any, stream: Any, options: Mapping[str, Any]) -> Outcome:
        target = value_of(value, stream_handle(stream))
        with self._lock:
            writer = self._need_writer()
            info = writer.info(dataset.name)
            if info.order != "C" or not info.ndim:
                raise TypeError(f"dataset {info.name!r} has no first dimension that grows")
            row = target.ndim == info.ndim - 1
            rows = 1 if row else target.shape[0] if target.ndim == info.ndim else 0
            if target.ndim not in (info.ndim, info.ndim - 1) or target.shape[-info.ndim + 1 :] != info.shape[1:]:
                raise ValueError(f"the value has shape {target.shape}, dataset {info.name!r} rows of {info.shape[1:]}")
            writer.extend(info.name, (info.shape[0] + rows, *info.shape[1:]))
            grown = writer.info(info.name)
            first = (info.shape[0], *(0 for _ in info.shape[1:]))
            counts = (rows, *info.shape[1:])
            dropped = (row, *(False for _ in info.shape[1:]))
            wanted = Request(grown, Selection(first, counts, (1,) * info.ndim, dropped), target)
        return self._start_write([wanted], stream, options).result()

    # -- the end

    def _settle(self, cancel: bool) -> None:
        for pending in list(self._pending):
            if cancel:
                pending.cancel()
            pending._finish()

    def close(self) -> None:
        """Waits for what is under way. A new file gets its name. Does nothing the second time."""
        if self._closed:
            return
        self._settle(cancel=False)
        with self._lock:
            if self._closed:
                return
            try:
                self._mover.close()
                if self._opened.writer is not None:
                    self._opened.writer.publish(self._opened.durable)
            except BaseException:
                self._give_up()
                raise
            self._finish()

    def abandon(self) -> None:
        """Cancels what is under way and lets go: a new file never appears."""
        if not self._closed:
            self._settle(cancel=True)
            with self._lock:
                self._mover.abandon()
                self._give_up()

    def _give_up(self) -> None:
        self._finish()
        if self._opened.writer is not None:
            self._opened.writer.abandon()
        self._opened = Opened(self.name, self.format)

    def _finish(self) -> None:
        self._closed = True
        if self._opened.container is not None:
            self._opened.container.close()

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def _wanted(info: DatasetInfo, wish: Any) -> Request:
    """A wish of read_many: nothing, a selection, or memory to fill."""
    if wish is None:
        return request(info)
    parts = wish if isinstance(wish, tuple) else (wish,)
    is_index = all(part is Ellipsis or isinstance(part, (int, slice)) for part in parts)
    return request(info, wish) if is_index else request(info, ..., wish)
