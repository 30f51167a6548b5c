"""What docs/gpu.md says of speed is what the committed rows say: medians, as they are written there."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text()
RATE, BYTES, HITS, TIME, MEAN = "operations_per_second", "bytes_per_second", "hit_rate", "p50_us", "mean_us"


def medians(file: str) -> dict[tuple[str, str], float]:
    values = defaultdict(list)
    for line in (ROOT / "bench" / "results" / file).read_text().splitlines():
        row = json.loads(line)
        for what in (RATE, BYTES, HITS, TIME, MEAN):
            if row["kind"] == "gpu-io" and what in row:
                values[row["name"], what].append(row[what])
    return {key: median(some) for key, some in values.items()}


FIRST, SLOWER = medians("h200-gpu-io.jsonl"), medians("h200-gpu-io-slower-host.jsonl")
DISK, THIRD = medians("h200-gpu-io-disk.jsonl"), medians("h200-gpu-io-third-host.jsonl")
FOURTH, MISSED = medians("h200-gpu-io-fourth-host.jsonl"), medians("h200-gpu-io-misses.jsonl")
THROUGH = medians("h200-gpu-io-cache.jsonl")
WRITES = [f"write {order} {size} KiB" for order in ("random", "sequential") for size in (4, 128)]
BLOCKS = [FIRST[f"blocks of {threads}, a ring for each warp", RATE] for threads in (32, 64, 128, 256, 512, 1024)]


def beside_host(found: dict[tuple[str, str], float], name: str) -> float:
    """Of the faster of the host's two ways."""
    return found[name, BYTES] / max(found[f"{name}, host {way}", BYTES] for way in ("threads", "io_uring"))


def on_disk(name: str) -> str:
    return f"{beside_host(DISK, name):.2f}"


def millions(name: str, found: dict[tuple[str, str], float] = FIRST, digits: int = 1) -> str:
    return f"{found[name, RATE] / 1e6:.{digits}f}"


def gigabytes(name: str, digits: int = 1) -> str:
    return f"{FIRST[name, BYTES] / 1e9:.{digits}f}"


def longer(found: dict[tuple[str, str], float]) -> str:
    """A gather of misses beside the requests alone."""
    return f"{found[MISSES, RATE] / found['rows gathered, all misses', RATE]:.2f}"


def through_cache(size: int) -> str:
    """Of the faster of the host's two ways in sequence."""
    name = f"write sequential {size} KiB"
    best = max(THROUGH[f"{name}, host {way}", BYTES] for way in ("threads", "io_uring"))
    return f"{THROUGH[f'write through the page cache in device memory, {size} KiB', BYTES] / best:.2f}"


def ratio(one: float, other: float, digits: int = 2) -> str:
    return f"{one / other:.{digits}f}"


MISS = "one miss alone"
STORES = [
    rate
    for found in (THIRD, FOURTH)
    for (name, what), rate in found.items()
    if "writes random" in name and what == RATE
]
ALONE, TILES, MISSES = "one request alone, ", "tiles, all hits", "as many warps as for misses"
MEMORY, LOCKED = "memory random 4 KiB, ", "ceiling, page-locked memory, "
CLAIMS = [
    f"| {millions(MEMORY + '12 service threads')} M/s | {millions(LOCKED + 'random 4 KiB')} M/s from page-locked",
    f"| {millions(MEMORY + '4 service threads')} and {millions(MEMORY + '1 service thread')} M/s |",
    f"registered) | {millions('ceiling, registered file, random 4 KiB')} M/s |",
    f"| {millions('cached file, 4 KiB')} M/s | {millions('pread and copy, 4 KiB', digits=2)} threads with pread",
    f"copy, {millions('cuFile compat, 4 KiB', digits=2)} threads of cuFile",
    f"64 slots | {FIRST[ALONE + 'not checked', TIME]:.1f} us |",
    f"us | {FIRST[ALONE + 'checked', TIME]:.1f} us with its check: over",
    f"One miss alone takes {THROUGH[MISS, MEAN]:.0f} us",
    f"with its check took {FIRST[ALONE + 'checked', MEAN]:.1f} to {THIRD[ALONE + 'checked', MEAN]:.1f}:",
    f"It took {FOURTH[MISS, MEAN]:.0f} us before",
    f"128 KiB at {through_cache(128)} of the host alone, 4 KiB at {through_cache(4)} "
    f"({THROUGH['write through the page cache in device memory, 4 KiB', RATE] / 1e3:.0f} thousand a second",
    f"go at {min(STORES) / 1e6:.2f} to {max(STORES) / 1e6:.2f} million a second",
    f"| blocks of 32 to 1024 threads | {min(BLOCKS) / 1e6:.1f} to {max(BLOCKS) / 1e6:.1f} M/s |",
    f"| {gigabytes('memory sequential 128 KiB')} GB/s | {gigabytes(LOCKED + 'sequential 128 KiB')} from page-locked",
    f"| {gigabytes('element loads, all hits', 0)} GB/s |",
    f"| {round(FIRST['element loads, plain memory', BYTES] / 1e10) * 10} from plain memory |",
    f"| {FIRST[TILES, BYTES] / 1e12:.1f} TB/s | {FIRST['tiles, plain memory', BYTES] / 1e12:.1f} from plain",
    f"| {FIRST['sweep with advice', HITS]:.2f} hits with advice, {FIRST['sweep without advice', HITS]:.2f} without |",
    f"| {millions('rows gathered')} M rows/s | {millions('rows by numpy.memmap and copy')} numpy.memmap and copy, "
    f"{millions('rows by cuFile compat', digits=2)} cuFile |",
    f"{ratio(FIRST[TILES, BYTES], FIRST['tiles, plain memory', BYTES])} of plain memory",
    f"takes {longer(FIRST)} times as long",
    f"{longer(FOURTH)} times as long as the requests alone, and {longer(MISSED)} in the 15 rounds",
    f"hosts before had {longer(FIRST)} to {longer(SLOWER)}.",
    f"give {FOURTH['element loads, all hits', BYTES] / 1e9:.0f} GB/s of element loads, "
    f"{millions(MEMORY + '12 service threads', FOURTH)} and {millions(MEMORY + '4 service threads', FOURTH)} million",
    f"threads, {beside_host(FOURTH, 'disk sequential 128 KiB'):.2f} and {beside_host(FOURTH, 'disk random 4 KiB'):.2f} "
    f"of the host alone for the disk's reads and {min(beside_host(FOURTH, name) for name in WRITES):.3f} to "
    f"{max(beside_host(FOURTH, name) for name in WRITES):.2f} for its writes",
    f"bring {millions(MEMORY + '4 service threads')} million pages a second here and "
    f"{millions(MEMORY + '4 service threads', SLOWER)} on the slower host",
    f"| random 4 KiB | {on_disk('disk random 4 KiB')} | {on_disk('write random 4 KiB')} |",
    f"| sequential 4 KiB | | {on_disk('write sequential 4 KiB')} |",
    f"| random 128 KiB | | {on_disk('write random 128 KiB')} |",
    f"| sequential 128 KiB | {on_disk('disk sequential 128 KiB')} | {on_disk('write sequential 128 KiB')} |",
    f"give {beside_host(FIRST, 'disk sequential 128 KiB'):.2f} for reads in sequence and "
    f"{beside_host(FIRST, 'disk random 4 KiB'):.2f} for random ones",
    f"{beside_host(SLOWER, 'disk sequential 128 KiB'):.2f} and {beside_host(SLOWER, 'disk random 4 KiB'):.2f}, and "
    f"{beside_host(SLOWER, 'write sequential 4 KiB'):.2f} and "
    f"{beside_host(SLOWER, 'write sequential 128 KiB'):.2f} for",
    f"give {beside_host(THIRD, 'disk sequential 128 KiB'):.2f} and "
    f"{beside_host(THIRD, 'disk random 4 KiB'):.2f} for reads, which miss it, and "
    f"{beside_host(THIRD, 'write sequential 4 KiB'):.2f} (4 KiB in sequence, which misses it too) to "
    f"{max(beside_host(THIRD, name) for name in WRITES):.2f} for writes.",
    f"{millions(MEMORY + '4 service threads', THIRD)} on the slower host as on the third",
    f"{millions('blocks of 1, a ring for each warp')} of 4096 blocks of one thread; "
    f"{max(FIRST[f'blocks of {threads}, one ring', RATE] for threads in (32, 64, 128, 256, 512, 1024)) / 1e6:.1f} "
    "where all warps begin",
    f"{millions('random 4 KiB of 1 GiB, page cache')} M/s of 1 GiB and of 16 GiB",
    f"{FIRST['random 4 KiB of 1 GiB, disk', RATE] / 1e3:.0f} and "
    f"{FIRST['random 4 KiB of 16 GiB, disk', RATE] / 1e3:.0f} thousand a second",
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_page_says_what_was_measured(claim: str) -> None:
    assert claim in " ".join(PAGE.split()), claim


def test_control_another_number_is_found() -> None:
    assert CLAIMS[0].replace("12.5", "12.9") not in " ".join(PAGE.split())
