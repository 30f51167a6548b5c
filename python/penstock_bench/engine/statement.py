"""What a page says in a sentence, with the rows that say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Statement:
    """A sentence, and the rows that say so."""

    text: str
    rows: Rows = field(default_factory=list)


def joined(words: list[str]) -> str:
    """a; a and b; a, b and c."""
    return " and ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " and " + words[-1]
