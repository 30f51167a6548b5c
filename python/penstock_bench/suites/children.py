"""Programs that a measurement starts, of which none outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

PATIENCE_S = 2.0  # for a program to end those that it started, before all are killed


@contextmanager
def signals_held() -> Iterator[None]:
    """A signal that comes meanwhile is heeded at the end. One that is heeded within Popen() raises out of it with the
    program started and its number lost, so that the caller could not end it."""
    if threading.current_thread() is not threading.main_thread():  # which alone heeds signals
        yield
        return
    came: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    heeded: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if callable(handler := signal.getsignal(number)):
                heeded[number] = handler
                signal.signal(number, hold)
        yield
    finally:
        for each, handler in heeded.items():
            signal.signal(each, handler)
        for each in came:
            signal.raise_signal(each)


def finished(
    command: list[str], limit_s: float, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What the command printed, as subprocess.run() has it. Raises OSError where it does not start, and
    TimeoutExpired. In each case it has ended, and so have those that it started: they are a session of their own."""
    running = None
    try:
        with signals_held():
            running = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        out, said = running.communicate(timeout=limit_s)
    finally:
        if running is not None:
            _end(running)
    return subprocess.CompletedProcess(command, running.returncode, out, said)


def _end(running: subprocess.Popen[str]) -> None:
    """mpirun and compilers end what they started when they are asked to; what is forked dies with the first."""
    if running.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        with suppress(subprocess.TimeoutExpired):
            running.wait(PATIENCE_S)
            return
