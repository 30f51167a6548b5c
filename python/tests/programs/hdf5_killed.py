"""Kills processes that write HDF5 files, at random moments, and looks at the files with stock HDF5 each time.

Run by hdf5/test_kill.py as a process of its own, because it forks. Arguments: folder, number of kills, seed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import h5py
import numpy as np
from hdf5_kit import numbered, put
from hdf5_steps import INT, grow, make, make_with_h5py

from penstock.formats.hdf5.write import Hdf5Writer
from penstock.formats.model import NewDataset

LONGEST_S = 0.03
MOST_STEPS = 4


def write_for_ever(folder: Path, chance: random.Random, begins: int) -> None:
    """Steps, datasets, attributes and whole new files, until it is killed. Each is told as it begins."""
    while True:
        os.write(begins, b".")
        durable = chance.random() < 0.2
        kind = chance.choice(["ours", "theirs", "add", "new"])
        if kind == "new":
            make_new(folder / "new.h5", chance.randrange(1 << 30), durable)
            continue
        writer = Hdf5Writer(folder / ("theirs.h5" if kind == "theirs" else "ours.h5"), append=True)
        if kind == "add":
            name = f"more/d{len(writer.names())}"
            writer.create([NewDataset(name, (600,), INT)])
            put(writer, name)
            writer.set_attributes("", {"note": name, "count": chance.randrange(100)})
        else:
            steps = writer.info("a").shape[0] + chance.choice([1, 1, 1, 5])
            grow(writer, {"a": (steps, 3, 5), "b": (steps,)})
        writer.publish(durable)


def make_new(path: Path, value: int, durable: bool) -> None:
    writer = Hdf5Writer(path)
    (table,) = writer.create([NewDataset("x", (5000,), INT, attributes={"value": value})])
    descriptor = os.open(table.files[0], os.O_WRONLY)
    os.pwrite(descriptor, np.full(5000, value, "<i4").tobytes(), int(table.offset_bytes[0]))
    os.close(descriptor)
    writer.publish(durable)


def look(folder: Path, seen: dict[str, int]) -> None:
    """Everything can be read and is right, and nothing that was there is gone."""
    for name in ("ours.h5", "theirs.h5"):
        with h5py.File(folder / name, "r") as file:
            for dataset in ("a", "b", *(f"more/{one}" for one in file.get("more", ()))):
                found = file[dataset]
                assert np.array_equal(found[...], numbered(found.shape)), (name, dataset)
                key = f"{name}/{dataset}"
                assert found.shape[0] >= seen.get(key, 0), key
                seen[key] = found.shape[0]
            assert sum(key.startswith(f"{name}/more") for key in seen) <= len(file.get("more", ()))
            assert isinstance(file.attrs.get("note", ""), str)
    with h5py.File(folder / "new.h5", "r") as file:
        assert (file["x"][...] == file["x"].attrs["value"]).all()


def kill_one(folder: Path, of_writer: random.Random, chance: random.Random) -> None:
    """A writer, killed some time after the begin of one of its first steps: however slow the machine is, some end."""
    reader, begins = os.pipe()
    child = os.fork()
    if child == 0:
        write_for_ever(folder, of_writer, begins)
    os.close(begins)
    for _ in range(chance.randint(1, MOST_STEPS)):
        assert os.read(reader, 1), "the writer ended by itself"
    time.sleep(chance.random() * LONGEST_S)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reader)
    assert os.WIFSIGNALED(status), "the writer ended by itself"


def main(folder: Path, kills: int, seed: int) -> None:
    chance, seen = random.Random(seed), {}
    make(folder / "ours.h5", {"a": (1, 3, 5), "b": (1,)}, {"a": (1, 3, 5), "b": (4,)})
    make_with_h5py(folder / "theirs.h5", {"a": (1, 3, 5), "b": (1,)}, {"a": (1, 3, 5), "b": (4,)}, first=801)
    make_new(folder / "new.h5", 1, False)
    for number in range(kills):
        kill_one(folder, random.Random(seed + number), chance)
        look(folder, seen)
        for left in folder.glob(".new.h5.penstock-*"):
            left.unlink()
    print(sum(seen.values()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
