"""What stats() says: counts and waits of all and of each multiprocessor, beside what the service moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gpu_rig import ROWS, WIDTH, make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.random.default_rng(5).random((ROWS, WIDTH), np.float32).tofile(tmp_path / "rows.bin")
    return tmp_path / "rows.bin"


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
        assert stats["device_bytes"] > 1 << 20 and stats["pinned_bytes"] > 0 and stats["pages"] == 256
