"""Storage that fails, and interrupts, at every step of a change to an HDF5 or netCDF-4 file: the file stays readable,
with old or new content, and the next writers go on with it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
from hdf5_kit import numbered, put  # noqa: E402
from hdf5_steps import INT, grow, make, make_with_h5py  # noqa: E402
from storage_faults import FAULTS, Calls, InterruptAt  # noqa: E402

from penstock import Error  # noqa: E402
from penstock.formats.hdf5.write import Hdf5Writer  # noqa: E402
from penstock.formats.model import NewDataset  # noqa: E402
from penstock.formats.netcdf4.write import NetCDF4Writer  # noqa: E402

CHANGING = ("append", "making", "journal", "session", "apply")
MODULES = ("penstock.formats.hdf5.write", *(f"penstock.formats.hdf5.changing.{name}" for name in CHANGING))
SHAPES = {"a": (3, 5), "b": (3,)}
CHUNKS = {"a": (1, 5), "b": (4,)}


def ours(path: Path) -> None:
    make(path, SHAPES, CHUNKS)


def old_h5py(path: Path) -> None:
    make_with_h5py(path, SHAPES, CHUNKS)


def new_h5py(path: Path) -> None:
    make_with_h5py(path, {"a": (3, 5), "b": (3,)}, CHUNKS, libver="latest", maxshape=None, track_order=False)


def netcdf4(path: Path) -> None:
    writer = NetCDF4Writer(path)
    most = {"a": (None, 5), "b": (None,)}
    writer.create(
        [
            NewDataset(name, shape, INT, CHUNKS[name], resizable=most[name], dimensions=("t", "x")[: len(shape)])
            for name, shape in SHAPES.items()
        ]
    )
    for name in SHAPES:
        put(writer, name)
    writer.publish(durable=False)


KINDS: dict[str, tuple[Callable[[Path], None], Any, bool]] = {
    "ours": (ours, Hdf5Writer, True),
    "h5py": (old_h5py, Hdf5Writer, True),
    "h5py, latest": (new_h5py, Hdf5Writer, False),
    "netcdf4": (netcdf4, NetCDF4Writer, True),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any, bool]:
    """(a file that is copied for each fault, its writer, whether two dimensions of it can grow)"""
    build, writer, grows = KINDS[request.param]
    path = tmp_path / "made.h5"
    build(path)
    return path, writer, grows


def change(writer: Hdf5Writer, grows: bool) -> None:
    """Steps, and a new dataset in a new group."""
    steps = writer.info("b").shape[0] + 2
    grow(writer, {"a": (steps, 5), "b": (steps,)} if grows else {"b": (steps,)})
    name = f"more{steps}/x"
    writer.create([NewDataset(name, (600,), INT)])
    put(writer, name)


def look(path: Path) -> tuple[int, ...]:
    """Stock HDF5 reads right values; how many steps there are, and how many datasets were added."""
    with h5py.File(path, "r") as file:
        for name in ("a", "b", *(f"{group}/x" for group in file if group.startswith("more"))):
            found = file[name]
            assert np.array_equal(found[...], numbered(found.shape)), name
        return file["a"].shape[0], file["b"].shape[0], sum(group.startswith("more") for group in file)


def publish_under(path: Path, kind: tuple[Path, Any, bool], durable: bool, around: Any) -> BaseException | None:
    """What a change raised whose publish ran in the block `around`."""
    made, writer_of, grows = kind
    shutil.copyfile(made, path)
    writer = writer_of(path, append=True)
    change(writer, grows)
    try:
        with around:
            writer.publish(durable)
    except (Error, KeyboardInterrupt) as error:
        raised: BaseException | None = error
    else:
        raised = None
    writer.abandon()  # as a DataFile does
    return raised


def go_on(path: Path, kind: tuple[Path, Any, bool]) -> tuple[int, ...]:
    """The next writer adds steps to the file; what is there then."""
    writer = kind[1](path, append=True)
    grow(writer, {"b": (writer.info("b").shape[0] + 2,)})
    writer.publish(durable=True)
    return look(path)


def check(path: Path, kind: tuple[Path, Any, bool], raised: BaseException | None) -> None:
    old, new = (3, 3, 0), (5 if kind[2] else 3, 5, 1)
    found, words = look(path), str(raised)
    assert all(value in (one, other) for value, one, other in zip(found, old, new, strict=True)), found
    assert raised is not None or found == new
    if isinstance(raised, Error):
        assert ("has its old" in words) <= (found == old), words
        assert ("new datasets and steps are in" in words) <= (found == new), words
    assert "damaged" not in words, words
    ends = [found] if isinstance(raised, Error) and "finishes" not in words else [old, new]
    assert go_on(path, kind) in [(a, b + 2, more) for a, b, more in ends]
    assert not [one for one in path.parent.iterdir() if one.name.startswith(".")], "nothing is left beside the file"
    assert path.stat().st_size < 1 << 20


CASES = [
    *((fault, True) for fault in FAULTS),
    *((fault, False) for fault in ("half, then eio", "eio from there on", "interrupt after")),
]


@pytest.mark.parametrize(("fault", "durable"), CASES)
def test_a_fault_at_any_system_call_leaves_old_or_new(
    kind: tuple[Path, Any, bool], fault: str, durable: bool, tmp_path: Path
) -> None:
    path, at, struck = tmp_path / "x.h5", 0, True
    while struck:
        calls = Calls(at, *FAULTS[fault])
        raised = publish_under(path, kind, durable, calls.armed())
        struck = calls.struck
        assert not struck or raised is not None or fault == "short counts"
        check(path, kind, raised)
        at += 1
    assert at > 5, "that many calls change a file"


@pytest.mark.parametrize("durable", [True, False])
def test_an_interrupt_at_any_line_leaves_old_or_new(
    kind: tuple[Path, Any, bool], durable: bool, tmp_path: Path
) -> None:
    path, at, step = tmp_path / "x.h5", 0, 5  # not each line of each kind: there are eight ways through them
    while True:
        interrupt = InterruptAt(at, MODULES)
        raised = publish_under(path, kind, durable, interrupt)
        if interrupt.count <= at:
            break
        assert raised is not None
        check(path, kind, raised)
        at += step
    assert at > 100
