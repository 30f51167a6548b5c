"""What makes a measurement worth reading: intervals, machines, media, times apart, ceilings, resuming, cleaning up."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from command import PENSTOCK, Ran, assert_one_line_error, without_signals
from mounts import mount_is_listed

import penstock
from penstock import _core
from penstock.calibration import cufile_setup, machine, media
from penstock.calibration.workspace import LOCK, PREFIX, UNBORN, NotPossible, Workspace, remove_dead
from penstock_bench.engine import cells, definition, intervals, results
from penstock_bench.runs import definitions, session, stored, suites
from penstock_bench.suites.grid import measure as grid

Run = Callable[..., Ran]
SMALL = """
name = "small"
file_bytes = "4MiB"
repeats = 3
seconds = 60
[[case]]
path = "buffered"
direction = ["read", "write"]
[[case]]
path = "direct"
cache = "direct"
request_bytes = "1MiB"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def no_step(_done: int, _total: int, _what: str) -> None:
    pass


def request(small: Path, place: Path, **more: Any) -> session.Request:
    return session.Request(definitions.load(str(small), False), "host", place, more.pop("out", None), False, **more)


def in_process(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> int:
    """The command without a process of its own, so that parts of it can be replaced."""
    from penstock import cli

    without_signals(monkeypatch)
    return cli.main(arguments)


def saved(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_few_samples_have_a_median_and_no_interval() -> None:
    assert intervals.estimate([2.0, 4.0]) == intervals.Estimate(3.0, None, None, 2)
    assert intervals.ratio([2.0, 4.0, 6.0], [1.0, 2.0]).low is None


def test_an_interval_holds_the_median_and_is_the_same_each_time() -> None:
    values = [1.0, 1.1, 1.2, 1.3, 9.0]
    found = intervals.estimate(values)
    assert found.low is not None and found.high is not None
    assert 1.0 <= found.low <= found.median == 1.2 <= found.high <= 9.0
    assert found == intervals.estimate(values)


def test_every_row_bears_the_name_of_its_machine(small: Path, tmp_path: Path) -> None:
    first, *rest = session.run(request(small, tmp_path), no_step)
    assert first["id"] == machine.machine_id(first["machine"])
    assert len(rest) > 10
    assert {row["machine"] for row in rest} == {first["id"]}
    assert first["machine"]["link"] == "not available: the device is on no PCI bus"
    assert first["machine"]["cufile"]["library"].startswith(("libcufile ", "not available: "))


@pytest.mark.parametrize(
    ("speed", "width", "found"),
    [
        ("32.0 GT/s PCIe", "16", {"generation": 5, "width": 16, "speed": "32.0 GT/s PCIe"}),
        ("Unknown", "0", "not available: the system says speed 'Unknown', width '0'"),
    ],
)
def test_the_link_is_what_sysfs_says(tmp_path: Path, speed: str, width: str, found: object) -> None:
    (tmp_path / "0000:18:00.0").mkdir()
    (tmp_path / "0000:18:00.0" / "max_link_speed").write_text(speed + "\n")
    (tmp_path / "0000:18:00.0" / "current_link_width").write_text(width + "\n")
    assert machine.link("00000000:18:00.0", tmp_path) == found
    assert machine.link("0000:19:00.0", tmp_path) == "not available: No such file or directory"


def test_options_of_mounts_name_no_machine_and_no_folder() -> None:
    shown = _core.public_mount_options("rw,vers=4.2,addr=10.0.0.7,clientaddr=10.0.0.8,rw,lowerdir=/a:/b")
    assert shown == "rw,vers=4.2"


def test_a_mount_is_the_one_that_the_system_names(tmp_path: Path) -> None:
    if not mount_is_listed(tmp_path):
        pytest.skip("a chroot whose / is no mount: the system lists none for this folder")
    (tmp_path / "file").write_bytes(b"x")
    found = machine.mount_of(tmp_path)
    with penstock.Context("host") as context, context.open(tmp_path / "file") as file:
        assert found["type"] == file.facts["file_system"]
    assert machine.mount_of(Path("/proc"))["type"] == "proc"
    options = found["options"].split(",")
    assert options[0] in ("rw", "ro") and len(options) == len(set(options))


def test_the_cufile_file_in_force_is_read_with_its_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        '{ // a comment\n"logging": {"dir": "http://x"}, "properties": {"use_poll_mode": false, /* two */ '
        '"rdma_dev_addr_list": ["10.0.0.1"],},}'
    )
    monkeypatch.setenv("CUFILE_ENV_PATH_JSON", str(path))
    found = cufile_setup.cufile_setup(tmp_path)
    assert found["source"] == "CUFILE_ENV_PATH_JSON: mine.json"
    assert found["settings"] == {"properties.use_poll_mode": False}
    path.write_text("{")
    assert "unreadable" in cufile_setup.cufile_setup(tmp_path)


def test_media_bytes_are_the_sectors_that_the_block_layer_counted(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    stat = tmp_path / f"{os.major(number)}:{os.minor(number)}" / "stat"
    stat.parent.mkdir()
    stat.write_text("1 0 100 5 2 0 1000 9 0 0 0\n")
    disk = media.Media(tmp_path, tmp_path)
    with disk.watch() as moved:
        stat.write_text("9 0 108 5 4 0 1003 9 0 0 0\n")
    assert moved.fields() == {
        "media_read_bytes": 8 * 512,
        "media_write_bytes": 3 * 512,
        "media_reads": 8,
        "media_writes": 2,
    }
    assert media.from_another_cache(moved, 5000) == "the disk read 4096 of 5000 bytes: the rest came from another cache"
    assert media.from_another_cache(moved, 4096) == ""


def test_without_a_block_device_media_bytes_are_not_known(tmp_path: Path) -> None:
    nowhere = media.Media(tmp_path, tmp_path)
    with nowhere.watch() as moved:
        pass
    assert set(moved.fields().values()) == {None}
    assert nowhere.cause and media.from_another_cache(moved, 1) == ""
    assert cells.media_text([{"bytes": 1, "media_read_bytes": None}]) == "-"


def test_a_cold_read_that_another_cache_served_is_no_sample(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media.Media, "_counted", lambda _self: (7, 7, 7, 7))
    rows = session.run(request(small, tmp_path), no_step)
    causes = [row["cause"] for row in rows if row["kind"] == "missing"]
    assert causes == ["the disk read 0 of 4194304 bytes: the rest came from another cache"]


def test_a_hot_read_that_touched_the_medium_is_marked() -> None:
    row = {"direction": "read", "cache": "hot", "bytes": 100, "media_read_bytes": 50}
    assert cells.media_text([row]) == "0.50!"
    assert cells.media_text([row | {"cache": "cold", "media_read_bytes": 100}]) == "1.00"


def test_writes_tell_their_times_apart(small: Path, tmp_path: Path) -> None:
    rows = session.run(request(small, tmp_path), no_step)
    writes = [row for row in rows if row["kind"] == "trial" and row["direction"] == "write"]
    assert len(writes) == 3
    for row in writes:
        assert all(row[name] > 0 for name in ("create_s", "seconds", "fsync_s", "close_s", "verify_s"))
    rate = cells.durable_rate(writes)
    assert rate is not None and rate < max(row["bytes_per_second"] for row in writes)
    reads = [row for row in rows if row["kind"] == "trial" and row["direction"] == "read"]
    assert cells.durable_rate(reads) is None and "create_s" not in reads[0]


def test_the_engine_alone_is_measured_beside_every_size_of_request(small: Path, tmp_path: Path) -> None:
    rows = session.run(request(small, tmp_path), no_step)
    engine = [row for row in rows if row["kind"] == "engine"]
    assert {(row["direction"], row["request_bytes"]) for row in engine} == {
        ("read", 0),
        ("write", 0),
        ("read", 1 << 20),
    }
    assert len(engine) == 9
    assert {row["took"] for row in engine} == {"null"}


def test_percentiles_are_times_that_were_seen() -> None:
    found = results.latency_fields([i / 1e6 for i in range(1000, 0, -1)])
    assert {name: round(found[name]) for name in cells.PERCENTILES} == {
        "p50_us": 500,
        "p99_us": 990,
        "p999_us": 999,
        "max_us": 1000,
    }
    assert cells.latency_text([found]) == "500/990/999/1e+03"
    assert results.latency_fields([2e-6])["p999_us"] == pytest.approx(2)


def test_a_run_that_was_killed_is_continued(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    whole = session.run(request(small, tmp_path, out=out), no_step)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:25])
    half = len(lines) // 2
    rows = session.run(request(small, tmp_path, out=out, resume=True), no_step)
    assert rows[:half] == whole[:half]
    assert stored.read(out) == rows

    def variants(found: list[dict[str, Any]]) -> list[str]:
        names = ("kind", "path", "direction", "request_bytes", "cache", "repeat")
        return sorted(str([row.get(name) for name in names]) for row in found)

    assert variants(rows) == variants(whole)


def test_a_run_is_continued_whatever_the_driver_of_cufile_could_do_meanwhile(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    first, *rest = session.run(request(small, tmp_path, out=out), no_step)
    for name, refused in (("state", False), ("library", True)):
        machine = first["machine"] | {"cufile": first["machine"]["cufile"] | {name: "another"}}
        saved(out, [first | {"machine": machine}, *rest])
        with pytest.raises(penstock.Error, match="cufile") if refused else nullcontext():
            session.run(request(small, tmp_path, out=out, resume=True), no_step)


def test_a_whole_run_is_not_measured_again(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "rows.jsonl"
    whole = session.run(request(small, tmp_path, out=out), no_step)
    monkeypatch.setattr(grid, "run_trial", lambda *_: pytest.fail("measured again"))
    assert session.run(request(small, tmp_path, out=out, resume=True), no_step) == whole


def test_another_run_is_not_continued(penstock: Run, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    first, *rest = session.run(request(small, tmp_path, out=out), no_step)
    again = ("bench", small, "--dir", tmp_path, "--device", "host", "--out", out, "--resume")
    assert_one_line_error(penstock(*again, "--repeats", "2"), "rows.jsonl", "repeats: 3 and 2", "--resume")
    other = first | {"machine": first["machine"] | {"kernel": "1.0"}}
    saved(out, [other, *rest])
    assert_one_line_error(penstock(*again), "kernel: 1.0 and ")
    assert stored.read(out) == [other, *rest]


def test_without_resume_results_are_begun_anew(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    saved(out, session.run(request(small, tmp_path), no_step) * 2)
    rows = session.run(request(small, tmp_path, out=out), no_step)
    assert stored.read(out) == rows


def test_what_a_killed_run_left_is_removed_by_the_next(penstock: Run, small: Path, tmp_path: Path) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    command = [*PENSTOCK, "bench", str(small), "--dir", str(place), "--out", str(tmp_path / "a"), "--repeats", "1000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not list(place.glob("*/target.bin")) and time.monotonic() < deadline:
        time.sleep(0.05)
    (living,) = place.iterdir()
    assert remove_dead(place) == []
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert living.is_dir()
    assert penstock("bench", small, "--dir", place, "--out", tmp_path / "b", "--repeats", "1").code == 0
    assert list(place.iterdir()) == []


def test_folders_of_others_are_left_alone(context: penstock.Context, tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}foreign").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    with Workspace(context, tmp_path, 1 << 20) as place:
        assert remove_dead(tmp_path) == []
        assert place.directory.is_dir()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["elsewhere", f"{PREFIX}foreign", f"{PREFIX}link"]


def test_a_folder_of_a_run_that_was_killed_while_making_it_goes_when_it_is_old(tmp_path: Path) -> None:
    young, old = tmp_path / f"{UNBORN}{PREFIX}young", tmp_path / f"{UNBORN}{PREFIX}old"
    young.mkdir()
    old.mkdir()
    (old / LOCK).touch()
    os.utime(old, (time.time() - 3600,) * 2)
    assert remove_dead(tmp_path) == [old.name]
    assert young.is_dir() and not old.exists()


def test_a_removal_that_is_stopped_in_the_middle_leaves_the_lock(
    context: penstock.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the next run knows the folder for one of ours."""
    place = Workspace(context, tmp_path, 1 << 20)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), place:
        for name in ("a", "b"):
            (place.directory / name).touch()
        (place.directory / "c").mkdir()
        patch.setattr(shutil, "rmtree", _interrupted)
    os.close(place._lock)  # as the end of the process does
    assert place.directory.is_dir() and (place.directory / LOCK).exists()
    assert remove_dead(tmp_path) == [place.directory.name] and list(tmp_path.iterdir()) == []


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_nothing_is_left_when_the_folder_cannot_be_made(
    context: penstock.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("penstock.calibration.workspace._locked", full)
    with pytest.raises(penstock.Error, match="No space left"), Workspace(context, tmp_path, 1 << 20):
        pass
    assert list(tmp_path.iterdir()) == []


def test_unknown_peers_are_refused(penstock: Run, small: Path, tmp_path: Path) -> None:
    refused = penstock("bench", small, "--dir", tmp_path, "--peers", "fio,nfs")
    assert_one_line_error(refused, "--peers", "'nfs' is not known", "kvikio")


def test_only_peers_that_were_asked_for_are_tried() -> None:
    from penstock_bench.suites.core import peers
    from penstock_bench.suites.formats import peers as format_peers

    class Bench:
        peers = frozenset({"fio", "torch", "h5py"})
        settings: dict[str, Any] = {"kvikio_threads": [8], "kvikio_task_bytes": ["16MiB"]}

    bench: Any = Bench()
    assert {probe.name for probe in peers.probes(bench)} == {"fio read", "torch pinned copies"}
    assert [probe.name for probe in format_peers.probes(bench)] == ["h5py and copy"]
    assert {"kvikio", "cufile", "torch", "safetensors", "fio"} <= suites.PEERS


def test_the_command_says_where_a_byte_is_wrong(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Workspace.make

    def corrupted(self: Workspace, path: Path, **options: Any) -> Path:
        made = whole(self, path, **options)
        content = bytearray(made.read_bytes())
        content[3_000_000] ^= 0x40
        made.write_bytes(content)
        return made

    monkeypatch.setattr(Workspace, "make", corrupted)
    code = in_process(
        monkeypatch, ["bench", str(small), "--dir", str(tmp_path), "--device", "host", "--out", str(tmp_path / "rows")]
    )
    told = capsys.readouterr().err
    assert code == 1
    assert "verify" in told and "are wrong" in told and "offset 3000000" in told
    assert not any(row["kind"] == "trial" for row in map(json.loads, (tmp_path / "rows").read_text().splitlines()))


def test_a_state_that_cannot_be_proved_is_not_possible() -> None:
    trial = definition.Trial(cache="direct", path="direct")
    with pytest.raises(NotPossible, match="not direct"):
        grid._need_state(trial, 0.5, media.Moved(100, 0), 100)
    grid._need_state(trial, 0.0, media.Moved(100, 0), 100)


def test_all_runs_the_suites_that_say_so_and_each_has_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "suites"
    own.mkdir()
    for name, more in (("zeta", "in_all = true\n"), ("report", "in_all = true\n"), ("other", "")):
        (own / f"{name}.toml").write_text(more + SMALL.replace('"small"', f'"{name}"'))
    monkeypatch.setattr(definitions, "known", lambda: {path.stem: path for path in sorted(own.glob("*.toml"))})
    assert [one.name for one in definitions.in_all(False)] == ["report", "zeta"]
    where = ["--dir", str(tmp_path), "--device", "host", "--out", str(tmp_path / "rows.jsonl")]
    assert in_process(monkeypatch, ["bench", "all", "--repeats", "1", "--peers", "none", *where]) == 0
    told = capsys.readouterr().out
    assert all(f"results: {tmp_path}/rows-{name}.jsonl" in told for name in ("report", "zeta"))
    assert sorted(one.name for one in tmp_path.glob("*.jsonl")) == ["rows-report.jsonl", "rows-zeta.jsonl"]
    for name in ("report", "zeta"):
        rows = stored.read(tmp_path / f"rows-{name}.jsonl")
        assert rows[0]["suite"] == name and rows[0]["peers"] == []


def test_suites_of_penstock_in_all_are_those_that_exist() -> None:
    names = [one.name for one in definitions.in_all(True)]
    assert names[0] == "report" and {"report", "first-touch", "formats", "gpu-io", "io-size", "multiplicity"} <= set(
        names
    ) <= set(definitions.known())


def test_what_moves_no_bytes_is_told_in_milliseconds() -> None:
    row = {"bytes": 1, "seconds": 0.002, "bytes_per_second": 500.0, "cpu_user_s": 0.1, "cpu_system_s": 0.0}
    assert cells.rate_cells([row] * 3) == ("2 ms", "2–2")
    assert cells.cpu_text([row]) == ""
    moved = row | {"bytes": 1 << 30, "bytes_per_second": 3e9}
    assert cells.rate_cells([moved]) == ("3", "") and cells.cpu_text([moved]) == "0.093"
