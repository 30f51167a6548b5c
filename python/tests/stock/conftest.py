"""At the end, with PENSTOCK_STOCK_EXAMPLES: what was compared, by format, type, layout, filter and selection."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

COVERED: Counter[tuple[str, str, str]] = Counter()  # (format, aspect, value)


@pytest.fixture
def covered() -> Counter[tuple[str, str, str]]:
    return COVERED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if "PENSTOCK_STOCK_EXAMPLES" not in os.environ or not COVERED:
        return
    terminalreporter.section("compared with stock readers")
    for format, aspect in dict.fromkeys((format, aspect) for format, aspect, _ in sorted(COVERED)):
        counts = {value: n for (one, other, value), n in sorted(COVERED.items()) if (one, other) == (format, aspect)}
        terminalreporter.line(f"{format:8} {aspect:10} " + ", ".join(f"{value} {n}" for value, n in counts.items()))
