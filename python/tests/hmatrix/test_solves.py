"""penstock.hmatrix: meshes, products, solves, against exact figures, dense matrices and SciPy."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hmatrix_rig import built, dense, kernel_of, off, on_gpu, points, potential_inside

import penstock as ps
from penstock.hmatrix import METHODS, Mesh, Solution

H = ps.hmatrix


def capacitance(name: str, triangles: int, folder: Path, eps: float = 1e-5) -> float:
    mesh = H.shape(name, triangles)
    with H.assemble(mesh, store=folder / "m.hmat", eps=eps) as matrix:
        return H.capacitance(mesh, H.solve(matrix, np.ones(mesh.unknowns), tol=1e-7).x)


def test_the_sphere_has_its_capacitance_with_second_order(tmp_path: Path) -> None:
    errors = [capacitance("sphere", count, tmp_path) - 1 for count in (320, 1280, 5120)]
    assert abs(errors[2]) < 1e-3
    assert [round(a / b, 1) for a, b in zip(errors, errors[1:], strict=False)] == pytest.approx([4, 4], abs=0.2)


def test_the_graded_cube_has_its_capacitance(tmp_path: Path) -> None:
    assert capacitance("cube", 6912, tmp_path) == pytest.approx(0.6606782, abs=5e-5)


def test_mirror_spheres_have_equal_and_opposite_charges(tmp_path: Path) -> None:
    mesh = H.shape("mirrored-spheres", 1200)
    assert set(mesh.values) == {-1.0, 1.0}
    with built(tmp_path, mesh, encoding="fp64", eps=1e-6) as matrix:
        charge = H.solve(matrix, mesh.values, tol=1e-10).x * mesh.areas
    lower, upper = charge[mesh.values < 0].sum(), charge[mesh.values > 0].sum()
    assert upper == pytest.approx(-lower, rel=1e-6)
    angle = np.arccosh(0.5 / 0.25)  # image charges: a sphere of 0.25 m, its centre 0.5 m above a grounded plane
    exact = 0.25 * np.sinh(angle) * sum(1 / np.sinh(n * angle) for n in range(1, 30))
    assert upper / (4 * np.pi) == pytest.approx(exact, rel=1e-2)


def test_the_potential_inside_a_conductor_is_that_of_its_surface(tmp_path: Path) -> None:
    mesh = H.shape("bumpy", 2000)
    with built(tmp_path, mesh) as matrix:
        density = H.solve(matrix, np.full(mesh.unknowns, 3.0)).x
    for place in ([0, 0, 0], [0.2, -0.3, 0.1]):
        assert potential_inside(mesh, density, np.array(place)) == pytest.approx(3, rel=5e-3)


def test_a_plate_so_thin_that_its_sides_look_alike(tmp_path: Path) -> None:
    """Rows of its two sides are equal in the tiers that block-Jacobi is made of: it then takes all of them."""
    sphere = H.shape("sphere", 1280)
    disc = H.Mesh(sphere.vertices * [1, 1, 1e-3], sphere.triangles)
    matrix = built(tmp_path, disc, eps=1e-5)
    found = H.solve(matrix, np.ones(disc.unknowns), tol=3e-4)
    assert found.converged and H.capacitance(disc, found.x) == pytest.approx(2 / np.pi, rel=5e-3)


def test_galerkin_and_collocation_tell_the_same(tmp_path: Path) -> None:
    mesh = H.shape("sphere", 1280)
    with built(tmp_path, mesh, kernel="galerkin") as matrix:
        density = H.solve(matrix, mesh.areas, tol=1e-6).x  # 1 V, weighted by areas
    assert H.capacitance(mesh, density) == pytest.approx(capacitance("sphere", 1280, tmp_path), rel=2e-3)


@pytest.mark.parametrize("encoding", ["tiers", "fp64"])
@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-7])
def test_products_are_within_eps_of_the_dense_matrix(tmp_path: Path, encoding: str, eps: float) -> None:
    places, x = points(500), np.random.default_rng(1).standard_normal((500, 3))
    matrix = H.assemble(places, entries=kernel_of(places), store=tmp_path / "m.hmat", eps=eps, encoding=encoding)
    assert matrix.facts["low_rank_leaves"] > 100
    if encoding == "tiers" and eps < 5e-7 and on_gpu():
        with pytest.raises(ps.Error, match="finer than the kernels' single precision"):
            matrix @ x
        return
    assert off(matrix @ x, dense(places) @ x) < eps
    assert off(matrix @ x[:, 0], dense(places) @ x[:, 0]) < eps


def test_products_of_a_mesh_are_within_eps_of_all_its_entries(tmp_path: Path) -> None:
    mesh = H.shape("bumpy", 1500)
    x = np.random.default_rng(2).standard_normal((mesh.unknowns, 2))
    context = ps.Context("host")
    whole = H.assemble(mesh, store=tmp_path / "whole.hmat", eta=1e-9, encoding="fp64", context=context)
    assert whole.facts["low_rank_leaves"] == 0
    wanted = whole @ x
    for eps in (1e-3, 1e-4, 1e-6):
        for how in ({"encoding": "fp64"}, {"encoding": "tiers"}, {"encoding": "tiers", "aca_plus": True}):
            with built(tmp_path, mesh, eps=eps, context=context, **how) as matrix:
                assert matrix.facts["low_rank_leaves"] > 500
                assert off(matrix @ x, wanted) < eps, (eps, how)


def test_a_product_reads_as_much_as_its_accuracy_needs(tmp_path: Path) -> None:
    mesh = H.shape("bumpy", 3000)
    x = np.random.default_rng(1).standard_normal(mesh.unknowns)
    with built(tmp_path, mesh, eps=1e-6, batches=8) as matrix:
        exact = matrix @ x
        room = matrix.facts["bytes_stored"] // 2
        matrix.reopen(cache_bytes=room, pinned_tiers=0, pinned_batches=0)
        before = 0
        for accuracy in (1e-1, 1e-3, 0):
            read = matrix.counts["bytes_read"]
            assert off(matrix.matvec(x, accuracy=accuracy), exact) <= accuracy
            read = matrix.counts["bytes_read"] - read
            assert read > before
            before = read


def test_vectors_of_any_kind_are_taken(tmp_path: Path) -> None:
    matrix = built(tmp_path)
    n = matrix.shape[1]
    x = np.random.default_rng(2).standard_normal((n, 4))
    wanted = matrix @ x
    assert wanted.shape == (n, 4)
    assert np.array_equal(matrix @ np.asfortranarray(x), wanted)
    assert np.array_equal(matrix @ np.repeat(x, 2, axis=1)[:, ::2], wanted), "not contiguous"
    assert np.array_equal(matrix @ x[:, 1], wanted[:, 1])
    assert off(matrix @ x.astype(np.float32), wanted) < 1e-6
    assert np.array_equal(matrix @ [1] * 1 if n == 1 else matrix @ ([1] * n), matrix @ np.ones(n))
    assert (matrix @ x[:, :0]).shape == (n, 0)
    complex_made = matrix @ (x[:, 0] + 1j * x[:, 1])
    assert np.array_equal(complex_made, wanted[:, 0] + 1j * wanted[:, 1])
    assert (matrix @ (x * 1j)).shape == (n, 4)
    with pytest.raises(TypeError):
        x.T @ matrix


def test_scipy_takes_it_as_an_operator(tmp_path: Path) -> None:
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix = built(tmp_path, eps=1e-7)
    operator = linalg.aslinearoperator(matrix)
    b = np.ones(matrix.shape[0])
    x, code = linalg.gmres(operator, b, rtol=1e-8)
    assert code == 0
    assert off(x, H.solve(matrix, b, tol=1e-9).x) < 1e-6
    assert operator.shape == matrix.shape and operator.dtype == matrix.dtype


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reaches_the_tolerance(tmp_path: Path, method: str) -> None:
    matrix = built(tmp_path, eps=1e-7)
    b = np.random.default_rng(3).standard_normal((matrix.shape[0], 3))
    found = H.solve(matrix, b, tol=1e-7, method=method)
    assert isinstance(found, Solution)
    assert found.converged and found.stopped_by == "tolerance"
    residuals = np.linalg.norm(matrix @ found.x - b, axis=0) / np.linalg.norm(b, axis=0)
    assert residuals == pytest.approx(found.residuals, rel=1e-3, abs=1e-12)
    assert found.relative_residual == max(found.residuals) < 1e-7
    assert len(found.history) >= 1 and found.sweeps >= found.iterations > 0


def test_several_right_hand_sides_share_sweeps(tmp_path: Path) -> None:
    matrix = built(tmp_path)
    b = np.random.default_rng(3).standard_normal((matrix.shape[0], 3))
    together = H.solve(matrix, b, tol=1e-6, method="gmres")
    alone = [H.solve(matrix, b[:, i], tol=1e-6, method="gmres") for i in range(3)]
    assert together.x.shape == b.shape and alone[0].x.shape == b[:, 0].shape
    assert together.sweeps == max(one.sweeps for one in alone)
    for i, one in enumerate(alone):
        assert off(together.x[:, i], one.x) < 1e-12


def test_a_first_guess_is_gone_on_from(tmp_path: Path) -> None:
    matrix = built(tmp_path)
    b = np.ones(matrix.shape[0])
    found = H.solve(matrix, b, tol=1e-6)
    again = H.solve(matrix, b, tol=1e-5, x0=found.x)
    assert again.iterations == 0 and np.array_equal(again.x, found.x)


def test_out_of_core_tells_what_in_core_tells(tmp_path: Path) -> None:
    """To the last bit, by every cache, order and path; a cache that is too small for all reads more. What is kept in
    memory as preconditioner depends on the cache, so solves with one agree as far as they were asked to."""
    mesh = H.shape("bumpy", 3000)
    matrix = built(tmp_path, mesh, batches=12)
    room = matrix.facts["bytes_stored"] * 2 // 3
    b, plain = np.ones(mesh.unknowns), {"method": "gmres", "preconditioner": False, "tol": 1e-5}
    product, solution, preconditioned = matrix @ b, H.solve(matrix, b, **plain), H.solve(matrix, b)
    ways: list[dict[str, Any]] = [
        {"cache_bytes": room},
        {"cache_bytes": room, "path": "buffered", "read_ahead": 0},
        {"cache_bytes": room, "path": "mmap", "verify": "always"},
        {"cache_bytes": str(room), "pinned_batches": 3, "pinned_tiers": 0},
        {"cache_bytes": room, "zig_zag": True},
    ]
    for way in ways:
        with H.open(matrix.path, **way) as other:
            assert np.array_equal(other @ b, product)
            found = H.solve(other, b, **plain)
            assert off(found.x, solution.x) < 1e-12
            assert np.array_equal(found.x, solution.x) or "zig_zag" in way, "sums in another order"
            assert off(H.solve(other, b).x, preconditioned.x) < 2e-3
            counts = other.counts
            assert counts["bytes_read"] > matrix.counts["bytes_read"]
            assert sum(counts["bytes_by_path"].values()) == counts["bytes_read"]
            assert 0 < counts["bytes_hit"] < counts["bytes_taken"] and 0 < counts["hit_rate"] < 1
    changed = H.solve(matrix, b, cache_bytes=room, **plain)
    assert np.array_equal(changed.x, solution.x) and changed.bytes_read > 0


def test_what_is_open_already_is_not_opened_again(tmp_path: Path) -> None:
    matrix = built(tmp_path)
    b = np.ones(matrix.shape[0])
    read = (matrix @ b, matrix.counts["bytes_read"])[1]
    for asked in ({"cache_bytes": "auto"}, {"path": "auto"}, {"cache_bytes": "auto", "path": "auto"}):
        H.solve(matrix, b, **asked)
        assert matrix.counts["bytes_read"] == read and matrix.counts["sweeps"] > 1
    sweeps = matrix.counts["sweeps"]
    H.solve(matrix, b, path="buffered")
    assert matrix.counts["sweeps"] < sweeps, "the control: counts begin anew"


def test_two_runs_tell_the_same_to_the_last_bit(tmp_path: Path) -> None:
    mesh = H.shape("torus", 1500)
    found = []
    for name in ("a.hmat", "b.hmat"):
        with H.assemble(mesh, store=tmp_path / name) as matrix:
            found.append(H.solve(matrix, np.ones(mesh.unknowns)))
    assert np.array_equal(found[0].x, found[1].x)
    one, other = ((tmp_path / name).read_bytes()[4096:] for name in ("a.hmat", "b.hmat"))
    assert one == other


def test_a_matrix_says_what_it_is(tmp_path: Path) -> None:
    mesh = H.shape("bumpy", 600)
    matrix = built(tmp_path, mesh, eps=1e-3)
    assert repr(matrix) == f"<penstock.hmatrix.HMatrix '{tmp_path}/m.hmat', 720 x 720>"
    facts = matrix.facts
    assert facts["leaves"] == facts["low_rank_leaves"] + facts["dense_leaves"]
    assert facts["bytes_stored"] == (tmp_path / "m.hmat").stat().st_size < 0.5 * facts["bytes_fp64"]
    assert 0 <= facts["sampled_error"] <= 1e-3
    assert matrix.built["entries_evaluated"] > 0 and matrix.built["assemble_s"] > 0
    assert matrix.built["assembled_on"] in ("host", "cuda:0") and matrix.built["leaves_left_to_host"] < 5
    assert matrix.about == {"problem": "Laplace single layer", "kernel": "collocation"} | {
        "unknowns": 720,
        "mesh": mesh.digest,
    }
    matrix @ np.ones(720)
    again = H.open(matrix.path)
    assert again.facts == {name: facts[name] for name in again.facts} and again.built == {}
    found = H.info(tmp_path / "m.hmat")
    assert {name: found[name] for name in again.facts} == again.facts
    assert found["about"] == matrix.about and sum(found["tier_bytes"]) > 0
    assert H.verify(matrix.path) >= sum(found["tier_bytes"])
    matrix.close()
    matrix.close()
    assert "closed" in repr(matrix)
    with pytest.raises(ps.Error, match="it is closed"):
        matrix @ np.ones(720)


def test_progress_is_told_and_may_end_the_work(tmp_path: Path) -> None:
    told: list[tuple[int, ...]] = []
    matrix = built(tmp_path, batches=5, progress=lambda *at: told.append(at))
    assert [at[0] for at in told] == sorted(at[0] for at in told) and len(told) == 5
    assert told[-1][0] == told[-1][1] == matrix.facts["leaves"]
    assert told[-1][2] > 0
    with pytest.raises(ps.Error, match="progress function asked to stop") as caught:
        H.assemble(H.shape("bumpy", 600), store=tmp_path / "n.hmat", progress=lambda *_: False)
    assert caught.value.code == "cancelled"
    assert [one.name for one in tmp_path.iterdir()] == ["m.hmat"]
    steps: list[tuple[int, int, float]] = []

    def enough(iteration: int, sweeps: int, residual: float) -> bool:
        steps.append((iteration, sweeps, residual))
        return iteration < 3

    found = H.solve(matrix, np.ones(720), method="gmres", tol=1e-9, callback=enough)
    assert (found.converged, found.stopped_by, found.iterations) == (False, "callback", 3)
    assert [step[0] for step in steps] == [1, 2, 3]
    assert found.relative_residual == pytest.approx(steps[-1][2], rel=0.1)


def test_a_callback_may_multiply_and_raise(tmp_path: Path) -> None:
    matrix = built(tmp_path)
    x = np.random.default_rng(5).standard_normal(720)
    wanted, plain = matrix @ x, H.solve(matrix, np.ones(720), method="gmres")
    found = H.solve(matrix, np.ones(720), method="gmres", callback=lambda *_: np.array_equal(matrix @ x, wanted))
    assert found.converged and np.array_equal(found.x, plain.x)
    with pytest.raises(ZeroDivisionError):
        H.solve(matrix, np.ones(720), callback=lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        H.assemble(H.shape("bumpy", 600), store=tmp_path / "n.hmat", progress=lambda *_: 1 / 0)
    assert np.array_equal(matrix @ x, wanted)


def test_threads_share_a_matrix_by_turns(tmp_path: Path) -> None:
    matrix = built(tmp_path, batches=6)
    matrix.reopen(cache_bytes=matrix.facts["bytes_stored"] // 2)
    x = np.random.default_rng(5).standard_normal((720, 4))
    wanted, found = [matrix @ x[:, i] for i in range(4)], [True] * 4

    def work(i: int) -> None:
        found[i] = all(np.array_equal(matrix @ x[:, i], wanted[i]) for _ in range(20))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found)


def test_a_mesh_is_read_inspected_cleaned_and_written(tmp_path: Path) -> None:
    mesh = H.shape("torus", 300)
    mesh.write(tmp_path / "t.ply", charge=np.arange(mesh.unknowns, dtype=float))
    again = H.read_mesh(tmp_path / "t.ply", unit_metres=1e-3)
    assert np.allclose(again.vertices, mesh.vertices * 1e-3) and np.array_equal(again.triangles, mesh.triangles)
    mesh.write(tmp_path / "t.vtk", charge=np.ones(mesh.unknowns))
    assert (tmp_path / "t.vtk").read_bytes().startswith(b"# vtk")
    twice = Mesh(mesh.vertices, np.concatenate([mesh.triangles, mesh.triangles[:5]]))
    report = twice.inspect()
    assert report.facts["duplicate_triangles"] == 5 and "duplicate" in report.text
    cleaned, found = twice.clean()
    assert cleaned.unknowns == mesh.unknowns and found.facts == report.facts
    assert cleaned.digest == mesh.digest != twice.digest
    with pytest.raises(ps.Error, match="5 triangles that repeat others"):
        twice.clean(refuse_duplicates=True)
    opened = Mesh(mesh.vertices, mesh.triangles[:-1])
    assert not opened.inspect().facts["closed"] and "open: 3 boundary edges" in opened.inspect().text


def test_a_mesh_is_cut_finer_without_another_shape(tmp_path: Path) -> None:
    mesh = H.shape("mirrored-spheres", 160)
    fine = mesh.subdivided(2)
    assert fine.unknowns == 16 * mesh.unknowns and len(fine.vertices) - fine.unknowns // 2 == 4, "two closed surfaces"
    assert np.allclose(fine.areas.reshape(-1, 16), mesh.areas[:, None] / 16), "parts follow each other"
    assert np.array_equal(fine.values, np.repeat(mesh.values, 16))
    facts = fine.inspect().facts
    assert facts["closed"] and facts["sound"] and facts["non_manifold_edges"] == 0 and facts["components"] == 2
    corners = mesh.vertices[mesh.triangles]
    normals, finer = (np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]) for p in (corners, fine.vertices[fine.triangles]))
    assert np.allclose(finer.reshape(-1, 16, 3), normals[:, None] / 16), "turned as they were"
    assert mesh.subdivided(0).digest == mesh.digest

    cube = [[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    box = H.Mesh(cube, [part for a, b, c, d in quads for part in ((a, b, c), (a, c, d))])
    found = []
    for times in (2, 3, 4):
        finer = box.subdivided(times)
        matrix = H.assemble(finer, store=tmp_path / f"{times}.hmat", eps=1e-6)
        found.append(H.capacitance(finer, H.solve(matrix, np.ones(finer.unknowns), tol=1e-6).x))
    assert found[0] < found[1] < found[2] < 0.6606782 and found[2] > 0.655
    with pytest.raises(ps.Error, match="times into four"):
        mesh.subdivided(40)


def test_what_is_not_given_is_chosen_by_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock._files import free_memory
    from penstock.hmatrix import _memory

    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    4000 kB\n")
    monkeypatch.setattr(free_memory, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "_GROUP_LIMIT", tmp_path / "absent")
    emulated, gpu = {"emulated": True, "free_bytes": 5}, {"emulated": False, "free_bytes": 1 << 33}
    assert _memory.cache_by_memory(gpu) == 1 << 32
    assert _memory.cache_by_memory(emulated) == _memory.cache_by_memory(gpu, on_host=True) == 2000 << 10
    (tmp_path / "max").write_text("max\n")
    monkeypatch.setattr(free_memory, "_GROUP_LIMIT", tmp_path / "max")
    assert _memory.cache_by_memory(emulated) == 2000 << 10
    (tmp_path / "max").write_text("1048576\n")
    assert _memory.cache_by_memory(emulated) == 1 << 19


INTERRUPTED = """
import os, signal, sys, numpy, penstock as ps
mesh, folder = ps.hmatrix.shape("bumpy", 3000), sys.argv[1]

def interrupt(*at):
    if at[0] > 1:
        os.kill(os.getpid(), signal.SIGINT)

try:
    ps.hmatrix.assemble(mesh, store=folder + "/gone.hmat", batches=20, progress=interrupt)
except KeyboardInterrupt:
    print("assembly interrupted", os.listdir(folder))
matrix = ps.hmatrix.assemble(mesh, store=folder + "/m.hmat")
try:
    ps.hmatrix.solve(matrix, numpy.ones(mesh.unknowns), method="gmres", callback=interrupt)
except KeyboardInterrupt:
    print("solve interrupted")
print(ps.hmatrix.solve(matrix, numpy.ones(mesh.unknowns)).converged)
"""


def test_ctrl_c_ends_assembly_and_solve(tmp_path: Path) -> None:
    """The signal comes in the middle of the work; nothing is left, and the matrix is good for another solve."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["assembly interrupted []", "solve interrupted", "True"], done.stderr
