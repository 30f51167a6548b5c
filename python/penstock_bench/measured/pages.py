"""Pages of measured numbers, one a suite, made of its tables and of nothing else.

A page begins with what the suite is about, then has a part for each table: of which machine, revision and command it
is, the promises with what was measured of them, those that are missed in bold, and the cells. What must stay true: the
same tables give the same pages, so that a test can tell a page that is behind its tables.
"""

from __future__ import annotations

from pathlib import Path

from penstock_bench.engine.listing import Cell, Listing, SuitePage, in_order, markdown_table, number
from penstock_bench.measured import table
from penstock_bench.measured.drawing import DRAWN
from penstock_bench.measured.table import MeasuredTable
from penstock_bench.runs.suites import SUITES

COMMAND = "python -m penstock_bench.measured pages"
HOSTS = "hosts"  # kind of the cells that hold a number for each of several runs
INDEX = "README"
KEPT: dict[str, SuitePage] = {one.page.name or name: one.page for name, one in SUITES.items()}  # by name of the page
ORDER = ("h200", "h100", "two-cores")  # names of tables begin so; others come last


def all_tables(folder: Path) -> dict[str, MeasuredTable]:
    """The tables of a folder by name, SUITE/MACHINE."""
    paths = sorted(folder.glob("*/*.csv"), key=lambda path: (path.parent.name, _place(path.stem), path.stem))
    return {f"{path.parent.name}/{path.stem}": table.read(path) for path in paths}


def pages(tables: dict[str, MeasuredTable]) -> dict[str, str]:
    """The text of each page by its name."""
    suites = dict.fromkeys(name.partition("/")[0] for name in tables)
    made = {suite: _page(suite, {n: t for n, t in tables.items() if n.startswith(f"{suite}/")}) for suite in suites}
    return {INDEX: _index(tables)} | made


def _place(stem: str) -> int:
    return next((turn for turn, begin in enumerate(ORDER) if stem.startswith(begin)), len(ORDER))


def _index(tables: dict[str, MeasuredTable]) -> str:
    lines = [["page", "table", "machine", "made by", "revision", "date"]]
    for name, one in tables.items():
        suite, head = name.partition("/")[0], one.head
        page, place = f"[{suite}]({suite}.md)", f"[{name}]({_path(name)})"
        of = [_cell(head.get(key, "")) for key in ("title", "made by", "revision", "date")]
        lines.append([page, place, *of])
    about = (
        f"Medians of runs of `penstock bench`, and pages that `{COMMAND}` makes of them. A table has the machine, the "
        "revision and the command in its head; how numbers are made and what is proved meanwhile: "
        "[bench.md](../bench.md). Rows of single samples are not kept."
    )
    return f"# What was measured\n\n{about}\n\n{markdown_table(lines)}"


def _page(suite: str, tables: dict[str, MeasuredTable]) -> str:
    about = f"{KEPT[suite].about} What the suite does: [bench.md](../bench.md#{suite})."
    words = (
        "Medians, with their 95 % interval in brackets where three samples or more differ; n is the number of samples. "
        "What misses its aim is in bold."
    )
    parts = [f"# {suite}\n\n{about}\n\n{words}\n"]
    parts += [_part(suite, name, one) for name, one in tables.items()]
    return "\n".join(parts)


def _part(suite: str, name: str, one: MeasuredTable) -> str:
    head = one.head
    where = [head[key] for key in ("machine", "device", "link", "storage", "system") if key in head]
    sizes = [f"files of {head.get('files')}"] * ("files" in head) + [f"{head.get('rounds')} rounds"] * (
        "rounds" in head
    )
    of = f"revision {head['revision']}, {head['date']}" if "date" in head else f"revision {head['revision']}"
    made = f"Of [{name}]({_path(name)}): `{head['made by']}`, {', '.join([*sizes, of])}."
    words = [f"{made} {'; '.join(where)}.", head.get("note", ""), _promises(one), _hosts(one), _figures(name)]
    words += [listing.markdown(_cells(one, listing)) for listing in KEPT[suite].listings]
    words += ["\n".join(f"- Not measured: {text}" for key, text in head.items() if key.startswith("not measured"))]
    return f"## {head['title']}\n\n" + "\n\n".join(part.rstrip("\n") for part in words if part) + "\n"


def _figures(name: str) -> str:
    own = {of: one.title for of, one in DRAWN.items() if one.beside_table and one.table == name}
    return "\n\n".join(f"![{title}](../figures/{of}.svg)" for of, title in own.items())


def _cells(one: MeasuredTable, listing: Listing) -> list[Cell]:
    cells = [table.whole(cell) | {"name": _cell(table.name_of(cell))} for cell in one.of_kind(listing.kind)]
    labels = [{name: cell.get(name, "") for name in dict.fromkeys(("name", *listing.labels))} for cell in cells]
    nameless = not any("name" in cell for cell in one.of_kind(listing.kind))
    keys = [in_order({name: one for name, one in label.items() if name != "name" or not nameless}) for label in labels]
    return [cell for _, cell in sorted(zip(keys, cells, strict=True), key=lambda pair: pair[0])]


def _promises(one: MeasuredTable) -> str:
    lines = [["promise", "measured", "aim", ""]]
    for cell in one.of_kind("promise"):
        value, unit = cell["value"], cell.get("unit", "")
        if "bound" not in cell:
            lines.append([_cell(cell["name"]), f"{number(value)} {unit}".strip(), "", "not promised here"])
            continue
        sign, kept = {"at least": ("≥", value >= cell["bound"]), "at most": ("≤", value <= cell["bound"])}[cell["sign"]]
        said = f"{number(value)} {unit}".strip()
        aim = f"{sign} {cell['bound']:g} {unit}".strip()
        lines.append([_cell(cell["name"]), said if kept else f"**{said}**", aim, "" if kept else "missed"])
    return markdown_table(lines) if len(lines) > 1 else ""


def _hosts(one: MeasuredTable) -> str:
    """A line a figure, a column a run; in bold what misses the aim of its line."""
    cells = one.of_kind(HOSTS)
    if not cells:
        return ""
    runs = list(dict.fromkeys(key for cell in cells for key in cell if key not in ("kind", "name", "aim", "sign")))
    lines = [["", "aim", *runs]]
    for cell in cells:
        aim = f"{'≤' if cell['sign'] == 'at most' else '≥'} {cell['aim']:g}" if "aim" in cell else ""
        lines.append([_cell(cell["name"]), aim, *(_beside_aim(cell, run) for run in runs)])
    return markdown_table(lines)


def _beside_aim(cell: Cell, run: str) -> str:
    if run not in cell:
        return ""
    value = cell[run]
    said = f"{value:.3f}" if 0.1 < abs(value) < 2 else number(value)
    missed = "aim" in cell and (value > cell["aim"] if cell["sign"] == "at most" else value < cell["aim"])
    return f"**{said}**" if missed else said


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _path(name: str) -> str:
    return f"../../bench/tables/{name}.csv"
