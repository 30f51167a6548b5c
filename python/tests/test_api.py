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


@pytest.fixture
def context() -> penstock.Context:
    return penstock.Context("host")


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


def test_slices_stay_inside(context: penstock.Context) -> None:
    with pytest.raises(penstock.Error):
        context.allocate(100).slice(50, 51)


def test_read_only_memory_is_refused(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file, pytest.raises(BufferError):
        file.read(b"constant")


def test_what_is_no_memory_is_refused(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file, pytest.raises(penstock.Error) as caught:
        file.read([1, 2, 3])
    assert caught.value.code == "invalid_argument"


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


def test_a_wait_is_never_of_negative_length(context: penstock.Context, sample: Path) -> None:
    def told(_done: int, _total: int) -> None:
        calls.append(None)

    calls: list[None] = []
    with context.open(sample) as file:
        transfer = file.start_read(context.allocate(file.size_bytes))
        assert transfer.wait(None, told)
        assert transfer.wait(0, told)
        assert len(calls) >= 2
        calls.clear()
        for timeout, text in ((-1, "-1.0"), (-0.5, "-0.5"), (float("nan"), "nan"), (float("-inf"), "-inf")):
            for progress in (None, told):
                with pytest.raises(ValueError, match=f"^timeout is {text}; it must be 0 seconds or more, or None"):
                    transfer.wait(timeout, progress)
        with pytest.raises(ValueError, match="^timeout_s is -1.0; "):
            file.read(bytearray(10), timeout_s=-1)
        assert file.read(bytearray(10), timeout_s=None).bytes == 10
        with pytest.raises(TypeError, match="^timeout must be a number or None, not str$"):
            transfer.wait("soon", told)  # type: ignore[arg-type]
        assert not calls


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


def test_offset_beyond_the_end(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file, pytest.raises(penstock.Error) as caught:
        file.read(context.allocate(4096), 6_000_000)
    assert caught.value.offset_bytes == 6_000_000


def test_advice_is_in_words_of_python(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file, pytest.raises(penstock.Error) as caught:
        file.write(bytes(10), 7)
    assert caught.value.advice == "open it with write=True"
    where = f"write {sample} at offset 7 length 10"
    assert str(caught.value) == f"{where}: the file was opened for reading; open it with write=True"


def test_reads_stop_at_the_end(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file:
        outcome = file.read(context.allocate(4096), 5_000_000)
    assert outcome.bytes == 3
    assert outcome.reached_end


def test_a_new_file_is_abandoned_when_an_error_passes(context: penstock.Context, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), context.create(tmp_path / "new", 4096) as file:
        file.write(bytes(4096))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_closed_things_say_so(context: penstock.Context, sample: Path) -> None:
    file = context.open(sample)
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(bytearray(1))


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


def test_unknown_transfer_option(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file, pytest.raises(TypeError, match="pace"):
        file.read(bytearray(10), pace=3)


def test_arguments_of_a_wrong_kind_are_named(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file:
        for option, wanted in (
            ({"workers": 1.5}, "a whole number, not float"),
            ({"path": 3}, "a str, not int"),
            ({"chunk_bytes": "4096"}, "a whole number, not str"),
            ({"strict": "yes"}, "True or False, not str"),
            ({"timeout_s": "soon"}, "a number or None, not str"),
        ):
            with pytest.raises(TypeError, match=f"^{next(iter(option))} must be {wanted}$"):
                file.read(bytearray(10), **option)
        with pytest.raises(TypeError, match="^offset_bytes must be a whole number, not NoneType$"):
            file.read(bytearray(10), None)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="^offset_bytes must be a whole number, not str$"):
            file.residency("0")  # type: ignore[arg-type]
        assert file.residency(4096, None)["pages"] == file.residency(4096, sample.stat().st_size - 4096)["pages"]
        assert file.residency(1 << 40)["pages"] == 0
    with pytest.raises(penstock.Error, match="a NoneType is not memory"):
        context.stamp(None)
    with pytest.raises(TypeError, match="^kind must be a str, not int$"):
        context.allocate(1, 3)  # type: ignore[arg-type]


OFFSETS = (-1, 1 << 63, 1 << 64, -(10**9999))


def test_numbers_out_of_range_are_told_in_one_line(context: penstock.Context, sample: Path, tmp_path: Path) -> None:
    buffer = context.allocate(16)
    with context.open(sample) as file:
        wrong = {
            "offset_bytes": [
                lambda value: file.read(buffer, value),
                lambda value: file.start_write(buffer, value),
                lambda value: context.start_read([(file, value, buffer)]),
                lambda value: buffer.slice(value, 1),
                lambda value: file.residency(value, 1),
                lambda value: file.drop_cache(value),
            ],
            "bytes": [
                lambda value: buffer.slice(0, value),
                lambda value: file.residency(0, value),
                lambda value: file.drop_cache(0, value),
                lambda value: context.allocate(value),
            ],
            "size_bytes": [lambda value: context.create(tmp_path / "new", value)],
            "chunk_bytes": [lambda value: file.read(buffer, chunk_bytes=value)],
            "file_offset": [
                lambda value: context.stamp(buffer, value),
                lambda value: context.verify_stamp(buffer, value),
            ],
        }
        for name, calls in wrong.items():
            for call in calls:
                for value in OFFSETS:
                    with pytest.raises(ValueError, match=rf"^{name} is .{{1,40}}; it must be from 0 to 2\^63-1$"):
                        call(value)
    assert list(tmp_path.iterdir()) == [sample]


@pytest.mark.parametrize(
    ("name", "value", "most"),
    [("workers", -1, "2^32-1"), ("depth", 1 << 32, "2^32-1"), ("workers", 1 << 64, "2^32-1")],
)
def test_counts_out_of_range_are_told_in_one_line(sample: Path, name: str, value: int, most: str) -> None:
    with penstock.Context("host") as context, context.open(sample) as file, pytest.raises(ValueError) as caught:
        file.read(bytearray(10), **{name: value})
    assert str(caught.value) == f"{name} is {value}; it must be from 0 to {most}"


def test_a_fill_is_of_bytes_and_a_seed_of_64_bits(context: penstock.Context) -> None:
    buffer = context.allocate(16)
    for value in (-1, 256, 300):
        with pytest.raises(ValueError, match=f"^byte_value is {value}; it must be from 0 to 255$"):
            context.fill(buffer, value)
    context.fill(buffer, 255)
    assert bytes(memoryview(buffer)) == b"\xff" * 16
    for value in (-1, 1 << 64):
        with pytest.raises(ValueError, match=rf"^seed is {value}; it must be from 0 to 2\^64-1$"):
            context.stamp(buffer, 0, value)
    context.stamp(buffer, 0, (1 << 64) - 1)
    with pytest.raises(ValueError, match="^budget_bytes is -1"):
        penstock.Context("host", budget_bytes=-1)


def test_numbers_may_be_of_numpy(context: penstock.Context, sample: Path) -> None:
    numpy = pytest.importorskip("numpy")
    with context.open(sample) as file:
        assert file.read(bytearray(10), numpy.int64(7), workers=numpy.uint8(1)).bytes == 10
        with pytest.raises(TypeError, match="^offset_bytes must be a whole number, not numpy.float64$"):
            file.read(bytearray(10), numpy.float64(7))


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


FORK = """
import os, penstock
context = penstock.Context("host", host_bandwidth_bytes_per_s=20e6)
buffer = context.allocate(4096)
file = context.open({sample!r})
transfer = file.start_read(bytearray(file.size_bytes))
child = os.fork()
if child == 0:
    os.close(2)
    try:
        {call}
    except penstock.Error as error:
        os._exit(0 if error.code == "unsupported" and "forked" in error.cause else 2)
    os._exit({unless})
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def in_child(call: str, sample: Path, unless: int) -> int:
    script = FORK.format(call=call, sample=str(sample), unless=unless)
    return subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=30, check=False).returncode


@pytest.mark.parametrize(
    "call",
    [
        "context.allocate(4096)",
        "context.stamp(buffer)",
        "context.fill(buffer, 1)",
        "context.verify_stamp(buffer)",
        "context.device",
        "context.pinned_bytes",
        "context.pinned_peak_bytes",
        "context.copy_to_host(bytearray(4096), buffer)",
        "file.read(buffer)",
        "file.size_bytes",
        "file.close()",
        "transfer.wait()",
        "transfer.cancel()",
    ],
)
def test_a_forked_child_is_refused(sample: Path, call: str) -> None:
    assert in_child(call, sample, unless=3) == 0


def test_a_forked_child_may_drop_what_its_parent_has(sample: Path) -> None:
    """The transfer writes into memory of Python's own: in the parent, dropping it waits."""
    assert in_child("del transfer, file, buffer, context", sample, unless=0) == 0
