"""The list of suites and their folders are one, and what draws them is loaded when something is drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import penstock_bench.suites
from penstock_bench.runs import definitions, suites


def test_each_folder_of_suites_is_a_suite_that_all_know() -> None:
    folder = Path(penstock_bench.suites.__file__).parent
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert folders == {name.replace("-", "_") for name in suites.SUITES}
    assert len({one.row for one in suites.SUITES.values()}) == len(suites.SUITES)
    assert all(one.heading and one.page.about and one.page.listings for one in suites.SUITES.values())
    assert all(one.caption for one in suites.FIGURES.values())
    for name, path in definitions.known().items():
        assert path.parent.name == definitions.load(name, quick=True).kind.replace("-", "_")


def test_what_draws_is_loaded_when_something_is_drawn() -> None:
    """Nor is what only a peer needs: a command that shows no figure starts without them."""
    code = "import sys, penstock_bench.runs.session, penstock_bench.report.page, penstock_bench.measured.drawing\n"
    code += "print(*sorted({'matplotlib', 'h5py', 'torch', 'zarr'} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == "\n"
