"""`penstock doctor`: what this machine can do, and what it would take to do what it cannot."""

from __future__ import annotations

import json as json_text
import sys
from typing import Annotated, Any

import typer

from penstock import _core
from penstock._text import bytes_text
from penstock.cli import hdf5_driver, options
from penstock.cli.show import WIDTH

_MARKS = {"yes": "[green]yes[/green]", "partly": "[yellow]partly[/yellow]", "no": "[red]no[/red]"}


def doctor(
    path: Annotated[str, typer.Argument(help="A file or directory on the file system to examine.")] = ".",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say what this machine offers for transfers, and for each thing that it lacks what to change.

    Example: penstock doctor /scratch
    """
    options.check_name("doctor", "PATH", path)
    survey = json_text.loads(_core.survey_json(path))
    survey["items"].append(hdf5_driver.item())
    if json:
        sys.stdout.write(json_text.dumps(survey) + "\n")
    else:
        _print(survey)
    return 0


def _machine(facts: dict[str, Any]) -> str:
    gpus = ", ".join(str(gpu.get("model", gpu)) if isinstance(gpu, dict) else str(gpu) for gpu in facts["gpus"])
    return (
        f"{facts['cpu_model']}, {facts['cores']} cores, {bytes_text(facts['memory_bytes'])} of memory, "
        f"{gpus or 'no GPU'}; {facts['os']}, Linux {facts['kernel']}, {facts['architecture']}, "
        f"pages of {bytes_text(facts['page_bytes'])}"
    )


def _print(survey: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(escape(_machine(survey["machine"])), highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("found")
    for item in survey["items"]:
        detail = escape(str(item["detail"]))
        if item.get("advice"):
            detail += f"\n[bold]to change this:[/bold] {escape(item['advice'])}"
        table.add_row(escape(item["name"].replace("_", " ")), _MARKS.get(item["state"], item["state"]), detail)
    console.print(table)
