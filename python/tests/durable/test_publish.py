"""Small files that appear whole or not at all; a disk that is full loses no measurements."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Ran, assert_one_line_error, without_signals
from mounts import Mounted, root_only

from penstock import Context, Error, cli
from penstock._files.publish import check_target, publish

Penstock = Callable[..., Ran]
CALIBRATE = ("calibrate", "--device", "host", "--seconds", "1", "--file-bytes", "16MiB", "--out")
KILLED = """
import os, sys
from pathlib import Path
import penstock._files.publish as p
p._write_all = lambda *_: os.kill(os.getpid(), 9)
p.publish(Path(sys.argv[1]), b"half", "write", "")
"""


def test_a_killed_process_leaves_an_older_file_and_nothing_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"older")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert out.read_bytes() == b"older"
    publish(out, b"whole", "write", "")
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_bytes() == b"whole"


def test_what_cannot_be_published_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("a file")
    for name, code, cause in (
        ("dir", "not_a_regular_file", "not a regular file"),
        ("no/p.csv", "not_found", "no such directory"),
        ("file/p.csv", "not_found", "no such directory"),
    ):
        for ask in (check_target, lambda path, *words: publish(path, b"", *words)):
            with pytest.raises(Error, match=cause) as told:
                ask(tmp_path / name, "write profile", "name another")
            assert (told.value.code, told.value.operation, told.value.advice) == (code, "write profile", "name another")
    check_target(tmp_path / "new.csv", "write profile", "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dir", "file"]


@root_only
def test_calibrate_refuses_a_full_disk_before_it_measures(penstock: Penstock, tmp_path: Path) -> None:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=64k", "tmpfs") as place:
        began = time.monotonic()
        ran = penstock(*CALIBRATE, place / "p.csv", tmp_path)
        assert_one_line_error(ran, "write profile", "p.csv", "are free", "--out")
        assert time.monotonic() - began < 60 and "removed afterwards" not in ran.out
        assert list(place.iterdir()) == []


@pytest.mark.parametrize("json", [False, True])
def test_a_profile_that_cannot_be_written_in_the_end_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], json: bool
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    without_signals(monkeypatch)
    monkeypatch.setattr("penstock._files.publish._write_all", full)
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
