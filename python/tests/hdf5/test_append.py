"""Steps and datasets added to HDF5 files in place: after every single write stock HDF5 reads what was there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

h5py = pytest.importorskip("h5py")
from hdf5_kit import debian_tool, equal, fetch, numbered, put, run_tool, whole  # noqa: E402
from hdf5_steps import INT, Steps, check_content, grow, make, make_with_h5py  # noqa: E402

from penstock import DType, Error  # noqa: E402
from penstock.formats.hdf5.changing import apply as hdf5_apply  # noqa: E402
from penstock.formats.hdf5.reader import Hdf5  # noqa: E402
from penstock.formats.hdf5.write import Hdf5Writer  # noqa: E402
from penstock.formats.model import NewDataset  # noqa: E402


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.h5"


def steps_of(path: Path, steps: Steps, shapes: list[dict]) -> None:
    """Publishes one growth after the other, looking at every state in between."""
    for one in shapes:
        writer = Hdf5Writer(path, append=True)
        before, after = grow(writer, one)
        steps.publish(writer, lambda image, old=before, new=after: check_content(image, old, new))
        check_content(path, after, after)


def test_every_state_between_two_steps_is_a_valid_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own files, over the first split of a B-tree (at 64 chunks), three datasets at a time."""
    make(path, {"a": (60, 3, 5), "g/b": (1,), "c": (120, 2)}, {"a": (1, 3, 5), "g/b": (4,), "c": (1, 2)})
    steps = Steps(monkeypatch)
    steps_of(path, steps, [{"a": (60 + k, 3, 5), "g/b": (1 + k,), "c": (120 + k, 2)} for k in range(1, 13)])
    assert steps.looked > 80
    assert {one.kind for one in steps.changes} == {"superblock", "TREE", "object header"}
    assert all(one.in_one_page for one in steps.changes)


@pytest.mark.parametrize("libver", ["earliest", "v108"])
@pytest.mark.parametrize("first", [0, 501, 801, 1501])
@pytest.mark.parametrize("block", [0, 512])
def test_files_of_others_too(path: Path, monkeypatch: pytest.MonkeyPatch, libver: str, first: int, block: int) -> None:
    shapes, chunks = {"a": (61, 3, 5), "b": (10, 4)}, {"a": (1, 3, 5), "b": (4, 4)}
    make_with_h5py(path, shapes, chunks, libver=libver, first=first, userblock_size=block)
    steps = Steps(monkeypatch)
    steps_of(path, steps, [{"a": (61 + k, 3, 5), "b": (10 + k, 4)} for k in range(1, 6)])
    assert steps.looked >= 15


def test_headers_that_cross_a_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty datasets beside each other; their headers end in a checksum, so they must change in one step."""
    shapes = {f"v{number}": (2, 4) for number in range(20)}
    make_with_h5py(path, shapes, dict.fromkeys(shapes, (1, 4)), libver="v108")
    steps = Steps(monkeypatch)
    steps_of(path, steps, [dict.fromkeys(shapes, (3, 4))])
    assert [one.kind for one in steps.changes if not one.in_one_page].count("object header") > 0


def test_the_extensible_array_of_the_latest_format(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_with_h5py(path, {"a": (1, 3)}, {"a": (1, 3)}, libver="latest", maxshape=(None, 3))
    steps = Steps(monkeypatch)
    steps_of(path, steps, [{"a": (count, 3)} for count in (2, 3, 4, 5, 6, 20, 37, 38, 70, 300, 301, 900)])


@pytest.mark.parametrize("how", ["ours", "earliest"])
def test_growth_in_all_dimensions(path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "ours":
        make(path, {"a": (2, 3, 2)}, {"a": (1, 2, 2)})
    else:
        make_with_h5py(path, {"a": (2, 3, 2)}, {"a": (1, 2, 2)}, libver=how)
    shapes = [(2, 4, 2), (2, 4, 9), (5, 5, 10), (5, 12, 11), (6, 12, 16)]
    steps = Steps(monkeypatch)
    steps_of(path, steps, [{"a": shape} for shape in shapes])


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("how", ["ours", "earliest"])
def test_deep_trees(path: Path, monkeypatch: pytest.MonkeyPatch, how: str, every: int) -> None:
    """From two levels to three, where nodes of several levels change at a time; and a growth of many chunks. A look at
    thousands of chunks takes a tenth of a second: three growths of three levels have one, and then each `every`th."""
    if how == "ours":
        make(path, {"a": (3640, 2)}, {"a": (1, 2)})
    else:
        make_with_h5py(path, {"a": (3640, 2)}, {"a": (1, 2)}, libver=how)
    steps, writer, deep = Steps(monkeypatch), Hdf5Writer(path, append=True), 0
    for count in (*range(3641, 3800, 3), 5000):
        before, after = grow(writer, {"a": (count, 2)})
        look = count == 5000 or 1 <= deep <= 3 or (deep and deep % every == 0)
        steps.publish(writer, (lambda image, o=before, n=after: check_content(image, o, n)) if look else None)
        deep += deep > 0 or sum(one.kind == "TREE" for one in steps.changes) >= 3
    assert deep > 3
    check_content(path, after, after)
    with h5py.File(path) as file:
        assert file["a"].id.get_num_chunks() == 5000


def test_nodes_larger_than_a_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six dimensions: a node of the B-tree has 4696 bytes."""
    shape, chunk = (60, 2, 1, 1, 1, 2), (1, 1, 1, 1, 1, 2)
    make(path, {"a": shape}, {"a": chunk})
    steps = Steps(monkeypatch)
    crossing = 0
    for count in range(61, 70):
        steps_of(path, steps, [{"a": (count, *shape[1:])}])
        crossing += sum(not one.in_one_page for one in steps.changes)
    assert crossing


def test_stock_tools_read_and_change_every_state(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """h5dump of an older HDF5 reads it; h5py, and we, append to it."""
    make(path, {"a": (64, 2)}, {"a": (1, 2)})
    dump = debian_tool("h5dump")

    def check(image: Path) -> None:
        assert "(63,0)" in run_tool(dump, "-d", "/a", image)
        ours = image.with_name("ours.h5")
        shutil.copyfile(image, ours)
        with h5py.File(image, "r+") as file:
            file["a"].resize((70, 2))
            file["a"][64:] = numbered((70, 2))[64:]
        check_content(image, {"a": (70, 2)}, {"a": (70, 2)})
        writer = Hdf5Writer(ours, append=True)
        grow(writer, {"a": (75, 2)})
        Steps.publish(Steps(pytest.MonkeyPatch()), writer, None)
        check_content(ours, {"a": (75, 2)}, {"a": (75, 2)})

    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (66, 2)})
    steps = Steps(monkeypatch)
    steps.publish(writer, check)
    assert steps.looked >= 4


@pytest.mark.parametrize("order", ["reversed", "leaves first", "torn header"])
def test_other_orders_and_torn_writes_are_seen_to_fail(path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    """The control: what is checked above would notice."""

    def reorder(changes: list) -> list:
        if order == "reversed":
            return changes[::-1]
        if order == "leaves first":
            return sorted(changes, key=lambda one: (one.rank[0], -one.rank[1]))
        *rest, header = changes
        half = len(header.new) // 2
        return [*rest, header._replace(new=header.new[:half]), header]

    make(path, {"a": (122, 2)}, {"a": (1, 2)})
    steps = Steps(monkeypatch, reorder)
    with pytest.raises((AssertionError, OSError, KeyError)):
        steps_of(path, steps, [{"a": (count, 2)} for count in range(123, 190)])


def test_datasets_and_attributes_are_added_in_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path, {"a": (5, 2), "g/b": (3,)}, {"a": (1, 2), "g/b": (4,)})
    steps, count = Steps(monkeypatch), 0
    for count in range(25):
        writer = Hdf5Writer(path, append=True)
        before = {name: writer.info(name).shape for name in writer.names()}
        titles = (writer.attributes().get("title"), "t" * count)
        writer.create([NewDataset(f"g/new{count}", (700,), INT, attributes={"units": "m"})])
        put(writer, f"g/new{count}")
        writer.set_attributes("", {"title": titles[1], f"a{count}": count, "step": float(count)})
        writer.set_attributes("a", {"text": "x" * count, "n": count})

        def check(image: Path, before: dict = before, titles: tuple = titles) -> None:
            check_content(image, before, before)
            with h5py.File(image) as file:
                assert file.attrs.get("title") in titles
                assert set(before) <= {"a", *(f"g/{name}" for name in file["g"])}

        steps.publish(writer, check)
    with h5py.File(path) as file:
        assert len(file["g"]) == 26
        assert len(file.attrs) == 27
        assert file["a"].attrs["n"] == count
        equal(file["g/new7"][...].tobytes(), numbered((700,)))
    run_tool(debian_tool("h5dump"), "-H", path)


def test_old_style_groups_of_h5py_get_datasets(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_with_h5py(path, {"a": (5, 2)}, {"a": (1, 2)})
    steps = Steps(monkeypatch)
    for count in range(30):
        writer = Hdf5Writer(path, append=True)
        before = {name: writer.info(name).shape for name in writer.names()}
        writer.create([NewDataset(f"dataset with a rather long name {count}", (700,), INT)])
        put(writer, f"dataset with a rather long name {count}")
        steps.publish(writer, lambda image, shapes=before: check_content(image, shapes, shapes))
    with h5py.File(path) as file:
        assert len(file) == 31


def test_filtered_datasets_get_chunks_that_are_stored_as_they_are(path: Path) -> None:
    with h5py.File(path, "w") as file:
        options = {"chunks": (1, 30), "maxshape": (None, 30), "compression": "gzip", "shuffle": True}
        file.create_dataset("a", data=numbered((4, 30)), **options)
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (7, 30)})
    writer.publish(durable=False)
    assert Hdf5(path).table("a", whole((7, 30))).encoded.tolist() == [True] * 4 + [False] * 3
    check_content(path, {"a": (7, 30)}, {"a": (7, 30)})
    assert "(6,29)" in run_tool(debian_tool("h5dump"), "-d", "/a", "-s", "6,29", "-c", "1,1", path)


def refuse(path: Path, words: str, action: object) -> None:
    """The action, or publishing afterwards, raises; the file is as it was."""
    content = path.read_bytes()
    writer = Hdf5Writer(path, append=True)
    with pytest.raises(Error, match=words):
        action(writer)  # type: ignore[operator]
        writer.publish(durable=True)
    writer.abandon()
    assert path.read_bytes() == content
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_cannot_be_made_safe_is_refused_and_nothing_changed(path: Path) -> None:
    make_with_h5py(path, {"a": (5, 2)}, {"a": (1, 2)}, libver="latest")
    refuse(path, "BTHD.*h5py", lambda writer: grow(writer, {"a": (6, 2)}))
    with h5py.File(path, "w", libver="v108") as file:
        for number in range(9):
            file[f"d{number}"] = number
    refuse(path, "in place.*h5py", lambda writer: writer.create([NewDataset("more", (3,), INT)]))
    options = {"chunks": (4, 3), "maxshape": (None, 3), "compression": "gzip"}
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=numbered((6, 3)), **options)
        file.create_dataset("fixed", data=numbered((6, 3)))
    refuse(path, "encoded and only partly used", lambda writer: writer.extend("a", (9, 3)))
    refuse(path, "must be between 6", lambda writer: writer.extend("a", (5, 3)))
    refuse(path, "fixed", lambda writer: writer.extend("fixed", (7, 3)))


def test_a_file_that_keeps_its_free_space_is_refused(path: Path) -> None:
    with h5py.File(path, "w", fs_strategy="fsm", fs_persist=True) as file:
        file["a"] = 1
    with pytest.raises(Error, match="free space"):
        Hdf5Writer(path, append=True)


def test_without_direct_io_what_crosses_a_page_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_direct_io(name: str) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(hdf5_apply, "_open_direct", no_direct_io)
    make_with_h5py(path, {"a": (62, 3, 5)}, {"a": (1, 3, 5)}, first=801)
    refuse(path, "crosses a page", lambda writer: grow(writer, {"a": (63, 3, 5)}))


def test_an_abandoned_append_leaves_the_file_as_it_was(path: Path) -> None:
    make(path, {"a": (64, 200)}, {"a": (1, 200)})
    content = path.read_bytes()
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (200, 200)})
    writer.set_attributes("", {"title": "never"})
    assert path.stat().st_size > len(content)
    writer.abandon()
    assert path.read_bytes() == content
    writer.publish(durable=False)  # nothing is left to publish
    assert path.read_bytes() == content


def test_what_others_left_behind_the_end_stays_unless_space_is_needed(path: Path) -> None:
    make(path, {"a": (3, 20)}, {"a": (1, 20)})
    with path.open("ab") as file:
        file.write(b"a signature")
    content = path.read_bytes()
    Hdf5Writer(path, append=True).abandon()
    Hdf5Writer(path, append=True).publish(durable=True)
    assert path.read_bytes() == content


def test_what_a_dead_writer_reserved_is_used_again(path: Path) -> None:
    make(path, {"a": (3, 2000)}, {"a": (1, 2000)})
    size = path.stat().st_size
    code = f"""
import os
from hdf5_steps import grow
from penstock.formats.hdf5.write import Hdf5Writer
grow(Hdf5Writer({str(path)!r}, append=True), {{"a": (9, 2000)}})
os._exit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert path.stat().st_size > size + 6 * 8000
    check_content(path, {"a": (3, 2000)}, {"a": (3, 2000)})
    writer = Hdf5Writer(path, append=True)
    writer.extend("a", (4, 2000))
    assert fetch(writer, "a")[3 * 8000 :] == bytes(8000)
    put(writer, "a", (3, 2000))
    writer.publish(durable=False)
    check_content(path, {"a": (4, 2000)}, {"a": (4, 2000)})
    assert path.stat().st_size < size + 3 * 8192


def test_other_writers_and_readers_are_kept_out_as_hdf5_does(path: Path) -> None:
    make(path, {"a": (3, 2)}, {"a": (1, 2)})
    writer = Hdf5Writer(path, append=True)
    with pytest.raises(Error, match="open"):
        Hdf5Writer(path, append=True)
    with pytest.raises(Error, match="open for writing"):
        Hdf5(path)
    with pytest.raises(BlockingIOError):
        h5py.File(path)
    writer.publish(durable=False)
    with h5py.File(path), pytest.raises(Error, match="open"):
        Hdf5Writer(path, append=True)


def test_publishing_again_and_changes_by_others_in_between(path: Path) -> None:
    make(path, {"a": (3, 2)}, {"a": (1, 2)})
    writer = Hdf5Writer(path, append=True)
    grow(writer, {"a": (4, 2)})
    writer.publish(durable=True)
    with h5py.File(path, "r+") as file:
        file["a"].resize((6, 2))
        file["a"][...] = numbered((6, 2))
    grow(writer, {"a": (7, 2)})
    writer.publish(durable=True)
    check_content(path, {"a": (7, 2)}, {"a": (7, 2)})


def test_a_closed_descriptor_is_not_touched_when_another_file_has_its_number(tmp_path: Path) -> None:
    """The garbage collector closes the file of a cycle before it asks who else has to let go."""
    path, other = tmp_path / "x.h5", tmp_path / "other"
    make(path, {"a": (4, 3)}, {"a": (1, 3)})
    other.write_bytes(b"precious" * 10_000)
    writer = Hdf5Writer(path, append=True)
    writer.create([NewDataset("b", (100_000,), DType.of("f8"))])
    number = writer._session.descriptor
    writer._session.real.close()
    with other.open("r+b") as stream:
        assert stream.fileno() == number
        writer.abandon()
    assert other.read_bytes() == b"precious" * 10_000
    again = Hdf5Writer(path, append=True)
    again.create([NewDataset("c", (4,), DType.of("f8"))])
    again.publish(durable=False)
    again.close()
