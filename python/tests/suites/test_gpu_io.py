"""The suite `gpu-io` at a tiny size on the emulated device: every cell measured or missing with its cause, all that
came checked, both sides' counts the same; promises, tables, figures."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpu_io_rig import BYTES, SMALL, Rows, cells, missing, run, tiny
from places import ROOT
from rich.console import Console

import penstock
from penstock import Context
from penstock.calibration.workspace import FILE_SEED, NotPossible, Workspace
from penstock_bench import _measure
from penstock_bench.engine.definition import Definition
from penstock_bench.engine.promises import Medians
from penstock_bench.engine.results import Results
from penstock_bench.engine.rounds import Probe, run_rounds
from penstock_bench.engine.run import Run
from penstock_bench.report import page, sources
from penstock_bench.report.show import print_results
from penstock_bench.runs import compare, definitions, stored
from penstock_bench.suites.gpu_io import judge as gpu_io_judge, measure as gpu_io, storms as gpu_io_storms, words

DISK = ("disk", "write")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    place = tmp_path_factory.mktemp("gpu-io")
    found = run(place, tiny())
    assert [entry.name for entry in place.iterdir()] == ["rows.jsonl"]
    assert stored.read(place / "rows.jsonl") == json.loads(json.dumps(found))
    return found


def test_every_cell_is_measured_or_missing_with_its_cause(rows: Rows) -> None:
    found, absent = cells(rows), missing(rows)
    assert not found.keys() & absent.keys()
    assert all(absent.values())
    known = {
        "memory random 4 KiB, 1 service thread",
        "memory sequential 128 KiB",
        "one request alone, checked",
        "one request alone, not checked",
        "mailbox, the same clients, 1 service thread",
        "nvme entries random 4 KiB, one queue a thread, 1 service thread",
        "nvme entries random 4 KiB, 16 queues a thread, 1 service thread",
        "blocks of 1, one ring",
        "blocks of 64, a ring for each warp",
        "blocks of 64, reads sequential 128 KiB",
        "ceiling, page-locked memory, random 4 KiB",
        "cached file, 4 KiB",
        "pread and copy, 4 KiB",
        "element loads, all hits",
        "tiles, plain memory",
        "rows gathered, all misses",
        "one miss alone",
        "one miss alone, full cache",
        "sweep with advice",
        "sweep without advice",
        "rows gathered",
        "rows by numpy.memmap and copy",
    }
    assert known <= found.keys()
    disk = {gpu_io.name_of(what, request) for what in DISK for request in gpu_io.SIZES} - {
        "disk sequential 4 KiB",
        "disk random 128 KiB",
    }
    for name in disk:
        for one in (name, *(f"{name}, {host}" for host in gpu_io_judge.HOSTS)):
            assert (one in found) != (one in absent), one  # where no file can be made cold none is
    assert {"ceiling, registered file, random 4 KiB", "rows by cuFile compat"} <= absent.keys()


def test_files_of_several_sizes_are_measured_or_missing_with_their_cause(rows: Rows) -> None:
    found, absent = cells(rows), missing(rows)
    hot = found["random 4 KiB of 4 MiB, page cache"]
    assert (hot["data_bytes"], hot["took"]) == (4 << 20, "mapping")
    assert ("random 4 KiB of 4 MiB, disk" in found) != ("random 4 KiB of 4 MiB, disk" in absent)
    for what in ("disk", "page cache"):
        assert "are free on the disk" in absent[f"random 4 KiB of 900 TiB, {what}"]


def test_what_the_device_counted_the_service_served(rows: Rows) -> None:
    served = [row for row in cells(rows).values() if row.get("service_threads")]
    assert served
    for row in served:
        assert sum(requests for requests, _ in row["served"].values()) == row["operations"] > 0
        assert row["bytes"] == row["operations"] * row["request_bytes"]
        assert row["operations_per_second"] == pytest.approx(row["operations"] / row["seconds"])
        assert sum(many for _, many in row["latency_cycles"]) == row["timed"] == row["operations"]
        for unit in ("us", "cycles"):
            assert 0 < row[f"p50_{unit}"] <= row[f"p99_{unit}"] <= row[f"p999_{unit}"]
        checked = "not checked" not in row["name"]
        assert row["verified_bytes"] == (row["bytes"] if checked else 0)
        assert row["subject"] in DISK or row["name"].endswith(", disk") or row["took"] == "mapping"


def test_the_cells_of_the_cache_are_what_they_are_called(rows: Rows) -> None:
    found = cells(rows)
    for name in ("element loads, all hits", "tiles, all hits"):
        assert found[name]["misses"] == 0 < found[name]["hits"]
    assert found["rows gathered, all misses"]["misses"] == 32
    for name in ("sweep with advice", "sweep without advice"):
        assert 0 <= found[name]["hit_rate"] < 1
    for size in (gpu_io.SMALL, gpu_io.LARGE):
        written, absent = found.get(gpu_io.through_cache(size)), missing(rows).get(gpu_io.through_cache(size))
        assert bool(written) != bool(absent)
        if written:
            assert written["operations"] == written["write_backs"] > 0
            assert written["verified_bytes"] == written["bytes"] == written["operations"] * size
            assert sum(many for _, many in written["served"].values()) >= written["bytes"]
    assert found["rows gathered"]["operations"] == 100
    assert found["rows by numpy.memmap and copy"]["operations"] == 50


def test_results_are_printed_compared_and_drawn(rows: Rows, tmp_path: Path) -> None:
    stream = io.StringIO()
    print_results(rows, Console(file=stream, width=240))
    text = stream.getvalue()
    for word in ("Threads a block", "p50/p99/p99.9 us", "hit rate", *cells(rows)):
        assert word in text
    assert {one.name for one in compare.compare(rows, rows).comparisons} >= cells(rows).keys()
    said = [one.text for one in words.of_gpu_io(rows)]
    assert "one request alone takes" in said[0]
    assert "numpy.memmap" in said[-1]
    kept = tmp_path / "rows.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.make(sources.read([kept]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Requests that the device makes" in text
    assert text.count("<svg") == 3
    assert text.count("rows of A (rows.jsonl)") == 3


def test_peers_can_be_left_out(tmp_path: Path) -> None:
    found = run(tmp_path, replace(tiny(), seconds=0.0001), peers=frozenset())
    assert not any(word in row.get("name", "") for row in found for word in ("numpy", "cuFile"))
    assert found[-1]["kind"] == "stopped"


@pytest.mark.skipif(not gpu_io.SHM.is_dir(), reason="no /dev/shm")
def test_writes_by_threads_a_block_are_of_a_file_in_tmpfs(rows: Rows, tmp_path: Path) -> None:
    name = "blocks of 64, writes random 4 KiB"
    assert "no room" in missing(rows)[name]  # the tiny file is in the page cache
    found = cells(run(tmp_path, tiny(parts=["memory", "blocks"], ram_bytes="2MiB")))[name]
    assert found["operations"] > 0 and found["request_bytes"] == 4096 and found["memory"] == "tmpfs"


@pytest.mark.skipif(not gpu_io.SHM.is_dir(), reason="no /dev/shm")
def test_no_page_is_written_to_a_registered_file_where_the_device_reaches_none(rows: Rows, tmp_path: Path) -> None:
    name = "pages written to a registered file"
    assert "no room" in missing(rows)[name]
    found = run(tmp_path, tiny(parts=["cache"], ram_bytes="2MiB"))
    assert "emulated" in missing(found)[name]


def test_a_suite_may_name_its_parts(tmp_path: Path) -> None:
    found = run(tmp_path, tiny(parts=["sizes", "disk"], data_bytes=["1MiB"]))
    assert {row["subject"] for row in found if row["kind"] == "gpu-io"} == {"disk", "sizes"}
    assert len(cells(found) | missing(found)) == 6 + 2
    for parts, cause in (["disk", "tape"], "parts has 'tape'"), ([], "parts is empty"):
        with pytest.raises(penstock.Error, match=cause):
            run(tmp_path, tiny(parts=parts))


@pytest.mark.parametrize(
    ("name", "subjects"),
    [
        ("disk", set(DISK)),
        ("channels", {"channels"}),
        ("cache", {"write", "cache", "rows"}),
        ("misses", {"memory", "cache", "rows"}),
    ],
)
def test_a_leased_suite_measures_its_parts(tmp_path: Path, name: str, subjects: set[str]) -> None:
    leased = definitions.load(str(ROOT / "bench" / "leased" / f"gpu-io-{name}.toml"), False)
    few = SMALL | {"disk_seconds": 0.002, "parts": leased.settings["gpu-io"]["parts"]}
    tried = replace(leased, file_bytes=BYTES, repeats=1, seconds=60.0)
    tried = replace(tried, settings={"gpu-io": leased.settings["gpu-io"] | few})
    assert {row["subject"] for row in run(tmp_path, tried) if row["kind"] == "gpu-io"} == subjects


def test_a_corrupted_byte_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Workspace.make

    def corrupted(self: Workspace, path: Path, progress: object = None) -> Path:
        made = whole(self, path, None)
        content = bytearray(made.read_bytes())
        for at in range(77, len(content), 4096):
            content[at] ^= 1
        made.write_bytes(content)
        return made

    monkeypatch.setattr(Workspace, "make", corrupted)
    with pytest.raises(penstock.Error, match="bytes are wrong"):
        run(tmp_path, tiny())
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_dir()] == []


@pytest.fixture
def stamped(context: Context, tmp_path: Path) -> Path:
    memory = context.allocate(BYTES)
    context.stamp(memory, 0, FILE_SEED)
    with context.create(tmp_path / "stamped.bin", BYTES) as file:
        file.write(memory)
    return tmp_path / "stamped.bin"


def test_counts_that_differ_and_failures_fail_the_run(stamped: Path) -> None:
    setup = gpu_io_storms.Setup(stamped)
    good = {
        "requests": 5,
        "bad_words": 0,
        "failures": 0,
        "failed_requests": 0,
        "turn": 1,
        "served": {"mapping": (5, 1)},
    }
    gpu_io_storms.prove(good, setup)
    gpu_io_storms.prove(good | {"served": {}}, replace(setup, source="memory"))
    for source in ("mailbox", "nvme"):
        with pytest.raises(penstock.Error, match="the service 0"):
            gpu_io_storms.prove(good | {"served": {}}, replace(setup, source=source))
    for change, word in (
        ({"bad_words": 2}, "16 bytes are wrong"),
        ({"failures": 3}, "3 requests of the device failed"),
        ({"failed_requests": 1}, "1 of them failed in the service"),
        ({"served": {"mapping": (4, 1)}}, "counted 5 requests, the service 4"),
    ):
        with pytest.raises(penstock.Error, match=word):
            gpu_io_storms.prove(good | change, setup)


@pytest.mark.parametrize("source", gpu_io_storms.SERVED)
def test_one_wrong_byte_is_found_by_a_storm(context: Context, stamped: Path, source: str) -> None:
    content = bytearray(stamped.read_bytes())
    content[5 * 4096 + 77] ^= 1
    stamped.write_bytes(content)
    storms = gpu_io_storms.Storms(context, 0.01)
    setup = gpu_io_storms.Setup(stamped, source, slots=64)
    shape = gpu_io_storms.Shape(8, 32, sequential=True)
    once = {"requests": BYTES // 4096, "seconds": 20.0}
    with pytest.raises(penstock.Error, match="8 bytes are wrong|bytes are wrong"):
        gpu_io_storms.sampled(storms.get(setup), setup, shape, **once)
    found = gpu_io_storms.sampled(storms.get(setup), setup, shape, checked=False, **once)
    assert found["verified_bytes"] == 0
    storms.close()


def test_one_service_is_there_at_a_time(context: Context, stamped: Path) -> None:
    storms = gpu_io_storms.Storms(context, 0.01)
    first = storms.get(gpu_io_storms.Setup(stamped, slots=64))
    assert storms.get(gpu_io_storms.Setup(stamped, slots=64)) is first
    storms.get(gpu_io_storms.Setup(stamped, slots=128))
    with pytest.raises(penstock.Error, match="closed"):
        first.run(requests=1)
    memory = storms.get(gpu_io_storms.Setup(stamped, "memory"))
    storms.get(gpu_io_storms.Setup(stamped, slots=64))
    assert storms.get(gpu_io_storms.Setup(stamped, "memory")) is memory
    assert memory.run(requests=1)["requests"] > 0
    for _ in range(2):
        with pytest.raises(NotPossible):
            storms.get(gpu_io_storms.Setup(stamped, "mapping"))
    storms.close()


def test_wrong_options_are_told(context: Context, stamped: Path, tmp_path: Path) -> None:
    raw = context._raw
    for options, word in (
        ({"source": "magic"}, "magic"),
        ({"slots": 0}, "slots"),
        ({"service_threads": 0}, "thread"),
        ({"source": "nvme", "slots": 64, "queues": 3}, "64 slots for 3 queues"),
        ({"source": "nvme", "slots": 64, "service_threads": 2, "queues": 1}, "2 threads for 1 queue"),
    ):
        with pytest.raises(penstock.Error, match=word):
            _measure.storm(raw, stamped, **options)
    with pytest.raises(TypeError, match="no option 'speed'"):
        _measure.storm(raw, stamped, speed=1)
    with pytest.raises(ValueError, match="slots"):
        _measure.storm(raw, stamped, slots=-1)
    with pytest.raises(penstock.Error, match="none"):
        _measure.storm(raw, tmp_path / "none")
    storm = _measure.storm(raw, stamped, slots=64)
    for options in ({"blocks": 0}, {"threads": 2000}, {"in_flight": 99}, {"request_bytes": 100}):
        with pytest.raises(penstock.Error):
            storm.run(**options)
    with pytest.raises(TypeError, match="no option 'speed'"):
        storm.run(speed=1)
    memory = context.allocate(4096)
    with pytest.raises(penstock.Error, match="fewer elements"):
        _measure.time_loads(raw, 0, memory, 4096)
    with pytest.raises(penstock.Error, match="one of them"):
        _measure.time_loads(raw, 0, None, 1024)
    with pytest.raises(penstock.Error, match="whole rows"):
        _measure.wrong_words(raw, memory, memory.slice(0, 100), 1)


def test_percentiles_lie_within_their_buckets() -> None:
    buckets = [(0, 256, 10), (256, 272, 80), (1000, 2000, 10)]
    assert gpu_io_storms.percentile(buckets, 0.5) == pytest.approx(256 + 16 * 40 / 80)
    assert gpu_io_storms.percentile(buckets, 0.99) == pytest.approx(1900)
    assert gpu_io_storms.percentile(buckets, 1.0) == 2000
    with pytest.raises(ValueError):
        gpu_io_storms.percentile([], 0.5)


def sample(name: str, rate: float, **fields: Any) -> dict[str, Any]:
    return {"kind": "gpu-io", "name": name, "operations_per_second": rate, "bytes_per_second": 4096 * rate} | fields


def test_promises_are_judged_where_a_gpu_made_the_requests() -> None:
    machine = {"kind": "machine", "machine": {"device": {"emulated": False}}}
    curve = [
        sample(f"blocks of {threads}", rate, subject="blocks", rings=0, threads=threads)
        for threads, rate in ((1, 1e6), (32, 12e6), (1024, 10e6))
    ]
    curve += [
        sample(f"blocks of {threads}, writes random 4 KiB", rate, subject="blocks besides", rings=0, threads=threads)
        for threads, rate in ((32, 4e6), (1024, 3e6))
    ]
    rest = [
        sample("memory random 4 KiB, 12 service threads", 11.5e6, subject="memory"),
        sample("memory random 4 KiB, 4 service threads", 7.9e6, subject="memory"),
        sample("one request alone, not checked", 1e5, subject="memory", p50_us=5.5),
        sample("disk random 4 KiB", 98.0, subject="disk"),
        sample("disk random 4 KiB, host threads", 90.0, subject="disk"),
        sample("disk random 4 KiB, host io_uring", 100.0, subject="disk"),
        sample("as many warps as for misses", 12e6, subject="memory"),
        sample("rows gathered, all misses", 10e6, subject="cache"),
        sample("one request alone, checked", 1e5, subject="memory", mean_us=6.0),
        sample("one miss alone", 1e4, subject="cache", mean_us=7.5),
        sample("write sequential 4 KiB, host io_uring", 100.0, subject="write"),
        sample(gpu_io.through_cache(gpu_io.SMALL), 92.0, subject="write"),
        sample("sweep with advice", 1.0, subject="cache", hit_rate=0.44),
        sample("rows gathered from tmpfs", 52e6, subject="rows"),
        sample("ceiling, registered file, random 512 B", 55e6, subject="memory"),
    ]
    judged = {check.what: check for check in gpu_io_judge.checks([machine, *curve, *rest])}
    assert len(judged) == 23
    verdicts = {
        "one miss alone / one request alone, time": False,
        f"{gpu_io.through_cache(gpu_io.SMALL)} / the host alone": True,
        "random 4 KiB in memory, 12 threads": True,
        "random 4 KiB in memory, 4 threads": False,
        "one request alone, median": True,
        "slowest of 32 to 1024 threads a block / fastest": True,
        "the same, writes of 4 KiB at random": False,
        "the same, reads of 128 KiB in sequence": None,
        "disk random 4 KiB / the host alone": True,
        "a miss / a raw request, time": False,
        "hit rate of a sweep with advice": False,
        "rows gathered from tmpfs / the mapping row by row": False,
    }
    assert {what: judged[what].passed for what in verdicts} == verdicts
    assert judged["a miss / a raw request, time"].value == pytest.approx(1.2)
    assert judged["tiles, all hits / plain memory"].passed is None
    emulated = {"kind": "machine", "machine": {"device": {"emulated": True}}}
    assert all(check.passed is None for check in gpu_io_judge.checks([emulated, *curve, *rest]))
    assert gpu_io_judge.curve(Medians([machine, curve[0], curve[1]], "gpu-io")) is None


def test_probes_of_a_group_follow_each_other() -> None:
    order: list[str] = []

    def probe(name: str, group: str) -> Probe:
        return Probe(name, lambda _: order.append(name) or {"bytes": 1, "seconds": 1.0}, group)

    probes = [probe(f"{letter}{number}", letter) for letter in "abc" for number in range(4)] + [probe("d", "")]
    of = SimpleNamespace(definition=Definition("x", repeats=3), results=Results(None), step=lambda *_: None)
    run_rounds(cast(Run, of), probes)
    rounds = [order[turn * 13 : turn * 13 + 13] for turn in range(3)]
    for names in rounds:
        letters = [name[0] for name in names]
        assert sorted(letters) == sorted("a" * 4 + "b" * 4 + "c" * 4 + "d")
        assert sum(one != other for one, other in zip(letters, letters[1:], strict=False)) == 3
    assert len({tuple(names) for names in rounds}) == 3, "shuffled"
