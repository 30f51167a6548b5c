"""What all measurements of the suite `gpu-io` share."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Context, parse_bytes
from penstock._api import Buffer
from penstock._text import bytes_text
from penstock.calibration.workspace import Workspace
from penstock_bench.suites.gpu_io.storms import Storms

ROW_BYTES = 512
SMALL, LARGE = 4096, 131072


SIZES = ((SMALL, False), (SMALL, True), (LARGE, False), (LARGE, True))


@dataclass
class GpuIoBench:
    """What the cells share."""

    context: Context
    workspace: Workspace
    storms: Storms
    ram: Path  # a file in memory: of tmpfs, or in the page cache
    ram_kind: str
    ram_bytes: int
    settings: dict[str, Any]
    seeds: Iterator[int] = field(default_factory=lambda: itertools.count(1000))
    _buffer: Buffer | None = None

    @property
    def bytes(self) -> int:
        return self.workspace.file_bytes

    @property
    def source(self) -> Path:
        return self.workspace.source

    @property
    def target(self) -> Path:
        return self.workspace.target

    @property
    def rows(self) -> Path:
        """In the page cache."""
        return self.workspace.directory / "rows.bin"

    @property
    def cell_seconds(self) -> float:
        return float(self.settings["cell_seconds"])

    @property
    def disk_seconds(self) -> float:
        return float(self.settings["disk_seconds"])

    @property
    def cores(self) -> int:
        return len(os.sched_getaffinity(0))

    @property
    def service_threads(self) -> list[int]:
        """As asked for, as far as there are cores."""
        return sorted({min(int(count), self.cores) for count in self.settings["service_threads"]})

    @property
    def most_threads(self) -> int:
        return self.service_threads[-1]

    @property
    def cache_slots(self) -> int:
        return int(self.settings["slots"])

    @property
    def write_bytes(self) -> dict[int, int]:
        return self._by_size("write_bytes")

    @property
    def cache_write_bytes(self) -> dict[int, int]:
        """What is written through the page cache, which has an eighth of it."""
        return self._by_size("cache_write_bytes")

    def _by_size(self, setting: str) -> dict[int, int]:
        sizes = (parse_bytes(str(one)) for one in self.settings[setting])
        return {size: min(bytes, self.bytes) for size, bytes in zip((SMALL, LARGE), sizes, strict=True)}

    @property
    def cache_bytes(self) -> int:
        return min(parse_bytes(str(self.settings["cache_bytes"])), self.ram_bytes)

    @property
    def sweep_bytes(self) -> int:
        return min(parse_bytes(str(self.settings["sweep_bytes"])), self.ram_bytes)

    @property
    def load_rounds(self) -> int:
        return int(self.settings["load_rounds"])

    @property
    def sweeps(self) -> int:
        return int(self.settings["sweeps"])

    @property
    def miss_rows(self) -> int:
        return min(int(self.settings["miss_rows"]), self.ram_bytes // SMALL)

    @property
    def gather_rows(self) -> int:
        return int(self.settings["gather_rows"])

    @property
    def peer_rows(self) -> int:
        return min(int(self.settings["peer_rows"]), self.gather_rows)

    def row_numbers(self, count: int, turn: int) -> Any:
        import numpy as np

        return np.random.default_rng(turn).integers(0, self.bytes // ROW_BYTES, count)

    def buffer(self, bytes: int) -> Buffer:
        """Device memory, made once as large as any cell needs."""
        if self._buffer is None or self._buffer.bytes < bytes:
            self._buffer = None
            self._buffer = self.context.allocate(bytes, first_touch="gpu")
        return self._buffer.slice(0, bytes)


def name_of(what: str, request: tuple[int, bool]) -> str:
    return f"{what} {'sequential' if request[1] else 'random'} {bytes_text(request[0])}"


def through_cache(size: int) -> str:
    return f"write through the page cache in device memory, {bytes_text(size)}"
