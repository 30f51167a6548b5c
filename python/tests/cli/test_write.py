"""`penstock write` from a shell: the pattern, whole files or none, interrupts."""

from __future__ import annotations

import hashlib
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import PENSTOCK, Ran

Run = Callable[..., Ran]
MASK = (1 << 64) - 1


def stamp(seed: int, bytes: int) -> bytes:
    """The pattern, independently of the library (include/penstock/stamp.hpp)."""
    out = bytearray()
    for word in range(-(-bytes // 8)):
        z = (seed + 0x9E3779B97F4A7C15 * (word + 1)) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out += (z ^ (z >> 31)).to_bytes(8, "little")
    return bytes_of(out, bytes)


def bytes_of(data: bytearray, count: int) -> bytes:
    return bytes(data[:count])


@pytest.mark.parametrize("size", [1, 7, 8, 4096, 4097, 1_000_003])
def test_the_file_holds_the_pattern(penstock: Run, tmp_path: Path, size: int) -> None:
    path = tmp_path / "new.bin"
    ran = penstock("write", path, "--from", "host", "--bytes", str(size), "--seed", "7", "--digest", "--json")
    assert ran.code == 0, ran.err
    assert path.read_bytes() == stamp(7, size)
    assert ran.json["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert ran.json["bytes"] == size
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.bin"]


@pytest.mark.parametrize("path", ["buffered", "direct", "uring", "uring-buffered", "aio", "mmap"])
def test_every_path_writes_the_same(penstock: Run, tmp_path: Path, path: str) -> None:
    ran = penstock("write", tmp_path / "new.bin", "--bytes", "300001", "--path", path, "--json")
    if ran.code != 0 and ("not " in ran.err or "cannot" in ran.err):
        assert not (tmp_path / "new.bin").exists()
        pytest.skip(ran.err)
    assert ran.code == 0, ran.err
    assert (tmp_path / "new.bin").read_bytes() == stamp(1, 300001)


def test_no_bytes_make_an_empty_file(penstock: Run, tmp_path: Path) -> None:
    ran = penstock("write", tmp_path / "empty", "--bytes", "0", "--digest", "--verify", "--json")
    assert ran.code == 0, ran.err
    assert (tmp_path / "empty").stat().st_size == 0
    assert ran.json["bytes"] == 0


def test_durable_and_verified_in_windows(penstock: Run, tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    ran = penstock("write", path, "--from", "host", "--bytes", "140MiB", "--durable", "--verify", "--digest", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["windows"] == 3
    assert ran.json["verified"] is True
    assert ran.json["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_older_file_is_replaced_whole(penstock: Run, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"older" * 1000)
    assert penstock("write", path, "--bytes", "64").code == 0
    assert path.read_bytes() == stamp(1, 64)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_leaves_no_partial_file(tmp_path: Path, sent: int, code: int) -> None:
    command = [*PENSTOCK, "write", str(tmp_path / "new.bin"), "--from", "host", "--bytes", "20GiB", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    time.sleep(0.8)
    process.send_signal(sent)
    asked = time.monotonic()
    out, err = process.communicate(timeout=30)
    if "No space left" in err:
        pytest.skip("not enough room for a file that takes long to write")
    assert process.returncode == code, err
    assert time.monotonic() - asked < 10
    assert out == ""
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_interrupt_keeps_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"older")
    process = subprocess.Popen(
        [*PENSTOCK, "write", str(path), "--from", "host", "--bytes", "20GiB"], stderr=subprocess.PIPE
    )
    time.sleep(0.8)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    if b"No space left" in err:
        pytest.skip("not enough room for a file that takes long to write")
    assert process.returncode == 130
    assert path.read_bytes() == b"older"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]


def test_interrupted_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.bin"
    with path.open("wb") as stream:
        stream.truncate(64 << 30)
    process = subprocess.Popen([*PENSTOCK, "read", str(path), "--to", "host"], stderr=subprocess.PIPE, text=True)
    time.sleep(0.8)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "penstock: interrupted\n"


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_that_cannot_draw_a_bar_gets_lines(penstock: Run, tmp_path: Path, term: str) -> None:
    ran = penstock("write", tmp_path / "a", "--bytes", "8MiB", env={"PENSTOCK_PROGRESS": "1", "TERM": term})
    assert ran.code == 0 and "\x1b" not in ran.err
    assert re.fullmatch(r"(write .*/a: .* of 8(\.0+)? MiB\n)+", ran.err), ran.err
