"""What a power failure can leave of a durable change to an HDF5 file, and how opening it for writing repairs that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
from hdf5_kit import numbered, put  # noqa: E402
from hdf5_steps import INT, check_content, grow, make, make_with_h5py  # noqa: E402

from penstock import Error  # noqa: E402
from penstock._arrays.dtype import DType  # noqa: E402
from penstock.formats.hdf5.changing import making as hdf5_making  # noqa: E402
from penstock.formats.hdf5.changing.apply import apply, check_applicable  # noqa: E402
from penstock.formats.hdf5.changing.journal import has_note, note_of, read_note, write_note  # noqa: E402
from penstock.formats.hdf5.changing.order import Change  # noqa: E402
from penstock.formats.hdf5.changing.session import read_head  # noqa: E402
from penstock.formats.hdf5.write import Hdf5Writer  # noqa: E402
from penstock.formats.model import NewDataset  # noqa: E402

SHAPES, CHUNKS = {"a": (64, 3), "b": (64, 3)}, {"a": (1, 3), "b": (1, 3)}
GROWN = {"a": (66, 3), "b": (66, 3)}
Leave = Callable[[int, Sequence[Change]], None]


class PowerFailure(BaseException):
    """The machine goes dark."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


def fail(path: Path, leave: Leave, add: str = "") -> None:
    """A change of which `leave(descriptor, changes)` says what got to storage when the power went."""

    def apply(name: str, descriptor: int, changes: Sequence[Change]) -> None:
        leave(descriptor, changes)
        raise PowerFailure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdf5_making, "apply", apply)
        patch.setattr(hdf5_making.Making, "_back_out", lambda self, error: None)
        writer = Hdf5Writer(path, append=True)
        grow(writer, GROWN)
        if add:
            writer.create([NewDataset(add, (600,), INT)])
            put(writer, add)
        with pytest.raises(PowerFailure):
            writer.publish(durable=True)
    assert note_there(path)


def note_there(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return has_note(descriptor) and read_note(descriptor, read_head(str(path), descriptor).end) is not None
    finally:
        os.close(descriptor)


def nothing(descriptor: int, changes: Sequence[Change]) -> None:
    """None of the changes got there."""


def everything(descriptor: int, changes: Sequence[Change]) -> None:
    for one in changes:
        os.pwrite(descriptor, one.new, one.offset)


def half(descriptor: int, changes: Sequence[Change]) -> None:
    everything(descriptor, changes[: max(1, len(changes) // 2)])


def sectors(seed: int) -> Leave:
    """Each sector with an even chance."""
    chance = np.random.default_rng(seed)

    def leave(descriptor: int, changes: Sequence[Change]) -> None:
        for one in changes:
            begin = 0
            while begin < len(one.new):
                end = begin + 512 - (one.offset + begin) % 512
                if chance.random() < 0.5:
                    os.pwrite(descriptor, one.new[begin:end], one.offset + begin)
                begin = end

    return leave


def settle(path: Path) -> None:
    Hdf5Writer(path, append=True).abandon()
    assert not note_there(path)
    assert path.stat().st_size == read_end(path)


def read_end(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return read_head(str(path), descriptor).end
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_of_sectors_is_repaired_when_the_file_is_opened_for_writing(path: Path, seed: int) -> None:
    make(path, SHAPES, CHUNKS)
    fail(path, sectors(seed))
    settle(path)
    check_content(path, GROWN, GROWN)


@pytest.mark.parametrize("leave", [nothing, half, everything])
@pytest.mark.parametrize("build", [make, make_with_h5py])
def test_links_of_old_groups_are_repaired_too_though_their_bytes_change_twice(
    path: Path, leave: Leave, build: Callable[..., None]
) -> None:
    build(path, SHAPES, CHUNKS)
    fail(path, leave, add="more")
    settle(path)
    check_content(path, SHAPES, GROWN)
    with h5py.File(path) as file:
        assert ("more" in file) == (leave is not nothing)
    for _ in range(2):
        writer = Hdf5Writer(path, append=True)
        writer.create([NewDataset(f"later{len(writer.names())}", (600,), INT)])
        writer.publish(durable=True)
    check_content(path, SHAPES, GROWN)


def test_what_a_failed_fsync_forgot_is_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All changes are in the page cache, but perhaps not on the disk: the note goes after they were synced."""
    make(path, SHAPES, CHUNKS)
    fail(path, everything)
    written, real_write, real_sync = [], os.pwrite, os.fsync
    monkeypatch.setattr(os, "pwrite", lambda *a: (written.append("write"), real_write(*a))[1])
    monkeypatch.setattr(os, "fsync", lambda fd: (written.append("sync"), real_sync(fd))[1])
    settle(path)
    assert set(written[:-1]) == {"write"}
    assert written[-1] == "sync"


def test_changes_whose_new_structures_are_gone_are_taken_back(path: Path) -> None:
    make(path, SHAPES, CHUNKS)
    old = path.read_bytes()
    fail(path, half)
    descriptor = os.open(path, os.O_RDWR)
    note = read_note(descriptor, len(old))
    assert note is not None
    assert note.fresh
    os.pwrite(descriptor, bytes(note.fresh[0][1]), note.fresh[0][0])
    os.close(descriptor)
    settle(path)
    assert path.read_bytes() == old


def test_a_file_that_was_cut_back_is_not_changed_by_a_note(path: Path) -> None:
    """The note goes with what it leads to."""
    make(path, SHAPES, CHUNKS)
    old = path.read_bytes()
    fail(path, nothing)
    os.truncate(path, len(old))
    settle(path)
    assert path.read_bytes() == old


@pytest.mark.parametrize("damage", ["cut", "turned bit"])
def test_a_note_that_is_not_whole_was_not_in_force(path: Path, damage: str) -> None:
    make(path, SHAPES, CHUNKS)
    old = path.read_bytes()
    fail(path, nothing)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[-40:]
    else:
        content[-2000] ^= 1
    path.write_bytes(content)
    assert not note_there(path)
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (65, 3)})
    writer.publish(durable=True)
    check_content(path, {**SHAPES, "a": (65, 3)}, {**SHAPES, "a": (65, 3)})
    assert path.read_bytes()[:8] == old[:8]


@pytest.mark.parametrize("leave", [nothing, half, everything])
def test_a_note_gives_way_to_what_others_wrote_since(path: Path, leave: Leave) -> None:
    """HDF5 cuts the note off. Where it comes back, after a second failure, the file stays as others have made it."""
    make(path, SHAPES, CHUNKS)
    fail(path, leave)
    with path.open("rb") as file:
        note = read_note(file.fileno(), 0)
    assert note is not None
    with h5py.File(path, "r+") as opened:
        shape = (opened["a"].shape[0] + 2, 3)
        opened["a"].resize(shape)
        opened["a"][...] = numbered(shape)
    assert not note_there(path)
    with path.open("rb+") as file:
        write_note(file.fileno(), path.stat().st_size, note)
    assert note_there(path)
    settle(path)
    check_content(path, {"a": shape}, {"a": shape})
    longer = {"a": (shape[0] + 1, 3)}
    writer = Hdf5Writer(path, append=True)
    grow(writer, longer)
    writer.publish(durable=True)
    check_content(path, longer, longer)


def test_a_note_stays_where_hdf5_cannot_open_what_others_wrote_since(path: Path) -> None:
    make(path, SHAPES, CHUNKS)
    fail(path, half)
    with path.open("rb+") as file:
        for one in read_note(file.fileno(), 0).changes:
            os.pwrite(file.fileno(), bytes(len(one.new)), one.offset)
    content = path.read_bytes()
    with pytest.raises(Error, match="damaged"):
        Hdf5Writer(path, append=True)
    assert path.read_bytes() == content


def test_elements_are_never_taken_for_a_note(path: Path, tmp_path: Path) -> None:
    """Not in a file that was published, and not in one whose writer died before it was."""
    forged = note_of(0, True, [], [Change((0, 0), "", 0, b"\x89H", b"xx"), Change((0, 0), "", 2, b"DF", b"DF")])
    make_with_h5py(path, SHAPES, CHUNKS)  # without pages, so that the file may end anywhere
    writer = Hdf5Writer(path, append=True)
    (table,) = writer.create([NewDataset("theirs", (8191,), DType.of("int8"))])
    end = int(table.offset_bytes[0]) + 8191
    with path.open("rb+") as file:
        write_note(file.fileno(), end - 4095, forged)
        size = path.stat().st_size
        assert size == end + 1
        assert not has_note(file.fileno())
        os.ftruncate(file.fileno(), end)
        assert read_note(file.fileno(), 0) is not None, "the control: the size alone says that it is none"
        os.ftruncate(file.fileno(), size)
    died = tmp_path / "died.h5"
    shutil.copyfile(path, died)
    writer.publish(durable=True)
    assert b"penstock note" in path.read_bytes()[: read_end(path)]
    for one in (path, died):
        content = one.read_bytes()
        Hdf5Writer(one, append=True).abandon()
        assert one.read_bytes() == content
        check_content(one, SHAPES, SHAPES)
    with path.open("rb+") as file:  # also where the size is that of a file with a note
        os.ftruncate(file.fileno(), end)
        assert read_note(file.fileno(), 0) is not None
        assert read_note(file.fileno(), end) is None


LOOK = """
import os, sys
opened = set()
def note(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        opened.add(os.fsdecode(args[0]))
sys.addaudithook(note)
from hdf5_steps import grow
from penstock.formats.hdf5.write import Hdf5Writer
for durable in (True, False):
    writer = Hdf5Writer({path!r}, append=True)
    grow(writer, {{"a": (writer.info("a").shape[0] + 1, 3)}})
    writer.publish(durable)
print(*sorted(name for name in opened if name.startswith({folder!r})))
"""


def test_nothing_beside_the_file_is_looked_at_or_made(path: Path) -> None:
    """What strangers put there under any name changes nothing, and nothing of theirs is written into."""
    make(path, SHAPES, CHUNKS)
    code = LOOK.format(path=str(path), folder=str(path.parent))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(path)]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_durable_change_is_on_storage_in_the_right_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data, new structures and the note; then the changes; then they again, and the note goes last."""
    make(path, SHAPES, CHUNKS)
    seen: list[str] = []

    def watch(owner: object, name: str) -> None:
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a: (seen.append(name), real(*a))[1])

    watch(hdf5_making.Session, "note")
    watch(hdf5_making, "apply")
    watch(os, "fdatasync")
    watch(os, "ftruncate")
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (65, 3)})
    writer.publish(durable=True)
    assert seen == ["note", "fdatasync", "apply", "fdatasync", "ftruncate"]


def test_changes_that_are_taken_back_are_synced_before_their_note_goes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut may keep some of them, and nothing to take them back by."""
    make(path, SHAPES, CHUNKS)
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (65, 3)})
    seen: list[str] = []
    apply, undo, sync, cut = hdf5_making.apply, hdf5_making.undo, os.fdatasync, os.ftruncate

    def some(name: str, descriptor: int, changes: Sequence[Change]) -> None:
        apply(name, descriptor, changes[:-1])
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(hdf5_making, "apply", some)
    monkeypatch.setattr(hdf5_making, "undo", lambda *a: (seen.append("undo"), undo(*a))[1])
    monkeypatch.setattr(os, "fdatasync", lambda *a: (seen.append("sync"), sync(*a))[1])
    monkeypatch.setattr(os, "ftruncate", lambda *a: (seen.append("cut"), cut(*a))[1])
    with pytest.raises(Error, match="Input/output"):
        writer.publish(durable=True)
    assert seen == ["sync", "undo", "sync", "cut"]


def test_a_change_across_pages_is_not_made_in_a_file_that_took_the_name(tmp_path: Path) -> None:
    ours, other = tmp_path / "x", tmp_path / "other"
    ours.write_bytes(bytes(3 * 4096))
    with ours.open("rb+") as file:
        try:
            check_applicable(str(ours), [Change((0, 0), "", 4090, bytes(12), b"x" * 12)])
        except Error:
            pytest.skip("no direct I/O here")
        other.write_bytes(bytes(3 * 4096))
        other.replace(ours)
        with pytest.raises(OSError, match="another file has taken its name"):
            apply(str(ours), file.fileno(), [Change((0, 0), "", 4090, bytes(12), b"x" * 12)])
    assert ours.read_bytes() == bytes(3 * 4096)


def test_a_writer_whose_sync_failed_fails_from_then_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path, SHAPES, CHUNKS)

    def fails(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (65, 3)})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fails)
        with pytest.raises(Error, match="fdatasync"):
            writer.publish(durable=True)
    with pytest.raises(Error, match="fdatasync"):
        writer.publish(durable=True)
    with pytest.raises(Error, match="fdatasync"):
        writer.extend("a", (66, 3))
