"""Reads a damaged HDF5 file by h5py alone; run by hdf5/test_fuzz.py where a process with Penstock died of it.

Argument: the file. It ends with 0 whatever h5py refuses: what it tells is whether the process lives.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import h5py

MOST_BYTES = 1e7


def visit(_name: str, one: Any) -> None:
    with suppress(Exception):
        dict(one.attrs)
    if isinstance(one, h5py.Dataset):
        with suppress(Exception):
            if one.nbytes <= MOST_BYTES:
                one[...]
            for at in range(min(1000, one.id.get_num_chunks() if one.chunks else 0)):
                one.id.get_chunk_info(at)


def main(path: str) -> None:
    for mode in ("r", "r+"):
        with suppress(Exception), h5py.File(path, mode) as file:
            with suppress(Exception):
                dict(file.attrs)
            file.visititems(visit)


if __name__ == "__main__":
    main(sys.argv[1])
