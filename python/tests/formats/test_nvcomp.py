"""nvCOMP on a real GPU passes the kit of decoders. Skipped where there is no GPU, or no nvCOMP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import decoder_kit as kit
import numpy as np
import pytest

import penstock
from penstock import _core
from penstock._shared import shared_context
from penstock.formats.reading import plan
from penstock.formats.reading.decoders import nvcomp
from penstock.formats.reading.decoders.nvcomp_library import library

pytestmark = [
    pytest.mark.skipif(_core.cuda_devices()[0] == 0, reason=f"no GPU: {_core.cuda_devices()[1]}"),
    pytest.mark.skipif(isinstance(library(), str), reason=str(library())),
]
DEVICE = "cuda:0"


def opened(path: Path, **options: Any) -> penstock.DataFile:
    return penstock.open(path, device=DEVICE, **options)


@pytest.mark.parametrize("codec", ["deflate", "gzip", "zstd", "lz4"])
def test_streams(codec: str) -> None:
    context = shared_context(DEVICE)
    decoder = nvcomp.opened(context._raw)
    assert not isinstance(decoder, str), decoder
    kit.check_streams(context, decoder, codec)


@pytest.mark.parametrize("kind", ["u1", "<f4", ">i2", "<c16"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_hdf5_deflate(tmp_path: Path, kind: str, shuffle: bool) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth(kind=kind), shuffle=shuffle)
    kit.check_selections(opened, tmp_path / "x.h5", "x", kit.smooth(kind=kind))


@pytest.mark.parametrize("level", [0, 1, 9])
def test_hdf5_deflate_of_large_chunks_and_every_level(tmp_path: Path, level: int) -> None:
    content = kit.smooth((700, 1000))
    content[::7] = np.random.default_rng(2).random((100, 1000))
    kit.hdf5(tmp_path / "x.h5", content, chunks=(300, 1000), compression_opts=level)
    with opened(tmp_path / "x.h5", decode="gpu") as file:
        assert np.array_equal(file["x"][...].to_numpy(), content)


def test_hdf5_zstd(tmp_path: Path) -> None:
    kit.hdf5_zstd(tmp_path / "x.h5", kit.smooth())
    kit.check_selections(opened, tmp_path / "x.h5", "x", kit.smooth())


@pytest.mark.parametrize("codec", ["GzipCodec", "ZstdCodec"])
@pytest.mark.parametrize("layout", [{}, {"shards": (128, 32)}])
def test_zarr(tmp_path: Path, codec: str, layout: dict[str, Any]) -> None:
    kit.check_zarr(opened, tmp_path / "x.zarr", getattr(pytest.importorskip("zarr.codecs"), codec)(), **layout)


def test_chunks_that_are_not_stored_are_filled(tmp_path: Path) -> None:
    kit.check_chunks_that_are_not_stored(opened, tmp_path / "x.h5")


@pytest.mark.parametrize("decoded_bytes", [10_000, 1 << 30])
def test_many_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoded_bytes: int) -> None:
    monkeypatch.setattr(plan, "DECODED_BYTES", decoded_bytes)
    kit.check_many(opened, tmp_path / "x.h5")


def test_a_wrong_checksum_of_gzip_is_an_error_that_says_both(tmp_path: Path) -> None:
    kit.check_damaged_zarr(opened, tmp_path / "x.zarr", pytest.importorskip("zarr.codecs").GzipCodec())


def test_chunks_that_skipped_filters_go_to_the_host(tmp_path: Path) -> None:
    kit.check_masks(opened, tmp_path / "x.h5")


def test_evidence_names_nvcomp_where_auto_takes_it(tmp_path: Path) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth())
    with opened(tmp_path / "x.h5") as file, kit.preferred(file, "device"):
        assert np.array_equal(file["x"][...].to_numpy(), kit.smooth())
        (name,) = file.evidence()["formats"]["decoders"]
        assert name.startswith("gpu by nvCOMP ")


def test_auto_leaves_a_few_chunks_to_the_cores(tmp_path: Path) -> None:
    kit.hdf5(tmp_path / "x.h5", kit.smooth((256, 4096)), chunks=(64, 4096))
    with opened(tmp_path / "x.h5") as file:
        assert np.array_equal(file["x"][...].to_numpy(), kit.smooth((256, 4096)))
        assert list(file.evidence()["formats"]["decoders"]) == ["host by libdeflate"]


# Last, and each kind of damage by itself: what nvCOMP does with a damaged stream is its own affair.
@pytest.mark.parametrize("fault", kit.FAULTS)
def test_a_damaged_chunk_is_an_error_that_names_it(tmp_path: Path, fault: str) -> None:
    kit.check_damaged(opened, tmp_path / "x.h5", fault)
