"""Which elements of a dimension belong to which file, by what its coordinate says: where the file's elements lie in the
whole domain, and how many at both ends are of a halo.

At an end of the domain a halo tells two things: a file at the edge, which has no neighbour there, owns these elements;
a file whose neighbour is no wider than its halo begins at the same element, and owns none of them. What must stay true:
the one is told from the other only where just one choice fills the domain.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from penstock._error import Error
from penstock.formats.model import DatasetInfo


class Span(NamedTuple):
    """Elements [first, end) of `size` that a file has, and how many of them are of the halo at both ends."""

    first: int
    end: int
    before: int
    behind: int
    size: int


class Reach(NamedTuple):
    """Where the elements of a dimension that count in one file lie in the whole, and how many come before them."""

    start: int
    stop: int
    skip: int
    size: int  # of the whole


def span_of(file: str, info: DatasetInfo) -> Span | None:
    told = info.attributes
    if "start_global" not in told or "size_global" not in told:
        return None
    start, size = (int(np.ravel(told[key])[0]) for key in ("start_global", "size_global"))
    before, behind = (int(one) for one in np.resize(np.ravel(told.get("halo_local", (0, 0))), 2))
    first, end = start - 1, start - 1 + info.shape[0]
    if first < 0 or end > size:
        cause = f"its {info.name} has the elements {first} to {end}, and there are {size} in all"
        advice = "start_global counts from 1, and size_global is the length in the whole domain"
        raise Error(code="damaged", operation="open as a part of a set", file=file, cause=cause, advice=advice)
    return Span(first, end, before, behind, size)


def divisions(spans: Collection[Span]) -> list[Mapping[Span, Reach]]:
    """Each choice of the files at the edges by which the files fill the dimension, and nothing twice."""
    lows = _edges([(one, one.before) for one in spans if one.first == 0])
    highs = _edges([(one, one.behind) for one in spans if one.end == one.size])
    chosen = ({one: _reach(one, one == low, one == high) for one in spans} for low in lows for high in highs)
    return [one for one in chosen if _fills(one.values())]


def as_told(spans: Collection[Span]) -> Mapping[Span, Reach]:
    """With all files that have the first or the last element at the edge: for what is said of files that do not fit."""
    return {one: _reach(one, one.first == 0, one.end == one.size) for one in spans}


def is_in_doubt(span: Span) -> bool:
    """Whether another file may have the same span, and other elements of its own."""
    return span.first == 0 and span.end == span.size and span.before > 0 and span.behind > 0


def _edges(at_end: list[tuple[Span, int]]) -> list[Span | None]:
    """Files that may be the one at an edge, of those that have its element and so wide a halo there. None: it has no
    halo."""
    if not all(halo for _, halo in at_end):
        return [None]
    return [one for one, _ in at_end] or [None]


def _reach(span: Span, at_low: bool, at_high: bool) -> Reach:
    skip = 0 if at_low else span.before
    return Reach(span.first + skip, span.end - (0 if at_high else span.behind), skip, span.size)


def _fills(reaches: Collection[Reach]) -> bool:
    parts = sorted(reaches)
    joined = all(one.stop == other.start for one, other in itertools.pairwise(parts))
    return joined and parts[0].start == 0 and parts[-1].stop == parts[-1].size
