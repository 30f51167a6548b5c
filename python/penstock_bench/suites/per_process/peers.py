"""IOR and HACC-IO beside the suite's own programs, where they are installed: what they print of one run is read.

IOR gets the same files (-F), sizes and buffers (-t), and its seconds are those of the transfer alone. HACC-IO writes
38 bytes a particle, as many particles as fit; its seconds are of open, transfer and close of the slowest process.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock import Error
from penstock.calibration.workspace import NotPossible
from penstock_bench.engine.rounds import Absent, Probe, Sample
from penstock_bench.suites.per_process.cases import C, Case
from penstock_bench.suites.per_process.launching import Programs
from penstock_bench.suites.per_process.rank_files import RankFiles
from penstock_bench.suites.per_process.toolchain import PROGRAMS

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

IOR, HACC = "IOR", "HACC-IO"
PEERS = {"ior": IOR, "hacc-io": HACC}
COMMANDS = {IOR: ("ior",), HACC: ("testhacc_io", "hacc_io")}
PARTICLE_BYTES = 38
_HACC = re.compile(r"(READ Restart|WRITE Checkpoint) Perf:\s*\S+\s*BW\[MB/s\]\s*(\d+)\s*Bytes\s*(\S+)\s*MaxTime\[sec\]")


class PeerRun(Protocol):
    """What a peer needs of the suite's run."""

    run: Run
    programs: Programs
    files: RankFiles
    as_published: bool

    def why_not(self, case: Case) -> str: ...


def probes(bench: PeerRun, wanted: list[Case]) -> Iterator[Probe]:
    """Those of `run.peers`, for what C is measured at. A peer that is not there is one probe, which says so."""
    for short, peer in PEERS.items():
        if short not in bench.run.peers:
            continue
        program = next((one for one in map(shutil.which, COMMANDS[peer]) if one), None)
        cause = _why_absent(peer, program, bench.programs)
        if program is None or cause:
            yield Probe(peer, partial(_absent, cause))
            continue
        measure = {IOR: _ior, HACC: _hacc}[peer]
        found = dict.fromkeys(_of_peer(peer, case) for case in wanted if case.way == C)
        for case in found:
            yield Probe(case.name, partial(measure, bench, program, case), case.group)


def seconds_of_ior(text: str, direction: str) -> float:
    """IOR's time of the transfer alone, found by the head of its table: the columns differ between versions."""
    lines = [line.split() for line in text.splitlines()]
    head = next((line for line in lines if line[:1] == ["access"] and "wr/rd(s)" in line), None)
    row = next((line for line in lines if line[:1] == [direction] and head and len(line) == len(head)), None)
    if head is None or row is None:
        raise _not_understood(IOR, text)
    return float(row[head.index("wr/rd(s)")])


def of_hacc(text: str, direction: str) -> tuple[int, float]:
    """Bytes and seconds."""
    for kind, bytes, seconds in _HACC.findall(text):
        if kind.startswith(direction.upper()):
            return int(bytes), float(seconds)
    raise _not_understood(HACC, text)


def _of_peer(peer: str, case: Case) -> Case:
    """HACC-IO has no buffer to set."""
    buffer = case.buffer_bytes if peer == IOR else 0
    return Case(peer, case.direction, case.file_bytes, case.processes, buffer)


def _why_absent(peer: str, program: str | None, programs: Programs) -> str:
    if program is None:
        return f"there is no {' and no '.join(COMMANDS[peer])} on PATH"
    return "" if programs.tools.mpirun else "it needs mpirun, which does not start programs here"


def _absent(cause: str, _round: int) -> Sample:
    raise Absent(cause)


def _ior(bench: PeerRun, program: str, case: Case, _round: int) -> Sample:
    """A write leaves its files, as the suite's own do; a read has them written by IOR before it is timed."""
    folder = _room(bench, case)
    words = ["-a", "POSIX", "-F", "-k", "-b", str(case.file_bytes), "-t", str(case.buffer_bytes), "-o", f"{folder}/ior"]
    durable = ["-e"] if case.writes and not bench.as_published else []  # fsync, in the seconds of the transfer
    try:
        text = _run(bench, case, [program, "-w", *durable, *words])
        cache = "as it is"
        if not case.writes:
            cache = _made_cold(bench, case)
            text = _run(bench, case, [program, "-r", *words])
        seconds = seconds_of_ior(text, case.direction)
    finally:
        bench.files.remove()
    return _sample(case, case.file_bytes * case.processes, seconds, cache)


def _hacc(bench: PeerRun, program: str, case: Case, _round: int) -> Sample:
    """It writes and reads in one run, and checks what it read."""
    folder = _room(bench, case)
    try:
        text = _run(bench, case, [program, str(max(1, case.file_bytes // PARTICLE_BYTES)), f"{folder}/hacc"])
    finally:
        bench.files.remove()
    if "VERIFIED" in text and "Success" not in text:
        raise Error(operation="bench per-process", cause="HACC-IO found wrong bytes", advice="do not trust this disk")
    return _sample(case, *of_hacc(text, case.direction), "as it is")


def _room(bench: PeerRun, case: Case) -> str:
    """The folder, empty: the suite makes its own files anew when they are wanted."""
    cause = bench.why_not(case)
    if cause:
        raise NotPossible(cause)
    bench.files.seed = 0
    bench.files.remove()
    return str(bench.files.folder)


def _made_cold(bench: PeerRun, case: Case) -> str:
    if bench.as_published:
        return "as it is"
    try:
        bench.files.drop(sorted(bench.files.folder.iterdir()), case.file_bytes)
    except NotPossible:
        return "as it is"
    return "cold"


def _run(bench: PeerRun, case: Case, command: list[str]) -> str:
    return PROGRAMS.output(
        [*bench.programs.tools.started(case.processes), *command], bench.programs.limit_s, bench.programs.reports.parent
    )


def _sample(case: Case, bytes: int, seconds: float, cache: str) -> Sample:
    return {"bytes": bytes, "seconds": seconds, "cache": cache, "took": case.way, **case.fields()}


def _not_understood(peer: str, text: str) -> Error:
    words = text.strip()[-200:]
    cause = f"{peer} printed what is not understood: {words!r}"
    return Error(operation="bench per-process", cause=cause, advice="measure without it: --peers none")
