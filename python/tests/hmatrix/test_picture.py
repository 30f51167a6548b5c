"""Pictures of surfaces: what is seen is what is there, and files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.hmatrix import View, _colours as colours, _lit as lit, _raster as raster

H = ps.hmatrix


def test_the_raster_agrees_with_a_loop_over_pixels() -> None:
    """Triangles at random, large and small, beyond the edges, one behind the other."""
    chance = np.random.default_rng(8)
    corners = chance.uniform(-5, 45, (40, 1, 2)) + chance.normal(0, 1, (40, 3, 2)) * chance.uniform(0.3, 15, (40, 1, 1))
    nearness = chance.uniform(0.5, 1, (40, 3))
    corners[7] = corners[7, :1]  # of no area
    seen = raster.look(corners, nearness, (40, 30))
    assert seen.triangle.shape == (30, 40)
    for row in range(30):
        for column in range(40):
            at = np.array([[column + 0.5, row + 0.5]])
            best = (raster.NOTHING, 0.0)
            for one in range(40):
                if one == 7:
                    continue
                weights = raster.shares(corners[one][None], at)[0]
                if (weights >= 0).all() and weights @ nearness[one] > best[1]:
                    best = (one, weights @ nearness[one])
            assert seen.triangle[row, column] == best[0], (row, column)
            assert seen.nearness[row, column] == pytest.approx(best[1], abs=1e-6)


def test_neighbours_leave_no_gap_and_large_pictures_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.meshgrid(np.linspace(3, 97, 12), np.linspace(2, 58, 9))
    x[1:-1, 1:-1] += np.random.default_rng(9).uniform(-2, 2, (7, 10))
    places = np.stack([x, y], -1)
    a, b, c, d = places[:-1, :-1], places[:-1, 1:], places[1:, 1:], places[1:, :-1]
    corners = np.stack([np.stack([a, b, c], 2), np.stack([a, c, d], 2)]).reshape(-1, 3, 2)
    whole = raster.look(corners, np.ones((len(corners), 3)), (100, 60))
    assert (whole.triangle[2:58, 3:97] != raster.NOTHING).all() and (whole.triangle[:, :3] == raster.NOTHING).all()
    monkeypatch.setattr(raster, "_AT_ONCE", 50)
    parts = raster.look(corners, np.ones((len(corners), 3)), (100, 60))
    assert np.array_equal(parts.triangle != raster.NOTHING, whole.triangle != raster.NOTHING)


def test_the_view_is_what_its_words_say() -> None:
    front = View(0, 0).axes()
    assert np.allclose(front, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    assert np.allclose(View(0, 0, "y").axes(), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert np.allclose(View(90, 0).axes()[2], [1, 0, 0]), "from the right"
    assert np.allclose(View(0, 90).axes()[2], [0, 0, 1]), "from above"
    for view in (View(33, 21), View(-120, -50, "x"), View(200, 5, "y")):
        assert np.allclose(view.axes() @ view.axes().T, np.eye(3)) and np.linalg.det(view.axes()) == pytest.approx(1)


def test_the_near_side_is_seen_and_lit_from_the_upper_left() -> None:
    sphere = H.shape("sphere", 1280)
    near = (sphere.centroids[:, 1] < 0).astype(float)  # the front is -y
    image = lit.draw(sphere, np.repeat(near[:, None], 3, axis=1), View(0, 0), 200)
    alpha, light = image[..., 3], image[..., :3].mean(axis=2)
    assert image.shape[1] == 200 and alpha.max() == 1 and alpha[0, 0] == 0
    disc = alpha[:, 20:-20].mean()
    assert disc == pytest.approx(np.pi / 4, abs=0.15)
    middle = light[alpha == 1]
    assert np.median(middle) > 0.4, "white is the half that is near"
    assert light[60, 60] > light[-60, -60] > 0


def test_colours_span_the_middle_and_tell_signs() -> None:
    values = np.concatenate([np.linspace(1, 2, 1000), [50.0]])
    scale = colours.Scale(values)
    assert 1 <= scale.low < scale.high < 2.1 and scale.extend in ("max", "both")
    both = colours.Scale(np.linspace(-1, 3, 1000))
    assert both.signed and both.low == -both.high
    even = colours.Scale(1 + 1e-6 * np.random.default_rng(1).random(500))
    assert even.high - even.low >= 0.04, "noise is not blown up"
    zero = colours.Scale(np.zeros(10))
    assert zero.high > zero.low
    assert colours.prefix(np.full(5, 3e-11)) == ("p", 1e-12) and colours.prefix(np.zeros(5)) == ("", 1.0)


def test_files_of_each_kind_appear_whole(tmp_path: Path) -> None:
    mesh = H.shape("torus", 300)
    for name, begin in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")):
        H.picture(mesh, mesh.centroids[:, 2], tmp_path / name, label="height", unit="m", title="A torus", width=300)
        assert (tmp_path / name).read_bytes().startswith(begin)
    first = (tmp_path / "a.png").read_bytes()
    H.picture(mesh, mesh.centroids[:, 2], tmp_path / "a.png", label="height", unit="m", title="A torus", width=300)
    assert (tmp_path / "a.png").read_bytes() == first, "equal pictures are equal files"
    assert len(list(tmp_path.iterdir())) == 3


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    mesh, ones = H.shape("torus", 300), np.ones(H.shape("torus", 300).unknowns)
    good = tmp_path / "a.png"
    for work, words in (
        (lambda: H.picture(mesh, ones[1:], good), "one number a triangle"),
        (lambda: H.picture(mesh, ones * np.nan, good), "not finite"),
        (lambda: H.picture(mesh, ones, tmp_path / "a.gif"), "use .png, .pdf or .svg"),
        (lambda: H.picture(mesh, ones, tmp_path / "no" / "a.png"), "no such directory"),
        (lambda: H.picture(mesh, ones, good, width=3), "a width of 3 pixels"),
        (lambda: H.picture(mesh, ones, good, view=View(0, 0, "w")), "use x, y or z"),
        (lambda: H.picture(mesh, ones, good, view=View(float("nan"))), "not finite"),
        (lambda: H.check_picture(tmp_path / "a.txt"), "use .png"),
    ):
        with pytest.raises(ps.Error, match=words):
            work()
    with pytest.raises(TypeError, match="numbers"):
        H.picture(mesh, ["x"] * mesh.unknowns, good)
    assert list(tmp_path.iterdir()) == []
