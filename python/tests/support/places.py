"""Where the tests find what is not beside them: the tree, kept results, programs for processes of their own. And
whether they run in a process under a sanitizer, where random cases take long.
"""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parents[1]
EXAMPLES = ROOT / "examples"
DATA = TESTS / "data"
PROGRAMS = TESTS / "programs"
# .ci/run runs some tests once more with the modules under the address sanitizer, after `make test` had them whole.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


def examples(whole: int) -> int:
    """How many random cases are tried of so many."""
    return whole // 3 if SANITIZED else whole
