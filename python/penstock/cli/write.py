"""`penstock write`: a stamped pattern from device memory into a new file, which appears whole or not at all."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from penstock import Context, Error, _evidence as evidence
from penstock._files import windows
from penstock._files.digest import DeviceDigest
from penstock.cli import options, show
from penstock.cli.read import result_fields


def write(
    file: Annotated[str, typer.Argument(help="The file to make. It replaces a file of that name when it is complete.")],
    bytes: Annotated[str, typer.Option(help="Size of the file, e.g. 1GiB.")],
    source: Annotated[
        str, typer.Option("--from", help="Device to write from: auto (a GPU if there is one), host, cuda:0, ...")
    ] = "auto",
    path: Annotated[str, typer.Option(help=options.PATH_HELP)] = "auto",
    seed: Annotated[str, typer.Option(help="Seed of the pattern.")] = "1",
    chunk_bytes: Annotated[str, typer.Option(help="Bytes of one operation, a multiple of 4096.")] = "auto",
    workers: Annotated[str, typer.Option(help="Threads that move the bytes.")] = "auto",
    depth: Annotated[str, typer.Option(help="Operations in flight for each thread.")] = "auto",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a part of the bytes would take another path.")
    ] = False,
    durable: Annotated[bool, typer.Option("--durable", help="End when the bytes are on stable storage.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the file back and check every byte on the device.")
    ] = False,
    digest: Annotated[bool, typer.Option("--digest", help="Print the SHA-256 of the bytes in device memory.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Write a known pattern of --bytes from device memory to FILE; print time, GB/s, CPU seconds and evidence.

    The file appears under its name only when it is complete. `seconds` is the time in which bytes were moving.

    Example: penstock write new.bin --bytes 64MiB --durable --verify
    """
    options.check_name("write", "FILE", file)
    given = {"path": path, "chunk_bytes": chunk_bytes, "workers": workers, "depth": depth}
    how = options.transfer("write", given, strict) | {"durable": durable}
    length = options.size("write", "--bytes", bytes)
    pattern = options.seed("write", seed)
    with Context(options.device("write", "--from", source)) as context, options.shape_of_transfer("write"):
        with context.create(file, length, durable=durable) as opened:
            job = windows.LongMove(context, opened, "write", 0, length, how)
            fields = _run(job, pattern, digest)
        if verify:
            _verify(context, file, length, pattern)
            fields["verified"] = True
    if json:
        show.json_object(fields)
    else:
        sys.stdout.write(show.transfer_text(fields))
    return 0


def _run(job: windows.LongMove, pattern: int, digest: bool) -> dict[str, Any]:
    with ExitStack() as stack:
        hashing = stack.enter_context(DeviceDigest(job.context)) if digest else None

        def prepare(memory: Any, offset: int) -> None:
            job.context.stamp(memory, offset, pattern)
            if hashing is not None:
                hashing.update(memory)

        job.prepare = prepare
        job.progress = stack.enter_context(show.progress_bar(f"write {job.file.name}"))
        meter = stack.enter_context(evidence.Meter(job.file, 0, 0))
        moved = windows.run(job)
        sha256 = hashing.hexdigest() if hashing is not None else None
    return result_fields(job, moved, meter, sha256)


def _verify(context: Context, name: str, length: int, pattern: int) -> None:
    """Reads the finished file back into device memory and checks the pattern there."""

    def check(memory: Any, offset: int) -> None:
        bad, first = context.verify_stamp(memory, offset, pattern)
        if bad:
            raise Error(
                code="io_error",
                operation="verify",
                file=name,
                offset_bytes=first,
                length_bytes=bad,
                cause=f"{bad} bytes differ from what was written",
                advice="check the disk and its memory",
            )

    with context.open(name) as file, show.progress_bar(f"verify {name}") as progress:
        if file.size_bytes != length:
            raise Error(
                code="io_error",
                operation="verify",
                file=name,
                cause=f"the file has {file.size_bytes} bytes, {length} were written",
                advice="check what else writes it",
            )
        windows.run(windows.LongMove(context, file, "read", 0, length, consume=check, progress=progress))
