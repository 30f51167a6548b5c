"""What hand-written pages say of tables, and whether they say it still.

A file of claims, TOML: for each page a list of fragments as the page has them, with an expression in braces in place
of each number: `takes {core/h200: 4 KiB one at a time; median_us} us`. An expression is a cell's name and a column, or
such pairs in square brackets with arithmetic, min() and max(): `{core/h200: [hot read; GB/s] / [copy to device; s]}`;
a pair may name a table of its own. White space of any kind and length is the same in both. What must stay true: a
number that the tables do not give is told, or replaced; a fragment that the page does not have, or has twice, is told.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock_bench.measured.table import MeasuredTable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

UNITS = {  # names of columns in a unit, besides the columns' own
    "GB/s": ("bytes_per_second", 1e9),
    "TB/s": ("bytes_per_second", 1e12),
    "M/s": ("operations_per_second", 1e6),
    "k/s": ("operations_per_second", 1e3),
    "durable GB/s": ("durable_bytes_per_second", 1e9),
}
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
_TERM = re.compile(r"\[([^\[\]]+); ([^\[\];]+)\]")
_PLACE = re.compile(r"\{([^{}]+)\}")
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max}
Tables = Mapping[str, MeasuredTable]


@dataclass(frozen=True)
class Claim:
    """A fragment found in a page: where its numbers are, as they stand there and as the tables give them."""

    fragment: str
    places: tuple[tuple[int, int], ...]
    here: tuple[str, ...]
    true: tuple[str, ...]


def claims(page: str, fragments: list[str], tables: Tables) -> Iterator[Claim]:
    """Raises ValueError for a fragment that the page does not have once, and for an expression that is none."""
    for fragment in fragments:
        parts = _PLACE.split(fragment)
        pattern = "".join(f"({NUMBER})" if turn % 2 else _literal(part) for turn, part in enumerate(parts))
        found = list(re.finditer(pattern, page))
        if len(found) != 1:
            raise ValueError(f"the page has {len(found)} places that read: {fragment}")
        here = found[0].groups()
        true = tuple(_as(value(one, tables), text) for one, text in zip(parts[1::2], here, strict=True))
        yield Claim(fragment, tuple(found[0].span(turn) for turn in range(1, len(here) + 1)), here, true)


def filled(page: str, fragments: list[str], tables: Tables) -> str:
    """The page with the numbers that the tables give."""
    places = {
        place: text for one in claims(page, fragments, tables) for place, text in zip(one.places, one.true, strict=True)
    }
    for (begin, end), text in sorted(places.items(), reverse=True):
        page = page[:begin] + text + page[end:]
    return page


def untold(page: str, heading: str, fragments: list[str], tables: Tables) -> list[str]:
    """Numbers with a point in the part of a page below a heading that no fragment tells, each with the words before."""
    begin = page.index(f"\n{heading}\n")
    level = heading.partition(" ")[0]
    following = re.search(rf"^#{{1,{len(level)}}} ", page[begin + len(heading) + 2 :], re.M)
    end = begin + len(heading) + 2 + following.start() if following else len(page)
    known = {place for one in claims(page, fragments, tables) for place in one.places}
    return [
        page[max(begin, match.start() - 40) : match.end()]
        for match in re.finditer(r"(?<![\w.,-])\d[\d,]*\.\d+(?![\w.-])", page[begin:end].join((" " * begin, "")))
        if match.span() not in known
    ]


def value(expression: str, tables: Tables) -> float:
    """Raises ValueError or KeyError for what is no expression, or not of these tables."""
    name, _, rest = expression.partition(": ")
    if name not in tables or not rest:
        raise ValueError(f"no table '{name}': {expression}")
    terms = rest if "[" in rest else f"[{rest}]"
    values: dict[str, float] = {}

    def number(match: re.Match[str]) -> str:
        column, unit = UNITS.get(match[2], (match[2], 1.0))
        table, _, cell = match[1].partition(": ")
        table, cell = (table, cell) if table in tables else (name, match[1])
        values[f"v{len(values)}"] = tables[table].value(cell, column) / unit
        return f"v{len(values) - 1}"

    return _evaluated(ast.parse(_TERM.sub(number, terms), mode="eval").body, values)


def _evaluated(node: ast.AST, values: dict[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluated(node.left, values), _evaluated(node.right, values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_evaluated(one, values) for one in node.args))
    raise ValueError(f"this is no arithmetic: {ast.unparse(node)}")


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


def _as(found: float, text: str) -> str:
    """The number in the form of the text: as many digits behind the point, commas or an exponent as it has."""
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    if exponent:
        return re.sub(r"e([-+])0", r"e\1", f"{found:.{digits}e}").replace("e+", "e")
    return f"{found:,.{digits}f}" if "," in text else f"{found:.{digits}f}"


def read(text: str) -> dict[str, dict[str, Any]]:
    """Pages with their `claims`, and the headings `whole` below which each number with a point is to be told."""
    found: dict[str, dict[str, Any]] = tomllib.loads(text)
    return found
