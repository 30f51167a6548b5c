"""The page cache's state before a trial: made, proved, and said to be impossible where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Error
from penstock.calibration import workspace
from penstock.calibration.workspace import LOAD_TRIES, NotPossible, make_cold, make_hot, make_resident


class Crowded:
    """A file whose pages others push out of the page cache the first times that it is read."""

    def __init__(self, times: int) -> None:
        self.left, self.reads = times, 0

    def residency(self, _offset: int, _bytes: int) -> dict[str, float]:
        return {"resident_fraction": 0.0 if not self.reads else 0.4 if self.reads <= self.left else 1.0}

    def read(self, _file: object, _bytes: int) -> None:
        self.reads += 1


def test_a_file_that_is_pushed_out_of_the_page_cache_is_read_again_and_never_called_hot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for times in (0, 2):
        file = Crowded(times)
        monkeypatch.setattr("penstock.calibration.workspace._read_by_host", file.read)
        assert make_resident(file, 4096) == 1.0
        assert file.reads == times + 1
    file = Crowded(1000)
    monkeypatch.setattr("penstock.calibration.workspace._read_by_host", file.read)
    with pytest.raises(NotPossible, match="only 40% of the file stays in the page cache"):
        make_resident(file, 4096)
    assert file.reads == LOAD_TRIES


@pytest.mark.parametrize("make", [make_resident, make_hot, make_cold])
def test_a_state_that_nothing_tells_is_not_possible(make: Callable[[Any, int], float]) -> None:
    class Unknown:
        def residency(self, _offset: int, _bytes: int) -> dict[str, object]:
            return {"resident_fraction": None, "cause": "it belongs to another user"}

        def drop_cache(self) -> None:
            pass

    with pytest.raises(NotPossible, match="nothing tells what the page cache holds: it belongs to another user"):
        make(Unknown(), 4096)


def test_a_file_that_cannot_be_read_into_the_page_cache_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "READ_BYTES", 1 << 20)
    (tmp_path / "data").write_bytes(bytes(3 << 20))
    with Context("host") as context, context.open(tmp_path / "data") as file:
        workspace._read_by_host(file, 3 << 20)
        os.truncate(tmp_path / "data", (1 << 20) + 4096)
        with pytest.raises(Error, match="data.*became shorter while it was measured") as short:
            workspace._read_by_host(file, 3 << 20)
        assert (short.value.offset_bytes, short.value.length_bytes) == (1 << 20, 1 << 20)
        os.truncate(tmp_path / "data", 4096)
        with pytest.raises(Error, match="data"):
            workspace._read_by_host(file, 3 << 20)
