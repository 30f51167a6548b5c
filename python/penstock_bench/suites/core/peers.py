"""Peers measured in the same run on the same file, and the memory the command needs.

A peer that is not installed is listed as missing. fio moves bytes to memory of its own, so that the device cannot check
them; KvikIO moves them to a GPU.
"""

from __future__ import annotations

import json
import shutil
import subprocess
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
from penstock_bench.suites.core import peers_torch

STATES = {"hot": make_hot, "cold": make_cold}

if TYPE_CHECKING:
    from penstock_bench.suites.core.bench import CoreBench

FIO_LIMIT_S = 300
CUFILE_CALL_BYTES = 1 << 30  # the most that Penstock puts into one call
MEMORY_LIMIT_S = 600


def probes(bench: CoreBench) -> list[Probe]:
    """Those of `bench.peers`."""
    known: dict[str, Callable[[], list[Probe]]] = {
        "fio": lambda: [Probe("fio read", lambda _: _fio(bench))],
        "kvikio": lambda: _kvikio_probes(bench),
        "cufile": lambda: [
            Probe("cuFile compat, one thread", lambda _: _cufile(bench, "gds-compat", "hot")),
            Probe("cuFile native, one thread", lambda _: _cufile(bench, "gds", "cold")),
        ],
        "torch": lambda: [Probe("torch pinned copies", lambda _: peers_torch.pinned_copies(bench))],
        "safetensors": lambda: [Probe("safetensors.torch.load_file", lambda _: peers_torch.load_file(bench))],
    }
    return [probe for name, make in known.items() if name in bench.peers for probe in make()]


def _cufile(bench: CoreBench, path: str, cache: str) -> dict[str, Any]:
    """libcufile as a program calls it that knows nothing else: one thread, and calls as large as it takes."""
    STATES[cache](bench.source, bench.bytes)
    one = {"path": path, "workers": 1, "depth": 1, "chunk_bytes": min(bench.bytes, CUFILE_CALL_BYTES), "strict": True}
    try:
        if cache == "hot":
            bench.source.read(bench.device, **one)  # not timed, as of our own
        bench.target.read(_decoy(bench), **one)
        poison(bench.context, bench.device)
        with Stopwatch() as watch:
            outcome = bench.source.read(bench.device, **one)
    except Error as error:
        if error.code not in MISSING_CODES:
            raise
        raise Absent(error.cause) from None
    check(bench.context, bench.source.name, bench.device, FILE_SEED)
    return {
        "bytes": outcome.bytes,
        "seconds": outcome.seconds,
        "took": outcome.path,
        **watch.cpu(),
    }


def _decoy(bench: CoreBench) -> Buffer:
    """Where a peer is to read the target file to, whose bytes are others: its staging memory, which we cannot fill,
    then holds none of the bytes that are to come."""
    return bench.device.slice(0, min(bench.bytes, DECOY_BYTES))


def _kvikio_probes(bench: CoreBench) -> list[Probe]:
    found = [Probe("KvikIO default", lambda _: _kvikio(bench, None))]
    for threads in bench.settings["kvikio_threads"]:
        for task in bench.settings["kvikio_task_bytes"]:
            found.append(Probe(f"KvikIO {threads} x {task}", _kvikio_probe(bench, threads, task)))
    return found


def _kvikio_probe(bench: CoreBench, threads: int, task: str) -> Callable[[int], dict[str, Any]]:
    from penstock import parse_bytes

    return lambda _: _kvikio(bench, (threads, parse_bytes(task)))


def _fio(bench: CoreBench) -> dict[str, Any]:
    """fio with io_uring, 1 MiB requests, depth 8, O_DIRECT."""
    if shutil.which("fio") is None:
        raise Absent("fio is not installed")
    if not bench.source.facts["direct"]:
        raise Absent("this file system has no O_DIRECT")
    make_cold(bench.source, bench.bytes)
    command = [
        "fio",
        "--name=peer",
        f"--filename={bench.source.name}",
        "--readonly",
        "--rw=read",
        "--bs=1m",
        "--iodepth=8",
        "--ioengine=io_uring",
        "--direct=1",
        f"--size={bench.bytes}",
        "--output-format=json",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=FIO_LIMIT_S, check=False, cwd=bench.workspace.directory
    )
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


def _kvikio(bench: CoreBench, tuned: tuple[int, int] | None) -> dict[str, Any]:
    """KvikIO from the page cache into the same device buffer; `tuned` is (threads, task bytes)."""
    if bench.emulated:
        raise Absent("KvikIO needs a GPU")
    if find_spec("kvikio") is None:
        raise Absent("KvikIO is not installed")
    import kvikio
    import kvikio.defaults

    make_hot(bench.source, bench.bytes)
    chosen: AbstractContextManager[Any] = nullcontext()
    if tuned is not None:
        # KvikIO's own page-cache path: its best here. Left to itself it takes cuFile where that can be loaded.
        mode = kvikio.CompatMode.ON
        chosen = kvikio.defaults.set({"num_threads": tuned[0], "task_size": tuned[1], "compat_mode": mode})
    try:
        with chosen, kvikio.CuFile(bench.source.name, "r") as file:
            file.pread(bench.device).get()  # not timed, as of our own
            with kvikio.CuFile(bench.target.name, "r") as other:
                other.pread(_decoy(bench)).get()
            poison(bench.context, bench.device)
            with Stopwatch() as watch:
                moved = file.pread(bench.device).get()
    except (RuntimeError, OSError, ValueError) as failure:
        raise Absent(f"KvikIO failed: {failure}") from failure
    check(bench.context, bench.source.name, bench.device, FILE_SEED)
    return {
        "bytes": moved,
        "seconds": watch.seconds,
        **watch.cpu(),
    }


def measure_memory(bench: CoreBench) -> None:
    """Peak resident memory of `penstock read` of a large file, in a process of its own. The file is sparse: its size,
    not its content, is what memory could depend on."""
    from penstock import parse_bytes

    size = parse_bytes(str(bench.settings["memory_file_bytes"]))
    path = bench.workspace.directory / "sparse.bin"
    with path.open("wb") as stream:
        stream.truncate(size)
    command = [
        sys.executable,
        "-c",
        "import sys; from penstock.cli import main; sys.exit(main())",
        "read",
        str(path),
        "--to",
        bench.context.device["name"],
        "--path",
        "direct",
        "--json",
    ]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = process.communicate(timeout=MEMORY_LIMIT_S)
        if process.returncode != 0:
            bench.results.add("missing", name="memory", cause=errors.strip())
            return
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        path.unlink()
    fields = json.loads(output)
    bench.results.add(
        "memory",
        bytes=fields["bytes"],
        peak_rss_bytes=fields["peak_rss_bytes"],
        budget_bytes=256 << 20,
        seconds=fields["seconds"],
    )
