"""A selection of a dataset that is divided over files, as selections of its parts.

Pure, as the plan is. What must stay true: each selected element is of one part, and goes where it would go if the
dataset was whole; parts of which nothing is selected are not asked for anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from penstock._arrays.selection import Picks, Selection
from penstock._error import Error
from penstock.formats.model import DatasetInfo, Share

# Per dimension: where the run begins in the selection, and its first element, count, step and picks in the part.
_Run = tuple[int, int, int, int, Picks | None]
# The part's dataset, what is selected of it, and where its first element is in the selection of the whole.
Taken = tuple[DatasetInfo, Selection, tuple[int, ...]]


def taken(selection: Selection, shares: Sequence[Share]) -> Iterator[Taken]:
    """What the selection (as stored) takes of each part."""
    picks = selection.picks
    if picks is not None and picks.single:
        cause = "the dataset is divided over files, of which single elements by lists are not read"
        raise Error(code="unsupported", operation="read", cause=cause, advice="read a box, and pick from the array")
    for share in shares:
        runs = [list(_runs(selection, share, axis)) for axis in range(len(share.origin))]
        for numbers in np.ndindex(*map(len, runs)):
            chosen = [runs[axis][number] for axis, number in enumerate(numbers)]
            yield share.info, _part(selection, chosen), tuple(run[0] for run in chosen)


def _runs(selection: Selection, share: Share, axis: int) -> Iterator[_Run]:
    """Of one dimension; a list has a run for each of its stretches that stay in the part."""
    low, high = share.box.start[axis], share.box.stop[axis]  # of the part
    shift = share.origin[axis] - low  # from an element of the part to that of the whole
    first, count, step = selection.first[axis], selection.counts[axis], selection.steps[axis]
    picks = selection.picks
    if picks is not None and picks.axis == axis:
        inside = np.flatnonzero((picks.numbers >= low + shift) & (picks.numbers < high + shift))
        for run in np.split(inside, np.flatnonzero(np.diff(inside) != 1) + 1):
            if len(run):
                yield int(run[0]), 0, len(run), 1, replace(picks, numbers=picks.numbers[run] - shift)
        return
    ends = (low + shift - first, high + shift - 1 - first)  # in steps of one, from the first element on
    near, far = ends if step > 0 else (-ends[1], -ends[0])
    begin, end = max(0, -(-near // abs(step))), min(count, far // abs(step) + 1)
    if begin < end:
        yield begin, first + begin * step - shift, end - begin, step, None


def _part(selection: Selection, runs: Sequence[_Run]) -> Selection:
    first, counts, steps = (tuple(column) for column in zip(*(run[1:4] for run in runs), strict=True))
    picks = next((run[4] for run in runs if run[4] is not None), None)
    return Selection(first, counts, steps, selection.dropped, picks)
