"""The one exception of Penstock, which is also Python's own for a missing file, a refused permission and the like.

Its text is one line: operation, file, range, cause, advice. The attributes say the same for programs. What must stay
true: whoever makes an Error, here or in the core, gets the class that its code and the system's number ask for.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # as of typing: the command must be able to answer a Ctrl-C before the rest is loaded
if TYPE_CHECKING:
    from typing import ClassVar

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

    Where the system said why, it is one of Python's own errors too, with `errno`, `strerror` and `filename`:
    FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, and TimeoutError of what timed out.

    Attributes:
        code: a word; docs/python.md lists them: "not_found", "no_space", "fallback_refused", "cancelled", ...
        operation: what was being done, e.g. "open" or "read".
        file: path as the user gave it; empty when no file is concerned.
        offset_bytes, length_bytes: the range; length 0 when no range is concerned.
        cause: why it failed.
        advice: what to do next; may be empty.
        system_code: errno, CUDA or cuFile code; 0 when there is none.
    """

    _classes: ClassVar[dict[str, dict[int, type[Error]]]] = {}  # below
    _timed_out: ClassVar[int] = errno.ETIMEDOUT

    def __new__(cls, *_: object, code: str = "", system_code: int = 0, **__: object) -> Error:
        # By way of the class: at the interpreter's end, when unclosed arrays are flushed, names of modules are gone.
        kind = cls._classes.get(code, {}).get(system_code, cls) if "_classes" in vars(cls) else cls
        return OSError.__new__(kind) if issubclass(kind, OSError) else super().__new__(kind)

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
        self.args = (message or self._line(),)
        if isinstance(self, OSError):
            self.errno = system_code or self._timed_out  # of a time limit of ours, without the system's number
            self.strerror = self.cause
            self.filename = file or None

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        fields = {name: getattr(self, name) for name in _FIELDS}
        return _again, (type(self), self.args[0], fields), self.__dict__

    @classmethod
    def of(cls, error: OSError, operation: str, file: str, advice: str) -> Error:
        """What the system refused, with what was being done and what to do next. An Error stays as it is."""
        if isinstance(error, Error):
            return error
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


class NotFoundError(Error, FileNotFoundError):
    """There is no such file."""


class DeniedError(Error, PermissionError):
    """The system does not permit it."""


class ExistsError(Error, FileExistsError):
    """There is such a file already."""


class FolderError(Error, IsADirectoryError):
    """The name is that of a folder."""


class TimedOutError(Error, TimeoutError):
    """It took longer than it was to."""


# The class by the system's number. Numbers of CUDA and cuFile stand in the same place: their codes are none of these.
Error._classes |= {
    "not_found": {errno.ENOENT: NotFoundError, errno.ENOTDIR: NotFoundError},
    "permission_denied": {errno.EACCES: DeniedError, errno.EPERM: DeniedError},
    "not_a_regular_file": {errno.EISDIR: FolderError},
    "io_error": {errno.EEXIST: ExistsError},
    "timed_out": {0: TimedOutError, errno.ETIMEDOUT: TimedOutError, errno.ETIME: TimedOutError},
}
_FIELDS = ("code", "operation", "file", "offset_bytes", "length_bytes", "cause", "advice", "system_code")


def _again(kind: type[Error], message: str, fields: dict[str, object]) -> Error:
    """Makes an error again from a pickle."""
    return kind(message, **fields)  # type: ignore[arg-type]
