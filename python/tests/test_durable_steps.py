"""What is durable is synced: the steps that a file system sees of each writer, in their order.

A disk rarely loses what nobody synced, so only the order of the steps tells that a sync is missing. The last write of
each file comes before a sync of it, and that before a name that others read is given; each folder in which a name was
made is synced after that."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_fs import Step, faulty_fs
from test_power_cuts import NOT_YET
from writers_rig import WRITERS

for module in ("h5py", "netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)

NEW = [name for name, writer in WRITERS.items() if not writer.appends]
WRITES = ("write", "truncate", "fallocate")
NAMES = ("rename", "link")


def hopeless(name: str) -> bool:
    return name.startswith("zarr") and "zarr" in NOT_YET


def steps_of(folder: Path, name: str, durable: bool) -> tuple[list[Step], str]:
    writer = WRITERS[name]
    with faulty_fs(folder) as fs:
        path = fs.path / writer.file
        writer.write(path, 1, durable)  # there is an older one to replace
        with fs.logged() as steps:
            writer.write(path, 2, durable)
        assert writer.look(path) == 2
    return steps, writer.file


def last(steps: list[Step], operations: tuple[str, ...], name: str | None = None) -> int:
    found = [at for at, one in enumerate(steps) if one.operation in operations and name in (None, one.name)]
    return found[-1] if found else -1


def unsynced(steps: list[Step]) -> list[str]:
    """Files whose last write no sync follows."""
    written = {one.name for one in steps if one.operation == "write"}
    return [name for name in written if last(steps, ("fsync",), name) < last(steps, ("write",), name)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[pytest.mark.xfail(reason=NOT_YET["zarr"], strict=True)] if hopeless(one) else [])
        for one in NEW
    ],
)
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


@pytest.mark.parametrize("name", ["buffered", "bytes", "h5"])
def test_control_without_durable_it_is_seen_that_nothing_is_synced(tmp_path: Path, name: str) -> None:
    steps, _ = steps_of(tmp_path, name, durable=False)
    assert unsynced(steps)
    assert not any(one.operation == "fsyncdir" for one in steps)
