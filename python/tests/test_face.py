"""What a user meets first: help, names and listings of the package, with and without the packages it can do without."""

from __future__ import annotations

import subprocess
import sys

import pytest

OTHERS = ("torch", "xarray", "zarr", "h5py", "matplotlib", "typer", "rich", "cupy")
LIMIT_S = 60


def run(code: str, absent: tuple[str, ...] = OTHERS) -> subprocess.CompletedProcess[str]:
    """The code in a Python of its own, where these packages cannot be imported."""
    head = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, timeout=LIMIT_S)


def printed(code: str) -> str:
    done = run(code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_shows_the_package_without_the_packages_it_can_do_without() -> None:
    text = printed("import penstock; help(penstock)")
    assert "Penstock moves bytes" in text
    assert "open(" in text
    assert "Penstock moves bytes" in printed("help('penstock')")


def test_a_star_import_and_a_listing_of_members_work_without_them() -> None:
    assert printed("from penstock import *\nprint(DataFile.__name__)") == "DataFile\n"
    assert "'open'" in printed("import inspect, penstock; print([name for name, _ in inspect.getmembers(penstock)])")


@pytest.mark.parametrize("name", ["torch", "xarray", "zarr_store"])
def test_a_submodule_whose_package_is_not_there_is_no_attribute(name: str) -> None:
    assert printed(f"import penstock; print(hasattr(penstock, {name!r}))") == "False\n"
    done = run(f"import penstock; penstock.{name}")
    assert "AttributeError: penstock." in done.stderr
    assert "pip install" in done.stderr


@pytest.mark.parametrize("name", ["torch", "xarray", "zarr_store"])
def test_importing_it_says_what_it_needs(name: str) -> None:
    last = run(f"import penstock.{name}").stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: penstock.{name} needs "), last
    assert "pip install" in last
