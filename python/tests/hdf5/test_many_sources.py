"""Virtual datasets of more sources than the process may have descriptors: there HDF5 gives fill values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import penstock as ps
from penstock.formats.hdf5 import mapped

SOURCES = {64: 100, 256: 300}  # of a limit of descriptors: more of both than HDF5 holds open
LIMITS = pytest.mark.parametrize("limit", SOURCES)

READ = """
import resource
import sys

import h5py
import numpy as np

import penstock as ps

limit, sources = map(int, sys.argv[1:])
whole = np.arange(3.0) + 10 * np.arange(sources)[:, None]
ps.load("a.npy", "host")  # what is opened once by every process is open
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
with h5py.File("whole.h5") as file:
    print("h5py is right" if (file["d"][...] == whole).all() else "h5py gives fill values")
with ps.open("whole.h5", device="host") as file:
    last = sources - 1
    for index in (..., slice(None, None, 7), [last, 0, 50, 0], (slice(20, sources - 10), 1), last - 1):
        assert (file["d"][index].to_numpy() == whole[index]).all(), index
    assert (np.concatenate([file["d"][at : at + 30].to_numpy() for at in range(0, sources, 30)]) == whole).all()
    assert [ps.load(f"part{number}.h5", "host")["d"].size for number in (0, last)] == [3, 3]  # descriptors are left
    print(file.evidence()["notes"])
"""


def write(folder: Path, mapping: str, sources: int, **layout: Any) -> None:
    """So many sources of a row each, in whole.h5."""
    np.save(folder / "a.npy", np.zeros(1))
    whole = np.arange(3.0) + 10 * np.arange(sources)[:, None]
    for number in range(sources):
        with h5py.File(folder / f"part{number}.h5", "w") as file:
            row = whole[number : number + 1] if mapping == "counted" else whole[number]
            file.create_dataset("d", data=row, **layout)
    if mapping == "counted":
        counted(folder, sources)
        return
    made = h5py.VirtualLayout((sources, 3), "f8")
    for number in range(sources):
        made[number] = h5py.VirtualSource(f"part{number}.h5", "d", (3,))
    with h5py.File(folder / "whole.h5", "w") as file:
        file.create_virtual_dataset("d", made, fillvalue=-5)


def counted(folder: Path, sources: int) -> None:
    """One mapping whose files are counted."""
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_fill_value(np.array(-5.0))
    here = h5py.h5s.create_simple((sources, 3), (h5py.h5s.UNLIMITED, 3))
    here.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (1, 3), (1, 3))
    create.set_virtual(here, b"part%b.h5", b"d", h5py.h5s.create_simple((1, 3)))
    with h5py.File(folder / "whole.h5", "w", libver="latest") as file:
        space = h5py.h5s.create_simple((sources, 3), (h5py.h5s.UNLIMITED, 3))
        h5py.h5d.create(file.id, b"d", h5py.h5t.IEEE_F64LE, space, create)


def need_right_values(folder: Path, limit: int) -> None:
    """Where h5py gives fill values."""
    command = [sys.executable, "-c", READ, str(limit), str(SOURCES[limit])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["h5py gives fill values", "[]"]


@LIMITS
@pytest.mark.parametrize("mapping", ["named", "counted"])
@pytest.mark.parametrize("layout", [{}, {"compression": "gzip", "chunks": True}], ids=["plain", "packed"])
def test_all_sources_are_read_whatever_the_limit(
    tmp_path: Path, mapping: str, layout: dict[str, Any], limit: int
) -> None:
    write(tmp_path, mapping, SOURCES[limit], **layout)
    need_right_values(tmp_path, limit)


def test_a_source_that_hdf5_could_not_open_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "named", 10, compression="gzip", chunks=True)
    with ps.open(tmp_path / "whole.h5", device="host") as file:
        monkeypatch.setattr(mapped, "not_open", lambda files: next(iter(files)))
        with pytest.raises(
            ps.Error,
            match=r"could not open its source file .*part7.h5', and gave fill values in its place; .*ulimit -n",
        ):
            file["d"][7]


@LIMITS
def test_sources_of_sources_are_read_whatever_the_limit(tmp_path: Path, limit: int) -> None:
    sources = SOURCES[limit]
    write(tmp_path, "named", sources, compression="gzip", chunks=True)
    (tmp_path / "whole.h5").rename(tmp_path / "inner.h5")
    made = h5py.VirtualLayout((sources, 3), "f8")
    made[...] = h5py.VirtualSource("inner.h5", "d", (sources, 3))
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file.create_virtual_dataset("d", made, fillvalue=-7)
    need_right_values(tmp_path, limit)


@LIMITS
def test_text_of_too_many_sources_is_an_error(tmp_path: Path, limit: int) -> None:
    sources = SOURCES[limit]
    made = h5py.VirtualLayout((sources,), h5py.string_dtype())
    for number in range(sources):
        with h5py.File(tmp_path / f"part{number}.h5", "w") as file:
            file["d"] = [f"text {number}"]
        made[number : number + 1] = h5py.VirtualSource(tmp_path / f"part{number}.h5", "d", (1,))
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        file.create_virtual_dataset("d", made)
    read = """
import resource
import sys
import penstock as ps
limit, sources = map(int, sys.argv[1:])
with ps.open("whole.h5", device="host") as file:
    assert file["d"][-10:].tolist() == [f"text {number}" for number in range(sources - 10, sources)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    try:
        print(file["d"][...].tolist())
    except ps.Error as error:
        print(error.cause)
"""
    command = [sys.executable, "-c", read, str(limit), str(sources)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "could not open its source file" in done.stdout, done


@pytest.mark.parametrize("index", [..., 1, slice(None, None, 2), slice(1, 6), (slice(2, 3), 1)])
def test_a_part_asks_for_the_sources_that_give_it_alone(tmp_path: Path, index: Any) -> None:
    whole = np.zeros((8, 4))
    made = h5py.VirtualLayout((8, 4), "f8")
    for turn in range(2):  # rows in turns
        with h5py.File(tmp_path / f"{turn}.h5", "w") as file:
            file.create_dataset("d", data=np.arange(16.0).reshape(4, 4) + 100 * turn, compression="gzip")
        made[turn::2] = h5py.VirtualSource(tmp_path / f"{turn}.h5", "d", (4, 4))
        whole[turn::2] = np.arange(16).reshape(4, 4) + 100 * turn
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_virtual_dataset("d", made)
    with ps.open(tmp_path / "x.h5", device="host") as file:
        assert (file["d"][index].to_numpy() == whole[index]).all()
