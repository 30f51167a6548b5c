"""The load generator as Python sees it: what it counts, checks and refuses, and that Ctrl-C ends it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Error
from penstock._api import File
from penstock_bench import _measure

SEED = 20
BYTES = 2 << 20


@pytest.fixture
def stamped(context: Context, tmp_path: Path) -> Iterator[File]:
    """A stamped file, open for reading and writing."""
    path = tmp_path / "stamped.bin"
    memory = context.allocate(BYTES)
    context.stamp(memory, 0, SEED)
    with context.create(path, BYTES) as file:
        file.write(memory)
    with context.open(path, write=True) as file:
        yield file


def load(context: Context, file: File, **options: Any) -> dict[str, Any]:
    """One run, by the page cache unless the options say otherwise, in memory of just the size it needs."""
    options = {"path": "buffered"} | options
    memory = context.allocate(max(1, _measure.load_memory_bytes(BYTES, **options)))
    return _measure.run_load(context._raw, [file._raw], memory, **options)


def test_a_run_reports_what_it_moved_and_how_long_each_request_took(context: Context, stamped: File) -> None:
    found = load(context, stamped, request_bytes=65536, threads=2, stamp_seed=SEED)
    assert found["bytes"] == found["verified_bytes"] == BYTES
    assert found["operations"] == found["submissions"] == BYTES // 65536
    assert found["path_bytes"] == {"buffered": BYTES}
    assert found["writes"] is None
    assert found["fallbacks"] == []
    assert not found["reached_limit"]
    times = found["reads"]
    assert times["count"] == 32
    assert 0 < times["min_us"] <= times["p50_us"] <= times["p99_us"] <= times["p999_us"] <= times["max_us"]
    assert times["min_us"] <= times["mean_us"] <= times["max_us"] <= found["seconds"] * 1e6
    assert sum(count for _, count in times["buckets"]) == 32
    assert times["buckets"][0][0] <= times["min_us"]


@pytest.mark.parametrize(
    "shape", [{"in_flight": 8}, {"in_flight": 8, "completion": "callback"}, {"batch": 16}, {"mirror": True}]
)
@pytest.mark.parametrize("order", ["sequential", "random"])
def test_every_way_of_asking_brings_the_right_bytes(
    context: Context, stamped: File, shape: dict[str, Any], order: str
) -> None:
    found = load(context, stamped, request_bytes=4096, threads=2, order=order, stamp_seed=SEED, **shape)
    assert found["bytes"] == BYTES
    assert found["operations"] == BYTES // 4096
    if order == "random" and "mirror" in shape:  # bytes that were read twice are checked once
        assert BYTES // 4 < found["verified_bytes"] < BYTES
    else:
        assert found["verified_bytes"] == BYTES


def test_writes_are_stamped(context: Context, stamped: File) -> None:
    found = load(context, stamped, direction="write", request_bytes=65536, threads=3, stamp_seed=SEED + 1)
    assert found["reads"] is None
    assert found["writes"]["count"] == found["operations"]
    memory = context.allocate(BYTES)
    stamped.read(memory, path="buffered")
    assert context.verify_stamp(memory, 0, SEED + 1) == (0, 0)
    assert context.verify_stamp(memory, 0, SEED)[0] == BYTES


def test_a_wrong_byte_fails_the_run(context: Context, stamped: File) -> None:
    with Path(stamped.name).open("r+b") as stream:
        stream.seek(1_234_567)
        stream.write(b"!")
    with pytest.raises(Error, match="bytes are wrong") as caught:
        load(context, stamped, request_bytes=65536, stamp_seed=SEED)
    assert caught.value.operation == "verify"
    assert caught.value.file == stamped.name
    assert caught.value.offset_bytes == 1_234_567 // 8 * 8


def test_memory_that_anybody_made_will_do(context: Context, stamped: File) -> None:
    memory = bytearray(BYTES)
    found = _measure.run_load(
        context._raw, [stamped._raw], memory, request_bytes=65536, mirror=True, stamp_seed=SEED, path="buffered"
    )
    assert found["verified_bytes"] == BYTES
    assert bytes(memory) == Path(stamped.name).read_bytes()


def test_memory_that_may_not_be_stamped_is_refused(context: Context, stamped: File) -> None:
    with pytest.raises((Error, BufferError)):
        _measure.run_load(context._raw, [stamped._raw], bytes(BYTES), direction="write", mirror=True, stamp_seed=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"direction": "sideways"}, "read, write"),
        ({"order": "backwards"}, "sequential, random"),
        ({"completion": "soon"}, "wait, callback"),
        ({"repeat": True}, "without end"),
        ({"threads": 0}, "must be positive"),
        ({"bytes": 2 * BYTES}, "nothing there to read"),
    ],
)
def test_what_makes_no_sense_is_refused(context: Context, stamped: File, options: dict[str, Any], words: str) -> None:
    with pytest.raises(Error, match=words):
        load(context, stamped, **options)


def test_unknown_options_are_named(context: Context, stamped: File) -> None:
    with pytest.raises(TypeError, match="'thread'"):
        load(context, stamped, thread=1)


def test_a_failed_request_says_which_file_it_was(context: Context, stamped: File) -> None:
    with context.open(stamped.name) as read_only, pytest.raises(Error) as caught:
        load(context, read_only, direction="write")
    assert caught.value.operation == "write"
    assert caught.value.file == stamped.name


def test_an_interrupt_ends_a_run(context: Context, stamped: File) -> None:
    sender = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    began = time.monotonic()
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            load(context, stamped, request_bytes=4096, threads=2, in_flight=4, repeat=True, seconds=1000.0)
    finally:
        sender.join()
    assert time.monotonic() - began < 500


def test_the_plain_way_brings_the_same_bytes_and_names_its_path(context: Context, stamped: File) -> None:
    found = load(context, stamped, plain=True, plain_direct=False, request_bytes=65536, threads=2, stamp_seed=SEED)
    assert found["verified_bytes"] == BYTES
    assert found["path_bytes"] == {"buffered": BYTES}


def test_mirrored_memory_tells_what_was_moved(context: Context, stamped: File) -> None:
    found = load(context, stamped, request_bytes=65536, threads=2, mirror=True, requests_per_thread=3)
    half = BYTES // 2
    assert found["moved"] == [(0, 3 * 65536), (half, 3 * 65536)]


@pytest.mark.parametrize("to_device", [True, False])
@pytest.mark.parametrize("host", ["pinned", "system"])
def test_copies_are_counted_and_timed(context: Context, to_device: bool, host: str) -> None:
    device, memory = context.allocate(8 * 4096), context.allocate(8 * 4096, host)
    shape = {"to_device": to_device, "multiplicity": 8, "copies": 400, "seconds": 100.0}
    each = _measure.run_copies(context._raw, device, memory, **shape)
    assert each["copies"] == each["each"]["count"] == 400
    assert each["bytes"] == 400 * 4096
    assert each["seconds"] > 0
    at_end = _measure.run_copies(context._raw, device, memory, threads=False, wait="at end", **shape)
    assert at_end["copies"] == 400
    assert at_end["each"] is None


def test_copies_refuse_what_they_do_not_know(context: Context) -> None:
    memory = context.allocate(4096)
    with pytest.raises(TypeError, match="'depth'"):
        _measure.run_copies(context._raw, memory, memory, depth=1)
    with pytest.raises(Error, match="each, at end"):
        _measure.run_copies(context._raw, memory, memory, wait="never")
