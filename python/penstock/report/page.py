"""report.html: one file, figures embedded as SVG, readable on a phone and in print, without any use of the network."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock import __version__
from penstock.bench import kinds
from penstock.bench.results import median_cpu, median_rate
from penstock.report import figures as drawing
from penstock.report import style
from penstock.report.verdict import verdict

Rows = list[dict[str, Any]]
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 "Source Sans 3", "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1a1c1f;
  background: #fff; max-width: 46rem; margin: 0 auto; padding: 2.2rem 1.1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.12rem; margin: 2.4rem 0 .6rem; }
p.verdict { font-size: 1.12rem; margin: .5rem 0 .9rem; }
p.lead { color: #555b64; margin: 0 0 1.4rem; }
figure { margin: 1.6rem 0; break-inside: avoid; }
figure svg { width: 100%; max-width: 41rem; height: auto; display: block; }
table.tight td, table.tight th { white-space: nowrap; }
figcaption { color: #555b64; font-size: .92rem; margin-top: .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; border-bottom: 1.5px solid #1a1c1f; padding: .3rem .7rem .3rem 0; }
td { border-bottom: 1px solid #e3e6ea; padding: .3rem .7rem .3rem 0; vertical-align: top; }
td.n, th.n { text-align: right; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.1rem; font-size: .92rem; margin: 0; }
dt { color: #555b64; } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 30rem) { body { padding-top: 1.2rem; } dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } h2 { break-after: avoid; } }
"""


def make(rows: Rows, out: Path) -> list[Path]:
    """Writes the page and, beside it, each figure as PNG and SVG. Returns the paths written."""
    drawn = drawing.figures(rows)
    written = [out]
    pictures = {}
    with mpl.rc_context(style.RC):
        for name, figure in drawn.items():
            for kind in ("png", "svg"):
                path = out.with_name(f"{out.stem}-{name}.{kind}")
                figure.savefig(path, metadata={"Date": None} if kind == "svg" else None)
                written.append(path)
            pictures[name] = svg_text(figure, name)
    out.write_text(page(rows, pictures))
    return written


def svg_text(figure: Figure, name: str) -> str:
    """The figure as an <svg> element that can stand beside others in one page: ids are made distinct."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)


def page(rows: Rows, pictures: dict[str, str]) -> str:
    first = next((row for row in rows if row["kind"] == "machine"), {})
    machine = first.get("machine", {})
    body = [f"<h1>{html.escape(title(machine))}</h1>"]
    answer = verdict(rows)
    if answer:
        body.append(f'<p class="verdict">{html.escape(answer)}</p>')
    body.append(_promises(rows))
    body.append(f'<p class="lead">{html.escape(lead(first))}</p>')
    for name, picture in pictures.items():
        body.append(f"<figure>{picture}<figcaption>{html.escape(kinds.FIGURES[name].caption)}</figcaption></figure>")
    body.append(_medians(rows))
    body.append(_missing(rows))
    body.append(_machine(machine))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Penstock report</title><style>{STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def title(machine: dict[str, Any]) -> str:
    device = machine.get("device", {})
    disk = machine.get("disk", {})
    place = machine.get("file_system", "files") + (f" on {disk['name']}" if disk.get("name") else "")
    return f"Between {place} and " + (
        "an emulated GPU" if device.get("emulated") else device.get("model", "the device")
    )


def lead(first: dict[str, Any]) -> str:
    size = drawing.size_label(first.get("file_bytes", 0))
    return (
        f"Measured by Penstock {__version__} with files of {size}, {first.get('repeats', 0)} interleaved repeats; "
        "every byte of every trial was checked on the device, and every cache state was proved before it was timed."
    )


def _medians(rows: Rows) -> str:
    groups = drawing.whole_file(rows)
    keys = [key for way in ("read", "write") for key in reversed(drawing.ordered(groups, way))]
    lines = [(key[0], drawing.STATE_WORDS[key[1]], key[2], *_numbers(groups[key])) for key in keys]
    return _table("Medians", ("direction", "state", "asked", "took", "GB/s", "CPU s/GB"), lines, numbers=2)


def _numbers(group: Rows) -> tuple[str, str, str]:
    took = ", ".join(sorted({row["took"] for row in group}))
    return took, drawing.number((median_rate(group) or 0) / 1e9), f"{median_cpu(group) or 0:.3f}"


def _promises(rows: Rows) -> str:
    checks = [check for kind in kinds.present(rows) for check in kinds.checks(rows, kind)]
    words = {True: "pass", False: "fail", None: "not judged here"}
    lines = [
        (
            c.what,
            words[c.passed],
            "-" if c.value is None else f"{c.value:.3g} {c.unit}",
            f"{'≥' if c.at_least else '≤'} {c.bound:.3g} {c.unit}",
        )
        for c in checks
    ]
    return _table("Promises", ("promise", "", "measured", "bound"), lines, numbers=2)


def _missing(rows: Rows) -> str:
    causes: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["kind"] == "missing":
            name = row.get("name") or f"{row['path']} {row['direction']}"
            causes.setdefault(row["cause"], {})[name] = None
    lines = [(", ".join(names), cause) for cause, names in causes.items()]
    return _table("Not measured", ("what", "because"), lines, numbers=0)


def _table(heading: str, names: tuple[str, ...], lines: list[tuple[str, ...]], numbers: int) -> str:
    """An HTML table whose last `numbers` columns are right-aligned; empty text without lines."""
    if not lines:
        return ""
    plain = len(names) - numbers

    def row(cells: tuple[str, ...], tag: str) -> str:
        marks = ["" if turn < plain else ' class="n"' for turn in range(len(cells))]
        return (
            "<tr>"
            + "".join(f"<{tag}{mark}>{html.escape(cell)}</{tag}>" for cell, mark in zip(cells, marks, strict=True))
            + "</tr>"
        )

    tight = ' class="tight"' if numbers else ""
    return (
        f'<h2>{html.escape(heading)}</h2><div class="wide"><table{tight}><thead>{row(names, "th")}</thead><tbody>'
        + "".join(row(line, "td") for line in lines)
        + "</tbody></table></div>"
    )


def _machine(machine: dict[str, Any]) -> str:
    entries = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in _facts(machine) if text
    )
    return f"<h2>Machine</h2><dl>{entries}</dl>" if entries else ""


def _facts(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """The fingerprint in words."""
    if not machine:
        return []
    device, disk, versions = machine["device"], machine["disk"], dict(machine["versions"])
    build = versions.pop("penstock")
    cuda = "built in" if build["cuda"] else "not built in"
    pages = drawing.size_label(machine["page_bytes"])
    driver = f", driver {device['driver_version']}" if device["driver_version"] else ""
    return [
        ("processor", f"{machine['cpu_model']}, {machine['cores']} cores, {machine['architecture']}"),
        (
            "memory",
            f"{drawing.size_label(machine['memory_bytes'])}, pages of {pages}",
        ),
        ("device", f"{device['model']} ({device['name']}), {drawing.size_label(device['total_bytes'])}{driver}"),
        ("system", f"{machine['distribution']}, Linux {machine['kernel']}"),
        ("file system", f"{machine['file_system']} ({machine['mount_options']})"),
        ("disk", ", ".join(f"{key} {value}" for key, value in disk.items())),
        (
            "Penstock",
            f"{build['version']}, g++ {build['compiler']}, CUDA {cuda}",
        ),
        ("with", ", ".join(f"{name} {value}" for name, value in versions.items())),
        ("revision", machine["git_revision"] or ""),
    ]
