"""The product does without the package that measures it: deleted, nothing of the product misses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import penstock

WITHOUT = """
import sys

class Deleted:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "penstock_bench":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Deleted())
"""


def without(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a new process in which penstock_bench cannot be found."""
    command = [sys.executable, "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


# What a module may need beyond the package. Where it is not there, the module is left out, and the test says so.
OTHERS = {"torch", "xarray", "zarr"}
IMPORTED = """
from importlib import import_module, util
for name in {names}:
    try:
        import_module(name)
    except ModuleNotFoundError as absent:
        package = (absent.name or "").partition(".")[0]
        if package not in {others} or util.find_spec(package):
            raise
        print(name, "needs", package)
print("penstock_bench" in sys.modules)
"""


def test_every_module_of_the_product_can_be_imported() -> None:
    top = Path(penstock.__file__).parent
    names = sorted(".".join(("penstock", *path.relative_to(top).with_suffix("").parts)) for path in top.rglob("*.py"))
    done = without(IMPORTED.format(names=[name for name in names if not name.endswith("__main__")], others=OTHERS))
    *left_out, imported_measurements = done.stdout.splitlines() or [""]
    assert (imported_measurements, done.returncode) == ("False", 0), done.stderr
    if left_out:
        pytest.skip(f"all others are imported; left out: {', '.join(left_out)}")


COMMAND = "from penstock.cli import main; sys.exit(main(sys.argv[1:]))"


def test_the_command_moves_bytes_and_calibrates_and_names_what_is_missing(tmp_path: Path) -> None:
    moved = without(COMMAND, "write", tmp_path / "x.bin", "--bytes", "4096")
    assert moved.returncode == 0, moved.stderr
    short = ("--file-bytes", "16MiB", "--seconds", "1")
    made = without(COMMAND, "calibrate", tmp_path, "--out", tmp_path / "p.csv", *short)
    assert made.returncode == 0 and (tmp_path / "p.csv").stat().st_size > 0, made.stderr
    if "bench" not in without(COMMAND, "--help").stdout:
        pytest.skip("the package is not installed, so no metadata name the commands of others")
    refused = without(COMMAND, "bench", "--list")
    assert refused.returncode != 0 and refused.stderr.count("\n") == 1
    assert "penstock_bench.cli.bench:bench cannot be loaded: No module named 'penstock_bench'" in refused.stderr
