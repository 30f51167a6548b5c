"""Selections of every shape through the driver, which walks them itself, against NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest
from c_abi.driver_rig import moved, run

pytest.importorskip("h5py")

# Spaces of h5py's low level, because the high one makes no strides in memory, no blocks and no offsets.
PROGRAM = """
import sys, h5py, numpy as np
from h5py import h5s

chance = np.random.default_rng(int(sys.argv[1]))
SHAPE = (300, 40)

def hyperslab(space, shape):
    # Strides and blocks in each dimension.
    start = [int(chance.integers(0, extent // 2)) for extent in shape]
    block = [int(chance.integers(1, 4)) for _ in shape]
    stride = [b + int(chance.integers(0, 3)) for b in block]
    count = [max(1, int(chance.integers(1, (n - s) // t + 1)) if (n - s) // t else 1)
             for n, s, t in zip(shape, start, stride)]
    space.select_hyperslab(tuple(start), tuple(count), tuple(stride), tuple(block))

def selected(space, shape):
    # The same elements by NumPy: a mask in C order.
    mask = np.zeros(shape, bool)
    for low, high in space.get_select_hyper_blocklist():
        mask[tuple(slice(int(a), int(b) + 1) for a, b in zip(low, high))] = True
    return mask

def union(space, shape):
    hyperslab(space, shape)
    for _ in range(4):
        low = [int(chance.integers(0, extent - 3)) for extent in shape]
        space.select_hyperslab(tuple(low), (1,) * len(shape), None, (3,) * len(shape), op=h5s.SELECT_OR)

def memory_of(count):
    # Memory with room between the elements: one dimension, of which blocks are selected, and an offset.
    space = h5s.create_simple((4 * count + 10,))
    shape = "gaps" if chance.random() < 0.5 else "packed"
    if shape == "gaps":
        space.select_hyperslab((1,), (count,), (3,), (1,))
        return space, 1 + 3 * np.arange(count)
    space.select_hyperslab((0,), (1,), None, (count,))
    space.offset_simple((5,))
    return space, 5 + np.arange(count)

with h5py.File("x.h5", "w", userblock_size=512, rdcc_nbytes=0) as f:
    stored = {"flat": chance.integers(0, 1 << 30, SHAPE, "i4"), "tiles": chance.integers(0, 1 << 30, SHAPE, "i4")}
    f["flat"] = stored["flat"]
    f.create_dataset("tiles", data=stored["tiles"], chunks=(32, 16))
    for turn in range(80):
        name = ("flat", "tiles")[turn % 2]
        dataset, values = f[name], stored[name]
        space = dataset.id.get_space()
        kind = turn % 3
        if kind == 0:
            hyperslab(space, SHAPE)
            order = np.flatnonzero(selected(space, SHAPE))
        elif kind == 1:
            union(space, SHAPE)
            order = np.flatnonzero(selected(space, SHAPE))
        else:
            points = np.stack([chance.integers(0, extent, 50) for extent in SHAPE], 1)
            points = points[np.unique(points @ [SHAPE[1], 1], return_index=True)[1]]
            points = points[chance.permutation(len(points))]
            space.select_elements(points)
            order = points @ [SHAPE[1], 1]
        memory, places = memory_of(len(order))
        got = np.full(4 * len(order) + 10, -1, "i4")
        dataset.id.read(memory, space, got)
        expected = np.full_like(got, -1)
        expected[places] = values.reshape(-1)[order]
        assert (got == expected).all(), (turn, name)
        new = chance.integers(0, 1 << 30, got.shape, "i4")
        dataset.id.write(memory, space, new)
        values.reshape(-1)[order] = new[places]
        if turn % 10 < 2:
            assert (dataset[...] == values).all(), (turn, name)
with h5py.File("x.h5", driver="sec2") as f:
    assert all((f[name][...] == values).all() for name, values in stored.items())
print("same")
"""


@pytest.mark.parametrize("config", ["memory=device", "memory=host", "device=host"])
def test_elements_land_where_numpy_has_them(tmp_path: Path, config: str) -> None:
    for seed in ("1", "2"):
        done = run(PROGRAM.replace("sys.argv[1]", seed), tmp_path, config)
        assert (done.code, done.out) == (0, "same\n"), done.err
    if "host" not in config.removeprefix("device"):
        assert moved(done, "read", "windows") > 0 and moved(done, "write", "windows") > 0


REPEATED = """
import h5py, numpy as np
from h5py import h5s

def points(count, chosen):
    space = h5s.create_simple((count,))
    space.select_elements(np.array(chosen).reshape(-1, 1))
    return space

with h5py.File("x.h5", "w") as f:
    for bytes in (4, 40_000, 100_000, 1 << 20):
        kind = f"V{bytes}"
        made = [np.full((), number, "u1").tobytes() * bytes for number in range(9)]
        dataset = f.create_dataset(kind, (6,), kind)
        # Places of the file, and of memory, that come twice: the last of them wins.
        for _ in range(3):
            dataset.id.write(points(8, range(8)), points(6, [0, 2, 4, 5, 0, 2, 4, 5]), np.array(made[:8], kind))
        assert [one.tobytes()[::bytes // 2][0] for one in dataset[...]] == [4, 0, 5, 0, 6, 7], kind
        got = np.zeros(4, kind)
        dataset.id.read(points(4, [0, 1, 2, 0]), points(6, [0, 2, 4, 5]), got)
        assert [one.tobytes()[::bytes // 2][0] for one in got] == [7, 5, 6, 0], kind
print("same")
"""


@pytest.mark.parametrize("config", ["memory=device", "memory=device,large=64KiB,path=direct", "memory=host"])
def test_of_elements_that_are_selected_twice_the_last_wins(tmp_path: Path, config: str) -> None:
    done = run(REPEATED, tmp_path, config)
    assert (done.code, done.out) == (0, "same\n"), done.err


def test_a_selection_of_nothing_moves_nothing(tmp_path: Path) -> None:
    program = """
import h5py, numpy as np
from h5py import h5s
with h5py.File("x.h5", "w") as f:
    f["x"] = np.arange(10.0)
with h5py.File("x.h5", "r+") as f:
    space, memory = f["x"].id.get_space(), h5s.create_simple((10,))
    space.select_none()
    memory.select_none()
    got = np.full(10, -1.0)
    f["x"].id.read(memory, space, got)
    f["x"].id.write(memory, space, got)
    print((got == -1).all(), (f["x"][...] == np.arange(10.0)).all())
"""
    done = run(program, tmp_path, "memory=device")
    assert (done.code, done.out) == (0, "True True\n"), done.err
