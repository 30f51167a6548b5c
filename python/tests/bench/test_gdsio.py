"""penstock gdsio: gdsio's flags mean what they mean there, its line can be read by what reads gdsio's, the path in it
is the one that was taken, and what this machine lacks is refused by name."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import PENSTOCK, Ran, assert_one_line_error
from mounts import Mounted, root_only

from penstock import Context, Error
from penstock_bench.gdsio import run as gdsio
from penstock_bench.gdsio.job import Flags, Job, job_of, load

# As published wrappers of gdsio read its line.
LINE = re.compile(
    r"IoType: (?P<io_type>\w+) XferType: (?P<transfer>\w+) Threads: (?P<threads>\d+)(?: IoDepth: (?P<depth>\d+))? "
    r"DataSetSize: (?P<moved>\d+)/(?P<size>\d+)\(KiB\) IOSize: (?P<io>[\d.-]+)\(KiB\) "
    r"Throughput: (?P<rate>\d+\.\d+) GiB/sec, Avg_Latency: (?P<latency>\d+\.\d+) usecs "
    r"ops: (?P<ops>\d+) total_time (?P<time>\d+\.\d+) secs Path: (?P<path>[\w+-]+)(?: Device: emulated)?"
)
WRITE = {"io_type": "1", "size": "1M", "io": "64K", "transfer": "2", "device": "host"}
READ = WRITE | {"io_type": "0"}
Run = Callable[..., Ran]


def run(path: Path, flags: dict[str, Any], **more: Any) -> list[gdsio.GdsioReport]:
    return list(gdsio.run(job_of(Flags(**{"file": str(path)} | flags | more))))


def parsed(line: str) -> dict[str, str]:
    found = LINE.fullmatch(line)
    assert found is not None, line
    return found.groupdict()


@pytest.fixture
def stamped(tmp_path: Path) -> Path:
    """A file that a verified write made."""
    path = tmp_path / "stamped.bin"
    run(path, WRITE, verify=True)
    return path


@pytest.mark.parametrize(
    ("transfer", "word", "path"),
    [("1", "CPUONLY", "direct"), ("2", "CPU_GPU", "direct"), ("3", "CPU_ASYNC_GPU", "direct"),
     ("4", "CPU_CACHED_GPU", "buffered")],
)  # fmt: skip
def test_each_transfer_type_takes_its_path_and_says_so(tmp_path: Path, transfer: str, word: str, path: str) -> None:
    wrote, checked = run(tmp_path / "f", WRITE, transfer=transfer, threads="2", verify=True)
    for report, io_type in ((wrote, "WRITE"), (checked, "READ")):
        found = parsed(report.line())
        assert (found["io_type"], found["transfer"], found["path"]) == (io_type, word, path)
        assert (found["threads"], found["depth"]) == ("2", None)
        assert (found["moved"], found["size"], found["io"], found["ops"]) == ("1024", "1024", "64", "16")
        rate = (1 << 20) / float(found["time"]) / (1 << 30)
        assert float(found["rate"]) == pytest.approx(rate, rel=0.01)
        assert 0 < float(found["latency"]) <= float(found["time"]) * 1e6
    assert checked.load["verified_bytes"] == 1 << 20
    assert (tmp_path / "f").stat().st_size == 1 << 20


def test_what_a_verified_write_leaves_is_the_stamp(context: Context, stamped: Path) -> None:
    memory = context.allocate(1 << 20)
    context.stamp(memory, 0, gdsio.STAMP_SEED)
    assert stamped.read_bytes() == np.asarray(memory).tobytes()


@pytest.mark.parametrize("transfer", ["1", "2", "3", "4", "auto"])
def test_one_flipped_byte_fails_the_read(stamped: Path, transfer: str) -> None:
    assert run(stamped, READ, transfer=transfer, verify=True)[0].load["verified_bytes"] == 1 << 20
    with stamped.open("r+b") as stream:
        stream.seek(700_001)
        was = stream.read(1)
        stream.seek(700_001)
        stream.write(bytes([was[0] ^ 4]))
    with pytest.raises(Error) as caught:
        run(stamped, READ, transfer=transfer, verify=True)
    assert (caught.value.code, caught.value.operation) == ("io_error", "verify")
    assert caught.value.offset_bytes in range(699_990, 700_002)
    assert run(stamped, READ, transfer=transfer)[0].load["verified_bytes"] == 0


def test_the_command_prints_the_line_and_fails_on_a_flipped_byte(penstock: Run, tmp_path: Path) -> None:
    flags = ("gdsio", "-f", tmp_path / "f", "-d", "host", "-w", "2", "-s", "1M", "-i", "128K", "-x", "4")
    ran = penstock(*flags, "-I", "1", "-V")
    assert ran.code == 0, ran.err
    first, word, second, end = ran.out.split("\n")
    assert (word, end) == ("Verifying data", "")
    assert parsed(first)["io_type"] == "WRITE" and parsed(second)["io_type"] == "READ"
    content = bytearray((tmp_path / "f").read_bytes())
    content[5] ^= 1
    (tmp_path / "f").write_bytes(content)
    ran = penstock(*flags, "-I", "0", "-V")
    assert ran.code == 1
    assert_one_line_error(ran, "verify", str(tmp_path / "f"))
    ran = penstock(*flags, "--json")
    assert parsed(ran.json["line"])["path"] == ran.json["path"] == "buffered"
    assert ran.json["reads"]["p99_us"] >= ran.json["reads"]["p50_us"] > 0


def test_a_directory_has_a_file_for_each_thread(tmp_path: Path) -> None:
    given = {"file": None, "directory": str(tmp_path), "threads": "3"}
    with pytest.raises(Error) as caught:
        run(tmp_path, READ | given)
    assert caught.value.file == str(tmp_path / "gdsio.0")
    assert "write it first, with -I 1" in caught.value.advice
    (wrote,) = run(tmp_path, WRITE | given)
    assert parsed(wrote.line())["size"] == str(3 * 1024)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gdsio.0", "gdsio.1", "gdsio.2"]
    assert run(tmp_path, READ | given)[0].load["bytes"] == 3 << 20


def test_a_time_limit_goes_over_the_file_again(stamped: Path) -> None:
    (report,) = run(stamped, READ, seconds="0.3", verify=True)
    assert report.load["bytes"] > 1 << 20
    assert report.load["seconds"] >= 0.29
    assert parsed(report.line())["size"] == "1024"


def test_random_reads_of_drawn_sizes_are_verified(stamped: Path) -> None:
    flags = {"io_type": "2", "io": "4K:32K:4K", "seed": "9", "verify": True, "threads": "2"}
    for more in ({}, {"unaligned": True}, {"alignment": "512"}):
        (report,) = run(stamped, READ | flags, **more)
        assert parsed(report.line())["io_type"] == "RANDREAD"
        assert parsed(report.line())["io"] == "4-32-4"
        assert report.load["verified_bytes"] == report.load["bytes"] > 0


def test_a_start_offset_leaves_what_is_before_it(context: Context, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 8192)
    run(tmp_path / "f", WRITE, start="8K", verify=True)
    content = (tmp_path / "f").read_bytes()
    assert content[:8192] == b"x" * 8192
    assert len(content) == 8192 + (1 << 20)


def test_memory_is_filled_as_asked_for(tmp_path: Path) -> None:
    run(tmp_path / "plain", WRITE)
    run(tmp_path / "random", WRITE, random_fill=True)
    run(tmp_path / "again", WRITE, refill=True)
    distinct = {name: len(set((tmp_path / name).read_bytes()[:65536])) for name in ("plain", "random", "again")}
    assert distinct["plain"] < 8 < 200 < min(distinct["random"], distinct["again"])


def test_o_1_goes_through_the_page_cache_and_the_line_says_so(stamped: Path) -> None:
    (report,) = run(stamped, READ, opened="1")
    assert report.path == "buffered"


@pytest.mark.parametrize("transfer", ["0", "5", "6", "7"])
def test_cufile_is_taken_or_refused_but_never_replaced(penstock: Run, tmp_path: Path, transfer: str) -> None:
    batch = ("-B", "4") if transfer in "67" else ()
    place = tmp_path / "f"
    ran = penstock("gdsio", "-f", place, "-s", "1M", "-i", "64K", "-x", transfer, *batch, "-I", "1", "-V", "-d", "host")
    if ran.code == 0:  # on a machine with cuFile
        path = parsed(ran.out.splitlines()[0])["path"]
        assert path in {"0": ("gds", "gds-compat"), "5": ("gds-stream",)}.get(transfer, ("gds-batch",))
        return
    assert_one_line_error(ran, f"gdsio: -x {transfer}: ", "is not possible here", "penstock doctor")
    assert not place.exists(), "a run that failed leaves no file behind"


def job(**flags: Any) -> Job:
    return job_of(Flags(**{"file": "f"} | flags))


def test_flags_become_the_job_that_gdsio_would_run() -> None:
    one = job(device="1", node="0", threads="8", size="500M", io="1M", transfer="0", io_type="3", seconds="120",
              seed="4", alignment="8K", start="1G", verify=True, skip_register=True)  # fmt: skip
    assert (one.device, one.node, one.threads, one.depth) == ("cuda:1", 0, 8, 1)
    assert (one.size, one.io, one.start, one.alignment) == (500 << 20, (1 << 20, 1 << 20, 0), 1 << 30, 8192)
    assert (one.writes, one.random, one.seconds, one.seed) == (True, True, 120.0, 4)
    assert job(transfer="6", threads="8").threads == 1 and job(transfer="6", threads="8").depth == 8
    both = job(transfer="7", threads="2", batch="16", mixed="70")
    assert (both.threads, both.depth, both.read_percent, both.io_type) == (2, 16, 70, "MIXED")
    memories = [job(transfer="0", memory=kind).memory for kind in "0234"]
    assert memories == ["device", "pinned", "system", "mmap"]
    assert job(transfer="1").memory == "system"


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("-f, -D", {"directory": "d"}),
    ("-f, -D", {"file": None}),
    ("-f", {"file": ""}),
    ("-x", {"transfer": "8"}),
    ("-x", {"transfer": ""}),
    ("-m", {"transfer": "2", "memory": "3"}),
    ("-m", {"transfer": "0", "memory": "1"}),
    ("-m", {"memory": "7"}),
    ("-B", {"transfer": "2", "batch": "4"}),
    ("-M", {"transfer": "0", "mixed": "50"}),
    ("-M", {"transfer": "6", "mixed": "101"}),
    ("-O", {"transfer": "0", "opened": "1"}),
    ("-O", {"opened": "2"}),
    ("-P", {"rdma": "sockaddr://1.2.3.4"}),
    ("-p", {"nvlinks": True}),
    ("-F", {"refill": True, "transfer": "2"}),
    ("-a", {"alignment": "8K"}),
    ("-U", {"unaligned": True}),
    ("-I", {"io_type": "4"}),
    ("-w", {"threads": "0"}),
    ("-w", {"file": None, "directory": "d", "transfer": "6", "threads": "4"}),
    ("-s", {"io_type": "1"}),
    ("-s", {"size": "much"}),
    ("-s", {"size": "-1"}),
    ("-i", {"io": "0"}),
    ("-i", {"io": "1M:2M"}),
    ("-i", {"io": "2M:1M:4K"}),
    ("-i", {"size": "64K", "io": "1M"}),
    ("-T", {"seconds": "0"}),
    ("-T", {"seconds": "nan"}),
    ("-k", {"seed": "x"}),
    ("-d", {"device": "gpu"}),
    ("-n", {"node": "-1"}),
]


@pytest.mark.parametrize(("flag", "flags"), REFUSED, ids=lambda value: str(value))
def test_what_cannot_be_is_refused_by_its_flag(flag: str, flags: dict[str, Any]) -> None:
    with pytest.raises(Error) as caught:
        job(**flags)
    assert caught.value.cause.startswith(f"{flag}: ")
    assert caught.value.advice


def test_wrong_command_lines_are_one_line(penstock: Run, tmp_path: Path) -> None:
    ran = penstock("gdsio", "-f", tmp_path / "f", "-Z", "1")
    assert_one_line_error(ran, "-Z")
    assert ran.code == 2
    assert_one_line_error(penstock("gdsio", "-f", tmp_path / "f", "-x", "4", "-d", "host"), str(tmp_path / "f"), "-I 1")
    absent = max(int(path.name[4:]) for path in gdsio._NODES.glob("node[0-9]*")) + 1 if gdsio._NODES.exists() else 0
    ran = penstock("gdsio", "-f", tmp_path / "f", "-s", "1M", "-x", "4", "-I", "1", "-n", absent, "-d", "host")
    assert_one_line_error(ran, f"-n: there is no NUMA node {absent}")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(Error, match="bytes are free"):
        run(tmp_path / "f", WRITE, size="4000G")
    with pytest.raises(Error, match="No such file"):
        run(tmp_path / "no" / "f", WRITE)
    assert list(tmp_path.iterdir()) == []


def test_data_of_a_known_format_are_not_written_over(tmp_path: Path) -> None:
    np.save(tmp_path / "f", np.arange(1000.0))
    (tmp_path / "f.npy").rename(tmp_path / "f")
    with pytest.raises(Error, match=r"known format \(npy\)"):
        run(tmp_path / "f", WRITE)
    assert np.array_equal(np.load(tmp_path / "f"), np.arange(1000.0))


@root_only
def test_a_small_disk_is_not_filled(tmp_path: Path) -> None:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=70m", "tmpfs") as place:
        with pytest.raises(Error, match="64 MiB to spare"):
            run(place / "f", WRITE, size="8M", transfer="4")
        assert list(place.iterdir()) == []


@pytest.mark.parametrize("before", [False, True])
def test_a_run_that_is_ended_leaves_no_file_that_it_made(tmp_path: Path, before: bool) -> None:
    place = tmp_path / "f"
    if before:
        place.write_bytes(b"mine")
    flags = ["-f", place, "-d", "host", "-s", "4M", "-i", "64K", "-x", "4", "-I", "1", "-T", "60"]
    process = subprocess.Popen([*PENSTOCK, "gdsio", *map(str, flags)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (place.exists() and place.stat().st_size == 4 << 20) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "penstock: terminated\n")
    assert place.exists() == before


def test_threads_run_on_the_processors_of_their_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = sorted(os.sched_getaffinity(0))
    bound: list[set[int]] = []
    monkeypatch.setattr(gdsio, "_NODES", tmp_path)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: bound.append(set(cpus)))
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0" / "cpulist").write_text(f"{mine[0]}\n")
    gdsio.bind(0)
    assert bound == [{mine[0]}]
    (tmp_path / "node0" / "cpulist").write_text("4000-4003\n")
    with pytest.raises(Error, match="may use no processor"):
        gdsio.bind(0)


CONFIG = """[global]
name=test
xfer_type=4
rw=write
bs=64K
size=1M
do_verify=1
gpu_dev_id=host
skip_bufregister=0
[job1]
num_threads=2
filename={place}/one
[job2]
num_threads=1
directory={place}
"""


def test_a_configuration_file_runs_its_jobs(penstock: Run, tmp_path: Path) -> None:
    config = tmp_path / "rw.gdsio"
    config.write_text(CONFIG.format(place=tmp_path))
    ran = penstock("gdsio", config)
    assert ran.code == 0, ran.err
    lines = [parsed(line) for line in ran.out.splitlines() if line != "Verifying data"]
    assert sorted((one["io_type"], one["threads"]) for one in lines) == [
        ("READ", "1"), ("READ", "2"), ("WRITE", "1"), ("WRITE", "2")
    ]  # fmt: skip
    assert {"one", "gdsio.0"} <= {path.name for path in tmp_path.iterdir()}
    assert_one_line_error(penstock("gdsio", config, "-w", "2"), "flags beside a configuration file")


def test_configuration_files_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    config = tmp_path / "rw.gdsio"
    for text, words in (
        ("[global]\nrw=read\n", "there is no job"),
        ("rw=read\n", "no section"),
        ("[job1]\nfilename=f\nspeed=9\n", "[job1] there is no key 'speed'"),
        ("[job1]\nfilename=f\ndo_verify=2\n", "[job1] do_verify: '2'"),
        ("[job1]\nfilename=f\nxfer_type=9\n", "[job1] -x: there is no transfer type '9'"),
        ("[job1]\nfilename=f\n[job1]\nfilename=g\n", "job1"),
    ):
        config.write_text(text)
        with pytest.raises(Error) as caught:
            load(config)
        assert caught.value.file == str(config) and words in caught.value.cause, caught.value
    (one,) = load_text(config, "[job1]\nfilename=f\nrw=randread\nruntime=3\n")
    assert (one.random, one.writes, one.seconds) == (True, False, 3.0)


def load_text(place: Path, text: str) -> list[Job]:
    place.write_text(text)
    return [one for _, one in load(place)]


def test_the_line_is_gdsios_to_the_letter() -> None:
    reads = {"count": 799606, "mean_us": 1197.370995}
    found = {"bytes": 818796544 << 10, "operations": 799606, "seconds": 119.679102, "reads": reads, "writes": None,
             "path_bytes": {"gds-compat": 818796544 << 10}}  # fmt: skip
    one = job(threads="8", size="500M", io="1M", transfer="0", seconds="120")
    report = gdsio.GdsioReport(one, found, False, 4096000 << 10)
    assert report.line() == (
        "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 818796544/4096000(KiB) IOSize: 1024(KiB) "
        "Throughput: 6.524658 GiB/sec, Avg_Latency: 1197.370995 usecs ops: 799606 total_time 119.679102 secs "
        "Path: gds-compat"
    )
    batch = gdsio.GdsioReport(job(threads="8", size="500M", transfer="6"), found, False, 4096000 << 10)
    assert " XferType: GPU_BATCH Threads: 1 IoDepth: 8 DataSetSize: " in batch.line()
    mixed = found | {"path_bytes": {"buffered": 1, "direct": 2}}
    assert gdsio.GdsioReport(one, mixed, True, 1).line().endswith(" Path: direct+buffered Device: emulated")


def test_json_of_the_command_is_one_object_a_line(penstock: Run, tmp_path: Path) -> None:
    flags = ("-f", tmp_path / "f", "-d", "host", "-s", "1M", "-x", "auto", "-I", "1", "-V", "--json")
    ran = penstock("gdsio", *flags)
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [parsed(row["line"])["io_type"] for row in rows] == ["WRITE", "READ"]
    assert rows[1]["verified_bytes"] == 1 << 20
