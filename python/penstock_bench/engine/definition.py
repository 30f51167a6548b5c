"""Definitions: what to run of a suite, as TOML. Each [[case]] of a grid is a grid; all of them together are run.

    name = "paths"
    file_bytes = "1GiB"
    repeats = 5
    seconds = 600           # no trial starts later than this
    in_all = true           # of those that come with Penstock: `penstock bench all` runs it
    [[case]]
    path = ["auto", "uring"]
    direction = ["read", "write"]
    cache = ["hot", "cold"]
    [quick]                 # what --quick changes
    file_bytes = "256MiB"

Axes: path, direction, request_bytes ("file": all in one request), workers, depth, buffer (device, pinned, managed,
system), first_touch (none, cpu, gpu), cache (hot, cold, direct). A single value stands for a list of one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import sys
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock import Error, parse_bytes, path_names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GRID = "grid"  # the suite of files that name no other
VALID = {
    "direction": ("read", "write"),
    "buffer": ("device", "pinned", "managed", "system"),
    "first_touch": ("none", "cpu", "gpu"),
    "cache": ("hot", "cold", "direct"),
}


@dataclass(frozen=True)
class Trial:
    """One point of the grid. request_bytes 0: the whole file in one request; workers and depth 0: the policy's."""

    path: str = "auto"
    direction: str = "read"
    request_bytes: int = 0
    workers: int = 0
    depth: int = 0
    buffer: str = "device"
    first_touch: str = "gpu"
    cache: str = "hot"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Definition:
    """What to run, how often, on files of what size, and for how long at most."""

    name: str
    about: str = ""  # one line
    file_bytes: int = 1 << 20
    repeats: int = 1
    seconds: float = math.inf
    kind: str = GRID  # the name of the suite that measures it
    trials: tuple[Trial, ...] = ()  # of a grid
    cases: tuple[dict[str, Any], ...] = ()  # as written, for kinds with axes of their own
    settings: dict[str, Any] = field(default_factory=dict)  # tables that belong to one suite, e.g. [core]
    in_all: bool = False  # `penstock bench all` runs it

    @property
    def digest(self) -> str:
        """A short name of what is measured: two runs of one digest can be one."""
        whole = [self.kind, [trial.as_dict() for trial in self.trials], self.cases, self.settings]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:10]


class Settings(dict[str, Any]):
    """A table of a definition; what a suite needs of it and does not find is an Error that names it."""

    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        super().__init__(table)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise _wrong(self._path, f"{name} is missing")


def parsed(path: Path, quick: bool, suites: Collection[str]) -> Definition:
    """What a file says, of one of these suites. Raises Error that says what is wrong with it."""
    try:
        table = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, str(error)) from None
    if quick:
        table |= table.get("quick", {})
    try:
        return _definition(path, table, _kind(path, table, suites))
    except KeyError as error:
        raise _wrong(path, f"{error.args[0]} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _wrong(path, str(error)) from None


def _definition(path: Path, table: dict[str, Any], kind: str) -> Definition:
    cases = table.get("case", [])
    if not all(isinstance(case, dict) for case in cases):
        raise _wrong(path, "a case is a table: [[case]]")
    trials = dict.fromkeys(trial for case in cases if kind == GRID for trial in _expand(path, case))
    tables = {key: value for key, value in table.items() if isinstance(value, dict) and key != "quick"}
    settings = Settings(path, {key: Settings(path, value) for key, value in tables.items()})
    if int(table["repeats"]) < 1 or not 0 < float(table["seconds"]) < math.inf or table["file_bytes"] in (0, "0"):
        raise _wrong(path, "file_bytes, repeats and seconds are above 0")
    if kind == GRID and not trials:
        raise _wrong(path, "there is no [[case]]: nothing would be measured")
    return Definition(
        str(table.get("name", path.stem)),
        str(table.get("about", "")),
        parse_bytes(str(table["file_bytes"])),
        int(table["repeats"]),
        float(table["seconds"]),
        kind,
        tuple(trials),
        tuple(cases),
        settings,
        table.get("in_all") is True,
    )


def _kind(path: Path, table: dict[str, Any], suites: Collection[str]) -> str:
    """What the file says, else the suite whose table it has, else a grid."""
    kind = table.get("kind") or next((name for name in suites if name in table), GRID)
    if kind not in suites:
        raise _wrong(path, f"kind '{kind}' is not one of " + ", ".join(suites))
    return str(kind)


def _expand(path: Path, case: dict[str, Any]) -> list[Trial]:
    names = [one.name for one in fields(Trial)]
    unknown = sorted(set(case) - set(names))
    if unknown:
        raise _wrong(path, f"a case has no axis '{unknown[0]}'; axes are " + ", ".join(names))
    lists = [value if isinstance(value, list) else [value] for value in case.values()]
    return [
        Trial(**{name: _value(path, name, one) for name, one in zip(case, point, strict=True)})
        for point in itertools.product(*lists)
    ]


def _value(path: Path, name: str, value: Any) -> Any:
    if name == "request_bytes":
        return 0 if value == "file" else parse_bytes(str(value))
    if name in ("workers", "depth"):
        if not isinstance(value, int) or value < 0:
            raise _wrong(path, f"{name} must be a whole number, not {value!r}")
        return value
    valid = path_names() if name == "path" else VALID[name]
    if value not in valid:
        raise _wrong(path, f"{name} '{value}' is not one of " + ", ".join(valid))
    return value


def _wrong(path: Path, cause: str) -> Error:
    return Error(operation="read suite", file=str(path), cause=cause, advice="see docs/cli.md")
