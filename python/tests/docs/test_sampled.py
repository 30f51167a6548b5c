"""`make test` runs a sample of a product that is marked `sampled`, in which every value has a case. What there is no
time for is skipped in words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import ROOT


def case(**values: Any) -> SimpleNamespace:
    return SimpleNamespace(callspec=SimpleNamespace(params=values))


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 2), (3, 3, 4)])
def test_each_value_has_a_case(pytestconfig: pytest.Config, shape: tuple[int, ...]) -> None:
    conftest: Any = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parents[1] / "conftest.py"))
    cases = [case(**{f"axis {n}": at for n, at in enumerate(place)}) for place in product(*map(range, shape))]
    left_out = conftest.beyond_the_sample(cases)
    taken = [one for one in cases if one not in left_out]
    assert len(taken) == max(shape)
    for n, extent in enumerate(shape):
        assert {one.callspec.params[f"axis {n}"] for one in taken} == set(range(extent))


def test_make_runs_each_class() -> None:
    text = (ROOT / "Makefile").read_text()
    quick = "'not long and not exhaustive$(if $(SLOW_PY),, and not slow)'"
    assert all(text.count(f"-m {one} ") == 1 for one in (quick, "'$(LONG_IS)'", "exhaustive"))
    assert re.search(r"^SLOW_PY += \$\(filter-out native,\$\(SLOW\)\)$", text, re.MULTILINE)
    assert re.search(r"^LONG_IS \?= long and not exhaustive$", text, re.MULTILINE)
    recipe = text.partition("test-all:\n")[2].partition("\n")[0]
    assert all(f"$(MAKE) {target} " in recipe for target in ("test SLOW=yes", "test-long", "test-exhaustive"))
    ci = ROOT / ".ci" / "run"
    if ci.exists():  # which leaves the slow and exhaustive tests of Python to its last step
        assert re.search(r"^ +make test PRESET=fuzz SLOW=native$", ci.read_text(), re.MULTILINE)
        assert re.search(r"make test-long LONG_IS='long or slow or exhaustive'$", ci.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("seconds", "outcome"), [("0", "1 skipped"), ("600", "1 passed")])
def test_what_there_is_no_time_for_is_skipped(seconds: str, outcome: str) -> None:
    one = f"{__file__}::{test_make_runs_each_class.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", one],
        env={**os.environ, "PENSTOCK_TEST_SECONDS": seconds}, cwd=ROOT, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert outcome in done.stdout, done.stdout
    assert ("no time was left" in done.stdout) == (seconds == "0")
