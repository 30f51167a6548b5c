"""The answer first, in three sentences at most: what the default achieves here, and what to know before using it.

Each suite says what it has to say, most important first; sentences are taken in turn from those present. What must
stay true: each sentence comes with the rows it is of.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from penstock_bench.engine.statement import Statement
from penstock_bench.runs.suites import own, present

Rows = list[dict[str, Any]]
SENTENCES = 3


def verdict(rows: Rows) -> list[Statement]:
    """At most three sentences; fewer when the rows say less."""
    said = [suite.says(own(rows, suite)) for suite in present(rows) if suite.says]
    in_turn = [one for turn in zip_longest(*said) for one in turn if one is not None]
    return in_turn[:SENTENCES]
