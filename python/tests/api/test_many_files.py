"""Datasets of more files than a process may have open: all work that needs files shares what descriptors there are."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import many_files
import numpy as np
import pytest
from many_files import EDGE, PROGRAMS, make

import penstock as ps
from penstock._error import Error
from penstock._files import open_files
from penstock._files.open_files import Full, Lease, OpenFiles, with_room

LIMITS = {"ten_thousand_files": ["64"]} | dict.fromkeys(["by_zarr", "compressed_and_plain"], ["64"])


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    ("name", "limit"), [(name, limit) for name in PROGRAMS for limit in LIMITS.get(name, ["+32", "128"])]
)
def test_few_descriptors_will_do(name: str, limit: str, tmp_path: Path) -> None:
    if name in LIMITS:
        pytest.importorskip("zarr")
    if name == "ten_thousand_files" and os.access("/dev/shm", os.W_OK):  # a disk takes half a minute to remove them
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            run(limit, name, Path(memory))
    else:
        run(limit, name, tmp_path)


def run(limit: str, name: str, folder: Path) -> None:
    command = [sys.executable, many_files.__file__, limit, name, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("files", [64, 65, 66, 1000])
def test_as_many_chunk_files_as_one_likes(files: int, tmp_path: Path) -> None:
    values = make(tmp_path / "x.zarr", files)
    np.testing.assert_array_equal(np.asarray(ps.load(tmp_path / "x.zarr", "host")["x"]), values)


def test_what_nothing_needs_is_closed(tmp_path: Path) -> None:
    values = make(tmp_path / "x.zarr", 100)
    before = descriptors()
    with ps.open(tmp_path / "x.zarr", device="host") as file:
        np.testing.assert_array_equal(np.asarray(file["x"][...]), values)
        wait_for_descriptors(before + 2 * open_files.KEPT_OPEN + 16)  # files that are kept, and rings of workers
    wait_for_descriptors(before + 16)


def wait_for_descriptors(most: int) -> None:
    """The engine lets go of a file a moment after its transfer is done."""
    deadline = time.monotonic() + 20
    while descriptors() > most:
        assert time.monotonic() < deadline, f"{descriptors()} descriptors are open, at most {most} are expected"
        time.sleep(0.01)


class NeverDone:
    """A transfer that the system does not answer."""

    done = False

    def wait(self, timeout: float | None, progress: Any) -> bool:
        assert timeout is not None
        time.sleep(timeout)
        return False


class Crowded:
    """All descriptors are taken by a transfer that is never done."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        names = []
        for number in range(40):
            (folder / f"other{number}").write_bytes(b"x")
            names.append(str(folder / f"other{number}"))
        self.files = OpenFiles(ps.Context("host")._raw)
        limit = descriptors() + 28
        monkeypatch.setattr(open_files, "_limit", lambda: limit)
        while isinstance(lease := self.files.lease(names), Lease):
            with lease:
                names = names[len(lease.files) :]
                self.use = lease.began(NeverDone())  # type: ignore[arg-type]


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crowded:
    make(tmp_path / "x.zarr", 100)
    return Crowded(tmp_path, monkeypatch)


def test_who_waits_for_descriptors_has_a_deadline(crowded: Crowded, tmp_path: Path) -> None:
    with ps.open(tmp_path / "x.zarr", device="host") as file:
        with pytest.raises(ps.Error) as caught:
            file["x"].read(timeout_s=0.2)
        assert caught.value.code == "timed_out"


def test_who_waits_for_descriptors_can_cancel(crowded: Crowded, tmp_path: Path) -> None:
    with ps.open(tmp_path / "x.zarr", device="host") as file:
        pending = file["x"].start_read()
        assert not pending.wait(0.1)
        pending.cancel()
        with pytest.raises(ps.Error) as caught:
            pending.result()
        assert caught.value.code == "cancelled"


def test_who_waits_for_descriptors_goes_on_when_there_are_some(crowded: Crowded, tmp_path: Path) -> None:
    with ps.open(tmp_path / "x.zarr", device="host") as file:
        pending = file["x"].start_read()
        assert not pending.wait(0.1)
        crowded.use._transfer = None
        crowded.files.forget()
        assert np.asarray(pending.result()).shape == (100 * EDGE, EDGE)


def test_a_file_that_was_replaced_is_opened_anew(tmp_path: Path, context: ps.Context) -> None:
    (tmp_path / "x").write_bytes(b"one")
    files = OpenFiles(context._raw)
    with files.lease([str(tmp_path / "x")], versions=[1]) as lease:  # type: ignore[union-attr]
        first = lease.files[0]
    with files.lease([str(tmp_path / "x")], versions=[1]) as lease:  # type: ignore[union-attr]
        assert lease.files[0] is first
    with files.lease([str(tmp_path / "x")], versions=[2]) as lease:  # type: ignore[union-attr]
        assert lease.files[0] is not first


def test_a_lease_of_a_file_that_is_not_there_keeps_nothing(tmp_path: Path, context: ps.Context) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    files = OpenFiles(context._raw)
    with pytest.raises(ps.Error) as caught:
        files.lease([str(tmp_path / name) for name in ("a", "b", "absent", "c")])
    assert caught.value.code == "not_found"
    assert all(entry.pins == 0 for entry in files._open.values())
    assert not isinstance(files.lease([str(tmp_path / name) for name in "abc"]), Full)


@pytest.mark.parametrize("kind", [OSError, Error])
def test_a_descriptor_that_another_thread_holds_for_a_moment_is_waited_for(kind: type[Exception]) -> None:
    out = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    refused = out if kind is OSError else Error.of(out, "open", "x", "")
    answers = iter([refused, refused, refused, 7])

    def open_it() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert with_room(open_it) == 7


def test_no_descriptor_at_all_is_an_error_and_another_error_is_told_at_once() -> None:
    calls: list[int] = []

    def refuse(code: int) -> None:
        calls.append(code)
        raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match="Too many open files"):
        with_room(lambda: refuse(errno.EMFILE))
    with pytest.raises(FileNotFoundError):
        with_room(lambda: refuse(errno.ENOENT))
    assert calls.count(errno.EMFILE) > 10 and calls.count(errno.ENOENT) == 1
