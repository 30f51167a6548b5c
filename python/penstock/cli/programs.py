"""Whether a preloaded library reaches a program. The file is asked before it is run, so that no program runs without
the library unnoticed.

It reaches what the dynamic linker of glibc starts. It does not reach static programs, those that run with other rights
than their caller's, and those that make system calls by themselves.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from penstock import Error

WITHOUT = "run it without `penstock run`"
_HEAD = 4096  # of a file: its ELF header, program headers, and the line of a script
_LOOKS = 8  # from script to script
_INTERPRETER, _NOTE = 3, 4  # types of program headers
_HERE = Path("/proc/self/exe")


def check(program: str) -> str:
    """The program's file. Raises Error with the reason where the library cannot reach it."""
    found = shutil.which(program)
    if found is None:
        raise _not_found(program)
    at = found
    for _ in range(_LOOKS):
        _check_rights(at)
        head = _head(at)
        if not head.startswith(b"#!"):
            _check_elf(at, head)
            return found
        at = _interpreter(at, head)
    raise _refused(found, "its interpreter is a script whose interpreter is a script, and so on")


def _not_found(name: str) -> Error:
    """A name without a slash is looked for on PATH alone, where a file of this folder does not count."""
    if os.sep in name and Path(name).is_dir():
        return Error(operation="run", file=name, cause="this is a folder", advice="name the program in it")
    if os.sep in name and Path(name).exists():
        cause, advice = (
            "you may not execute this file",
            f"chmod +x {shlex.quote(name)}, or name its interpreter before it",
        )
        return Error(code="permission_denied", operation="run", file=name, cause=cause, advice=advice)
    return Error(code="not_found", operation="run", file=name, cause="no such program", advice="check its name")


def _refused(name: str, cause: str) -> Error:
    return Error(code="unsupported", operation="run", file=name, cause=cause, advice=WITHOUT)


def _head(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(_HEAD)
    except OSError as failure:
        raise _refused(name, f"it cannot be examined: {failure.strerror}") from failure


def _interpreter(name: str, head: bytes) -> str:
    """What a script's first line has it run by; of env what that runs."""
    words = shlex.split(os.fsdecode(head[2:].split(b"\n")[0]), posix=True)
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0]) if words else None
    if found is None:
        raise _refused(name, "the interpreter that its first line names is not there")
    return found


def _check_rights(name: str) -> None:
    status = Path(name).stat()
    other_user = status.st_mode & stat.S_ISUID and status.st_uid != os.getuid()
    other_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getgid()
    if other_user or other_group:
        raise _refused(name, "it is setuid or setgid, and the system then loads no library of its caller's")
    try:
        capabilities = os.getxattr(name, "security.capability")
    except OSError:
        return
    if capabilities and os.getuid() != 0:
        raise _refused(name, "it has capabilities of its own, and the system then loads no library of its caller's")


def _check_elf(name: str, head: bytes) -> None:
    if not head.startswith(b"\x7fELF"):
        raise _refused(name, "it is neither a program (ELF) nor a script that names its interpreter (#!)")
    ours = _head(str(_HERE))
    if head[4:6] != ours[4:6] or head[18:20] != ours[18:20]:
        raise _refused(name, "it is a program of another kind of machine than this Python, so is the library")
    segments = list(_segments(head))
    interpreters = [_bytes_at(name, offset, size) for kind, offset, size in segments if kind == _INTERPRETER]
    if not interpreters:
        raise _refused(name, "it is linked statically: its reads and writes are inside it, and no library comes before")
    if b"ld-musl" in interpreters[0]:
        raise _refused(name, "it is linked with musl, and the library is for glibc")
    if any(kind == _NOTE and _is_of_go(_bytes_at(name, offset, size)) for kind, offset, size in segments):
        raise _refused(name, "it is a program of Go, whose reads and writes are system calls that no library sees")


def _segments(head: bytes) -> Iterator[tuple[int, int, int]]:
    """(type, offset, bytes) of each program header of a 64-bit program."""
    (table,) = struct.unpack_from("=Q", head, 32)
    size, count = struct.unpack_from("=HH", head, 54)
    for number in range(count):
        at = table + number * size
        if at + 56 <= len(head):
            kind, _, offset, _, _, in_file = struct.unpack_from("=IIQQQQ", head, at)
            yield kind, offset, in_file


def _bytes_at(name: str, offset: int, size: int) -> bytes:
    with Path(name).open("rb") as file:
        file.seek(offset)
        return file.read(min(size, 1 << 16))


def _is_of_go(notes: bytes) -> bool:
    at = 0
    while at + 12 <= len(notes):
        name_bytes, text_bytes, _ = struct.unpack_from("=III", notes, at)
        name = notes[at + 12 : at + 12 + name_bytes]
        if name.rstrip(b"\0") == b"Go":
            return True
        at += 12 + (name_bytes + 3) // 4 * 4 + (text_bytes + 3) // 4 * 4
    return False
