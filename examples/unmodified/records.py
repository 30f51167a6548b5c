"""What `penstock run` is worth to a Fortran program of sequential records: records.py [MiB] [rounds] [folder]

Builds records.f90 with gfortran (or the compiler that FC names), and runs it as it is and under `penstock run`, in
turn. The program times its own statements. Written files are compared as a whole; what is read the program compares.
Rows tell medians, the least and the most, and the median of the rounds' ratios: how many times as fast the program is
with the library. A write ends when the disk has the file; a cold read begins with none of it in the page cache.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
WAYS = ("as it is", "under the library")


@dataclass(frozen=True)
class Case:
    """Records of one size, moved in one way; `least` is how many times as fast the library has to make it."""

    name: str
    how: str
    record_bytes: int
    cold: bool
    least: float


CASES = [
    Case("write 8 MiB, fsync", "write", 8 * MIB, False, 2.0),
    Case("write 512 KiB, fsync", "write", 512 * KIB, False, 0.95),
    Case("cold read 8 MiB", "read", 8 * MIB, True, 0.95),
    Case("cold read 512 KiB", "read", 512 * KIB, True, 3.0),
    Case("warm read 8 MiB", "read", 8 * MIB, False, 0.95),
    Case("warm read 512 KiB", "read", 512 * KIB, False, 0.95),
    Case("warm read 8 KiB", "read", 8 * KIB, False, 0.95),
]


def main(mebibytes: int, rounds: int, folder: Path) -> None:
    program = built(folder)
    print(f"| {'records':22} | as it is, s | under the library, s | times as fast | wanted | the library says |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        taken, why = measured(case, program, mebibytes, rounds)
        plain, ours = (shown(taken[way]) for way in WAYS)
        ratio = statistics.median(one / other for one, other in zip(*taken.values(), strict=True))
        print(f"| {case.name:22} | {plain} | {ours} | {ratio:.2f} | {case.least} | {why} |", flush=True)


def built(folder: Path) -> Path:
    program = folder / "records"
    source = Path(__file__).with_name("records.f90")
    compiler = os.environ.get("FC", "gfortran")
    subprocess.run([compiler, "-O2", "-o", program, source], check=True, cwd=folder)
    return program


def measured(case: Case, program: Path, mebibytes: int, rounds: int) -> tuple[dict[str, list[float]], str]:
    """Seconds of each way, round by round, and what the library says of the file."""
    file, report = program.with_name("steps.bin"), program.with_name("report.json")
    records = max(1, mebibytes * MIB // case.record_bytes)
    words = [str(file), str(records), str(case.record_bytes // 8)]
    run = [sys.executable, "-m", "penstock", "run", "--report", str(report), "--"]
    starts = dict(zip(WAYS, ([], run), strict=True))
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    seconds_of([str(program), "write", *words])
    before = file.read_bytes()
    for turn in range(rounds):
        order = WAYS if turn % 2 == 0 else WAYS[::-1]
        for way in order:
            prepare(case, file)
            taken[way].append(seconds_of([*starts[way], str(program), case.how, *words]))
            if case.how == "write" and file.read_bytes() != before:
                raise SystemExit(f"{case.name}: the file has other bytes {way}")
    rows = [one for one in json.loads(report.read_text())["files"] if one["name"] == str(file)]
    return taken, rows[0]["written" if case.how == "write" else "read"]["why"] if rows else "nothing"


def prepare(case: Case, file: Path) -> None:
    """Brings the file's pages out of the page cache, or into it."""
    if case.how == "write":
        file.unlink()
        os.sync()
        return
    with file.open("rb", buffering=0) as opened:
        os.fsync(opened)
        if case.cold:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            while opened.read(MIB):
                pass


def seconds_of(command: list[str]) -> float:
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def shown(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


if __name__ == "__main__":
    size, count = int((sys.argv[1:] or ["512"])[0]), int((sys.argv[2:] or ["5"])[0])
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as made:
        main(size, count, Path(made))
