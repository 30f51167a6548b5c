"""New folders of stores beside what others do in the same folder at the same time: living and killed writers, and
strangers who may rename there. Nothing is removed, replaced or written to but what is ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.formats import new_folder
from penstock.formats.new_folder import NewFolder
from penstock.formats.zarr.nodes import Nodes

STRANGER = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs another user, and so root")


def content(path: Path) -> dict[str, bytes]:
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_folders_of_living_writers_stay(tmp_path: Path) -> None:
    first, second = (NewFolder(str(tmp_path / "x"), ["mark"]) for _ in range(2))
    for one in (first, second):
        (Path(one.temporary) / "mark").write_text(one.temporary)
    child = os.fork()
    if child == 0:
        NewFolder(str(tmp_path / "x"), ["mark"]).abandon()
        first.abandon()  # the parent's
        os._exit(0 if len(names(tmp_path)) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    first.publish(durable=True)
    second.publish(durable=True)
    assert names(tmp_path) == ["x"] and (tmp_path / "x" / "mark").read_text() == second.temporary


@pytest.mark.parametrize(("came", "gets"), [(0o777, 0o755), (0o700, 0o700)])
def test_a_folder_that_came_meanwhile_takes_rights_away_only(tmp_path: Path, came: int, gets: int) -> None:
    mask = os.umask(0o022)
    new = NewFolder(str(tmp_path / "x"), ["mark"])
    os.umask(mask)
    (tmp_path / "x").mkdir()
    (tmp_path / "x").chmod(came)
    new.publish(durable=False)
    assert (tmp_path / "x").stat().st_mode & 0o7777 == gets and names(tmp_path) == ["x"]


@root_only
def test_a_strangers_folder_under_the_name_of_a_temporary_stays(tmp_path: Path) -> None:
    first = NewFolder(str(tmp_path / "x"), ["mark"])
    name = Path(first.temporary)
    first.abandon()
    name.mkdir()
    (name / "mark").touch()
    os.chown(name, STRANGER, STRANGER)
    NewFolder(str(tmp_path / "x"), ["mark"]).publish(durable=False)
    assert names(tmp_path) == [name.name, "x"] and names(name) == ["mark"]


def folder_of_others(name: Path) -> Path:
    name.mkdir()
    (name / "chapter").write_text("precious")
    return name


def exchange_names(one: Path, other: Path) -> None:
    """As whoever may rename in the folder can at any moment."""
    one.rename(f"{one}.aside")
    other.rename(one)


def test_a_folder_that_came_after_the_last_look_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = NewFolder(str(tmp_path / "x"), ["mark"])
    monkeypatch.setattr(new_folder, "need_no_writer", lambda name: folder_of_others(Path(name)))
    with pytest.raises(penstock.Error, match="other things in it"):
        new.publish(durable=False)
    new.abandon()
    assert names(tmp_path) == ["x"] and content(tmp_path / "x") == {"chapter": b"precious"}


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_a_folder_with_other_things_in_it_is_not_replaced(tmp_path: Path, moment: str) -> None:
    if moment == "before":
        folder_of_others(tmp_path / "x.zarr")
    with pytest.raises(penstock.Error, match="other things in it"), penstock.create(tmp_path / "x.zarr") as file:
        file["a"] = np.arange(100)
        folder_of_others(tmp_path / "x.zarr")
    assert names(tmp_path) == ["x.zarr"] and content(tmp_path / "x.zarr") == {"chapter": b"precious"}


def test_a_folder_under_the_name_of_a_dead_temporary_is_kept_if_it_is_none_of_ours(tmp_path: Path) -> None:
    with penstock.create(tmp_path / "x.zarr", device="host"):
        temporary = tmp_path / names(tmp_path)[0]
    (tmp_path / "x.zarr" / "zarr.json").unlink()
    (tmp_path / "x.zarr").rmdir()
    folder_of_others(temporary)
    penstock.save(tmp_path / "x.zarr", {"a": np.arange(100)}, "host")
    assert names(tmp_path) == [temporary.name, "x.zarr"]
    assert content(temporary) == {"chapter": b"precious"}


@pytest.mark.parametrize("moment", ["removed", "made"])
def test_writers_of_one_name_at_once_do_not_remove_each_others_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def made() -> NewFolder:
        new = NewFolder(str(tmp_path / "x"), ["mark"])
        (Path(new.temporary) / "mark").touch()
        return new

    made().publish(durable=False)
    others: list[NewFolder] = []
    if moment == "removed":  # the older folder, when another writer comes
        remove = new_folder._remove_one
        monkeypatch.setattr(new_folder, "_remove_one", lambda path: (others.append(made()), remove(path)))
        made().publish(durable=False)
        monkeypatch.undo()
        assert len(others) == 1
    else:  # another one takes a folder for dead which is not locked yet
        make = os.mkdir
        monkeypatch.setattr(os, "mkdir", lambda *a: (make(*a), monkeypatch.undo(), Path(a[0]).rmdir()))
        others.append(made())
    others[0].publish(durable=False)
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("moment", ["published", "abandoned"])
def test_a_folder_that_takes_the_name_of_a_temporary_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    thesis = folder_of_others(tmp_path / "thesis")
    first = NewFolder(str(tmp_path / "x"), ["mark"])
    (Path(first.temporary) / "mark").touch()
    first.publish(durable=False)
    second = NewFolder(str(tmp_path / "x"), ["mark"])
    (Path(second.temporary) / "mark").touch()
    if moment == "abandoned":
        exchange_names(Path(second.temporary), thesis)
        second.abandon()
    else:
        exchange = new_folder._exchange

        def and_then_others(one: str, other: str) -> bool:
            done = exchange(one, other)
            exchange_names(Path(one), thesis)
            return done

        monkeypatch.setattr(new_folder, "_exchange", and_then_others)
        second.publish(durable=False)
    assert content(Path(second.temporary)) == {"chapter": b"precious"}


@pytest.mark.parametrize("name", ["x.nc3", "x.zarr", "x.h5", "x.npy"])
def test_a_link_that_takes_the_name_of_a_temporary_is_not_written_through(tmp_path: Path, name: str) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir()
    shared.mkdir()
    precious = folder_of_others(home / "precious") if name == "x.zarr" else home / "precious"
    if name != "x.zarr":
        precious.write_text("precious")
    before = content(home)
    with pytest.raises(penstock.Error), penstock.create(shared / name, device="host") as file:
        grows: dict[str, Any] = {"resizable": (None, 1000), "dimensions": ("t", "x")} if name == "x.nc3" else {}
        made = file.create_dataset("data", (0, 1000) if grows else (1000,), "f8", **grows)
        temporary = shared / names(shared)[0]
        temporary.rename(shared / "aside")
        temporary.symlink_to(precious)
        if grows:
            made.append(np.ones((1, 1000)))
        else:
            made[...] = np.ones(1000)
    assert content(home) == before


def test_a_store_that_is_replaced_while_its_arrays_are_listed_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    penstock.save(tmp_path / "x.zarr", {"a": np.arange(9)}, "host")
    folders = Nodes._folders

    def of_the_replaced(nodes: Nodes, name: str) -> list[str]:
        monkeypatch.undo()
        penstock.save(tmp_path / "x.zarr", {"a": np.arange(7)}, "host")
        return [one for one in folders(nodes, name) if not one]  # its folder, still open, was emptied

    monkeypatch.setattr(Nodes, "_folders", of_the_replaced)
    with pytest.raises(penstock.Error, match="replaced after it was opened"):
        penstock.load(tmp_path / "x.zarr", "host")
