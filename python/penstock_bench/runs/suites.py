"""The suites, in the order of tables and figures, and which of them rows are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock_bench.engine.promises import Check, checking
from penstock_bench.engine.rules import Rule, rules
from penstock_bench.engine.suite import Drawing, Suite
from penstock_bench.suites.choice import SUITE as CHOICE
from penstock_bench.suites.core import SUITE as CORE
from penstock_bench.suites.data import SUITE as DATA
from penstock_bench.suites.first_touch import SUITE as FIRST_TOUCH
from penstock_bench.suites.formats import SUITE as FORMATS
from penstock_bench.suites.gpu_io import SUITE as GPU_IO
from penstock_bench.suites.grid import SUITE as GRID
from penstock_bench.suites.hmatrix import SUITE as HMATRIX
from penstock_bench.suites.io_size import SUITE as IO_SIZE
from penstock_bench.suites.multiplicity import SUITE as MULTIPLICITY
from penstock_bench.suites.per_process import SUITE as PER_PROCESS
from penstock_bench.suites.simulation import SUITE as SIMULATION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
_ALL = (GRID, CORE, CHOICE, FORMATS, DATA, FIRST_TOUCH, IO_SIZE, MULTIPLICITY, GPU_IO, HMATRIX, SIMULATION, PER_PROCESS)
SUITES: dict[str, Suite] = {one.name: one for one in _ALL}
PEERS = frozenset(peer for suite in _ALL for peer in suite.peers)
FIGURES: dict[str, Drawing] = {one.name: one for suite in _ALL for one in suite.figures}


def sample_fields() -> dict[str, dict[str, Any]]:
    """What readers rely on, by the kind of row."""
    return {suite.row: suite.fields for suite in SUITES.values()}


def present(rows: Rows) -> list[Suite]:
    """The suites that rows are of, in the order of the list."""
    found = {row["kind"] for row in rows}
    return [suite for suite in SUITES.values() if suite.row in found]


def own(rows: Rows, suite: Suite) -> Rows:
    """The rows of those runs that hold samples of the suite. Each run begins with its machine, so that machine, files
    and ceilings are of the same run."""
    runs: list[Rows] = []
    for row in rows:
        if row["kind"] == "machine" or not runs:
            runs.append([])
        runs[-1].append(row)
    return [row for run in runs if any(row["kind"] == suite.row for row in run) for row in run]


def checks(rows: Rows, suite: Suite) -> list[Check]:
    """The promises of a suite, judged by the rows: its own, and what checking takes, of any whose rows tell it."""
    mine = own(rows, suite)
    return (suite.judge(mine) if suite.judge else []) + checking(mine, suite.row)


def rules_of(rows: Rows) -> list[Rule]:
    """The decision rules of all suites that can say something."""
    return rules(suite.cells(own(rows, suite)) for suite in present(rows) if suite.cells)


def figures(rows: Rows) -> dict[str, Figure]:
    """All figures that the rows can feed, by name."""
    wanted = {one.name: one for suite in present(rows) for one in suite.figures}
    made = {name: one.draw(rows) for name, one in wanted.items()}
    return {name: figure for name, figure in made.items() if figure is not None}
