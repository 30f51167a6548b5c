"""Reads that bring nothing end a benchmark run, whatever memory held before and whether or not its state was proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import Ran
from lies import Lies, lies
from lone_run import lone_run

import penstock
from penstock import _core
from penstock._api import File
from penstock.calibration.stage import Cell, Stage
from penstock.calibration.workspace import NotPossible, Workspace, make_cold, make_resident
from penstock_bench import _measure
from penstock_bench.engine import definition
from penstock_bench.engine.power import PowerMeter
from penstock_bench.engine.rounds import Probe
from penstock_bench.runs import definitions, session, stored
from penstock_bench.suites.core import measure as core
from penstock_bench.suites.first_touch import measure as first_touch, particle_files
from penstock_bench.suites.formats import measure as formats
from penstock_bench.suites.grid import measure as grid
from penstock_bench.suites.io_size import measure as io_size

Run = Callable[..., Ran]
HOT = """
name = "hot"
file_bytes = "{file}"
repeats = 4
seconds = 60
[[case]]
path = "{path}"
cache = "{cache}"
request_bytes = "{size}"
workers = {workers}
depth = {depth}
"""


def measured(penstock: Run, folder: Path, told: Lies, **trial: object) -> Ran:
    """The command on a suite of one variant, under lies."""
    made = folder / "hot.toml"
    made.write_text(HOT.format(**{"path": "buffered", "cache": "hot", "workers": 0, "depth": 0} | trial))
    (folder / "place").mkdir(exist_ok=True)
    asked = ("--dir", folder / "place", "--device", "host", "--out", folder / f"{told.log.parent.name}.jsonl")
    return penstock("bench", made, *asked, env=told.environment)


SHAPES = [
    {"file": "64KiB", "size": "64KiB", "workers": 1, "depth": 1},
    {"file": "1MiB", "size": "1MiB", "workers": 1},
    {"file": "4MiB", "size": "64KiB"},
]


@pytest.mark.parametrize("shape", SHAPES, ids=["one slot", "one worker", "default workers"])
def test_reads_that_bring_nothing_end_the_run(penstock: Run, tmp_path: Path, shape: dict[str, Any]) -> None:
    """Staging memory keeps the bytes of earlier trials. Where a file fits into it, they lie where they will be wanted
    again, and they are the right ones: all trials read one file."""
    counted = lies(tmp_path, "*/source.bin", do="nothing", after=1 << 40)
    assert measured(penstock, tmp_path, counted, **shape).code == 0
    told = lies(tmp_path, "*/source.bin", do="nothing", after=counted.reads * 3 // 4)
    ran = measured(penstock, tmp_path, told, **shape)
    assert told.lies
    assert ran.code == 1 and "bytes are wrong" in ran.err, (ran.code, ran.out, ran.err)


def test_a_path_that_the_system_refuses_is_missing_and_nothing_stands_in_for_it(penstock: Run, tmp_path: Path) -> None:
    shape = {"path": "direct", "cache": "cold", "file": "4MiB", "size": "1MiB"}
    counted = lies(tmp_path, "*/source.bin", do="refuse", after=1 << 40)
    ran = measured(penstock, tmp_path, counted, **shape)
    rows = [row for row in _rows(tmp_path, counted) if row["kind"] in ("trial", "missing")]
    if rows[0]["kind"] == "missing":
        pytest.skip(f"no direct reads here: {rows[0]['cause']}")
    told = lies(tmp_path, "*/source.bin", do="refuse", after=1)  # the probe when the file is opened is answered
    ran = measured(penstock, tmp_path, told, **shape)
    rows = [row for row in _rows(tmp_path, told) if row["kind"] in ("trial", "missing")]
    assert told.lies and ran.code == 0
    assert [row["kind"] for row in rows] == ["missing"], rows


def _rows(folder: Path, told: Lies) -> list[dict[str, Any]]:
    return stored.read(folder / f"{told.log.parent.name}.jsonl")


def spoil(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(5000)
        byte = stream.read(1)
        stream.seek(5000)
        stream.write(bytes([byte[0] ^ 1]))


def of_suite(name: str, place: Path) -> session.Request:
    """A small run of reads of cold files."""
    known = definitions.load(name, True)
    cut: dict[str, Any] = {"file_bytes": 4 << 20, "repeats": 1}
    if name == "grid":
        cut["trials"] = (definition.Trial("buffered", cache="cold"),)
    if name == "io-size":
        settings = {"paths": ["buffered"], "workers": [1], "request_bytes": ["1MiB"]}
        cut["settings"] = {"io-size": {**known.settings["io-size"], **settings}}
    if name == "first-touch":
        cut["cases"] = ({"particles": 1024, "path": "buffered", "direction": "read", "cache": "cold"},)
    return session.Request(replace(known, **cut), "host", place, None, False, peers=frozenset())


@pytest.mark.parametrize("module", [grid, core, first_touch, io_size], ids=["grid", "core", "first-touch", "io-size"])
def test_wrong_bytes_end_the_run_though_the_state_is_not_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, module: Any
) -> None:
    """A disk that read too little says that another cache had the bytes, or that they were not fetched."""
    make, write = Workspace.make, particle_files.write

    def spoiled(self: Workspace, path: Path, **options: Any) -> Path:
        spoil(make(self, path, **options))
        return path

    def written(context: Any, path: Path, *rest: Any) -> Any:
        found = write(context, path, *rest)
        spoil(path)
        return found

    monkeypatch.setattr(Workspace, "make", spoiled)
    monkeypatch.setattr(particle_files, "write", written)
    monkeypatch.setattr(module, "from_another_cache", lambda *_: "the disk read nothing")
    if module is core:
        monkeypatch.setattr(core, "_probes", lambda run, _: [Probe("x", lambda _: core.read(run, "auto", "cold"))])
    with pytest.raises(penstock.Error, match="bytes are wrong"):
        session.run(of_suite(request.node.callspec.id, tmp_path), lambda *_: None)


class Elsewhere:
    """Reads into other memory than they were asked to: the memory itself keeps what it held."""

    def __init__(self, context: penstock.Context) -> None:
        self.context = context
        self.now = False

    def memory(self, asked: Any) -> Any:
        return self.context.allocate(asked.bytes) if self.now else asked

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        start, blocks, requests, load = File.start_read, _measure.start_blocks, _core.time_requests, _measure.run_load
        monkeypatch.setattr(
            File, "start_read", lambda file, memory, *at, **how: start(file, self.memory(memory), *at, **how)
        )
        monkeypatch.setattr(
            _measure, "start_blocks", lambda file, memory, *at, **how: blocks(file, self.memory(memory), *at, **how)
        )
        monkeypatch.setattr(
            _core, "time_requests", lambda file, memory, *at, **how: requests(file, self.memory(memory), *at, **how)
        )
        monkeypatch.setattr(
            _measure, "run_load", lambda of, files, memory, **how: load(of, files, self.memory(memory), **how)
        )


def of_grid(context: penstock.Context, place: Workspace) -> Callable[[], object]:
    run = lone_run(context, place, "grid")
    return lambda: grid.run_trial(run, definition.Trial("buffered"))


def of_core(context: penstock.Context, place: Workspace) -> Callable[[], object]:
    run = lone_run(context, place, "core")
    return lambda: core.read(run, "buffered", "second")


def of_stage(context: penstock.Context, place: Workspace) -> Callable[[], object]:
    stage = Stage(context, place, place.file_bytes)
    return lambda: stage.measure(Cell("read", True, place.file_bytes, "buffered"))


def of_loads(context: penstock.Context, place: Workspace) -> Callable[[], object]:
    there = io_size.Place("local", place.source, place.media, "", "")
    run, power = lone_run(context, place, "io-size", cell_seconds=10), PowerMeter(context.device)
    return lambda: io_size._measure(run, power, io_size.IoSizeCell("buffered", 1 << 20, 1, there), 0)


@pytest.mark.parametrize("reader", [of_grid, of_core, of_stage, of_loads])
def test_what_memory_held_before_does_not_pass_for_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Callable[..., Callable[[], object]]
) -> None:
    with penstock.Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        elsewhere = Elsewhere(context)
        elsewhere.patch(monkeypatch)
        place.make(place.source)
        read = reader(context, place)
        read()
        elsewhere.now = True
        with pytest.raises(penstock.Error, match="bytes are wrong"):
            read()


def test_a_file_of_a_format_that_is_not_read_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = formats.timed
    with penstock.Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        run = lone_run(context, place, "formats", tensors=2)
        for format in ("HDF5", "NPY"):
            formats._make(run, format)
        reads = [partial(formats._read, run, format, 0) for format in ("HDF5", "NPY")]
        for read in reads:
            read()
            monkeypatch.setattr(formats, "timed", lambda bytes, _: timed(bytes, lambda: None))
            with pytest.raises(penstock.Error, match="are wrong"):
                read()
            monkeypatch.setattr(formats, "timed", timed)


def test_a_file_that_stays_in_memory_is_never_called_cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(File, "drop_cache", lambda *_: None)
    with penstock.Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        place.make(place.source)
        with context.open(place.source) as file:
            make_resident(file, place.file_bytes)
            with pytest.raises(NotPossible, match="cannot be made cold"):
                make_cold(file, place.file_bytes)
        run = lone_run(context, place, "grid")
        with pytest.raises(NotPossible, match="cannot be made cold"):
            grid.run_trial(run, definition.Trial("buffered", cache="cold"))
