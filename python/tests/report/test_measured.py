"""What was measured and is kept: tables of medians are made of rows, pages, figures and sentences of tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from places import DATA, ROOT

from penstock import Error
from penstock_bench.measured import __main__ as command, drawing, pages, said, table
from penstock_bench.measured.making import Origin, table_of

DATA = DATA
TABLES = pages.all_tables(ROOT / "bench" / "tables")
PAGES = pages.pages(TABLES)
SAID = said.read((ROOT / "bench" / "said.toml").read_text())
ORIGIN = Origin("This machine", "penstock bench core", "1234abc")
KEPT_BYTES, FIGURE_BYTES = 400_000, 100_000
AGAIN = "run `python -m penstock_bench.measured pages` at the top of the tree"


def rows(path: Path, rates: list[float], **more: Any) -> Path:
    """A results file of one cell."""
    machine, *_ = (DATA / "core-gpu.jsonl").read_text().splitlines()
    cell = {
        "kind": "core",
        "name": "hot read",
        "bytes": 1 << 30,
        "cpu_user_s": 0.5,
        "cpu_system_s": 0.25,
        "took": "mmap",
    }
    found = [cell | more | {"round": turn, "bytes_per_second": rate, "seconds": 1} for turn, rate in enumerate(rates)]
    path.write_text("\n".join([machine, *map(json.dumps, found)]) + "\n")
    return path


def test_a_cell_has_its_median_its_interval_and_how_many_samples_there_are(tmp_path: Path) -> None:
    made = table_of(rows(tmp_path / "r.jsonl", [1e9, 5e9, 3e9, 2e9, 4e9]), ORIGIN)
    (cell,) = made.of_kind("core")
    assert (cell["n"], cell["bytes_per_second"], cell["took"]) == (5, 3e9, "mmap")
    assert table.interval(cell, "bytes_per_second") == (1e9, 5e9)
    assert cell["cpu_s_per_gb"] == pytest.approx(0.75 / 1.073741824, rel=1e-4)
    assert made.value("hot read", "seconds") == pytest.approx((1 << 30) / 3e9)
    assert made.head["revision"] == "1234abc" and "NVIDIA H200" in made.head["device"]


def test_few_samples_and_equal_ones_have_no_bounds_in_the_table(tmp_path: Path) -> None:
    (two,) = table_of(rows(tmp_path / "two", [1e9, 3e9]), ORIGIN).of_kind("core")
    (same,) = table_of(rows(tmp_path / "same", [2e9] * 5), ORIGIN).of_kind("core")
    assert table.interval(two, "bytes_per_second") is None
    assert table.interval(same, "bytes_per_second") == (2e9, 2e9)
    assert "bytes_per_second low" not in two | same


def test_the_rows_of_a_table_have_its_median_and_its_interval(tmp_path: Path) -> None:
    """So what draws and judges rows shows the same of a table."""
    from penstock_bench.engine.intervals import estimate

    made = table_of(rows(tmp_path / "r", [1e9, 5e9, 3e9, 2e9, 4e9]), ORIGIN)
    found = estimate([row["bytes_per_second"] for row in made.rows("core")])
    assert (found.median, found.low, found.high) == (3e9, 1e9, 5e9)


def test_what_all_cells_have_alike_is_written_once(tmp_path: Path) -> None:
    labels = {"kind": "t", "buffer": "device, own", "path": "mmap", "n": 3, "told": False}
    cells = [labels | {"order": order, "seconds": seconds} for order, seconds in (("a", 1.5), ("b", 2.5))]
    made = table.MeasuredTable({"suite": "t"}, cells)
    assert made.text.count("device, own") == made.text.count("mmap") == made.text.count("false") == 1
    path = tmp_path / "t.csv"
    path.write_text(made.text)
    assert table.read(path).cells == cells
    assert [table.name_of(cell) for cell in table.read(path).cells] == ["device, own a mmap", "device, own b mmap"]


ODD = ["", "# x", "[x]", "a=b", "a,b", 'say "x"', " a ", "\u2028"]


@pytest.mark.parametrize("text", ODD)
def test_odd_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    wide = [{"kind": "k", "a": text, "a,b": 1, "n": 3, "rate": float("inf")}, {"kind": "k", "a": "z", "a,b": 1, "n": 4}]
    narrow = [{"kind": "j", "a": text}, {"kind": "j", "a": "z"}]
    alike = [{"kind": "i", "a": text, "b": number} for number in (1, 2)]
    made = table.MeasuredTable({"suite": "x"}, [*wide, *narrow, *alike])
    path = tmp_path / "t.csv"
    path.write_text(made.text)
    found = table.read(path)
    assert found.text == made.text
    for cell in made.cells:  # what is empty is absent
        assert {name: value for name, value in cell.items() if value != ""} in found.cells


def test_text_of_two_lines_makes_no_table(tmp_path: Path) -> None:
    for made in (table.MeasuredTable({"a": "b\nc"}, []), table.MeasuredTable({}, [{"kind": "k", "a": "b\nc"}])):
        with pytest.raises(ValueError, match="one line"):
            _ = made.text
    path = tmp_path / "t.csv"
    path.write_text("# a: b\n\nprose, and no part\n")
    with pytest.raises(Error, match="a part begins with"):
        table.read(path)


@pytest.mark.parametrize("revision", ["", "1234abc-dirty"])
def test_a_revision_that_cannot_be_looked_up_makes_no_table(tmp_path: Path, revision: str) -> None:
    with pytest.raises(Error, match="--revision"):
        table_of(rows(tmp_path / "r", [1e9]), Origin("This machine", "penstock bench core", revision))


def test_the_command_makes_a_table_and_says_what_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, of = tmp_path / "core" / "mine.csv", ["--title", "Mine", "--made-by", "penstock bench core"]
    given = ["table", str(DATA / "core-gpu.jsonl"), "--out", str(out), *of, "--revision", "1234abc"]
    assert command.main(given) == 0
    assert "| hot read / pinned copy |" in pages.pages(pages.all_tables(tmp_path))["core"]
    assert command.main(["table", str(DATA / "absent"), *given[2:]]) == 1
    out.write_text("name,n\n")
    with pytest.raises(Error, match="no head"):
        table.read(out)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_read_and_written_is_the_same(name: str) -> None:
    assert TABLES[name].text == (ROOT / "bench" / "tables" / f"{name}.csv").read_text()
    assert not TABLES[name].head["revision"].endswith("-dirty")


def test_the_pages_are_those_of_the_tables() -> None:
    there = {path.stem: path.read_text() for path in (ROOT / "docs" / "measured").glob("*.md")}
    assert there.keys() == PAGES.keys(), AGAIN
    behind = [name for name, text in PAGES.items() if there[name] != text]
    assert not behind, AGAIN


def test_links_from_and_to_the_pages_lead_to_files_and_headings() -> None:
    every = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    anchors = {path.resolve(): _anchors(path.read_text()) for path in every}
    for path in every:
        for target, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text())):
            place = (path.parent / target).resolve() if target else path.resolve()
            if "measured" in (path.parent.name, place.parent.name):
                assert place.exists(), (path.name, target)
                assert not anchor or anchor in anchors[place], (path.name, target, anchor)


def _anchors(text: str) -> set[str]:
    """Of headings, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", text, re.M)}


def test_control_a_table_that_changes_makes_its_page_stale() -> None:
    changed = table.MeasuredTable(TABLES["core/h200"].head, [*TABLES["core/h200"].cells])
    changed.cells[0] = changed.cells[0] | {"bytes_per_second": 1.0}
    assert pages.pages(TABLES | {"core/h200": changed})["core"] != PAGES["core"]


@pytest.mark.parametrize("name", SAID)
def test_a_page_says_what_the_tables_say(name: str) -> None:
    text = (ROOT / name).read_text()
    wrong = [one for one in said.claims(text, SAID[name]["claims"], TABLES) if one.here != one.true]
    assert not wrong, AGAIN
    for heading in SAID[name].get("whole", ()):
        assert said.untold(text, heading, SAID[name]["claims"], TABLES) == []


def test_control_a_number_a_sentence_and_a_number_that_nothing_tells_are_noticed() -> None:
    name = "README.md"
    text, fragments = (ROOT / name).read_text(), SAID[name]["claims"]
    true = text.partition("| page cache to GPU | ")[2].partition(" ")[0]
    changed = text.replace(f"| {true} |", "| 99.9 |", 1)
    assert [one.true[0] for one in said.claims(changed, fragments, TABLES) if one.here != one.true] == [true]
    assert said.filled(changed, fragments, TABLES) == text
    with pytest.raises(ValueError, match="0 places"):
        list(said.claims(text.replace("page cache to GPU", "cache to GPU"), fragments, TABLES))
    more = text.replace("\n## Licence", "It was 7.77 once.\n\n## Licence")
    assert "7.77" in said.untold(more, "## What was measured", fragments, TABLES)[0]


def test_expressions_are_arithmetic_over_cells() -> None:
    hot, link = (said.value(f"core/h200: {name}; GB/s", TABLES) for name in ("hot read", "copy to device"))
    assert said.value("core/h200: [hot read; GB/s] / [copy to device; GB/s]", TABLES) == hot / link
    assert said.value("core/two-cores: max([core/h200: hot read; GB/s], 2 * 3)", TABLES) == hot
    for wrong in ("core/h200", "nowhere: hot read; GB/s", "core/h200: __import__([hot read; GB/s])"):
        with pytest.raises(ValueError):
            said.value(wrong, TABLES)
    with pytest.raises(KeyError, match="no number"):
        said.value("core/h200: hot read; smell", TABLES)


def test_what_is_kept_is_small() -> None:
    kept = [
        path for folder in ("bench/tables", "docs/measured") for path in (ROOT / folder).rglob("*") if path.is_file()
    ]
    assert sum(path.stat().st_size for path in kept) <= KEPT_BYTES
    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 60_000
    assert not list(ROOT.glob("bench/**/*.jsonl")), "rows are not kept: see docs/bench.md"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "figures").iterdir()), ids=lambda path: path.name)
def test_figures_are_small_and_their_text_is_text(path: Path) -> None:
    assert path.stat().st_size <= FIGURE_BYTES
    if path.suffix == ".svg":
        drawn = path.read_text()
        assert re.search(r"<title>\w.*</title>", drawn) and drawn.count("<text") > 5
        assert 'style="fill: #ffffff"' in drawn.partition("axes_1")[0], "no opaque background"


def test_figures_are_drawn_of_the_tables(tmp_path: Path) -> None:
    for path in drawing.draw_all(TABLES, tmp_path):
        mine, kept = (re.findall(r"<text[^>]*>([^<]+)</text>", p.read_text()) for p in (path, _kept(path)))
        assert set(mine) == set(kept), "run `python -m penstock_bench.measured figures` at the top of the tree"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "figures").iterdir()), ids=lambda path: path.name)
def test_each_figure_is_shown_by_a_page(path: Path) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / link).resolve()
        for page in pages
        for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
    }
    assert path.resolve() in shown


def _kept(path: Path) -> Path:
    return ROOT / "docs" / "figures" / path.name


def test_what_is_promised_of_both_dragons_is_kept() -> None:
    """Bytes of tiers, sweeps, and matrices read with less memory than the file takes."""
    of = TABLES["hmatrix/two-cores"]
    built = "hmatrix build dragon.ply --device host --eps {0} --encoding tiers --store tiers-{0}.hmat"
    for eps, least in (("1e-4", 0.20), ("1e-6", 0.22)):
        name = built.format(eps)
        assert of.value(name, "bytes_stored") <= least * of.value(name, "bytes_fp64")
    solve = "hmatrix solve {}.ply --device host --matrix {}-{}.hmat --tol {} --cache {}"
    for eps, sweeps, matrices in (("1e-4", 5, 1.1), ("1e-6", 9, 3.2)):
        for mesh, file, cache in (("dragon", "small", "100MiB"), ("dragon100k", "big", "200MiB")):
            name = solve.format(mesh, file, eps, eps, cache)
            assert of.value(name, "sweeps") <= sweeps and of.value(name, "sampled_error") <= float(eps)
            assert of.value(name, "bytes_read") / of.value(name, "bytes_fp64") <= matrices
            assert of.value(name, "relative_residual") < float(eps)
