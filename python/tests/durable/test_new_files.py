"""How new files and folders get their names, through every writer: rights, links, working folders, errors that the
kernel tells late, and what is left behind."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_fs import faulty_fs

import penstock
from penstock._files.publish import publish
from penstock.formats.new_file import NewFile
from penstock.formats.new_folder import NewFolder

STRANGER = 65534
FORMATS = ("x.npy", "x.safetensors", "x.h5", "x.nc", "x3.nc", "x.zarr", "x.raw", "x.bin", "x.txt")
FILES = tuple(name for name in FORMATS if name != "x.zarr")
BYTES = 256 << 10  # more than a faulty file system takes before it fails
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs another user, and so root")


@pytest.fixture(scope="module")
def context() -> Iterator[penstock.Context]:
    with penstock.Context("host", path="buffered") as made:
        yield made


def data(byte: int = 7) -> np.ndarray:
    return np.full(BYTES, byte, np.uint8)


def save(context: penstock.Context, path: Path, byte: int = 7, **options: Any) -> None:
    """By the writer that the name stands for."""
    format = {"x3.nc": "netcdf3", "x.nc": "netcdf4", "x.raw": "raw"}.get(path.name)
    if path.name == "x.txt":
        publish(path, bytes(data(byte)), "write", "")
    elif path.suffix == ".bin":
        with context.create(path) as file:
            file.write(data(byte), **options)
    else:
        values: Any = data(byte) if path.suffix in (".npy", ".raw") else {"a": data(byte)}
        penstock.save(path, values, context=context, format=format, **options)


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    return {str(one.relative_to(path)): one.read_bytes() for one in files}


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("name", FORMATS)
def test_what_replaces_has_the_rights_of_what_it_replaces(context: penstock.Context, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save(context, path, 1)
    made = 0o777 if path.is_dir() else 0o666
    mask = os.umask(0)
    os.umask(mask)
    assert mode_of(path) == made & ~mask
    path.chmod(0o700 if path.is_dir() else 0o600)
    if os.geteuid() == 0:
        os.chown(path, 1234, 1235)
    kept, before = mode_of(path), path.stat()
    save(context, path, 2)
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert (mode_of(path), after.st_uid, after.st_gid) == (kept, before.st_uid, before.st_gid)


@pytest.mark.parametrize("kind", [NewFile, lambda name: NewFolder(name, ["mark"])])
def test_nobody_else_may_look_while_it_is_written(tmp_path: Path, kind: Callable[[str], Any]) -> None:
    path = tmp_path / "x"
    path.write_text("older")
    path.chmod(0o644)
    new = kind(str(path))
    assert mode_of(Path(new.temporary)) & 0o077 == 0
    new.publish(durable=False)
    assert mode_of(path) == (0o755 if path.is_dir() else 0o644)


@root_only
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("there", [True, False])
def test_a_strangers_link_in_a_sticky_folder_is_refused(
    context: penstock.Context, tmp_path: Path, name: str, there: bool
) -> None:
    if there and Path("/proc/sys/fs/protected_symlinks").read_text().strip() != "1":
        pytest.skip("fs.protected_symlinks is off here: the kernel follows such links")
    sticky, home = tmp_path / "sticky", tmp_path / "home"
    sticky.mkdir()
    home.mkdir()
    sticky.chmod(0o1777)
    if there:
        (home / "victim").write_text("precious")
    (sticky / name).symlink_to(home / "victim")
    os.lchown(sticky / name, STRANGER, STRANGER)
    with pytest.raises(penstock.Error) as refused:
        save(context, sticky / name)
    assert refused.value.code == "permission_denied"
    assert names(sticky) == [name] and (sticky / name).is_symlink()
    assert content(home) == ({"victim": b"precious"} if there else {})


@pytest.mark.parametrize("name", FORMATS)
def test_a_link_stays_and_what_it_leads_to_is_replaced(context: penstock.Context, tmp_path: Path, name: str) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / name).symlink_to(Path("far") / name)
    for byte in (1, 2):  # to nothing first, then to what was made
        save(context, tmp_path / name, byte)
        assert (tmp_path / name).is_symlink() and names(tmp_path / "far") == [name]
        assert any(bytes([byte]) * 1000 in one for one in content(tmp_path / "far" / name).values())


@pytest.mark.parametrize("name", FILES)
def test_a_working_folder_that_changes_meanwhile_leads_nowhere_else(
    context: penstock.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    (other / name).write_text("a stranger's")
    monkeypatch.chdir(here)
    if name == "x.txt":
        publish(Path(name), b"text", "write", "")
    elif name == "x.bin":
        with context.create(name) as file:
            file.write(data())
            monkeypatch.chdir(other)
    else:
        format = {"x3.nc": "netcdf3", "x.nc": "netcdf4", "x.raw": "raw"}.get(name)
        with penstock.create(name, context=context, format=format) as file:
            file["data" if name in ("x.npy", "x.raw") else "a"] = data()
            monkeypatch.chdir(other)
    assert names(here) == [name] and content(other) == {name: b"a stranger's"}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("how", ["lose", "fail"])
def test_errors_that_come_late_keep_the_older_and_leave_nothing(
    context: penstock.Context, tmp_path: Path, name: str, how: str
) -> None:
    """As on NFS with a full quota: the cache takes all, the server nothing."""
    with faulty_fs(tmp_path, writeback=True) as fs:
        save(context, fs.path / name, 1)
        before = content(fs.path / name)
        fault = fs.lose(errno.EDQUOT) if how == "lose" else fs.fail("write", errno.ENOSPC, after_bytes=100_000)
        with pytest.raises(penstock.Error) as told:
            save(context, fs.path / name, 2)
        assert told.value.code == "no_space" and fault.fired
        assert names(fs.path) == [name] and content(fs.path / name) == before
        fault.remove()
        save(context, fs.path / name, 3)
        assert names(fs.path) == [name] and content(fs.path / name) != before


@pytest.mark.sampled
@pytest.mark.parametrize("path", ["auto", "buffered", "uring-buffered", "mmap"])
@pytest.mark.parametrize("bytes", ["32KiB", "4MiB"])
def test_the_command_ends_with_one_when_the_server_takes_nothing(
    penstock: Callable[..., Any], tmp_path: Path, path: str, bytes: str
) -> None:
    with faulty_fs(tmp_path, writeback=True) as fs:
        older = fs.path / "x.bin"
        older.write_text("older")
        fs.fail("write", errno.ENOSPC)
        ran = penstock("write", older, "--bytes", bytes, "--path", path, "--from", "host")
        assert ran.code == 1 and "No space left" in ran.err, (ran.code, ran.err)
        assert names(fs.path) == ["x.bin"] and older.read_text() == "older"


KILLED = """
import os, signal, sys
import numpy as np
import penstock
from penstock.formats import new_file, new_folder
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
new_file.NewFile.publish = new_folder.NewFolder.publish = die
format = {"x3.nc": "netcdf3", "x.nc": "netcdf4", "x.raw": "raw"}.get(os.path.basename(sys.argv[1]))
values = np.zeros(100, np.uint8)
penstock.save(sys.argv[1], values if sys.argv[1].endswith(("npy", "raw")) else {"a": values}, "host", format=format)
"""


@pytest.mark.parametrize("name", [one for one in FORMATS if one not in ("x.bin", "x.txt")])
def test_what_a_killed_writer_left_the_next_one_of_the_name_removes(
    context: penstock.Context, tmp_path: Path, name: str
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / name)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1 and name not in names(tmp_path)
    save(context, tmp_path / name)
    assert names(tmp_path) == [name]


@root_only
@pytest.mark.parametrize("name", FORMATS)
def test_who_may_not_write_a_file_does_not_replace_it(context: penstock.Context, tmp_path: Path, name: str) -> None:
    save(context, tmp_path / name)
    before = content(tmp_path / name)
    (tmp_path / name).chmod(0o555 if name == "x.zarr" else 0o444)
    os.chown(tmp_path / name, STRANGER, STRANGER)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o777)
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(STRANGER, STRANGER, STRANGER)
            make = (lambda n: NewFolder(n, ["zarr.json"])) if name == "x.zarr" else NewFile
            make(str(tmp_path / name))
        except penstock.Error as error:
            os._exit(0 if error.code == "permission_denied" else 2)
        except BaseException:
            os._exit(3)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert content(tmp_path / name) == before and names(tmp_path) == [name]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["pipe", "device", "link to a pipe"])
def test_what_is_neither_file_nor_folder_is_not_replaced(
    context: penstock.Context, tmp_path: Path, name: str, kind: str
) -> None:
    there = tmp_path / name
    if kind == "link to a pipe":
        there.symlink_to(tmp_path / "end")
        there = tmp_path / "end"
    if kind == "device":
        if os.geteuid() != 0:
            pytest.skip("needs root to make a device")
        os.mknod(there, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        os.mkfifo(there)
    before = names(tmp_path)
    other_end = os.open(there, os.O_RDWR)  # whoever opens a pipe does not wait
    with pytest.raises(penstock.Error) as refused:
        save(context, tmp_path / name)
    os.close(other_end)
    assert refused.value.code == "not_a_regular_file"
    assert names(tmp_path) == before and not there.is_file() and not there.is_dir()


@root_only
@pytest.mark.parametrize("name", FORMATS)
def test_what_belongs_to_a_stranger_in_a_sticky_folder_is_not_replaced(
    context: penstock.Context, tmp_path: Path, name: str
) -> None:
    """It would be given to the stranger, as what replaces it has its owner."""
    save(context, tmp_path / name)
    before = content(tmp_path / name)
    os.chown(tmp_path / name, STRANGER, STRANGER)
    tmp_path.chmod(0o1777)
    with pytest.raises(penstock.Error) as refused:
        save(context, tmp_path / name)
    assert refused.value.code == "permission_denied"
    assert content(tmp_path / name) == before and names(tmp_path) == [name]


@root_only
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("there", [True, False])
def test_a_file_system_that_is_read_only_is_called_so(
    context: penstock.Context, tmp_path: Path, name: str, there: bool
) -> None:
    if there:
        save(context, tmp_path / name)
    if subprocess.run(["mount", "--bind", tmp_path, tmp_path], check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", tmp_path], check=True)
        with pytest.raises(penstock.Error) as refused:
            save(context, tmp_path / name)
        assert refused.value.code == "read_only"
    finally:
        subprocess.run(["umount", tmp_path], check=True)
