"""Classic netCDF against damage: any bytes give variables that lie in the file, or an error with a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_reading import whole
from damage import Judge, at_random, cuts, extremes, some

from penstock._arrays.dtype import DType
from penstock.formats.model import NewDataset
from penstock.formats.netcdf3.header import read_header
from penstock.formats.netcdf3.reader import NetCDF3
from penstock.formats.netcdf3.write import NetCDF3Writer

netCDF4 = pytest.importorskip("netCDF4")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """One file of each version, with every kind of thing in it."""
    folder, files = tmp_path_factory.mktemp("good"), []
    for form in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"):
        with netCDF4.Dataset(folder / form, "w", format=form) as file:
            file.title = "good"
            file.createDimension("t", None)
            file.createDimension("x", 3)
            for name, kind, dimensions in (
                ("a", "f4", ("t", "x")),
                ("b", "i2", ("x",)),
                ("c", "i1", ("t",)),
                ("d", "f8", ()),
            ):
                variable = file.createVariable(name, kind, dimensions)
                variable.levels = np.arange(3, dtype="i4")
                variable[...] = np.ones([{"t": 2, "x": 3}[one] for one in dimensions])
        files.append((folder / form).read_bytes())
    writer = NetCDF3Writer(folder / "ours")
    writer.create([NewDataset("v", (2, 3), DType.of("f4"), attributes={"units": "m"})])
    writer.publish(durable=False)
    return [*files, (folder / "ours").read_bytes()]


def use(path: Path, size: int) -> None:
    """All that a reader does: everything that is said to be readable must lie in the file."""
    container = NetCDF3(path)
    container.attributes()
    for name in container.names()[:50]:
        info = container.info(name)
        if info.refusal:
            continue
        table = container.table(name, whole(info.shape))
        assert int(table.bytes.sum()) == info.dtype.itemsize * int(np.prod(info.shape, dtype=object))
        if len(table.bytes):
            assert table.offset_bytes.min() >= 0
            assert (table.offset_bytes + table.bytes).max() <= size


def test_cut_files(good: list[bytes], tmp_path: Path) -> None:
    judge = Judge(tmp_path / "x.nc")
    for raw in good:
        judge.judge(some(cuts(raw), 5), lambda size: use(tmp_path / "x.nc", size))
    assert judge.errors > 200


def test_fields_set_to_extremes(good: list[bytes], tmp_path: Path) -> None:
    judge = Judge(tmp_path / "x.nc")
    for raw in good:
        (tmp_path / "x.nc").write_bytes(raw)
        last = read_header(str(tmp_path / "x.nc")).bytes
        width = 8 if raw[3] == 5 else 4
        judge.judge(some(extremes(raw, last, width, ">"), 5), lambda size: use(tmp_path / "x.nc", size))
    assert judge.errors > 200
    assert judge.data > 200


def test_damage_at_random(good: list[bytes], tmp_path: Path) -> None:
    judge = Judge(tmp_path / "x.nc")
    judge.judge(at_random(good, 1000, seed=7), lambda size: use(tmp_path / "x.nc", size))
    assert judge.errors > 50
    assert judge.data > 50


def test_counts_that_only_python_could_hold(tmp_path: Path) -> None:
    """A header of 64-bit counts whose products are astronomic costs no time and no memory."""
    big = (1 << 62).to_bytes(8, "big")
    dimensions = b"".join((1).to_bytes(8, "big") + bytes([97 + n, 0, 0, 0]) + big for n in range(20))
    indices = (1024).to_bytes(8, "big") + b"".join((n % 20).to_bytes(8, "big") for n in range(1024))
    variable = (1).to_bytes(8, "big") + b"v\0\0\0" + indices + bytes(12) + (6).to_bytes(4, "big") + bytes(8) + big
    lists = (10).to_bytes(4, "big") + (20).to_bytes(8, "big") + dimensions + bytes(12)
    raw = b"CDF\x05" + bytes(8) + lists + (11).to_bytes(4, "big") + (1).to_bytes(8, "big") + variable
    judge = Judge(tmp_path / "x.nc")
    judge.judge(iter([raw, raw + bytes(1000)]), lambda size: use(tmp_path / "x.nc", size))
    assert judge.errors == 2


@pytest.mark.parametrize("bad", [lambda size: 1 // 0, lambda size: bytes(50 << 20), lambda size: _raise(ValueError())])
def test_the_judge_notices(bad: Callable[[int], Any], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="case 0"):
        Judge(tmp_path / "x").judge(iter([b"x"]), bad)


def _raise(error: Exception) -> None:
    raise error
