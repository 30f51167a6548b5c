"""Peers measured in the same run on the same file, and the memory the command needs.

A peer that is not installed is listed as missing. fio moves bytes to memory of its own, so that the device cannot check
them; KvikIO moves them to a GPU.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock import Error
from penstock._api import Buffer
from penstock.calibration.poison import DECOY_BYTES, poison
from penstock.calibration.stage import MISSING_CODES
from penstock.calibration.workspace import FILE_SEED, make_cold, make_hot
from penstock_bench.engine.results import Stopwatch
from penstock_bench.engine.rounds import Absent, Probe
from penstock_bench.engine.stamped import check
from penstock_bench.suites.children import finished
from penstock_bench.suites.core import peers_torch
from penstock_bench.suites.core.files import STATES, source, target

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run

FIO_LIMIT_S = 300
CUFILE_CALL_BYTES = 1 << 30  # the most that Penstock puts into one call
MEMORY_LIMIT_S = 600


def probes(run: Run) -> list[Probe]:
    """Those of `run.peers`."""
    known: dict[str, Callable[[], list[Probe]]] = {
        "fio": lambda: [Probe("fio read", lambda _: _fio(run))],
        "kvikio": lambda: _kvikio_probes(run),
        "cufile": lambda: [
            Probe("cuFile compat, one thread", lambda _: _cufile(run, "gds-compat", "hot")),
            Probe("cuFile native, one thread", lambda _: _cufile(run, "gds", "cold")),
        ],
        "torch": lambda: [Probe("torch pinned copies", lambda _: peers_torch.pinned_copies(run))],
        "safetensors": lambda: [Probe("safetensors.torch.load_file", lambda _: peers_torch.load_file(run))],
    }
    return [probe for name, make in known.items() if name in run.peers for probe in make()]


def _cufile(run: Run, path: str, cache: str) -> dict[str, Any]:
    """libcufile as a program calls it that knows nothing else: one thread, and calls as large as it takes."""
    file, memory = source(run), run.device
    STATES[cache](file, run.bytes)
    one = {"path": path, "workers": 1, "depth": 1, "chunk_bytes": min(run.bytes, CUFILE_CALL_BYTES), "strict": True}
    try:
        if cache == "hot":
            file.read(memory, **one)  # not timed, as of our own
        target(run).read(_decoy(run), **one)
        poison(run.context, memory)
        with Stopwatch() as watch:
            outcome = file.read(memory, **one)
    except Error as error:
        if error.code not in MISSING_CODES:
            raise
        raise Absent(error.cause) from None
    check(run.context, file.name, memory, FILE_SEED)
    return {
        "bytes": outcome.bytes,
        "seconds": outcome.seconds,
        "took": outcome.path,
        **watch.cpu(),
    }


def _decoy(run: Run) -> Buffer:
    """Where a peer is to read the target file to, whose bytes are others: its staging memory, which we cannot fill,
    then holds none of the bytes that are to come."""
    return run.device.slice(0, min(run.bytes, DECOY_BYTES))


def _kvikio_probes(run: Run) -> list[Probe]:
    found = [Probe("KvikIO default", lambda _: _kvikio(run, None))]
    for threads in run.settings["kvikio_threads"]:
        for task in run.settings["kvikio_task_bytes"]:
            found.append(Probe(f"KvikIO {threads} x {task}", _kvikio_probe(run, threads, task)))
    return found


def _kvikio_probe(run: Run, threads: int, task: str) -> Callable[[int], dict[str, Any]]:
    from penstock import parse_bytes

    return lambda _: _kvikio(run, (threads, parse_bytes(task)))


def _fio(run: Run) -> dict[str, Any]:
    """fio with io_uring, 1 MiB requests, depth 8, O_DIRECT."""
    if shutil.which("fio") is None:
        raise Absent("fio is not installed")
    if not source(run).facts["direct"]:
        raise Absent("this file system has no O_DIRECT")
    make_cold(source(run), run.bytes)
    command = [
        "fio",
        "--name=peer",
        f"--filename={source(run).name}",
        "--readonly",
        "--rw=read",
        "--bs=1m",
        "--iodepth=8",
        "--ioengine=io_uring",
        "--direct=1",
        f"--size={run.bytes}",
        "--output-format=json",
    ]
    done = finished(command, FIO_LIMIT_S, cwd=run.workspace.directory)
    if done.returncode != 0:
        raise Absent(f"fio failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    seconds = job["read"]["runtime"] / 1e3
    return {
        "bytes": job["read"]["io_bytes"],
        "seconds": job["read"]["io_bytes"] / job["read"]["bw_bytes"],
        "cpu_user_s": job["usr_cpu"] / 100 * seconds,
        "cpu_system_s": job["sys_cpu"] / 100 * seconds,
    }


def _kvikio(run: Run, tuned: tuple[int, int] | None) -> dict[str, Any]:
    """KvikIO from the page cache into the same device buffer; `tuned` is (threads, task bytes)."""
    if run.emulated:
        raise Absent("KvikIO needs a GPU")
    if find_spec("kvikio") is None:
        raise Absent("KvikIO is not installed")
    import kvikio
    import kvikio.defaults

    name, memory = source(run).name, run.device
    make_hot(source(run), run.bytes)
    chosen: AbstractContextManager[Any] = nullcontext()
    if tuned is not None:
        # KvikIO's own page-cache path: its best here. Left to itself it takes cuFile where that can be loaded.
        mode = kvikio.CompatMode.ON
        chosen = kvikio.defaults.set({"num_threads": tuned[0], "task_size": tuned[1], "compat_mode": mode})
    try:
        with chosen, kvikio.CuFile(name, "r") as file:
            file.pread(memory).get()  # not timed, as of our own
            with kvikio.CuFile(target(run).name, "r") as other:
                other.pread(_decoy(run)).get()
            poison(run.context, memory)
            with Stopwatch() as watch:
                moved = file.pread(memory).get()
    except (RuntimeError, OSError, ValueError) as failure:
        raise Absent(f"KvikIO failed: {failure}") from failure
    check(run.context, name, memory, FILE_SEED)
    return {
        "bytes": moved,
        "seconds": watch.seconds,
        **watch.cpu(),
    }


def measure_memory(run: Run) -> None:
    """Peak resident memory of `penstock read` of a large file, in a process of its own. The file is sparse: its size,
    not its content, is what memory could depend on."""
    from penstock import parse_bytes

    size = parse_bytes(str(run.settings["memory_file_bytes"]))
    path = run.workspace.directory / "sparse.bin"
    with path.open("wb") as stream:
        stream.truncate(size)
    command = [
        sys.executable,
        "-c",
        "import sys; from penstock.cli import main; sys.exit(main())",
        "read",
        str(path),
        "--to",
        run.context.device["name"],
        "--path",
        "direct",
        "--json",
    ]
    try:
        done = finished(command, MEMORY_LIMIT_S)
    finally:
        path.unlink()
    if done.returncode != 0:
        run.results.add("missing", name="memory", cause=done.stderr.strip())
        return
    fields = json.loads(done.stdout)
    run.results.add(
        "memory",
        bytes=fields["bytes"],
        peak_rss_bytes=fields["peak_rss_bytes"],
        budget_bytes=256 << 20,
        seconds=fields["seconds"],
    )
