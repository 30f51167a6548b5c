"""The suite `per-process`: programs built here, every byte compared, times as a plain program takes them, and nothing
left behind. Most runs fork their processes, which takes less time than mpirun."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import LIMIT_S, PENSTOCK, Ran, assert_one_line_error
from lone_run import lone_run
from places import ROOT

from penstock import Context, Error, _core
from penstock.calibration.machine import mount_of
from penstock.calibration.workspace import NotPossible, Workspace
from penstock_bench.engine import definition
from penstock_bench.engine.rounds import Absent
from penstock_bench.report.show import print_results
from penstock_bench.runs import definitions, session, stored
from penstock_bench.suites.per_process import launching, measure, peers, table, toolchain, words
from penstock_bench.suites.per_process.cases import FORTRAN, OFFLOADED, RUN, UNBUFFERED, WAYS, C, Case, cases
from penstock_bench.suites.per_process.rank_files import RankFiles

Rows = list[dict[str, Any]]
SIZE = 1 << 20
SMALL = {"file_sizes": ["1MiB"], "buffers": ["8KiB"], "processes": [1, 2], "program_seconds": 60}
PRELOAD = Path(str(_core.__file__)).parent / "lib" / "libpenstock_preload.so"
PLAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main(int count, char** words) {
    const int writes = words[1][0] == 'w';
    const size_t elements = strtoull(words[3], NULL, 10);
    double* array = malloc(elements * sizeof *array);
    for (size_t i = 0; i < elements; ++i) array[i] = i;
    FILE* stream = fopen(words[2], writes ? "r+b" : "rb");
    if (count != 4 || !stream || setvbuf(stream, malloc(8192), _IOFBF, 8192)) return 1;
    double start = now();
    size_t moved = writes ? fwrite(array, 8, elements, stream) : fread(array, 8, elements, stream);
    fflush(stream);
    printf("%.9g\n", now() - start);
    return moved != elements;
}
"""


def need_compiler(name: str = "cc") -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return found


@pytest.fixture(scope="module", autouse=True)
def of_this_tree() -> Iterator[None]:
    """The headers of a source tree, where the package is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if not (Path(str(_core.__file__)).parent / "include").is_dir():
            patch.setattr(toolchain, "get_include", lambda: str(ROOT / "include"))
        yield


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_mpirun", lambda absent: "")


def tiny(as_published: bool = False, **changes: Any) -> definition.Definition:
    whole = definitions.load("per-process", True)
    settings = whole.settings["per-process"] | SMALL | {"as_published": as_published}
    return replace(whole, file_bytes=SIZE, repeats=1, settings={"per-process": settings}, **changes)


def run(place: Path, chosen: definition.Definition) -> Rows:
    return session.run(session.Request(chosen, "host", place, place / "rows.jsonl", True), lambda *_: None)


class Rig:
    """A run of the suite, of which a test measures single cases."""

    def __init__(self, stack: ExitStack, place: Path, **settings: Any) -> None:
        context = stack.enter_context(Context("host"))
        room = stack.enter_context(Workspace(context, place, SIZE, files=1))
        built = place / "built"
        (built / "reports").mkdir(parents=True)
        self.tools = toolchain.found()
        programs = launching.Programs(self.tools, toolchain.build(self.tools, built), 60.0, built / "reports")
        settings = SMALL | {"as_published": False} | settings
        self.bench = measure.Bench(lone_run(context, room, "per-process", stack, **settings), programs)

    def measure(self, way: str, direction: str, size: int = SIZE, processes: int = 2) -> dict[str, Any]:
        return self.bench.measure(Case(way, direction, size, processes, 0 if way in UNBUFFERED else 8192))


@pytest.fixture
def rig(tmp_path: Path, forked: None) -> Iterator[Callable[..., Rig]]:
    need_compiler()
    with ExitStack() as stack:
        yield lambda **settings: Rig(stack, tmp_path, **settings)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("as_published", [False, True])
def test_every_case_is_measured_or_missing_with_its_cause(tmp_path: Path, as_published: bool) -> None:
    need_compiler()
    if not PRELOAD.is_file():
        pytest.skip("this build has no libpenstock_preload.so")
    rows = run(tmp_path, tiny(as_published))
    found = {row["name"]: row for row in rows if row["kind"] == "per-process"}
    absent = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    fortran = shutil.which("gfortran") is not None
    ways = [way for way in WAYS if fortran or FORTRAN not in way]
    assert found.keys() == {case.name for case in cases(SMALL, SIZE, tuple(ways))}
    assert {peers.IOR, peers.HACC} | ({FORTRAN} if not fortran else set()) <= absent.keys()
    memory_only = mount_of(tmp_path)["type"] == "tmpfs"
    assert ("cold files" in absent) == (memory_only and not as_published)
    for row in found.values():
        assert row["bytes"] == SIZE * row["processes"] and 0 < row["fastest_s"] <= row["slowest_s"]
        assert row["bytes_per_second"] == row["bytes"] / row["seconds"] and row["started_by"] == "forked"
        assert ("fsync_s" in row) == (row["direction"] == "write" and not as_published)
        cold = row["direction"] == "read" and not as_published and not memory_only
        assert row["cache"] == ("cold" if cold else "as it is")
        assert ("why" in row) == row["way"].endswith(RUN)
        assert row.get("why") in (None, "the file is small", "no file was looked at"), row
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"], "files are removed"
    assert stored.read(tmp_path / "rows.jsonl") == rows
    print_results(rows)
    assert len(table.tables(rows, "per-process")) == (2 if as_published else 3)
    (said,) = words.of_per_process(rows)
    assert "2 processes that fread files of 1 MiB" in said.text and len(said.rows) == 2


def test_programs_that_move_wrong_bytes_end_the_run(rig: Callable[..., Rig], tmp_path: Path) -> None:
    """Element 70000 of each process is wrong in one program; a file that is too short ends it too."""
    made = rig()
    assert made.measure(C, "write")["bytes"] == made.measure(C, "read")["bytes"] == 2 * SIZE
    sources = tmp_path / "sources"
    shutil.copytree(toolchain.SOURCES, sources)
    main = sources / "array" / "main.c"
    text = main.read_text()
    main.write_text(text.replace("(int64_t)index)", "(int64_t)index + (index == 70000))"))
    assert main.read_text() != text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain, "SOURCES", sources)
        made.bench.programs.built.update(toolchain.build(made.tools, tmp_path / "built"))
    with pytest.raises(Error, match="bytes are wrong of what a process read"):
        made.measure(C, "read")
    with pytest.raises(Error, match="bytes are wrong") as caught:
        made.measure(C, "write")
    assert (caught.value.offset_bytes, caught.value.length_bytes) == (560000, 8)


def test_a_process_that_fails_ends_all_and_says_why(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig()
    case = Case(C, "read", SIZE, 3, 0)
    made.bench.files.make(case, 7)
    (made.bench.files.folder / "1.bin").unlink()
    with pytest.raises(Error, match=r"cannot open .*1\.bin: No such file"):
        launching.run(made.bench.programs, case, made.bench.files.folder, 7, False)
    os.truncate(made.bench.files.folder / "2.bin", SIZE - 8)
    (made.bench.files.folder / "1.bin").write_bytes(bytes(SIZE))
    for way in made.bench.programs.built:
        with pytest.raises(Error, match=r"cannot read|end"):
            launching.run(made.bench.programs, replace(case, way=way), made.bench.files.folder, 7, False)


def test_as_published_takes_the_time_that_a_plain_program_takes(rig: Callable[..., Rig], tmp_path: Path) -> None:
    """Turn by turn, now the one first and now the other, until the quickest quarters of both are within 15 %: others on
    the machine make a write slower only. How fast the page cache is depends on how the file was made: the plain program
    has a copy of the suite's, made so."""
    source, plain, folder = tmp_path / "plain.c", tmp_path / "plain", tmp_path / "copies"
    folder.mkdir()
    source.write_text(PLAIN)
    subprocess.run([need_compiler(), "-O2", "-o", plain, source], check=True, timeout=LIMIT_S)
    size, made = 8 * SIZE, rig(as_published=True)
    copies, case = RankFiles(made.bench.files.context, folder), Case(C, "write", size, 1, 8192)

    def by_plain(direction: str) -> float:
        copies.make(case, 7)  # or only on stable storage, from the second turn on: as the suite does it
        command = [str(plain), direction, str(folder / "0.bin"), str(size // 8)]
        return float(subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S).stdout)

    for direction in ("write", "read"):
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(60):
            for ours in (turn % 2 == 0, turn % 2 != 0):
                seconds[ours].append(made.measure(C, direction, size, 1)["seconds"] if ours else by_plain(direction))
            ratio = quick(seconds[True]) / quick(seconds[False])
            if turn >= 14 and 0.85 < ratio < 1.15:
                break
        assert 0.85 < ratio < 1.15, (direction, seconds)


def quick(seconds: list[float]) -> float:
    """The median of the quickest quarter."""
    return statistics.median(sorted(seconds)[: max(1, len(seconds) // 4)])


def test_what_does_not_fit_is_left_out_in_words_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_compiler()
    monkeypatch.setattr(toolchain, "_mpirun", lambda absent: "")
    one = SIZE + measure.PROCESS_BYTES
    monkeypatch.setattr(measure, "available_bytes", lambda: one)
    rows = run(tmp_path, tiny())
    causes = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    assert "1 MiB x 2 needs 66 MiB of memory, and 33 MiB are free" in causes[f"{C}: write 1 MiB x 2, buffer 8 KiB"]
    assert {row["processes"] for row in rows if row["kind"] == "per-process"} == {1}
    monkeypatch.setattr(measure, "available_bytes", lambda: one - 1)
    with pytest.raises(Error, match="1 MiB x 1 needs 33 MiB of memory"):
        run(tmp_path, tiny())


def test_wrong_options_are_refused_in_a_line(penstock: Callable[..., Ran], tmp_path: Path) -> None:
    assert_one_line_error(penstock("bench", "per-process", "--quick", "--dir", tmp_path / "no"), "no such directory")
    huge = penstock("bench", "per-process", "--file-bytes", "900TiB", "--dir", tmp_path)
    assert_one_line_error(huge, "bytes are free")
    assert_one_line_error(penstock("bench", "core", "--as-published", "--dir", tmp_path), "follows no study")
    bare = penstock("bench", "per-process", "--quick", "--dir", tmp_path, env={"PATH": str(tmp_path)})
    assert_one_line_error(bare, "no C compiler")


def test_without_mpi_and_fortran_the_rest_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").symlink_to(need_compiler())
    monkeypatch.setenv("PATH", str(tmp_path))
    found = toolchain.found()
    assert (found.c, found.fortran, found.started_by) == (str(tmp_path / "cc"), "", "forked")
    assert found.absent[FORTRAN] == "there is no gfortran"
    assert "no mpicc and no mpirun: the programs fork" in found.absent["processes of MPI"]
    for name, text in {"mpicc": "exit 0", "mpirun": "echo not as root >&2; exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    found = toolchain.found()
    assert not found.mpirun and "(not as root)" in found.absent["processes of MPI"]
    (tmp_path / "cc").unlink()
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'no space' >&2; exit 1\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(Error, match="cc cannot build a program: no space"):
        toolchain.build(toolchain.found(), tmp_path)


@pytest.mark.parametrize(
    ("device", "compiler", "cause"),
    [
        ("host", None, "there is no C++ compiler"),
        ("cuda:0", None, "there is no nvcc"),
        ("cuda:0", "nvcc", "nvcc cannot build a program: no GPU"),
    ],
)
def test_without_a_compiler_for_the_device_calls_from_it_are_absent(
    device: str, compiler: str | None, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_compiler()
    real, found = shutil.which, toolchain.found()
    (tmp_path / "nvcc").write_text("#!/bin/sh\necho 'no GPU' >&2; exit 1\n")
    (tmp_path / "nvcc").chmod(0o755)
    given = compiler and str(tmp_path / compiler)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: given if "nvcc" in name or "++" in name else real(name))
    assert OFFLOADED not in toolchain.build(found, tmp_path, device)
    assert found.absent[OFFLOADED].startswith(cause)


def test_what_programs_tell_is_understood_or_refused() -> None:
    told = launching.parsed("0.5 0.4 0.1 0.3 0.2 0 stdio\n0.7 0.6 0.1 0.1 0.1 3 stdio\n", 2)
    fields = told.fields(sync=True)
    assert fields["seconds"] == pytest.approx(0.6) and (fields["slowest_s"], fields["fastest_s"]) == (0.6, 0.4)
    assert (fields["fsync_s"], told.wrong, fields["took"]) == (0.3, [0, 3], "stdio")
    for text, processes in (("0.5 0.4 0.1 0.3 0.2 0 stdio\n", 2), ("0.5 0.4\n", 1), ("", 1)):
        with pytest.raises(Error, match="not understood"):
            launching.parsed(text, processes)
    with pytest.raises(NotPossible, match=r"within 0\.01 s"):
        toolchain.PROGRAMS.output(["sleep", "60"], 0.01, Path("/tmp"))


def blocking_compiler(folder: Path, name: str, fifo: Path) -> None:
    """A compiler whose programs of C tell their number by a pipe when they are about to move bytes, and wait."""
    real = need_compiler(name)
    header = folder / "block.h"
    header.write_text(
        "#include <stdio.h>\n#include <unistd.h>\nstatic double blocked(void) {"
        f' FILE* pipe = fopen("{fifo}", "w"); fprintf(pipe, "%d\\n", getpid()); fclose(pipe); pause(); return 0; }}\n'
        "#define ranks_clock blocked\n"
    )
    script = f'#!/bin/sh\ncase "$*" in *main.c*) exec {real} -include {header} "$@";; esac\nexec {real} "$@"\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("compiler", ["cc", pytest.param("mpicc", marks=pytest.mark.long)])
def test_a_signal_ends_all_processes_and_removes_the_files(tmp_path: Path, compiler: str, number: int) -> None:
    place, fifo, tools = tmp_path / "place", tmp_path / "fifo", tmp_path / "tools"
    place.mkdir()
    tools.mkdir()
    os.mkfifo(fifo)
    blocking_compiler(tools, compiler, fifo)
    suite = tmp_path / "suite.toml"
    suite.write_text(
        "kind = 'per-process'\nfile_bytes = '1MiB'\nrepeats = 1\nseconds = 60\n[per-process]\nfile_sizes = ['1MiB']\n"
        "buffers = ['8KiB']\nprocesses = [2]\nprogram_seconds = 60\nas_published = true\n"
    )
    if compiler == "cc":  # and no mpirun
        for name in ("env", "as", "ld"):
            (tools / name).symlink_to(need_compiler(name))
    path = str(tools) if compiler == "cc" else f"{tools}:{os.environ['PATH']}"
    command = [*PENSTOCK, "bench", str(suite), "--dir", str(place), "--out", str(tmp_path / "out"), "--device", "host"]
    environment = os.environ | {"PATH": path, "TMPDIR": str(tmp_path / "place"), "PENSTOCK_PROGRESS": "0"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        numbers = told_through(fifo, 2)
        running.send_signal(number)
        _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode in (130, 143) and said.count("\n") == 1, said
    gone_by = time.monotonic() + 10  # one that was killed goes when it has a core; one that was not waits for ever
    while (left := living(numbers)) and time.monotonic() < gone_by:
        time.sleep(0.01)
    for one in left:
        os.kill(one, signal.SIGKILL)
    assert not left, "a process lives on"
    assert not list(place.iterdir())


def told_through(fifo: Path, count: int) -> list[int]:
    """Open for both, it has no end between two writers, where a line of the second would be lost."""
    both, text = os.open(fifo, os.O_RDWR), b""
    try:
        while text.count(b"\n") < count:
            assert select.select([both], [], [], LIMIT_S)[0], "a process told nothing"
            text += os.read(both, 4096)
    finally:
        os.close(both)
    return [int(line) for line in text.split()]


def living(numbers: list[int]) -> list[int]:
    """Those that do not end within a time in which the kernel ends what it was asked to end."""
    end = time.monotonic() + 20
    while any(is_alive(one) for one in numbers) and time.monotonic() < end:
        time.sleep(0.01)
    return [one for one in numbers if is_alive(one)]


def is_alive(number: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.long
def test_processes_of_mpi_measure_as_forked_ones_do(tmp_path: Path) -> None:
    need_compiler("mpirun")
    rows = run(tmp_path, tiny())
    mine = [row for row in rows if row["kind"] == "per-process"]
    assert mine and {row["started_by"] for row in mine} == {"mpirun"}
    assert {(row["processes"], row["direction"]) for row in mine} == {
        (1, "read"),
        (1, "write"),
        (2, "read"),
        (2, "write"),
    }


IOR_OLD = """access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     100.00     1024.00    8.00       0.001      0.25       0.002      0.26       0
"""
IOR_NEW = """access    bw(MiB/s)  IOPS  Latency(s)  block(KiB) xfer(KiB)  open(s)  wr/rd(s)  close(s)  total(s)  iter
------    ---------  ----  ----------  ---------- ---------  -------  --------  --------  --------  ----
read      200.00     25600 0.000031    1024.00    8.00       0.001    0.5       0.002     0.51      0
"""
HACC = """-------- Aggregate Performance --------
 WRITE Checkpoint Perf: 15.2 BW[MB/s] 79690 Bytes 0.005 MaxTime[sec]
-------- Aggregate Performance --------
 READ Restart Perf: 30.4 BW[MB/s] 79690 Bytes 0.0025 MaxTime[sec]
 CONTENTS VERIFIED... Success
"""


def test_peers_are_run_and_read(rig: Callable[..., Rig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs stand for IOR and HACC-IO that print what those print."""
    made = rig()
    tools = tmp_path / "tools"
    tools.mkdir()
    ior = f'#!{sys.executable}\nimport sys\nopen(sys.argv[-1] + ".00000000", "wb").write(bytes({SIZE}))\n'
    ior += f'print({IOR_NEW!r} if "-r" in sys.argv else {IOR_OLD!r})\n'
    for name, text in {"mpirun": '#!/bin/sh\nshift 2\nexec "$@"\n', "ior": ior}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tools / "testhacc_io").write_text(f"#!/bin/sh\ncat <<'END'\n{HACC}END\n")
    (tools / "testhacc_io").chmod(0o755)
    wanted = [Case(C, direction, SIZE, 1, 8192) for direction in ("write", "read")]
    made.bench.run.__dict__["peers"] = frozenset(peers.PEERS)
    absent = list(peers.probes(made.bench, wanted))
    assert [one.name for one in absent] == [peers.IOR, peers.HACC]
    for probe in absent:
        with pytest.raises(Absent, match="on PATH"):
            probe.measure(0)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    made.tools.mpirun = str(tools / "mpirun")
    found = {probe.name: probe.measure(0) for probe in peers.probes(made.bench, wanted)}
    assert {re.sub(r" 1 MiB.*", "", name): row["seconds"] for name, row in found.items()} == {
        "IOR: write": 0.25, "IOR: read": 0.5, "HACC-IO: write": 0.005, "HACC-IO: read": 0.0025,
    }  # fmt: skip
    assert {row["bytes"] for row in found.values()} == {SIZE, 79690}
    assert not list(made.bench.files.folder.iterdir())
    with pytest.raises(Error, match="IOR printed what is not understood"):
        peers.seconds_of_ior("access\n", "read")
