"""Whoever answers questions about a file now: its container, its writer, or, written and closed, the file anew.

A format is not safe for threads, so one question is answered at a time. What must stay true: while a file is written,
the writer answers, so that what was written can be read back; after that the published file does, and never a memory
of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, NamedTuple

from penstock._error import Error
from penstock.formats.faults import no_memory
from penstock.formats.format import Format
from penstock.formats.model import Box, Container, Writer
from penstock.formats.new_file import sync_file


class Opened(NamedTuple):
    """What a format gives: a container to read, or a writer (of a new file, or of one that is changed)."""

    name: str
    format: Format
    container: Container | None = None
    writer: Writer | None = None
    reopen: Callable[[], Container] | None = None  # of a file that was written, and published
    durable: bool = False
    anew: Callable[[], Any] | str = "it is open for writing"  # how another process opens it, or why none can


class MetadataSource:
    """The one of an open DataFile. A question is a block of it, and holds a lock: a generator, or an object for each
    question, would take longer than most answers."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._process = os.getpid()
        self._published = False
        self._others: set[str] = set()  # files that elements were written to, which the writer knows nothing of
        self.lock = threading.RLock()
        self.closed = False
        self.writable = opened.writer is not None  # and not closed
        self.changes = 0  # of the metadata, and ends: what was learned of places before may not hold

    def __enter__(self) -> Container:
        if self.closed or os.getpid() != self._process:
            self.need_open()
        self.lock.acquire()
        if not self.closed:
            return self._reading
        self.lock.release()
        self.need_open()
        raise AssertionError("it is closed")

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    @property
    def _reading(self) -> Container:
        """What reads the file. For a file that is written: what its writer names `reading`, or the writer itself."""
        writer = self._opened.writer
        found = self._opened.container if writer is None else writer.reading or writer
        assert found is not None, "an open file has a container or a writer"
        return found

    @property
    def anew(self) -> Callable[[], Any] | str:
        return self._opened.anew

    @property
    def in_child(self) -> bool:
        """In a forked child the file is the parent's, and its locks may be those of threads that are not there."""
        return os.getpid() != self._process

    @property
    def owns_unpublished(self) -> bool:
        """There is a writer here that is not closed; that of a parent process is not ours."""
        return self.writable and not self.in_child

    def need_open(self) -> None:
        """ValueError when the file is closed, Error in a forked child."""
        if self.closed:
            raise ValueError(f"{self._opened.name} is closed")
        if self.in_child:
            raise self._foreign()

    def _foreign(self) -> Error:
        cause, advice = "the file was opened before fork(), in the parent process", "open it in the child"
        return Error(code="unsupported", operation="use", file=self._opened.name, cause=cause, advice=advice)

    def data(self) -> AbstractContextManager[Container]:
        """The container or writer that tells where bytes are, for reading them."""
        return self

    def metadata(self) -> AbstractContextManager[Container]:
        """The same, and after the end of writing the published file."""
        if not (self.closed and self._published and self._opened.reopen is not None):
            return self
        return closing(self._opened.reopen())

    @contextmanager
    def writer(self, changes: bool = True) -> Iterator[Writer]:
        """TypeError when the file was opened for reading. `changes`: whether it may be asked for more than where
        elements lie."""
        self.need_open()
        with self.lock:
            self.need_open()
            if self._opened.writer is None:
                name = self._opened.name
                raise TypeError(
                    f"{name} was opened for reading; use penstock.open(name, write=True) or penstock.create"
                )
            self._opened.writer.need_same()
            self.changes += changes
            yield self._opened.writer

    def decode(self, name: str, box: Box) -> Any:
        """On the host, by the format's library."""
        try:
            return self._decode(name, box)
        except MemoryError as error:
            cause = str(error) or "there is no memory to decode it in"
            raise no_memory(self._opened.name, cause, name) from error

    def _decode(self, name: str, box: Box) -> Any:
        with self.lock:
            decode = self._reading.decoding(name, box)
        return decode()  # which may hang: others go on meanwhile

    def publish(self) -> None:
        """All bytes are written. A file that cannot be published is abandoned."""
        if self._opened.writer is not None:
            self.changes += 1
            self._opened.writer.need_same()
            for other in sorted(self._others) if self._opened.durable else ():
                sync_file(other)
            self._opened.writer.publish(self._opened.durable)
            self._published = True

    def note_other(self, file: str) -> None:
        """Elements of this file are written to another one: durable, that is synced too."""
        self._others.add(file)

    def closes_in_child(self, publishes: bool = False) -> bool:
        """In a forked child: closes without the locks, and waits for nothing that the parent does. `publishes`:
        the caller expects a new file, and gets an Error."""
        if not self.in_child:
            return False
        is_new = self.writable
        self.close()
        if is_new and publishes:
            raise self._foreign()
        return True

    def close(self) -> None:
        """What was not published is gone. In a forked child nothing is: it is the parent's."""
        is_writer_here = self.owns_unpublished
        self.closed, self.writable = True, False
        if self._opened.container is not None:
            self._opened.container.close()
        if self._opened.writer is not None and is_writer_here:
            self._opened.writer.abandon()
