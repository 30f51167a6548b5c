"""report.html: one file, figures embedded as SVG, readable on a phone and in print, without any use of the network.

What it holds follows from the rows: each suite says which figures, tables and promises a suite has. What must
stay true: every statement names the rows it comes from.
"""

from __future__ import annotations

import io
import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import __version__
from penstock._files.publish import publish
from penstock_bench.engine import style
from penstock_bench.engine.intervals import Estimate
from penstock_bench.engine.numbers import padded_figures, size_label
from penstock_bench.engine.rules import Rule
from penstock_bench.engine.suite import Suite
from penstock_bench.report import html, show
from penstock_bench.report.sources import Source
from penstock_bench.report.verdict import verdict
from penstock_bench.runs.suites import FIGURES, checks, figures, own, present, rules_of

if TYPE_CHECKING:
    from rich.table import Table

Rows = list[dict[str, Any]]
_ADVICE = "name a file you can write with --out"


def make(sources: list[Source], out: Path) -> list[Path]:
    """Writes the page and, beside it, each figure as PNG and SVG, each whole or not at all. Returns the paths written.
    Raises Error when one cannot be."""
    rows = [row for source in sources for row in source.rows]
    written, pictures = [out], {}
    with style.in_use():
        for name, figure in figures(rows).items():
            caption = FIGURES[name].caption
            content = io.BytesIO()
            figure.savefig(content, format="png")
            for kind, drawn in (("png", content.getvalue()), ("svg", style.svg(figure, caption).encode())):
                path = out.with_name(f"{out.stem}-{name}.{kind}")
                publish(path, drawn, "write the report", _ADVICE)
                written.append(path)
            pictures[name] = html.picture(figure, name, caption)
    text = html.page("Penstock report", body(sources, rows, pictures))
    publish(out, text.encode(errors="backslashreplace"), "write the report", _ADVICE)
    return written


def body(sources: list[Source], rows: Rows, pictures: dict[str, str]) -> list[str]:
    machine = next(row for row in rows if row["kind"] == "machine")["machine"]
    notes = html.Notes()
    parts = [f"<h1>{html.text(title(machine))}</h1>"]
    parts += [html.statement(one, notes) for one in verdict(rows)]
    parts += [f'<p class="lead">{html.text(lead(rows))}</p>', _machine(machine), _rules(rules_of(rows))]
    parts.append(_promises(rows, notes))
    for name, picture in pictures.items():
        caption = html.text(FIGURES[name].caption) + _drawn_of(sources, rows, name, notes)
        box = f'<div class="drawn" tabindex="0" role="region" aria-label="figure: {name}">{picture}</div>'
        parts.append(f"<figure>{box}<figcaption>{caption}</figcaption></figure>")
    return [*parts, *_tables(rows, notes), _missing(rows, notes), _sources(sources, notes)]


def _drawn_of(sources: list[Source], rows: Rows, name: str, notes: html.Notes) -> str:
    """The mark of the files, kinds and names of the rows that a figure shows."""
    used = [row for row in FIGURES[name].rows(rows) if "source" in row]
    parts = []
    for source in sources:
        mine = {row["source"] for row in source.rows}
        counts = Counter(row["kind"] for row in used if row["source"] in mine)
        if counts:
            of_kinds = ", ".join(f"{count} of kind {kind}" for kind, count in counts.items())
            parts.append(f"{source.letter} ({source.name}), {of_kinds}")
    return notes.mark(used, f"figure {name}, rows of {'; of '.join(parts)}")


def title(machine: dict[str, Any]) -> str:
    device = machine.get("device", {})
    disk = machine.get("disk", {})
    place = machine.get("file_system", "files") + (f" on {disk['name']}" if disk.get("name") else "")
    return f"Between {place} and " + (
        "an emulated GPU" if device.get("emulated") else device.get("model", "the device")
    )


def lead(rows: Rows) -> str:
    """What was run, how it was kept honest, and what checking took."""
    runs: list[str] = []
    for one in rows:
        if one["kind"] == "machine":
            size, rounds = size_label(one["file_bytes"]), one["repeats"]
            runs.append(f"{one.get('suite', 'a suite')} (files of {size}, {rounds} rounds)")
        elif one["kind"] == "stopped":
            runs[-1] = runs[-1].replace(
                " rounds)", f" rounds planned, of which {one['done'] / one['planned']:.0%} done)"
            )
    partly = sorted(
        {row["kind"] for row in rows if row.get("verified_bytes", row.get("bytes", 0)) < row.get("bytes", 0)}
    )
    but = f" (of {', '.join(partly)}: a part, which the rows tell)" if partly else ""
    text = (
        f"Measured by Penstock {__version__}: {', '.join(dict.fromkeys(runs))}. Rounds are interleaved; every byte was "
        f"checked on the device{but}, and every state of the page cache was proved before it was timed."
    )
    checked = [row for row in rows if row.get("verify_s") and row.get("seconds")]
    if checked:
        share = sum(row["verify_s"] for row in checked) / sum(row["seconds"] for row in checked)
        rate = statistics.median(row["bytes"] / row["verify_s"] for row in checked)
        text += (
            f" Checking took {share:.0%} of the time of the transfers ({rate / 1e9:.3g} GB/s in the median), after the "
            "clock had stopped: it is in no rate."
        )
    return text


def _rules(found: list[Rule]) -> str:
    """What the samples can tell; folded, what is no more than a hint."""
    if not found:
        return ""
    firm, hints = ([rule for rule in found if rule.is_hint is few] for few in (False, True))
    note = (
        "Where the default, auto, is not measurably slower than any path, it is what to use. As good: not measurably "
        "slower (the 95 % interval of the ratio of medians holds 1), at every size of the line or at as many as it "
        "says. Ahead of: measurably faster, at every size at least by the factor shown, with its interval. GB/s at the "
        "largest size. Samples: how many each path has at each size. Writes are counted with fsync, unless the line "
        "says otherwise."
    )
    text = f'<h2>What to ask for</h2><p class="note">{note}</p>{_rule_table(firm, "what to ask for")}'
    if not hints:
        return text
    head = f"Hints of one or two samples, {len(hints)} in all: which was faster then, perhaps by chance"
    opened = "" if firm else " open"
    return f"{text}<details{opened}><summary>{head}</summary>{_rule_table(hints, 'hints')}</details>"


def _rule_table(found: list[Rule], label: str) -> str:
    names = ("what", "use", "size", "GB/s", "as good", "ahead of", "by", "samples", "rows")
    lines = []
    for rule in found:
        path, ratio = rule.closest or ("", None)
        cells = (rule.situation, rule.path, _sizes(rule), padded_figures(rule.rate / 1e9), rule.good_text, path)
        lines.append((*map(html.text, cells), _ahead(ratio), _samples(rule), html.rows(rule.rows, 3)))
    return html.table(names, lines, html.Look(label, "rules", (3, 6, 7)))


def _sizes(rule: Rule) -> str:
    return ", ".join(_span(low, high) for low, high in rule.spans)


def _span(low_bytes: int, high_bytes: int) -> str:
    low, high = (size_label(size) for size in (low_bytes, high_bytes))
    return (low if low == high else f"{low} to {high}").replace(" ", "\u00a0").replace("\u00a0to", " to")


def _ahead(ratio: Estimate | None) -> str:
    if ratio is None:
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.median:.2f}"
    return f"{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def _samples(rule: Rule) -> str:
    return f'<span class="few">only {rule.samples}</span>' if rule.is_hint else str(rule.samples)


def _promises(rows: Rows, notes: html.Notes) -> str:
    """What is promised for such a machine, with verdicts; folded, what was measured of the other promises."""
    found = [(suite, check) for suite in present(rows) for check in checks(rows, suite)]
    if not found:
        return ""
    judged = [(_names(rows, suite), check) for suite, check in found]
    text = "".join(_promise_table(one) for one in show.check_tables(judged))
    of_kinds = {suite.row for suite, _ in found} | {"memory"}
    how = "Judged by the medians of the probes that they name; checking by the sums of all samples that tell it."
    mark = notes.mark([row for row in rows if row["kind"] in of_kinds], "promises")
    return f'<h2>Promises</h2><p class="note">{how}{mark}</p>{text}'


def _promise_table(made: Table) -> str:
    whole = html.from_terminal(made, "promises", "prose")
    if not made.title:
        return whole
    words = f"{made.title}: {made.caption}"
    made.title = made.caption = None
    folded = html.from_terminal(made, words, "prose")
    return f'<p class="note">{html.text(words)}</p><details><summary>What was measured</summary>{folded}</details>'


def _names(rows: Rows, suite: Suite) -> str:
    """As they were asked for: a suite of a user's own has its own name."""
    names = [row.get("suite") or suite.row for row in own(rows, suite) if row["kind"] == "machine"]
    return ", ".join(dict.fromkeys(names)) or suite.row


def _tables(rows: Rows, notes: html.Notes) -> list[str]:
    """The tables of each suite, as on the terminal, with the names of the rows."""
    found = []
    for suite in present(rows):
        made = suite.table(own(rows, suite), suite.row)
        parts = "".join(html.from_terminal(one, "all medians of this suite") for one in made)
        if not any(column.header == "rows" for one in made for column in one.columns):
            mark = notes.mark((row for row in rows if row["kind"] == suite.row), suite.heading)
            parts += f'<p class="note">The samples behind these tables.{mark}</p>'
        found.append(f"<h2>{html.text(suite.heading)}</h2>{parts}")
    return found


def _missing(rows: Rows, notes: html.Notes) -> str:
    causes: dict[str, dict[str, Rows]] = {}
    for row in rows:
        if row["kind"] == "missing":
            causes.setdefault(row["cause"], {}).setdefault(show.missing_name(row), []).append(row)
    lines = [
        (
            html.text(show.names_text(names)),
            html.text(cause),
            html.rows((row for group in names.values() for row in group), 3),
        )
        for cause, names in causes.items()
    ]
    ended = [row for row in rows if row["kind"] == "stopped"]
    note = "".join(
        f'<p class="note">A run ended at its {html.text(row["cause"])}, after {row["done"]} of {row["planned"]} cells: '
        f"later rounds are incomplete; n says how many samples a line has.{notes.mark([row], 'a run cut short')}</p>"
        for row in ended
    )
    whole = note + html.table(("what", "because", "rows"), lines, html.Look("not measured", "prose"))
    return f"<h2>Not measured</h2>{whole}" if whole else ""


def _sources(sources: list[Source], notes: html.Notes) -> str:
    lines = [
        (source.letter, html.text(source.name), str(len(source.rows)), f"<code>{source.digest}</code>")
        for source in sources
    ]
    note = "A12 is line 12 of file A. A line holds every number of one sample, and the name of its machine."
    look = html.Look("sources", "plain", (2,))
    files = html.table(("letter", "file", "lines", "SHA-256 begins"), lines, look)
    listed = notes.listed()
    behind = f"<h3>Rows behind the sentences and figures</h3>{listed}" if listed else ""
    return f'<h2>Sources</h2><p class="note">{note}</p>{files}{behind}'


def _machine(machine: dict[str, Any]) -> str:
    entries = html.facts(_facts(machine))
    return f"<h2>This machine</h2>{entries}" if entries else ""


def _facts(machine: dict[str, Any]) -> list[tuple[str, ...]]:
    """The fingerprint in words; the third of an entry is folded."""
    device, disk, versions = machine["device"], machine["disk"], dict(machine["versions"])
    build = versions.pop("penstock")
    cuda = "built in" if build["cuda"] else "not built in"
    pages = size_label(machine["page_bytes"])
    cuda_version = device["driver_version"]  # 1000 * major + 10 * minor
    driver = f", driver for CUDA {cuda_version // 1000}.{cuda_version % 1000 // 10}" if cuda_version else ""
    return [
        ("processor", f"{machine['cpu_model']}, {machine['cores']} cores, {machine['architecture']}"),
        ("memory", f"{size_label(machine['memory_bytes'])}, pages of {pages}"),
        ("device", f"{device['model']} ({device['name']}), {size_label(device['total_bytes'])}{driver}"),
        ("link", _link(machine.get("link", ""))),
        ("system", f"{machine['distribution']}, Linux {machine['kernel']}"),
        ("file system", f"{machine['file_system']} ({machine['mount_options']})"),
        ("disk", _disk(disk)),
        ("cuFile", *_cufile(machine.get("cufile", {}))),
        ("Penstock", f"{build['version']}, g++ {build['compiler']}, CUDA {cuda}"),
        ("with", ", ".join(f"{name} {value}" for name, value in versions.items())),
        ("revision", machine["git_revision"] or ""),
    ]


def _link(link: dict[str, Any] | str) -> str:
    return link if isinstance(link, str) else f"PCIe {link['generation']} x{link['width']}"


def _disk(disk: dict[str, str]) -> str:
    """The kernel counts sectors of 512 bytes, whatever the disk's own are."""
    words = [disk["name"]] if "name" in disk else []
    sectors = disk.get("sectors_512", "")
    words += [size_label(int(sectors) * 512)] if sectors.isdecimal() else []
    return ", ".join(words + [f"{key} {disk[key]}" for key in disk if key not in ("name", "sectors_512")])


def _cufile(setup: dict[str, Any]) -> tuple[str, str]:
    """In short, and every setting."""
    if not setup:
        return "", ""
    settings = "; ".join(f"{name} {value}" for name, value in setup["settings"].items())
    return f"{setup['library']}, configuration {setup['source']}", settings
