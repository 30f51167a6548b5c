"""Ctrl-C between any two calls of a writer: it ends, the file is the old one or the new one, nothing is left beside it,
and the next writer of this process goes on from it.

An interrupt that comes as a file is changed is the matter of test_signals_at_steps.py; these come where nothing is
asked of the file system. A writer that does not end cannot be interrupted either: each is tried in its own process."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from storage_faults import InterruptAfterCall
from writers_rig import WRITERS, Broken, Writer, left_behind

for module in ("h5py", "netCDF4", "safetensors", "zarr"):
    pytest.importorskip(module)
pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="knows where Python 3.11 looks for signals")

LIMIT_S = 120
FORMATS = "penstock.formats."
MODULES = {
    "npy": ("penstock._open", FORMATS + "simple.at_once", FORMATS + "simple.single_write", FORMATS + "new_file"),
    "nc3": ("penstock._open", FORMATS + "pending", FORMATS + "datafile", FORMATS + "state", FORMATS + "reading.source"),
    "zarr": ("penstock._open", FORMATS + "new_file", FORMATS + "new_folder"),
    "h5-append": tuple(
        f"{FORMATS}hdf5.{one}" for one in ("write", "changing.append", "changing.making", "changing.session")
    ),
    "zarr-append": (FORMATS + "zarr.write", FORMATS + "zarr.allocate", FORMATS + "zarr.document"),
    "nc3-append": (FORMATS + "netcdf3.write", FORMATS + "writing"),
}
STRIDE = {"zarr-append": 4}  # every so many places, for time


def wrong_after(writer: Writer, path: Path, interrupt: InterruptAfterCall) -> str:
    try:
        with interrupt:
            writer.write(path, 2, False)
    except KeyboardInterrupt:
        pass
    gc.collect()  # what was made and reached no variable
    try:
        found = writer.look(path)
    except Broken as error:
        return f"the file is broken: {error}"
    if found not in (1, 2):
        return f"version {found} is there"
    if left_behind(path.parent, path):
        return f"left behind: {left_behind(path.parent, path)}"
    writer.write(path, found + 1, False)
    return "" if writer.look(path) == found + 1 else "the next writer's version is not there"


def sweep(name: str, folder: Path) -> None:
    writer, modules = WRITERS[name], MODULES[name]
    first = folder / "first"
    first.mkdir()
    writer.write(first / writer.file, 1, False)
    gc.collect()
    gc.freeze()
    at, struck = 0, True
    while struck:
        place = folder / str(at)
        shutil.copytree(first, place)
        interrupt = InterruptAfterCall(at, modules)
        wrong = wrong_after(writer, place / writer.file, interrupt)
        struck = bool(interrupt.where)
        if wrong:
            print(f"after call {at}, at {interrupt.where}: {wrong}")
        shutil.rmtree(place)
        at += STRIDE.get(name, 1)
    print(f"{at} places")


@pytest.mark.parametrize("name", MODULES)
def test_an_interrupt_between_any_two_calls(tmp_path: Path, name: str) -> None:
    command = [sys.executable, __file__, name, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert told.returncode == 0, told.stderr
    *wrong, places = told.stdout.splitlines()
    assert not wrong, told.stdout
    assert int(places.split()[0]) > 40, places


if __name__ == "__main__":
    sweep(sys.argv[1], Path(sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)
