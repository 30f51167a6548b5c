"""A table of medians: what is kept of a run when its rows are gone.

A text file. Lines that begin with `#` are the head, `# name: value` each: the suite, the machine, the revision, the
command. Then a part for each kind of cell: `[kind]`, a line `name=value` for what all its cells have alike, and CSV,
one line a cell. Labels say what was measured, `n` how many samples there are. A quantity is a median; the columns `low`
and `high` behind it bound its 95 % interval, and are empty where there are fewer than three samples or all are the
same. What must stay true: the same table gives the same text, in the same order, so that a difference between two
versions is a difference between two measurements.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from penstock import Error

Cell = dict[str, Any]
LOW, HIGH = " low", " high"
DIGITS, BOUND_DIGITS = 5, 3
EXPONENT_FROM = 1e6  # larger measured numbers are written as 5.3212e10: five of their digits are known
PARTICLE_BYTES = 36
_MARK = "# "
_ALIKE = re.compile(r"[^,\"=]+=")


@dataclass(frozen=True)
class MeasuredTable:
    """Cells with their head. Values are numbers, truth values and text; what a cell does not have is absent."""

    head: dict[str, str]
    cells: list[Cell]

    def of_kind(self, kind: str) -> list[Cell]:
        return [cell for cell in self.cells if cell["kind"] == kind]

    def rows(self, kind: str) -> list[Cell]:
        """Cells as the rows of a results file, for what draws and judges rows: three of each cell that has an interval,
        its median and its bounds, so that their median and their spread are the cell's; one of others."""
        return [row for cell in self.of_kind(kind) for row in _rows(cell)]

    def value(self, name: str, column: str) -> float:
        """A number of the cell of that name, also one that follows from others. KeyError says what there is not; of
        several cells of one name the first that has the column is meant."""
        found = [whole(cell) for cell in self.cells if name_of(cell) == name]
        values = [cell[column] for cell in found if isinstance(cell.get(column), (int, float))]
        if not values:
            raise KeyError(f"no number '{column}' of '{name}'")
        return float(values[0])

    @property
    def text(self) -> str:
        """Raises ValueError for text of more than a line."""
        written = [*self.head.values(), *(_written(value) for cell in self.cells for value in cell.values())]
        if any("\n" in value for value in written):
            raise ValueError("a line of the head is one line, and so is a cell")
        parts = [f"{_MARK}{name}: {value}\n" for name, value in self.head.items()]
        for kind in sorted({cell["kind"] for cell in self.cells}):
            parts.append(f"\n[{kind}]\n{_csv(self.of_kind(kind))}")
        return "".join(parts)


def read(path: Path) -> MeasuredTable:
    """Raises Error when the file cannot be read or is no such table."""
    try:
        first, *others = re.split(r"\n{2,}", path.read_text().strip("\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise Error(operation="read a table", file=str(path), cause=str(error), advice="name a table") from None
    lines = first.split("\n")
    head = dict(line.removeprefix(_MARK).split(": ", 1) for line in lines if line.startswith(_MARK) and ": " in line)
    try:
        cells = [cell for other in others for cell in _part(*other.split("\n"))]
    except ValueError as error:
        raise Error(operation="read a table", file=str(path), cause=str(error), advice="make it anew") from None
    if not head or not cells:
        cause = "it has no head or no cells"
        raise Error(operation="read a table", file=str(path), cause=cause, advice="make it anew, or name a table")
    return MeasuredTable(head, cells)


def name_of(cell: Cell) -> str:
    """The name of a cell; its labels, in the order of the columns, where it has none."""
    if "name" in cell:
        return str(cell["name"])
    return " ".join(str(value) for name, value in cell.items() if name not in ("kind", "n") and _is_label(value))


def interval(cell: Cell, quantity: str) -> tuple[float, float] | None:
    """The bounds of a quantity; its median twice where all samples are the same; None of too few samples."""
    if quantity + LOW in cell:
        return cell[quantity + LOW], cell[quantity + HIGH]
    return (cell[quantity], cell[quantity]) if cell.get("n", 0) > 2 else None


def rounded(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def _rows(cell: Cell) -> list[Cell]:
    bounded = [name for name in cell if name + LOW in cell]
    plain = {name: value for name, value in cell.items() if not name.endswith((LOW, HIGH))}
    ends = [plain | {name: cell[name + end] for name in bounded} for end in (LOW, HIGH) if bounded]
    return [whole(one) for one in (plain, *ends)]


def whole(cell: Cell) -> Cell:
    """The cell with what follows from the rest of it, and was left out for that."""
    found = {"bytes": cell.get("request_bytes", 0) or PARTICLE_BYTES * cell.get("particles", 0)}
    found |= {"took": cell.get("path") or cell.get("way", ""), "name": name_of(cell)} | cell
    rate, durable, size = (cell.get(name) for name in ("bytes_per_second", "durable_bytes_per_second", "request_bytes"))
    if rate:
        found.setdefault("seconds", found["bytes"] / rate)
    if rate and size:
        found.setdefault("operations_per_second", rate / size)
    if rate and durable:
        found["fsync_s"] = found["bytes"] / durable - found["bytes"] / rate
    return found


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _part(title: str, *lines: str) -> list[Cell]:
    if not (title.startswith("[") and title.endswith("]")):
        raise ValueError(f"a part begins with {title!r}, which is no [kind]")
    return _cells(title[1:-1], list(lines))


def _cells(kind: str, lines: list[str]) -> list[Cell]:
    alike = dict(line.split("=", 1) for line in takewhile(_ALIKE.match, lines))
    names, *body = csv.reader(lines[len(alike) :])
    found = [alike | dict(zip(names, line, strict=True)) for line in body]
    order = _columns([{name: _value(text) for name, text in one.items() if text} for one in found])
    return [{"kind": kind} | {name: _value(one[name]) for name in order if one[name]} for one in found]


def _csv(cells: list[Cell]) -> str:
    stream = io.StringIO(newline="")
    every = [name for name in _columns(cells) if any(_written(cell.get(name)) for cell in cells)]
    alike = [name for name in every if len(cells) > 1 and len({_written(cell.get(name)) for cell in cells}) == 1]
    alike = [name for name in alike if _ALIKE.fullmatch(f"{name}=")]
    alike = alike if len(alike) < len(every) else []  # a line of CSV has something
    stream.writelines(f"{name}={_written(cells[0].get(name))}\n" for name in alike)
    writer = csv.writer(stream, lineterminator="\n")
    names = [name for name in every if name not in alike]
    writer.writerow(names)
    writer.writerows([_written(cell.get(name)) for name in names] for cell in sorted(cells, key=_order))
    return stream.getvalue()


def _columns(cells: Iterable[Cell]) -> list[str]:
    """The name, labels, `n`, then quantities: what has an interval, or is no whole number, in one cell at least."""
    names = [name for name in dict.fromkeys(name for cell in cells for name in cell) if name not in ("kind", "name")]
    bounds = {name for name in names if name.endswith((LOW, HIGH))}
    measured = {name for name in names if any(isinstance(cell.get(name), float) for cell in cells)} - bounds
    labels = [name for name in names if name not in bounds | measured | {"n"}]
    behind = [name for one in sorted(measured) for name in (one, one + LOW, one + HIGH) if name in names]
    named = ["name"] if any("name" in cell for cell in cells) else []
    return [*named, *sorted(labels), *(["n"] if "n" in names else []), *behind]


def _order(cell: Cell) -> tuple[Any, ...]:
    labels = sorted((name, value) for name, value in cell.items() if _is_label(value) and value != "" and name != "n")
    return str(cell.get("name", "")), [(name, isinstance(value, str), value) for name, value in labels]


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and EXPONENT_FROM <= abs(value) < math.inf:
        mantissa, exponent = f"{value:.{DIGITS - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return repr(value) if isinstance(value, float) else str(value)


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
