"""What a suite is: what measures it, which rows it writes, and what shows, judges and says those.

A suite is a folder of suites/ with a SUITE of its own and a line in runs/suites.py; nothing else has to know it. What
must stay true: everything in it is a function, so that a type checker and an editor see it; none of its modules loads
what draws before it draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock_bench.engine.listing import SuitePage
from penstock_bench.engine.probe_tables import probe_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from penstock_bench.engine.promises import Check
    from penstock_bench.engine.rules import Cell
    from penstock_bench.engine.run import Run
    from penstock_bench.engine.statement import Statement

Rows = list[dict[str, Any]]
Fields = dict[str, Any]  # type by name
NUMBER = (int, float)
MOVED: Fields = {"bytes": int, "bytes_per_second": NUMBER, "cpu_user_s": NUMBER, "cpu_system_s": NUMBER}
LOAD: Fields = {"operations": int, "seconds": NUMBER}
NAMED: Fields = MOVED | {"name": str}  # rows of one name are samples of the same thing


@dataclass(frozen=True)
class Drawing:
    """A figure. `draw` gives None when the rows do not hold what it shows; `rows` are those that it is drawn of, among
    them each that changes what it shows."""

    name: str
    caption: str
    draw: Callable[[Rows], Figure | None]
    rows: Callable[[Rows], Rows]


@dataclass(frozen=True)
class Suite:
    """One suite. A TOML file is of it that says `kind = NAME`, or that has a table [NAME]."""

    name: str
    run: Callable[[Run], None]
    row: str  # the kind of its samples
    fields: Fields  # what readers rely on in a sample
    heading: str  # of its tables on the page
    table: Callable[[Rows, str], list[Table]] = probe_tables  # of rows, and of the kind of the samples
    judge: Callable[[Rows], list[Check]] | None = None
    figures: tuple[Drawing, ...] = ()
    says: Callable[[Rows], list[Statement]] | None = None  # the most important first: for the verdict
    cells: Callable[[Rows], list[Cell]] | None = None  # what decision rules are made of
    summary: Callable[[Rows], Rows] | None = None  # cells of a table of medians, of what medians do not tell
    page: SuitePage = field(default_factory=SuitePage)  # of what was measured and is kept
    peers: tuple[str, ...] = ()  # what else it can measure, as --peers names it
    file_count: int = 3  # of the suite's size that it needs room for
    makes_files: bool = True  # source and target are there when it starts
    takes_remote: bool = False  # it measures a second directory too
