"""Small files that appear whole or not at all: what a killed process left is removed, a living one's part is not, and a
disk that is full loses no measurements."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran, assert_one_line_error
from test_wrong_input import _Mounted, root_only

from penstock import Context, Error, cli
from penstock._publish import publish

Penstock = Callable[..., Ran]
OLD_S = 3600
CALIBRATE = ("calibrate", "--device", "host", "--seconds", "1", "--file-bytes", "16MiB", "--out")
KILLED = """
import os, sys
from pathlib import Path
import penstock._publish as p
p.os.fsync = lambda _: os.kill(os.getpid(), 9)
p.publish(Path(sys.argv[1]), b"half", "write", "")
"""


def older(path: Path) -> Path:
    os.utime(path, (time.time() - OLD_S,) * 2)
    return path


def test_the_part_of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (part,) = tmp_path.iterdir()
    publish(tmp_path / "a.csv", b"a", "write", "")
    assert part.exists()  # too young: its process may not have come to lock it
    older(part)
    publish(out, b"whole", "write", "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "out.csv"]
    assert out.read_bytes() == b"whole"


def test_what_is_locked_or_no_file_of_ours_stays(tmp_path: Path) -> None:
    held, folder, other = (tmp_path / name for name in (".penstock-1.part", ".penstock-2.part", ".penstock-3.partial"))
    held.write_text("living")
    folder.mkdir()
    other.write_text("a user's")
    (tmp_path / ".penstock-4.part").symlink_to(other)
    for one in (held, folder, other):
        older(one)
    with held.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        publish(tmp_path / "out.csv", b"whole", "write", "")
    assert held.read_text() == "living" and folder.is_dir() and other.read_text() == "a user's"
    assert (tmp_path / ".penstock-4.part").is_symlink()


@root_only
def test_calibrate_refuses_a_full_disk_before_it_measures(penstock: Penstock, tmp_path: Path) -> None:
    with _Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=64k", "tmpfs") as place:
        began = time.monotonic()
        ran = penstock(*CALIBRATE, place / "p.csv", tmp_path)
        assert_one_line_error(ran, "write profile", "p.csv", "are free", "--out")
        assert time.monotonic() - began < 60 and "removed afterwards" not in ran.out
        assert list(place.iterdir()) == []


@pytest.mark.parametrize("json", [False, True])
def test_a_profile_that_cannot_be_written_in_the_end_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], json: bool
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "_listen", lambda _answer: None)
    monkeypatch.setattr("penstock._publish.os.fsync", full)
    out = tmp_path / "p.csv"
    code = cli.main([*CALIBRATE, str(out), str(tmp_path), *(["--json"] if json else [])])
    monkeypatch.undo()
    text, told = capfdbinary.readouterr()
    assert code == 1 and b"No space left" in told and b"standard output" in told
    assert list(tmp_path.iterdir()) == []
    if json:
        import json as reader

        found = reader.loads(text)
        assert found["profile"] is None
        text = found["text"].encode()
    kept = tmp_path / "kept.csv"
    kept.write_bytes(text[text.index(b"# Penstock") :])
    with Context("host", profile=kept):  # whole: it is understood
        pass
    kept.write_bytes(b"")
    with pytest.raises(Error, match="it is empty"):
        Context("host", profile=kept)
