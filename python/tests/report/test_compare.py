"""penstock compare: what changed beyond noise, and nothing else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Ran, assert_one_line_error
from places import DATA

from penstock_bench.runs.compare import compare

RESULTS = DATA
Rows = list[dict[str, Any]]
Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return [json.loads(line) for line in (RESULTS / "core-gpu.jsonl").read_text().splitlines()]


def changed(rows: Rows, name: str, factor: float, field: str = "bytes_per_second") -> Rows:
    """The rows with one probe's numbers multiplied."""
    copied = copy.deepcopy(rows)
    for row in copied:
        if row.get("name") == name:
            row[field] *= factor
    return copied


def save(path: Path, rows: Rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_file_is_like_itself(rows: Rows) -> None:
    report = compare(rows, rows)
    assert {one.ratio for one in report.comparisons} == {1.0}
    assert not any(one.changed for one in report.comparisons)
    assert report.only_first == report.only_second == report.differences == []


def test_a_change_beyond_noise_is_told_of_its_probe_only(rows: Rows) -> None:
    report = compare(rows, changed(rows, "hot read", 0.8))
    assert [(one.name, one.changed) for one in report.comparisons if one.changed] == [("hot read", "worse")]
    one = next(one for one in report.comparisons if one.name == "hot read")
    assert one.ratio == pytest.approx(0.8)
    assert one.low is not None and one.high is not None and one.low <= 0.8 <= one.high < 0.9
    assert one.regressed(0.95) and not one.regressed(0.75)


def test_shorter_times_are_better(rows: Rows) -> None:
    report = compare(rows, changed(rows, "4 KiB one at a time", 0.5, "median_us"))
    one = next(one for one in report.comparisons if one.name == "4 KiB one at a time")
    assert (one.unit, one.changed) == ("us", "better")
    assert one.ratio == pytest.approx(2)


def test_an_interval_holds_the_true_ratio_as_often_as_it_says(rows: Rows) -> None:
    machine = next(row for row in rows if row["kind"] == "machine")
    source = random.Random(5)

    def drawn(mean: float) -> Rows:
        made = [{"kind": "core", "name": "x", "bytes_per_second": source.gauss(mean, 0.05 * mean)} for _ in range(15)]
        return [machine, *made]

    inside = 0
    for _ in range(200):
        one = compare(drawn(1e9), drawn(1.2e9)).comparisons[0]
        assert one.low is not None and one.high is not None
        inside += one.low <= 1.2 <= one.high
    assert inside >= 180


def test_few_samples_have_no_interval_and_cannot_fail(rows: Rows) -> None:
    few = [row for row in changed(rows, "hot read", 0.1) if row.get("round", 0) < 2]
    one = next(one for one in compare(rows, few).comparisons if one.name == "hot read")
    assert one.low is None and one.changed == "" and not one.regressed(1)


def test_what_cannot_be_compared_is_named(rows: Rows) -> None:
    for spoilt in (changed(rows, "hot read", 0), [_timed(row) for row in rows]):
        report = compare(rows, spoilt)
        assert report.unlike == ["hot read"]
        assert "hot read" not in {one.name for one in report.comparisons}


def _timed(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"median_us": 5.0} if row.get("name") == "hot read" else row


def test_machines_that_differ_are_told(rows: Rows) -> None:
    other = copy.deepcopy(rows)
    next(row for row in other if row["kind"] == "machine")["machine"]["kernel"] = "1.0"
    assert any(text.startswith("kernel: ") and text.endswith(" and 1.0") for text in compare(rows, other).differences)


def test_the_moment_of_a_driver_is_no_difference_of_machines(rows: Rows) -> None:
    first, other = copy.deepcopy(rows), copy.deepcopy(rows)
    for some, state in ((first, "no"), (other, "partly")):
        next(row for row in some if row["kind"] == "machine")["machine"]["cufile"] = {"library": "1.15", "state": state}
    assert compare(first, other).differences == []
    next(row for row in other if row["kind"] == "machine")["machine"]["cufile"]["library"] = "1.14"
    assert len(compare(first, other).differences) == 1


def test_the_command_fails_on_a_regression_only(penstock: Run, rows: Rows, tmp_path: Path) -> None:
    first, second = save(tmp_path / "a", rows), save(tmp_path / "b", changed(rows, "hot read", 0.9))
    assert penstock("compare", first, second).code == 0
    assert penstock("compare", first, second, "--fail-below", "0.8").code == 0
    failed = penstock("compare", first, second, "--fail-below", "0.95", "--json")
    assert failed.code == 1
    assert failed.json["regressed"] == ["hot read"]
    assert failed.err == f"compare {second}: below 0.95 of {first}: hot read\n"
    assert penstock("compare", second, first, "--fail-below", "0.95").code == 0
    assert "worse" in penstock("compare", first, second).out


def test_wrong_input_is_one_line(penstock: Run, rows: Rows, tmp_path: Path) -> None:
    good = save(tmp_path / "a", rows)
    other = save(tmp_path / "c", [row | {"name": "else"} if "name" in row else row for row in rows])
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\xff\x00")
    assert_one_line_error(penstock("compare", good, "missing"), "missing")
    assert_one_line_error(penstock("compare", good, garbage), "garbage")
    assert_one_line_error(penstock("compare", good, other), "measured")
    assert_one_line_error(penstock("compare", good, good, "--fail-below", "2"), "--fail-below")
