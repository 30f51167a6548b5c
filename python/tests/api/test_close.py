"""The end of a file in Python: what close() waits for, what it raises, and that nothing stays open."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

import penstock


@pytest.fixture
def slow() -> penstock.Context:
    return penstock.Context("host", host_bandwidth_bytes_per_s=4e6, budget_bytes=4 << 20)


def descriptors(path: Path) -> int:
    """How many this process has of the file, under whatever name."""
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            count += path.name in str(entry.readlink())
        except OSError:
            continue
    return count


def stay_open(path: Path) -> int:
    """After what the threads of the last transfer may still need to let go."""
    limit = time.monotonic() + 5
    while descriptors(path) and time.monotonic() < limit:
        time.sleep(0.002)
    return descriptors(path)


def test_close_waits_for_what_is_under_way_and_lets_go(slow: penstock.Context, sample: Path) -> None:
    file = slow.open(sample)
    transfer = file.start_read(slow.allocate(1_000_000))
    several = slow.start_read([(file, 0, slow.allocate(1000)), (file, 5000, slow.allocate(1000))])
    assert not transfer.done
    assert descriptors(sample)
    file.close()
    assert transfer.done
    assert several.done
    assert stay_open(sample) == 0, "although file and transfers are still held"
    assert transfer.result().bytes == 1_000_000


def test_a_late_error_is_raised_once_and_nothing_stays_open(slow: penstock.Context, sample: Path) -> None:
    file = slow.open(sample, write=True)
    transfer = file.start_write(slow.allocate(4_000_000), timeout_s=0.05)
    with pytest.raises(penstock.Error) as caught:
        file.close()
    assert caught.value.code == "timed_out"
    assert caught.value.file == str(sample)
    assert stay_open(sample) == 0, "although file, transfer and error are still held"
    file.close()
    with pytest.raises(ValueError, match="closed"):
        _ = file.size_bytes
    assert transfer.done


def test_an_interrupt_ends_the_wait_of_a_close(slow: penstock.Context, tmp_path: Path) -> None:
    """The file is still open then, and may be closed again."""
    file = slow.create(tmp_path / "new")
    transfer = file.start_write(slow.allocate(8_000_000))
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        file.close()
    assert time.monotonic() - began < 1
    assert not transfer.done
    assert file.facts["name"] == str(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    file.close()
    assert transfer.done
    assert (tmp_path / "new").stat().st_size == 8_000_000


def test_an_abandoned_file_is_let_go_when_its_transfers_are_done(slow: penstock.Context, tmp_path: Path) -> None:
    file = slow.create(tmp_path / "new")
    transfer = file.start_write(slow.allocate(1_000_000))
    file.abandon()
    assert not transfer.done
    transfer.wait()
    assert stay_open(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_many_transfers_of_one_file_are_forgotten_when_they_are_done(sample: Path) -> None:
    """Not kept until the file closes: each knows its plan and outcome."""
    with penstock.Context("host") as context, context.open(sample) as file:
        memory = context.allocate(64)
        for turn in range(1000):
            file.read(memory, turn)
        before = resident_pages()
        for turn in range(20_000):
            file.read(memory, turn)
        assert resident_pages() - before < 2000, "8 MB; all of them would be 40 MB"


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])
