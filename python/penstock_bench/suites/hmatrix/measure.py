"""The suite `hmatrix`: a solver whose matrix is larger than its memory, by path, by what is pinned, and by method.

Parity mode is BiCGSTAB on doubles in batches, as published codes run it: every sweep reads what is not pinned. Best
mode is the default of penstock.hmatrix. Both get the same memory. Files are hot (in the page cache) or cold (dropped
before each trial, and read past the page cache); products of all are the same to rounding, which is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps  # brings hmatrix when it is named
from penstock.calibration.poison import poison_staging
from penstock.calibration.workspace import NotPossible, make_cold, make_resident, resident
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Probe, Sample, run_rounds
from penstock_bench.suites.hmatrix import ceilings, hacapk
from penstock_bench.suites.hmatrix.matrices import Matrices, power

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock_bench.engine.run import Run

KIND = "hmatrix"
BARELY = 0.05  # of a file in the page cache, after sweeps that must have read storage
SAME = 1e-9  # relative: products of one file by different ways differ by the order of sums
NEVER = 1e-14  # a tolerance that no trial of a fixed number of sweeps reaches


@dataclass(frozen=True)
class SolveWay:
    """How batches come."""

    name: str
    path: str
    cold: bool = False
    pins: int | None = 0  # batches that stay in memory; None: as many as fit
    zig_zag: bool = False


WAYS = (
    SolveWay("buffered, hot", "buffered"),
    SolveWay("direct, cold", "direct", cold=True),
    SolveWay("auto, hot", "auto"),
    SolveWay("auto, cold", "auto", cold=True),
    SolveWay("gds-compat, hot", "gds-compat"),
    SolveWay("gds-compat, cold", "gds-compat", cold=True),
    SolveWay("buffered, hot, zig-zag", "buffered", zig_zag=True),
    SolveWay("buffered, hot, pinned", "buffered", pins=None),
    SolveWay("direct, cold, pinned", "direct", cold=True, pins=None),
    SolveWay("gpu, hot", "gpu"),
    SolveWay("gpu, hot, pinned", "gpu", pins=None),
    SolveWay("gpu, cold", "gpu", cold=True),
    SolveWay("gpu, cold, pinned", "gpu", cold=True, pins=None),
)


def run_suite(run: Run) -> None:
    settings = run.settings
    _ways(settings)
    run.step(0, 0, "making the mesh")
    stored = Matrices(_mesh(settings))
    _build(run, stored, "fp64", float(settings["eps"]), encoding="fp64", batches=int(settings["batches"]))
    if not run.emulated:
        _build_on_host(run, stored)
    for tolerance in settings["tolerances"]:
        _build(run, stored, f"tiers {power(tolerance)}", float(tolerance))
    parts = (_paths, _pins, _best, _products, _ceilings, hacapk.probes)
    run_rounds(run, [probe for part in parts for probe in part(run, stored)])


def _ways(settings: dict[str, Any]) -> list[SolveWay]:
    """Those that the suite names in `ways`; all of them where it names none."""
    names = [way.name for way in WAYS]
    wanted = settings.get("ways", names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        cause = f"ways has '{unknown[0]}', which is not one of " + "; ".join(names)
        raise ps.Error(operation="read suite", cause=cause, advice="name some of them, or leave ways out for all")
    return [way for way in WAYS if way.name in wanted]


def _mesh(settings: dict[str, Any]) -> ps.hmatrix.Mesh:
    if settings["mesh"] != "none":
        return ps.hmatrix.read_mesh(settings["mesh"]).clean()[0]
    return ps.hmatrix.shape(settings["shape"], int(settings["triangles"]))


def _build(run: Run, stored: Matrices, name: str, eps: float, **options: Any) -> None:
    """Once: the matrix as a file in the workspace, with a row of its own."""
    path = run.workspace.directory / f"{name.replace(' ', '-')}.hmat"

    def progress(done: int, leaves: int, _bytes: int) -> None:
        run.step(done, leaves, f"building {name}")

    watch = Stopwatch()
    with watch:
        made = ps.hmatrix.assemble(stored.mesh, store=path, eps=eps, context=run.context, progress=progress, **options)
    with made:
        facts, built = made.facts, made.built
        if name == "fp64":
            stored.reference = made @ stored.ones()
    stored.files[name], stored.facts[name], stored.write_s[name] = path, facts, built["write_s"]
    _build_row(run, f"build, {name}", eps, built, watch)


def _build_on_host(run: Run, stored: Matrices) -> None:
    """The same doubles by the host's cores, beside those by the GPU. The file is not kept."""
    name, eps, path = "build, fp64, on the host", float(run.settings["eps"]), run.workspace.directory / "host.hmat"
    if run.results.has(KIND, name=name, round=0):
        return
    options: dict[str, Any] = {"encoding": "fp64", "batches": int(run.settings["batches"]), "assemble_on": "host"}
    run.step(0, 0, "building fp64 on the host")
    with Stopwatch() as watch:
        built = ps.hmatrix.assemble(stored.mesh, store=path, eps=eps, context=run.context, **options).built
    path.unlink()
    _build_row(run, name, eps, built, watch)


def _build_row(run: Run, name: str, eps: float, built: dict[str, Any], watch: Stopwatch) -> None:
    if run.results.has(KIND, name=name, round=0):
        return
    seconds, stored = built["assemble_s"] + built["write_s"], built["bytes_stored"]
    kept = {key: built[key] for key in BUILT}
    about = {"subject": "build", "bytes": stored, "bytes_per_second": stored / seconds, "eps": eps}
    run.results.add(KIND, name=name, round=0, seconds=seconds, **about, **watch.cpu(), **kept)


BUILT: tuple[str, ...] = ("unknowns", "low_rank_leaves", "dense_leaves", "batches", "bytes_fp64", "bytes_stored")
BUILT += ("entries_evaluated", "sampled_error", "assembled_on", "assemble_s", "write_s")


# -- parity mode


def _paths(run: Run, stored: Matrices) -> list[Probe]:
    probes = []
    for ratio in run.settings["ratios"]:
        for way in _ways(run.settings):
            name = f"{ratio:g} of the matrix: {way.name}"
            probes.append(Probe(name, partial(_parity, run, stored, way, ratio)))
    return probes


def _pins(run: Run, stored: Matrices) -> list[Probe]:
    ratio = max(run.settings["ratios"], default=1.0)
    probes = []
    for pins in run.settings["pins"]:
        for state in ("hot", "cold"):
            way = SolveWay(f"gpu, {state}", "gpu", state == "cold", pins)
            probes.append(Probe(f"{pins} batches pinned: {way.name}", partial(_pinned, run, stored, way, ratio)))
    return probes


def _pinned(run: Run, stored: Matrices, way: SolveWay, ratio: float, turn: int) -> Sample:
    return _parity(run, stored, way, ratio, turn) | {"subject": "pins"}


def _parity(run: Run, stored: Matrices, way: SolveWay, ratio: float, _turn: int) -> Sample:
    try:
        return _swept(run, stored, way, ratio)
    except ps.Error as error:
        if error.code in IMPOSSIBLE or error.operation.startswith("plan") or "cannot hold" in error.cause:
            raise NotPossible(error.cause) from None
        raise


IMPOSSIBLE = ("unsupported", "fallback_refused")


def _swept(run: Run, stored: Matrices, way: SolveWay, ratio: float) -> Sample:
    cache = stored.cache_bytes(ratio)
    state = _prepare(run, stored.files["fp64"], way.cold)
    count = _fitting(stored, cache, way) if way.pins is None else way.pins
    options: dict[str, Any] = {"cache_bytes": cache, "path": way.path, "pinned_batches": count, "pinned_tiers": 0}
    with stored.open(run.context, "fp64", zig_zag=way.zig_zag, verify="never", **options) as matrix:
        opened = matrix.counts
        iterations = int(run.settings["iterations"])
        with Stopwatch() as watch:
            found = ps.hmatrix.solve(
                matrix, stored.ones(), method="bicgstab", tol=NEVER, max_iterations=iterations, preconditioner=False
            )
        counts = matrix.counts
        _check_path(way, counts)
        _check_product(stored, matrix)
    if way.cold:
        _still_cold(run, stored.files["fp64"])
    return _sample(found, opened, counts, watch) | {
        "subject": "path",
        "way": way.name,
        "ratio": ratio,
        "cache_bytes": cache,
        "pinned_batches": counts["pinned_batches"],
        "matrix_bytes": stored.fp64_bytes,
        "write_s": stored.write_s["fp64"],
        **state,
    }


def _fitting(stored: Matrices, cache: int, way: SolveWay) -> int:
    """Batches that fit beside those that pass through. The device's page cache counts whole pages."""
    facts = stored.facts["fp64"]
    batch = facts["bytes_stored"] / facts["batches"]
    spare, page = (4, 2 << 17) if way.path == "gpu" else (4, 4096)
    return max(0, int(cache / (batch + page)) - spare)


def _prepare(run: Run, path: Path, cold: bool) -> dict[str, Any]:
    poison_staging(run.context)
    with run.context.open(path) as file:
        held = (make_cold if cold else make_resident)(file, file.size_bytes)
    return {"cache": "cold" if cold else "hot", "resident_fraction": held}


def _still_cold(run: Run, path: Path) -> None:
    """A path that fills the page cache reads from storage once, and from memory in the sweeps that follow."""
    with run.context.open(path) as file:
        held = resident(file, file.size_bytes)
    if held > BARELY:
        raise NotPossible(f"{held:.0%} of the file was in the page cache when the sweeps ended")


def _check_path(way: SolveWay, counts: dict[str, Any]) -> None:
    """A path that silently becomes another is no measurement of it."""
    took = set(counts["bytes_by_path"])
    wanted = {"auto": took, "gpu": {name for name in took if name.startswith("gpu")}}.get(way.path, {way.path})
    if took - wanted:
        raise NotPossible(f"{way.path} is not possible here: batches came by {', '.join(sorted(took - wanted))}")


def _check_product(stored: Matrices, matrix: ps.hmatrix.HMatrix) -> None:
    import numpy as np

    off = np.linalg.norm(matrix @ stored.ones() - stored.reference) / np.linalg.norm(stored.reference)
    if off > SAME:
        raise RuntimeError(f"a product is off by {off:g}: the bytes that came are not the matrix")


def _sample(found: Any, opened: dict[str, Any], counts: dict[str, Any], watch: Stopwatch) -> Sample:
    """The sample of a solve: the first touch of pinned memory, at opening, is told apart as `pin_s`."""
    taken = counts["bytes_taken"] - opened["bytes_taken"]
    return {
        "bytes": found.bytes_read,
        "seconds": found.seconds,
        "read_s": found.read_s,
        "other_s": max(found.seconds - found.read_s, 0.0),
        "pin_s": opened["read_s"],
        "bytes_read": found.bytes_read,
        "sweeps": found.sweeps,
        "iterations": found.iterations,
        "relative_residual": found.relative_residual,
        "hit_rate": (counts["bytes_hit"] - opened["bytes_hit"]) / taken if taken else 0.0,
        "took": ", ".join(sorted(counts["bytes_by_path"])),
        **watch.cpu(),
    }


# -- best mode beside parity mode


def _best(run: Run, stored: Matrices) -> list[Probe]:
    probes = []
    for tolerance in run.settings["tolerances"]:
        group = f"to {power(tolerance)}"
        # Parity mode takes many times as long: it is shown where it takes least.
        modes = ("best", "parity") if tolerance == max(run.settings["tolerances"]) else ("best",)
        probes += [Probe(f"{group}: {mode}", partial(_to, run, stored, tolerance, mode), group) for mode in modes]
    return probes


def _to(run: Run, stored: Matrices, tolerance: float, mode: str, _turn: int) -> Sample:
    """Cold, in the least memory of the suite."""
    best = mode == "best"
    cache = stored.cache_bytes(min(run.settings["ratios"], default=1.0))
    name = f"tiers {power(tolerance)}" if best else "fp64"
    state = _prepare(run, stored.files[name], cold=True)
    options: dict[str, Any] = {"cache_bytes": cache, "path": "direct", "verify": "never"}
    options |= {} if best else {"pinned_tiers": 0, "pinned_batches": 0}
    with stored.open(run.context, name, **options) as matrix:
        opened = matrix.counts
        method = {"method": "fgmres"} if best else {"method": "bicgstab", "preconditioner": False}
        with Stopwatch() as watch:
            found = ps.hmatrix.solve(matrix, stored.ones(), tol=tolerance, max_iterations=1000, **method)
        counts = matrix.counts
    _still_cold(run, stored.files[name])
    if not found.converged:
        raise NotPossible(f"no solution to {power(tolerance)}: {found.stopped_by}, at {found.relative_residual:.1e}")
    sample = _sample(found, opened, counts, watch)
    read = counts["bytes_read"]  # what was pinned at opening is read too
    sample |= {"bytes": read, "bytes_read": read, "seconds": found.seconds + opened["read_s"]}
    return sample | {
        "subject": "best",
        "tolerance": tolerance,
        "mode": mode,
        "cache_bytes": cache,
        "matrices_read": read / stored.fp64_bytes,
        "inner_iterations": found.inner_iterations,
        **state,
    }


# -- products in memory, and ceilings


def _products(run: Run, stored: Matrices) -> list[Probe]:
    return [Probe(f"product in memory: {name}", partial(_product, run, stored, name)) for name in stored.files]


def _product(run: Run, stored: Matrices, name: str, _turn: int) -> Sample:
    facts = stored.facts[name]
    sweeps = int(run.settings["product_sweeps"])
    with stored.open(run.context, name, verify="never") as matrix:
        matrix.product_seconds(sweeps)  # the GPU awakes
        with Stopwatch() as watch:
            seconds = matrix.product_seconds(sweeps)
    read = {"bytes": facts["bytes_stored"] * sweeps, "seconds": seconds}
    return {"subject": "product", "sweeps": sweeps, **read, **watch.cpu()}


def _ceilings(run: Run, stored: Matrices) -> list[Probe]:
    probes = [
        Probe(f"ceiling, the file {state}", partial(_whole_file, run, stored, state == "cold"))
        for state in ("hot", "cold")
    ]
    probes.append(Probe("ceiling, copy in memory", partial(_in_memory, run, ceilings.copies)))
    if run.emulated:
        probes.append(Probe("ceiling, sums in memory", partial(_in_memory, run, ceilings.sums)))
    return probes


def _whole_file(run: Run, stored: Matrices, cold: bool, _turn: int) -> Sample:
    """The matrix's file, or as much of it as memory is given, into the memory that products run in, by path "auto": as
    often as a solve sweeps over it, for many a disk gives the first gigabytes faster."""
    state = _prepare(run, stored.files["fp64"], cold)
    size = min(stored.facts["fp64"]["bytes_stored"], stored.cache_bytes(max(run.settings["ratios"], default=1.0)))
    with run.context.open(stored.files["fp64"]) as file:
        memory = run.context.allocate(size, first_touch="gpu")
        with Stopwatch() as watch:
            read = [file.read(memory) for _ in range(2 + 2 * int(run.settings["iterations"]))]
    if cold:
        _still_cold(run, stored.files["fp64"])
    moved = {"bytes": sum(one.bytes for one in read), "seconds": watch.seconds}
    return {"subject": "ceiling", **moved, **watch.cpu(), **state}


def _in_memory(run: Run, work: Callable[[bool], tuple[int, Stopwatch]], _turn: int) -> Sample:
    moved, watch = work(run.emulated)
    return {"subject": "ceiling", "bytes": moved, "seconds": watch.seconds, **watch.cpu()}
