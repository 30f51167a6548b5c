#!/usr/bin/env python3
"""Runs test programs whose processes are stopped at random: finds what depends on when things happen.

A busy machine stops a program now and then for a tenth of a second, and its threads go on in another order. A test must
pass all the same, and code that does not is wrong. What fails keeps its log; the exit status is 1 when anything failed.

    tools/stalls.py build/fuzz/tests/ondevice/ondevice_cache_test --runs 20
    tools/stalls.py 'python3 -m pytest -q python/tests/api/test_boxes.py' --every 0.3 2 --stop 0.05 0.5
"""

import argparse
import contextlib
import os
import random
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def signalled(process: subprocess.Popen, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def run_stopped(command: str, log: Path, options: argparse.Namespace) -> int | None:
    """The exit status of one run, None where it took longer than it may; `log` gets what it printed."""
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while process.poll() is None and time.monotonic() - began < options.limit:
            try:
                process.wait(random.uniform(*options.every))
            except subprocess.TimeoutExpired:
                signalled(process, signal.SIGSTOP)
                time.sleep(random.uniform(*options.stop))
                signalled(process, signal.SIGCONT)
        return process.returncode
    finally:
        signalled(process, signal.SIGKILL)
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="+", help="programs with their arguments, each one word of the shell")
    parser.add_argument("--runs", type=int, default=5, help="of each (default: 5)")
    parser.add_argument("--every", type=float, nargs=2, default=(0.005, 0.15), help="seconds between stops, from to")
    parser.add_argument("--stop", type=float, nargs=2, default=(0.005, 0.2), help="seconds of a stop, from to")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run may take (default: 600)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="stalls-"))
    failed = 0
    for number, command in enumerate(options.commands):
        for turn in range(options.runs):
            log = folder / f"{number}-{turn}.log"
            try:
                status = run_stopped(command, log, options)
            except OSError as error:
                parser.error(f"{command}: {error}")
            if status == 0:
                log.unlink()
                continue
            failed += 1
            print(f"{command}: {'too long' if status is None else f'exit status {status}'}, see {log}", flush=True)
    print(f"{len(options.commands) * options.runs - failed} passed, {failed} failed")
    if failed == 0:
        folder.rmdir()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
