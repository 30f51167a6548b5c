"""What docs/gpu.md says of speed is what the committed rows say: medians, as they are written there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text()
Found = dict[tuple[str, str], float]
RATE, BYTES, HITS, TIME, MEAN = "operations_per_second", "bytes_per_second", "hit_rate", "p50_us", "mean_us"


def medians(file: str) -> Found:
    values = defaultdict(list)
    for line in (ROOT / "bench" / "results" / file).read_text().splitlines():
        row = json.loads(line)
        for what in (RATE, BYTES, HITS, TIME, MEAN):
            if row["kind"] == "gpu-io" and what in row:
                values[row["name"], what].append(row[what])
    return {key: median(some) for key, some in values.items()}


OTHERS = ("slower", "third", "fourth", "fifth", "sixth", "seventh")
FILES = {"H100": "h100-gpu-io", "1": "h200-gpu-io"}
FILES |= {str(number): f"h200-gpu-io-{name}-host" for number, name in enumerate(OTHERS, 2)}
FILES |= {name: f"h200-gpu-io-{name}" for name in ("disk", "misses", "cache")}
HOSTS = {name: medians(f"{file}.jsonl") for name, file in FILES.items()}
FIRST, THROUGH = HOSTS["H100"], HOSTS["cache"]
WRITES = [f"write {order} {size} KiB" for order in ("random", "sequential") for size in (4, 128)]
BLOCKS = [FIRST[f"blocks of {threads}, a ring for each warp", RATE] for threads in (32, 64, 128, 256, 512, 1024)]


def beside_host(found: Found, name: str) -> float:
    """Of the faster of the host's two ways."""
    return found[name, BYTES] / max(found[f"{name}, host {way}", BYTES] for way in ("threads", "io_uring"))


def millions(name: str, digits: int = 1) -> str:
    return f"{FIRST[name, RATE] / 1e6:.{digits}f}"


def gigabytes(name: str, digits: int = 1) -> str:
    return f"{FIRST[name, BYTES] / 1e9:.{digits}f}"


def one_and_four(name: str, digits: int = 1) -> str:
    """Millions a second through one thread of the service and through four."""
    return f"{millions(name + ', 1 service thread', digits)} and {millions(name + ', 4 service threads', digits)}"


def as_many_requests(found: Found) -> float:
    """The time of a gather of misses by that of as many raw requests."""
    return found[MISSES, RATE] / found["rows gathered, all misses", RATE]


def ratio(one: float, other: float, digits: int = 2) -> str:
    return f"{one / other:.{digits}f}"


def through_cache(size: int, found: Found) -> float:
    """The same, beside the host's writes in sequence."""
    name = f"write sequential {size} KiB"
    through = found[f"write through the page cache in device memory, {size} KiB", BYTES]
    return through / found[name, BYTES] * beside_host(found, name)


def written_together() -> float:
    """KiB a write of the disk, of pages of 4 KiB that were written through the cache."""
    rows = [json.loads(line) for line in (ROOT / "bench/results/h100-gpu-io.jsonl").read_text().splitlines()]
    name = "write through the page cache in device memory, 4 KiB"
    return median(row["media_write_bytes"] / row["media_writes"] for row in rows if row.get("name") == name) / 1024


MISS = "one miss alone"
ALONE, TILES, MISSES = "one request alone, ", "tiles, all hits", "as many warps as for misses"
RINGS = [FIRST[f"rings: {rings}", RATE] for rings in (1, 4, 16, 64, 256, 1024)]
MAILBOX, QUEUES = "mailbox, the same clients", "nvme entries random 4 KiB, "
MEMORY, LOCKED = "memory random 4 KiB, ", "ceiling, page-locked memory, "
CHECKED = [found[ALONE + "checked", TIME] for found in HOSTS.values() if (ALONE + "checked", TIME) in found]
BEFORE = [as_many_requests(found) for name, found in HOSTS.items() if name in "12345678misses"]
STORES = [
    rate for found in HOSTS.values() for (name, what), rate in found.items() if "writes random" in name and what == RATE
]


@dataclass(frozen=True)
class Line:
    """One of the table of hosts: a value of each run that has it, and what is aimed at."""

    name: str
    value: Callable[[Found], float]
    aim: float
    form: str = ".3f"
    most: bool = False  # the aim is an upper bound

    def text(self) -> str:
        return f"| {self.name} | {'≤' if self.most else '≥'} {self.aim:g} |" + "".join(map(self._cell, HOSTS.values()))

    def _cell(self, found: Found) -> str:
        try:
            value = self.value(found)
        except KeyError:
            return " |"
        missed = value > self.aim if self.most else value < self.aim
        return f" {'**' * missed}{value:{self.form}}{'**' * missed} |"


def rate(name: str, unit: float = 1e6, what: str = RATE) -> Callable[[Found], float]:
    return lambda found: found[name, what] / unit


LINES = [
    Line("12 host threads, M/s", rate(MEMORY + "12 service threads"), 11, ".1f"),
    Line("4 host threads, M/s", rate(MEMORY + "4 service threads"), 8, ".1f"),
    Line("one request alone, us", rate(ALONE + "not checked", 1, TIME), 6, ".1f", True),
    Line("the same with its check, us", rate(ALONE + "checked", 1, TIME), 6, ".1f", True),
    Line("element loads, all hits, GB/s", rate("element loads, all hits", 1e9, BYTES), 250, ".0f"),
    Line("tiles, all hits / plain memory", lambda f: f[TILES, BYTES] / f["tiles, plain memory", BYTES], 0.6),
    Line(
        "misses of a gather / requests",
        as_many_requests,
        1.15,
        most=True,
    ),
    Line("one miss alone, us", rate(MISS, 1, MEAN), 7.5, ".1f", True),
    Line("the same in a full cache, us", rate(MISS + ", full cache", 1, MEAN), 7.5, ".1f", True),
    *[
        Line(name.replace("disk", "read"), partial(lambda name, found: beside_host(found, name), name), aim)
        for aim, names in ((0.97, ("disk random 4 KiB", "disk sequential 128 KiB")), (0.9, WRITES))
        for name in names
    ],
    *[Line(f"write sequential {size} KiB through the cache", partial(through_cache, size), 0.9) for size in (4, 128)],
]

CLAIMS = [
    f"| {millions(MEMORY + '12 service threads')} M/s | {millions(LOCKED + 'random 4 KiB')} M/s from page-locked",
    f"| {millions(MEMORY + '4 service threads')} and {millions(MEMORY + '1 service thread')} M/s |",
    f"registered) | {millions('ceiling, registered file, random 4 KiB')} M/s |",
    f"| {millions('cached file, 4 KiB')} M/s | {millions('pread and copy, 4 KiB', digits=2)} threads with pread",
    f"copy, {millions('cuFile compat, 4 KiB', digits=2)} threads of cuFile",
    f"64 slots | {FIRST[ALONE + 'not checked', TIME]:.1f} us |",
    f"us | {FIRST[ALONE + 'checked', TIME]:.1f} us with its check: over",
    f"One miss alone takes {FIRST[MISS, MEAN]:.0f} us, a request alone with its check {min(CHECKED):.1f} to "
    f"{max(CHECKED):.1f}; in a full cache, where another page has to go first, it takes "
    f"{FIRST[MISS + ', full cache', MEAN]:.0f} us.",
    f"and {HOSTS['7'][MISS, MEAN]:.0f} before it worked on a copy",
    f"a gather of misses takes {as_many_requests(FIRST):.2f} of what as many requests do; {min(BEFORE):.2f} to "
    f"{max(BEFORE):.2f} on the H200s",
    f"| {', '.join(f'{one / 1e6:.1f}' for one in RINGS)} M/s |",
    f"| {one_and_four(MAILBOX)} M/s | {one_and_four(QUEUES + '16 queues a thread')} through 16 NVMe queues a thread, "
    f"{one_and_four(QUEUES + 'one queue a thread', 2)} through one |",
    f"One miss took {HOSTS['misses'][MISS, MEAN]:.0f} us before",
    f"128 KiB at {through_cache(128, FIRST):.2f} of the host alone, 4 KiB at {through_cache(4, FIRST):.2f} "
    f"({FIRST['write through the page cache in device memory, 4 KiB', RATE] / 1e3:.0f} thousand a second",
    f"past the cache {FIRST['write sequential 4 KiB', RATE] / 1e3:.0f}",
    f"through a cache of 16 MiB 4 KiB at {through_cache(4, THROUGH):.2f}",
    f"itself (tmpfs, `map=True`) goes at {millions('pages written to a registered file')} million a second",
    f"of which one write of the disk carries {written_together():.0f} KiB on average",
    f"go at {min(STORES) / 1e6:.2f} to {max(STORES) / 1e6:.2f} million a second",
    f"| blocks of 32 to 1024 threads | {' to '.join(sorted({f'{one / 1e6:.1f}' for one in BLOCKS}))} M/s |",
    f"| {gigabytes('memory sequential 128 KiB')} GB/s | {gigabytes(LOCKED + 'sequential 128 KiB')} from page-locked",
    f"| {gigabytes('element loads, all hits', 0)} GB/s |",
    f"| {round(FIRST['element loads, plain memory', BYTES] / 1e10) * 10} from plain memory |",
    f"| {FIRST[TILES, BYTES] / 1e12:.1f} TB/s | {FIRST['tiles, plain memory', BYTES] / 1e12:.1f} from plain",
    f"| {FIRST['sweep with advice', HITS]:.2f} hits with advice, {FIRST['sweep without advice', HITS]:.2f} without |",
    f"| {millions('rows gathered')} M rows/s | {millions('rows by numpy.memmap and copy')} numpy.memmap and copy, "
    f"{millions('rows by cuFile compat', digits=2)} cuFile |",
    f"{ratio(FIRST[TILES, BYTES], FIRST['tiles, plain memory', BYTES])} of plain memory",
    f"{millions('blocks of 1, a ring for each warp')} of 4096 blocks of one thread; "
    f"{max(FIRST[f'blocks of {threads}, one ring', RATE] for threads in (32, 64, 128, 256, 512, 1024)) / 1e6:.1f} "
    "where all warps begin",
    f"{millions('random 4 KiB of 1 GiB, page cache')} M/s of 1 GiB and of 16 GiB",
    f"{FIRST['random 4 KiB of 1 GiB, disk', RATE] / 1e3:.0f} and "
    f"{FIRST['random 4 KiB of 16 GiB, disk', RATE] / 1e3:.0f} thousand a second",
    "| | aim | " + " | ".join(HOSTS) + " |",
    *[line.text() for line in LINES],
]


def test_the_decision_says_what_the_channels_bring() -> None:
    text = (ROOT / "docs/decisions/0015-device-code-claims-slots.md").read_text()
    for named, name in (
        ("mailbox", MAILBOX),
        ("NVMe entries, 16 queues a thread", QUEUES + "16 queues a thread"),
        ("NVMe entries, one queue a thread", QUEUES + "one queue a thread"),
    ):
        assert f"| {named} | {one_and_four(name, 2).replace(' and ', ' | ')} |" in text, named


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_page_says_what_was_measured(claim: str) -> None:
    assert claim in " ".join(PAGE.split()), claim


def test_control_another_number_is_found() -> None:
    assert "12.4" in CLAIMS[0]
    assert CLAIMS[0].replace("12.4", "12.9") not in " ".join(PAGE.split())
