"""The suite `first-touch`: its variants, its rows, what it refuses, and its figure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Ran, assert_one_line_error

import penstock
from penstock_bench.engine import results
from penstock_bench.runs import definitions, session
from penstock_bench.suites.first_touch import measure as first_touch, particle_files, table as first_touch_show
from penstock_bench.suites.first_touch.cases import PARTICLE_BYTES, Variant, arrays, variants
from penstock_bench.suites.first_touch.figures import by_problem_size

pytest.importorskip("h5py")
Run = Callable[..., Ran]
SMALL = """
name = "small"
kind = "first-touch"
file_bytes = "1MiB"
repeats = 2
seconds = 60
[[case]]
particles = [1024, 16384]
path = ["auto", "gds"]
direction = ["read", "write"]
[[case]]
particles = 1024
direction = ["read", "write"]
format = ["hdf5", "netcdf4", "netcdf3"]
buffer = ["managed", "system", "device"]
first_touch = "cpu"
[[case]]
particles = 1024
path = "direct"
cache = "cold"
workers = [1, 2]
chunk_bytes = "64KiB"
[[case]]
particles = 16777216
"""


def no_step(_done: int, _total: int, _what: str) -> None:
    pass


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    place = tmp_path_factory.mktemp("first-touch")
    (place / "small.toml").write_text(SMALL)
    request = session.Request(definitions.load(str(place / "small.toml"), False), "host", place, None, False)
    found = session.run(request, no_step)
    assert [one.name for one in place.iterdir()] == ["small.toml"]
    return found


def test_every_variant_is_measured_in_every_round_or_told_missing(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    planned = {one.name for one in variants(definitions.load(str(tmp_path / "small.toml"), False))}
    samples = [row for row in rows if row["kind"] == "first-touch"]
    absent = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    assert {row["name"] for row in samples} | absent.keys() == planned
    assert len(samples) == 2 * (len(planned) - len(absent))
    assert not any("16777216" in name for name in planned)
    assert all("gds" in name or "device memory touched by cpu" in name for name in absent)
    assert {cause for name, cause in absent.items() if "gds" not in name} == {
        "the CPU cannot touch device memory first"
    }


def test_rows_hold_axes_and_times_apart(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["kind"] == "first-touch":
            assert row["bytes"] == row["particles"] * 36
            times = ("create_s", "fsync_s", "close_s") if row["direction"] == "write" else ("open_s",)
            assert all(row[name] > 0 for name in (*times, "seconds", "verify_s"))
            assert row["cache"] == "new" if row["direction"] == "write" else row["cache"] in ("hot", "cold")
    shaped = [row for row in rows if row.get("workers") == 2]
    assert shaped and all(row["took"] == "direct" and row["chunk_bytes"] == 64 << 10 for row in shaped)
    assert {(row["direction"], row["particles"]) for row in rows if row["kind"] == "engine"} == {
        (way, count) for way in ("read", "write") for count in (1024, 16384)
    }


def test_the_table_and_the_figure_show_what_was_measured(rows: list[dict[str, Any]]) -> None:
    groups = first_touch_show.groups(rows)
    assert sum(map(len, groups.values())) == sum(row["kind"] == "first-touch" for row in rows)
    assert first_touch_show.tables(rows, "first-touch")[0].row_count == len(groups)
    figure = by_problem_size(rows)
    assert figure is not None
    read, read_cpu, write, _ = figure.axes
    assert len(read.lines) == 2 and len(write.lines) == 2  # the engine, and auto
    assert list(read.lines[1].get_xdata()) == [1024, 16384]
    assert [text.get_text() for text in read_cpu.texts] == ["not measured here"]
    assert by_problem_size([row for row in rows if row.get("particles") != 1024]) is None


def test_particles_have_36_bytes_in_four_fields(context: penstock.Context) -> None:
    fields = arrays(context.allocate(36 * 10), 10)
    assert PARTICLE_BYTES == 36 == sum(part.nbytes for part in fields.values()) // 10
    assert {name: part.shape for name, part in fields.items()} == {
        "pos": (10, 4),
        "vxy": (10, 2),
        "vz": (10,),
        "id": (10,),
    }


@pytest.mark.parametrize("format", ["raw", "hdf5", "netcdf4", "netcdf3"])
def test_a_wrong_byte_in_any_format_fails_the_run(
    context: penstock.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    whole = particle_files.write

    def corrupted(context: penstock.Context, path: Path, variant: Variant, memory: penstock.Buffer) -> Any:
        memory_of_host = np.frombuffer(memory, np.uint8)
        memory_of_host[5_000] ^= 1
        return whole(context, path, variant, memory)

    monkeypatch.setattr(particle_files, "write", corrupted)
    (tmp_path / "one.toml").write_text(
        f"kind = 'first-touch'\nfile_bytes = '1MiB'\nrepeats = 1\nseconds = 9\n[[case]]\nparticles = 1024\n"
        f"format = '{format}'\ndirection = 'read'\n"
    )
    request = session.Request(definitions.load(str(tmp_path / "one.toml"), False), "host", tmp_path, None, False)
    with pytest.raises(penstock.Error) as caught:
        session.run(request, no_step)
    assert caught.value.operation == "verify" and caught.value.offset_bytes in (5_000, 5_000 // 8 * 8)


def test_large_problems_take_part_in_the_first_rounds_only(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        "kind = 'first-touch'\nfile_bytes = '1MiB'\nrepeats = 3\nseconds = 60\n[first-touch]\nlarge_bytes = '256KiB'\n"
        "large_repeats = 1\n[[case]]\nparticles = [1024, 16384]\n"
    )
    request = session.Request(definitions.load(str(tmp_path / "one.toml"), False), "host", tmp_path, None, False)
    found = [row["particles"] for row in session.run(request, no_step) if row["kind"] == "first-touch"]
    assert sorted(found) == [1024] * 3 + [16384]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("particles = 0", "particles must be a whole number"),
        ("path = 'auto'", "needs particles"),
        ("particles = 1\nformat = 'xml'", "'xml'"),
        ("particles = 1\ncolour = 'red'", "no axis 'colour'"),
        ("particles = 1073741824", "no variant fits"),
    ],
)
def test_wrong_cases_are_refused(penstock: Run, tmp_path: Path, line: str, word: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(f"kind = 'first-touch'\nfile_bytes = '4MiB'\nrepeats = 1\nseconds = 9\n[[case]]\n{line}\n")
    assert_one_line_error(penstock("bench", path, "--dir", tmp_path), word)
    assert [one.name for one in tmp_path.glob("penstock-bench-*")] == []


def test_the_time_limit_ends_the_rounds(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    once = replace(definitions.load(str(tmp_path / "small.toml"), False), repeats=1)
    began = time.monotonic()
    session.run(session.Request(once, "host", tmp_path, None, False), no_step)
    limited = replace(once, repeats=10_000, seconds=3 * (time.monotonic() - began))  # some rounds, however busy it is
    found = session.run(session.Request(limited, "host", tmp_path, None, False), no_step)
    assert found[-1]["kind"] == "stopped"
    assert results.median_rate(row for row in found if row["kind"] == first_touch.KIND)
