"""`penstock bench` and `penstock report`: rows, verification with a control, clean-up, the page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import PENSTOCK, Ran, assert_one_line_error
from lone_run import lone_run
from mounts import mount_is_listed

import penstock
from penstock.calibration.poison import POISON
from penstock.calibration.workspace import Workspace, check_space
from penstock_bench.engine import definition
from penstock_bench.runs import definitions, session, stored
from penstock_bench.suites.core import judge as targets, measure as core
from penstock_bench.suites.grid import measure as grid

Run = Callable[..., Ran]
SMALL = """
name = "small"
file_bytes = "4MiB"
repeats = 2
seconds = 60
[[case]]
path = ["auto", "buffered"]
direction = ["read", "write"]
cache = "hot"
[[case]]
path = "buffered"
request_bytes = ["4KiB", "64KiB"]
[[case]]
path = "auto"
cache = "direct"
buffer = ["pinned", "system"]
first_touch = "none"
[[case]]
path = "gds"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def request(small: Path, place: Path) -> session.Request:
    return session.Request(definitions.load(str(small), False), "host", place, None, False)


def no_step(_done: int, _total: int, _what: str) -> None:
    pass


def test_a_suite_is_measured_and_nothing_is_left(penstock: Run, small: Path, tmp_path: Path) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    ran = penstock("bench", small, "--dir", place, "--device", "host", "--out", tmp_path / "rows.jsonl")
    assert ran.code == 0, ran.err
    assert list(place.iterdir()) == []
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert rows[0]["kind"] == "machine"
    told = ["cpu_model", "cores", "memory_bytes", "device", "kernel", "file_system", "versions"]
    for name in told + ["mount_options"] * mount_is_listed(place):
        assert rows[0]["machine"][name], name
    trials = [row for row in rows if row["kind"] == "trial"]
    variants = {(row["path"], row["direction"], row["request_bytes"], row["cache"], row["buffer"]) for row in trials}
    assert ("auto", "read", 0, "hot", "device") in variants
    assert ("buffered", "write", 0, "hot", "device") in variants
    assert ("buffered", "read", 4096, "hot", "device") in variants
    assert all(row["bytes"] == 4 << 20 and row["seconds"] > 0 for row in trials)
    assert {row["repeat"] for row in trials} == {0, 1}
    assert any(row["kind"] == "missing" and row["path"] == "gds" for row in rows)


def test_repeats_are_interleaved(small: Path, tmp_path: Path) -> None:
    rows = session.run(request(small, tmp_path), no_step)
    repeats = [row["repeat"] for row in rows if row["kind"] == "trial"]
    assert repeats == sorted(repeats)
    assert len(set(repeats)) == 2


@pytest.mark.parametrize("name", ["small", "core"])
def test_a_corrupted_byte_fails_the_run(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = Workspace.make

    def corrupted(self: Workspace, path: Path, **options: Any) -> Path:
        made = whole(self, path, **options)
        with made.open("r+b") as stream:
            stream.seek(1_234_567)
            byte = stream.read(1)
            stream.seek(1_234_567)
            stream.write(bytes([byte[0] ^ 1]))
        return made

    monkeypatch.setattr(Workspace, "make", corrupted)
    asked = request(small, tmp_path)
    if name == "core":
        asked = replace(asked, definition=replace(definitions.load("core", True), file_bytes=4 << 20, repeats=1))
    with pytest.raises(penstock.Error) as caught:
        session.run(asked, no_step)
    assert caught.value.operation == "verify"
    assert caught.value.cause.startswith(f"{caught.value.length_bytes} bytes are wrong")
    assert caught.value.offset_bytes == 1_234_567 // 8 * 8 or caught.value.offset_bytes == 1_234_567
    assert [entry.name for entry in tmp_path.iterdir()] == ["small.toml"]


def test_a_read_that_brings_nothing_fails_the_run(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes left from an earlier trial must not pass for bytes that came."""
    real = grid._move

    def fake(file: object, memory: penstock.Buffer, trial: definition.Trial, block: int) -> object:
        outcome, watch = real(file, memory, trial, block)  # type: ignore[arg-type]
        if trial.direction == "read":
            memoryview(memory)[:4096] = bytes([POISON]) * 4096
        return outcome, watch

    monkeypatch.setattr(grid, "_move", fake)
    with pytest.raises(penstock.Error, match="bytes are wrong"):
        session.run(request(small, tmp_path), no_step)


@pytest.mark.parametrize("kind", ["grid", "core"])
def test_a_write_that_moves_nothing_fails_the_run(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What an earlier trial wrote to the file must not pass for what this one was to write."""
    module, name = (grid, "_move") if kind == "grid" else (core, "_timed")
    real, done = getattr(module, name), []

    def fake(*given: Any) -> Any:
        trial = given[2] if kind == "grid" else definition.Trial(given[2], given[0].__name__.removeprefix("start_"))
        if trial.direction == "read" or trial.path == "null":
            return real(*given)
        done.append(done[0] if done else real(*given))
        return done[-1]

    monkeypatch.setattr(module, name, fake)
    asked = request(small, tmp_path)
    if kind == "core":
        asked = replace(asked, definition=replace(definitions.load("core", True), file_bytes=4 << 20, repeats=1))
    with pytest.raises(penstock.Error, match="bytes are wrong"):
        session.run(asked, no_step)
    assert len(done) == 2


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 130)])
def test_an_interrupt_leaves_nothing(small: Path, tmp_path: Path, sent: int, code: int) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    command = [*PENSTOCK, "bench", str(small), "--dir", str(place), "--out", str(tmp_path / "rows.jsonl")]
    process = subprocess.Popen([*command, "--repeats", "1000", "--seconds", "100"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not list(place.glob("*/target.bin")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    for _ in range(4):  # an impatient user's, while the first is being answered
        process.send_signal(sent)
        time.sleep(0.01)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert list(place.iterdir()) == [] and err.count("\n") == 1


def test_the_time_limit_ends_a_run(penstock: Run, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    ran = penstock("bench", small, "--dir", tmp_path, "--repeats", "1000", "--seconds", "1", "--out", out)
    assert ran.code == 0, ran.err
    assert any(row["kind"] == "stopped" for row in stored.read(out))
    assert ran.out.endswith(f"results: {out}; its time limit ended it, and the same command with --resume goes on\n")


def test_too_little_space_is_refused_before_writing(tmp_path: Path) -> None:
    with pytest.raises(penstock.Error) as caught:
        check_space(tmp_path, 1 << 60)
    assert caught.value.code == "no_space"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("path = 'warp'", "warp"),
        ("cache = 'warm'", "warm"),
        ("speed = 3", "speed"),
        ("workers = -1", "workers"),
        ("path = [", ""),
    ],
)
def test_wrong_suites_are_refused(penstock: Run, tmp_path: Path, line: str, word: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(f"file_bytes = '4MiB'\nrepeats = 1\nseconds = 9\n[[case]]\n{line}\n")
    assert_one_line_error(penstock("bench", path, "--dir", tmp_path), "wrong.toml", word)


def test_suites_that_come_with_penstock_load_and_are_listed(penstock: Run) -> None:
    assert list(definitions.known()) == [
        "choice",
        "core",
        "data",
        "first-touch",
        "formats",
        "gpu-io",
        "grid",
        "hmatrix",
        "io-size",
        "multiplicity",
        "per-process",
        "report",
        "simulation",
    ]
    told = penstock("bench", "--list", "--json").json
    listed, in_all = told["suites"], told["all"]
    assert [one["name"] for one in listed] == list(definitions.known())
    assert all(one["about"] and one["file_bytes"] for one in listed)
    lines = penstock("bench", "--list").out.splitlines()
    assert [line.split()[0] for line in lines] == [*definitions.known(), "all"]
    assert lines[-1].endswith(", ".join(in_all)) and "choice" in in_all
    for name in definitions.known():
        assert definitions.load(name, True).file_bytes <= definitions.load(name, False).file_bytes


def test_wrong_options(penstock: Run, tmp_path: Path) -> None:
    for options in (
        ["nosuch"],
        ["report", "--dir", str(tmp_path / "no")],
        ["report", "--file-bytes", "1KiB"],
        ["report", "--repeats", "0"],
    ):
        assert_one_line_error(penstock("bench", *options))


def test_the_page_stands_alone(penstock: Run, small: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    assert penstock("bench", small, "--dir", tmp_path, "--out", rows).code == 0
    ran = penstock("report", rows, "--out", tmp_path / "report.html")
    assert ran.code == 0, ran.err
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == 3
    assert not re.search(r"(src|href)=[\"'](?!#)", text)
    assert not re.search(r"https?://|url\((?!#)|@import", text)
    for name in ("bandwidth", "request-size", "cpu"):
        assert (tmp_path / f"report-{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"report-{name}.svg").read_text()
    references = set(re.findall(r"(?:href=\"#|url\(#)([^\")]+)", text))
    assert references <= set(re.findall(r"id=\"([^\"]+)\"", text))


def test_report_without_results(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("report", tmp_path / "absent.jsonl"), "absent.jsonl")
    (tmp_path / "text.jsonl").write_text("hello\n")
    assert_one_line_error(penstock("report", tmp_path / "text.jsonl"), "text.jsonl")


def test_promises_are_judged_from_medians() -> None:
    machine = {"kind": "machine", "machine": {"device": {"emulated": True}}}

    def rows(name: str, rates: list[float]) -> list[dict[str, object]]:
        return [
            {
                "kind": "core",
                "name": name,
                "bytes": 100,
                "bytes_per_second": rate,
                "cpu_user_s": 0.0,
                "cpu_system_s": 0.0,
            }
            for rate in rates
        ]

    measured = [machine, *rows("hot read", [90, 1, 94]), *rows("pread and memcpy", [100, 100, 100])]
    by_name = {check.what: check for check in targets.checks(measured)}
    hot = by_name["hot read / pread and memcpy"]
    assert hot.value == pytest.approx(0.90)
    assert hot.passed is False
    assert by_name["cold read / fio"].passed is None
    measured += rows("hot read", [100, 100, 100])
    assert {check.what: check for check in targets.checks(measured)}["hot read / pread and memcpy"].passed is True


@pytest.mark.parametrize("name", ["4 KiB one at a time", "4 KiB one at a time, Python", "4 KiB queued"])
def test_every_byte_of_small_requests_is_checked(tmp_path: Path, name: str) -> None:
    bytes = 1 << 20
    settings = {"latency_reads": 20_000, "queued_reads": 20_000}
    with (
        penstock.Context("host") as context,
        Workspace(context, tmp_path, bytes, files=1) as place,
        ExitStack() as stack,
    ):
        place.make(place.source)
        probes = core._probes(lone_run(context, place, "core", stack, **settings), {"read": {}, "write": {}})
        probe = next(one for one in probes if one.name == name)
        sample = probe.measure(0)
        assert sample["bytes"] == sample["requests"] * core.BLOCK_BYTES
        assert 0 < sample["requests"] <= bytes // core.BLOCK_BYTES
        with place.source.open("r+b") as stream:
            stream.seek(bytes // 2)
            stream.write(bytes // 2 * b"\xa7")
        with pytest.raises(penstock.Error, match="bytes are wrong") as told:
            probe.measure(1)
        assert told.value.file == str(place.source)
        assert bytes // 2 <= told.value.offset_bytes < bytes
