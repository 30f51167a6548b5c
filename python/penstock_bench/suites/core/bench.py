"""What all measurements of the suite `core` share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock import Context
from penstock._api import Buffer, File
from penstock.calibration.workspace import Workspace
from penstock_bench.engine.results import Results


@dataclass
class CoreBench:
    """What the probes share."""

    context: Context
    workspace: Workspace
    results: Results
    settings: dict[str, Any]
    source: File
    target: File
    device: Buffer  # of the file's size, touched
    pinned: Buffer
    peers: frozenset[str]
    # Of what is written: a new one each time, so that what an earlier write left in the file cannot pass for this one.
    seeds: Iterator[int] = field(default_factory=lambda: itertools.count(100))

    @property
    def bytes(self) -> int:
        return self.workspace.file_bytes

    @property
    def emulated(self) -> bool:
        return bool(self.context.device["emulated"])
