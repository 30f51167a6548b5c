"""Programs from packages write the same bytes under the library: those of programs/preload_real.py that are here."""

from __future__ import annotations

from pathlib import Path

import preload_real as real
import pytest
from c_abi import preload_rig as rig

LINES = real.known(24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rig.need_library()
    for needed in ("h5py", "netCDF4"):
        pytest.importorskip(needed)
    made = tmp_path_factory.mktemp("real")
    real.make_inputs(made, 24)
    return made


@pytest.mark.long
@pytest.mark.parametrize("name", LINES)
def test_the_same_bytes_are_written(name: str, folder: Path) -> None:
    _, without = real.run(LINES[name], folder, preloaded=False)
    _, under = real.run(LINES[name], folder, preloaded=True)
    assert without == under
