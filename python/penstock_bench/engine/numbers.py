"""Numbers as tables, figures and sentences tell them."""

from __future__ import annotations


def three_figures(value: float) -> str:
    """Three figures without an exponent: 0.0123, 4.56, 789, 12300."""
    if value >= 999.5:
        digits = len(str(round(value))) - 3
        return str(round(value / 10**digits) * 10**digits)
    return f"{value:.3g}"


def thousands(value: float) -> str:
    """Three figures: 467, 95.6k, 1.25M, 2.5G."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor * 0.9995:
            return f"{three_figures(value / factor)}{unit}"
    return three_figures(value)


def padded_figures(value: float) -> str:
    """Three figures, trailing zeros kept: 4.00, 52.7, 0.15."""
    digits = 2 if value < 10 else (1 if value < 100 else 0)
    return f"{value:.{digits}f}"


def size_label(value: float) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:g} B"
