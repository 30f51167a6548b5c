"""Thin bodies: where cross approximation with partial pivoting falls short of eps, the sampled error says so, and the
solver has a surrogate that misleads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps

H = ps.hmatrix
DISC, NEEDLE, ROD, ROUND = (1, 1, 1e-3), (1e-3, 1e-3, 1), (1e-2, 1e-2, 1), (1, 1, 1)


def squeezed(factors: tuple[float, ...]) -> H.Mesh:
    sphere = H.shape("sphere", 5120)
    return H.Mesh(sphere.vertices * factors, sphere.triangles)


def off(mesh: H.Mesh, store: Path, **how: object) -> float:
    """The sampled error in eps, whatever it is."""
    with H.assemble(mesh, store=store, refuse_error=1e9, **how) as matrix:
        return matrix.facts["sampled_error"] / how["eps"]


@pytest.mark.parametrize(
    ("body", "eps", "least", "most"),
    [(DISC, 1e-6, 10, 40), (NEEDLE, 1e-6, 3, 15), (ROD, 1e-4, 1.5, 6), (ROUND, 1e-4, 0.2, 1)],
)
def test_the_sample_tells_what_all_rows_tell(
    body: tuple[float, ...], eps: float, least: float, most: float, tmp_path: Path
) -> None:
    mesh, store = squeezed(body), tmp_path / "m.hmat"
    by_default, by_all = off(mesh, store, eps=eps), off(mesh, store, eps=eps, check_rows=5120)
    assert by_default == pytest.approx(by_all, rel=0.25)
    assert least < by_default < most, "what hmatrix.md says of it"


def test_aca_plus_serves_a_disc_and_a_needle(tmp_path: Path) -> None:
    for body, most in ((DISC, 3), (NEEDLE, 1)):
        assert off(squeezed(body), tmp_path / "m.hmat", eps=1e-6, aca_plus=True) < most


def test_what_is_too_far_off_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ps.Error, match=r"on sampled rows is .*ACA\+"):
        H.assemble(squeezed(DISC), store=tmp_path / "m.hmat", eps=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_the_default_method_is_not_misled_by_the_first_tiers_of_a_disc(tmp_path: Path) -> None:
    mesh = squeezed(DISC)
    with H.assemble(mesh, store=tmp_path / "m.hmat", eps=1e-6, aca_plus=True) as matrix:
        b = np.ones(mesh.unknowns)
        alone = H.solve(matrix, b, method="gmres", tol=1e-6)
        found = H.solve(matrix, b, tol=1e-6)
        assert alone.converged and found.converged
        assert found.sweeps <= alone.sweeps and found.relative_residual < 1e-6
