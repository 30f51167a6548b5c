"""A small file that appears whole or not at all: what is made in memory goes to a temporary name beside the target,
onto stable storage, and only then under its own name. An older file of that name stays until then."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock._error import Error


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
