"""The figures of the suites: made of rows that hold what they show, labels apart, and hooked into the page."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from penstock_bench.engine import numbers, panels, style
from penstock_bench.runs import suites
from penstock_bench.suites.gpu_io import figures as gpu_io
from penstock_bench.suites.io_size import figures as io_size
from penstock_bench.suites.multiplicity import figures as multiplicity, table
from penstock_bench.suites.multiplicity.measure import COPY_WAYS, WAYS

Rows = list[dict[str, Any]]
COUNTS = (1, 8, 64, 512)
COSTS = {"cpu_user_percent": 5.0, "cpu_system_percent": 3.0, "took": "direct"}


def io_rows(places: tuple[str, ...] = ("local",)) -> Rows:
    return [
        {
            "kind": "io-size",
            "path": path,
            "place": place,
            "workers": workers,
            "request_bytes": size,
            "bytes_per_second": 1e9 * (turn + 1),
            "cpu_user_percent": 5 + turn,
            "cpu_system_percent": 3,
        }
        for turn, path in enumerate(io_size.PATHS)
        for place, workers, size in itertools.product(places, (24, 32), (65536, 1 << 20))
    ]


def read_rows() -> Rows:
    return [
        {"kind": "multiplicity", "subject": "read", "way": way, "request_bytes": size, "order": order}
        | {"multiplicity": count, "operations_per_second": 1000.0 * count + turn}
        for turn, way in enumerate(WAYS)
        for size, order, count in itertools.product((4096, 1 << 20), ("sequential", "random"), COUNTS)
    ]


def copy_rows() -> Rows:
    return [
        {"kind": "multiplicity", "subject": "copy", "way": way, "buffer": memory, "request_bytes": 4096}
        | {"order": order, "multiplicity": count, "bytes_per_second": 1e9 + count}
        for way, memory, order, count in itertools.product(
            COPY_WAYS, ("page-locked", "pageable"), ("host to device", "device to host"), COUNTS
        )
    ]


def spread_rows(way: str, factor: float) -> Rows:
    """Two samples of each number at once, one of them slower by the factor at 8."""
    row: dict[str, Any] = {"kind": "multiplicity", "subject": "read", "way": way, "request_bytes": 4096}
    row |= COSTS | {"order": "random", "bytes_per_second": 1e9}
    return [
        row | {"multiplicity": count, "operations_per_second": 1e5 / (factor if count == 8 and turn else 1)}
        for count in COUNTS
        for turn in (0, 1)
    ]


def labels(figure: Figure) -> list[list[Any]]:
    return [[text for text in axes.texts if text.get_text()] for axes in figure.axes]


def test_each_path_is_labelled_where_its_line_ends() -> None:
    figure = io_size.figure(io_rows())
    assert figure is not None
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes[::2]] == ["24 workers", "32 workers"]
    for texts in labels(figure):
        assert {text.get_text() for text in texts} == set(io_size.PATHS)
    assert all(len(axes.lines) == len(io_size.PATHS) for axes in figure.axes)


def test_a_remote_place_is_drawn_beside_the_local_one() -> None:
    figure = io_size.figure(io_rows(("local", "remote")))
    assert figure is not None
    assert all(len(axes.lines) == 2 * len(io_size.PATHS) for axes in figure.axes)
    assert "dashed: remote" in figure.axes[0].get_title(loc="left") + figure.axes[0].get_title()


def test_every_way_of_the_suite_has_a_line() -> None:
    figure = multiplicity.reads_figure(read_rows())
    assert figure is not None
    cpu = [way for way in WAYS if way.startswith("CPU")]
    assert len(figure.axes) == 8
    assert sum(len(axes.lines) for axes in figure.axes) == 4 * len(WAYS)
    assert len(figure.axes[0].lines) == len(cpu)
    copied = multiplicity.copies_figure(copy_rows())
    assert copied is not None
    assert [len(axes.lines) for axes in copied.axes] == [2 * len(COPY_WAYS)] * 2


def latency_rows() -> Rows:
    """Seven numbers of threads a block, and one request alone."""
    row: dict[str, Any] = {"kind": "gpu-io", "subject": "blocks", "rings": 0, "cycles_per_ns": 1.5, "name": "blocks"}
    row["latency_cycles"] = [[1 << power, 10] for power in range(10, 20)]
    alone = row | {"subject": "alone", "name": gpu_io.ALONE}
    return [row | {"threads": 1 << turn} for turn in range(7)] + [alone]


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (io_size.figure, io_rows()),
        (multiplicity.reads_figure, read_rows()),
        (multiplicity.copies_figure, copy_rows()),
        (gpu_io.latency_figure, latency_rows()),
    ],
)
def test_no_line_is_known_by_its_colour_alone(function: Any, rows: Rows) -> None:
    """In each panel, lines of two colours differ in their marks or dashes as well."""
    for axes in function(rows).axes:
        looks = {(line.get_color(), line.get_marker(), str(line.get_linestyle())) for line in axes.lines}
        assert len({look[1:] for look in looks}) == len(looks)


def test_a_figure_says_in_words_what_it_shows() -> None:
    figure = multiplicity.copies_figure(copy_rows())
    assert figure is not None
    text = style.svg(figure, "Copies <at once>.")
    (label,) = re.findall(r'<svg role="img" aria-label="([^"]*)"', text)
    assert label.startswith("Copies &lt;at once&gt;. host to device, 4 KiB, copies at once, GB/s.")
    assert "<title>Copies &lt;at once&gt;.</title>" in text and "metadata" not in text
    with mpl.rc_context(style.RC):
        assert ">copies at once</text>" in style.svg(figure, "x")


@pytest.mark.parametrize("made", [("multiplicity", read_rows), ("io-size", io_rows), ("copies", copy_rows)])
def test_labels_do_not_lie_on_each_other(made: tuple[str, Any], tmp_path: Path) -> None:
    name, rows = made
    with mpl.rc_context(style.RC):
        figure = suites.FIGURES[name].draw(rows())
        figure.savefig(tmp_path / "figure.png")
        for texts in labels(figure):
            # The boxes of the letters alone: an annotation's own extent holds the line that leads to it.
            boxes = sorted((box.y0, box.y1) for box in (Text.get_window_extent(text) for text in texts))
            assert boxes
            for (_, top), (bottom, _) in itertools.pairwise(boxes):
                assert bottom > top - 2  # pixels; letters have room above and below
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_samples_far_apart_are_marked_in_the_figure_and_in_the_table() -> None:
    far, near = spread_rows("GPU sync auto", 3.0), spread_rows("GPU sync plain", 1.5)
    figure = multiplicity.reads_figure(far + near)
    assert figure is not None
    hollow = [mark for axes in figure.axes for mark in axes.collections]
    assert [list(mark.get_offsets()[:, 0]) for mark in hollow] == [[8.0]]
    (made,) = [one for one in table.tables(far + near, "multiplicity") if str(one.title).endswith("at once")]
    (column,) = [column for column in made.columns if column.header == "x 8"]
    assert list(column.cells) == ["~66.7k", "83.3k"]
    assert "factor of 2" in str(made.caption)


def test_copies_of_page_locked_and_of_pageable_memory_are_lines_of_their_own() -> None:
    rates = {"pageable": 1e3, "page-locked": 1e6}
    rows = [row | COSTS | {"operations_per_second": rates[row["buffer"]]} for row in copy_rows()]
    made = [one for one in table.tables(rows, "multiplicity") if str(one.title).endswith("at once")]
    assert len(made) == 2  # a table for each direction
    for one in made:
        cells = {column.header: list(column.cells) for column in one.columns}
        assert sorted(set(cells["memory"])) == ["page-locked", "pageable"]
        assert set(zip(cells["memory"], cells["x 8"], strict=True)) == {("page-locked", "1M"), ("pageable", "1k")}


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, "0.0123"), (467.0, "467"), (999.6, "1k"), (95_560, "95.6k"), (1_253_000, "1.25M")]
)
def test_rates_have_three_figures(value: float, text: str) -> None:
    assert numbers.thousands(value) == text


def test_heights_are_spread_as_little_as_possible() -> None:
    assert panels._spread([], 100) == []
    assert panels._spread([10.0, 50.0], 100) == [10.0, 50.0]
    near = panels._spread([50.0, 50.0, 50.0], 100)
    assert near == pytest.approx([50 - panels.LINE_PT, 50, 50 + panels.LINE_PT])
    assert panels._spread([99.0, 99.0], 100)[-1] <= 100


def test_rows_of_other_suites_and_of_a_single_point_make_no_figure() -> None:
    one = [row for row in read_rows() if row["multiplicity"] == 1]
    assert multiplicity.reads_figure(one) is None
    assert multiplicity.copies_figure(read_rows()) is None
    assert io_size.figure(one) is None
    assert set(suites.figures(read_rows() + copy_rows())) == {"multiplicity", "copies"}
