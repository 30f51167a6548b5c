"""The Python API: buffers, transfers, errors, interrupts."""

from __future__ import annotations

import array
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import penstock


def test_round_trip(context: penstock.Context, tmp_path: Path) -> None:
    data = os.urandom(1_000_001)
    with context.create(tmp_path / "file", len(data)) as file:
        assert file.write(data).bytes == len(data)
    with context.open(tmp_path / "file") as file:
        buffer = context.allocate(file.size_bytes)
        outcome = file.read(buffer)
    assert bytes(memoryview(buffer)) == data
    assert outcome.bytes == len(data)
    assert outcome.bytes_per_second > 0
    assert sum(share["bytes"] for share in outcome.evidence["paths"]) == len(data)


def test_reads_into_slices_and_arrays(context: penstock.Context, sample: Path) -> None:
    data = sample.read_bytes()
    with context.open(sample) as file:
        buffer = context.allocate(8192)
        file.read(buffer.slice(4096, 4096), 100)
        assert bytes(memoryview(buffer))[4096:] == data[100:4196]
        numbers = array.array("Q", bytes(800))
        file.read(numbers, 8)
        assert numbers.tobytes() == data[8:808]


def test_a_small_request_that_is_waited_for_takes_no_worker(context: penstock.Context, tmp_path: Path) -> None:
    block = context.allocate(4096)
    with context.create(tmp_path / "file", 8192) as file:
        assert "on the calling thread" in file.write(block, 4096).evidence["plan"]
        file.write(block, 0)
    with context.open(tmp_path / "file") as file:
        assert "on the calling thread" in file.read(block, 4096).evidence["plan"]
        assert "on the calling thread" not in file.start_read(block, 4096).result().evidence["plan"]


def test_slices_stay_inside(context: penstock.Context) -> None:
    with pytest.raises(penstock.Error):
        context.allocate(100).slice(50, 51)


def test_many_ranges_in_one_submission(context: penstock.Context, sample: Path) -> None:
    data = sample.read_bytes()
    with context.open(sample) as file:
        buffer = context.allocate(30_000)
        ranges = [(file, offset * 7, buffer.slice(offset, 3000)) for offset in range(0, 30_000, 3000)]
        outcome = context.start_read(ranges).result()
    assert outcome.bytes == 30_000
    for offset in range(0, 30_000, 3000):
        assert bytes(memoryview(buffer))[offset : offset + 3000] == data[offset * 7 : offset * 7 + 3000]


def test_transfers_show_progress_and_plan(context: penstock.Context, sample: Path) -> None:
    seen: list[tuple[int, int]] = []
    with context.open(sample) as file:
        transfer = file.start_read(context.allocate(file.size_bytes))
        assert transfer.wait(30, lambda done, total: seen.append((done, total)))
        assert transfer.done
        assert transfer.result().bytes == 5_000_003
    assert seen[-1] == (5_000_003, 5_000_003)
    assert transfer.plan.steps
    assert str(transfer.plan) == transfer.plan.text


def test_timeout_leaves_the_transfer_running(sample: Path) -> None:
    slow = penstock.Context("host", host_bandwidth_bytes_per_s=20e6)
    with slow.open(sample) as file:
        transfer = file.start_read(slow.allocate(file.size_bytes))
        assert not transfer.wait(0.01)
        assert transfer.result().bytes == 5_000_003


def test_progress_that_raises_ends_the_wait_in_time(sample: Path) -> None:
    """And a slow one does not stretch the time limit by more than itself."""
    slow = penstock.Context("host", host_bandwidth_bytes_per_s=2e6, budget_bytes=4 << 20)
    with slow.open(sample) as file:
        transfer = file.start_read(slow.allocate(file.size_bytes))
        with pytest.raises(ZeroDivisionError):
            transfer.wait(30, lambda done, total: 1 // 0)
        began = time.monotonic()
        assert not transfer.wait(0.5, lambda done, total: time.sleep(0.1))
        assert time.monotonic() - began < 0.85
        transfer.cancel()
        transfer.wait()


def test_cancel(sample: Path) -> None:
    slow = penstock.Context("host", host_bandwidth_bytes_per_s=1e6, budget_bytes=4 << 20)
    with slow.open(sample) as file:
        transfer = file.start_read(slow.allocate(file.size_bytes))
        transfer.cancel()
        with pytest.raises(penstock.Error) as caught:
            transfer.result()
    assert caught.value.code == "cancelled"


def test_errors_say_what_and_where(context: penstock.Context, tmp_path: Path) -> None:
    with pytest.raises(penstock.Error) as caught:
        context.open(tmp_path / "absent")
    error = caught.value
    assert (error.code, error.operation, error.file) == ("not_found", "open", str(tmp_path / "absent"))
    assert error.system_code == 2
    assert error.cause
    assert str(error).count("\n") == 0


def test_reads_stop_at_the_end(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file:
        outcome = file.read(context.allocate(4096), 5_000_000)
    assert outcome.bytes == 3
    assert outcome.reached_end


class _LikeCuPy:
    """Memory of a device, described anew each time: for CuPy that takes as long as a small read of the system."""

    def __init__(self, buffer: penstock.Buffer) -> None:
        self._buffer, self.asked = buffer, 0

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        self.asked += 1
        told = {"shape": (self._buffer.bytes,), "typestr": "|u1", "strides": None, "version": 3, "stream": None}
        return {**told, "data": (self._buffer.address, False)}

    def __dlpack__(self, **options: object) -> object:
        raise AssertionError("an array that names its stream is not asked to order its work")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_an_array_is_asked_once_where_its_memory_is(context: penstock.Context, sample: Path) -> None:
    array = _LikeCuPy(context.allocate(4096))
    with context.open(sample) as file:
        file.read(array, 100)
    assert array.asked == 1
    assert bytes(memoryview(array._buffer)) == sample.read_bytes()[100:4196]


def test_a_new_file_is_abandoned_when_an_error_passes(context: penstock.Context, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), context.create(tmp_path / "new", 4096) as file:
        file.write(bytes(4096))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_load_and_save(sample: Path, tmp_path: Path) -> None:
    buffer = penstock.load(sample, device="host")
    assert bytes(memoryview(buffer)) == sample.read_bytes()
    assert penstock.save(tmp_path / "copy", buffer, device="host").bytes == buffer.bytes
    assert (tmp_path / "copy").read_bytes() == sample.read_bytes()


def test_buffers_are_arrays_without_a_copy(sample: Path) -> None:
    numpy = pytest.importorskip("numpy")
    buffer = penstock.load(sample, device="host")
    shared = numpy.asarray(buffer)
    assert shared.nbytes == buffer.bytes
    assert shared.__array_interface__["data"][0] == buffer.address
    assert numpy.from_dlpack(buffer).__array_interface__["data"][0] == buffer.address
    with pytest.raises(AttributeError):
        _ = buffer.__cuda_array_interface__


def test_stamps_tell_wrong_bytes(context: penstock.Context) -> None:
    buffer = context.allocate(65536)
    context.stamp(buffer, 4096, seed=5)
    assert context.verify_stamp(buffer, 4096, seed=5) == (0, 0)
    view = memoryview(buffer)
    view[1000] ^= 1
    bad, first = context.verify_stamp(buffer, 4096, seed=5)
    assert bad > 0
    assert first == 4096 + 1000
    assert context.verify_stamp(buffer, 4104, seed=5)[0] > 0


@pytest.mark.parametrize(("offset", "length"), [(0, 64), (3, 64), (5, 2), (8, 7), (4093, 4099), ((1 << 63) - 65, 64)])
def test_a_stamp_is_the_pattern_at_any_offset(context: penstock.Context, offset: int, length: int) -> None:
    buffer = context.allocate(length)
    context.stamp(buffer, offset, seed=5)
    assert bytes(memoryview(buffer)) == bytes(stamp_byte(5, offset + i) for i in range(length))
    assert context.verify_stamp(buffer, offset, seed=5) == (0, 0)


def stamp_byte(seed: int, offset: int) -> int:
    """As include/penstock/stamp.hpp defines it."""
    mask = (1 << 64) - 1
    word = (seed + 0x9E3779B97F4A7C15 * (offset // 8 + 1)) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return (word ^ (word >> 31)).to_bytes(8, "little")[offset % 8]


def test_names_are_loaded_when_they_are_named() -> None:
    for name in penstock.__all__:
        assert name in dir(penstock)
        assert getattr(penstock, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'bytes_of_wine'"):
        _ = penstock.bytes_of_wine  # type: ignore[attr-defined]
    script = "import sys, penstock; print(*(m for m in sys.modules if m.startswith(('penstock', 'numpy'))))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["penstock"]


def test_bytes_are_parsed_as_the_command_does() -> None:
    assert penstock.parse_bytes("64KiB") == 65536
    assert penstock.parse_bytes("1.5GB") == 1_500_000_000
    assert penstock.parse_bytes("9223372036854775807") == (1 << 63) - 1
    for text in ("-1", "", "1.5", "0.3KiB", "inf", "nan", "1e", "many", "16 PB", "0x10", "1e-400"):
        with pytest.raises(penstock.Error, match="is not a number of bytes"):
            penstock.parse_bytes(text)
    for text in ("9223372036854775808", "18446744073709551616", "1e19", "16777216 TiB", "1e400", "9" * 400 + "GB"):
        with pytest.raises(penstock.Error, match="is too large; use at most 2.63-1 bytes"):
            penstock.parse_bytes(text)
    with pytest.raises(TypeError, match="^text must be a str, not int$"):
        penstock.parse_bytes(4096)  # type: ignore[arg-type]


def test_any_exception_of_a_signal_handler_ends_the_transfer(sample: Path) -> None:
    """A handler may raise what is no KeyboardInterrupt; nothing may go on writing to the memory then either."""

    class Stop(BaseException):
        pass

    def stop(_number: int, _frame: object) -> None:
        raise Stop

    slow = penstock.Context("host", host_bandwidth_bytes_per_s=2e6, budget_bytes=4 << 20)
    memory = slow.allocate(5_000_003)
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with slow.open(sample) as file:
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
            with pytest.raises(Stop):
                file.read(memory)
    finally:
        signal.signal(signal.SIGUSR1, before)
    held = bytes(memoryview(memory))
    time.sleep(0.2)
    assert bytes(memoryview(memory)) == held


def test_an_interrupt_ends_a_wait_and_nothing_is_left(sample: Path) -> None:
    """Ctrl-C while a slow read is under way: raised promptly, and nothing runs on."""
    slow = penstock.Context("host", host_bandwidth_bytes_per_s=2e6, budget_bytes=4 << 20)
    memory = slow.allocate(5_000_003)
    with slow.open(sample) as file:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            file.read(memory)
    assert time.monotonic() - began < 2.3
    held = bytes(memoryview(memory))
    time.sleep(0.2)
    assert bytes(memoryview(memory)) == held
