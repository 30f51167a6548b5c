"""Which block devices are a medium: counters of memory, and of files that may be read from memory, prove nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.calibration import media

LONG_AGO = "1 0 100 5 2 0 1000 9 0 0 0\n"  # a disk's `stat`


class Sys:
    """A sysfs of one's own, with block devices as the kernel describes them."""

    def __init__(self, root: Path) -> None:
        self.root, self.blocks = root, root / "block"
        self.blocks.mkdir()

    def disk(self, name: str, **files: str) -> Path:
        node = self.root / name
        node.mkdir()
        (node / "stat").write_text(LONG_AGO)
        for file, text in files.items():
            (node / file).write_text(text + "\n")
        return node

    def loop(self, direct: str, backing: Path) -> Path:
        node = self.disk("loop0")
        (node / "loop").mkdir()
        (node / "loop" / "dio").write_text(direct + "\n")
        (node / "loop" / "backing_file").write_text(f"{backing}\n")
        return node

    def holds(self, place: Path, node: Path) -> None:
        """The files at the place lie on this disk."""
        number = place.stat().st_dev
        (self.blocks / f"{os.major(number)}:{os.minor(number)}").symlink_to(node)


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    return Sys(tmp_path)


@pytest.mark.parametrize("name", ["ram0", "zram1"])
def test_what_memory_counts_is_of_no_medium(sys: Sys, tmp_path: Path, name: str) -> None:
    sys.holds(tmp_path, sys.disk(name))
    disk = media.Media(tmp_path, sys.blocks)
    with disk.watch() as moved:
        pass
    assert moved.fields() == dict.fromkeys(moved.fields())
    assert disk.cause == f"no medium is counted: {name} is memory"


def test_what_a_disk_counts_is_of_a_medium(sys: Sys, tmp_path: Path) -> None:
    sys.holds(tmp_path, sys.disk("sda"))
    disk = media.Media(tmp_path, sys.blocks)
    with disk.watch() as moved:
        pass
    assert moved.read_bytes == 0 and disk.cause == ""


def test_a_loop_device_counts_for_a_medium_where_it_reads_a_disk_past_the_page_cache(sys: Sys, tmp_path: Path) -> None:
    backing = tmp_path / "disk.img"
    backing.touch()
    sys.holds(tmp_path, sys.disk("sda"))
    loop = sys.loop("1", backing)
    assert media.no_medium(loop, sys.blocks) == ""
    (loop / "loop" / "dio").write_text("0\n")
    assert media.no_medium(loop, sys.blocks) == "loop0 reads its file by the page cache"


def test_a_loop_device_over_memory_is_no_medium(sys: Sys, tmp_path: Path) -> None:
    backing = tmp_path / "disk.img"
    backing.touch()
    loop = sys.loop("1", backing)
    assert media.no_medium(loop, sys.blocks) == "loop0 is a file that lies on no block device"
    sys.holds(tmp_path, sys.disk("zram0"))
    assert media.no_medium(loop, sys.blocks) == "loop0 is a file: zram0 is memory"
    backing.unlink()
    cause = "what is below loop0 cannot be found: No such file or directory"
    assert media.no_medium(loop, sys.blocks) == cause


def test_a_partition_and_a_joined_disk_are_what_lies_below(sys: Sys) -> None:
    zram = sys.disk("zram0")
    part = zram / "zram0p1"
    part.mkdir()
    (part / "partition").write_text("1\n")
    assert media.no_medium(part) == "zram0 is memory"
    joined = sys.disk("dm-0")
    (joined / "slaves").mkdir()
    assert media.no_medium(joined) == ""
    (joined / "slaves" / "zram0").symlink_to(zram)
    assert media.no_medium(joined) == "dm-0 lies on what is no medium: zram0 is memory"
