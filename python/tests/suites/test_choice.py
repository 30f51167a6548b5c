"""The suite `choice`: it measures what it says, and its judgement of rows is right."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import run_penstock

from penstock.calibration.stage import Cell, Sample
from penstock_bench.runs import stored
from penstock_bench.suites.choice import judge, measure as choice

SUITE = """
name = "small"
file_bytes = "16MiB"
repeats = 1
seconds = 20
[choice]
calibrate_seconds = 3
request_bytes = ["4KiB", "1MiB", "64MiB"]
"""


def row(way: str, seconds: float, size: int = 4096, cache: str = "hot", direction: str = "read") -> dict[str, Any]:
    return {
        "kind": "choice",
        "way": way,
        "direction": direction,
        "cache": cache,
        "request_bytes": size,
        "seconds": seconds,
        "took": way,
    }


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("choice")
    (folder / "small.toml").write_text(SUITE)
    ran = run_penstock("bench", folder / "small.toml", "--device", "host", "--dir", folder, "--out", folder / "r.jsonl")
    assert ran.code == 0, ran.err
    assert "within 5 % of the best" in ran.out
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []
    return stored.read(folder / "r.jsonl")


def test_auto_and_the_paths_are_measured_in_every_cell(rows: list[dict[str, Any]]) -> None:
    cells = judge.medians(rows)
    assert {(direction, size) for direction, cache, size in cells if cache == "hot"} == {
        (direction, size) for direction in ("read", "write") for size in (4096, 1 << 20)
    }, "a request that is larger than the file is left out"
    for ways in cells.values():
        assert {"auto", "buffered", "auto, Python"} <= ways.keys()
    assert all(one["took"] == one["way"] for one in rows if one["kind"] == "choice" and one["way"] == "buffered")


def test_the_profile_it_chose_by_is_in_the_results(rows: list[dict[str, Any]]) -> None:
    (profile,) = (one for one in rows if one["kind"] == "profile")
    assert profile["text"].startswith("# Penstock machine profile, version 1\n")
    assert profile["text"].count("\n") > profile["cells"] > 0


def test_choosing_is_timed_with_the_profile_and_without(rows: list[dict[str, Any]]) -> None:
    found = {(one["by"], one["request_bytes"]): one["seconds"] for one in rows if one["kind"] == "choosing"}
    assert found.keys() == {(by, size) for by in ("profile", "rules") for size in (4096, 1 << 20)}
    assert all(0 < seconds < 1 for seconds in found.values())
    assert judge.choosing_us(rows) == pytest.approx(found["profile", 4096] * 1e6)


def test_peers_that_are_not_here_are_missing_with_the_cause(rows: list[dict[str, Any]]) -> None:
    missing = {one["name"]: one["cause"] for one in rows if one["kind"] == "missing"}
    assert missing["read hot KvikIO default"] == "KvikIO needs a GPU"
    assert not any(name.endswith(" auto") for name in missing)


def test_a_run_is_continued_with_its_profile_and_its_samples(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    text = "".join(json.dumps(one) + "\n" for one in rows if one["kind"] != "stopped")
    (tmp_path / "small.toml").write_text(SUITE)
    (tmp_path / "r.jsonl").write_text(text)
    told = ("--device", "host", "--dir", tmp_path, "--out", tmp_path / "r.jsonl", "--resume")
    assert run_penstock("bench", tmp_path / "small.toml", *told).code == 0
    after = stored.read(tmp_path / "r.jsonl")
    for kind in ("profile", "choosing", "missing"):
        assert [one for one in after if one["kind"] == kind] == [one for one in rows if one["kind"] == kind]
    names = [one["name"] for one in after if one["kind"] == "choice"]
    assert len(names) == len(set(names)), "each was wanted once, and had been visited"


def test_the_figure_is_drawn(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    from penstock_bench.suites.choice.figures import choice_figure

    figure = choice_figure(rows)
    assert figure is not None
    assert len(figure.axes) == 4
    assert choice_figure([]) is None


def visits_of(speeds: dict[str, float], took: str, rounds: int) -> dict[str, int]:
    """How often a field wants each way, when each visit finds the same."""
    field = choice.Field(rounds)
    ways = [choice.ChoiceWay(name, "auto" if "auto" in name else name) for name in speeds]
    counts = dict.fromkeys(speeds, 0)
    for _ in range(rounds):
        for way in ways:
            cell = Cell("read", True, 1 << 20, way.path)
            if field.wanted(cell, way):
                counts[way.name] += 1
                chosen = took if way.path == "auto" else way.name
                field.saw(cell, way, Sample(speeds[way.name], 0.0, 1, chosen))
    return counts


def test_visits_go_to_what_is_hard_to_tell_apart() -> None:
    near = visits_of({"auto": 1.0, "auto, Python": 1.0, "buffered": 1.0, "mmap": 1.05, "direct": 3.0}, "buffered", 12)
    assert near == {"auto": 12, "auto, Python": 5, "buffered": 12, "mmap": 12, "direct": 1}
    clear = visits_of({"auto": 1.0, "buffered": 1.0, "mmap": 1.4}, "buffered", 12)
    assert clear == {"auto": 5, "buffered": 5, "mmap": 3}
    wrong = visits_of({"auto": 2.0, "buffered": 2.0, "mmap": 1.0}, "buffered", 12)
    assert wrong == {"auto": 12, "buffered": 12, "mmap": 12}, "a choice that seems wrong is looked at closely"


def test_what_is_missing_or_was_hopeless_in_smaller_cells_is_not_tried() -> None:
    field, direct, auto = choice.Field(9), choice.ChoiceWay("direct", "direct"), choice.ChoiceWay("auto", "auto")
    small, large = (Cell("read", True, size, "direct") for size in (16 << 20, 64 << 20))
    field.saw(small, choice.ChoiceWay("buffered", "buffered"), Sample(1.0, 0.0, 1, "buffered"))
    field.saw(small, direct, Sample(2.5, 0.0, 1, "direct"))
    assert not field.wanted(large, direct)
    assert field.wanted(replace(large, cached=False), direct)
    field.saw(replace(large, cached=False), direct, None)
    assert not field.wanted(replace(small, cached=False), direct)
    assert field.wanted(large, auto)


def test_quality_is_the_best_median_over_the_ways_own() -> None:
    rows = [row("auto", 2.0), row("auto", 4.0), row("auto", 2.1), row("buffered", 2.0), row("direct", 8.0)]
    rows += [row("auto", 1.0, 1 << 20), row("buffered", 5.0, 1 << 20), row("direct", 1.0, 1 << 20)]
    rows = [one | {"took": "buffered"} if one["way"] == "auto" else one for one in rows]
    found = {one.way: one for one in judge.qualities(rows)}
    assert found[judge.CHOSEN].by_cell == {("read", "hot", 4096): 1.0, ("read", "hot", 1 << 20): pytest.approx(1 / 3)}
    assert found["auto"].by_cell[("read", "hot", 4096)] == pytest.approx(2.0 / 2.1)
    assert found["auto"].share == 1.0
    assert found["always direct"].worst == pytest.approx(0.25)
    assert found["always buffered"].worst == pytest.approx(0.2)
    assert found["always buffered"].mean == pytest.approx((1.0 * 0.2) ** 0.5)
    assert found["direct from 1 MiB on"].share == 1.0
    assert found["direct from 16 KiB on"].by_cell == {("read", "hot", 4096): 1.0, ("read", "hot", 1 << 20): 1.0}


def test_a_choice_that_is_far_from_the_best_fails_the_promise() -> None:
    rows = [row("auto", 2.0) | {"took": "direct"}, row("buffered", 1.0), row("direct", 2.0)]
    rows += [row("auto", 9.0, 1 << 20) | {"took": "buffered"}, row("buffered", 1.0, 1 << 20)]
    share, told, worst, choosing = judge.checks(rows)
    assert (share.value, share.passed) == (0.5, False)
    assert (told.value, told.passed) == (0.5, False), "one sample tells nothing, and counts as worse"
    assert (worst.value, worst.passed) == (0.5, False)
    assert choosing.value is None
    unnamed = row("auto", 1.04) | {"took": "uring"}  # a path that was not measured by name
    good = judge.checks([unnamed, row("buffered", 1.0)])
    assert [check.passed for check in good[:3]] == [True, True, True]


def test_what_the_samples_cannot_tell_apart_is_said_to_be_so() -> None:
    near = [row("buffered", seconds) for seconds in (1.0, 1.3, 0.9, 1.1)]
    near += [row("direct", seconds) for seconds in (1.2, 0.95, 1.4, 1.2)]
    near += [row("auto", 1.2) | {"took": "direct"}]
    share, told, *_ = judge.checks(near)
    assert (share.passed, told.passed) == (False, True)
    clear = [one | {"seconds": one["seconds"] * 3} if one["way"] == "direct" else one for one in near]
    assert judge.checks(clear)[1].passed is False
