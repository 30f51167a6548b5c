"""Results as CSV, JSON lines and Parquet: what is read back is what was measured, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command import Ran, assert_one_line_error
from mounts import Mounted, root_only
from places import DATA

from penstock import Error
from penstock_bench.runs import stored, tables

RESULTS = DATA
CORE, FORMATS = RESULTS / "core-gpu.jsonl", RESULTS / "formats-gpu.jsonl"
NEEDS_ARROW = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
SUFFIXES = (".csv", ".jsonl", pytest.param(".parquet", marks=NEEDS_ARROW))
Run = Callable[..., Ran]
Rows = list[dict[str, Any]]


def load(path: Path) -> Rows:
    """The rows by other people's readers: values of CSV as Python values, absent ones left out."""
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = parquet.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        with path.open(newline="") as stream:
            rows = [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(stream)]
    return [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def without_absent(rows: Rows) -> Rows:
    return [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_row_and_value_is_read_back(penstock: Run, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"table{suffix}"
    ran = penstock("export", FORMATS, "--out", out)
    assert ran.code == 0, ran.err
    expected = without_absent([tables.flatten(row) for row in tables.of_results(stored.read(FORMATS))])
    found = load(out)
    assert ran.out.startswith(f"{len(expected)} rows: ")
    assert [row["kind"] for row in found] == [row["kind"] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert row.keys() == wanted.keys()
        for name in ("name", "bytes", "bytes_per_second", "seconds", "machine.cores", "machine.device.emulated"):
            assert row.get(name) == wanted.get(name)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_each_row_names_its_machine(penstock: Run, tmp_path: Path) -> None:
    both = tmp_path / "both.jsonl"
    both.write_text((RESULTS / "core-host.jsonl").read_text() + CORE.read_text())
    assert penstock("export", both, "--out", tmp_path / "t.csv").code == 0
    rows = load(tmp_path / "t.csv")
    ids = list(dict.fromkeys(row["machine.id"] for row in rows))
    assert len(ids) == 2
    assert {row["machine.cores"] for row in rows if row["machine.id"] == ids[0]} == {2}
    assert {row["machine.cores"] for row in rows if row["machine.id"] == ids[1]} == {16}
    assert {row["machine.device.model"] for row in rows if row["kind"] == "core"} >= {"emulated GPU on host memory"}


def test_rows_that_name_their_machine_get_its_columns() -> None:
    machines = [{"kind": "machine", "id": name, "machine": {"cores": cores}} for name, cores in (("a", 2), ("b", 16))]
    rows = tables.of_results([*machines, {"kind": "core", "machine": "a"}, {"kind": "core", "machine": "b"}])
    assert [row["machine"] for row in rows] == [{"cores": 2, "id": "a"}, {"cores": 16, "id": "b"}] * 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hard_values_survive(tmp_path: Path, suffix: str) -> None:
    hard = [
        {"text": 'a "quoted", two\nlines', "deep": {"er": {"list": [1, {"x": None}], "empty": {}}}, "flag": True},
        {"text": "Ω", "rate": 0.1 + 0.2, "count": (1 << 53) + 1, "flag": False},
        {"rate": 3, "count": -1, "mixed": 5},
        {"mixed": "five"},
    ]
    tables.save(tmp_path / f"t{suffix}", hard, "export")
    rows = load(tmp_path / f"t{suffix}")
    assert [row.get("text") for row in rows] == ['a "quoted", two\nlines', "Ω", None, None]
    assert json.loads(rows[0]["deep.er.list"]) == [1, {"x": None}]
    assert rows[0]["deep.er.empty"] == "{}"
    assert (rows[0]["flag"], rows[1]["flag"]) == (True, False)
    assert (rows[1]["rate"], rows[2]["rate"]) == (0.1 + 0.2, 3)
    assert (rows[1]["count"], rows[2]["count"]) == ((1 << 53) + 1, -1)
    assert [str(row["mixed"]) for row in rows[2:]] == ["5", "five"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_comparison_is_a_table_too(penstock: Run, tmp_path: Path, suffix: str) -> None:
    other = [json.loads(line) for line in CORE.read_text().splitlines()]
    other = [
        row | {"bytes_per_second": 0.5 * row["bytes_per_second"]} if "bytes_per_second" in row else row
        for row in other
        if row.get("name") != "cold read"
    ]
    second, out = tmp_path / "second", tmp_path / f"c{suffix}"
    second.write_text("".join(json.dumps(row) + "\n" for row in other))
    ran = penstock("compare", CORE, second, "--fail-below", "0.9", "--out", out, "--json")
    assert ran.code == 1, "the table is written of a regression above all"
    rows = load(out)
    told = {one["name"]: one for one in ran.json["comparisons"]}
    found = {row["name"]: row for row in rows if row["found"] == "both"}
    assert found.keys() == told.keys()
    for name, one in told.items():
        assert [found[name].get(field) for field in ("ratio", "low", "high")] == [one["ratio"], one["low"], one["high"]]
        assert [found[name]["samples_first"], found[name]["samples_second"]] == one["samples"]
        assert found[name]["regressed"] == (name in ran.json["regressed"])
    assert [row["name"] for row in rows if row["found"] == "only first"] == ran.json["only_first"]


def test_names_that_no_table_has_are_refused(penstock: Run, tmp_path: Path) -> None:
    for name, words in (("t.xlsx", ".xlsx"), ("t", "no suffix"), ("t.CSV", ".CSV")):
        assert_one_line_error(penstock("export", CORE, "--out", tmp_path / name), "export", name, words, ".parquet")
        ran = penstock("compare", CORE, CORE, "--out", tmp_path / name)
        assert_one_line_error(ran, "compare", name, words)
        assert ran.out == "", "refused before anything was compared"
    assert_one_line_error(penstock("export", tmp_path / "absent", "--out", tmp_path / "t.csv"), "absent")
    assert_one_line_error(penstock("export", CORE, "--out", ""), "--out: the name is empty")
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_parquet_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Error) as caught:
        tables.encoder(tmp_path / "t.parquet", "export")
    assert caught.value.code == "unsupported"
    assert "pip install pyarrow" in caught.value.advice
    tables.encoder(tmp_path / "t.csv", "export")


def test_what_cannot_be_written_is_one_line_and_leaves_nothing(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(
        penstock("export", CORE, "--out", tmp_path / "no" / "t.csv"), "t.csv", "no such directory", "--out"
    )
    (tmp_path / "dir.csv").mkdir()
    assert_one_line_error(penstock("export", CORE, "--out", tmp_path / "dir.csv"), "not a regular file")
    (tmp_path / "dev.csv").symlink_to("/dev/null")
    assert_one_line_error(penstock("export", CORE, "--out", tmp_path / "dev.csv"), "not a regular file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.csv", "dir.csv"]


@root_only
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_older_table(penstock: Run, tmp_path: Path, suffix: str) -> None:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=8k", "tmpfs") as place:
        out = place / f"t{suffix}"
        out.write_text("older")
        assert_one_line_error(penstock("export", CORE, "--out", out), out.name, "No space left", "free space", "--out")
        assert out.read_text() == "older"
        assert list(place.iterdir()) == [out]


def test_a_symbolic_link_stays_and_rights_are_the_usual_ones(penstock: Run, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real" / "t.csv")
    assert penstock("export", CORE, "--out", tmp_path / "link.csv").code == 0
    assert (tmp_path / "link.csv").is_symlink()
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "real" / "t.csv").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_text_is_no_formula_of_a_spreadsheet_and_numbers_stay_numbers(tmp_path: Path, begins: str) -> None:
    """A results file is text from somewhere: a suite's name, a cause, the fingerprint of a machine."""
    text = begins + 'HYPERLINK("http://x","y")'
    rows = [{"kind": "trial", "name": text, begins + "column": "a", "seconds": -1.5, "bytes": -3, "none": None}]
    tables.save(tmp_path / "table.csv", rows, "export")
    with (tmp_path / "table.csv").open(newline="") as stream:
        names, cells = csv.reader(stream)
    row = dict(zip(names, cells, strict=True))
    assert row["name"] == "'" + text
    assert row["'" + begins + "column"] == "a"
    assert (row["seconds"], row["bytes"]) == ("-1.5", "-3")
    tables.save(tmp_path / "table.jsonl", rows, "export")
    assert json.loads((tmp_path / "table.jsonl").read_text())["name"] == text
