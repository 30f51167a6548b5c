"""What the suite `hmatrix` promises: what pinning and the best mode gain, and how near sweeps come to ceilings."""

from __future__ import annotations

from penstock_bench.engine.promises import Check, Medians, Rows, judged
from penstock_bench.suites.hmatrix.hacapk import OURS, THEIRS
from penstock_bench.suites.hmatrix.matrices import power

PUBLISHED_READ, PUBLISHED_TOTAL = 1.71, 1.31  # gains of pinned batches over a CPU path, as published


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, "hmatrix")
    found = [*_parity(medians, rows), *_best(medians), *_products(medians), *_beside(medians)]
    return judged(rows, found)


def _parity(medians: Medians, rows: Rows) -> list[Check]:
    ratios = sorted({row["ratio"] for row in rows if row["kind"] == "hmatrix" and row.get("subject") == "path"})
    if not ratios:
        return []
    found = []
    for ratio in reversed(ratios):
        memory = f"{ratio:g} of the matrix: "
        for what, cpu, gpu in (
            ("in memory", "buffered, hot", "gpu, hot, pinned"),
            ("on disk", "direct, cold", "gpu, cold, pinned"),
        ):
            name = f"file {what}, {ratio:g}: CPU path / GPU pinned"
            read = _gain(medians, memory + cpu, memory + gpu, "read_s")
            total = _gain(medians, memory + cpu, memory + gpu, "seconds")
            found.append(Check(f"read time, {name}", read, PUBLISHED_READ, only="gpu"))
            found.append(Check(f"total time, {name}", total, PUBLISHED_TOTAL, only="gpu"))
    for way, ceiling in (("auto, hot", "hot"), ("auto, cold", "cold")):
        rate = medians.ratio(f"{ratios[0]:g} of the matrix: {way}", f"ceiling, the file {ceiling}")
        found.append(Check(f"sweeps / reads of the file, {ceiling}", rate, 0.95, only="gpu"))
    return found


def _gain(medians: Medians, slow: str, fast: str, field: str) -> float | None:
    above, below = medians.field(slow, field), medians.field(fast, field)
    return above / below if above and below else None


def _best(medians: Medians) -> list[Check]:
    gain = _gain(medians, "to 1e-4: parity", "to 1e-4: best", "seconds")
    found = [Check("to 1e-4, parity / best, seconds", gain, 10, only="gpu")]
    for tolerance, matrices, sweeps in ((1e-4, 1.1, 5), (1e-6, 3.2, 9)):
        name = f"to {power(tolerance)}: best"
        read, count = medians.field(name, "matrices_read"), medians.field(name, "sweeps")
        found.append(Check(f"to {power(tolerance)}, matrices read", read, matrices, at_least=False))
        found.append(Check(f"to {power(tolerance)}, sweeps", count, sweeps, at_least=False))
    return found


def _products(medians: Medians) -> list[Check]:
    """A copy reads and writes; a product only reads, so all of what it reads counts."""
    rate = medians.ratio("product in memory: fp64", "ceiling, copy in memory")
    return [Check("product in memory / copy in memory", rate, 0.6, only="gpu")]


def _beside(medians: Medians) -> list[Check]:
    """Only where HACApK was run beside."""
    found = []
    for what, field, bound in (("build", "seconds", 1 / 1.2), ("product", "product_s", 1.0)):
        gain = _gain(medians, THEIRS, OURS, field)
        if gain is not None:
            found.append(Check(f"{what}, HACApK / penstock, seconds", gain, bound))
    return found
