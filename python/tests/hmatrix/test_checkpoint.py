"""Solves that go on from a checkpoint, from Python: the same numbers, and what is told where that is not to be had."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hmatrix_rig import built, off, on_gpu

import penstock as ps

H = ps.hmatrix


def assert_the_same(found: H.Solution, wanted: H.Solution) -> None:
    """Bit by bit; on a GPU, where two runs of one solve differ by rounding, as near as they are."""
    assert found.iterations == wanted.iterations and found.sweeps == wanted.sweeps
    if on_gpu():
        assert off(found.x, wanted.x) < 1e-6
        assert np.allclose(found.history, wanted.history, rtol=1e-3)
        return
    assert np.array_equal(found.x, wanted.x) and found.history == wanted.history
    assert found.inner_iterations == wanted.inner_iterations


def test_a_checkpoint_is_gone_on_from(tmp_path: Path) -> None:
    matrix, state = built(tmp_path, eps=1e-7), tmp_path / "state"
    b, how = np.ones(720), {"method": "gmres", "tol": 1e-8, "preconditioner": False}
    whole = H.solve(matrix, b, **how)
    first = H.solve(matrix, b, checkpoint=state, checkpoint_sweeps=2, callback=lambda i, *_: i < 9, **how)
    products = tmp_path / "state.products"
    assert (first.stopped_by, first.continued, state.is_file(), products.is_file()) == ("callback", "no", True, True)
    rest = H.solve(matrix, b, checkpoint=os.fsencode(state), **how)
    assert (rest.continued, rest.restarted_because, rest.sweeps_before) == ("repeated", "", 8)
    assert_the_same(rest, whole)
    assert rest.bytes_read < whole.bytes_read or not whole.bytes_read
    assert not state.exists() and not products.exists()
    H.solve(matrix, b, checkpoint=state, checkpoint_sweeps=2, callback=lambda i, *_: i < 9, **how)
    anew = H.solve(matrix, b, checkpoint=state, **how | {"method": "idr"})
    assert (anew.continued, anew.restarted_because) == ("restarted", "the checkpoint is of gmres")
    assert anew.converged and off(anew.x, whole.x) < 1e-6 and anew.iterations > 8
    H.solve(matrix, b, checkpoint=state, checkpoint_sweeps=2, callback=lambda i, *_: i < 9, **how)
    with pytest.raises(ps.Error, match="state"):
        H.solve(matrix, 2 * b, checkpoint=state, **how)
    state.write_bytes(state.read_bytes()[:-8])
    with pytest.raises(ps.Error, match="state"):
        H.solve(matrix, b, checkpoint=state, **how)


def test_several_right_hand_sides_with_the_default_method_are_repeated_bit_by_bit(tmp_path: Path) -> None:
    matrix, state = built(tmp_path, eps=1e-7), tmp_path / "state"
    b, how = np.random.default_rng(1).standard_normal((720, 3)), {"tol": 1e-8}
    whole = H.solve(matrix, b, **how)
    assert whole.sweeps >= 4
    H.solve(matrix, b, checkpoint=state, checkpoint_sweeps=1, callback=lambda i, *_: i < 3, **how)
    rest = H.solve(matrix, b, checkpoint=state, **how)
    assert (rest.continued, rest.sweeps_before) == ("repeated", 2)
    assert_the_same(rest, whole)


def test_a_lost_or_foreign_log_of_products_is_told(tmp_path: Path) -> None:
    matrix, state, products = built(tmp_path, eps=1e-7), tmp_path / "state", tmp_path / "state.products"
    b, how = np.ones(720), {"method": "gmres", "tol": 1e-8, "preconditioner": False}

    def killed() -> None:
        H.solve(matrix, b, checkpoint=state, checkpoint_sweeps=2, callback=lambda i, *_: i < 9, **how)

    killed()
    products.unlink()
    found = H.solve(matrix, b, checkpoint=state, **how)
    assert found.continued == "restarted" and "state.products" in found.restarted_because and found.converged
    killed()
    products.write_bytes(b"another's own")
    with pytest.raises(ps.Error, match=r"state.products: this name is for the products"):
        H.solve(matrix, b, checkpoint=state, **how)
    assert products.read_bytes() == b"another's own"
