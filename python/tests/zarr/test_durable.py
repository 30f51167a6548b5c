"""What a durable change of a Zarr store syncs, and when: no name comes before what it leads to is on stable storage.

The model of storage: what was not synced since it changed is lost, names in a folder too. Each sync is left out once,
and then the model must find something lost: none is missing, and none is there for nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

zarr = pytest.importorskip("zarr")

import penstock as ps  # noqa: E402
from penstock import Error  # noqa: E402
from penstock.formats.new_file import is_temporary  # noqa: E402
from penstock.formats.zarr.write import ZarrWriter  # noqa: E402

ROWS = np.arange(48, dtype="f4").reshape(8, 6)


class Storage:
    """Knows of each file and folder as what it was synced last; `lost` says what came too early. `without`: the number
    of a sync that is left out."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, without: int | None = None) -> None:
        self.lost: list[str] = []
        self.syncs = 0
        self._root, self._without = root, without
        self._synced = {one.stat().st_ino: state(one) for one in [root, *root.rglob("*")]}
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._sync_by(getattr(os, name)))
        for name in ("rename", "replace"):
            patch.setattr(os, name, self._rename_by(getattr(os, name)))

    def _sync_by(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            number, self.syncs = self.syncs, self.syncs + 1
            if number != self._without:
                real(descriptor)
                path = Path(f"/proc/self/fd/{descriptor}").readlink()
                self._synced[path.stat().st_ino] = state(path)

        return sync

    def _rename_by(self, real: Callable[..., None]) -> Callable[..., None]:
        def rename(source: Any, target: Any, **more: Any) -> None:
            if any(is_temporary(part) for part in Path(target).parts):  # seen with the folder that it is in
                return real(source, target, **more)
            self.need(Path(source), f"{Path(target).name} is named")
            if Path(target).name == "zarr.json":
                self.need(Path(target).parent, "a document tells of it")
            return real(source, target, **more)

        return rename

    def need(self, path: Path, when: str) -> None:
        """All of it is on stable storage."""
        if self._synced.get(path.stat().st_ino, set()) != state(path):
            self.lost.append(f"{path.relative_to(self._root)} is not synced when {when}")
        if path.is_dir():
            for one in path.iterdir():
                if not is_temporary(one.name):
                    self.need(one, when)


def state(path: Path) -> Any:
    """The size and time of a file; the names in a folder and what they lead to."""
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size, found.st_mtime_ns
    return {(one.name, one.stat().st_ino) for one in path.iterdir() if not is_temporary(one.name)}


def new_store(path: Path) -> None:
    with ps.create(path, device="host", durable=True) as file:
        file["g/whole"] = ROWS
        chunked = file.create_dataset("chunks", (0, 6), "f4", chunk_shape=(2, 3), resizable=(None, 6))
        chunked.append(ROWS)
        shards = {"chunk_shape": (2, 3), "shard_shape": (4, 6), "resizable": (None, 6)}
        file.create_dataset("h/shards", (6, 6), "f4", **shards)[...] = ROWS[:6]


def steps(path: Path) -> None:
    with ps.open(path, write=True, device="host", durable=True) as file:
        file["chunks"].append(ROWS[:1])
        file["h/shards"].append(ROWS[:3])


def elements(path: Path) -> None:
    with ps.open(path, write=True, device="host", durable=True) as file:
        file["chunks"][0] = ROWS[1]


def arrays(path: Path) -> None:
    with ps.open(path, write=True, device="host", durable=True) as file:
        file["g/more/b"] = ROWS
        file["c"] = ROWS


def attributes(path: Path) -> None:
    with ps.open(path, write=True, device="host", durable=True) as file:
        file["chunks"].attrs["unit"] = "m"
        file["g"].attrs["of"] = "group"


CHANGES = [steps, elements, arrays, attributes]


def traced(change: Callable[[Path], None], folder: Path, without: int | None = None) -> Storage:
    """The change, in a store of its own; told of consolidated metadata, as zarr-python makes them."""
    folder.mkdir()
    path = folder / "x.zarr"
    if change is not new_store:
        new_store(path)
        zarr.consolidate_metadata(path)
    with pytest.MonkeyPatch.context() as patch:
        storage = Storage(folder, patch, without)
        change(path)
    storage.need(folder, "the writer is done")
    return storage


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("change", [new_store, *CHANGES])
def test_each_name_comes_after_what_it_leads_to_and_no_sync_is_for_nothing(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    whole = traced(change, tmp_path / "whole")
    assert whole.lost == []
    assert whole.syncs >= 1
    for number in range(whole.syncs):
        assert traced(change, tmp_path / f"without {number}", number).lost, f"sync {number} is for nothing"


def test_a_writer_whose_sync_failed_fails_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_store(tmp_path / "x.zarr")
    writer = ZarrWriter(tmp_path / "x.zarr", append=True)
    writer.set_attributes("", {"title": "never"})

    def fails(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(Error, match="fsync"):
            writer.publish(durable=True)
    with pytest.raises(Error, match="fsync"):
        writer.publish(durable=True)
    writer.abandon()
    assert not [one for one in tmp_path.rglob("*") if is_temporary(one.name)]
