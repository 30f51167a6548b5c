"""The definitions that come with Penstock: a suite's lie in its folder."""

from __future__ import annotations

from pathlib import Path

from penstock import Error
from penstock._text import guess
from penstock_bench import suites
from penstock_bench.engine.definition import Definition, parsed
from penstock_bench.runs.suites import SUITES

ALL = "all"  # stands for in_all()


def known() -> dict[str, Path]:
    """By name, in the order of their names."""
    found = Path(suites.__file__).resolve().parent.glob("*/*.toml")
    return {path.stem: path for path in sorted(found, key=lambda path: path.stem)}


def in_all(quick: bool) -> list[Definition]:
    """Those that `penstock bench all` runs, in the order of their names; the quick report comes first."""
    every = [load(name, quick) for name in known()]
    return sorted((one for one in every if one.in_all), key=lambda one: (one.name != "report", one.name))


def load(name: str, quick: bool) -> Definition:
    """One by its name, or from a TOML file. Raises Error that says what is wrong with it."""
    path = Path(name) if name.endswith(".toml") else known().get(name)
    if path is None or not path.is_file():
        names = [*known(), ALL]
        raise Error(
            code="not_found",
            operation="bench",
            file=name,
            cause="there is no such suite",
            advice=f"use one of {', '.join(names)}, or a .toml file{guess(name, names)}",
        )
    return parsed(path, quick, SUITES)
