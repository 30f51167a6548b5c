"""The faulty file system does what it is told, no more: the ground on which tests of faults stand."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_fs import FaultyFs, faulty_fs

MODES = [{}, {"writeback": True}, {"direct": True}]


def put(path: Path, data: bytes) -> None:
    """Tells every error, that of close too."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def code_of(call: object, *arguments: object) -> int:
    with pytest.raises(OSError) as told:
        call(*arguments)  # type: ignore[operator]
    return told.value.errno


@pytest.mark.parametrize("mode", MODES)
def test_it_goes_well_until_it_is_told_otherwise(tmp_path: Path, mode: dict[str, bool]) -> None:
    data = os.urandom(300_001)
    with faulty_fs(tmp_path, **mode) as fs:
        folder = fs.path / "folder"
        folder.mkdir()
        put(folder / "a", data)
        (folder / "a").rename(folder / "b")
        os.link(folder / "b", fs.path / "c")
        (fs.path / "link").symlink_to("c")
        os.truncate(fs.path / "c", 200_000)
        os.setxattr(fs.path / "c", "user.note", b"text")
        (fs.path / "c").chmod(0o640)
        assert (fs.path / "link").read_bytes() == data[:200_000] == (fs.backing / "folder" / "b").read_bytes()
        assert os.getxattr(fs.backing / "c", "user.note") == b"text" and os.listxattr(fs.path / "c") == ["user.note"]
        assert (fs.path / "c").stat().st_mode & 0o777 == 0o640 and (fs.path / "c").stat().st_nlink == 2
        assert names(fs.path) == ["c", "folder", "link"]
        (folder / "b").unlink()
        folder.rmdir()
        assert names(fs.backing) == ["c", "link"]
    assert not os.path.ismount(fs.path)


def test_files_without_a_name_can_be_had_or_refused(tmp_path: Path) -> None:
    with faulty_fs(tmp_path) as fs:
        descriptor = os.open(fs.path, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(descriptor, b"whole")
        assert names(fs.path) == []
        # Only with a folder's descriptor does Python ask for linkat, which follows /proc to the file.
        os.link(f"/proc/self/fd/{descriptor}", fs.path / "named", src_dir_fd=descriptor, follow_symlinks=True)
        os.close(descriptor)
        assert (fs.backing / "named").read_bytes() == b"whole"
    with faulty_fs(tmp_path, unnamed=False) as fs:
        assert code_of(os.open, fs.path, os.O_TMPFILE | os.O_RDWR) == errno.EOPNOTSUPP


def test_a_fault_has_a_place_and_an_end(tmp_path: Path) -> None:
    with faulty_fs(tmp_path) as fs:
        full = fs.fail("write", errno.ENOSPC, name="*.h5", skip=1, times=1)
        put(fs.path / "other", b"x")
        put(fs.path / "x.h5", b"first")
        assert code_of(put, fs.path / "x.h5", b"second") == errno.ENOSPC and full.fired == 1
        put(fs.path / "x.h5", b"third")
        fs.fail("write", errno.EDQUOT, after_bytes=1000)
        put(fs.path / "y", bytes(999))
        assert code_of(put, fs.path / "y", bytes(10)) == errno.EDQUOT
        calls = {"rename": (os.rename, fs.path / "y", fs.path / "z"), "mkdir": (os.mkdir, fs.path / "f")}
        for operation, call in calls.items():
            fault = fs.fail(operation, errno.EROFS)
            assert code_of(*call) == errno.EROFS
            fault.remove()
            call[0](*call[1:])
        assert fs.counts()["write"] >= 5


@pytest.mark.parametrize("mode", MODES)
def test_an_error_may_come_at_the_end_only(tmp_path: Path, mode: dict[str, bool]) -> None:
    with faulty_fs(tmp_path, **mode) as fs:
        fs.lose(errno.EIO, at="flush")
        assert code_of(put, fs.path / "x", bytes(5000)) == errno.EIO
        assert (fs.backing / "x").stat().st_size == 0
    with faulty_fs(tmp_path, **mode) as fs:
        fs.lose(errno.EDQUOT, at="fsync")
        put(fs.path / "x", bytes(5000))
        with (fs.path / "x").open("rb+") as stream:
            assert code_of(os.fsync, stream.fileno()) == errno.EDQUOT


def test_a_kernel_that_keeps_writes_tells_their_errors_at_the_end(tmp_path: Path) -> None:
    with faulty_fs(tmp_path, writeback=True) as fs:
        fs.fail("write", errno.ENOSPC)
        descriptor = os.open(fs.path / "x", os.O_WRONLY | os.O_CREAT)
        assert os.write(descriptor, bytes(100_000)) == 100_000
        assert code_of(os.close, descriptor) == errno.ENOSPC


def test_counts_are_short_where_nothing_is_kept(tmp_path: Path) -> None:
    with faulty_fs(tmp_path, direct=True) as fs:
        put(fs.path / "x", bytes(1000))
        fs.short("read", 300)
        descriptor = os.open(fs.path / "x", os.O_RDWR)
        assert len(os.read(descriptor, 1000)) == 300
        fs.short("write", 7)
        assert os.write(descriptor, bytes(1000)) == 7
        os.close(descriptor)


def hung_reader(fs: FaultyFs) -> subprocess.Popen[bytes]:
    put(fs.path / "x", bytes(1000))
    fs.hang("read")
    program = f"open({str(fs.path / 'x')!r}, 'rb').read()"
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while not fs.hanging():
        assert child.poll() is None
    return child


def test_what_hangs_goes_on_when_it_is_released_killed_or_unmounted(tmp_path: Path) -> None:
    with faulty_fs(tmp_path, direct=True) as fs:
        child = hung_reader(fs)
        child.kill()
        assert child.wait(30) == -signal.SIGKILL
    with faulty_fs(tmp_path, direct=True) as fs:
        child = hung_reader(fs)
    assert child.wait(30) == 1, "the end of the file system is an error of the read"


@pytest.mark.parametrize("before", [True, False])
def test_a_kill_lands_on_one_step(tmp_path: Path, before: bool) -> None:
    program = "import os, sys; os.rename(sys.argv[1], sys.argv[2]); print('alive')"
    with faulty_fs(tmp_path) as fs:
        put(fs.path / "x", b"x")
        fault = fs.signal("rename", signal.SIGKILL, before=before, times=1)
        done = subprocess.run([sys.executable, "-c", program, fs.path / "x", fs.path / "y"], stdout=subprocess.PIPE)
        assert done.returncode == -signal.SIGKILL and done.stdout == b"" and fault.fired == 1
        assert names(fs.path) == (["x"] if before else ["y"])


def test_its_steps_are_known(tmp_path: Path) -> None:
    with faulty_fs(tmp_path, direct=True) as fs:
        with fs.logged() as steps:
            put(fs.path / "x", bytes(10))
        seen = [(one.operation, one.name, one.bytes) for one in steps if one.operation in ("create", "write", "flush")]
        assert seen == [("create", "x", 0), ("write", "x", 10), ("flush", "x", 0)]
