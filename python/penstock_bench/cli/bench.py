"""`penstock bench`: runs a suite of measurements, writes JSON lines, prints the medians."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import Error
from penstock._text import bytes_text
from penstock.cli import options, show

if TYPE_CHECKING:
    from penstock_bench.engine.definition import Definition
    from penstock_bench.engine.run import Request

DEFAULT_RESULTS = "penstock-results.jsonl"


def bench(
    suite: Annotated[str, typer.Argument(help="A suite (see --list), a .toml file, or all.")] = "report",
    directory: Annotated[
        str, typer.Option("--dir", help="Folder for the test files, which are removed in the end.")
    ] = ".",
    remote: Annotated[
        str | None, typer.Option("--remote", help="A second folder to measure beside --dir (only io-size).")
    ] = None,
    device: Annotated[
        str, typer.Option(help="Device to measure: auto (a GPU if there is one), host, cuda:0, ...")
    ] = "auto",
    results: Annotated[str, typer.Option("--out", help="Results file, JSON lines.")] = DEFAULT_RESULTS,
    file_bytes: Annotated[str | None, typer.Option(help="Size of the test files instead of the suite's.")] = None,
    repeats: Annotated[str | None, typer.Option(help="Number of rounds instead of the suite's.")] = None,
    seconds: Annotated[
        str | None, typer.Option(help="Time limit instead of the suite's: after it no cell begins.")
    ] = None,
    peers: Annotated[
        str, typer.Option(help="Other libraries to measure too: all, none, or names with commas.")
    ] = "all",
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published", help="Only per-process: as the study measured, with no file made cold or durable."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run whose results are in --out.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The short form of the suite, for two cores and a small disk.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    list_suites: Annotated[bool, typer.Option("--list", help="List the suites and stop.")] = False,
) -> int:
    """Measure transfer paths on files made under --dir; check every byte on the device; write results as JSON lines.

    In each round every variant is measured once. `penstock bench core` compares with baselines and other libraries;
    `all` runs the suites of a full report, each with its own results file: NAME-SUITE.jsonl for --out NAME.jsonl.

    Example: penstock bench core --quick --dir /scratch --out core.jsonl
    """
    from penstock_bench.engine.run import Request
    from penstock_bench.runs import definitions

    if list_suites:
        return _list(json, quick)
    place, out = options.place("bench", "--dir", directory), options.place("bench", "--out", results)
    options.device("bench", "--device", device)
    chosen = [_published(one) for one in _definitions(suite, quick)] if as_published else _definitions(suite, quick)
    named = _peers(peers, chosen)
    limits = (file_bytes, repeats, seconds)
    requests = [Request(_overridden(one, *limits), device, place, out, quick, named, resume) for one in chosen]
    requests = [replace(one, remote=_second(one, remote, suite == definitions.ALL)) for one in requests]
    if suite == definitions.ALL:
        requests = [
            replace(one, results=out.with_name(f"{out.stem}-{one.definition.name}{out.suffix}")) for one in requests
        ]
    done = [_run(one, json) for one in requests]
    if json:
        show.json_object({"suites": done} if suite == definitions.ALL else done[0])
    return 0


def _definitions(name: str, quick: bool) -> list[Definition]:
    from penstock_bench.runs import definitions

    if name == definitions.ALL:
        return definitions.in_all(quick)
    with nullcontext() if name.endswith(".toml") else options.usage():  # a file may be missing; a name is wrong
        return [definitions.load(name, quick)]


def _published(definition: Definition) -> Definition:
    """Measured as a study did, of suites that follow one."""
    mine = definition.settings.get(definition.kind, {})
    if "as_published" not in mine:
        cause = f"--as-published: the suite {definition.name} follows no study"
        raise options.refusal("bench", cause, "use it with per-process")
    mine["as_published"] = True
    return definition


def _run(request: Request, json: bool) -> dict[str, Any]:
    """Runs one suite; prints its tables unless all is to be one JSON object."""
    from penstock_bench.runs import session

    name = request.definition.name
    with show.steps(f"bench {name}") as step:
        rows = session.run(request, step)
    if not json:
        from penstock_bench.report.show import print_results

        print_results(rows)
        ended = any(row["kind"] == "stopped" for row in rows)
        more = "; its time limit ended it, and the same command with --resume goes on" if ended else ""
        sys.stdout.write(f"results: {request.results}{more}\n")
    return {"suite": name, "results": str(request.results), "rows": rows}


def _peers(text: str, chosen: list[Definition]) -> frozenset[str] | None:
    """Those named, each of which one of the suites at least can measure; None for all."""
    from penstock_bench.runs.suites import PEERS, SUITES

    if text in ("all", "none"):
        return None if text == "all" else frozenset()
    names = frozenset(text.split(","))
    unknown = sorted(names - PEERS)
    if unknown:
        raise options.refusal(
            "bench", f"--peers: '{unknown[0]}' is not known", "use all, none, or some of " + ", ".join(sorted(PEERS))
        )
    able = {peer for one in chosen for peer in SUITES[one.kind].peers}
    idle = sorted(names - able)
    if idle:
        known = "use some of " + ", ".join(sorted(able)) if able else "use none"
        raise options.refusal("bench", f"--peers: the suite {chosen[0].name} has no '{idle[0]}'", known)
    return names


def _list(json: bool, quick: bool) -> int:
    from penstock_bench.runs import definitions

    known = [definitions.load(name, quick) for name in definitions.known()]
    in_all = [one.name for one in definitions.in_all(quick)]
    if json:
        fields = ("name", "about", "file_bytes", "repeats", "seconds")
        suites = [{field: getattr(one, field) for field in fields} for one in known]
        show.json_object({"suites": suites, definitions.ALL: in_all})
        return 0
    for one in known:
        size = bytes_text(one.file_bytes)
        sys.stdout.write(f"{one.name:12}  {one.about} (files of {size}, {one.repeats} repeats)\n")
    sys.stdout.write(f"{definitions.ALL:12}  those that make up a report: {', '.join(in_all)}\n")
    return 0


def _overridden(definition: Definition, file_bytes: str | None, repeats: str | None, seconds: str | None) -> Definition:
    if file_bytes is not None:
        size = options.size("bench", "--file-bytes", file_bytes)
        if size < 1 << 20:
            raise options.refusal("bench", f"--file-bytes: {file_bytes} is too small to measure", "use at least 1MiB")
        definition = replace(definition, file_bytes=size >> 20 << 20)  # whole MiB: every request and alignment fits
    if repeats is not None:
        definition = replace(definition, repeats=options.count("bench", "--repeats", repeats, 1000))
    if seconds is not None:
        definition = replace(definition, seconds=float(options.count("bench", "--seconds", seconds, 1_000_000)))
    return definition


def _second(request: Request, remote: str | None, one_of_all: bool) -> Path | None:
    """The second directory, when the suite measures one."""
    from penstock_bench.runs.suites import SUITES

    definition = request.definition
    if remote is None:
        return None
    if one_of_all and not SUITES[definition.kind].takes_remote:
        return None
    if not SUITES[definition.kind].takes_remote:
        able = ", ".join(name for name, one in SUITES.items() if one.takes_remote)
        raise options.refusal(
            "bench", f"--remote: the suite {definition.name} measures one directory", f"use it with {able}"
        )
    place = options.place("bench", "--remote", remote)
    if place.exists() and request.directory.exists() and place.samefile(request.directory):
        raise options.refusal("bench", f"--remote: {remote} is --dir itself", "name another directory")
    cause = options.why_not_there(place)  # now, not when other suites are done
    if cause:
        advice = "name an existing one that you can write to with --remote"
        raise Error(operation="bench", file=remote, cause=cause, advice=advice)
    return place
