"""What stats() says: counts, bytes and waits of all and of each multiprocessor, beside what the service moved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_rig import ROWS, WIDTH, make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.random.default_rng(5).random((ROWS, WIDTH), np.float32).tofile(tmp_path / "rows.bin")
    return tmp_path / "rows.bin"


def check_shares(stats: dict[str, Any]) -> None:
    """That multiprocessors' bytes and waits add up to those of all."""
    shares = stats["processors"]
    for name, pages in (("loaded_bytes", "misses"), ("written_back_bytes", "write_backs")):
        assert stats[name] == sum(one[name] for one in shares) == stats[pages] * stats["page_bytes"]
        assert all(one[name] == one[pages] * stats["page_bytes"] for one in shares)
    for name in ("wait_cycles", "wait_ns"):
        waits: Counter[float] = Counter()
        for one in shares:
            waits.update(dict(one[name]))
        assert sorted(waits.items()) == stats[name]


def test_statistics_of_what_was_done(path: Path) -> None:
    with make(path, cache_bytes=1 << 20) as rows:
        rows.read()
        rows.read()
        stats = rows.stats()
        pages = -(-rows.nbytes // 4096)
        assert stats["misses"] == pages and stats["hits"] >= pages and stats["failures"] == 0
        assert stats["misses"] == sum(one["misses"] for one in stats["processors"])
        cycles, times = stats["wait_cycles"], stats["wait_ns"]
        assert sum(count for _, count in cycles) > 0 and [n for _, n in cycles] == [n for _, n in times]
        assert times[-1][0] * stats["cycles_per_ns"] == pytest.approx(cycles[-1][0])
        served = [stats["served"][source]["requests"] for source in ("mapping", "buffered", "direct")]
        assert sum(served) + stats["served"]["gpu_pages"] == pages
        check_shares(stats)
        assert stats["device_bytes"] > 1 << 20 and stats["pinned_bytes"] > 0 and stats["pages"] == 256


def test_bytes_are_those_that_were_moved(tmp_path: Path) -> None:
    path = tmp_path / "pages.bin"
    np.zeros((100, 1024), np.float32).tofile(path)  # rows of a page
    with make(path, (-1, 1024), mode="r+", cache_bytes="64 KiB") as rows:
        rows.read(0, 40)
        rows.write(50, np.ones((7, 1024), np.float32))
        rows.flush()
        stats = rows.stats()
        assert stats["loaded_bytes"] == 40 * 4096 and stats["written_back_bytes"] == 7 * 4096
        moved = stats["arrays"][0]["files"][0]["gpu_bytes"]
        moved += sum(stats["served"][source]["bytes"] for source in ("mapping", "buffered", "direct"))
        assert moved == stats["loaded_bytes"] + stats["written_back_bytes"]
        check_shares(stats)
