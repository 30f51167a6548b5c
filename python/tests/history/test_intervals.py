"""Several output intervals are several histories: each file has its own times, and no history waits for another."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import penstock as ps


def test_fields_of_two_intervals_are_in_two_files(tmp_path: Path) -> None:
    rain, wind = np.zeros((5, 6), "f4"), np.zeros((3, 5, 6), "f4")
    often = ps.History(tmp_path / "often.nc", device="host", time_units="seconds since 2000-01-01")
    seldom = ps.History(tmp_path / "seldom.nc", device="host", time_units="seconds since 2000-01-01")
    with often, seldom:
        often.define("rain", ("y", "x"), like=rain)
        seldom.define("wind", ("z", "y", "x"), like=wind)
        seldom.define("sum", ("y", "x"), like=rain, statistic="mean")
        for step in range(1, 13):
            rain += 1
            wind += 0.5
            if step % 2 == 0:
                often.put("rain", rain)
                often.end_step(60.0 * step)
            seldom.put("sum", rain)
            if step % 6 == 0:
                seldom.put("wind", wind)
                seldom.end_step(60.0 * step)
        assert often.facts().slot_bytes < seldom.facts().slot_bytes  # each has its own
    with ps.open(tmp_path / "often.nc", device="host") as file:
        assert file["time"][...].to_numpy().tolist() == [120.0, 240.0, 360.0, 480.0, 600.0, 720.0]
        assert file["rain"][:, 0, 0].to_numpy().tolist() == [2, 4, 6, 8, 10, 12]
    with ps.open(tmp_path / "seldom.nc", device="host") as file:
        assert file["time"][...].to_numpy().tolist() == [360.0, 720.0]
        assert file["wind"][:, 2, 4, 5].to_numpy().tolist() == [3, 6]
        assert file["sum"][:, 0, 0].to_numpy().tolist() == [3.5, 9.5]
