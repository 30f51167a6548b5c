"""What the Python API refuses: wrong arguments, memory of others, closed files, forked children. Each in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock


def test_memory_that_does_not_serve_is_refused_in_words_of_ours(context: penstock.Context, sample: Path) -> None:
    backwards = np.zeros(8)[::-1]
    fixed = np.zeros(8)
    fixed.flags.writeable = False
    with context.open(sample) as file:
        for memory in (b"constant", memoryview(b"constant"), fixed):
            with pytest.raises(
                penstock.Error, match="it is read-only; pass memory that can be written, such as a byte"
            ):
                file.read(memory)
        for memory in (backwards, memoryview(bytearray(8))[::2], np.zeros((3, 4)).T):
            with pytest.raises(penstock.Error, match=r"it is not contiguous; pass numpy.ascontiguousarray\(x\)"):
                file.read(memory)
    with context.open(sample, write=True) as file:
        with pytest.raises(penstock.Error, match=r"it is not contiguous; pass numpy.ascontiguousarray\(x\)"):
            file.write(backwards)
        assert file.write(fixed).bytes == 64, "control: what is written may be read-only"


@pytest.mark.parametrize(
    ("call", "option", "told"),
    [
        (
            penstock.Context,
            "buget_bytes",
            r"^Context\(\) has no option 'buget_bytes'; there are device, .*budget_bytes=\?$",
        ),
        (penstock.Context, "devic", r"; did you mean device=\?$"),
        (
            penstock.gpu.open,
            "page_byte",
            r"^a cache has no option 'page_byte'; there are page_bytes, .* page_bytes=\?$",
        ),
        (penstock.gpu.open, "datset", r"; did you mean dataset=\?$"),
        (penstock.save, "durabel", r"^save\(\) has no option 'durabel'; there are context, .* durable=\?$"),
    ],
)
def test_a_misspelt_option_is_told_with_the_nearest_one(call: Any, option: str, told: str, tmp_path: Path) -> None:
    positional = {penstock.Context: ("host",), penstock.gpu.open: (tmp_path / "x.npy",)}.get(
        call, (tmp_path / "x.h5", {})
    )
    with pytest.raises(TypeError, match=told):
        call(*positional, **{option: 1})


def test_what_is_no_memory_is_refused(context: penstock.Context, sample: Path) -> None:
    with context.open(sample) as file, pytest.raises(penstock.Error) as caught:
        file.read([1, 2, 3])
    assert caught.value.code == "invalid_argument"


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


def test_closed_things_say_so(context: penstock.Context, sample: Path) -> None:
    file = context.open(sample)
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(bytearray(1))


@pytest.mark.parametrize("kind", ["device", "managed"])
def test_a_buffer_of_another_context_is_refused_at_once(context: penstock.Context, sample: Path, kind: str) -> None:
    strange = penstock.Context("host").allocate(4096, kind)
    belongs = "the buffer belongs to another context, whose memory this one's device does not know; use the context"
    with context.open(sample, write=True) as file:
        for operation, call in (
            ("read", lambda: file.start_read(strange, 7)),
            ("write", lambda: file.start_write(strange, 7)),
            ("read", lambda: context.start_read([(file, 7, strange)])),
            ("write", lambda: context.start_write([(file, 7, strange)])),
        ):
            with pytest.raises(penstock.Error) as caught:
                call()
            assert str(caught.value).startswith(f"{operation} {sample} at offset 7 length 4096: {belongs}")
    for call in (
        lambda: context.stamp(strange),
        lambda: context.fill(strange, 0),
        lambda: context.verify_stamp(strange),
        lambda: context.copy_to_host(bytearray(4096), strange),
        lambda: context.copy_to_device(strange, bytes(4096)),
    ):
        with pytest.raises(penstock.Error, match="use memory at offset 0 length 4096: the buffer belongs to another"):
            call()


def test_host_memory_of_another_context_is_memory(context: penstock.Context, sample: Path) -> None:
    for kind in ("pinned", "system"):
        strange = penstock.Context("host").allocate(4096, kind)
        with context.open(sample) as file:
            assert file.read(strange, 5).bytes == 4096
        assert bytes(memoryview(strange)) == sample.read_bytes()[5:4101]
        with pytest.raises(penstock.Error, match="another context|ordinary host memory"):
            context.stamp(strange)


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


def test_wrong_ranges_directions_and_options_are_told_with_what_is_right(
    context: penstock.Context, sample: Path
) -> None:
    with pytest.raises(TypeError, match="^each range is \\(File, offset_bytes, memory\\)"):
        context.start_read([(1, 2, bytearray(3))])  # type: ignore[list-item]
    with context.open(sample) as file:
        with pytest.raises(ValueError, match="^direction is 'sideways'; it must be 'read' or 'write'$"):
            file.explain("sideways")
        with pytest.raises(TypeError, match="^transfer options have no 'wrkers'; there are path, .*timeout_s$"):
            file.read(bytearray(10), wrkers=3)  # type: ignore[call-arg]


def test_numbers_may_be_of_numpy(context: penstock.Context, sample: Path) -> None:
    numpy = pytest.importorskip("numpy")
    with context.open(sample) as file:
        assert file.read(bytearray(10), numpy.int64(7), workers=numpy.uint8(1)).bytes == 10
        with pytest.raises(TypeError, match="^offset_bytes must be a whole number, not numpy.float64$"):
            file.read(bytearray(10), numpy.float64(7))


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
