"""The driver's binary needs no HDF5: it fits whatever HDF5 a wheel brings, under whatever name."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from c_abi.driver_rig import settings


def of_driver(*options: str) -> list[str]:
    if shutil.which("readelf") is None:
        pytest.skip("no readelf")
    library = Path(settings()["HDF5_PLUGIN_PATH"], "libpenstock_vfd.so")
    command = ["readelf", "--wide", *options, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_it_has_no_symbol_of_hdf5_but_the_two_of_a_plugin() -> None:
    rows = [line.split() for line in of_driver("--dyn-syms")]
    symbols = [(row[6], row[7].partition("@")[0]) for row in rows if len(row) >= 8 and row[0][:-1].isdigit()]
    assert {name for section, name in symbols if section == "UND"} >= {"penstock_read"}  # the table is read
    assert [name for section, name in symbols if section == "UND" and name.startswith("H5")] == []
    assert {name for section, name in symbols if section != "UND"} == {"H5PLget_plugin_type", "H5PLget_plugin_info"}


def test_it_needs_penstock_and_the_system_alone() -> None:
    needed = [line.split("[")[1].rstrip("]") for line in of_driver("--dynamic") if "(NEEDED)" in line]
    assert "libpenstock.so.0" in needed
    assert [name for name in needed if "hdf5" in name] == []
