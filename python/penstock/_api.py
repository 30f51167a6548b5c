"""The Python face of Penstock: Context, File, Buffer, Transfer, Outcome.

Thin over the compiled module: it adds types, context managers and names, never behaviour of its own. Waits can be
interrupted (Ctrl-C) and release the GIL. Sizes and offsets are bytes, times are seconds.

Where the system does not end an operation, as on a server that does not answer, deadlines and interrupts hold all the
same, 0.2 to 0.5 s late. The operation may then still write into its memory, which Penstock keeps until it has ended.

`memory` is always one of: a penstock Buffer (or a slice of one), an object with `__cuda_array_interface__` (CuPy,
PyTorch, Numba arrays), or an object with the buffer protocol (NumPy arrays, bytearray, mmap). It must be contiguous.
Work on GPU memory that its library has queued comes first: calls wait for the stream that the object names, and for
PyTorch's current one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock import _core, _profiles
from penstock._core import Buffer
from penstock._error import Error
from penstock._files.file_name import file_name
from penstock._files.open_files import with_room
from penstock._options import (
    ContextOptions as ContextOptions,
    ReadOptions as ReadOptions,
    TransferOptions as TransferOptions,
    need_known,
)
from penstock._profiles import Profiles
from penstock._told import Evidence as Evidence, Outcome as Outcome

if TYPE_CHECKING:
    from typing_extensions import Unpack

FileName = str | os.PathLike[str]
Memory = Any
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What a transfer does: a text of one line a step, and the steps as data. `pinned_bytes` is the staging memory that
    it needs at most."""

    text: str
    pinned_bytes: int
    steps: list[dict[str, Any]]

    def __str__(self) -> str:
        return self.text


def _outcome(raw: _core.Outcome) -> Outcome:
    raw.or_throw()
    return Outcome._of(raw)


LEAVE_S = 0.2  # for which operations under way are waited for by whoever cancelled them and leaves


class Transfer:
    """A transfer under way. Dropping it does not cancel it, unless memory not allocated by Penstock is in use: then it
    is cancelled, and the memory kept until nothing touches it any more."""

    def __init__(self, raw: _core.Transfer) -> None:
        self._raw = raw

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not; does not wait."""
        return self._raw.done

    @property
    def bytes_done(self) -> int:
        """So far."""
        return self._raw.bytes_done

    @property
    def bytes_total(self) -> int:
        """That will move, if all goes well."""
        return self._raw.bytes_total

    @property
    def plan(self) -> Plan:
        """How it moves, and why; known from the start."""
        return Plan(**self._raw.plan)

    def wait(self, timeout: float | None = None, progress: Progress | None = None) -> bool:
        """True when done, and nothing touches the memory any more; False after `timeout` seconds. None waits as long as
        it takes, 0 only asks, less than 0 is a ValueError. `progress(done_bytes, total_bytes)` is called about 10 times
        a second and once at the end."""
        return self._raw.wait(timeout, progress)

    def result(self) -> Outcome:
        """Waits, then returns the outcome. Raises Error when not all was done as asked: "timed_out" 0.2 s after the
        transfer's timeout, "cancelled" 0.2 s after cancel(), also when the system does not end its operations. They may
        then still write into the memory: wait() says when they have ended."""
        return _outcome(self._raw.result())

    def cancel(self) -> None:
        """Started operations finish, the rest does not start; result() then raises Error with code "cancelled"."""
        self._raw.cancel()

    def _finish(self) -> Outcome:
        """result(), but an interrupt cancels the transfer, and leaves when nothing touches the memory any more; where
        the system does not end its operations, after LEAVE_S."""
        try:
            return self.result()
        except BaseException:  # of an error of the transfer itself nothing is left to wait for
            leave([self._raw])
            raise


def leave(transfers: Iterable[_core.Transfer]) -> None:
    """Cancels them and waits until nothing touches their memory, but where the system does not end their operations no
    longer than LEAVE_S in all."""
    given_up = list(transfers)
    for transfer in given_up:
        transfer.cancel()
    end = time.monotonic() + LEAVE_S
    for transfer in given_up:
        transfer.wait(max(0.0, end - time.monotonic()), None)


class File:
    """An open file of a context. As a context manager: closes; a new file is given its name only if no error passed."""

    def __init__(self, raw: _core.File) -> None:
        self._open: _core.File | None = raw
        self.name: str = raw.name

    @property
    def _raw(self) -> _core.File:
        if self._open is None:
            raise ValueError(f"{self.name} is closed")
        return self._open

    @property
    def size_bytes(self) -> int:
        """Size of the file, now."""
        return self._raw.size_bytes

    @property
    def facts(self) -> dict[str, Any]:
        """File system, O_DIRECT support and its alignment, and where that is known from."""
        return self._raw.facts

    def start_read(self, memory: Memory, offset_bytes: int = 0, **options: Unpack[TransferOptions]) -> Transfer:
        """read(), in the background: `result()` of what it returns is what read() gives."""
        return Transfer(self._raw.start_read(memory, offset_bytes, **options))

    def start_write(self, memory: Memory, offset_bytes: int = 0, **options: Unpack[TransferOptions]) -> Transfer:
        """write(), in the background. The memory must not change until it is done."""
        return Transfer(self._raw.start_write(memory, offset_bytes, **options))

    def read(self, memory: Memory, offset_bytes: int = 0, **options: Unpack[TransferOptions]) -> Outcome:
        """Fills `memory` from the file, starting at offset_bytes. Stops at the end of the file: see `Outcome.bytes`.
        An offset beyond the end raises Error."""
        opened = self._open or self._raw
        small = None if options else _core.read_small(opened, memory, offset_bytes)
        if small is not None:
            return Outcome._of(small)
        return Transfer(opened.start_read(memory, offset_bytes, caller_waits=True, **options))._finish()

    def write(self, memory: Memory, offset_bytes: int = 0, **options: Unpack[TransferOptions]) -> Outcome:
        """Writes all of `memory` at offset_bytes; writes past the end extend the file."""
        opened = self._raw
        small = None if options else _core.write_small(opened, memory, offset_bytes)
        if small is not None:
            return Outcome._of(small)
        return Transfer(opened.start_write(memory, offset_bytes, caller_waits=True, **options))._finish()

    def sync(self) -> None:
        """Returns when what was written is on stable storage. Raises Error of a write that failed."""
        self._raw.sync()

    def residency(self, offset_bytes: int = 0, bytes: int | None = None) -> dict[str, Any]:
        """How much of the range is in the page cache: `resident_fraction`, counted or sampled pages, and the source.

        What cannot be known is None, and `cause` says why: the kernel tells a caller only of files that it owns or may
        write, and file systems with a cache of their own tell nothing. `dirty_pages` only "cachestat" knows.
        """
        return self._raw.residency(offset_bytes, bytes)

    def drop_cache(self, offset_bytes: int = 0, bytes: int = 0) -> None:
        """Asks the system to forget cached pages of the range (0 bytes: to the end), after writing them out."""
        self._raw.drop_cache(offset_bytes, bytes)

    def explain(
        self,
        direction: str = "read",
        offset_bytes: int = 0,
        bytes: int | None = None,
        kind: str = "device",
        **options: Unpack[TransferOptions],
    ) -> dict[str, Any]:
        """Why such a request would move as it would, without moving it: `plan` and `reason` in words,
        `predicted_seconds` (None without a machine profile), `parts` of the request by residency, each with the paths
        it was chosen among (`path`, `seconds`, `refusal`), the `profile` used, why one is not (`profile_refused`)."""
        if direction not in ("read", "write"):
            raise ValueError(f"direction is {direction!r}; it must be 'read' or 'write'")
        length = max(0, self.size_bytes - offset_bytes) if bytes is None else bytes
        asked = {"direction": direction, "offset_bytes": offset_bytes, "bytes": length, "kind": kind}
        return _core.explain(self._raw, asked, **options)

    def register_mapping(self) -> tuple[bool, str]:
        """Registers the file's mapping with the device now; (False, why) where the file system or device refuses."""
        return self._raw.register_mapping()

    def close(self) -> None:
        """Waits for the transfers on the file, gives a new file its name, and lets the file go, also when it raises:
        Error for a write that failed and whose result the caller never asked for. Does nothing the second time. An
        interrupt while it waits leaves the file open and the transfers running."""
        if self._open is None:
            return
        self._open.wait()
        held, self._open = self._open, None
        try:
            held.close()
        finally:
            del held  # a traceback would keep the descriptors open

    def abandon(self) -> None:
        """Lets go without closing or waiting: a new file never appears. The file stays open for transfers under way,
        until they are done."""
        self._open = None

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class Context:
    """Owns a device, worker threads, staging memory and settings. Nothing is process-wide. Not usable after fork().

    Args:
        device: "auto" (a GPU when there is one), "host" (emulated), "cuda:0", ...
        profile: machine profiles (see `penstock calibrate`) that path "auto" chooses by: "auto", those of
            penstock.profile_folders(); a file, which must be of this machine; a folder; a list of them; None, none.
        options: see ContextOptions.
    """

    def __init__(self, device: str = "auto", *, profile: Profiles = "auto", **options: Unpack[ContextOptions]) -> None:
        if options:
            need_known("Context()", ("device", "profile", *ContextOptions.__annotations__), options)
        self._strict = bool(options.get("strict", False))
        self._is_free = not options.keys() & {"path", "workers", "strict"}  # to choose the way of bytes
        profiles = _profiles.named(profile)
        self._open: _core.Context | None = _core.Context(device=device, profiles=profiles, **options)

    @classmethod
    def _of(cls, buffer: Buffer) -> Context:
        """The context that a buffer belongs to."""
        context = cls.__new__(cls)
        context._strict = False  # a transfer asks the context itself; only reads of datasets ask here
        context._is_free = False
        context._open = buffer.context
        return context

    @property
    def _raw(self) -> _core.Context:
        if self._open is None:
            raise ValueError("the context is closed")
        return self._open

    @property
    def _closed(self) -> bool:
        return self._open is None

    @property
    def device(self) -> dict[str, Any]:
        """Name, model, free and total bytes, NUMA node, bus address, whether it is emulated."""
        return self._raw.device_info

    @cached_property
    def _place(self) -> tuple[str, bool]:
        """Name of the device and whether it is emulated: asked once, for `device` also looks at free memory."""
        device = self.device
        return device["name"], device["emulated"]

    @cached_property
    def _kept(self) -> dict[type, Any]:
        """What layers above know of this context, by its type, for as long as it lives."""
        return {}

    @property
    def pinned_bytes(self) -> int:
        """Staging memory held now."""
        return self._raw.pinned_bytes

    @property
    def pinned_peak_bytes(self) -> int:
        """The most staging memory held so far."""
        return self._raw.pinned_peak_bytes

    def open(self, name: FileName, *, write: bool = False) -> File:
        """Opens an existing regular file; `write` for reading and writing."""
        place, mode = file_name(name, "open"), "read_write" if write else "read"
        return File(with_room(lambda: _core.open(self._raw, place, mode=mode)))

    def create(self, name: FileName, size_bytes: int = 0, *, durable: bool = False, replace: bool = True) -> File:
        """A new file that appears under its name, whole, at close(). `size_bytes` of space are reserved first, so that
        a full disk shows here. `durable`: close() makes file and directory entry durable."""
        place = file_name(name, "create")
        options = {"mode": "create", "size_bytes": size_bytes, "durable": durable, "replace": replace}
        return File(with_room(lambda: _core.open(self._raw, place, **options)))

    def allocate(self, bytes: int, kind: str = "device", *, first_touch: str = "none") -> Buffer:
        """Memory of kind device, pinned, managed or system; its pages touched first by none, cpu or gpu."""
        return _core.allocate(self._raw, bytes, kind, first_touch)

    def start_read(self, ranges: Iterable[tuple[File, int, Memory]], **options: Unpack[TransferOptions]) -> Transfer:
        """One submission of many ranges (file, offset_bytes, memory) over any number of files."""
        return Transfer(_core.start(self._raw, "read", _raw_ranges(ranges), **options))

    def start_write(self, ranges: Iterable[tuple[File, int, Memory]], **options: Unpack[TransferOptions]) -> Transfer:
        """Starts writing several ranges in one submission; arguments as of start_read()."""
        return Transfer(_core.start(self._raw, "write", _raw_ranges(ranges), **options))

    def copy_to_host(self, host: Memory, device: Memory) -> None:
        """Copies device memory to host memory of equal size."""
        self._raw.copy_to_host(host, device)

    def copy_to_device(self, device: Memory, host: Memory) -> None:
        """Copies bytes of host memory into device memory of the same length; returns when it is done."""
        self._raw.copy_to_device(device, host)

    def stamp(self, memory: Memory, file_offset: int = 0, seed: int = 1) -> None:
        """Fills device memory with the pattern that says where in a file each word belongs: byte i is byte
        file_offset + i of the pattern, at any offset."""
        _core.stamp(self._raw, memory, file_offset, seed)

    def verify_stamp(self, memory: Memory, file_offset: int = 0, seed: int = 1) -> tuple[int, int]:
        """Checks the pattern on the device: (bad bytes, file offset of the first bad word)."""
        return _core.verify(self._raw, memory, file_offset, seed)

    def fill(self, memory: Memory, byte_value: int) -> None:
        """Fills device memory with one byte, 0 to 255."""
        _core.fill(self._raw, memory, byte_value)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """The device and its threads go when the last file, buffer and transfer of the context are gone."""
        self._open = None


def _raw_ranges(ranges: Iterable[tuple[File, int, Memory]]) -> list[tuple[_core.File, int, Any]]:
    listed = list(ranges)
    try:
        return [(file._raw, offset_bytes, memory) for file, offset_bytes, memory in listed]
    except (AttributeError, TypeError, ValueError):
        raise TypeError("each range is (File, offset_bytes, memory), of files that a context opened") from None


def load(context: Context, name: FileName, **options: Unpack[TransferOptions]) -> Buffer:
    """The whole file in a new device buffer. Wrap it without a copy: numpy.asarray(buffer) on the host device,
    cupy.asarray(buffer) or torch.as_tensor(buffer, device="cuda") on a GPU. Raises Error for an empty file, and
    `end_of_file` for one that gives fewer bytes than it had when it was opened."""
    small = None if options else _core.load_small(context._raw, name)
    if small is not None:
        return small
    with context.open(name) as file:
        if not file.size_bytes:
            raise Error(operation="load", file=file.name, cause="it is empty", advice="copy or download it again")
        buffer = context.allocate(file.size_bytes)
        outcome = file.read(buffer, **options)
        if outcome.bytes != buffer.bytes:
            raise Error.cut_short(file.name, 0, buffer.bytes, outcome.bytes)
        return buffer


def save(context: Context, name: FileName, memory: Memory, **options: Unpack[TransferOptions]) -> Outcome:
    """Writes memory to a new file, which appears under its name only when whole; replaces an older one."""
    with context.create(name, durable=bool(options.get("durable"))) as file:
        return file.write(memory, **options)
