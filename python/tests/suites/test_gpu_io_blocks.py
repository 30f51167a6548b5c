"""Cells of the suite `gpu-io` by how the device's threads are divided; on the emulated device a warp is a thread."""

from __future__ import annotations

import pytest
from gpu_io_rig import Rows, cells, missing, run, tiny


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return run(tmp_path_factory.mktemp("blocks"), tiny(parts=["blocks"]))


def test_blocks_have_the_same_number_of_threads(rows: Rows) -> None:
    blocks = [row for row in cells(rows).values() if row["subject"] == "blocks"]
    assert {(row["threads"], row["rings"]) for row in blocks} == {(1, 0), (1, 1), (64, 0), (64, 1)}
    assert all(row["blocks"] * row["threads"] == 2048 and row["in_flight"] == 1 for row in blocks)


def test_rings_differ_in_their_number_alone(rows: Rows) -> None:
    few, more = (cells(rows)[f"rings: {count}"] for count in (1, 4))
    assert not missing(rows).keys() & {"rings: 1", "rings: 4"}
    assert [few["rings"], more["rings"]] == [1, 4]
    for same in ("threads", "blocks", "warps", "in_flight", "slots", "service_threads", "request_bytes", "subject"):
        assert few[same] == more[same]
    assert few["subject"] == "rings"
    assert few["verified_bytes"] == few["bytes"] > 0
