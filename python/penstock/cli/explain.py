"""`penstock explain`: why a transfer of a file would go the way it would, and what it was chosen among."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from penstock import Context, Error
from penstock._text import bytes_text, rate_text, seconds_text
from penstock.cli import options, show
from penstock.cli.options import refusal

KINDS = ("device", "pinned", "managed", "system")


def explain(
    file: Annotated[str, typer.Argument(help="The file of the transfer.")],
    write: Annotated[bool, typer.Option("--write", help="Explain a write over the file instead of a read.")] = False,
    to: Annotated[
        str, typer.Option("--to", help="Device of the transfer: auto (a GPU if there is one), host, cuda:0, ...")
    ] = "auto",
    path: Annotated[str, typer.Option(help=options.PATH_HELP)] = "auto",
    offset: Annotated[str, typer.Option(help="First byte of the transfer.")] = "0",
    bytes: Annotated[str | None, typer.Option(help="How many bytes; without it to the end of the file.")] = None,
    memory: Annotated[
        str, typer.Option(metavar="KIND", help="Kind of memory: device, pinned, managed, system.")
    ] = "device",
    durable: Annotated[
        bool, typer.Option("--durable", help="The write ends when the bytes are on stable storage.")
    ] = False,
    profile: Annotated[str, typer.Option(help="Machine profile: auto, none, a file or a folder.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say which path a transfer of FILE would take and why, with the rates that a machine profile predicts.

    No byte is moved. `penstock calibrate` makes profiles.

    Example: penstock explain data.bin --bytes 1MiB --profile machine.csv
    """
    options.check_name("explain", "FILE", file)
    if memory not in KINDS:
        raise refusal("explain", f"--memory: there is no kind '{memory}'", "use one of " + ", ".join(KINDS))
    how = {"path": options.path("explain", path), "durable": durable}
    start = options.size("explain", "--offset", offset)
    wanted = None if bytes is None else options.size("explain", "--bytes", bytes)
    options.check_range("explain", start, wanted or 0)
    direction = "write" if write else "read"
    context = Context(options.device("explain", "--to", to), profile=None if profile == "none" else profile)
    with context, context.open(file, write=write) as opened:
        if start > opened.size_bytes and not write:
            cause = f"the offset {start} is beyond the end ({opened.size_bytes} bytes)"
            raise Error(operation="explain", file=file, cause=cause, advice="give a smaller --offset")
        found = opened.explain(direction, start, wanted, memory, **how)
    if json:
        show.json_object({"file": file, "direction": direction, **found})
    else:
        sys.stdout.write(_text(found))
        there = sum(part["bytes"] for part in found["parts"])
        if wanted is not None and there < wanted:
            sys.stdout.write(f"the file ends after {bytes_text(there)} of the {bytes_text(wanted)} asked for\n")
    return 0


def _text(found: dict[str, Any]) -> str:
    lines = [found["plan"] or "nothing to move", ""]
    for part in found["parts"]:
        state = {True: "in the page cache", False: "not in the page cache", None: "residency unknown"}
        lines.append(f"{bytes_text(part['bytes'])} {state[part['in_page_cache']]}:")
        lines += [_option(one, part["bytes"]) for one in part["options"]]
        lines.append("")
    lines.append(_profile(found))
    return "\n".join(lines) + "\n"


def _option(one: dict[str, Any], bytes: int) -> str:
    if one["refusal"]:
        return f"  {one['path']:15} not taken: {one['refusal']}"
    if one["seconds"] is None:
        return f"  {one['path']:15} not measured"
    return f"  {one['path']:15} {rate_text(bytes / one['seconds']):>11}  {seconds_text(one['seconds'])}"


def _profile(found: dict[str, Any]) -> str:
    if found["profile"] and found["predicted_seconds"] is None:
        return f"not predicted: {found['profile']} has no measurements of such a transfer"
    if found["profile"]:
        return f"predicted by {found['profile']}"
    if found["profile_refused"]:
        return "chosen by the built-in rules: " + found["profile_refused"]
    return "chosen by the built-in rules: no machine profile; make one with `penstock calibrate`"
