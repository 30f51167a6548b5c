"""A small file that appears whole or not at all: what is made in memory goes to a file without a name or under a
temporary one, onto stable storage, and only then under its own name. How, and what becomes of links, rights and of what
killed processes left, is os::NewFile of the core, as for all files that Penstock makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock import _core
from penstock._error import Error, _advice


def check_target(path: Path, operation: str, advice: str) -> None:
    """Raises the Error that publish() would raise in the end, as far as can be told before: ask first where what is to
    be published takes long to make."""
    with _told(path, operation, advice):
        _core.NewFile(path, unnamed=True).abandon()


def publish(path: Path, content: bytes, operation: str, advice: str) -> None:
    """Raises Error when it cannot be written; then nothing is left of it. A symbolic link stays one."""
    with _told(path, operation, advice):
        new = _core.NewFile(path, unnamed=True)
        try:
            _write_all(new.descriptor, content)
            new.publish(durable=True)  # a full disk may show only here
        finally:
            new.abandon()
            new.close()


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


@contextmanager
def _told(path: Path, operation: str, advice: str) -> Iterator[None]:
    """Errors as those of the operation that wants the file."""
    try:
        yield
    except Error as error:
        raise Error(
            code=error.code,
            operation=operation,
            file=str(path),
            cause="there is no such directory" if error.code == "not_found" else error.cause,
            advice=_advice(error.system_code, advice) or error.advice,
            system_code=error.system_code,
        ) from None
    except OSError as error:
        raise Error.of(error, operation, str(path), advice) from None
