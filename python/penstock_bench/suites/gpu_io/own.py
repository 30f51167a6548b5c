"""What only the suite `gpu-io` has, beside the Run: storms, a file in memory, and how much its table asks for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import parse_bytes
from penstock._text import bytes_text
from penstock_bench.engine.run import Run
from penstock_bench.suites.gpu_io.storms import Storms

ROW_BYTES = 512
SMALL, LARGE = 4096, 131072
SIZES = ((SMALL, False), (SMALL, True), (LARGE, False), (LARGE, True))


@dataclass(frozen=True)
class GpuIo:
    """Numbers are those of the suite's table, as far as files and cores allow."""

    storms: Storms
    ram: Path  # a file in memory: of tmpfs, or in the page cache
    ram_kind: str
    ram_bytes: int
    settings: dict[str, Any]
    file_bytes: int

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
        return {size: min(bytes, self.file_bytes) for size, bytes in zip((SMALL, LARGE), sizes, strict=True)}

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


def rows_of(run: Run) -> Path:
    """A file of rows, in the page cache."""
    return run.workspace.directory / "rows.bin"


def row_numbers(run: Run, count: int, turn: int) -> Any:
    import numpy as np

    return np.random.default_rng(turn).integers(0, run.bytes // ROW_BYTES, count)


def name_of(what: str, request: tuple[int, bool]) -> str:
    return f"{what} {'sequential' if request[1] else 'random'} {bytes_text(request[0])}"


def through_cache(size: int) -> str:
    return f"write through the page cache in device memory, {bytes_text(size)}"
