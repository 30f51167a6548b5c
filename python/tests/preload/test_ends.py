"""Programs from packages end as they would where a disk is full, a limit is reached, a signal comes or a pipe closes.

The same exit code, the same words on stderr and the same bytes, as they are and under the library with --match."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from c_abi import preload_rig as rig
from command import PENSTOCK

# By name of the program that has to be there. RUN stands before it. `full` has room for 16 of the 24 MiB of `big`.
FULL = {
    "dd": "RUN dd if=big of=full/x bs=1M",
    "cp": "RUN cp big full/x",
    "tar": "RUN tar cf full/x big",
    "gzip": "RUN gzip -nc < big > full/x",
    "sort": "RUN sort -S 64M lines -o full/x",
    "rsync": "RUN rsync -a --inplace big full/",
    "sqlite3": "RUN sqlite3 full/x 'create table t(a); insert into t values (zeroblob(24000000));'",
    "git": "git init -q full/x && RUN git -C full/x -c core.bigFileThreshold=1m add --no-warn-embedded-repo ../../big",
    "gcc": "dd if=big of=full/y bs=1M 2>/dev/null; RUN gcc -pipe -g -O0 -c program.c -o full/x",
    "python3": f'RUN {sys.executable} -c \'f = open("full/x", "wb"); [f.write(bytes(100000)) for _ in range(400)]\'',
}
ENDS = {
    "limit": "ulimit -f 8000; RUN dd if=big of=out/x bs=1M",
    "limit that is ignored": "ulimit -f 8000; RUN bash -c \"trap '' XFSZ; cp big out/x\"",
    "signal": "RUN timeout -s TERM 0.3 cat < /dev/zero > /dev/null",
    "kill": "RUN timeout -s KILL 0.3 dd if=/dev/zero of=/dev/null bs=1M status=none",
    "pipe": "RUN cat big | head -c 1000000 > out/x; exit ${PIPESTATUS[0]}",
    "unpacked": "RUN gzip -n big -c | RUN gzip -d > out/x && RUN tar cf - --mtime=@0 big | RUN tar xf - -C out",
    "repository": "git init -q out/r && cp big out/r && RUN git -C out/r add big && RUN git -C out/r -c user.name=a"
    " -c user.email=a commit -qm a && RUN git -C out/r gc -q && git -C out/r fsck && rm -rf out/r",
    "database": "RUN sqlite3 out/x 'pragma journal_mode=wal; create table t(a); insert into t values"
    " (zeroblob(9000000)); update t set a = zeroblob(12000000); pragma wal_checkpoint(truncate);'",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rig.need_library()
    made = tmp_path_factory.mktemp("ends")
    (made / "big").write_bytes(hashlib.shake_128(b"big").digest(24 << 20))
    (made / "lines").write_text("".join(f"{i * 7919 % 1000003} line\n" for i in range(2_500_000)))
    shutil.copy(rig.SOURCES / "hazards.c", made / "program.c")
    return made


@pytest.fixture
def full(folder: Path) -> Iterator[None]:
    """A disk of 16 MiB, of a file system that finds room for data late."""
    image, place = folder / "image", folder / "full"
    place.mkdir(exist_ok=True)
    make = shutil.which("mkfs.ext4", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if make is None or os.getuid() != 0:
        pytest.skip("needs root and mkfs.ext4")
    image.write_bytes(b"")
    os.truncate(image, 20 << 20)
    subprocess.run([make, "-q", "-F", "-O", "^has_journal", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount")
    yield
    subprocess.run(["umount", place], check=True)


def ended(line: str, folder: Path, place: str, under: bool) -> tuple[int, str, dict[str, str]]:
    """The exit code, what was said, and digests of the files left in a folder, which is emptied."""
    for left in (folder / place).iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    before = shlex.join([*PENSTOCK, "run", "--match", "*", "--least", "64KiB", "--"]) if under else ""
    words = ["bash", "-c", line.replace("RUN", before)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=rig.LIMIT_S, check=False)
    files = sorted(path for path in (folder / place).rglob("*") if path.is_file() and ".git" not in path.parts)
    files = [path for path in files if not path.name.endswith("-journal")]  # SQLite's has numbers of chance
    told = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    said = [one for one in done.stderr.splitlines() if " copied, " not in one]  # dd's, with its seconds
    return done.returncode, "\n".join(said), told


@pytest.mark.long
@pytest.mark.parametrize("name", FULL)
def test_a_full_disk_is_told_as_it_was(name: str, folder: Path, full: None) -> None:
    rig.compiler(name)
    without = ended(FULL[name], folder, "full", under=False)
    assert without[0] != 0, without
    assert ended(FULL[name], folder, "full", under=True) == without


@pytest.mark.long
@pytest.mark.parametrize("name", ENDS)
def test_ends_and_bytes_are_the_same(name: str, folder: Path) -> None:
    for needed in ("git", "sqlite3"):
        if needed in ENDS[name]:
            rig.compiler(needed)
    (folder / "out").mkdir(exist_ok=True)
    without = ended(ENDS[name], folder, "out", under=False)
    assert ended(ENDS[name], folder, "out", under=True) == without
