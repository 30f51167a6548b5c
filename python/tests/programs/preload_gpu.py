"""Unmodified programs with memory of a real GPU, as they are and under libpenstock_preload.so: run it on a GPU machine.

    preload_gpu.py FOLDER [--mib 1024]      a table, and one line for each promise; exit code 1 if one is broken

FOLDER in memory (/dev/shm) shows what the link gives, on a disk what the page cache does. tests/preload/gpu_real.c is
the program in C; where gfortran is, a program with stream and sequential READ and WRITE is run too, on managed and
device memory. Every byte is checked on the GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import penstock
from penstock import _core

LIBRARY = Path(str(_core.__file__)).parent / "lib" / "libpenstock_preload.so"
SOURCES = Path(__file__).resolve().parents[3] / "tests" / "preload"
FIRST_GB, LATER_GB, NEXT_KERNEL = 25.0, 35.0, 1.1  # promised of reads, from the page cache
FORTRAN_GB = 30.0  # promised of later READ statements
OF_ENGINE = 0.9  # promised of writes, of the engine's own rate


@dataclass(frozen=True)
class Round:
    """One call over all of the memory, and the kernels behind it."""

    bytes: int
    gb_per_s: float
    next_ms: float
    again_ms: float
    wrong: int
    cause: str


def built(folder: Path, source: str, *more: str) -> Path:
    compiler = "gfortran" if source.endswith(".f90") else "gcc"
    program = folder / Path(source).stem
    subprocess.run([compiler, "-O2", "-o", program, SOURCES / source, *more], check=True)
    return program


def run(program: Path, words: tuple[object, ...], file: Path, preloaded: bool) -> tuple[list[Round], dict]:
    report = file.with_name("report.json")
    report.unlink(missing_ok=True)
    environment = dict(os.environ)
    if preloaded:
        environment |= {"LD_PRELOAD": str(LIBRARY), "PENSTOCK_RUN_REPORT": str(report)}
        environment |= {"GFORTRAN_UNFORMATTED_BUFFER_SIZE": "1"}
    command = [str(program), *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [], {"error": done.stderr.strip() or f"exit code {done.returncode}"}
    rows = [line.split(maxsplit=5) for line in done.stdout.splitlines()]
    rounds = [Round(int(r[0]), *map(float, r[1:4]), int(r[4]), r[5]) for r in rows]
    return rounds, json.loads(report.read_text()) if report.exists() else {}


def engine_writes(file: Path, mib: int) -> float:
    """GB/s of the engine's own writes from memory of the GPU, the median of three. Each empties the file, opens and
    closes it, as the program does in its time."""
    found = []
    with penstock.Context(device="cuda:0") as context:
        memory = context.allocate(mib << 20)
        for turn in range(4):
            context.fill(memory, turn)
            began = time.perf_counter()
            file.write_bytes(b"")
            with context.open(file, write=True) as opened:
                opened.write(memory, 0)
            found.append((mib << 20) / (time.perf_counter() - began) / 1e9)
    return statistics.median(found[1:])  # the first makes the file and the engine's memory


def judged(how: str, rounds: list[Round], mib: int, engine_gb_per_s: float) -> list[str]:
    """What is broken of what is promised."""
    broken = []
    if not rounds or any(one.bytes != mib << 20 or one.wrong for one in rounds):
        return ["bytes are missing or wrong"]
    if how in ("read", "fread"):
        if rounds[0].gb_per_s < FIRST_GB:
            broken.append(f"the first request {rounds[0].gb_per_s} GB/s, promised {FIRST_GB}")
        later = min(one.gb_per_s for one in rounds[1:])
        if later < LATER_GB:
            broken.append(f"later requests {later} GB/s, promised {LATER_GB}")
        worst = max(one.next_ms / max(one.again_ms, 0.05) for one in rounds[1:])
        if worst > NEXT_KERNEL and max(one.next_ms for one in rounds[1:]) > 1.0:
            broken.append(f"the next kernel took {worst:.2f} of a resident one, promised {NEXT_KERNEL}")
    if how in ("stream", "sequential"):
        later = min(one.gb_per_s for one in rounds[1:])
        if later < FORTRAN_GB:
            broken.append(f"later READ statements {later} GB/s, promised {FORTRAN_GB}")
    if how in ("write", "fwrite"):
        wanted = OF_ENGINE * engine_gb_per_s
        median = statistics.median(one.gb_per_s for one in rounds[1:])
        if median < wanted:
            broken.append(f"writes {median:.1f} GB/s, promised {OF_ENGINE} of the engine's {engine_gb_per_s:.1f}")
    return broken


def told(rounds: list[Round], report: dict) -> str:
    if not rounds:
        return report.get("error", "nothing")
    speeds = " ".join(f"{one.gb_per_s:.1f}" for one in rounds)
    kernels = " ".join(f"{one.next_ms:.1f}" for one in rounds)
    return f"{speeds} GB/s; next kernel {kernels} ms; {rounds[0].cause}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mib", type=int, default=1024)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    file, failed = given.folder / "data", 0
    cases = [(built(given.folder, "gpu_real.c", "-ldl"), ("write", "read", "fwrite", "fread"))]
    if shutil.which("gfortran"):
        cases.append((built(given.folder, "gpu_fortran.f90", "-ldl"), ("stream", "sequential")))
    for program, ways in cases:
        for how in ways:
            for memory in ("managed", "device"):
                words = (how, memory, file, given.mib)
                engine = engine_writes(file, given.mib) if "write" in how else 0.0  # disks change from minute to minute
                plain, what = run(program, words, file, preloaded=False)
                print(f"{program.name} {how} {memory}: as it is: {told(plain, what)}")
                ours, report = run(program, words, file, preloaded=True)
                print(f"{program.name} {how} {memory}: library:  {told(ours, report)}")
                print(f"  {json.dumps(report.get('files', []))}")
                if engine:
                    print(f"  the engine's own writes just before: {engine:.1f} GB/s")
                broken = judged(how, ours, given.mib, engine)
                failed += bool(broken)
                print(f"  {'BROKEN: ' + '; '.join(broken) if broken else 'as promised'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
