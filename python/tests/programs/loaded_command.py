"""A process that has loaded the command, and forks for each run of it: half a second of imports is paid once.

A run has the arguments, the environment, the folder and the streams that it is sent, and ends as an interpreter does.
The process that forks has modules of Penstock, and no context, thread or file of it.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

RUN = "from penstock.cli import main; sys.exit(main())"
HERE = str(Path(__file__).parent)
START = (
    f"import sys; sys.path.insert(1, {HERE!r}); import loaded_command; loaded_command.serve(int(sys.argv[1])); {RUN}"
)
LONGEST = 1 << 17  # of a request, which is one message of the socket
OF_A_RUN = ("PENSTOCK_", "PYTEST_CURRENT_TEST", "COLUMNS")  # what no module reads while it loads


class LoadedCommand:
    """The process as its user sees it. One run at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(
        self, arguments: list[str], environment: Mapping[str, str], folder: Path, limit_s: float
    ) -> tuple[int, str, str] | None:
        """The exit code, below zero for a signal, and both streams. None where this process is not what is asked for:
        it runs another command, or was started under another environment."""
        request = json.dumps([arguments, dict(environment), str(folder)]).encode()
        if len(request) > LONGEST or not self._lock.acquire(blocking=False):
            return None
        try:
            if self._process is None:
                self._start()
            if _fixed(environment) != self._environment:
                return None
            return self._ask(request, limit_s)
        finally:
            self._lock.release()

    def _start(self) -> None:
        self._environment = _fixed(os.environ)
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            command = [sys.executable, "-c", START, str(other.fileno())]
            pipe = subprocess.PIPE  # Python asks of which kind its streams are, and runs have pipes
            self._process = subprocess.Popen(command, pass_fds=[other.fileno()], stdout=pipe, stderr=pipe)

    def _ask(self, request: bytes, limit_s: float) -> tuple[int, str, str]:
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        try:
            try:
                socket.send_fds(self._socket, [request], [its_out, its_err])
            finally:
                os.close(its_out)
                os.close(its_err)
            number = int(self._socket.recv(LONGEST))
            try:
                texts = _read_all([out, err], time.monotonic() + limit_s)
            except TimeoutError:
                os.kill(number, signal.SIGKILL)
                raise subprocess.TimeoutExpired("penstock", limit_s) from None
            finally:
                code = int(self._socket.recv(LONGEST))
        finally:
            os.close(out)
            os.close(err)
        return code, texts[0], texts[1]


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(OF_A_RUN)}


def _read_all(streams: list[int], end: float) -> list[str]:
    found = {stream: bytearray() for stream in streams}
    left = list(streams)
    while left:
        ready = select.select(left, [], [], max(0.0, end - time.monotonic()))[0]
        if not ready:
            raise TimeoutError
        for stream in ready:
            some = os.read(stream, 1 << 16)
            found[stream] += some
            if not some:
                left.remove(stream)
    return [io.TextIOWrapper(io.BytesIO(found[stream])).read() for stream in streams]


def serve(number: int) -> None:
    """Returns in each run, as if Python had been started for it. Ends with the process that asks."""
    sys.path.remove(HERE)
    _load()
    with socket.socket(fileno=number) as asked:
        while True:
            request, streams, _, _ = socket.recv_fds(asked, LONGEST, 2)
            if not request:
                os._exit(0)
            run = os.fork()
            if run == 0:
                break
            for stream in streams:
                os.close(stream)
            asked.send(str(run).encode())
            asked.send(str(os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])).encode())
    arguments, environment, folder = json.loads(request)
    for stream, place in zip(streams, (1, 2), strict=True):
        os.dup2(stream, place)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]


def _load() -> None:
    import penstock
    from penstock.cli.app import main_command

    assert penstock.Context is not None, "the compiled module is loaded by its first use"
    with contextlib.suppress(Exception):  # a wrong command line: all is loaded that reads one, and nothing is done
        main_command()(args=["read"], prog_name="penstock", standalone_mode=False)
    gc.freeze()
