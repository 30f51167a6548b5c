"""The suite `io-size` at a tiny size: rows, proved states, missing paths with their causes, two places, tables."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Ran, assert_one_line_error
from rich.console import Console

import penstock
from penstock.calibration.machine import mount_of
from penstock.calibration.workspace import Workspace
from penstock_bench.engine import definition
from penstock_bench.report.show import print_results
from penstock_bench.runs import compare, definitions, session, stored
from penstock_bench.suites.io_size import words

Rows = list[dict[str, Any]]
SIZES = [65536, 1 << 20]


def tiny(**changes: Any) -> definition.Definition:
    whole = definitions.load("io-size", True)
    settings = whole.settings["io-size"] | {"request_bytes": ["64KiB", "1MiB"], "workers": [3]}
    return replace(whole, file_bytes=4 << 20, repeats=2, settings={"io-size": settings}, **changes)


def run(place: Path, chosen: definition.Definition, remote: Path | None = None) -> Rows:
    request = session.Request(chosen, "host", place, place / "rows.jsonl", True, remote=remote)
    return session.run(request, lambda *_: None)


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return run(tmp_path, tiny())


def test_every_cell_is_measured_or_missing_with_its_cause(rows: Rows, tmp_path: Path) -> None:
    cells = [row for row in rows if row["kind"] == "io-size"]
    missing = [row for row in rows if row["kind"] == "missing"]
    paths = definitions.load("io-size", True).settings["io-size"]["paths"]
    for path in paths:
        for size in SIZES:
            mine = [row for row in cells if (row["path"], row["request_bytes"]) == (path, size)]
            name = f"{path} {'64 KiB' if size == 65536 else '1 MiB'} x 3"
            causes = [row["cause"] for row in missing if row["name"] == name]
            assert (len(mine), len(causes)) in ((2, 0), (0, 1)), name
            assert all(row["name"] == name for row in mine)
            assert all(causes)
    assert {"gds", "gds-compat"} <= {row["name"].split()[0] for row in missing}  # the device is emulated
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.jsonl"]
    assert stored.read(tmp_path / "rows.jsonl") == rows


def test_rows_hold_the_whole_file_checked_from_a_proved_state(rows: Rows) -> None:
    for row in rows:
        if row["kind"] != "io-size":
            continue
        assert row["bytes"] == row["verified_bytes"] == 4 << 20
        assert row["operations"] == row["timed"] == row["bytes"] // row["request_bytes"]
        assert row["resident_before"] <= 0.01
        assert row["cache"] == ("direct" if row["resident_after"] <= 0.05 else "cold")
        if row["path"] not in ("auto", "plain"):
            assert (row["took"], row["cache"]) == (row["path"], "direct")
        assert row["seconds"] > 0
        assert 0 <= row["cpu_user_percent"] + row["cpu_system_percent"] <= 200
        assert row["min_us"] <= row["p50_us"] <= row["p99_us"] <= row["p999_us"] <= row["max_us"]
        assert (row["place"], row["workers"]) == ("local", 3)
        for power in row["power"].values():
            assert power["watts"] == "not available" or power["watts"] > 0
            assert "cause" in power or "source" in power


def test_a_second_directory_stands_beside_the_first(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    found = run(here, tiny(), there)
    cells = [row for row in found if row["kind"] == "io-size"]
    assert {row["place"] for row in cells} == ({"local", "remote"} if cells else set())
    assert all(row["file_system"] for row in cells)
    assert all(row["name"].endswith(", remote") == (row["place"] == "remote") for row in cells)
    assert list(there.iterdir()) == []
    text = printed(found)
    assert not cells or "remote" in text
    missing = {row["name"] for row in found if row["kind"] == "missing"}
    assert {"gds 1 MiB x 3", "gds 1 MiB x 3, remote"} <= missing


def test_the_time_limit_of_the_suite_is_told_and_that_of_a_cell_ends_it(tmp_path: Path) -> None:
    found = run(tmp_path, tiny(seconds=0.0))
    assert [row["kind"] for row in found if row["kind"] != "machine"] in (["stopped"], ["missing", "stopped"])
    chosen = tiny()
    settings = chosen.settings["io-size"] | {"cell_seconds": 0}
    cut = [row for row in run(tmp_path, replace(chosen, settings={"io-size": settings})) if row["kind"] == "io-size"]
    for row in cut:  # a cell always moves something, else it has no rate
        assert row["reached_limit"]
        assert 0 < row["bytes"] == row["verified_bytes"] < 4 << 20


def test_a_corrupted_byte_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mount_of(tmp_path)["type"] == "tmpfs":
        pytest.skip("no file of a tmpfs can be made cold, so nothing is read")
    whole = Workspace.make

    def corrupted(self: Workspace, path: Path, progress: object = None) -> Path:
        made = whole(self, path)
        with made.open("r+b") as stream:
            stream.seek(3_000_000)
            stream.write(b"!")
        return made

    monkeypatch.setattr(Workspace, "make", corrupted)
    with pytest.raises(penstock.Error, match="bytes are wrong") as caught:
        run(tmp_path, tiny())
    assert caught.value.offset_bytes == 3_000_000


def test_results_are_printed_and_compared(rows: Rows) -> None:
    text = printed(rows)
    cells = {row["path"] for row in rows if row["kind"] == "io-size"}
    for word in ("GiB/s", "user %", "p99 ms", *cells) if cells else ("not measured", "cannot be made cold"):
        assert word in text
    assert not cells or "the device is emulated" in " ".join(text.split())
    report = compare.compare(rows, rows)
    assert {row["name"] for row in rows if row["kind"] == "io-size"} <= {one.name for one in report.comparisons}
    assert all(one.ratio == 1 for one in report.comparisons)
    said = words.of_io_size(rows)
    assert len(said) == bool(cells)
    for one in said:
        assert "3 workers that read 1 MiB" in one.text
        assert {row["path"] for row in one.rows} == {"auto", "plain"}


def test_a_second_directory_is_refused_where_nothing_measures_it(penstock: Callable[..., Ran], tmp_path: Path) -> None:
    assert_one_line_error(penstock("bench", "core", "--remote", tmp_path), "--remote", "io-size")
    assert_one_line_error(penstock("bench", "io-size", "--remote", ""), "--remote", "empty")
    absent = penstock("bench", "io-size", "--quick", "--file-bytes", "1MiB", "--dir", tmp_path, "--remote", "/nowhere")
    assert_one_line_error(absent, "/nowhere")


def printed(found: Rows) -> str:
    stream = io.StringIO()
    print_results(found, Console(file=stream, width=200))
    return stream.getvalue()
