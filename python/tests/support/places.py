"""Where the tests find what is not beside them: the tree, kept results, programs for processes of their own."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parents[1]
EXAMPLES = ROOT / "examples"
DATA = TESTS / "data"
PROGRAMS = TESTS / "programs"
