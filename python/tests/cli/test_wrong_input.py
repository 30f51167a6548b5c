"""Wrong input from a shell: each a clear single line, in bounded time, and nothing left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from command import PENSTOCK, Ran, assert_one_line_error
from mounts import Mounted, root_only

Run = Callable[..., Ran]


def test_missing_file(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("read", tmp_path / "absent.bin"), "open", "absent.bin", "No such file")


def test_names_that_are_empty(penstock: Run, tmp_path: Path) -> None:
    for arguments, words in (
        (["read", ""], "read: FILE: the name is empty; give the name of a file"),
        (["write", "", "--bytes", "1"], "write: FILE: the name is empty"),
        (["doctor", ""], "doctor: PATH: the name is empty"),
        (["report", ""], "report: RESULTS: the name is empty"),
        (["bench", "report", "--dir", ""], "bench: --dir: the name is empty"),
        (["bench", "report", "--out", ""], "bench: --out: the name is empty"),
    ):
        ran = penstock(*arguments, cwd=tmp_path)
        assert_one_line_error(ran, words)
        assert ran.code == 2, arguments
    assert list(tmp_path.iterdir()) == []


def test_directory(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("read", tmp_path), str(tmp_path), "directory")


def test_fifo_does_not_hang(penstock: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert_one_line_error(penstock("read", tmp_path / "pipe"), "pipe")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_device_file(penstock: Run, device: str) -> None:
    assert_one_line_error(penstock("read", device), device)


def test_device_file_is_never_replaced(penstock: Run) -> None:
    assert_one_line_error(penstock("write", "/dev/null", "--bytes", "4096"), "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_write_to_a_directory(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("write", tmp_path, "--bytes", "4096"), str(tmp_path))


def test_write_into_a_missing_directory(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("write", tmp_path / "no" / "file", "--bytes", "4096"), "No such file")


def _as_nobody(warm: Path, *arguments: str | Path) -> Ran:
    """Runs the command without privileges, also when the tests run as root. The interpreter may lie where only root can
    read, so a first run on the file `warm` loads every module before the privileges are dropped."""
    script = (
        "import contextlib, io, os, sys; from penstock.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['read', sys.argv.pop(1)])\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sys.exit(main())"
    )
    command = [sys.executable, "-c", script, str(warm), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_no_permission(sample: Path) -> None:
    warm = sample.with_name("warm.bin")
    warm.write_bytes(b"warm")
    sample.chmod(0)
    for directory in (sample.parent, *sample.parent.parents[:3]):
        if directory != Path("/tmp"):
            directory.chmod(directory.stat().st_mode | 0o011)
    assert_one_line_error(_as_nobody(warm, "read", sample), "sample.bin", "Permission denied")


def test_offset_beyond_the_end(penstock: Run, sample: Path) -> None:
    assert_one_line_error(
        penstock("read", sample, "--offset", "5000004"), "read", "5000004", "beyond the end", "5000003"
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    "value", ["-1", "-4KiB", "many", "", "1e400", "99999999999999999999", "9223372036854775808", "nan"]
)
@pytest.mark.parametrize("option", ["--offset", "--bytes", "--chunk-bytes"])
def test_numbers_that_are_none(penstock: Run, sample: Path, option: str, value: str) -> None:
    assert_one_line_error(penstock("read", sample, f"{option}={value}"), option)


@pytest.mark.parametrize(
    "value", ["9223372036854775808", "18446744073709551616", "1" + "0" * 30, "1e19", "8388608TiB", "1e400"]
)
def test_numbers_that_are_too_large_are_not_called_no_number(penstock: Run, sample: Path, value: str) -> None:
    ran = penstock("read", sample, f"--bytes={value}")
    assert_one_line_error(ran, f"--bytes: '{value}' is too large", "at most 2^63-1 bytes")


def test_offset_and_bytes_overflow_together(penstock: Run, sample: Path) -> None:
    ran = penstock("read", sample, "--offset", "9223372036854775807", "--bytes", "9223372036854775807")
    assert_one_line_error(ran, "more than a file can hold")


@pytest.mark.sampled
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "100000000000000000000000"])
@pytest.mark.parametrize("option", ["--workers", "--depth"])
def test_counts_that_are_none(penstock: Run, sample: Path, option: str, value: str) -> None:
    assert_one_line_error(penstock("read", sample, f"{option}={value}"), option)


def test_unknown_path_lists_the_valid_ones(penstock: Run, sample: Path) -> None:
    assert_one_line_error(penstock("read", sample, "--path", "warp"), "warp", "buffered", "uring", "gds-compat")


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:-1", "cuda:99999999999", ""])
def test_unknown_device_lists_the_valid_ones(penstock: Run, sample: Path, device: str) -> None:
    assert_one_line_error(penstock("read", sample, "--to", device), "host", "cuda:")


def test_unknown_option_and_command(penstock: Run, sample: Path) -> None:
    for arguments in (("read", str(sample), "--fast"), ("reed",), ("read",), ("write", str(sample))):
        ran = penstock(*arguments)
        assert_one_line_error(ran)
        assert ran.code == 2


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("run --match", "run"),
        ("read d --bytes", "read"),
        ("hmatrix build --shape", "hmatrix build"),
        ("read d --fast", "read"),
        ("bench core --out", "bench"),
    ],
)
def test_a_wrong_command_line_points_to_the_help_of_its_command(penstock: Run, line: str, command: str) -> None:
    ran = penstock(*line.split())
    assert_one_line_error(ran)
    assert ran.err.rstrip().endswith(f" See penstock {command} --help."), ran.err
    assert re.search(r"[.?!] See ", ran.err), ran.err


def test_an_empty_glob_is_refused(penstock: Run) -> None:
    ran = penstock("run", "--match", "*.nc", "--match", "", "--", "true")
    assert_one_line_error(ran, "run: --match: the glob is empty")
    assert ran.code == 2


def test_a_named_path_that_is_refused_is_refused_in_explanations_too(penstock: Run, sample: Path) -> None:
    for path in ("gds", "gds-compat", "gds-batch", "gds-stream"):
        read, explained = (
            penstock(command, sample, "--path", path, "--to", "host").err for command in ("read", "explain")
        )
        assert "the device is emulated" in explained
        assert explained == read
    ran = penstock("explain", sample, "--to", "host")
    assert len(re.findall(r"^ *gds(?:-compat)? +not taken: the device is emulated", ran.out, re.M)) == 2, ran.out
    ran = penstock("explain", sample, "--path", "mmap", "--write", "--to", "host")
    assert ran.code == 0
    assert not re.search(r"^ *mmap +not taken", ran.out, re.MULTILINE), ran.out


WRONG_VALUES = (
    ("write x --bytes 1MiB --seed abc", "write: --seed: 'abc' is not a whole number from 0 to 9223372036854775807"),
    ("write x --bytes many", "write: --bytes: 'many' is not a number of bytes"),
    ("write x --bytes 1 --from tpu", "write: --from: no device is named 'tpu'"),
    ("read d --to cuda:99999999999", "read: --to: no device is named"),
    ("read d --path warp", "read: --path: there is no path named 'warp'"),
    ("explain d --memory tape", "explain: --memory: there is no kind 'tape'"),
    ("explain d --to tpu", "explain: --to: no device"),
    ("calibrate --seconds 0", "calibrate: --seconds: '0' is not a whole number from 1"),
    ("calibrate --device tpu", "calibrate: --device: no device"),
    ("bench nosuch", "bench nosuch: there is no such suite; use one of"),
    ("bench croe", "or a .toml file; did you mean core?"),
    ("bench al", "all, or a .toml file; did you mean all?"),
    ("bench core --peers x", "bench: --peers: 'x' is not known"),
    ("bench core --device tpu", "bench: --device: no device"),
    ("compare d d --fail-below 2", "compare: --fail-below: '2' is not a ratio"),
    ("compare d d --out x.xyz", "compare x.xyz: the suffix '.xyz' names no format; use one of .csv"),
    ("export d --out x.xyz", "export x.xyz: the suffix '.xyz' names no format; use one of .csv"),
    ("gdsio -f x -x 99", "gdsio: -x: there is no transfer type '99'"),
    ("gdsio -f x -w 0", "gdsio: -w: '0' is not a number from 1"),
    ("hmatrix build --shape egg", "hmatrix build: --shape: 'egg' is not known"),
    ("hmatrix build --shape cube --device tpu", "hmatrix build: --device: no device"),
    ("hmatrix solve --shape cube --method x", "hmatrix solve: --method: 'x' is not known"),
    ("hmatrix solve --shape cube --picture x.gif", "x.gif: its ending says no kind of picture"),
)


@pytest.mark.parametrize(("line", "words"), WRONG_VALUES, ids=[line for line, _ in WRONG_VALUES])
def test_a_wrong_value_of_an_option_is_a_wrong_command_line(
    penstock: Run, tmp_path: Path, line: str, words: str
) -> None:
    (tmp_path / "d").write_bytes(b"data")
    ran = penstock(*line.split(), cwd=tmp_path)
    assert_one_line_error(ran, words)
    assert ran.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("command", [("read",), ("write", "--bytes", "1MiB")])
def test_a_shape_that_the_staging_memory_does_not_hold_names_options_that_were_given(
    penstock: Run, sample: Path, command: tuple[str, ...]
) -> None:
    ran = penstock(*command, sample, "--path", "buffered", "--chunk-bytes", "1GiB")
    assert_one_line_error(ran, f"{command[0]} {sample}: chunks of 1073741824 bytes", "use a smaller --chunk-bytes")
    assert ran.code == 2 and "budget" not in ran.err, ran.err


def test_text_that_the_kernel_makes_is_no_file_of_0_bytes(penstock: Run) -> None:
    assert_one_line_error(penstock("read", "/proc/self/maps"), "open /proc/self/maps", "copy it into a file")


LONG = "x" * 300


@pytest.mark.parametrize(
    "line",
    [f"gdsio -f {LONG} -x 1 -I 1 -s 1M", f"bench --dir {LONG}", f"calibrate {LONG} --out p.csv", f"report {LONG}"],
    ids=lambda line: line.split()[0],
)
def test_what_only_the_system_refuses_names_the_command_and_the_file(penstock: Run, tmp_path: Path, line: str) -> None:
    start = f"penstock: {line.split()[0]} "
    ran = penstock(*line.split(), cwd=tmp_path)
    assert_one_line_error(ran, LONG, "File name too long", "; ")
    assert ran.err.startswith(start), ran.err


def test_file_truncated_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "shrinking.bin"
    with path.open("wb") as stream:
        stream.truncate(8 << 30)
    command = [*PENSTOCK, "read", str(path), "--to", "host", "--path", "buffered", "--bytes", "8GiB", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    threading.Timer(0.6, lambda: os.truncate(path, 4096)).start()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert_one_line_error(Ran(process.returncode, "", err), "shrinking.bin")
    assert "Bus error" not in err
    assert out == "" or '"bytes"' in out


@root_only
def test_disk_full_leaves_nothing(penstock: Run, tmp_path: Path) -> None:
    with Mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=16m", "tmpfs") as place:
        assert_one_line_error(penstock("write", place / "big.bin", "--bytes", "64MiB"), "big.bin", "No space left")
        assert list(place.iterdir()) == []


@root_only
def test_read_only_file_system(penstock: Run, tmp_path: Path) -> None:
    with Mounted(tmp_path / "ro", "-t", "tmpfs", "-o", "ro", "tmpfs") as place:
        ran = penstock("write", place / "new.bin", "--bytes", "4096")
        assert_one_line_error(ran, "new.bin", "Read-only", "name a file on another one")
        ran = penstock("calibrate", place, "--out", tmp_path / "p.csv")
        assert_one_line_error(ran, f"calibrate {place}: its file system is mounted read-only")
        ran = penstock("calibrate", tmp_path, "--out", place / "new" / "profile.csv")
        assert_one_line_error(ran, f"write profile {place}/new/profile.csv: Read-only", "with --out")
