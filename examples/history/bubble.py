"""A warm bubble that rises in a box of air: the model writes a history, and a picture is drawn of its file.

    python bubble.py [PICTURE.png]

The picture takes matplotlib, and a model of 32 times as many cells: minutes on two cores, seconds on a GPU.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import penstock as ps
from penstock import flow

PICTURE = sys.argv[1] if len(sys.argv) > 1 else ""
CELLS = (64, 32, 32) if PICTURE else (16, 8, 16)
MINUTES, EVERY = 8, 2


def on_host(array: ps.Array) -> np.ndarray:
    """What was read lies on the GPU, where there is one."""
    return array.to_numpy()


def write(name: Path) -> None:
    model = flow.Model(CELLS, bubble=4.0, wind=8.0)
    middles = {axis: (np.arange(n) + 0.5) * model.spacing for axis, n in zip("xyz", CELLS, strict=True)}
    with ps.History(name, format="netcdf4", time_units="seconds since 2000-01-01 00:00:00") as history:
        for axis, values in middles.items():
            history.constant(axis, values, (axis,), {"units": "m"})
        for field in flow.FIELDS:
            like = model[field.name]
            history.define(field.name, ("y", "x", "z"), like=like, halo=(flow.HALO,) * 3, attrs=field.attrs)
        for _ in range(0, MINUTES, EVERY):
            model.advance(round(60 * EVERY / model.time_step))
            for field in flow.FIELDS:
                history.put(field.name, model[field.name])
            history.end_step(model.time)


def draw(name: Path) -> None:
    from matplotlib.figure import Figure

    with ps.open(name) as file:
        times, x, z = (on_host(file[one][...]) / unit for one, unit in (("time", 60), ("x", 1e3), ("z", 1e3)))
        middle = CELLS[1] // 2
        warmth = [on_host(file["PT"][step, middle]).T - 300 for step in range(len(times))]
        rising = [on_host(file["W"][step, middle]).T for step in range(len(times))]
    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    grid = figure.subplots(2, len(times) // 2, sharex=True, sharey=True)
    shown = []
    for axes, minutes, colours, lines in zip(grid.flat, times, warmth, rising, strict=True):
        shown += [axes.pcolormesh(x, z, colours, cmap="OrRd", vmin=0, vmax=4, shading="gouraud", rasterized=True)]
        axes.contour(x, z, lines, levels=[-4, -2, 2, 4, 8, 12, 16], colors="#1a1c1f", linewidths=0.5)
        axes.set_title(f"{minutes:.0f} minutes", fontsize=9, loc="left")
        axes.set_aspect("equal")
    figure.supxlabel("x, km", fontsize=9)
    figure.supylabel("height, km", fontsize=9)
    figure.colorbar(shown[0], ax=figure.axes, label="warmer than the air around, K", shrink=0.9)
    figure.savefig(PICTURE, dpi=130)


with tempfile.TemporaryDirectory() as folder:
    written = Path(folder) / "bubble.nc"
    write(written)
    with ps.open(written) as file:
        rises = on_host(file["W"][...]).max(axis=(1, 2, 3))
    print("fastest rise, m/s:", *(f"{one:.1f}" for one in rises))
    if PICTURE:
        draw(written)
