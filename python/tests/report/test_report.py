"""The page: any mix of suites of one machine, rules that follow from rows, and every statement with its rows."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from command import Ran, assert_one_line_error
from places import DATA
from rich.console import Console

from penstock import Error
from penstock_bench.engine import intervals
from penstock_bench.engine.rules import Cell
from penstock_bench.engine.statement import Statement
from penstock_bench.report import html, page, show, sources
from penstock_bench.report.verdict import verdict
from penstock_bench.runs import stored, suites
from penstock_bench.runs.suites import rules_of as rules
from penstock_bench.suites.beside_peers import beside_peers

RESULTS = DATA
Rows = list[dict[str, Any]]
Run = Callable[..., Ran]
MACHINE: dict[str, Any] = json.loads((RESULTS / "core-host.jsonl").read_text().splitlines()[0])


def trial(path: str, request: int, rate: float, cache: str = "hot", **more: Any) -> dict[str, Any]:
    row = {"kind": "trial", "path": path, "direction": "read", "cache": cache, "request_bytes": request, "workers": 0}
    row |= {"depth": 0, "buffer": "device", "first_touch": "gpu", "took": "buffered", "bytes": 1 << 20}
    return row | {"bytes_per_second": rate, "cpu_user_s": 0.1, "cpu_system_s": 0.1, "seconds": (1 << 20) / rate} | more


def trials(path: str, request: int, rate: float, **more: Any) -> Rows:
    """Five samples, 1 % apart."""
    return [trial(path, request, rate * (0.98 + 0.01 * turn), **more) for turn in range(5)]


def named(rows: Rows) -> Rows:
    return [row | {"source": f"A{line}"} for line, row in enumerate(rows, 1)]


def saved(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def grid(*groups: Rows) -> Rows:
    return named([MACHINE | {"suite": "report"}, *(row for group in groups for row in group)])


def test_the_fastest_path_is_the_rule_and_says_how_far_ahead() -> None:
    (rule,) = rules(grid(trials("auto", 4096, 1e9), trials("mmap", 4096, 2e9), trials("uring", 4096, 1.5e9)))
    assert (rule.path, rule.low_bytes, rule.high_bytes, rule.samples) == ("mmap", 4096, 4096, 5)
    path, ratio = rule.closest or ("", None)
    assert path == "uring" and ratio is not None and ratio.low is not None
    assert ratio.low > 1.25 and ratio.median == pytest.approx(4 / 3)
    assert len(rule.rows) == 15


def test_a_default_that_is_as_good_is_the_rule() -> None:
    (rule,) = rules(grid(trials("auto", 4096, 1e9), trials("mmap", 4096, 1.001e9), trials("uring", 4096, 0.5e9)))
    assert (rule.path, rule.as_good) == ("auto", ["mmap"])
    assert rule.closest is not None and rule.closest[0] == "uring"


def test_sizes_with_one_answer_are_one_rule_and_a_change_begins_another() -> None:
    sizes = [4096, 65536, 1 << 20]
    slow = [row for size in sizes for row in trials("buffered", size, 1e9)]
    fast = trials("uring", sizes[0], 2e9) + trials("uring", sizes[1], 3e9) + trials("uring", sizes[2], 0.5e9)
    first, second = rules(grid(slow, fast))
    assert (first.path, first.low_bytes, first.high_bytes, first.rate) == ("uring", 4096, 65536, 3e9)
    assert first.closest is not None and first.closest[1].median == pytest.approx(2)
    assert (second.path, second.low_bytes) == ("buffered", 1 << 20)


def test_what_holds_at_one_size_only_is_not_said_of_two() -> None:
    rows = grid(
        trials("auto", 4096, 2e9), trials("mmap", 4096, 1e9), trials("auto", 65536, 2e9), trials("mmap", 65536, 2e9)
    )
    (rule,) = rules(rows)
    assert (rule.low_bytes, rule.high_bytes, rule.as_good, rule.closest) == (4096, 65536, [], None)
    assert rule.good_text == "mmap at 1 of 2"


def test_states_that_begin_alike_are_compared_and_others_are_not() -> None:
    rows = grid(trials("auto", 4096, 1e9, cache="cold"), trials("direct", 4096, 2e9, cache="direct"))
    (rule,) = rules(rows + grid(trials("mmap", 4096, 9e9))[1:])
    assert rule.path == "direct" and "not in the page cache" in rule.situation


def test_each_suite_is_judged_by_its_own_run() -> None:
    """The size of files, the machine and the ceilings are of the run that a sample is of."""
    core = [json.loads(line) for line in (RESULTS / "core-host.jsonl").read_text().splitlines()]
    other = [MACHINE | {"suite": "report", "file_bytes": 1}, *trials("auto", 0, 1e9), *trials("mmap", 0, 2e9)]
    of_grid, of_core = suites.SUITES["grid"], suites.SUITES["core"]
    assert suites.own(other + core, of_core) == core == suites.own(core + other, of_core)
    assert suites.own(other + core, of_grid) == other
    assert suites.checks(other + core, of_core) == suites.checks(core, of_core)
    (rule,) = rules(core + other)
    assert rule.low_bytes == 1 << 20  # what was moved, not what the first run's files have


def test_a_question_has_one_line_for_each_answer_and_tells_where_it_holds() -> None:
    sizes = [4096, 65536, 1 << 20]
    slow = [row for size in sizes for row in trials("buffered", size, 1e9)]
    fast = trials("uring", sizes[0], 2e9) + trials("uring", sizes[1], 0.5e9) + trials("uring", sizes[2], 2e9)
    first, second = rules(grid(slow, fast))
    assert (first.path, first.spans, first.sizes) == ("uring", [(4096, 4096), (1 << 20, 1 << 20)], 2)
    assert (second.path, second.spans) == ("buffered", [(65536, 65536)])
    assert page._sizes(first) == "4\u00a0KiB, 1\u00a0MiB"


def choices(way: str, rate: float, samples: int) -> Rows:
    row = {"kind": "choice", "name": "x", "way": way, "direction": "read", "cache": "hot", "request_bytes": 1 << 20}
    row |= {"seconds": 1.0, "took": way, "bytes": 1 << 20, "cpu_user_s": 0.0, "cpu_system_s": 0.0}
    return [row | {"bytes_per_second": rate * (1 + turn / 100)} for turn in range(samples)]


@pytest.mark.parametrize(("samples", "path"), [(2, "mmap"), (9, "uring")])
def test_a_question_of_two_suites_is_answered_by_the_one_with_most_samples(samples: int, path: str) -> None:
    """A request for the whole file of 1 MiB, and one of 1 MiB."""
    paths = grid(trials("auto", 0, 1e9), trials("mmap", 0, 2e9))
    other = [MACHINE | {"suite": "choice"}, *choices("auto", 1e9, samples), *choices("uring", 2e9, samples)]
    (rule,) = rules(paths + named(other))
    assert (rule.situation, rule.path, rule.samples) == (
        "read, one request, file in the page cache",
        path,
        max(samples, 5),
    )


def test_what_one_sample_says_is_marked_and_told_apart() -> None:
    firm = trials("auto", 4096, 1e9) + trials("mmap", 4096, 2e9)
    hint = [trial("auto", 65536, 1e9), trial("mmap", 65536, 2e9)]
    text = page._rules(rules(grid(firm, hint)))
    kept, folded = text.split("<details>")
    assert 'class="few">only 1<' in folded and "few" not in kept and ">5<" in kept
    assert "<details open>" in page._rules(rules(grid(hint)))


def test_writes_are_ranked_with_fsync() -> None:
    late = [row | {"direction": "write", "fsync_s": 1.0} for row in trials("buffered", 0, 9e9)]
    done = [row | {"direction": "write", "fsync_s": 0.0} for row in trials("direct", 0, 1e9)]
    (rule,) = rules(grid(late, done))
    assert rule.path == "direct"


def test_one_sample_ranks_and_claims_no_interval() -> None:
    (rule,) = rules(grid([trial("auto", 4096, 1e9)], [trial("mmap", 4096, 2e9)]))
    assert rule.path == "mmap" and rule.closest is not None and rule.closest[1].low is None
    assert rules(grid([trial("auto", 4096, 1e9)])) == []


def test_the_verdict_has_three_sentences_at_most_and_each_its_rows() -> None:
    core = named([json.loads(line) for line in (RESULTS / "core-gpu.jsonl").read_text().splitlines()])
    said = verdict(core + grid(trials("auto", 0, 1e9), trials("mmap", 0, 2e9), trials("auto", 0, 1e9, cache="cold")))
    assert len(said) == 3
    assert all(one.text.endswith(".") and sources.names_of(one.rows) for one in said)
    faster = verdict(grid(trials("auto", 0, 1e9), trials("mmap", 0, 2e9)))[1]
    assert faster.text.startswith("Faster in every repeat: mmap, at least 1.96 GB/s")
    assert len(faster.rows) == 10
    assert verdict([MACHINE]) == []


WORDS_ONLY = {"p", "h1", "h2", "h3", "summary", "dt", "span", "sup", "a", "code"}  # hold no blocks
BLOCKS = {"p", "h1", "h2", "h3", "div", "details", "table", "dl", "ol", "ul", "figure", "section", "main"}
INSIDE = {
    "tr": {"thead", "tbody"}, "thead": {"table"}, "tbody": {"table"}, "td": {"tr"}, "th": {"tr"}, "li": {"ol", "ul"},
    "dt": {"dl"}, "dd": {"dl"}, "figcaption": {"figure"}, "summary": {"details"},
}  # fmt: skip


class Nesting(HTMLParser):
    """What of a page is no valid HTML: elements closed out of turn, blocks in paragraphs, parts of tables and lists
    that stand alone, columns without a name, ids that are there twice, links to none, pictures that say nothing."""

    VOID = frozenset({"meta", "br", "path", "use", "rect", "circle", "line"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.empty = True  # no words yet in what was opened last
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        self.wrong += [f"<{tag}> is never closed" for tag in self.open]
        self.wrong += [f"id {one} twice" for one in set(self.ids) if self.ids.count(one) > 1]
        self.wrong += [f"link to no id {one}" for one in set(self.links) - set(self.ids)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        parent = self.open[-1] if self.open else ""
        around = WORDS_ONLY & set(self.open) if tag in BLOCKS and "svg" not in self.open else set()
        self.wrong += [f"<{tag}> in <{one}>" for one in around]
        if tag in INSIDE and parent not in INSIDE[tag]:
            self.wrong.append(f"<{tag}> in <{parent}>")
        if tag == "a" and "a" in self.open:
            self.wrong.append("a link in a link")
        if tag == "svg" and not (told.get("role") == "img" and told.get("aria-label")):
            self.wrong.append("a picture without words")
        self.ids += [told["id"]] if told.get("id") else []
        self.links += [href[1:] for name in ("href", "xlink:href") if (href := told.get(name) or "").startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)
            self.empty = True

    def handle_data(self, data: str) -> None:
        self.empty = self.empty and not data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        if tag == "th" and self.empty:
            self.wrong.append("a column without a name")
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> out of turn")


@pytest.mark.parametrize(
    ("page_of", "fault"),
    [
        ("<p>a<details><summary>b</summary>c</details></p>", "<details> in <p>"),
        ("<table><tr><th>a</th></tr></table>", "<tr> in <table>"),
        ("<table><thead><tr><th></th></tr></thead></table>", "a column without a name"),
        ('<p id="a"><a href="#b">c</a></p>', "link to no id b"),
        ('<p id="a">b</p><p id="a">c</p>', "id a twice"),
        ("<p>a<b>c</p>", "</p> out of turn"),
        ('<svg role="img"></svg>', "a picture without words"),
    ],
)
def test_the_check_of_pages_finds_what_is_wrong(page_of: str, fault: str) -> None:
    assert fault in Nesting(page_of).wrong


def test_one_page_of_several_suites_states_rows_that_exist(penstock: Run, tmp_path: Path) -> None:
    core = [json.loads(line) for line in (RESULTS / "core-host.jsonl").read_text().splitlines()]
    paths = trials("auto", 0, 1e9) + trials("mmap", 0, 2e9) + trials("auto", 4096, 1e9) + trials("mmap", 4096, 1e9)
    first = saved(tmp_path / "core.jsonl", core)
    second = saved(tmp_path / "paths.jsonl", [MACHINE | {"suite": "report"}, *paths])
    ran = penstock("report", first, second, "--out", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    text = (tmp_path / "page.html").read_text()
    stated = set(re.findall(r"\b([AB])(\d+)\b", re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)))
    assert {letter for letter, _ in stated} == {"A", "B"}
    lines = {"A": len(core), "B": 1 + len(paths)}
    assert all(1 <= int(number) <= lines[letter] for letter, number in stated)
    for heading in ("This machine", "What to ask for", "Promises", "Paths", "Sources", "Not measured"):
        assert f"<h2>{heading}" in text, heading
    for file in ("core.jsonl", "paths.jsonl"):
        assert file in text
    assert Nesting(text).wrong == []
    assert text.count("<svg") == text.count('style="--points: ') > 0
    assert "prefers-color-scheme: dark" in text and text.count('class="wide"') == text.count("<table")
    verdicts = re.findall(r'<p class="verdict">(.*?)</p>', text)
    assert 1 <= len(verdicts) <= 3 and all('class="rows"' in one for one in verdicts)


def test_results_of_other_machines_or_other_sizes_make_no_page(penstock: Run, tmp_path: Path) -> None:
    rows = [MACHINE | {"suite": "report"}, *trials("auto", 0, 1e9)]
    first = saved(tmp_path / "a.jsonl", rows)
    kernel = MACHINE | {"machine": MACHINE["machine"] | {"kernel": "1.0"}}
    other = saved(tmp_path / "b.jsonl", [kernel, *rows[1:]])
    larger = saved(tmp_path / "c.jsonl", [rows[0] | {"file_bytes": 1}, *rows[1:]])
    assert_one_line_error(penstock("report", first, other, "--out", tmp_path / "x.html"), "b.jsonl", "kernel: ")
    assert_one_line_error(penstock("report", first, larger, "--out", tmp_path / "x.html"), "c.jsonl", "1 bytes")
    assert_one_line_error(penstock("report", first, tmp_path / "d", "--out", tmp_path / "x.html"), "no such results")
    assert_one_line_error(penstock("report", tmp_path), f"report {tmp_path}: it is a folder; name the files in it")
    assert not (tmp_path / "x.html").exists()


def test_files_are_lettered_beyond_z() -> None:
    assert [sources._letters(number) for number in (0, 25, 26, 27, 52)] == ["A", "Z", "AA", "AB", "BA"]


def test_long_tables_are_folded_and_words_are_escaped() -> None:
    from rich.table import Table

    made = Table("name", "rows", caption="of what")
    for turn in range(html.LONG + 1):
        made.add_row(f"<b>{turn}", "A1 A2")
    text = html.from_terminal(made, "all")
    assert text.startswith("<details><summary>all: 41 lines") and "&lt;b&gt;0" in text and "of what</p>" in text
    assert "<summary>20 rows" in html.rows([{"source": f"A{2 * turn}"} for turn in range(20)])
    assert html.rows([{"source": f"A{turn}"} for turn in range(1, 21)]) == '<span class="rows">A1–A20</span>'
    assert html.statement(Statement("a < b"), html.Notes()) == '<p class="verdict">a &lt; b</p>'


def test_rows_of_a_sentence_stand_behind_one_mark_that_leads_there_and_back() -> None:
    notes = html.Notes()
    said = html.statement(Statement("So it is.", [{"source": f"A{turn}"} for turn in (1, 2, 4, 9)]), notes)
    assert re.fullmatch(r'<p class="verdict">So it is\.<sup class="rows"><a [^>]*>1</a></sup></p>', said)
    assert notes.mark([{"source": "B7"}], "figure x").endswith(">2</a></sup>") and notes.mark([{}]) == ""
    listed = notes.listed()
    assert "A1–A2, A4, A9" in listed and "figure x: B7" in listed
    assert Nesting(said + listed).wrong == ["link to no id from-2"]


def test_neighbouring_rows_are_named_together_and_files_stay_apart() -> None:
    assert sources.spans(["B2", "A10", "A9", "AA1", "B1", "A12", "A9"]) == ["A9–A10", "A12", "B1–B2", "AA1"]
    assert sources.spans([]) == []


def test_each_figure_names_the_file_and_the_rows_that_it_is_drawn_of(tmp_path: Path) -> None:
    paths = trials("auto", 0, 1e9) + trials("mmap", 0, 2e9) + trials("auto", 4096, 1e9, workers=3)
    ceiling = [{"kind": "ceiling", "direction": "read", "bytes": 1, "seconds": 1.0, "bytes_per_second": 3e9}]
    kept = saved(tmp_path / "paths.jsonl", [MACHINE | {"suite": "report"}, *paths, *ceiling])
    page.make(sources.read([kept]), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    marks = re.findall(r'<figcaption>.*?href="#(rows-\d+)".*?</figcaption>', text, re.DOTALL)
    bandwidth, cpu = (re.findall(rf'<li id="{mark}">(.*?)</li>', text)[0] for mark in marks)
    assert "A (paths.jsonl), 10 of kind trial, 1 of kind ceiling" in bandwidth
    assert "A2–A11, A17" in bandwidth  # not the trials of another shape
    assert "10 of kind trial" in cpu and "A2–A11" in cpu and "ceiling" not in cpu


def test_tables_without_names_of_rows_are_followed_by_them() -> None:
    row = {"kind": "choice", "name": "x", "way": "auto", "direction": "read", "cache": "hot", "request_bytes": 4096}
    row |= {"seconds": 1.0, "took": "buffered", "bytes": 4096, "bytes_per_second": 4096.0}
    rows = named([MACHINE | {"suite": "choice"}, row, row | {"way": "buffered"}])
    notes = html.Notes()
    (text,) = page._tables(rows, notes)
    assert 'href="#rows-1"' in text and "A2–A3" in notes.listed() and "buffered" in text


def test_a_run_that_its_time_limit_ended_is_told() -> None:
    run = [MACHINE | {"suite": "report"}, *trials("auto", 0, 1e9)]
    stop = {"kind": "stopped", "cause": "time limit of 5 s", "done": 5, "planned": 20, "source": "A7"}
    assert "of which 25% done" in page.lead([*run, stop]) and "planned" not in page.lead(run)
    notes = html.Notes()
    text = page._missing([*run, stop], notes)
    assert "time limit of 5 s, after 5 of 20 cells" in text and "A7" in notes.listed()


def test_what_checking_took_is_told_and_is_in_no_rate() -> None:
    rows = [MACHINE, trial("auto", 0, 1e9, verify_s=0.5, seconds=5.0)]
    assert "Checking took 10% of the time of the transfers" in page.lead(rows)
    assert "Checking took" not in page.lead([MACHINE])


@pytest.mark.parametrize(
    ("emulated", "verify_s", "passed"), [(False, 0.4, True), (False, 0.6, False), (True, 0.6, None)]
)
def test_what_checking_takes_is_judged_where_a_gpu_checks(emulated: bool, verify_s: float, passed: object) -> None:
    """By sums over all samples: 5 s of transfers, of which those without a time of checking do not count; a sample of
    which half was checked counts twice."""
    facts = MACHINE["machine"]
    machine = MACHINE | {"machine": facts | {"device": facts["device"] | {"emulated": emulated}}}
    half = trial("auto", 0, 1e9, verify_s=verify_s / 4, seconds=1.0)
    half["verified_bytes"] = half["bytes"] / 2
    unchecked = trial("mmap", 0, 1e9, seconds=9.0)
    rows = [machine, trial("auto", 0, 1e9, verify_s=verify_s / 2, seconds=4.0), half, unchecked]
    (check,) = suites.checks(rows, suites.SUITES["grid"])
    assert check.value == pytest.approx(100 * verify_s / 5) and check.bound == 10 and check.passed is passed
    text = page._promises(named(rows), html.Notes())
    assert "checking every byte" in text
    assert {True: "pass", False: "fail", None: "Not promised here: This promise is made for "}[passed] in text
    assert not suites.checks([machine, unchecked], suites.SUITES["grid"])


@pytest.mark.filterwarnings("error")
def test_a_path_that_moved_nothing_in_its_time_is_shown_and_is_no_rival(tmp_path: Path) -> None:
    nothing = {"bytes": 0, "bytes_per_second": 0.0}
    idle = [row | nothing for row in trials("mmap", 4096, 1e9) + trials("mmap", 0, 1e9)]
    busy = trials("auto", 4096, 1e9) + trials("uring", 4096, 2e9)
    assert {rule.path for rule in rules(grid(busy, idle))} == {"uring"}
    found = sources.read([saved(tmp_path / "rows", [MACHINE | {"suite": "report"}, *busy, *idle])])
    assert "mmap" in page.make(found, tmp_path / "page.html")[0].read_text()
    some = intervals.ratio([1.0, 2.0, 3.0], [0.0, 1.0, 1.0])
    assert (some.median, some.low, some.high) == (2.0, None, None)


def test_a_sample_that_took_no_time_is_no_result(tmp_path: Path) -> None:
    rows = [MACHINE, trial("auto", 0, 1e9, seconds=0.0), trial("auto", 0, 1e9)]
    with pytest.raises(Error, match="line 2 is not a result: nothing takes 0 seconds"):
        sources.read([saved(tmp_path / "a", rows)])


@pytest.mark.filterwarnings("error")
def test_bars_of_nothing_that_moved_are_drawn() -> None:
    row = {"kind": "core", "name": "hot read", "bytes": 0, "bytes_per_second": 0.0, "cpu_user_s": 0, "cpu_system_s": 0}
    figure = beside_peers([MACHINE, row, row | {"name": "KvikIO default"}, row | {"name": "copy to device"}])
    assert figure is not None and figure.axes[0].get_xlim() == (0.0, 1.0)
    figure.savefig(io.BytesIO(), format="svg")
    alone = row | {"name": "safetensors.torch.load_file"}
    beside = beside_peers([MACHINE, row, alone])
    assert beside is not None and len(beside.axes) == 1, "a peer beside which Penstock was not measured has no panel"
    assert beside_peers([MACHINE, alone]) is None


def test_no_number_is_cut_in_a_table_that_goes_to_a_file() -> None:
    """A table of that many columns is wider than the 120 that files have elsewhere."""
    stream = io.StringIO()
    rows = stored.read(RESULTS / "report-host.jsonl")
    show.print_results(rows, Console(file=stream, width=show.WIDTH))
    assert "fsynced" in stream.getvalue() and "…" not in stream.getvalue()


def test_rows_of_another_version_are_an_error_not_a_page(tmp_path: Path) -> None:
    with pytest.raises(Error, match="trial needs a"):
        sources.read([saved(tmp_path / "a", [MACHINE, {"kind": "trial"}, trial("auto", 0, 1e9)])])


def test_a_cell_knows_its_median() -> None:
    assert Cell("read", 1, "auto", trials("auto", 1, 1e9)).median == pytest.approx(1e9)
