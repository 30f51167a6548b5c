"""Numbers to colours, and the bar that tells which."""

from __future__ import annotations

from typing import Any

import numpy as np

# From pale, so that the light on a surface is seen, through fire to dark: equal steps look about equal, also in print.
_ONE_SIGN = ("#f3efe6", "#f7dca4", "#f5b169", "#e8743b", "#c23b4e", "#86205f", "#4a1050")
_TWO_SIGNS = "RdBu_r"
_PREFIXES = ((1e-15, "f"), (1e-12, "p"), (1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"))


def prefix(values: np.ndarray) -> tuple[str, float]:
    """The letter before a unit, and what it stands for, with which the larger of these numbers are readable."""
    largest = float(np.percentile(np.abs(values), 99))
    fitting = [(factor, letter) for factor, letter in _PREFIXES if factor <= largest]
    factor, letter = fitting[-1] if fitting else _PREFIXES[0]
    return (letter, factor) if largest > 0 else ("", 1.0)


class Scale:
    """What the middle 98 % of the numbers span; white for 0 where they have both signs."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        low, high = (float(bound) for bound in np.percentile(values, (1, 99)))
        least = 0.05 * max(abs(low), abs(high)) or 1.0  # noise on an even surface is not blown up to all colours
        self.signed = low < 0 < high and min(-low, high) > 0.02 * max(-low, high)
        if self.signed:
            low, high = -max(-low, high), max(-low, high)
        elif high - low < least:
            low, high = (low + high - least) / 2, (low + high + least) / 2
        self.low, self.high = low, high
        beyond = (values.min() < low, values.max() > high)
        self.extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[tuple(map(int, beyond))]

    def mappable(self) -> Any:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize

        one_sign = LinearSegmentedColormap.from_list("fire", _ONE_SIGN)
        return ScalarMappable(Normalize(self.low, self.high), _TWO_SIGNS if self.signed else one_sign)

    def colours(self) -> np.ndarray:
        return self.mappable().to_rgba(self.values)[:, :3]
