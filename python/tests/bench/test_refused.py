"""What measuring and its readers refuse: a refused run destroys no results, numbers that are none are no results, and
what the file says of sizes is looked at before memory or disk is used."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Ran, assert_one_line_error, without_signals
from places import DATA

from penstock import Context, Error, cli
from penstock_bench.engine.results import Results
from penstock_bench.gdsio import run as gdsio
from penstock_bench.gdsio.job import Flags, job_of
from penstock_bench.h5bench import config as h5bench_config
from penstock_bench.h5bench.benchmark import Options
from penstock_bench.h5bench.parts import parts_of
from penstock_bench.h5bench.run import perform
from penstock_bench.runs.stored import read, unfinished

Run = Callable[..., Ran]
RESULTS = DATA / "core-host.jsonl"
BENCH = ("bench", "io-size", "--quick", "--device", "host", "--file-bytes", "4MiB")
CONTIG = {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "NUM_DIMS": "1", "DIM_1": "64", "TIMESTEPS": "2"}


@pytest.fixture
def penstock(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, which saves a second for each of so many."""
    monkeypatch.setenv("PENSTOCK_PROGRESS", "0")
    without_signals(monkeypatch)

    def run(*arguments: str | Path) -> Ran:
        code = cli.main([str(one) for one in arguments])
        return Ran(code, *capsys.readouterr())

    return run


def runs(place: Path, **changed: str) -> list[h5bench_config.H5benchRun]:
    one = {"benchmark": "write", "file": "a.h5", "configuration": CONTIG | changed}
    whole = {"directory": str(place), "mpi": {"ranks": "1"}, "vol": {}, "file-system": {}, "benchmarks": [one]}
    config = place / "config.json"
    config.write_text(json.dumps(whole))
    return h5bench_config.load(config)


@pytest.mark.parametrize("option", [("--seconds", "auto"), ("--repeats", "auto"), ("--peers", "fio")])
def test_a_run_that_would_measure_nothing_of_what_was_asked_is_refused(
    tmp_path: Path, penstock: Run, option: tuple[str, str]
) -> None:
    assert_one_line_error(penstock(*BENCH, "--dir", tmp_path, "--out", tmp_path / "r.jsonl", *option), option[0])


@pytest.mark.parametrize("remote", ["missing", "file", "."])
def test_a_second_directory_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, penstock: Run, remote: str
) -> None:
    (tmp_path / "file").write_text("x")
    out = tmp_path / "old.jsonl"
    out.write_text("old\n")
    ran = penstock(*BENCH, "--dir", tmp_path, "--out", out, "--remote", tmp_path / remote)
    assert_one_line_error(ran, "--remote")
    assert out.read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "old.jsonl"]


def test_a_refused_run_leaves_older_results_and_makes_no_new_file(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text("old\n")
    for path in (old, new):
        with Results(path) as results:
            results.add("machine", machine={})
    assert old.read_text() == "old\n" and not new.exists()


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """No file of this process grows beyond the bytes given."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda bytes: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("room", [0, 10])
def test_results_that_cannot_be_written_leave_no_file(
    tmp_path: Path, full_disk: Callable[[int], None], room: int
) -> None:
    path = tmp_path / "new.jsonl"
    full_disk(room)
    with pytest.raises(Error, match="--out") as told, Results(path) as results:
        results.add("machine", machine={})
        results.add("ceiling", direction="read")
    assert told.value.file == str(path)
    assert not path.exists()


def test_results_that_were_written_stay_when_the_disk_is_full(tmp_path: Path, full_disk: Callable[[int], None]) -> None:
    path = tmp_path / "new.jsonl"
    with pytest.raises(Error, match="write results"), Results(path) as results:
        results.add("machine", machine={})
        results.add("ceiling", direction="read")
        full_disk(path.stat().st_size)
        results.add("ceiling", direction="write")
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["machine", "ceiling"]


def test_older_results_end_with_the_first_new_sample(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text("old and long\n" * 100)
    with Results(path) as results:
        results.add("machine", machine={})
        results.add("ceiling", direction="read")
        kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]  # while the run goes on
        results.add("ceiling", direction="write")
    assert kinds == ["machine", "ceiling"]
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["machine", "ceiling", "ceiling"]


def test_a_run_with_another_second_directory_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    started: dict[str, Any] = json.loads(RESULTS.read_text().splitlines()[0]) | {"definition": "1", "peers": []}
    disks = [{"file_system": "ext4"}, {"file_system": "nfs4"}]
    path.write_text(json.dumps(started | {"remote": disks[0]}) + "\n")
    assert unfinished(path, started | {"remote": disks[0]})
    for other in (started, started | {"remote": disks[1]}):
        with pytest.raises(Error, match="remote"):
            unfinished(path, other)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "-1", "1" + "0" * 400, '"fast"', "true"])
def test_a_rate_that_is_no_number_is_no_result(tmp_path: Path, value: str) -> None:
    machine, *_ = RESULTS.read_text().splitlines()
    row = {"kind": "core", "name": "a", "bytes": 1, "bytes_per_second": 1.5, "cpu_user_s": 0, "cpu_system_s": 0}
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(f"{machine}\n{json.dumps(row)}\n")
    bad.write_text(f"{machine}\n{json.dumps(row).replace('1.5', value)}\n{json.dumps(row)}\n")
    assert len(read(good)) == 2
    with pytest.raises(Error, match="line 2 is not a result"):
        read(bad)


def test_a_percentile_that_is_no_number_is_no_result(tmp_path: Path) -> None:
    lines = RESULTS.read_text().splitlines()
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(line.replace('"p99_us": ', '"p99_us": "x", "was": ') for line in lines) + "\n")
    with pytest.raises(Error, match="p99_us"):
        read(path)


@pytest.mark.parametrize("command", ["export", "compare", "report"])
def test_what_is_read_is_not_written_over(tmp_path: Path, penstock: Run, command: str) -> None:
    path, other = tmp_path / "r.jsonl", tmp_path / "link.jsonl"
    path.write_bytes(RESULTS.read_bytes())
    other.symlink_to(path)
    inputs = [path, path] if command == "compare" else [path]
    assert_one_line_error(penstock(command, *inputs, "--out", other), "--out")
    assert path.read_bytes() == RESULTS.read_bytes()


@pytest.mark.parametrize("command", ["export", "compare", "report", "h5bench", "bench"])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(
    tmp_path: Path, penstock: Run, command: str
) -> None:
    """Nothing is printed, and nothing is measured or made."""
    runs(tmp_path)
    inputs = {"compare": [RESULTS, RESULTS], "h5bench": [tmp_path / "config.json", "--device", "host"]}
    if command == "bench":
        inputs[command] = [*BENCH[1:], "--dir", tmp_path]
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = penstock(command, *inputs.get(command, [RESULTS]), "--out", tmp_path / "missing" / "out.csv")
    assert_one_line_error(ran, str(tmp_path / "missing" / "out.csv"))
    assert ran.out == "" and sorted(path.name for path in tmp_path.iterdir()) == before


def test_h5bench_looks_at_the_table_of_its_configuration_first(tmp_path: Path, penstock: Run) -> None:
    runs(tmp_path, CSV_FILE="missing/table.csv")
    assert_one_line_error(penstock("h5bench", tmp_path / "config.json", "--device", "host"), "missing/table.csv")
    assert not (tmp_path / "a.h5").exists()


def test_h5bench_writes_its_table_into_a_folder_that_it_makes(tmp_path: Path, penstock: Run) -> None:
    runs(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"directory": str(tmp_path / "new")}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ran = penstock("h5bench", tmp_path / "config.json", "--device", "host", "--out", tmp_path / "new" / "out.csv")
    assert ran.code == 0, ran.err
    assert (tmp_path / "new" / "out.csv").read_text().startswith("metric, value, unit")


def test_many_threads_of_gdsio_have_memory_to_stage_in(tmp_path: Path) -> None:
    flags = Flags(file=str(tmp_path / "a"), device="host", transfer="4", threads="512", io="4K", size="2M", io_type="1")
    (done,) = gdsio.run(job_of(flags))
    assert done.load["bytes"] == 2 << 20 and done.path == "buffered"


@pytest.mark.parametrize("kind", ["pipe", "directory", "below a file"])
def test_gdsio_writes_regular_files_only(tmp_path: Path, penstock: Run, kind: str) -> None:
    place = tmp_path / "a"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    else:
        place.write_text("x")
        place = place / "b"
    ran = penstock("gdsio", "-d", "host", "-x", "4", "-I", "1", "-s", "1M", "-f", place)
    assert_one_line_error(ran, "gdsio", str(place))
    assert (tmp_path / "a").exists()


def test_files_that_gdsio_was_making_when_it_was_stopped_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def stop_at_the_second(descriptor: int, start: int, length: int) -> None:
        made.append(descriptor)
        if len(made) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "posix_fallocate", stop_at_the_second)
    flags = Flags(directory=str(tmp_path), device="host", transfer="4", threads="2", size="1M", io_type="1")
    with pytest.raises(KeyboardInterrupt):
        list(gdsio.run(job_of(flags)))
    assert len(made) == 2 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["-s", "-o", "-i"])
def test_gdsio_names_the_flag_whose_size_no_file_can_have(tmp_path: Path, penstock: Run, flag: str) -> None:
    assert_one_line_error(penstock("gdsio", "-d", "host", "-f", tmp_path / "a", flag, "9" * 30), f"gdsio: {flag}:")


def test_a_line_of_garbage_is_quoted_in_part_only(tmp_path: Path, penstock: Run) -> None:
    config = tmp_path / "config"
    config.write_text("x" * 100_000)
    ran = penstock("gdsio", config)
    assert_one_line_error(ran, "no section headers")
    assert len(ran.err) < 1000


def test_a_job_is_of_a_configuration_file(tmp_path: Path, penstock: Run) -> None:
    assert_one_line_error(penstock("gdsio", "-d", "host", "-f", tmp_path / "a", "--job", "a"), "--job")


def test_more_selections_than_fit_into_memory_are_counted_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = runs(tmp_path)
    many = 1 << 22
    huge = replace(run, option="STRIDED", blocks=((many + 1, many),), block_count=many, dims=(1 << 46,))
    monkeypatch.setattr("penstock_bench.h5bench.parts._indexes", lambda _: pytest.fail("they were made"))
    with pytest.raises(Error, match=f"{many} selections"):
        parts_of(huge)
    monkeypatch.undo()
    few = parts_of(replace(huge, block_count=3, blocks=((10, 4),), dims=(64,)))
    assert [part.count for part in few] == [4, 4, 4]


def test_steps_need_room_beside_their_particles(tmp_path: Path, penstock: Run) -> None:
    runs(tmp_path, DIM_1="1", TIMESTEPS=str(1 << 30))
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    if free > 4 << 40:
        pytest.skip("this disk has room for them")
    assert_one_line_error(penstock("h5bench", tmp_path / "config.json", "--device", "host"), "the file needs 44")
    assert not (tmp_path / "a.h5").exists()


def test_computing_for_ages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Error, match="more than a day"):
        runs(tmp_path, EMULATED_COMPUTE_TIME_PER_TIMESTEP="999999999999 min")


def test_no_more_steps_are_delayed_than_there_are(tmp_path: Path, penstock: Run) -> None:
    """Memory for as many as the configuration says would not be there."""
    (write,) = runs(tmp_path, MODE="ASYNC", DELAYED_CLOSE_TIMESTEPS="1 T")
    with Context("host") as context:
        for run in (write, replace(write, benchmark="read")):
            assert perform(context, run, Options())["verified"] == "yes"


@pytest.mark.parametrize("target", ["pipe", "link to a pipe", "directory", ""])
def test_a_profile_takes_the_place_of_a_regular_file_only(tmp_path: Path, penstock: Run, target: str) -> None:
    """/dev/null, named as root, would be gone."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to a pipe").symlink_to("pipe")
    (tmp_path / "directory").mkdir()
    out = tmp_path / target if target else ""
    ran = penstock("calibrate", tmp_path, "--device", "host", "--seconds", "1", "--out", out)
    assert_one_line_error(ran, "not a regular file" if target else "--out")
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link to a pipe").is_symlink()


@pytest.mark.parametrize("profile", [5, 1.5, b"x", [1], [None], [b"x"], {"a": 1}, True, object()])
def test_what_names_no_profile_is_a_type_error(profile: Any) -> None:
    with pytest.raises(TypeError, match="profile"):
        Context("host", profile=profile)


@pytest.mark.parametrize("name", ["", "a\0b.csv"])
def test_a_profile_without_a_usable_name_is_an_error_that_names_the_argument(tmp_path: Path, name: str) -> None:
    for profile in (name, [name], [str(tmp_path), name]):
        with pytest.raises(Error, match=r"profile: the name (is empty|holds a NUL byte)"):
            Context("host", profile=profile)


def test_a_profile_may_have_any_name_the_system_allows(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    with pytest.raises(Error, match="No such file"):
        Context("host", profile=folder / "none.csv")
    folder.mkdir()
    with Context("host", profile=folder) as context:
        assert context.device["emulated"]


SUITE = 'file_bytes = "1MiB"\nrepeats = 1\nseconds = 1\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("repeats = 1\nseconds = 1\n", "file_bytes is missing"),
        (SUITE, "nothing would be measured"),
        (SUITE.replace("repeats = 1", "repeats = 0") + '[[case]]\npath = "auto"\n', "above 0"),
        (SUITE.replace("seconds = 1", "seconds = nan") + '[[case]]\npath = "auto"\n', "above 0"),
        (SUITE + "[io-size]\n", "is missing"),
        (SUITE + "[multiplicity]\n", "is missing"),
        (SUITE + 'case = [5]\nkind = "first-touch"\n', "suite.toml"),
    ],
)
def test_a_suite_that_lacks_something_says_what(tmp_path: Path, penstock: Run, text: str, says: str) -> None:
    (tmp_path / "suite.toml").write_text(text)
    out = tmp_path / "r.jsonl"
    ran = penstock("bench", tmp_path / "suite.toml", "--dir", tmp_path, "--device", "host", "--out", out)
    assert_one_line_error(ran, says)
    assert [path.name for path in tmp_path.iterdir()] == ["suite.toml"]


@pytest.mark.parametrize("name", ["a.h5", "a\0b"])
def test_the_table_of_h5bench_does_not_take_the_place_of_its_data(tmp_path: Path, name: str) -> None:
    with pytest.raises(Error, match="CSV_FILE"):
        runs(tmp_path, CSV_FILE=name)
