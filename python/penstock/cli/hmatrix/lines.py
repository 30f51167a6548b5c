"""What `penstock hmatrix` says: lines for people, and bars with the time that is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock._text import bytes_text, one_line
from penstock.cli import show

Tell = Callable[[float, float, str], None]  # done, of how much, in words
VACUUM = 8.8541878128e-12  # permittivity, F/m


@contextmanager
def bar(what: str) -> Iterator[Tell]:
    """On stderr on a terminal, nothing elsewhere."""
    if not show.wants_progress():
        yield lambda done, total, words: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("left;"),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True, force_terminal=True), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total, words: shown.update(task, completed=done, total=total, description=words)


def assembling(tell: Tell) -> Callable[[int, int, int], None]:
    """For assemble()."""

    def told(leaves_done: int, leaves: int, bytes_written: int) -> None:
        tell(leaves_done, leaves, bytes_text(bytes_written))

    return told


def solving(tell: Tell, tol: float) -> Callable[[int, int, float], None]:
    """For solve(): residuals fall by about as many digits in each sweep, so digits are what is counted."""

    def told(iteration: int, sweeps: int, residual: float) -> None:
        wanted = -math.log10(tol)
        digits = -math.log10(residual) if residual > 0 else wanted
        tell(
            min(max(digits, 0), wanted),
            wanted,
            f"iteration {iteration}, {_count(sweeps, 'sweep')}, residual {residual:.1e}",
        )

    return told


def _count(number: int, one: str, many: str = "") -> str:
    """As "1 sweep" and "2 sweeps"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def matrix_lines(fields: dict[str, Any]) -> list[str]:
    """Mesh and matrix."""
    lines = []
    if fields.get("mesh") is not None:
        lines.append(f"mesh      {one_line(fields['mesh'])}: {'; '.join(fields['mesh_report'])}")
        if fields["duplicates_removed"]:
            was = _count(fields["duplicates_removed"], "duplicate triangle was", "duplicate triangles were")
            lines.append(f"          {was} removed")
    error = fields["sampled_error"]
    checked = "not sampled" if error is None else f"{error:.1e} on sampled rows"
    smaller = fields["bytes_stored"] / fields["bytes_fp64"]
    where = f", assembled on {fields['assembled_on']}" if fields.get("assembled_on") else ""
    dense = _count(fields["dense_leaves"], "dense leaf", "dense leaves")
    return [
        *lines,
        f"matrix    {_count(fields['unknowns'], 'unknown')}, {fields['low_rank_leaves']:,} low-rank and "
        f"{dense}, {_count(fields['batches'], 'batch', 'batches')}",
        f"          {bytes_text(fields['bytes_stored'])} stored ({fields['encoding']}), {smaller:.3f} of "
        f"{bytes_text(fields['bytes_fp64'])} as doubles",
        f"          error {checked}, eps {fields['eps']:g}{where}",
        *_above_eps(error, fields["eps"]),
    ]


def _above_eps(error: float | None, eps: float) -> list[str]:
    """A matrix that is accepted though it is not as good as asked for."""
    if error is None or error <= eps:
        return []
    return [f"          its error of {error:.1e} is above eps {eps:g}: build with a smaller eps where that matters"]


def solve_lines(fields: dict[str, Any]) -> list[str]:
    """Solve and result."""
    paths = ", ".join(fields["bytes_by_path"]) or "nothing"
    inner = f" ({fields['inner_iterations']} inside)" if fields["inner_iterations"] else ""
    lines = [
        f"solve     {fields['method']}: {_count(fields['iterations'], 'iteration')}{inner}, "
        f"{_count(fields['sweeps'], 'sweep')}, "
        f"true residual {fields['relative_residual']:.1e}, tol {fields['tol']:g}",
        f"          read {bytes_text(fields['bytes_read'])} ({paths}); {100 * fields['cache_hit_rate']:.0f} % of "
        "batches needed no read",
        *_continued(fields),
        *_without_tiers(fields),
    ]
    if fields["capacitance_over_4pi_eps0"] is not None:
        metres, farad = fields["capacitance_over_4pi_eps0"], fields["capacitance_farad"]
        lines.append(f"result    capacitance {metres:.7g} m x 4 pi eps0 = {farad * 1e12:.6g} pF")
    elif fields["charges"]:
        lines += [
            f"result    {one['volts']:g} V: charge {one['charge_over_4pi_eps0']:.7g} V m x 4 pi eps0 = "
            f"{one['coulombs']:.6g} C on {_count(one['triangles'], 'triangle')}"
            for one in fields["charges"]
        ]
    return lines


def _continued(fields: dict[str, Any]) -> list[str]:
    """What a checkpoint was good for."""
    before = _count(fields["sweeps_before"], "sweep")
    if fields["continued"] == "repeated":
        return [f"          {before} of them made before the checkpoint and repeated without reading"]
    if fields["continued"] == "restarted":
        return [f"          begun anew from the iterate after {before}: {fields['restarted_because']}"]
    return []


def _without_tiers(fields: dict[str, Any]) -> list[str]:
    """That the default method had only its second-best preconditioner, which costs sweeps; and what to do."""
    if fields["method"] != "fgmres" or fields["pinned_tiers"] != 0 or len(fields["accuracies"]) < 2:
        return []
    advice = "--pin and --path gpu keep whole batches only"
    if fields["cache_for_a_tier"] is not None:
        advice = f"--cache {_size_at_least(fields['cache_for_a_tier'])} keeps the first"
    return [f"          no tier stayed in memory, so the preconditioner was block-Jacobi alone: {advice}"]


def _size_at_least(count: int) -> str:
    """As --cache takes it."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= 10 * size:
            return f"{-(-count // size)}{unit}"
    return str(count)


def time_line(fields: dict[str, Any]) -> str:
    phases = ("assemble", "write", "read", "other")
    parts = ", ".join(f"{phase} {fields[phase + '_s']:.2f}" for phase in phases)
    return f"time      {fields['total_s']:.2f} s: {parts}"


def info_lines(found: dict[str, Any]) -> list[str]:
    """Lines about a file alone."""
    about = found["about"]
    lines = [f"problem   {one_line(str(about.get('problem', 'not said')))}", *matrix_lines(found)]
    if "kernel" in about:
        lines[0] += f", {one_line(str(about['kernel']))}"
    largest = bytes_text(found["largest_batch_bytes"])
    lines.append(f"          largest batch {largest}, eta {found['eta']:g}, leaf size {found['leaf_size']}")
    prefix = 0
    for number, (accuracy, size) in enumerate(zip(found["accuracies"], found["tier_bytes"], strict=True)):
        prefix += size
        both = f"{bytes_text(size)}, with those before it {bytes_text(prefix)}"
        lines.append(f"tier {number}    to {accuracy:.1e}: {both}")
    return lines
