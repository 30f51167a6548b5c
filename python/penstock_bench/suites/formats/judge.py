"""What the suite `formats` promises."""

from __future__ import annotations

from penstock_bench.engine.promises import Check, Medians, Rows, judged

LARGE = 1 << 30  # below this size a file's metadata weigh too much to compare with a raw one


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, "formats")
    large = next(row for row in rows if row["kind"] == "machine")["file_bytes"] >= LARGE
    found = _tensors(medians) + _small(medians)
    for format in ("HDF5", "netCDF-4", "NPY"):
        for way in ("read", "write"):
            ratio = medians.ratio(f"{format} {way}", f"raw {way}")
            found.append(Check(f"{format} {way} / raw {way}", ratio, 0.95, only="gpu" if large else "large"))
    for name in ("h5py and copy", "numpy.memmap and copy"):
        mine = "HDF5 read" if name.startswith("h5py") else "NPY read"
        found.append(Check(f"{mine} / {name}", medians.ratio(mine, name), 1.0, only="gpu"))
    return judged(rows, found)


def _tensors(medians: Medians) -> list[Check]:
    peer = "safetensors.torch.load_file"
    rate = medians.rate("safetensors load")
    return [
        Check("safetensors load", rate and rate / 1e9, 40, unit="GB/s", only="gpu"),
        Check(f"safetensors load / {peer}", medians.ratio("safetensors load", peer), 5, only="gpu"),
    ]


def _small(medians: Medians) -> list[Check]:
    batch, single = (medians.field(f"small chunks, {how}", "chunks_per_second") for how in ("one batch", "one by one"))
    return [
        Check("index of 20,000 chunks", medians.field("index of many chunks", "seconds"), 0.1, False, "s"),
        Check("snapshot of 10 fields, metadata", _ms(medians, "snapshot of 10 fields, metadata"), 10, False, "ms"),
        Check("open and read 4 KiB", medians.field("open and read 4 KiB", "median_ms"), 1, False, "ms"),
        Check("small chunks, one batch / one by one", batch / single if batch and single else None, 5),
    ]


def _ms(medians: Medians, name: str) -> float | None:
    seconds = medians.field(name, "seconds")
    return None if seconds is None else seconds * 1e3
