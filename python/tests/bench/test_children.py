"""Programs that a measurement starts end with it, also where a signal comes while one is being started."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from penstock_bench.suites.children import finished, signals_held

LASTS = [sys.executable, "-c", "import time; time.sleep(600)"]
HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Heeded(BaseException):
    """As the command's own exception of a signal."""


@pytest.fixture(autouse=True)
def heeds_signals() -> Iterator[None]:
    def heed(number: int, _frame: FrameType | None) -> None:
        raise Heeded(number)

    kept = {number: signal.signal(number, heed) for number in HEEDED}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def is_there(pid: int) -> bool:
    """Whether it runs: one that has ended may still wait for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("number", HEEDED)
def test_a_signal_while_a_program_is_started_leaves_none(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    real = subprocess.Popen

    def popen(*words: Any, **options: Any) -> subprocess.Popen[str]:
        running = real(*words, **options)
        started.append(running.pid)
        signal.raise_signal(number)
        return running

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(Heeded, match=str(int(number))):
        finished(LASTS, 60)
    assert len(started) == 1 and not is_there(started[0])


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    program = (
        f"import subprocess, sys, time; p = subprocess.Popen({LASTS!r}); open({str(told)!r}, 'w').write(str(p.pid)); "
    )
    with pytest.raises(subprocess.TimeoutExpired):
        finished([sys.executable, "-c", program + "time.sleep(600)"], 3)
    last = time.monotonic() + 20
    while is_there(int(told.read_text())) and time.monotonic() < last:
        time.sleep(0.01)
    assert not is_there(int(told.read_text()))


def test_signals_are_heeded_in_their_order_after_what_holds_them() -> None:
    done: list[int] = []
    with pytest.raises(Heeded), signals_held():
        signal.raise_signal(signal.SIGTERM)
        done.append(1)
    assert done == [1]
    with pytest.raises(Heeded):
        signal.raise_signal(signal.SIGTERM)


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals_held():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.raise_signal(signal.SIGHUP)


def test_what_a_program_prints_and_its_exit_code_are_told() -> None:
    done = finished([sys.executable, "-c", "import sys; print('out'); sys.exit('said')"], 60)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "said\n", 1)
    with pytest.raises(OSError, match="No such file"):
        finished(["/nonexistent/program"], 60)
