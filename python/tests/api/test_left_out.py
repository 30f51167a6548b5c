"""An installation without the applications, as `make report` makes one, says how to get them."""

from __future__ import annotations

import subprocess
import sys

import pytest

LEFT_OUT = ("penstock.flow._flow", "penstock.hmatrix._hmatrix", "penstock.nbody._nbody")
WITHOUT = f"import sys; sys.modules |= dict.fromkeys({LEFT_OUT});"
ADVICE = "it was built to measure this machine only; run make build in the source tree, or pip install . there"


def without(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", ["flow", "hmatrix", "nbody"])
def test_an_import_says_what_to_do(name: str) -> None:
    done = without(f"import penstock.{name}")
    last = done.stderr.splitlines()[-1]
    assert last == f"ImportError: penstock.{name} is not in this installation: {ADVICE}"


def test_the_command_says_it_in_a_line() -> None:
    done = without("from penstock.cli import main; sys.exit(main(['hmatrix', 'info', 'x.hmat']))")
    assert (done.returncode, done.stderr) == (1, f"penstock: penstock.hmatrix is not in this installation: {ADVICE}\n")


def test_the_rest_is_there() -> None:
    done = without("import penstock as ps; print(ps.Context('host'), 'hmatrix' in dir(ps))")
    assert done.returncode == 0, done.stderr
