"""The command `penstock`: signals, and every failure turned into one line on stderr. `app` knows the subcommands.

Exit codes: 0 all was done as asked; 1 it was not; 2 the command line is wrong; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as of typing, which is not loaded before main() listens
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

try:
    import contextlib
    import errno
    import io
    import os
    import signal
    import sys
    import time

    from penstock._error import Error
except KeyboardInterrupt:  # main() does not listen yet
    raise SystemExit(130) from None

SIGNALS = {
    signal.SIGINT: ("interrupted", 130),
    signal.SIGTERM: ("terminated", 143),
    signal.SIGHUP: ("interrupted: the terminal is gone", 130),
}

PATIENCE_S = 5.0  # for which further signals do not disturb the cleaning up after the first
LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)  # without a file's name: of stdout


class Stopped(BaseException):
    """A signal that ends the command, cleaning up. No KeyboardInterrupt, which typer would answer without a word."""

    def __init__(self, word: str, code: int) -> None:
        super().__init__(word)
        self.code = code


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        _listen(_leave)
        _open_streams()
        from penstock.cli.app import app

        _listen(_stop)
        code = app(args=given or ["--help"], prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as failure:
        return _explain(failure)
    return code if isinstance(code, int) else 0


def _listen(answer: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Signals end the command, except those it was started to ignore, as under nohup."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, answer)


def _leave(number: int, _frame: FrameType | None) -> None:
    """While modules are loading there is nothing to clean up, and an exception may get lost in the middle of them."""
    word, code = SIGNALS[signal.Signals(number)]
    with contextlib.suppress(OSError):
        os.write(2, f"penstock: {word}\n".encode())
    os._exit(code)


def _stop(number: int, _frame: FrameType | None) -> None:
    began = time.monotonic()

    def insist(again: int, frame: FrameType | None) -> None:
        """Cleaning up is not to be cut short by an impatient second Ctrl-C; nor is it waited for for ever."""
        if time.monotonic() - began > PATIENCE_S:
            _leave(again, frame)

    _listen(insist)
    raise Stopped(*SIGNALS[signal.Signals(number)])


def _open_streams() -> None:
    """Names and signs that the terminal's encoding lacks are spelled out. A stream closed by the caller is refused."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        raise Error(
            operation="write the results to stdout", cause="it is closed", advice="send it to a file, or to /dev/null"
        )


def _discard_stdout() -> None:
    """Nothing more can be flushed there; Python would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(failure: BaseException) -> int:
    if isinstance(failure, SystemExit):
        return failure.code if isinstance(failure.code, int) else 1
    if isinstance(failure, BrokenPipeError):
        _discard_stdout()
        return 1
    text, code = _line(failure)
    if isinstance(failure, Stopped):
        _listen(signal.SIG_IGN)  # all is done; the interpreter's own end would let a signal win over the exit code
    if sys.stderr is not None:
        sys.stderr.write("penstock: " + one_line(text) + "\n")
    return code


def one_line(text: str) -> str:
    """The text with line ends and control characters spelled out, which a file's name may hold."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _line(failure: BaseException) -> tuple[str, int]:
    """What to say of a failure, and the exit code."""
    if isinstance(failure, Stopped):
        found = (str(failure), failure.code)
    elif isinstance(failure, KeyboardInterrupt) or type(failure).__name__ == "Abort":  # typer's, of an interrupt
        found = ("interrupted", 130)
    elif isinstance(failure, Error):
        found = (str(failure), 1)
    elif hasattr(failure, "format_message"):  # a wrong command line, found by typer
        found = (" ".join(f"{failure.format_message()} See penstock --help.".split()), getattr(failure, "exit_code", 2))
    elif isinstance(failure, OSError):
        found = (_system_line(failure), 1)
    elif isinstance(failure, MemoryError) or "can't start new thread" in str(failure):
        advice = "ask for less, or raise the limits (ulimit -v, ulimit -u)"
        found = (f"out of memory: {failure or 'none left'}; {advice}", 1)
    else:
        found = (f"internal error, please report it: {type(failure).__name__}: {failure}", 1)
    return found


def _system_line(failure: OSError) -> str:
    """A refusal of the system that no part of Penstock foresaw: file, cause, and what to look at."""
    if failure.filename is None and failure.errno in LOST:
        _discard_stdout()
        return f"write the results to stdout: {failure.strerror}; they are lost: free space, or send them elsewhere"
    where = os.fsdecode(failure.filename) if failure.filename else "operating system"
    return f"{where}: {failure.strerror or failure}; check permissions, free space and limits (df, ulimit -a)"
