"""Programs from packages, as they are and under libpenstock_preload.so: the same files, and how long they take.

    preload_real.py FOLDER [--mib 256] [--rounds 5]      prints a table

Each program writes its output and waits until the disk has it (fsync of its own, or `sync FILE`); reads begin with no
page of the file in the page cache. Runs go in turn, and the table has medians. A program that is not installed is
left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from penstock import _core

LIBRARY = Path(str(_core.__file__)).parent / "lib" / "libpenstock_preload.so"
FIO = "fio --name=x --ioengine=sync --size={mib}m --buffer_pattern=0x5eed --thread=0 --output=/dev/null"
# Name: (the program that has to be there, a line for the shell). It writes `out`, or reads alone.
PROGRAMS = {
    "fio sync, write 1 MiB, fsync": ("fio", f"{FIO} --rw=write --bs=1M --end_fsync=1 --filename=out"),
    "fio sync, read 512 KiB": ("fio", f"{FIO} --rw=read --bs=512k --invalidate=0 --filename=in.raw"),
    "dd 8 MiB, fsync": ("dd", "dd if=in.raw of=out bs=8M conv=fsync status=none"),
    "tar, sync": ("tar", "tar cf out in.raw && sync out"),
    "h5dump -b, sync": ("h5dump", "h5dump -d /x -b LE -o out in.h5 >/dev/null && sync out"),
    "nccopy to CDF-5, sync": ("nccopy", "nccopy -k cdf5 in.nc out && sync out"),
    "ncks, sync": ("ncks", "ncks -O -h in.nc out && sync out"),
    "ncdump of a slab": ("ncdump", "ncdump -v few in.nc > out"),
    "sqlite3": (
        "sqlite3",
        "sqlite3 out 'create table t(a, b); insert into t select value, zeroblob(65536) from"
        " generate_series(1, {mib} * 15);'",
    ),
    "NumPy save, fsync": (
        "python3",
        f'{sys.executable} -c \'import numpy, os; x = numpy.fromfile("in.raw"); f = open("out", "wb");'
        " [numpy.save(f, part) for part in numpy.array_split(x, 16)]; f.flush(); os.fsync(f.fileno())'",
    ),
    "NumPy load": ("python3", f'{sys.executable} -c \'import numpy; numpy.load(open("in.npy", "rb"))\''),
}


def make_inputs(folder: Path, mib: int) -> None:
    import h5py
    import netCDF4

    values = np.arange(mib << 17, dtype="f8")
    values.tofile(folder / "in.raw")
    np.save(folder / "in.npy", values)
    with h5py.File(folder / "in.h5", "w") as file:
        file["x"] = values
    with netCDF4.Dataset(folder / "in.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("n", values.size)
        file.createDimension("few", 1000)
        file.createVariable("x", "f8", ("n",))[:] = values
        file.createVariable("few", "f8", ("few",))[:] = values[:1000]


def drop(folder: Path) -> None:
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def run(line: str, folder: Path, preloaded: bool) -> tuple[float, bytes | None]:
    """Seconds, and what is in the file that it wrote."""
    out = folder / "out"
    out.unlink(missing_ok=True)
    drop(folder)
    environment = os.environ | ({"LD_PRELOAD": str(LIBRARY)} if preloaded else {})
    began = time.perf_counter()
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{line}\n{done.stderr.decode()}")
    return seconds, out.read_bytes() if out.exists() else None


def known(mib: int) -> dict[str, str]:
    return {name: line.replace("{mib}", str(mib)) for name, (needs, line) in PROGRAMS.items() if shutil.which(needs)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    make_inputs(given.folder, given.mib)
    print("| program | as it is, s | under the library, s | ratio |\n|---|---|---|---|")
    for name, line in known(given.mib).items():
        plain, ours = [], []
        for _ in range(given.rounds):
            seconds, wrote = run(line, given.folder, preloaded=False)
            plain.append(seconds)
            seconds, wrote_too = run(line, given.folder, preloaded=True)
            ours.append(seconds)
            if wrote != wrote_too:
                raise SystemExit(f"{name}: other bytes")
        before, after = statistics.median(plain), statistics.median(ours)
        print(f"| {name} | {before:.2f} | {after:.2f} | {before / after:.2f} |", flush=True)


if __name__ == "__main__":
    main()
