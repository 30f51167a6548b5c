"""Decision rules: which path to ask for, by what is moved and how large it is, as the rows say.

For each situation and size the paths are ranked by their medians. A path is as good as another where the interval of
their ratio holds 1, and beaten where all of it is above. Where the default is as good as the best it is the rule; sizes
with one answer become one rule, which tells what holds at each of them. Several suites may ask one question: then each
size is answered by the suite that has most samples of it. What must stay true: a rule says nothing that its rows do
not, and names them; a question has no two rules with one answer, but for hints, which are of too few samples to say
more than which was faster then.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock_bench.engine import intervals

Rows = list[dict[str, Any]]
DEFAULT = "auto"


@dataclass
class Cell:
    """What one path did in one situation at one size."""

    situation: str
    size_bytes: int
    path: str
    rows: Rows = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [rate_of(row) for row in self.rows]

    @property
    def median(self) -> float:
        return statistics.median(self.rates)


@dataclass
class Rule:
    """From `low_bytes` to `high_bytes` use `path`, or, where another is better at sizes between, at `spans` of sizes;
    `rate` is its median at the largest size, `samples` how many a path has at least at each."""

    situation: str
    low_bytes: int
    high_bytes: int
    path: str
    rate: float
    as_good: list[str]
    beaten: dict[str, intervals.Estimate]  # by how much at least, by path
    samples: int
    rows: Rows
    good_at: dict[str, int] = field(default_factory=dict)  # at how many of the sizes a path is as good
    sizes: int = 1
    spans: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spans = self.spans or [(self.low_bytes, self.high_bytes)]

    @property
    def is_hint(self) -> bool:
        return self.samples < intervals.SAMPLES_MIN

    @property
    def good_text(self) -> str:
        """What is as good at every size, then what is so at some."""
        some = [f"{path} at {count} of {self.sizes}" for path, count in self.good_at.items() if count < self.sizes]
        return ", ".join([*self.as_good, *some])

    @property
    def closest(self) -> tuple[str, intervals.Estimate] | None:
        """The best of the paths that are beaten, and by how much."""
        return min(self.beaten.items(), key=lambda entry: entry[1].median, default=None)


def rate_of(row: dict[str, Any]) -> float:
    """Bytes a second; of writes with fsync, where it was timed: buffered writes are not done before."""
    if "fsync_s" in row:
        return float(row["bytes"] / (row["seconds"] + row["fsync_s"]))
    return float(row["bytes_per_second"])


Answers = dict[str, dict[int, list[Cell]]]  # by question and size: what each path did


def rules(by_suite: Iterable[Sequence[Cell]]) -> list[Rule]:
    """By the cells of each suite that can say something: questions in order of their words, sizes ascending."""
    found: list[Rule] = []
    for situation, sizes in sorted(_answers(by_suite).items()):
        mine: dict[tuple[str, bool], Rule] = {}
        before: tuple[str, bool] = ("", False)
        for size, rivals in sorted(sizes.items()):
            rule = _rule(situation, size, rivals, before[0])
            answer = rule.path, rule.is_hint
            if answer in mine:
                _join(mine[answer], rule, adjoins=answer == before)
            else:
                mine[answer] = rule
            before = answer
        found += mine.values()
    return found


def _answers(by_suite: Iterable[Sequence[Cell]]) -> Answers:
    """Of each suite by itself, since its samples were taken in turn; of several, those of most samples."""
    best: Answers = defaultdict(dict)
    for cells in by_suite:
        own: Answers = defaultdict(lambda: defaultdict(list))
        for cell in cells:
            if cell.median > 0:  # what moved nothing in its time is no rival
                own[cell.situation][cell.size_bytes].append(cell)
        for situation, sizes in own.items():
            for size, rivals in sizes.items():
                if len(rivals) > 1 and _samples(rivals) > _samples(best[situation].get(size, [])):
                    best[situation][size] = rivals
    return best


def _samples(rivals: list[Cell]) -> int:
    return min((len(cell.rows) for cell in rivals), default=0)


def _rule(situation: str, size: int, rivals: list[Cell], before: str) -> Rule:
    """At one size. `before` is the rule of the next smaller one: it stays while nothing is better."""
    ranked = sorted(rivals, key=lambda cell: -cell.median)
    best = ranked[0]
    good = [cell.path for cell in ranked if cell is best or _is_tie(intervals.ratio(best.rates, cell.rates))]
    path = next((one for one in (DEFAULT, before) if one in good), best.path)
    chosen = next(cell for cell in ranked if cell.path == path)
    ratios = {cell.path: intervals.ratio(chosen.rates, cell.rates) for cell in ranked if cell is not chosen}
    as_good = [one for one, ratio in ratios.items() if _is_tie(ratio)]
    return Rule(
        situation,
        size,
        size,
        path,
        chosen.median,
        as_good,
        {one: ratio for one, ratio in ratios.items() if not _is_tie(ratio) and ratio.median >= 1},
        _samples(rivals),
        [row for cell in ranked for row in cell.rows],
        dict.fromkeys(as_good, 1),
    )


def _is_tie(ratio: intervals.Estimate) -> bool:
    """Too few samples say which is ahead, and never that it is chance."""
    return ratio.low is not None and ratio.high is not None and ratio.low <= 1 <= ratio.high


def _join(rule: Rule, larger: Rule, adjoins: bool) -> None:
    """What is said of both sizes is what holds at both."""
    rule.high_bytes, rule.rate = larger.high_bytes, larger.rate
    rule.spans = [*rule.spans[:-1], (rule.spans[-1][0], larger.high_bytes)] if adjoins else rule.spans + larger.spans
    rule.as_good = [path for path in rule.as_good if path in larger.as_good]
    both = rule.beaten.keys() & larger.beaten.keys()
    rule.beaten = {path: min(rule.beaten[path], larger.beaten[path], key=lambda one: one.median) for path in both}
    rule.samples = min(rule.samples, larger.samples)
    rule.rows = rule.rows + larger.rows
    rule.good_at = dict(Counter(rule.good_at) + Counter(larger.good_at))
    rule.sizes += larger.sizes


STATES = {"hot": "in the page cache", "cold": "not in the page cache", "direct": "not in the page cache"}
ONE_REQUEST = "{direction}, one request, file {state}"


def put(found: dict[tuple[str, int, str], Cell], situation: str, size: int, row: dict[str, Any]) -> None:
    """Adds a row to the cell of its path."""
    key = (situation, size, row["path"])
    found.setdefault(key, Cell(*key)).rows.append(row)
