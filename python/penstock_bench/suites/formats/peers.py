"""What people use today, on the same files in the same run: an array in host memory, then a copy to the device.

On a GPU the copy is CuPy's, as in the usual one-liner; without one it is Penstock's own copy to the emulated device, so
that both sides move the same bytes. A peer that is not installed is listed as missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Context, Error
from penstock._api import Memory
from penstock.calibration.poison import POISON, poison
from penstock.calibration.workspace import FILE_SEED
from penstock_bench.engine.rounds import Probe, Sample, need
from penstock_bench.suites.formats.files import hot, source, timed

if TYPE_CHECKING:
    from penstock_bench.engine.run import Run


def probes(run: Run) -> list[Probe]:
    """Those of `run.peers`."""
    known = {
        "h5py": Probe("h5py and copy", lambda _: _h5py(run)),
        "numpy": Probe("numpy.memmap and copy", lambda _: _memmap(run)),
        "safetensors": Probe("safetensors.torch.load_file", lambda _: _safetensors(run)),
    }
    return [probe for name, probe in known.items() if name in run.peers]


def _copier(run: Run) -> Callable[[Any], Memory]:
    """Copies an array to the device and returns where its bytes are."""
    if run.emulated:

        def copied(host: Any) -> Memory:
            memory = run.device.slice(0, host.nbytes)
            run.context.copy_to_device(memory, host)
            return memory

        return copied
    need("cupy")
    import cupy

    def copy(host: Any) -> Memory:
        array = cupy.asarray(host)
        cupy.cuda.get_current_stream().synchronize()
        return array.view(cupy.uint8)

    return copy


def _judged(run: Run, path: Path, work: Callable[[], Memory]) -> Sample:
    """A sample of what brings the payload to the device; what came is checked."""
    hot(run, path)
    poison(run.context, run.device)
    found: list[Memory] = []
    sample = timed(run.bytes, lambda: found.append(work()))
    verify(run.context, path, "data", (found[0], 0, FILE_SEED))
    run.context.fill(found[0], POISON)  # a library's next array may get this memory
    return sample


def _h5py(run: Run) -> Sample:
    need("h5py")
    import h5py

    copy, path = _copier(run), source(run, "HDF5")

    def work() -> Memory:
        with h5py.File(path, "r") as file:
            return copy(file["data"][...])

    return _judged(run, path, work)


def _memmap(run: Run) -> Sample:
    need("numpy")
    import numpy

    copy, path = _copier(run), source(run, "NPY")
    return _judged(run, path, lambda: copy(numpy.load(path, mmap_mode="r")))


def _safetensors(run: Run) -> Sample:
    need("torch", "safetensors")
    import safetensors.torch
    import torch

    path = source(run, "safetensors")
    hot(run, path)
    device = "cpu" if run.emulated else run.context.device["name"]

    def work() -> None:
        safetensors.torch.load_file(path, device=device)
        if not run.emulated:
            torch.cuda.synchronize()

    return timed(path.stat().st_size, work)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def verify(context: Context, path: Path, name: str, part: tuple[Memory, int, int]) -> None:
    """Raises Error unless the device memory holds what the dataset should: the pattern from the place on that it was
    written from. `part` is the memory, that place and the seed. Where a byte lies in the file is the format's to say:
    the error tells where it lies in the dataset."""
    memory, start, seed = part
    bad, first = context.verify_stamp(memory, start, seed)
    if bad:
        raise Error(
            code="io_error",
            operation="verify",
            file=str(path),
            cause=f"{bad} bytes of dataset {name} are wrong, the first at or after its byte {first - start}",
            advice="do not trust these results",
        )
