"""The suite `multiplicity` at a tiny size: rows of every way or its cause, proved states, checked data, comparison."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import penstock
from penstock.calibration.workspace import Workspace
from penstock_bench.engine import definition
from penstock_bench.report import page, sources
from penstock_bench.report.show import print_results
from penstock_bench.runs import compare, definitions, session, stored
from penstock_bench.suites.multiplicity import measure as multiplicity, words

Rows = list[dict[str, Any]]
COUNTS = [1, 4]
SIZES = [4096, 65536]


def tiny(**settings: Any) -> definition.Definition:
    whole = definitions.load("multiplicity", True)
    small = {"request_bytes": ["4KiB", "64KiB"], "multiplicity": COUNTS, "cell_seconds": 0.002, "queued_bytes": "1MiB"}
    table = whole.settings["multiplicity"] | small | settings
    return replace(whole, file_bytes=4 << 20, repeats=1, seconds=60.0, settings={"multiplicity": table})


def run(place: Path, chosen: definition.Definition) -> Rows:
    return session.run(session.Request(chosen, "host", place, place / "rows.jsonl", True), lambda *_: None)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    place = tmp_path_factory.mktemp("multiplicity")
    found = run(place, tiny())
    assert [entry.name for entry in place.iterdir()] == ["rows.jsonl"]
    assert stored.read(place / "rows.jsonl") == found
    return found


def reads(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "read"]


def copies(rows: Rows) -> Rows:
    return [row for row in rows if row["kind"] == "multiplicity" and row["subject"] == "copy"]


def test_the_suites_name_every_way_and_all_are_measured_or_missing_with_their_cause(rows: Rows) -> None:
    for quick in (True, False):
        table = definitions.load("multiplicity", quick).settings["multiplicity"]
        assert table["ways"] == list(multiplicity.WAYS)
        assert table["copies"] == list(multiplicity.COPY_WAYS)
    measured = {row["name"] for row in reads(rows)}
    missing = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    for cell in itertools.product(multiplicity.WAYS, SIZES, COUNTS, ("sequential", "random")):
        name = multiplicity.Read(*cell).name
        assert (name in measured) != (name in missing), name
    assert all(missing.values())
    assert all(any(name.startswith(way) for name in missing) for way in multiplicity.WAYS if "gds" in way)
    assert len(copies(rows)) == len(multiplicity.COPY_WAYS) * len(SIZES) * len(COUNTS) * 4


def test_reads_do_what_their_way_says_from_a_proved_state(rows: Rows) -> None:
    assert reads(rows)
    for row in reads(rows):
        way, count = multiplicity.WAYS[row["way"]], row["multiplicity"]
        assert row["buffer"] == way.memory
        assert row["bytes"] == row["operations"] * row["request_bytes"]
        assert row["operations"] >= count
        # What the slots held at the end was checked: of the last submission at least one request.
        assert row["request_bytes"] <= row["verified_bytes"] <= count * row["request_bytes"]
        assert 0 < row["min_us"] <= row["p50_us"] <= row["p99_us"] <= row["p999_us"] <= row["max_us"]
        assert row["timed"] == row["submissions"]
        assert row["operations_per_second"] == pytest.approx(row["operations"] / row["seconds"])
        if way.state == "hot":
            assert row["resident_before"] > 0.99
            assert row["cache"] == "hot"
        else:
            assert row["resident_before"] <= 0.01
            assert row["cache"] == ("direct" if row["resident_after"] <= 0.05 else "cold")
        wanted = {"CPU aio": "aio", "CPU uring": "uring", "CPU uring-buffered": "uring-buffered"}
        asked = wanted.get(row["way"].removesuffix(", callback"))
        assert asked is None or row["took"] == asked


def test_one_submission_holds_as_many_requests_as_at_once(rows: Rows) -> None:
    for row in reads(rows):
        batched = row["way"] in ("CPU aio", "CPU uring", "CPU uring-buffered", "GPU batch auto")
        assert row["operations"] == row["submissions"] * (row["multiplicity"] if batched else 1)


def test_copies_are_timed_each_only_where_a_thread_waited_for_it(rows: Rows) -> None:
    for row in copies(rows):
        assert row["bytes"] == row["operations"] * row["request_bytes"] > 0
        assert row["operations"] % row["multiplicity"] == 0 or row["way"] == "sync by threads"
        assert ("p50_us" in row) == (row["way"] == "sync by threads")
        assert row["buffer"] in ("page-locked", "pageable")
        assert row["order"] in ("host to device", "device to host")


def test_results_are_printed_compared_and_drawn(rows: Rows, tmp_path: Path) -> None:
    stream = io.StringIO()
    print_results(rows, Console(file=stream, width=220))
    text = stream.getvalue()
    for word in ("Reads of 4 KiB", "Copies of 4 KiB", *{row["way"] for row in reads(rows)}):
        assert word in text
    report = compare.compare(rows, rows)
    assert {row["name"] for row in reads(rows)} <= {one.name for one in report.comparisons}
    assert all(one.ratio == 1 for one in report.comparisons)
    said = words.of_multiplicity(rows)
    assert len(said) == any(row["buffer"] == "device" for row in reads(rows))  # none where no file can be made cold
    for one in said:
        assert "4 KiB into device memory" in one.text
        assert {row["request_bytes"] for row in one.rows} == {4096}
    kept = tmp_path / "rows.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.make(sources.read([kept]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Requests at once" in text
    assert text.count("<svg") == 2


def test_the_time_limit_is_told(tmp_path: Path) -> None:
    chosen = replace(tiny(), seconds=0.0)
    assert [row["kind"] for row in run(tmp_path, chosen) if row["kind"] not in ("machine", "missing")] == ["stopped"]


def test_a_way_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error, match="no way 'CPU magic'"):
        run(tmp_path, tiny(ways=["CPU magic"]))


def test_corrupted_files_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Workspace.make

    def corrupted(self: Workspace, path: Path, progress: object = None) -> Path:
        made = whole(self, path, None)
        made.write_bytes(bytes(made.stat().st_size))
        return made

    monkeypatch.setattr(Workspace, "make", corrupted)
    chosen = tiny(ways=["CPU uring-buffered"], copies=[])
    with pytest.raises(penstock.Error, match="bytes are wrong"):
        run(tmp_path, chosen)
