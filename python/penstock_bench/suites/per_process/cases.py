"""What is measured once a round: a way to move a file, its size, how many processes, a buffer, a direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock._text import bytes_text
from penstock.cli import options

C, FORTRAN, API = "C", "Fortran", "Penstock's C interface"
OFFLOADED = "calls from the device"
RUN = " under penstock run"
WAYS = (C, C + RUN, FORTRAN, FORTRAN + RUN, OFFLOADED, API)
UNBUFFERED = (OFFLOADED, API)
DIRECTIONS = ("write", "read")


@dataclass(frozen=True)
class Case:
    """`buffer_bytes` is of the runtime of C or Fortran; 0 where there is none."""

    way: str
    direction: str
    file_bytes: int
    processes: int
    buffer_bytes: int

    @property
    def writes(self) -> bool:
        return self.direction == "write"

    @property
    def group(self) -> str:
        """Cases of one group share their files."""
        return f"{bytes_text(self.file_bytes)} x {self.processes}"

    @property
    def name(self) -> str:
        buffer = f", buffer {bytes_text(self.buffer_bytes)}" if self.buffer_bytes else ""
        return f"{self.way}: {self.direction} {self.group}{buffer}"

    def fields(self) -> dict[str, Any]:
        names = ("way", "direction", "file_bytes", "processes", "buffer_bytes")
        return {name: getattr(self, name) for name in names}


def cases(settings: dict[str, Any], largest: int, ways: tuple[str, ...]) -> list[Case]:
    """All of the settings, of files up to the largest; of that size alone where all of the settings are larger."""
    sizes = [_size(text) for text in settings["file_sizes"]]
    sizes = [size for size in sizes if size <= largest] or [largest]
    buffers = [_size(text) for text in settings["buffers"]]
    counts = [options.count("bench per-process", "processes", str(one), 1024) for one in settings["processes"]]
    return [
        Case(way, direction, size, count, buffer)
        for size in sizes
        for count in counts
        for direction in DIRECTIONS
        for way in ways
        for buffer in (buffers if way not in UNBUFFERED else [0])
    ]


def _size(text: str) -> int:
    return options.size("bench per-process", "size", str(text))
