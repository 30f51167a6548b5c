"""Models that are killed while they write restarts: each goes on from what the one before it left, checks every element
of it, and is killed at a random moment.

Run by restart/test_killed.py. Arguments: folder, kills, seed. Models are forked children of this process, which has no
context of its own. Prints the number of generations that were written, and how often a kill left an unnamed file.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from penstock._shared import shared_context  # noqa: F401 - what children need is there before they are forked
from penstock.restart.restart import Restart

SHAPE = (300, 1000)
LIMIT_S = 60
PLACES = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)


def go_on(path: Path, least: int, durable: bool, told: int) -> None:
    """Never returns. Writes a line for each generation that it has read or written."""
    warnings.simplefilter("error")  # also the other generation is whole
    restart = Restart(path, device="host", durable=durable)
    generation = 0
    if restart.find():
        x, y = np.empty(SHAPE), np.empty(SHAPE[1])
        generation = restart.read({"x": x, "y": y}).generation
        assert restart.attrs["generation"] == generation
        assert np.array_equal(x, PLACES + generation) and np.array_equal(y, PLACES[0] - generation)
    assert generation >= least, f"generation {generation} is there, and {least} was told"
    while True:
        os.write(told, f"{generation}\n".encode())
        generation += 1
        restart.write({"x": PLACES + generation, "y": PLACES[0] - generation}, attrs={"generation": generation})


def in_child(path: Path, least: int, durable: bool) -> tuple[int, int]:
    """The process, and where it tells."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            go_on(path, least, durable, write_end)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(write_end)
    return child, read_end


def first_told(pipe: int, lines: int) -> bytes:
    """So many lines, or what there is when the model has ended."""
    told = b""
    while told.count(b"\n") < lines and select.select([pipe], [], [], LIMIT_S)[0]:
        part = os.read(pipe, 4096)
        if not part:
            break
        told += part
    return told


def main(folder: Path, kills: int, seed: int) -> dict[str, int]:
    chance, last, left = random.Random(seed), 0, 0
    for kill in range(kills):
        child, pipe = in_child(folder / "run", last, kill % 2 == 0)
        told = first_told(pipe, 1 + (kill % 3 == 0))  # it has read what is there; at times it has written too
        time.sleep(chance.random() * 0.02)  # the random moment; nothing is waited for
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with os.fdopen(pipe, "rb") as rest:
            told += rest.read()
        if status != -signal.SIGKILL or b"\n" not in told:
            raise SystemExit(f"kill {kill}: the model ended with {status} after {told[-20:]!r}")
        last = int(told[: told.rindex(b"\n")].split()[-1])
        names = [one.name for one in folder.iterdir()]
        left += any(".penstock-" in one and not one.endswith("-lock") for one in names)
        assert {one for one in names if ".penstock-" not in one} <= {"run.0", "run.1"} and len(names) <= 4, names
    return {"generations": last, "left": left}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
