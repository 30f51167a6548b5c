"""A surface coloured by a number on each triangle, lit, in perspective, with its colour bar: one picture in a file."""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._error import Error
from penstock._extras import absent
from penstock._files.file_name import file_name
from penstock._files.publish import check_target, publish
from penstock.hmatrix._colours import Scale, prefix
from penstock.hmatrix._lit import OPERATION, View, draw
from penstock.hmatrix._numbers import reals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from penstock._api import FileName
    from penstock.hmatrix._mesh import Mesh

WIDTHS = (200, 10_000)  # pixels
ENDINGS = (".png", ".pdf", ".svg")
_ADVICE = "name a file that you can write"
_INK, _FAINT = "#1a1c1f", "#8a9099"


def picture(  # noqa: PLR0913 - one keyword a choice
    mesh: Mesh,
    numbers: Any,
    path: FileName,
    *,
    label: str = "",
    unit: str = "",
    view: View | None = None,
    title: str = "",
    width: int = 1200,
) -> None:
    """Draws the surface with its triangles coloured by `numbers`, into a .png, .pdf or .svg file that appears whole or
    not at all. Colours span what the middle 98 % of the numbers span; beyond, the bar ends in arrows. Numbers of both
    signs get white for 0.

    Args:
        label, unit: of the numbers, for the colour bar; the unit is given a prefix that fits, as in "nC/m²".
        view: where from.
        title: above the surface.
        width: of the surface, in pixels, 200 to 10,000; the colour bar stands beside it.

    Raises:
        Error: no triangles, numbers of another shape or not finite, an ending that is not known, a file that cannot be
            written.
    """
    name = file_name(path, OPERATION)
    check_picture(path)
    values = reals("numbers", numbers)
    if mesh.unknowns == 0 or values.shape != (mesh.unknowns,):
        cause = f"numbers have shape {values.shape}, and there are {mesh.unknowns} triangles"
        raise Error(operation=OPERATION, file=name, cause=cause, advice="give one number a triangle")
    if not (np.isfinite(values).all() and np.isfinite(mesh.vertices[mesh.triangles]).all()):
        raise Error(
            operation=OPERATION, file=name, cause="some numbers or corners are not finite", advice="look at them"
        )
    if not WIDTHS[0] <= width <= WIDTHS[1]:
        raise Error(
            operation=OPERATION, file=name, cause=f"a width of {width} pixels", advice=f"use {WIDTHS[0]} to {WIDTHS[1]}"
        )
    letter, factor = prefix(values) if unit else ("", 1.0)
    scale = Scale(values / factor)
    words = f"{label} ({letter}{unit})" if label and unit else label or f"{letter}{unit}"
    content = _compose(
        draw(mesh, scale.colours(), view or View(), width), scale, (words, title), Path(name).suffix[1:].lower()
    )
    publish(Path(name), content, OPERATION, _ADVICE)


def check_picture(path: FileName) -> None:
    """Raises the Error that picture() would for this name: ask before what is to be drawn takes long to make."""
    name = file_name(path, OPERATION)
    if Path(name).suffix.lower() not in ENDINGS:
        raise Error(
            operation=OPERATION, file=name, cause="its ending says no kind of picture", advice="use .png, .pdf or .svg"
        )
    check_target(Path(name), OPERATION, _ADVICE)
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as failure:
        raise absent(failure, OPERATION) or failure from None


def _compose(image: np.ndarray, scale: Scale, words: tuple[str, str], kind: str) -> bytes:
    """The surface with its colour bar and title."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    label, title = words
    high, wide = image.shape[:2]
    bar, head = 0.17, 0.08 if title else 0.02  # parts of the width
    inches = (8.0, 8.0 * (high / wide * (1 - bar) + head + 0.02))
    style = {"font.family": "sans-serif", "font.size": 11, "text.color": _INK, "svg.hashsalt": "penstock"}
    with mpl.rc_context(style):
        figure = Figure(figsize=inches, facecolor="white")
        FigureCanvasAgg(figure)
        tall = (high / wide * (1 - bar)) * 8.0 / inches[1]
        axes = figure.add_axes((0, 0.01, 1 - bar, tall))
        axes.imshow(image, interpolation="antialiased", aspect="auto")
        axes.set_axis_off()
        place = figure.add_axes((1 - bar + 0.015, 0.01 + 0.14 * tall, 0.022, 0.72 * tall))
        shown = figure.colorbar(scale.mappable(), cax=place, extend=scale.extend)
        shown.outline.set_visible(False)
        shown.set_label(label, color=_INK)
        place.tick_params(color=_FAINT, labelcolor=_INK, labelsize=10, length=3)
        if title:
            figure.text(0.02, 1 - 0.03 * 8.0 / inches[1], title, va="top", fontsize=12)
        return _encoded(figure, kind, wide / (1 - bar) / 8.0)


def _encoded(figure: Figure, kind: str, dots_per_inch: float) -> bytes:
    """Without the time of making: equal pictures are equal files. PNG without transparency, which nothing in it has."""
    stream = io.BytesIO()
    if kind == "png":
        from PIL import Image  # matplotlib's own

        figure.set_dpi(dots_per_inch)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
        Image.fromarray(np.ascontiguousarray(pixels)).save(stream, "PNG", optimize=True)
    else:
        without_time = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
        figure.savefig(stream, format=kind, dpi=dots_per_inch, metadata=without_time)
    return stream.getvalue()
