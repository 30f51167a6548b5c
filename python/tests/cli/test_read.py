"""`penstock read` from a shell, on good input: sizes, ranges, paths, digests, JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran, assert_one_line_error

Run = Callable[..., Ran]
HOST_PATHS = ("auto", "buffered", "direct", "uring", "uring-buffered", "aio", "mmap")


def sha256(path: Path, offset: int = 0, length: int | None = None) -> str:
    data = path.read_bytes()[offset:]
    return hashlib.sha256(data if length is None else data[:length]).hexdigest()


def test_json_has_what_scripts_need(penstock: Run, sample: Path) -> None:
    ran = penstock("read", sample, "--to", "host", "--digest", "--json")
    assert ran.code == 0, ran.err
    assert ran.out.count("\n") == 1
    found = ran.json
    assert found["bytes"] == 5_000_003
    assert found["seconds"] > 0
    assert found["bytes_per_second"] == pytest.approx(found["bytes"] / found["seconds"])
    assert found["cpu_user_s"] >= 0
    assert found["cpu_system_s"] >= 0
    assert found["path"] in HOST_PATHS
    assert found["sha256"] == sha256(sample)
    assert sum(share["bytes"] for share in found["evidence"]["paths"]) == found["bytes"]


def test_digest_only_when_asked(penstock: Run, sample: Path) -> None:
    assert "sha256" not in penstock("read", sample, "--json").json


@pytest.mark.parametrize("path", HOST_PATHS)
def test_every_path_brings_the_same_bytes(penstock: Run, sample: Path, path: str) -> None:
    ran = penstock("read", sample, "--to", "host", "--path", path, "--digest", "--json")
    if "not " in ran.err and ran.code != 0:
        pytest.skip(ran.err)
    assert ran.code == 0, ran.err
    assert ran.json["sha256"] == sha256(sample)


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1), (1, 4096), (4095, 2), (512, 1 << 20), (4_999_999, 4), (5_000_003, 0)]
)
def test_ranges(penstock: Run, sample: Path, offset: int, length: int) -> None:
    ran = penstock("read", sample, "--offset", str(offset), "--bytes", str(length), "--digest", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["bytes"] == length
    assert ran.json["sha256"] == sha256(sample, offset, length)


def test_size_suffixes(penstock: Run, sample: Path) -> None:
    ran = penstock("read", sample, "--offset", "64KiB", "--bytes", "1 MiB", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["offset_bytes"] == 65536
    assert ran.json["bytes"] == 1 << 20


def test_empty_file(penstock: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    ran = penstock("read", tmp_path / "empty", "--digest", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["bytes"] == 0
    assert ran.json["path"] == "none"
    assert ran.json["sha256"] == hashlib.sha256().hexdigest()


def test_shape_options_reach_the_plan(penstock: Run, sample: Path) -> None:
    how = ("--path", "buffered", "--chunk-bytes", "128KiB", "--workers", "2", "--depth", "3")
    ran = penstock("read", sample, *how, "--json")
    assert ran.code == 0, ran.err
    assert "2 workers x 3 slots of 128 KiB" in ran.json["evidence"]["plan"]


def test_several_windows_arrive_in_order(penstock: Run, tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    assert penstock("write", path, "--from", "host", "--bytes", "150MiB").code == 0
    ran = penstock("read", path, "--to", "host", "--digest", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["windows"] == 3
    assert ran.json["sha256"] == sha256(path)
    assert sum(share["bytes"] for share in ran.json["evidence"]["paths"]) == 150 << 20


def test_memory_stays_small(penstock: Run, tmp_path: Path) -> None:
    """Twice the budget and more, by a sparse file: what is held must not depend on the size of the file."""
    path = tmp_path / "sparse.bin"
    with path.open("wb") as stream:
        stream.truncate(2 << 30)
    ran = penstock("read", path, "--to", "host", "--path", "direct", "--json")
    if "O_DIRECT" in ran.err:
        pytest.skip(ran.err)
    assert ran.code == 0, ran.err
    assert ran.json["peak_rss_bytes"] < (256 + 100) << 20


def test_text_for_people(penstock: Run, sample: Path) -> None:
    ran = penstock("read", sample)
    assert ran.code == 0, ran.err
    assert "GB/s" in ran.out or "MB/s" in ran.out
    assert "page cache" in ran.out
    assert "plan" in ran.out


def test_reads_stop_at_the_end_and_say_so(penstock: Run, sample: Path) -> None:
    ran = penstock("read", sample, "--bytes", "6000000", "--json")
    assert ran.code == 1
    assert ran.json["bytes"] == 5_000_003
    assert_one_line_error(Ran(ran.code, "", ran.err), "sample.bin", "ended after 5000003 of 6000000")


def test_strict_never_takes_another_path(penstock: Run, sample: Path) -> None:
    ran = penstock("read", sample, "--to", "host", "--path", "gds", "--strict", "--json")
    assert_one_line_error(ran)
