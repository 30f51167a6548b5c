"""The command `penstock`: signals, and every failure turned into one line on stderr. `app` knows the subcommands.

Exit codes: 0 all was done as asked; 1 it was not; 2 the command line is wrong; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as of typing, which is not loaded before main() listens
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

try:
    import _thread
    import contextlib
    import errno
    import io
    import os
    import select
    import signal
    import sys
    import time

    from penstock._error import Error
    from penstock._extras import absent
    from penstock._text import one_line
except KeyboardInterrupt:  # main() does not listen yet
    raise SystemExit(130) from None

SIGNALS = {
    signal.SIGINT: ("interrupted", 130),
    signal.SIGTERM: ("terminated", 143),
    signal.SIGHUP: ("interrupted: the terminal is gone", 130),
}

LOOK_S = 0.5  # between two looks whether a signal waits for a main thread that does not return from the kernel
PATIENCE_S = 5.0  # for a system call that is under way, and for the cleaning up, before a signal ends all
HURRY_S = 3.0  # for a call that is under way, where the signal came twice: 1 s was too little on a host with a GPU
LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)  # without a file's name: of stdout


class Stopped(BaseException):
    """A signal that ends the command, cleaning up. No KeyboardInterrupt, which typer would answer without a word.

    It may be raised where exceptions get lost: in a callback of the import system, in a finaliser, in code that asks
    whether an object has an attribute. One that goes before it arrived at main() is raised again.
    """

    arrived = False

    def __init__(self, number: int, lost: Callable[[int], None]) -> None:
        word, self.code = SIGNALS[signal.Signals(number)]
        super().__init__(word)
        self._number, self._lost = number, lost

    def __del__(self) -> None:
        if not self.arrived:
            self._lost(self._number)


class _Signals:
    """What came, and whether the command notices. The main thread heeds signals between two steps of Python only; a
    thread of its own sees them at once, and leaves when a system call does not return."""

    def __init__(self) -> None:
        self.number = 0  # the first that came, once it was noticed
        self.done = False  # nothing is left to interrupt
        self._again = False  # the exception got lost

    def listen(self) -> None:
        _listen(self._stop)
        sys.unraisablehook = self._unraisable
        coming, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        with contextlib.suppress(RuntimeError):  # no more threads: the command then waits for its system calls
            _thread.start_new_thread(self._watch, (coming,))

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if not self.done and (self.number == 0 or self._again):
            self.number, self._again = self.number or number, False
            raise Stopped(self.number, self._lost)

    def _lost(self, number: int) -> None:
        if not self.done:
            self._again = True
            _thread.interrupt_main(number)

    def _unraisable(self, what: sys.UnraisableHookArgs) -> None:
        if what.exc_type is not Stopped:
            sys.__unraisablehook__(what)

    def _watch(self, coming: int) -> None:
        """Cleaning up is not to be cut short by an impatient second Ctrl-C; nor is it waited for for ever."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # sigpending() then tells what no handler has taken
        began, last, waiting, unheard_s = None, 0, set[int](), PATIENCE_S
        while True:
            if not select.select([coming], [], [], LOOK_S)[0]:
                waiting = _take_over(waiting)
                if began is not None and not self.number and time.monotonic() - began > unheard_s:
                    _leave(last, None)
                continue
            number = os.read(coming, 1)[0]
            if number not in SIGNALS:
                continue
            if began is not None:
                unheard_s = HURRY_S
                if time.monotonic() - began > (PATIENCE_S if self.number else unheard_s):
                    _leave(number, None)
            began, last = began or time.monotonic(), number


def _take_over(waiting: set[int]) -> set[int]:
    """The kernel hands a signal to the main thread, and where that does not return from a system call it is never
    taken. What waited at the last look already comes as if it had been taken. Returns what waits now."""
    now = {int(number) for number in signal.sigpending() if number in SIGNALS}
    for number in now & waiting:
        taken = signal.sigtimedwait({number}, 0)
        if taken is not None:
            _thread.interrupt_main(taken.si_signo)
    return now - waiting


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    signals = _Signals()
    try:
        _listen(_leave)
        _open_streams(prints=given[:1] != ["run"])
        from penstock.cli.app import main_command

        signals.listen()
        code = main_command()(args=given or ["--help"], prog_name="penstock", standalone_mode=False)
        sys.stdout.flush()
        signals.done = True
        if signals.number:
            raise Stopped(signals.number, signals._lost)
    except BaseException as failure:
        signals.done = True
        if signals.number and not isinstance(failure, Stopped):  # an error that the signal has led to
            return _explain(Stopped(signals.number, signals._lost), given)
        return _explain(failure, given)
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


def _open_streams(prints: bool) -> None:
    """Names and signs that the terminal's encoding lacks are spelled out. A stream closed by the caller is refused, but
    not for a program that is run: what it finds closed is between it and the caller."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None and prints:
        raise Error(
            operation="write the results to stdout", cause="it is closed", advice="send it to a file, or to /dev/null"
        )


def _discard_stdout() -> None:
    """Nothing more can be flushed there; Python would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(failure: BaseException, given: list[str]) -> int:
    if isinstance(failure, SystemExit):
        return failure.code if isinstance(failure.code, int) else 1
    if isinstance(failure, BrokenPipeError):
        _discard_stdout()
        return 1
    text, code = _line(failure, given)
    if isinstance(failure, Stopped):
        failure.arrived = True
        _listen(signal.SIG_IGN)  # all is done; the interpreter's own end would let a signal win over the exit code
    if sys.stderr is not None:
        sys.stderr.write("penstock: " + one_line(text) + "\n")
    return code


def _line(failure: BaseException, given: list[str]) -> tuple[str, int]:
    """What to say of a failure, and the exit code."""
    command = next((word for word in given if not word.startswith("-")), "run")
    if isinstance(failure, Stopped):
        found = (str(failure), failure.code)
    elif isinstance(failure, KeyboardInterrupt) or type(failure).__name__ == "Abort":  # typer's, of an interrupt
        found = ("interrupted", 130)
    elif isinstance(failure, Error):
        found = (str(failure), getattr(failure, "exit_code", 1))
    elif hasattr(failure, "format_message"):  # a wrong command line, found by typer
        found = (_usage_line(failure, given), getattr(failure, "exit_code", 2))
    elif isinstance(failure, OSError):
        found = (_system_line(failure, command), 1)
    elif isinstance(failure, ImportError) and (failure.name or "").startswith("penstock."):  # it says what to do
        found = (str(failure), 1)
    elif missing := absent(failure, command):
        found = (str(missing), 1)
    elif isinstance(failure, MemoryError) or "can't start new thread" in str(failure):
        advice = "ask for less, or raise the limits (ulimit -v, ulimit -u)"
        found = (f"out of memory: {failure or 'none left'}; {advice}", 1)
    else:
        found = (f"internal error, please report it: {type(failure).__name__}: {failure}", 1)
    return found


def _usage_line(failure: Any, given: list[str]) -> str:
    """What typer found wrong, and whose help tells what is right. An option without its value is found before typer
    says of which command: the words tell it then."""
    command = getattr(getattr(failure, "ctx", None), "command_path", None) or _command_of(given)
    found = " ".join(failure.format_message().split())
    return f"{found}{'' if found.endswith(('.', '?', '!')) else '.'} See {command} --help."


def _command_of(given: list[str]) -> str:
    """The command that the words name, as its help is asked for."""
    from penstock.cli.app import main_command

    command: Any = main_command()
    path = ["penstock"]
    for word in given:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path.append(word)
    return " ".join(path)


def _system_line(failure: OSError, command: str) -> str:
    """A refusal of the system that no part of Penstock foresaw: file, cause, and what to look at."""
    if failure.filename is None and failure.errno in LOST:
        _discard_stdout()
        return f"write the results to stdout: {failure.strerror}; they are lost: free space, or send them elsewhere"
    where = os.fsdecode(failure.filename) if isinstance(failure.filename, (str, bytes)) else ""
    return str(Error.of(failure, command, where, "check permissions, free space and limits (df, ulimit -a)"))
