"""Executes plans on a context: fills, transfers, placing of what came through scratch, and the format's decoding.

Two batches are under way at a time: while the engine moves one, the device places the other, or the host's cores decode
it. What the format's library decodes comes part by part. Work of the host is announced to whoever drives it. What must
stay true: scratch is bounded (two batches, the chunks of one that the device decodes, one part of the host's); between
two batches and between two parts the work can be cancelled and can run out of time; whatever ends it early, nothing
touches scratch or the target afterwards but operations that the system does not end, for which the core keeps both, and
decoding that it does not end has memory of its own; fewer bytes than planned are an error that names the file.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock import _core
from penstock._api import Outcome
from penstock._error import Error
from penstock._files.open_files import Full, Lease, Use
from penstock.formats import pending
from penstock.formats.packing import in_files
from penstock.formats.packing.encode import encode
from penstock.formats.packing.encoding import Encoding, joined
from penstock.formats.pending import HostWork, Steps
from penstock.formats.reading import cores
from penstock.formats.reading.aside import Aside
from penstock.formats.reading.decoders.rates import Kind, Spent
from penstock.formats.reading.kept import file_bytes, file_stamp
from penstock.formats.reading.mover import Mover, uploaded
from penstock.formats.reading.pieces import Packed
from penstock.formats.reading.plan import Batch, BatchPlan, Decode
from penstock.formats.reading.record import Counts, outcome_of, outcome_of_tally
from penstock.formats.reading.target import Target
from penstock.formats.reading.unpacking import unpack

_READ_AT_ONCE = 256 << 20  # bytes of decoded chunks, between two looks at who wants to stop
_ENCODED_HERE = 128 << 10  # bytes that whoever writes encodes himself: about 2 ms, and a thread costs 0.1 ms or more


@dataclass
class Job:
    """A plan and its memories, by number of target."""

    plan: BatchPlan
    targets: Sequence[Target]
    options: dict[str, Any] = field(default_factory=dict)
    stream: int | None = None  # work queued there comes first
    finished: Callable[[Outcome], None] | None = None
    kinds: set[Kind | None] = field(default_factory=set)  # of its encoded chunks; None: one side alone can decode them


@dataclass
class _Slot:
    """A batch under way."""

    batch: Batch
    scratch: _core.Buffer | None
    sent: list[tuple[Use, np.ndarray]] = field(default_factory=list)  # transfers and their tables

    @property
    def transfers(self) -> list[_core.Transfer]:
        """Those that are not over."""
        return [use.transfer for use, _ in list(self.sent) if use.transfer is not None]


class Execution:
    """The work of one job; see pending.PendingWork."""

    def __init__(self, mover: Mover, job: Job) -> None:
        self._mover, self._job, self._plan = mover, job, job.plan
        self.writes = job.plan.writes
        self.bytes_total = job.plan.total_bytes
        self.is_one_transfer = False
        self._counts = Counts(requested_bytes=job.plan.requested_bytes)
        self._outcomes: list[_core.Outcome] = []
        self._under_way: deque[_Slot] = deque()
        self._finished_bytes = 0
        self._cancelled = False
        self._stop = _core.Stop()
        self._read_here = _core.SmallTally()  # by the threads that decode
        self._in_files = in_files.Written()
        self._spent = Spent()
        self._deadline = float("inf")  # of time.monotonic
        self._began_ns = time.time_ns()

    @property
    def bytes_done(self) -> int:
        return self._finished_bytes + sum(one.bytes_done for slot in list(self._under_way) for one in slot.transfers)

    def cancel(self) -> None:
        self._cancelled = True
        self._stop.stop()
        self._cancel_transfers()

    def _cancel_transfers(self) -> None:
        for slot in list(self._under_way):
            for transfer in slot.transfers:
                transfer.cancel()

    def outcome(self, seconds: float) -> Outcome:
        moved: list[_core.Outcome | Outcome] = [*self._outcomes]
        here = outcome_of_tally(self._read_here) if self._read_here.reads else None
        if here is not None:
            self._counts.take_reads(self._read_here)
            moved.append(here)
        moved += self._in_files.outcomes()
        outcome = outcome_of(moved, self._counts, seconds, [*self._plan.gaps, *self._plan.notes])
        if self._job.finished is not None:
            self._job.finished(outcome)
        return outcome

    def steps(self) -> Steps:
        try:
            self._deadline = pending.deadline_after(self._job.options.get("timeout_s"))
            self._synchronize()
            yield from self._move()
        finally:
            pending.leave_through_interrupts([transfer for slot in self._under_way for transfer in slot.transfers])
            self._under_way.clear()

    def _synchronize(self) -> None:
        streams = {target.stream for target in self._job.targets} | {self._job.stream}
        for stream in streams - {None}:
            _core.synchronize_stream(self._mover.raw, stream)

    def _move(self) -> Steps:
        for fill in self._plan.fills:
            memory = self._job.targets[fill.target].memory
            _core.fill_boxes(self._mover.raw, memory, fill.table, fill.item)
            self._counts.filled_bytes += int(fill.table[0, 1 : 1 + (fill.table.shape[1] - 1) // 2].prod()) * len(
                fill.item
            )
        self._place_kept()
        yield from self._read_on_cores()
        coming = self._plan.batches(self._mover.decoded_bytes if self._plan.packed else 0)
        batch = next(coming, None)
        while batch is not None:
            if len(self._under_way) == 2:
                yield from self._finish(self._under_way[0])
            self._check_stopped()
            yield from self._start(batch)
            following = next(coming, None)
            only = len(self._under_way) == 1 and len(self._under_way[0].transfers) == 1
            placed = self._plan.writes or not (batch.moves or batch.unpacks)
            rest = self._plan.decodes or self._plan.encodings
            self.is_one_transfer = following is None and only and placed and not rest
            batch = following
        yield from self._decode_all()
        yield from self._encode_all()
        while self._under_way:
            yield from self._finish(self._under_way[0])
        if len(self._job.kinds) == 1:
            self._spent.teach(self._mover.rates, *self._job.kinds)

    def _place_kept(self) -> None:
        """Chunks that an earlier read decoded, which the plan then has no more."""
        coded, self._plan.coded = self._plan.coded, []
        for packed in coded:
            memory = self._job.targets[packed.target].memory
            left, bytes = cores.place_kept(self._mover, self._plan.files, packed, memory)
            self._plan.coded += [left] if left.count else []
            self._counts.took_kept(bytes)

    def _read_on_cores(self) -> Steps:
        """Chunks that lie in the page cache are read by the threads that decode them; others stay in the plan."""
        if self._job.options.keys() - {"timeout_s", "caller_waits"}:
            return
        coded, self._plan.coded = self._plan.coded, []
        for packed in coded:
            rest = packed
            if cores.may_read(packed):
                rest = yield from self._read_parts(packed)
            self._plan.coded += [rest] if rest.count else []

    def _read_parts(self, packed: Packed) -> Generator[Any, None, Packed]:
        """Returns what a transfer has to read. In parts, so that progress is seen; one that lacks many ends it."""
        number = int(packed.file[0])
        name, memory = self._plan.files[number], self._job.targets[packed.target].memory
        chunks = max(1, _READ_AT_ONCE // packed.chunk_bytes)
        rest = np.zeros(packed.count, bool)
        lease = yield from self._lease([name], [file_stamp(name)])
        with lease:
            for start in range(0, packed.count, chunks):
                part = packed.part(start, min(start + chunks, packed.count))
                yield HostWork(part.selected_bytes)
                self._check_stopped()
                how = (memory, cores.Limits(self._stop, self._left_s()), self._read_here)
                with self._spent.timed("cores", part.count):
                    found = cores.read(self._mover, (name, lease.files[0]), part, how)
                self._count_read(part, found)
                if found.rest.count and not found.left:
                    raise self._ended_early()
                rest[start : start + part.count] = np.isin(part.offset, found.rest.offset)
                if found.rest.count > cores.few_left(part):
                    rest[start + part.count :] = True
                    break
        if rest.any():
            self._spent = Spent()  # storage is waited for
        return packed.of(rest)

    def _count_read(self, part: Packed, found: cores.Read) -> None:
        selected = part.selected_bytes - found.rest.selected_bytes
        self._counts.decoded_on_cores(selected, cores.decoder_of(part))
        self._finished_bytes += int(part.sizes.sum() - found.rest.sizes.sum())

    def _decode_all(self) -> Steps:
        left = self._plan.decoded_bytes
        for decode in self._plan.decodes:
            yield HostWork(left)
            self._check_stopped()
            self._decode(decode, left)
            left -= decode.bytes

    def _encode_all(self) -> Steps:
        """The engine writes one part while the cores encode the next."""
        parts = [part for whole in joined(self._plan.encodings) for part in whole.parts()]
        is_little = sum(part.bytes for part in parts) <= _ENCODED_HERE
        for part in parts:
            if len(self._under_way) == 2:
                yield from self._finish(self._under_way[0])
            if not is_little:
                yield HostWork(part.bytes)
            self._check_stopped()
            if self._write_files(part):
                continue
            made = encode(self._mover, part, self._job.targets[part.target], (self._stop, self._left_s()))
            if made is None:
                raise self._ended_early()
            self._counts.encoded_on_cores(part.bytes, part.encoder_name)
            places = part.placing.places(part.dataset, part.origin, made.sizes)
            numbers = np.array([self._plan.number_of(name) for name in places.files], np.int64)
            table = made.rows(places, numbers)
            slot = _Slot(Batch(staged=table, scratch_bytes=made.scratch.bytes), made.scratch)
            self._under_way.append(slot)
            self._counts.take(slot.batch)
            self._finished_bytes += part.bytes - int(made.sizes.sum())
            yield from self._send(slot, made.scratch, table)
            if self._cancelled:
                self.cancel()
        if parts and is_little:
            self.is_one_transfer = [len(slot.transfers) for slot in self._under_way] == [1]

    def _write_files(self, part: Encoding) -> bool:
        """Whether its chunks became files here; else a transfer writes them."""
        if not in_files.may_write(self._mover, part, self._job.options):
            return False
        target, limits = self._job.targets[part.target], (self._stop, self._left_s())
        done = in_files.write(self._mover, part, target, limits, (self._in_files, self._counts))
        if done is None:
            raise self._ended_early()
        self._finished_bytes += part.bytes if done else 0
        return done

    def _ended_early(self) -> Error:
        self._check_stopped()
        return self._stopped("timed_out", "the deadline passed")

    def _left_s(self) -> float | None:
        return None if self._deadline == float("inf") else max(0.0, self._deadline - time.monotonic())

    def _check_stopped(self) -> None:
        if self._cancelled:
            raise self._stopped("cancelled", "cancelled by the caller")
        if time.monotonic() >= self._deadline:
            raise self._stopped("timed_out", "the deadline passed")

    def _stopped(self, code: str, cause: str) -> Error:
        file = self._plan.files[0] if self._plan.files else self._mover.name
        return Error(code=code, operation="write" if self._plan.writes else "read", file=file, cause=cause)

    def _start(self, batch: Batch) -> Steps:
        kind = "pinned" if batch.on_cores else "device"
        scratch = self._mover.take_scratch(batch.scratch_bytes, kind) if batch.scratch_bytes else None
        slot = _Slot(batch, scratch)
        self._under_way.append(slot)
        self._counts.take(batch)
        if self._plan.writes:
            if (batch.moves or batch.paddings) and batch.scratch_bytes > pending.INLINE_BYTES:
                yield HostWork(batch.scratch_bytes)
                self._check_stopped()
            self._place(slot)
        if scratch is not None:
            yield from self._send(slot, scratch, batch.staged)
        for number, table in batch.direct.items():
            yield from self._send(slot, self._job.targets[number].memory, table)
        if self._cancelled:  # just now, by another thread, which has not seen these
            self.cancel()

    def _send(self, slot: _Slot, memory: Any, table: np.ndarray) -> Steps:
        """In as many transfers as the files need, of which only so many may be open at once."""
        numbers = np.zeros(1, np.int64)
        if len(self._plan.files) > 1:  # not np.unique, which imports numpy.ma and may find no descriptor for it
            numbers = np.flatnonzero(np.bincount(table[:, 0]))
        while len(numbers):
            names = [self._plan.files[number] for number in numbers.tolist()]
            lease = yield from self._lease(names, [file_stamp(name) for name in names] if slot.batch.on_cores else [])
            with lease:
                some, numbers = numbers[: len(lease.files)], numbers[len(lease.files) :]
                rows = table
                if len(self._plan.files) > 1:
                    rows = table[(table[:, 0] >= some[0]) & (table[:, 0] <= some[-1])]
                with self._cut_meanwhile(rows):
                    slot.sent.append((lease.began(self._transfer(lease.files, memory, rows, some)), rows))

    def _lease(self, names: Sequence[str], versions: Sequence[Hashable]) -> Generator[Full, None, Lease]:
        """`versions`: as the files are now. One that another took the name of since it was opened is opened anew."""
        while True:
            lease = self._mover.files.lease(names, self._plan.writes, versions)
            if isinstance(lease, Lease):
                return lease
            yield lease
            self._check_stopped()

    def _transfer(self, files: list[_core.File], memory: Any, rows: np.ndarray, numbers: np.ndarray) -> _core.Transfer:
        """`numbers`: of the files, ascending, as the rows have them."""
        if len(self._plan.files) > 1:
            rows = rows.copy()
            rows[:, 0] = np.searchsorted(numbers, rows[:, 0])
        options = self._job.options
        if self._deadline != float("inf"):
            options = options | {"timeout_s": max(0.0, self._deadline - time.monotonic())}
        direction = "write" if self._plan.writes else "read"
        return _core.start_table(self._mover.raw, direction, files, memory, rows, **options)

    def _finish(self, slot: _Slot) -> Steps:
        for use, table in slot.sent:
            assert use.transfer is not None
            yield use.transfer
            outcome = use.transfer.result()
            if use.transfer.done:  # else the system does not end its operations: its files stay in use
                use.over()
            self._finished_bytes += int(table[:, 3].sum())
            outcome.or_throw()
            self._check_bytes(outcome, table)
            self._outcomes.append(outcome)
            self._spent.moved(outcome.seconds)
        self._mover.files.settle()
        if slot.batch.on_cores:
            yield HostWork(sum(packed.selected_bytes for packed, _ in slot.batch.unpacks))
            self._check_stopped()
            self._decode_on_cores(slot)
        elif not self._plan.writes:
            self._place(slot)
        self._under_way.remove(slot)
        if slot.scratch is not None:
            self._mover.give_back(slot.scratch)

    @contextmanager
    def _cut_meanwhile(self, table: np.ndarray) -> Iterator[None]:
        """An offset that was in the file when it was described is no mistake of the caller."""
        try:
            yield
        except Error as error:
            for number, offset, _, length in table.tolist() if error.code == "invalid_argument" else ():
                if not self._plan.writes and offset > file_bytes(self._plan.files[number]):
                    raise Error.cut_short(self._plan.files[number], offset, length, 0) from error
            raise

    def _check_bytes(self, outcome: _core.Outcome, table: np.ndarray) -> None:
        wanted = int(table[:, 3].sum())
        if outcome.bytes == wanted:
            return
        row = next((row for row in table if int(row[1] + row[3]) > file_bytes(self._plan.files[row[0]])), table[-1])
        _, offset, _, length = (int(number) for number in row)
        raise Error.cut_short(self._plan.files[int(row[0])], offset, length, length - (wanted - outcome.bytes))

    def _place(self, slot: _Slot) -> None:
        """Between scratch and the targets, and byte order in place."""
        for padding in slot.batch.paddings:
            _core.fill_boxes(self._mover.raw, slot.scratch, padding.table, padding.item)
        for move in slot.batch.moves:
            memory = self._job.targets[move.target].memory
            to, source = (slot.scratch, memory) if self._plan.writes else (memory, slot.scratch)
            if move.in_place:
                to = source = memory
            _core.copy_boxes(self._mover.raw, to, source, move.table, move.item_bytes, move.swap_bytes)
        if slot.batch.unpacks and slot.scratch is not None:
            self._check_stopped()
            where = (self._plan.files, slot.batch.unpacks, slot.scratch)
            with self._spent.timed("device", sum(packed.count for packed, _ in slot.batch.unpacks)):
                bytes = unpack(self._mover, *where, lambda number: self._job.targets[number].memory)
            self._counts.decoded_on_device(bytes, self._mover.device_decoder())

    def _decode_on_cores(self, slot: _Slot) -> None:
        assert slot.scratch is not None
        for packed, at in slot.batch.unpacks:
            memory, timeout_s = self._job.targets[packed.target].memory, self._left_s()
            streams = cores.CodedStreams(self._plan.files, packed, slot.scratch, at, self._began_ns)
            if not cores.decode(self._mover, streams, memory, cores.Limits(self._stop, timeout_s)):
                raise self._ended_early()
            self._counts.decoded_on_cores(packed.selected_bytes, cores.decoder_of(packed))

    def _decoded(self, decode: Decode, left: int) -> Any:
        """A library of a format reads by calls of the system that may not come back. Little is read by who waits, as a
        small transfer is, unless there is a deadline."""
        if left <= pending.INLINE_BYTES and self._deadline == float("inf"):
            return self._mover.decode(decode.dataset, decode.box)
        return Aside(lambda: self._mover.decode(decode.dataset, decode.box)).result(self._check_stopped)

    def _decode(self, decode: Decode, left: int) -> None:
        plain = self._decoded(decode, left)
        self._counts.decoded_on_host(decode.bytes, self._mover.library)
        self._finished_bytes += decode.bytes
        given = memoryview(plain).nbytes
        if given != decode.bytes:
            raise Error(
                code="damaged",
                operation=f"decode dataset {decode.dataset!r}",
                cause=f"the format's library gave {given} bytes instead of {decode.bytes}",
            )
        memory = self._job.targets[decode.target].memory
        with uploaded(self._mover, plain, decode.bytes) as source:
            _core.copy_boxes(self._mover.raw, memory, source, decode.table, decode.item_bytes, decode.swap_bytes)
