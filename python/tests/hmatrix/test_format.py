"""The .hmat format as docs/formats/hmat.md tells it: the reader on that page reads what the library writes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hmatrix_rig import built, off, on_gpu
from places import ROOT

import penstock as ps
from penstock.hmatrix._assemble import _usual_encoding

H = ps.hmatrix
PAGE = ROOT / "docs" / "formats" / "hmat.md"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The page's class HMat; the block makes one of sphere.hmat, too."""
    place, here = tmp_path_factory.mktemp("page"), Path.cwd()
    code = next(
        block for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S) if "HMat" in block
    )
    H.assemble(H.shape("sphere", 320), store=place / "sphere.hmat").close()
    names: dict[str, Any] = {}
    os.chdir(place)
    try:
        exec(code, names)  # the page's own text
    finally:
        os.chdir(here)
    assert "penstock" not in code and len(code.splitlines()) <= 72
    return names["HMat"]


@pytest.mark.parametrize(
    "options",
    [
        {"encoding": "fp64"},
        {"encoding": "tiers", "eps": 1e-7},
        {"encoding": "tiers", "accuracies": [0.03, 0.002]},
        {"encoding": "tiers", "eps": 1e-2, "batches": 1},
    ],
)
def test_the_reader_on_the_page_multiplies_as_the_library(tmp_path: Path, reader: Any, options: dict[str, Any]) -> None:
    mesh = H.shape("bumpy", 600)
    x = np.random.default_rng(6).standard_normal(mesh.unknowns)
    matrix = built(tmp_path, mesh, context=ps.Context("host"), **({"batches": 4} | options))
    read = reader(matrix.path)
    assert read.head["unknowns"] == mesh.unknowns and sorted(read.order) == list(range(mesh.unknowns))
    assert len(read.leaves) == matrix.facts["leaves"] and len(read.batches) == matrix.facts["batches"]
    assert off(read.multiply(x, int(read.head["tiers"])), matrix @ x) < 1e-6
    for tiers, accuracy in enumerate(matrix.facts["accuracies"], 1):
        assert off(read.multiply(x, tiers), matrix.matvec(x, accuracy=accuracy)) < 1e-6


def test_each_tier_brings_what_it_promises(tmp_path: Path, reader: Any) -> None:
    x = np.random.default_rng(6).standard_normal(720)
    matrix = built(tmp_path, eps=1e-5)
    read = reader(matrix.path)
    errors = [off(read.multiply(x, tiers), matrix @ x) for tiers in range(1, 6)]
    assert all(error < accuracy for error, accuracy in zip(errors, matrix.facts["accuracies"], strict=True))
    assert errors == sorted(errors, reverse=True) and errors[3] > 1e-6


def test_the_reader_finds_damage(tmp_path: Path, reader: Any) -> None:
    """A control: what it read in the tests above was checked."""
    whole = Path(built(tmp_path).path).read_bytes()
    for at in (30, 4096 + 50, len(whole) - 50):
        (tmp_path / "x.hmat").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(AssertionError):
            reader(tmp_path / "x.hmat").multiply(np.ones(720), 1)


def test_the_tables_on_the_page_are_those_of_the_reader(reader: Any) -> None:
    """Offsets in the page's tables against the reader's types, whose agreement with files the tests above prove."""
    text, types = PAGE.read_text(), reader.__init__.__globals__
    for title, kind in (("### Header", types["HEADER"]), ("### Leaf", types["LEAF"]), ("### Batch", types["BATCH"])):
        table = re.findall(r"^\| (\d+) \| (\w+)((?:\[\d+\])*) \|", text[text.index(title) :].split("\n#")[0], re.M)
        assert table, title
        at = 0
        for offset, scalar, counts in table:
            assert int(offset) == at, (title, offset)
            size = {"char": 1, "uint16": 2, "uint32": 4, "int64": 8, "double": 8}[scalar]
            at += size * int(np.prod([int(n) for n in re.findall(r"\d+", counts)] or [1]))
        assert at == kind.itemsize, title
    assert [types[name].itemsize for name in ("HEADER", "LEAF", "BATCH")] == [208, 88, 160]


def test_the_usual_encoding_is_one_that_the_device_multiplies(tmp_path: Path) -> None:
    for emulated, eps, wanted in ((True, 1e-7, "tiers"), (False, 1e-7, "fp64"), (False, 1e-6, "tiers")):
        assert _usual_encoding(SimpleNamespace(device={"emulated": emulated}), eps) == wanted
    for eps in (1e-3, 1e-7):
        assert built(tmp_path, eps=eps).facts["encoding"] == ("fp64" if eps < 5e-7 and on_gpu() else "tiers")


def test_products_are_timed_without_the_users_order(tmp_path: Path) -> None:
    with ps.hmatrix.assemble(ps.hmatrix.shape("sphere", 320), store=tmp_path / "a.hmat", eps=1e-3) as matrix:
        assert 0 < matrix.product_seconds(3) < 60
        assert matrix.counts["sweeps"] == 3
        with pytest.raises(ps.Error, match="products cannot be 0"):
            matrix.product_seconds(0)
