"""`penstock gdsio`: takes gdsio's own flags, prints gdsio's result line, and adds the path that the bytes took."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import Error
from penstock._text import one_line
from penstock.cli import options, show
from penstock_bench.suites.children import signals_held

if TYPE_CHECKING:
    from penstock_bench.gdsio.job import Job
    from penstock_bench.gdsio.run import GdsioReport

Text = str | None


def gdsio(
    config: Annotated[Text, typer.Argument(help="A gdsio configuration file instead of flags.")] = None,
    file: Annotated[Text, typer.Option("-f", help="One file; each thread moves a part of it.")] = None,
    directory: Annotated[Text, typer.Option("-D", help="A folder: a file gdsio.N for each thread.")] = None,
    device: Annotated[Text, typer.Option("-d", help="Index of the GPU; or host, the emulated device.")] = None,
    node: Annotated[Text, typer.Option("-n", help="NUMA node on which the threads run.")] = None,
    memory: Annotated[Text, typer.Option("-m", help="0 cudaMalloc, 2 cudaMallocHost, 3 malloc, 4 mmap.")] = None,
    threads: Annotated[Text, typer.Option("-w", help="Number of threads.")] = None,
    size: Annotated[Text, typer.Option("-s", help="Size of each file, such as 16M.")] = None,
    start: Annotated[Text, typer.Option("-o", help="Offset in the file to begin at.")] = None,
    io: Annotated[Text, typer.Option("-i", help="Size of a request, or min:max:step.")] = None,
    nvlinks: Annotated[bool, typer.Option("-p", help="NVLinks: refused.")] = False,
    skip_register: Annotated[bool, typer.Option("-b", help="No effect: Penstock registers no buffers.")] = False,
    verify: Annotated[bool, typer.Option("-V", help="Write a pattern; check reads on the device.")] = False,
    transfer: Annotated[
        Text,
        typer.Option(
            "-x",
            help="0: cuFile; 1: to host memory; 2: the same, then to the GPU; 3: the same overlapped; 4: page cache, "
            "then to the GPU; 5: cuFile stream; 6, 7: cuFile batch; auto: the path that Penstock chooses.",
        ),
    ] = None,
    batch: Annotated[Text, typer.Option("-B", help="Requests of a batch, with -x 6 or 7.")] = None,
    io_type: Annotated[Text, typer.Option("-I", help="0 read, 1 write, 2 random read, 3 random write.")] = None,
    seconds: Annotated[Text, typer.Option("-T", help="Repeat for N seconds.")] = None,
    seed: Annotated[Text, typer.Option("-k", help="Seed of random offsets.")] = None,
    unaligned: Annotated[bool, typer.Option("-U", help="Random offsets that are not multiples of 4K.")] = False,
    random_fill: Annotated[bool, typer.Option("-R", help="Fill the memory with random data once.")] = False,
    refill: Annotated[bool, typer.Option("-F", help="Fill the memory before each write.")] = False,
    alignment: Annotated[Text, typer.Option("-a", help="Alignment of random offsets (4K).")] = None,
    mixed: Annotated[Text, typer.Option("-M", help="Percentage of batches that read, with -x 6 or 7.")] = None,
    rdma: Annotated[Text, typer.Option("-P", help="RDMA: refused.")] = None,
    per_job: Annotated[bool, typer.Option("-J", help="No effect: each job has a line anyway.")] = False,
    opened: Annotated[Text, typer.Option("-O", help="1: without O_DIRECT, with -x 1, 2 and 3.")] = None,
    json: Annotated[bool, typer.Option("--json", help="A JSON object a line, with percentiles.")] = False,
    only: Annotated[Text, typer.Option("--job", help="Only this job of the configuration file.")] = None,
) -> int:
    """Measure transfers as NVIDIA's gdsio does, with its flags. The result line ends with the path that was taken.

    If this machine lacks a path, the command fails with the cause; it never takes another path.

    Example: penstock gdsio -f data.gdsio -d host -w 2 -s 16M -i 1M -x 2 -I 1 -V
    """
    from penstock_bench.gdsio.job import Flags, job_of, load, refusal

    given = {
        "file": file, "directory": directory, "device": device, "node": node, "memory": memory, "threads": threads,
        "size": size, "start": start, "io": io, "nvlinks": nvlinks, "skip_register": skip_register, "verify": verify,
        "transfer": transfer, "batch": batch, "io_type": io_type, "seconds": seconds, "seed": seed,
        "unaligned": unaligned, "random_fill": random_fill, "refill": refill, "alignment": alignment, "mixed": mixed,
        "rdma": rdma, "opened": opened,
    }  # fmt: skip
    if config is None:
        with options.usage():
            if only is not None:
                raise refusal("--job", "there is no configuration file", "leave it out, or name the file")
            job = job_of(Flags(**given))
        _run(job, json)
        return 0
    if any(value not in (None, False) for value in given.values()):
        raise options.refusal("gdsio", "CONFIG: flags beside a configuration file", "write them into it")
    place = options.place("gdsio", "CONFIG", config)
    jobs = dict(load(place))
    if only is not None and only not in jobs:
        raise options.refusal("gdsio", f"--job: there is no job '{only}' in {config}", f"use one of {', '.join(jobs)}")
    if only is None and len(jobs) > 1:
        _run_apart(place, list(jobs), json)
    else:
        _run(jobs[only or next(iter(jobs))], json)
    return 0


def _run_apart(config: Path, names: list[str], json: bool) -> None:
    """Jobs run at the same time, as gdsio's do, and each in a process: so that each has its NUMA node, and a signal
    ends them all."""
    start = "import sys; from penstock.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "gdsio", str(config), *(["--json"] if json else [])]
    running: dict[str, subprocess.Popen[bytes]] = {}
    sys.stdout.flush()
    try:
        for name in names:
            with signals_held():
                running[name] = subprocess.Popen([*command, "--job", name])
        failed = [name for name, child in running.items() if child.wait() != 0]
    finally:
        for child in running.values():
            child.terminate()  # does nothing to those that have ended
            child.wait()
    if failed:
        cause = f"failed: {', '.join(failed)}"
        raise Error(operation="gdsio", file=str(config), cause=cause, advice="see above for the reason")


def _run(job: Job, json: bool) -> None:
    from penstock_bench.gdsio import run as running

    for turn, report in enumerate(running.run(job)):
        if turn and not json:
            sys.stdout.write("Verifying data\n")
        _print(report, json)


def _print(report: GdsioReport, json: bool) -> None:
    if json:
        show.json_object({"line": report.line(), "path": report.path} | _fields(report))
        return
    sys.stdout.write(report.line() + "\n")
    if report.why_not_native:
        sys.stderr.write(f"gdsio: -x 0 is not native here: {one_line(report.why_not_native)}\n")


def _fields(report: GdsioReport) -> dict[str, Any]:
    return report.load | {"why_not_native": report.why_not_native, "emulated": report.emulated}
