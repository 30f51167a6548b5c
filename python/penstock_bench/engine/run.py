"""One run of a suite: what the user asked for, and what every function of a suite is given to carry it out.

A suite hands its Run on to all that it measures; what only one suite has stands beside it, as a value of that suite.
What must stay true: a Run of a context, a workspace and a definition is whole, so that a test can measure one cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import Context
from penstock._api import Buffer, File
from penstock.calibration.workspace import Workspace
from penstock.cli.show import Step
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.results import Results


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    definition: Definition
    device: str
    directory: Path
    results: Path | None
    quick: bool
    peers: frozenset[str] | None = None  # those that are measured too; None: all that the suite can
    resume: bool = False
    remote: Path | None = None  # a second directory, for suites that measure two


@dataclass(frozen=True)
class Run:
    """What the measurements of one run share. Without more than the first three it keeps its rows in memory, measures
    no peers and shows no progress."""

    context: Context
    workspace: Workspace
    definition: Definition
    results: Results = field(default_factory=lambda: Results(None))
    peers: frozenset[str] = frozenset()
    remote: Path | None = None  # a second directory
    step: Step = lambda *_: None
    stack: ExitStack = field(default_factory=ExitStack)  # closes what a suite opens for the whole run
    # Of what is written: a new one each time, so that what an earlier write left in the file cannot pass for this one.
    seeds: Iterator[int] = field(default_factory=lambda: itertools.count(1000))
    _memory: dict[tuple[str, str], Buffer] = field(init=False, default_factory=dict)
    _opened: dict[Path, File] = field(init=False, default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The table of the definition that belongs to its suite."""
        return self.definition.settings[self.definition.kind]  # type: ignore[no-any-return]

    @property
    def bytes(self) -> int:
        """Of each file of the workspace."""
        return self.workspace.file_bytes

    @property
    def emulated(self) -> bool:
        return bool(self.context.device["emulated"])

    @property
    def device(self) -> Buffer:
        """Memory of the device, of a file's size."""
        return self.memory()

    def memory(self, bytes: int | None = None, kind: str = "device", first_touch: str = "") -> Buffer:
        """As many bytes as a file has unless said otherwise, which all cells share: of one kind and first touch there
        is one buffer, as large as the largest that was asked for."""
        wanted = self.bytes if bytes is None else bytes
        touch = first_touch or ("gpu" if kind == "device" else "cpu")
        found = self._memory.get((kind, touch))
        if found is None or found.bytes < wanted:
            found = None
            self._memory.pop((kind, touch), None)  # room for the larger one
            found = self._memory[kind, touch] = self.context.allocate(wanted, kind, first_touch=touch)
        return found if found.bytes == wanted else found.slice(0, wanted)

    def opened(self, path: Path) -> File:
        """To read and write, open until the run ends. A cell that proves its state opens its file anew, for a mapping
        that another cell left on an open file would keep its pages in the page cache."""
        if path not in self._opened:
            self._opened[path] = self.stack.enter_context(self.context.open(path, write=True))
        return self._opened[path]
