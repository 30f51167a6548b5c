"""The figure of the suites `core` and `formats`: Penstock at default settings beside its ceilings and peers, in one
run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from penstock_bench.engine import style
from penstock_bench.engine.intervals import estimate
from penstock_bench.engine.results import median_rate
from penstock_bench.engine.suite import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
WIDTH_IN = 5.6
OURS = style.STATE_COLOURS["hot"]
PEER = "#b8b8b8"
# Panel title; probes by their name in the results, and whether they are Penstock.
PANELS: list[tuple[str, list[tuple[str, str, bool]]]] = [
    (
        "File in memory to device",
        [
            ("hot read", "page cache", True),
            ("second read", "page cache, not used before", True),
            ("tmpfs later read", "tmpfs, mapping registered", True),
            ("tmpfs first read", "tmpfs, just written", True),
            ("KvikIO best", "KvikIO, best of its grid", False),
            ("KvikIO default", "KvikIO, its defaults", False),
            ("pread and memcpy", "pread, then memcpy", False),
        ],
    ),
    (
        "File on disk to device",
        [
            ("cold read", "auto", True),
            ("direct read", "direct", True),
            ("host threads read", "host threads alone", False),
            ("fio read", "fio, host memory", False),
        ],
    ),
    (
        "Device to file on disk",
        [
            ("cold write", "auto", True),
            ("direct write", "direct", True),
            ("host threads write", "host threads alone", False),
        ],
    ),
    (
        "Array of a file in the page cache to device",
        [
            ("raw read", "raw file", True),
            ("HDF5 read", "HDF5", True),
            ("netCDF-4 read", "netCDF-4", True),
            ("NPY read", "NPY", True),
            ("Zarr read", "Zarr", True),
            ("h5py and copy", "h5py, then copy", False),
            ("numpy.memmap and copy", "numpy.memmap, then copy", False),
        ],
    ),
    (
        "Model in the page cache to device",
        [
            ("safetensors load", "penstock.load", True),
            ("safetensors.torch.load_file", "safetensors.torch.load_file", False),
        ],
    ),
    (
        "Array from device to a new file",
        [
            ("raw write", "raw file", True),
            ("HDF5 write", "HDF5", True),
            ("netCDF-4 write", "netCDF-4", True),
            ("NPY write", "NPY", True),
            ("Zarr write", "Zarr", True),
        ],
    ),
]


def beside_peers(rows: Rows) -> Figure | None:
    """Bars by panel; None when the rows are of another suite."""
    probes = probes_by_name(rows)
    panels = _panels(probes)
    if not panels:
        return None
    counts = [len(bars) for _, bars in panels]
    figure = style.new_figure(WIDTH_IN, 0.27 * sum(counts) + 0.75 * len(panels) + 0.5)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=counts)[:, 0]
    for one, (title, bars) in zip(axes, panels, strict=True):
        _panel(one, bars, probes)
        one.set_title(title)
    ceiling = median_rate(probes.get("copy to device", []))
    if ceiling and panels[0][0] == PANELS[0][0]:
        axes[0].axvline(ceiling / 1e9, color=style.INK, linewidth=1.1, linestyle=(0, (4, 3)))
        axes[0].set_xlabel(f"dashed: pinned copy {ceiling / 1e9:.1f}", fontsize=8.5)
    axes[-1].set_xlabel("GB/s (median; whiskers: its 95 % interval)")
    handles = [style.patch(OURS, "Penstock, defaults"), style.patch(PEER, "others, same run")]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, columnspacing=1.2, handlelength=1.4)
    return figure


def _panels(probes: dict[str, Rows]) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """Those in which Penstock has a bar: a peer alone would stand beside nothing."""
    panels = [(title, [bar for bar in bars if bar[0] in probes]) for title, bars in PANELS]
    return [(title, bars) for title, bars in panels if any(ours for *_, ours in bars)]


def probes_by_name(rows: Rows) -> dict[str, Rows]:
    probes: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] in ("core", "formats"):
            probes[row["name"]].append(row)
    tuned = [name for name in probes if name.startswith("KvikIO") and name != "KvikIO default"]
    if tuned:
        probes["KvikIO best"] = probes[max(tuned, key=lambda name: median_rate(probes[name]) or 0.0)]
    return dict(probes)


def _panel(axes: Axes, bars: list[tuple[str, str, bool]], probes: dict[str, Rows]) -> None:
    bars = bars[::-1]
    tops = []
    for place, (name, _, ours) in enumerate(bars):
        found = estimate([row["bytes_per_second"] / 1e9 for row in probes[name]])
        value, high = found.median, found.high or found.median
        axes.barh(place, value, height=0.66, color=OURS if ours else PEER)
        style.bar_end(axes, place, found, f"{value:.3g}")
        tops.append(high)
    axes.set_xlim(0, max(tops) * 1.15 or 1.0)  # nothing moved: an axis has a length all the same
    axes.set_yticks(range(len(bars)), [label for _, label, _ in bars])
    axes.grid(axis="y", visible=False)
    axes.set_ylim(-0.6, len(bars) - 0.4)


def drawn_rows(rows: Rows) -> Rows:
    probes = probes_by_name(rows)
    names = [name for _, bars in _panels(probes) for name, _, _ in bars]
    return [row for name in [*names, "copy to device"] for row in probes.get(name, [])]


FIGURE = Drawing(
    "peers",
    "Penstock at its default settings beside the ceilings and peers measured in the same run.",
    beside_peers,
    drawn_rows,
)
