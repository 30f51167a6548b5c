"""The one exception of Penstock.

Its text is one line: operation, file, range, cause, advice. The attributes say the same for programs.
"""

from __future__ import annotations

import errno

# As code_from_errno of the core; EINVAL is none of the caller's arguments here.
_CODES = {
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_found",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EISDIR: "not_a_regular_file",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.ENOMEM: "out_of_memory",
    errno.EOPNOTSUPP: "unsupported",
    errno.ENOSYS: "unsupported",
    errno.EROFS: "read_only",
}


def _advice(number: int | None, usual: str) -> str:
    """The usual advice, or what this number asks for before it."""
    if number in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files (ulimit -n), or close files"
    first = ""
    if number in (errno.ENOSPC, errno.EDQUOT) and "space" not in usual:
        first = "free space on its file system"
    elif number == errno.EFBIG:
        first = "raise the limit on file sizes (ulimit -f)"
    elif number == errno.ENOTDIR and not usual:
        first = "a part of the path is a file, not a directory: check the path"
    elif number == errno.EROFS and not usual:
        first = "name a file on another file system"
    return "; ".join(filter(None, (first, usual)))


class Error(Exception):
    """What went wrong, where, and what to do next.

    Attributes:
        code: lower-case word: "not_found", "no_space", "fallback_refused", "cancelled", ...
        operation: what was being done, e.g. "open" or "read".
        file: path as the user gave it; empty when no file is concerned.
        offset_bytes, length_bytes: the range; length 0 when no range is concerned.
        cause: why it failed.
        advice: what to do next; may be empty.
        system_code: errno, CUDA or cuFile code; 0 when there is none.
    """

    def __init__(  # noqa: PLR0913 - one keyword an attribute
        self,
        message: str = "",
        *,
        code: str = "invalid_argument",
        operation: str = "",
        file: str = "",
        offset_bytes: int = 0,
        length_bytes: int = 0,
        cause: str = "",
        advice: str = "",
        system_code: int = 0,
    ) -> None:
        self.code = code
        self.operation = operation
        self.file = file
        self.offset_bytes = offset_bytes
        self.length_bytes = length_bytes
        self.cause = cause or message
        self.advice = advice
        self.system_code = system_code
        super().__init__(message or self._line())

    @classmethod
    def of(cls, error: OSError, operation: str, file: str, advice: str) -> Error:
        """What the system refused, with what was being done and what to do next."""
        advice = _advice(error.errno, advice)
        return cls(
            code=_CODES.get(error.errno or 0, "io_error"),
            operation=operation,
            file=file,
            cause=error.strerror or str(error),
            advice=advice,
            system_code=error.errno or 0,
        )

    @classmethod
    def cut_short(cls, file: str, offset_bytes: int, asked_bytes: int, came_bytes: int) -> Error:
        """A read met the end of the file before it had all that it asked for."""
        return cls(
            code="end_of_file",
            operation="read",
            file=file,
            offset_bytes=offset_bytes,
            length_bytes=asked_bytes,
            cause=f"the file ended {asked_bytes - came_bytes} bytes early: it was cut short after it was opened",
            advice="read it again when no program changes it",
        )

    def _line(self) -> str:
        text = f"{self.operation} {self.file}".strip() or "operation"
        if self.length_bytes:
            text += f" at offset {self.offset_bytes} length {self.length_bytes}"
        text += f": {self.cause}"
        return f"{text}; {self.advice}" if self.advice else text
