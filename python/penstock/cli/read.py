"""`penstock read`: a file, or a part of one, into device memory, with time, CPU seconds and evidence."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from penstock import Context, Error, File, _evidence as evidence
from penstock._files import windows
from penstock._files.digest import DeviceDigest
from penstock.cli import options, show


def read(
    file: Annotated[str, typer.Argument(help="The file to read.")],
    to: Annotated[
        str, typer.Option("--to", help="Device to read into: auto (a GPU if there is one), host, cuda:0, ...")
    ] = "auto",
    path: Annotated[str, typer.Option(help=options.PATH_HELP)] = "auto",
    offset: Annotated[str, typer.Option(help="First byte to read, e.g. 4096 or 1GiB.")] = "0",
    bytes: Annotated[
        str | None, typer.Option(help="How many bytes to read; without it to the end of the file.")
    ] = None,
    chunk_bytes: Annotated[str, typer.Option(help="Bytes of one operation, a multiple of 4096.")] = "auto",
    workers: Annotated[str, typer.Option(help="Threads that move the bytes.")] = "auto",
    depth: Annotated[str, typer.Option(help="Operations in flight for each thread.")] = "auto",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a part of the bytes would take another path.")
    ] = False,
    digest: Annotated[bool, typer.Option("--digest", help="Print the SHA-256 of the bytes in device memory.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Read FILE into device memory; print time, GB/s, CPU seconds and evidence of the path taken.

    A file that does not fit into device memory passes through two buffers (windows) there. `seconds` is the time in
    which bytes were moving.

    Example: penstock read data.bin --offset 1MiB --bytes 4KiB --to host --json
    """
    options.check_name("read", "FILE", file)
    given = {"path": path, "chunk_bytes": chunk_bytes, "workers": workers, "depth": depth}
    how = options.transfer("read", given, strict)
    start = options.size("read", "--offset", offset)
    wanted = None if bytes is None else options.size("read", "--bytes", bytes)
    options.check_range("read", start, wanted or 0)
    device = options.device("read", "--to", to)
    with options.shape_of_transfer("read"), Context(device) as context, context.open(file) as opened:
        length = _length(opened, start, wanted)
        job = windows.LongMove(context, opened, "read", start, length, how)
        fields = _run(job, digest)
    if json:
        show.json_object(fields)
    else:
        sys.stdout.write(show.transfer_text(fields))
    asked = length if wanted is None else wanted
    if fields["bytes"] < asked:
        cut = fields["bytes"] < length  # fewer than there were when it began
        raise _too_short(file, (start, asked), fields["bytes"], cut)
    return 0


def _length(file: File, start: int, wanted: int | None) -> int:
    """Bytes from `start` that the file can give."""
    size = file.size_bytes
    if start > size:
        raise Error(
            operation="read",
            file=file.name,
            offset_bytes=start,
            length_bytes=wanted or 0,
            cause=f"offset {start} is beyond the end: the file has {size} bytes",
            advice=f"use an offset of at most {size}",
        )
    return size - start if wanted is None else min(wanted, size - start)


def _run(job: windows.LongMove, digest: bool) -> dict[str, Any]:
    with ExitStack() as stack:
        hashing = stack.enter_context(DeviceDigest(job.context)) if digest else None
        if hashing is not None:
            job.consume = lambda memory, _offset: hashing.update(memory)
        job.progress = stack.enter_context(show.progress_bar(f"read {job.file.name}"))
        meter = stack.enter_context(evidence.Meter(job.file, job.offset_bytes, job.bytes))
        moved = windows.run(job)
        sha256 = hashing.hexdigest() if hashing is not None else None
    return result_fields(job, moved, meter, sha256)


def result_fields(
    job: windows.LongMove, moved: windows.Run, meter: evidence.Meter, sha256: str | None
) -> dict[str, Any]:
    """The JSON object of a read or write. A single transfer brings its own CPU seconds; a run of windows is measured
    around all of it, hashing and stamping included."""
    known = evidence.merge(moved.outcomes, meter)
    fields: dict[str, Any] = {
        "operation": job.direction,
        "file": job.file.name,
        "device": job.context.device["name"],
        "offset_bytes": job.offset_bytes,
        "bytes": moved.bytes,
        "seconds": moved.seconds,
        "bytes_per_second": moved.bytes / moved.seconds if moved.seconds > 0 else 0.0,
        "cpu_user_s": known["cpu_user_s"],
        "cpu_system_s": known["cpu_system_s"],
        "path": evidence.path_name(moved.outcomes),
        "windows": moved.windows,
        "peak_rss_bytes": evidence.peak_rss_bytes(),
        "evidence": known,
    }
    if sha256 is not None:
        fields["sha256"] = sha256
    return fields


def _too_short(file: str, wanted: tuple[int, int], came: int, cut: bool) -> Error:
    start, asked = wanted
    return Error(
        code="end_of_file",
        operation="read",
        file=file,
        offset_bytes=start,
        length_bytes=asked,
        cause=f"the file ended after {came} of {asked} bytes",
        advice="it was cut short while it was read: read it again" if cut else f"ask for at most {came} bytes",
    )
