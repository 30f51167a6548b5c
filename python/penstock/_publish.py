"""A small file that appears whole or not at all: what is made in memory goes to a temporary name beside the target,
onto stable storage, and only then under its own name. An older file of that name stays until then."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock._error import Error


def check_target(path: Path, operation: str, advice: str) -> None:
    """Raises the Error that publish() would raise in the end, as far as can be told before: ask first where what is to
    be published takes long to make."""
    target = Path(os.path.realpath(path))
    cause, code = "", "permission_denied"
    if target.is_dir():
        cause = "it is a directory, not a regular file"
    elif target.exists() and not target.is_file():
        cause = "it is not a regular file"
    elif not target.parent.is_dir():
        cause, code = "there is no such directory", "not_found"
    elif not os.access(target.parent, os.W_OK | os.X_OK):
        cause = "you may not write there"
    if cause:
        raise Error(code=code, operation=operation, file=str(path), cause=cause, advice=advice)


def publish(path: Path, content: bytes, operation: str, advice: str) -> None:
    """Raises Error when it cannot be written; then nothing is left of it. A symbolic link stays one."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise Error(operation=operation, file=str(path), cause="not a regular file", advice=advice)
    part = target.with_name(f".penstock-{os.getpid()}.part")
    try:
        _write(part, content)
        part.replace(target)
    except OSError as error:
        raise Error.of(error, operation, str(path), advice) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())  # a full disk may show only here
