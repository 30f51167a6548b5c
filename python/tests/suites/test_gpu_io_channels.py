"""The cells of the suite `gpu-io` that put the mailbox beside NVMe's entries, on the emulated device: in each pair the
channel alone differs, and every page is checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gpu_io_rig import Rows, cells, missing, run, tiny

from penstock_bench.suites.gpu_io import channels, storms as gpu_io_storms

SAME = (
    "warps",
    "blocks",
    "threads",
    "in_flight",
    "slots",
    "service_threads",
    "request_bytes",
    "order",
    "memory",
    "took",
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return run(tmp_path_factory.mktemp("channels"), tiny(parts=["channels"]))


def test_every_cell_is_measured(rows: Rows) -> None:
    planned = [name for name, _ in channels.cells(Path("x"), len(os.sched_getaffinity(0)))]
    assert list(cells(rows)) and sorted(cells(rows)) == sorted(planned)
    assert not missing(rows)


def test_a_pair_differs_in_the_channel_alone(rows: Rows) -> None:
    by_threads: dict[int, Rows] = {}
    for row in cells(rows).values():
        by_threads.setdefault(row["service_threads"], []).append(row)
    assert 1 in by_threads
    for threads, group in by_threads.items():
        assert sorted(row["queues"] for row in group) == [0, threads, 16 * threads]
        assert all(len({row[same] for row in group}) == 1 for same in SAME)
        assert all(row["slots"] == 1024 * threads for row in group)


def test_both_sides_counted_the_same_and_every_page_was_checked(rows: Rows) -> None:
    for row in cells(rows).values():
        assert sum(requests for requests, _ in row["served"].values()) == row["operations"] > 0
        assert row["verified_bytes"] == row["bytes"] == 4096 * row["operations"]
        assert sum(many for _, many in row["latency_cycles"]) == row["operations"]


@pytest.mark.parametrize("cores", [1, 2, 4, 12])
def test_there_are_more_slots_than_warps_whatever_the_queues(cores: int) -> None:
    found = channels.cells(Path("x"), cores)
    assert len({name for name, _ in found}) == len(found) == (3 if cores == 1 else 6)
    warps = channels.SHAPE.blocks
    for _, setup in found:
        assert setup.source in gpu_io_storms.SERVED and setup.warm
        if setup.source == "mailbox":
            assert setup.slots > warps
            continue
        assert setup.slots % setup.queues == 0 and setup.queues % setup.service_threads == 0
        entries = setup.slots // setup.queues
        assert entries <= 1024 and entries & (entries - 1) == 0
        assert entries - 1 >= -(-warps // setup.queues)
