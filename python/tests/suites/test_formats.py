"""The suite `formats`: runs whole on a small file, judges what it measured, and refuses a wrong byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lone_run import lone_run

import penstock as package
from penstock import Context, Error
from penstock.calibration.workspace import CROWDED, Workspace
from penstock_bench.report import show
from penstock_bench.runs import stored
from penstock_bench.suites.formats import judge as format_targets, measure as formats

pytest.importorskip("h5py")
Run = Callable[..., Any]
CROWDED_TRIES = 3  # of a run from which others on the machine took the page cache
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
    rows: list[dict[str, Any]] = []
    for _ in range(CROWDED_TRIES):
        ran = penstock("bench", suite, "--dir", tmp_path, "--device", "host", "--out", out)
        assert ran.code == 0, ran.err
        rows = stored.read(out)
        if not any(CROWDED in row.get("cause", "") for row in rows):
            break
    causes = {row["name"]: row["cause"] for row in rows if row["kind"] == "missing"}
    assert not [name for name, cause in causes.items() if CROWDED in cause], causes
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
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        run, path = lone_run(context, place, "formats", tensors=2), place.directory / "source.h5"
        formats._make(run, "HDF5")
        assert formats._read(run, "HDF5", 0)["bytes"] == 1 << 20
        with path.open("r+b") as stream:
            stream.seek(700_000)
            stream.write(b"\xff\x00\xff")
        with package.open(path, context=context) as file:
            start = next(iter(file["data"].extents())).offset_bytes
        with pytest.raises(Error, match="of dataset data are wrong") as told:
            formats._read(run, "HDF5", 0)
        assert told.value.code == "io_error" and told.value.file == str(path)
        first = int(re.search(r"its byte (\d+)", told.value.cause)[1])
        assert start > 0 and 700_000 - start - 8 < first <= 700_000 - start


def test_of_many_datasets_the_wrong_one_is_named(tmp_path: Path) -> None:
    with Context("host") as context, Workspace(context, tmp_path, 1 << 20, files=1) as place:
        run = lone_run(context, place, "formats", tensors=4)
        formats._make(run, "safetensors")
        assert formats._load(run)["bytes"] > 1 << 20
        with (place.directory / "source.safetensors").open("r+b") as stream:
            stream.seek(-80, 2)
            stream.write(b"\xff\x00\xff")
        with pytest.raises(Error, match=r"of dataset layer003.weight are wrong, .* its byte (\d+)") as told:
            formats._load(run)
        assert int(told.value.cause.rsplit(" ", 1)[1]) == (1 << 18) - 80


def test_files_too_small_for_the_suite_are_told(penstock: Run, tmp_path: Path) -> None:
    suite = tmp_path / "small.toml"
    suite.write_text(SUITE.replace('"4MiB"', '"1MiB"'))
    ran = penstock("bench", suite, "--dir", tmp_path, "--device", "host")
    assert ran.code == 1
    assert "are too small for its small chunks, 1638400 bytes; give --file-bytes 2MiB or more" in ran.err


@pytest.mark.parametrize("emulated", [True, False])
def test_small_files_are_judged_by_nothing_that_is_promised_of_large_ones(emulated: bool) -> None:
    """On a GPU too, where a file below 1 GiB meets every other condition."""
    machine = {"kind": "machine", "file_bytes": 512 << 20, "machine": {"device": {"emulated": emulated}}}
    probes = ("raw read", "raw write", *(f"{format} {way}" for format in ("HDF5", "NPY") for way in ("read", "write")))
    rows = [machine, *({"kind": "formats", "name": name, "bytes": 100, "bytes_per_second": 1e9} for name in probes)]
    checks = [("formats", check) for check in format_targets.checks(rows) if " / raw " in check.what]
    (table,) = show.check_tables(checks)
    assert [check.passed for _, check in checks] == [None] * 4
    assert "These 4 promises are made for files of 1 GiB or more on a GPU" in str(table.caption)
