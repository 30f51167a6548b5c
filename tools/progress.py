#!/usr/bin/env python3
"""Runs a build and shows that it lives: how far it is, on one line of a terminal, or a line a minute elsewhere.

All that the build says goes to a file. When it fails, its last lines and the name of that file follow. What must stay
true: the exit code is the build's own, and no output of it is lost.

    tools/progress.py build/package.log .venv/bin/python -m pip install -v .
"""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

STEP = re.compile(r"^\s*\[(\d+)/(\d+)\]")  # of Ninja
LAST_LINES = 40  # told of a build that failed
EARLY = 0.05  # of all steps: so few say too little of how long the rest takes


class Progress:
    """What is told while a build runs."""

    def __init__(self, stream: TextIO, terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._terminal = terminal
        self._clock = clock
        self._began = self._told = clock()
        self._every = 1.0 if terminal else 60.0  # seconds
        self._done = self._steps = 0

    def heard(self, line: str) -> None:
        """Takes in a line of the build."""
        found = STEP.match(line)
        if found:
            self._done, self._steps = int(found[1]), int(found[2])

    def tick(self) -> None:
        """Tells how far it is, when it is time for that."""
        now = self._clock()
        if now - self._told < self._every:
            return
        self._told = now
        start, end = ("\r\033[K", "") if self._terminal else ("", "\n")
        self._stream.write(f"{start}{self.text(now - self._began)}{end}")
        self._stream.flush()

    def text(self, seconds: float) -> str:
        if not self._steps:
            return f"preparing the build, {_time(seconds)}"
        text = f"[{self._done}/{self._steps}] {_time(seconds)}"
        if self._done == self._steps:
            return f"{text}, installing"
        left = seconds * (self._steps - self._done) / self._done if self._done else 0.0
        early = self._done < EARLY * self._steps
        return text if early or not left else f"{text}, about {_time(left)} left"

    def end(self) -> None:
        if self._terminal:
            self._stream.write("\r\033[K")
            self._stream.flush()


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def run(log: Path, command: list[str], progress: Progress) -> int:
    """Runs the command to its end; returns its exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with log.open("w", errors="backslashreplace") as kept:
        build = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="backslashreplace",
        )  # fmt: skip
        threading.Thread(target=_forward, args=(build.stdout or (), lines), daemon=True).start()
        try:
            _follow(lines, kept, progress)
            return build.wait()
        except KeyboardInterrupt:  # the terminal told the build as well
            build.wait()
            return 130
        except SystemExit:  # nothing told the build
            build.terminate()
            build.wait()
            return 143
        finally:
            progress.end()


def _forward(source: Iterable[str], lines: "queue.SimpleQueue[str | None]") -> None:
    for line in source:
        lines.put(line)
    lines.put(None)


def _follow(lines: "queue.SimpleQueue[str | None]", kept: TextIO, progress: Progress) -> None:
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            progress.tick()
            continue
        if line is None:
            return
        kept.write(line)
        kept.flush()
        progress.heard(line)
        progress.tick()


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        sys.stderr.write("usage: progress.py LOG COMMAND...\n")
        return 2
    log, command = Path(arguments[0]), arguments[1:]
    progress = Progress(sys.stderr, sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code = run(log, command, progress)
    if code not in (0, 130, 143):
        last = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        sys.stderr.write("\n".join([*last, f"{command[0]} ended with exit code {code}; all that it said: {log}", ""]))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
