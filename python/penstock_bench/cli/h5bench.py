"""`penstock h5bench`: runs h5bench configurations with the data in device memory, and says which path they took."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock._files.publish import check_target
from penstock._text import one_line
from penstock.cli import options, show

if TYPE_CHECKING:
    from penstock_bench.h5bench.benchmark import Result
    from penstock_bench.h5bench.config import H5benchRun

_ADVICE = "name a file that you can write"


def h5bench(
    configuration: Annotated[str, typer.Argument(help="A JSON configuration of h5bench.", metavar="CONFIG")],
    device: Annotated[
        str, typer.Option(help="Device of the particles: auto (a GPU if there is one), host, cuda:0, ...")
    ] = "auto",
    out: Annotated[
        str | None,
        typer.Option(
            "--out", help="Results file: .csv as h5bench writes it; .jsonl or .parquet with a row for each benchmark."
        ),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Before a read, drop the file from the page cache and check that it is gone.")
    ] = False,
    durable: Annotated[
        bool, typer.Option("--durable", help="When a file is closed, wait until it is on stable storage.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Check every byte on the device.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run the benchmarks `write` and `read` of CONFIG in one process; report raw and observed rates as h5bench does.

    Files go to the configuration's directory, as with h5bench, and stay there.

    Example: penstock h5bench config.json --out h5bench.csv
    """
    from penstock import Context
    from penstock.calibration.machine import fingerprint
    from penstock_bench.h5bench import config as h5bench_config
    from penstock_bench.h5bench.benchmark import Options
    from penstock_bench.h5bench.run import perform
    from penstock_bench.runs import tables

    runs = h5bench_config.load(options.place("h5bench", "CONFIG", configuration))
    target = None if out is None else options.place("h5bench", "--out", out)
    if target is not None:
        with options.usage():
            tables.encoder(target, "h5bench")
    _check_targets(runs, [target, *(run.csv for run in runs)])
    done: list[Result] = []
    with Context(options.device("h5bench", "--device", device)) as context:
        for run in runs:
            done.append(perform(context, run, Options(durable, verify, cold)))
            if not json:
                _print(done[-1])
        machine = fingerprint(context, runs[0].file.parent)
    _save_named(done)
    if target is not None:
        _save(target, done, machine)
    if json:
        show.json_object({"machine": machine, "runs": [_fields(one) for one in done]})
    return 0


def _check_targets(runs: list[H5benchRun], targets: list[Path | None]) -> None:
    """Now rather than when all benchmarks have run. The folders of the data are made by those that write them."""
    to_be_made = {run.file.parent for run in runs if run.benchmark == "write" and not run.file.parent.exists()}
    for target in targets:
        if target is not None and target.parent not in to_be_made:
            check_target(target, "h5bench", _ADVICE)


def _print(result: Result) -> None:
    width = max(len(name) for name, _, _ in result.rows)
    for name, value, unit in result.rows:
        text = f"{value:.6g}" if isinstance(value, float) else one_line(str(value))
        sys.stdout.write(f"{name:<{width}}  {text} {unit}".rstrip() + "\n")
    for note in result.run.notes:
        sys.stdout.write(f"{'note':<{width}}  {one_line(note)}\n")
    sys.stdout.write("\n")


def _fields(result: Result) -> dict[str, Any]:
    rows = [{"metric": name, "value": value, "unit": unit} for name, value, unit in result.rows]
    return {"metrics": rows, "notes": result.run.notes, "evidence": result.evidence}


def _save_named(done: list[Result]) -> None:
    """The CSV_FILE of the configuration; benchmarks that name the same one share it."""
    from penstock._files.publish import publish

    named: dict[Path, list[Result]] = defaultdict(list)
    for one in done:
        if one.run.csv is not None:
            named[one.run.csv].append(one)
    for path, results in named.items():
        publish(path, _csv(results), "h5bench", _ADVICE)


def _save(path: Path, done: list[Result], machine: dict[str, Any]) -> None:
    from penstock._files.publish import publish
    from penstock_bench.runs import tables

    if path.suffix == ".csv":
        publish(path, _csv(done), "h5bench", _ADVICE)
        return
    described = {"kind": "machine", "machine": machine}
    rows = [{"kind": "h5bench"} | {name: value for name, value, _ in one.rows} for one in done]
    tables.save(path, tables.of_results([described, *rows])[1:], "h5bench")


def _csv(done: list[Result]) -> bytes:
    """h5bench's form: metric, value, unit; a benchmark begins with its operation."""
    lines = ["metric, value, unit"]
    for name, value, unit in (row for one in done for row in one.rows):
        text = str(value).replace(",", ";")  # h5bench's readers split at commas
        lines.append(f"{name}, {one_line(text)}, {unit}")
    return ("\n".join(lines) + "\n").encode(errors="backslashreplace")
