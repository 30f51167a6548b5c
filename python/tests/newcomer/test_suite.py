"""A suite of measurements comes by the steps of CONTRIBUTING.md: a folder, a line and a test, and the command runs it.

The suite of the newcomer reads the file once in one request, and once in requests of a mebibyte.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from newcomer import Newcomer, copy_packages, pytest_in, run

FOLDER = "python/penstock_bench/suites/toy"
SUITE = '''"""The suite `toy`: one request, and many."""

from __future__ import annotations

from penstock_bench.engine.suite import NAMED, Suite
from penstock_bench.suites.toy import measure, page

SUITE = Suite("toy", measure.run_suite, "toy", NAMED, "One request, and many", page=page.PAGE)
'''

MEASURE = '''"""The suite `toy`: the file in one request, and in many."""

from __future__ import annotations

from functools import partial

from penstock import parse_bytes
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.engine.run import Run


def run_suite(run: Run) -> None:
    sizes = [run.bytes, parse_bytes(str(run.settings["request_bytes"]))]
    run_rounds(run, [Probe(f"requests of {size >> 20} MiB", partial(_read, run, size)) for size in sizes])


def _read(run: Run, size: int, _turn: int) -> Sample:
    file = run.opened(run.workspace.source)
    with Stopwatch() as watch:
        for offset in range(0, run.bytes, size):
            file.read(run.device.slice(offset, size), offset)
    return {"bytes": run.bytes, "seconds": watch.seconds, **watch.cpu()}
'''

PAGE = '''"""What is kept of runs of the suite `toy`."""

from __future__ import annotations

from penstock_bench.engine.listing import RATE, Listing, SuitePage

PAGE = SuitePage("A file in one request, and in many.", (Listing("Cells", "toy", ("name",), (RATE,)),))
'''

SIZES = """name = "toy"
about = "one request, and many"
file_bytes = "1GiB"
repeats = 5
seconds = 600

[toy]
request_bytes = "1MiB"

[quick]
file_bytes = "64MiB"
repeats = 2
"""

TEST = '''"""The suite `toy` at a tiny size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock_bench.runs import definitions, session


def test_both_ways_are_measured_in_each_round(tmp_path: Path) -> None:
    tiny = replace(definitions.load("toy", True), file_bytes=4 << 20)
    rows = session.run(session.Request(tiny, "host", tmp_path, None, True), lambda *_: None)
    found = sorted((row["name"], row["round"]) for row in rows if row["kind"] == "toy")
    assert found == [(f"requests of {size} MiB", turn) for size in (1, 4) for turn in (0, 1)]
'''


def folder(newcomer: Newcomer) -> None:
    at = newcomer.at(1)
    for name, text in (("__init__.py", SUITE), ("measure.py", MEASURE), ("page.py", PAGE), ("toy.toml", SIZES)):
        at.writes(f"{FOLDER}/{name}", text)


def line(newcomer: Newcomer) -> None:
    suites = "python/penstock_bench/runs/suites.py"
    newcomer.at(2).inserts(
        suites,
        "from penstock_bench.suites.toy import SUITE as TOY\n",
        before="\nif TYPE_CHECKING:\n    from matplotlib",
    )
    newcomer.at(2).replaces(suites, "SIMULATION, PER_PROCESS)", "SIMULATION, PER_PROCESS, TOY)")


def own_test(newcomer: Newcomer) -> None:
    newcomer.at(3).writes("python/tests/suites/test_toy.py", TEST)


STEPS = (folder, line, own_test)
TESTS = ("python/tests/suites/test_toy.py", "python/tests/suites/test_list.py")


def added(tree: Path, *, but: Callable[[Newcomer], None] | None = None) -> Newcomer:
    newcomer = Newcomer("Add a suite of measurements", "toy", copy_packages(tree))
    for step in STEPS:
        if step is not but:
            step(newcomer)
    return newcomer


def test_a_suite_comes_by_the_steps_of_the_page(tmp_path: Path) -> None:
    newcomer = added(tmp_path)
    assert newcomer.has_taken_all()
    ran = pytest_in(tmp_path, *TESTS)
    assert ran.returncode == 0, ran.stdout
    tiny = ("--quick", "--device", "host", "--file-bytes", "4MiB", "--repeats", "1", "--peers", "none")
    (tmp_path / "files").mkdir()
    penstock = (sys.executable, "-m", "penstock")
    places = ("--dir", tmp_path / "files", "--out", tmp_path / "x.jsonl")
    ran = run(tmp_path, *penstock, "bench", "toy", *tiny, *places, COLUMNS="160")
    assert ran.returncode == 0, ran.stdout
    assert re.search(r"requests of 1 MiB +\d.*\n requests of 4 MiB +\d", ran.stdout), ran.stdout
    rows = [json.loads(row) for row in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert {row["bytes"] for row in rows if row["kind"] == "toy"} == {4 << 20}
    listed = run(tmp_path, *penstock, "bench", "--list").stdout
    assert re.search(r"^toy +one request, and many \(files of 1 GiB, 5 repeats\)$", listed, re.M), listed


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (folder, "No module named 'penstock_bench.suites.toy'"),
        (line, "kind '?grid'?|nothing would be measured|Extra items in the left set"),
        (own_test, "file or directory not found: python/tests/suites/test_toy.py"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_without_a_step_its_test_says_what_is_missing(
    step: Callable[[Newcomer], None], said: str, tmp_path: Path
) -> None:
    newcomer = added(tmp_path, but=step)
    assert not newcomer.has_taken_all()
    ran = pytest_in(tmp_path, *TESTS)
    assert ran.returncode != 0
    assert re.search(said, ran.stdout), ran.stdout
