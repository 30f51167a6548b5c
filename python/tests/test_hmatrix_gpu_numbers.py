"""What docs/applications/hmatrix.md says of an H200 is what the committed rows say: medians, as it writes them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "applications" / "hmatrix.md").read_text().split())
RESULTS = ROOT / "bench" / "results"
LARGE = json.loads((RESULTS / "h200-hmatrix-400k.json").read_text())


def medians(file: str) -> dict[tuple[str, str], float]:
    values = defaultdict(list)
    for line in (RESULTS / file).read_text().splitlines():
        row = json.loads(line)
        for field, value in row.items() if row["kind"] == "hmatrix" else ():
            if isinstance(value, (int, float)):
                values[row["name"], field].append(value)
    return {key: median(some) for key, some in values.items()}


FOUND, SECOND = medians("h200-hmatrix.jsonl"), medians("h200-hmatrix-second-host.jsonl")
RATES, THIRD = medians("h200-hmatrix-rates.jsonl"), medians("h200-hmatrix-third-host.jsonl")
RATE = "bytes_per_second"


def path(what: str, way: str, ratio: str = "0.815") -> str:
    """A line of the first table."""
    name = f"{ratio} of the matrix: {way}"
    seconds = " | ".join(f"{FOUND[name, field]:.2f}" for field in ("seconds", "read_s", "other_s", "hit_rate"))
    return f"{what} | {seconds} | {FOUND[name, 'bytes_read'] / 1e9:.1f} |"


def pins(what: str, state: str) -> str:
    cells = [f"{count} batches pinned: gpu, {state}" for count in (0, 20, 50, 80, 110, 120)]
    return f"{what}, total s (read s) | " + " | ".join(
        f"{FOUND[cell, 'seconds']:.2f} ({FOUND[cell, 'read_s']:.2f})" for cell in cells
    )


def pinned(what: str, field: str, scale: float, digits: int) -> str:
    found = [FOUND[f"{count} batches pinned: gpu, cold", field] / scale for count in (0, 20, 50, 80, 110, 120)]
    return f"{what} | " + " | ".join(f"{value:.{digits}f}" for value in found)


def times(slow: str, fast: str, field: str = "seconds", found: dict[tuple[str, str], float] = FOUND) -> str:
    return f"{found[slow, field] / found[fast, field]:.1f}"


def gain(field: str, found: dict[tuple[str, str], float]) -> str:
    """Pinned, by the GPU, from disk and from the page cache."""
    cold, hot = ("direct, cold", "gpu, cold, pinned"), ("buffered, hot", "gpu, hot, pinned")
    return " and ".join(times(MOST + slow, MOST + fast, field, found) for slow, fast in (cold, hot))


def beside_reads(way: str, found: dict[tuple[str, str], float]) -> str:
    return f"{found[LEAST + way, RATE] / found[f'ceiling, the file {way[6:]}', RATE]:.2f}"


def speed(host: str, gpu: str) -> str:
    return f"{THIRD[LEAST + host, 'seconds'] / THIRD[LEAST + gpu, 'seconds']:.2f}"


LEAST, MOST = "0.204 of the matrix: ", "0.815 of the matrix: "
FP64 = "product in memory: fp64"
CLAIMS = [
    path("disk, direct", "direct, cold"),
    path("disk, GPU-initiated, default replacement", "gpu, cold"),
    path("disk, direct, as many batches pinned as fit", "direct, cold, pinned"),
    path("disk, GPU-initiated, as many pinned", "gpu, cold, pinned"),
    path("page cache, buffered", "buffered, hot"),
    path("page cache, buffered, zig-zag", "buffered, hot, zig-zag"),
    path("page cache, buffered, pinned", "buffered, hot, pinned"),
    path("page cache, cuFile in compatibility mode", "gds-compat, hot"),
    path("page cache, GPU-initiated, default replacement", "gpu, hot"),
    path("page cache, GPU-initiated, pinned", "gpu, hot, pinned"),
    path("disk, direct", "direct, cold", "0.204"),
    path("disk, direct, pinned", "direct, cold, pinned", "0.204"),
    path("disk, GPU-initiated, pinned", "gpu, cold, pinned", "0.204"),
    path("page cache, buffered", "buffered, hot", "0.204"),
    path("page cache, GPU-initiated, pinned", "gpu, hot, pinned", "0.204"),
    pins("| disk", "cold"),
    pins("| page cache", "hot"),
    pinned("| hit rate, from disk", "hit_rate", 1, 2),
    pinned("| GB from storage, disk", "bytes_read", 1e9, 1),
    f"reads {times(MOST + 'direct, cold', MOST + 'gpu, cold, pinned', 'read_s')} times faster from disk",
    f"{times(MOST + 'buffered, hot', MOST + 'gpu, hot, pinned', 'read_s')} times from the page cache; in all it takes "
    f"{times(MOST + 'direct, cold', MOST + 'gpu, cold, pinned')} and "
    f"{times(MOST + 'buffered, hot', MOST + 'gpu, hot, pinned')} times less",
    f"{times(MOST + 'gpu, cold, pinned', MOST + 'direct, cold, pinned')} times from disk and hardly",
    f"| 1e-4, parity | {FOUND['to 1e-4: parity', 'seconds']:.2f} |",
    f"**{FOUND['to 1e-4: best', 'seconds']:.2f}** |",
    f"| 1e-6, best | {FOUND['to 1e-6: best', 'seconds']:.2f} |",
    f"{FOUND['to 1e-4: parity', 'seconds'] / FOUND['to 1e-4: best', 'seconds']:.0f} times faster than parity mode",
    f"{FOUND[LEAST + 'auto, cold', RATE] / FOUND['ceiling, the file cold', RATE]:.3f} of the rate from this disk",
    f'"direct" at {FOUND[LEAST + "direct, cold", RATE] / FOUND["ceiling, the file cold", RATE]:.2f}.',
    f"{FOUND[LEAST + 'auto, hot', RATE] / FOUND['ceiling, the file hot', RATE]:.2f} of the rate from the page cache",
    f'sweeps by "auto" at {beside_reads("auto, cold", RATES)} of plain reads from disk, which misses the aim, and at '
    f"{beside_reads('auto, hot', RATES)} from the page cache; "
    f"products at {RATES[FP64, RATE] / RATES['ceiling, copy in memory', RATE]:.2f} of the copy. The whole",
    f"reads {gain('read_s', THIRD)} times faster, in all {gain('seconds', THIRD)} times; with memory for 0.204 it has "
    f"{speed('direct, cold', 'gpu, cold, pinned')} and {speed('buffered, hot', 'gpu, hot, pinned')} "
    f"of the speed of the host's path; best mode is "
    f"{THIRD['to 1e-4: parity', 'seconds'] / THIRD['to 1e-4: best', 'seconds']:.0f} times faster",
    f"reads {gain('read_s', SECOND)} times faster there, in all {gain('seconds', SECOND)} times; "
    f"best mode is {SECOND['to 1e-4: parity', 'seconds'] / SECOND['to 1e-4: best', 'seconds']:.0f} times faster",
    f"{SECOND[LEAST + 'auto, cold', RATE] / SECOND['ceiling, the file cold', RATE]:.2f} (disk) and "
    f"{SECOND[LEAST + 'auto, hot', RATE] / SECOND['ceiling, the file hot', RATE]:.2f} (page cache) of plain reads, "
    f"with memory for 0.815 at {SECOND[MOST + 'auto, cold', RATE] / SECOND['ceiling, the file cold', RATE]:.2f} from",
    f"products at {SECOND[FP64, RATE] / SECOND['ceiling, copy in memory', RATE]:.2f} of the copy",
    f"from doubles {FOUND[FP64, RATE] / 1e12:.2f} TB/s, "
    f"**{FOUND[FP64, RATE] / FOUND['ceiling, copy in memory', RATE]:.2f} of what a copy",
    f"from tiers at 1e-4 {FOUND['product in memory: tiers 1e-4', RATE] / 1e12:.2f} TB/s",
    f"{FOUND['build, fp64', 'assemble_s']:.2f} s on the GPU, "
    f"{FOUND['build, fp64, on the host', 'assemble_s']:.1f} s on 16 cores",
    f"{LARGE['unknowns']:,} unknowns, {LARGE['bytes_fp64'] / 1e9:.2f} GB as doubles, "
    f"{LARGE['bytes_stored'] / 1e9:.2f} GB as tiers, {LARGE['bytes_stored'] / (400 << 20):.1f} times the memory given",
    f"solved to {LARGE['relative_residual']:.1e} in {LARGE['sweeps']} sweeps".replace("e-0", "e-"),
    f"sampled, is {LARGE['sampled_error']:.2e},".replace("e-0", "e-"),
    f"({LARGE['bytes_read'] / 1e9:.1f} GB, waited for {LARGE['read_s']:.1f} s), **{LARGE['total_s']:.0f} s in all**",
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_page_says_what_was_measured(claim: str) -> None:
    assert claim in PAGE, claim


def test_control_another_number_is_found() -> None:
    assert CLAIMS[0].replace("10.1", "10.2") not in PAGE
