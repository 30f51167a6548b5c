"""Medians and what they are worth: 95 % intervals by a percentile bootstrap over the samples.

Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. The seed is fixed: the same samples give the
same numbers, in a table, on a page and in a comparison. Fewer than SAMPLES_MIN samples have no interval.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 4000
SEED = 7
SAMPLES_MIN = 3
_BOUNDS = (2.5, 97.5)  # percentiles


@dataclass(frozen=True)
class Estimate:
    """A median, the bounds of its interval (None of too few samples), and how many samples it is of."""

    median: float
    low: float | None
    high: float | None
    samples: int


def estimate(values: Sequence[float]) -> Estimate:
    """The median of at least one value with its interval."""
    low = high = None
    if len(values) >= SAMPLES_MIN:
        import numpy as np

        many = _medians(np.random.default_rng(SEED), np.asarray(values, float))
        low, high = (float(bound) for bound in np.percentile(many, _BOUNDS))
    return Estimate(float(statistics.median(values)), low, high, len(values))


def ratio(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The ratio of the medians, `over` by `under`; `samples` is the smaller number of both."""
    found = statistics.median(over) / statistics.median(under)
    low = high = None
    if min(len(over), len(under)) >= SAMPLES_MIN:
        import numpy as np

        random = np.random.default_rng(SEED)
        below = _medians(random, np.asarray(under, float))
        above = _medians(random, np.asarray(over, float))
        if below.all():  # some samples moved nothing, so the ratio is unknown
            low, high = (float(bound) for bound in np.percentile(above / below, _BOUNDS))
    return Estimate(float(found), low, high, min(len(over), len(under)))


def _medians(random: np.random.Generator, values: np.ndarray) -> Any:
    """Medians of samples drawn with replacement, of the size of the sample."""
    import numpy as np

    return np.median(random.choice(values, (RESAMPLES, len(values))), axis=1)
