"""The suite `formats`: runs whole on a small file, judges what it measured, and refuses a wrong byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Error
from penstock.bench import format_targets, formats, results
from penstock.bench.formats import Bench
from penstock.bench.results import Results
from penstock.bench.workspace import Workspace

pytest.importorskip("h5py")
Run = Callable[..., Any]
SUITE = """
name = "small"
file_bytes = "4MiB"
repeats = 1
seconds = 60
[formats]
tensors = 4
index_chunks = 50
small_chunks_side = 10
small_opens = 3
"""


def test_every_probe_is_measured_or_told_missing(penstock: Run, tmp_path: Path) -> None:
    suite, out = tmp_path / "small.toml", tmp_path / "rows.jsonl"
    suite.write_text(SUITE)
    ran = penstock("bench", suite, "--dir", tmp_path, "--device", "host", "--out", out)
    assert ran.code == 0, ran.err
    rows = results.read(out)
    measured = {row["name"]: row for row in rows if row["kind"] == "formats"}
    for format in ("raw", "HDF5", "netCDF-4", "NPY", "Zarr"):
        assert measured[f"{format} read"]["bytes"] == measured[f"{format} write"]["bytes"] == 4 << 20
    for preset, bytes in (("h5bench", 32), ("h5-gds", 36), ("hacc", 38), ("gothic", 52)):
        for way in ("read", "write"):
            row = measured[f"{preset} particles {way}"]
            assert row["particle_bytes"] == bytes
            assert 0 <= (1 << 20) - row["bytes"] < bytes
    assert measured["index of many chunks"]["chunks"] == 50
    assert measured["small chunks, one batch"]["chunks"] == 100
    absent = {row["name"] for row in rows if row["kind"] == "missing"}
    assert {"h5py and copy", "numpy.memmap and copy", "safetensors.torch.load_file"} <= measured.keys() | absent
    assert all(
        check.value is not None for check in format_targets.checks(rows) if check.here and "load_file" not in check.what
    )
    assert measured["HDF5 deflate read, host"]["bytes"] == 1 << 20
    assert "HDF5 deflate read, gpu" in absent
    assert "open and read 4 KiB" in ran.out
    assert not list(tmp_path.glob("penstock-bench-*"))


def test_a_wrong_byte_in_a_file_of_a_format_fails_the_run(tmp_path: Path) -> None:
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place, Results(None) as rows:
        bench = Bench(context, place, rows, {"tensors": 2}, context.allocate(1 << 20))
        formats._make(bench, "HDF5")
        assert formats._read(bench, "HDF5", 0)["bytes"] == 1 << 20
        with bench.file("HDF5").open("r+b") as stream:
            stream.seek(700_000)
            stream.write(b"\xff\x00\xff")
        with pytest.raises(Error, match="are wrong"):
            formats._read(bench, "HDF5", 0)


def test_files_too_small_for_the_suite_are_told(penstock: Run, tmp_path: Path) -> None:
    suite = tmp_path / "small.toml"
    suite.write_text(SUITE.replace('"4MiB"', '"1MiB"'))
    ran = penstock("bench", suite, "--dir", tmp_path, "--device", "host")
    assert ran.code == 1
    assert "are too small for its small chunks, 1638400 bytes; give --file-bytes 2MiB or more" in ran.err
