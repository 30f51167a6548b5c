"""What is durable is synced: the steps that a file system sees of each writer, in their order.

A disk rarely loses what was not synced, so only the order of the steps tells that a sync is missing. The last write of
each file comes before a sync of it, and that before a name that others read is given; each folder in which a name was
made is synced after that."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from faulty_fs import Step, faulty_fs
from writers_rig import COLUMNS, WRITERS

import penstock as ps
from penstock._files.publish import publish
from penstock.formats.netcdf3 import write as netcdf3_write
from penstock.formats.netcdf3.header import read_header
from penstock.formats.netcdf3.write import NetCDF3Writer

for module in ("h5py", "netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)

NEW = [name for name, writer in WRITERS.items() if not writer.appends]
NAMES = ("rename", "link")


def steps_of(folder: Path, name: str, durable: bool) -> tuple[list[Step], str]:
    writer = WRITERS[name]
    with faulty_fs(folder) as fs:
        path = fs.path / writer.file
        writer.write(path, 1, durable)  # there is an older one to replace
        with fs.logged() as steps:
            writer.write(path, 2, durable)
        assert writer.look(path) == 2
    return steps, writer.file


def last(steps: list[Step], operation: str, names: set[str]) -> int:
    found = [at for at, one in enumerate(steps) if one.operation == operation and one.name in names]
    return found[-1] if found else -1


def unsynced(steps: list[Step]) -> list[str]:
    """Files whose last write no sync follows, by the names they have at the end. A sync may be of the name that the
    file was written under or of one it was renamed to. Where files in several folders have one name, as many syncs
    are needed as there are files."""
    renamed = {one.name: one.other for one in steps if one.operation == "rename"}
    written = {one.name for one in steps if one.operation == "write"}
    wanting = []
    for final in {renamed.get(name, name) for name in written}:
        sources = {name for name in written if renamed.get(name, name) == final}
        since = {name: last(steps, "write", {name}) for name in sources}
        syncs = [at for at, one in enumerate(steps) if one.operation == "fsync" and one.name in {final, *sources}]
        if sum(at > min(since.values()) for at in syncs) < len(sources) or max(syncs, default=-1) < max(since.values()):
            wanting.append(final)
    return wanting


@pytest.mark.parametrize("name", NEW)
def test_every_file_is_synced_before_the_name_and_every_folder_after(tmp_path: Path, name: str) -> None:
    steps, final = steps_of(tmp_path, name, durable=True)
    told = "\n".join(map(str, steps))
    named = [at for at, one in enumerate(steps) if one.operation in NAMES and final in (one.name, one.other)]
    assert named, told
    assert not unsynced(steps[: named[-1]]), told
    made = {one.name for one in steps if one.operation == "mkdir"}
    synced = [one.name for one in steps[: named[-1]] if one.operation == "fsyncdir"]
    assert made <= set(synced), f"folders {made - set(synced)}\n{told}"
    assert any(one.operation == "fsyncdir" for one in steps[named[-1] :]), told


@pytest.mark.parametrize("durable", [True, False])
def test_elements_that_lie_in_another_file_are_synced_there(tmp_path: Path, durable: bool) -> None:
    import h5py

    with faulty_fs(tmp_path) as fs:
        with h5py.File(fs.path / "x.h5", "w") as file:
            file.create_dataset("x", (1000,), "f8", external=[(str(fs.path / "raw"), 0, 8000)])[...] = 0
        with (
            fs.logged() as steps,
            ps.open(fs.path / "x.h5", write=True, external=True, durable=durable, device="host") as file,
        ):
            file["x"][...] = np.arange(1000.0)
    assert any(one.operation == "write" and one.name == "raw" for one in steps)
    assert ("raw" in unsynced(steps)) is not durable, "\n".join(map(str, steps))


def test_records_of_classic_netcdf_are_synced_before_the_header_tells_of_them_and_the_header_then(
    tmp_path: Path,
) -> None:
    writer = WRITERS["nc3-append"]
    with faulty_fs(tmp_path) as fs:
        path = fs.path / writer.file
        writer.write(path, 1, True)
        with fs.logged() as steps:
            writer.write(path, 2, True)
    told = "\n".join(map(str, steps))
    first_page = 4096  # the header's; records begin behind it
    records = [at for at, one in enumerate(steps) if one.operation == "write" and one.offset_bytes >= first_page]
    header = [at for at, one in enumerate(steps) if one.operation == "write" and one.offset_bytes < first_page]
    syncs = [at for at, one in enumerate(steps) if one.operation == "fsync" and one.name == writer.file]
    assert records and header and records[-1] < header[0], told
    assert any(records[-1] < at < header[0] for at in syncs), told
    assert any(at > header[-1] for at in syncs), told


def test_a_writer_of_classic_netcdf_whose_sync_failed_fails_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = WRITERS["nc3-append"]
    writer.write(tmp_path / writer.file, 1, True)
    again = NetCDF3Writer(tmp_path / writer.file, append=True)
    again.extend("a", (2, COLUMNS))

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(ps.Error, match="fsync"):
            again.publish(durable=True)
    with pytest.raises(ps.Error, match="fsync"):
        again.publish(durable=True)
    again.abandon()


def test_a_file_that_is_made_in_memory_is_synced_before_its_name_and_its_folder_after(tmp_path: Path) -> None:
    with faulty_fs(tmp_path) as fs:
        with fs.logged() as steps:
            publish(fs.path / "x.txt", b"text", "write", "")
        made = [(one.operation, one.name) for one in steps if one.operation in ("write", "fsync", "fsyncdir", *NAMES)]
    assert [operation for operation, _ in made] == ["write", "fsync", "link", "fsyncdir"], made


def test_an_error_that_only_the_close_after_filling_tells_fails_the_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ps.create(tmp_path / "x.nc3", device="host") as file:
        for name in ("a", "b"):
            file.create_dataset(name, (0, 4), "f4", dimensions=("t", "x"), resizable=(None, 4))
    writer = NetCDF3Writer(tmp_path / "x.nc3", append=True)
    writer.extend("a", (2, 4))
    filled: list[int] = []
    real = os.close

    def close(descriptor: int) -> None:
        real(descriptor)
        if descriptor in filled:
            filled.clear()
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(netcdf3_write, "_fill", lambda descriptor, *rest: filled.append(descriptor))
    monkeypatch.setattr(os, "close", close)
    with pytest.raises(ps.Error, match="fill records"):
        writer.publish(durable=False)
    writer.abandon()
    assert read_header(str(tmp_path / "x.nc3")).records == 0


@pytest.mark.parametrize("name", ["buffered", "bytes", "h5"])
def test_control_without_durable_it_is_seen_that_nothing_is_synced(tmp_path: Path, name: str) -> None:
    steps, _ = steps_of(tmp_path, name, durable=False)
    assert unsynced(steps)
    assert not any(one.operation == "fsyncdir" for one in steps)
