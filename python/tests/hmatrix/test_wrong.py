"""penstock.hmatrix given wrong files, arrays, options and functions: each is a clear error that leaves nothing."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hmatrix_rig import built, kernel_of, points

import penstock as ps
from penstock.hmatrix import HMatrix, Mesh

H = ps.hmatrix
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def matrix(tmp_path: Path) -> HMatrix:
    return built(tmp_path, batches=4)


@contextmanager
def nothing_new(folder: Path) -> Iterator[None]:
    before = sorted(folder.iterdir())
    yield
    assert sorted(folder.iterdir()) == before


def refuse(words: str, work: Callable[[], Any], code: str = "invalid_argument") -> None:
    with pytest.raises(ps.Error, match=words) as caught:
        work()
    assert caught.value.code == code, caught.value.code
    assert "\n" not in str(caught.value)


TRIANGLE = np.eye(3)
SHEETS: dict[str, tuple[Any, str]] = {  # vertices and triangles that are sound arrays and no sound mesh
    "no_triangles": ((TRIANGLE, np.zeros((0, 3), int)), "no triangles|there are no points"),
    "nan": ((np.where(np.eye(3) == 1, NAN, 0), [[0, 1, 2]]), "finite"),
    "infinite": ((np.where(np.eye(3) == 1, INF, 0), [[0, 1, 2]]), "finite"),
    "no_area": (([[0, 0, 0], [1, 1, 1], [2, 2, 2]], [[0, 1, 2]]), "area"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_meshes_that_make_no_matrix(tmp_path: Path, name: str) -> None:
    arrays, words = SHEETS[name]
    mesh = Mesh(*arrays)
    with nothing_new(tmp_path):
        refuse(words, mesh.clean)
        refuse(".", lambda: H.assemble(mesh, store=tmp_path / "m.hmat"))
    assert not mesh.inspect().facts["sound"] or mesh.unknowns == 0


def test_duplicates_that_were_not_removed_do_not_crash(tmp_path: Path) -> None:
    """A singular matrix is built, for it is what was asked for; the solve finds nothing, and says so."""
    mesh = H.shape("bumpy", 600)
    twice = Mesh(mesh.vertices, np.concatenate([mesh.triangles, mesh.triangles[:3]]))
    matrix = built(tmp_path, twice)
    try:
        found = H.solve(matrix, np.ones(twice.unknowns), tol=1e-6)
        assert np.isfinite(found.x).all()
    except ps.Error as error:
        assert "duplicate triangles" in str(error)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ((np.zeros((3, 2)), [[0, 1, 2]]), r"vertices have shape \(3, 2\)"),
        ((TRIANGLE, [[0, 1]]), "triangles have shape"),
        ((TRIANGLE, [[0, 1, 3]]), "triangle 0 has corners"),
        ((TRIANGLE, [[0, 1, -1]]), "triangle 0 has corners"),
        ((TRIANGLE, [[0, 1, 2]], [1.0, 2.0]), "values have shape"),
    ],
)
def test_arrays_that_are_no_mesh(arrays: Any, words: str) -> None:
    refuse(words, lambda: Mesh(*arrays))


@pytest.mark.parametrize(
    "arrays",
    [
        (TRIANGLE, [[0.0, 1.0, 2.0]]),  # would be cut down to whole numbers
        (TRIANGLE, [["a", "b", "c"]]),
        (TRIANGLE + 1j, [[0, 1, 2]]),
        ([[1, 2, 3], [4, 5]], [[0, 1, 2]]),
        (TRIANGLE, [[0, 1, 2]], ["one"]),
    ],
)
def test_arrays_of_another_type(arrays: Any) -> None:
    with pytest.raises(TypeError, match="must"):
        Mesh(*arrays)


def test_files_that_are_no_mesh(tmp_path: Path) -> None:
    for name, content, words in (
        ("a.ply", b"", "the file is empty"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nf 1 2 9\n", "line 3"),
        ("a.off", b"OFF\n3 1 0\n0 0 0\n", "a.off"),
        ("a.txt", b"what is this", "neither content nor name"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ps.Error, match=words):
            H.read_mesh(tmp_path / name)
    refuse("No such file", lambda: H.read_mesh(tmp_path / "absent.ply"), "not_found")
    refuse("unit", lambda: H.read_mesh(tmp_path / "a.obj", unit_metres=-1.0))
    refuse("sphere", lambda: H.shape("egg", 100))
    refuse("triangles", lambda: H.shape("sphere", -5))


def test_surfaces_that_cannot_be_written(tmp_path: Path) -> None:
    mesh, ones = H.shape("sphere", 20), np.ones(20)
    with nothing_new(tmp_path):
        refuse("shape", lambda: mesh.write(tmp_path / "a.vtk", charge=ones[1:]))
        refuse(".vtk", lambda: mesh.write(tmp_path / "a.obj", charge=ones))
        refuse("a b", lambda: mesh.write(tmp_path / "a.vtk", **{"a b": ones}))
        refuse("No such file", lambda: mesh.write(tmp_path / "no" / "a.vtk", charge=ones), "not_found")
        with pytest.raises(TypeError, match="charge"):
            mesh.write(tmp_path / "a.vtk", charge=["x"] * 20)
        refuse("density", lambda: H.capacitance(mesh, ones[1:]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"eps": 0.0}, "eps"),
        ({"eps": 0.9}, "eps"),
        ({"eps": NAN}, "eps"),
        ({"eta": -1.0}, "eta"),
        ({"eta": NAN}, "eta"),
        ({"leaf_size": 0}, "leaf"),
        ({"batches": -1}, "batches"),
        ({"batch_bytes": 0}, "batch"),
        ({"encoding": "fp32"}, "use tiers or fp64"),
        ({"kernel": "helmholtz"}, "use collocation, galerkin"),
        ({"accuracies": [0.1, 0.2]}, "must fall"),
        ({"accuracies": [0.1 / 2**i for i in range(7)]}, "6 tiers"),
        ({"workers": -3}, "workers|threads"),
    ],
)
def test_options_of_assembly_out_of_range(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with nothing_new(tmp_path):
        refuse(words, lambda: built(tmp_path, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"eps": "1e-4"},
        {"eps": 1e-4j},
        {"leaf_size": 1.5},
        {"colour": "red"},
        {"accuracies": "abc"},
        {"workers": "all"},
        {"batches": 2.5},
        {"open": {"cache_bytes": 1e9}},
    ],
)
def test_options_of_assembly_of_another_type(tmp_path: Path, options: dict[str, Any]) -> None:
    with nothing_new(tmp_path), pytest.raises(TypeError) as caught:
        built(tmp_path, **options)
    name = next(iter(options.get("open", options)))
    assert name in str(caught.value)
    assert name != "eps" or "eps must be a number such as 1e-4" in str(caught.value)


def test_places_to_assemble_on(tmp_path: Path) -> None:
    host, places = ps.Context(device="host"), points(100)
    with nothing_new(tmp_path):
        refuse("use auto, host or gpu", lambda: built(tmp_path, assemble_on="moon"))
        refuse("is not a GPU", lambda: built(tmp_path, context=host, assemble_on="gpu"), "unsupported")
        with pytest.raises(ps.Error, match="is not a GPU|a function of the host") as caught:
            H.assemble(places, entries=kernel_of(places), store=tmp_path / "p.hmat", assemble_on="gpu")
        assert caught.value.code == "unsupported"
    assert built(tmp_path, context=host, assemble_on="host").built["assembled_on"] == "host"


def test_files_that_cannot_be_made(tmp_path: Path) -> None:
    mesh = H.shape("sphere", 80)
    with nothing_new(tmp_path):
        refuse("No such file", lambda: H.assemble(mesh, store=tmp_path / "no" / "m.hmat"), "not_found")
        with pytest.raises(ps.Error, match=str(tmp_path)):
            H.assemble(mesh, store=tmp_path)
        with pytest.raises(ps.Error, match="/dev/null"):
            H.assemble(mesh, store="/dev/null")
        with pytest.raises(TypeError):
            H.assemble(mesh, store=3)  # type: ignore[arg-type]
        refuse("pass entries=", lambda: H.assemble(points(20), store=tmp_path / "m.hmat"))


def test_functions_that_give_no_entries(tmp_path: Path) -> None:
    places = points(200)
    good = kernel_of(places)

    def make(entries: Any, where: Any = places) -> Callable[[], Any]:
        return lambda: H.assemble(where, entries=entries, store=tmp_path / "p.hmat")

    with nothing_new(tmp_path):
        refuse("not a finite number", make(lambda r, c: np.full((len(r), len(c)), NAN)))
        refuse("not a finite number", make(lambda r, c: good(r, c) * np.where(c == 77, INF, 1)))
        with pytest.raises(ZeroDivisionError):
            make(lambda r, c: 1 / 0)()
        with pytest.raises(KeyboardInterrupt):
            make(_interrupted)()
        for answer in (None, "x", [[1.0]], np.ones(3)):
            with pytest.raises(TypeError, match="must return"):
                make(lambda r, c, answer=answer: answer)()
        with pytest.raises(TypeError, match="must return"):
            make(lambda r, c: good(r, c).astype(complex))()
        with pytest.raises(TypeError, match="must be a function"):
            make(3)()
        refuse(r"points have shape \(200, 2\)", make(good, places[:, :2]))
        refuse("point 3 is not finite", make(good, np.where(np.arange(600).reshape(200, 3) == 9, NAN, places)))
        refuse("no points", make(good, places[:0]))


def _interrupted(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_a_function_that_jumps_is_found_out(tmp_path: Path) -> None:
    """An approximation that missed what the function does here and there is an error, not a wrong answer."""
    places, bumps = points(600), np.random.default_rng(4).random((600, 600)) < 0.002

    def entries(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return kernel_of(places)(rows, columns) + 100.0 * bumps[np.ix_(rows, columns)]

    with nothing_new(tmp_path):
        try:
            matrix = H.assemble(places, entries=entries, store=tmp_path / "p.hmat", eps=1e-6)
        except ps.Error as error:
            assert "on sampled rows is" in str(error)
            return
    assert matrix.facts["sampled_error"] < 1e-5, "or it was not missed"


def test_entries_that_are_whole_numbers_or_of_fortran_order_are_taken(tmp_path: Path) -> None:
    places = points(100)

    def entries(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return (rows[:, None] == columns[None]) + 0.0

    matrix = H.assemble(places, entries=entries, store=tmp_path / "p.hmat", encoding="fp64")
    assert np.allclose(matrix @ np.arange(100.0), np.arange(100))


def test_vectors_that_do_not_fit(matrix: HMatrix) -> None:
    n = matrix.shape[0]
    for x in (np.ones(n - 1), np.ones((n, 2, 2)), np.float64(3), np.ones((1, n))):
        refuse("x has shape", lambda x=x: matrix @ x)
    for x in (["a"] * n, [None] * n, np.array([object()] * n), [[1], [2, 3]]):
        with pytest.raises(TypeError, match="x must"):
            _ = matrix @ x
    assert np.isnan(matrix @ np.full(n, NAN)).any(), "as NumPy does it"


def test_right_hand_sides_and_options_of_a_solve(matrix: HMatrix) -> None:
    n = matrix.shape[0]
    b = np.ones(n)
    for given, words in (
        ({"b": b[1:]}, "b has shape"),
        ({"b": np.ones((n, 0))}, "b has shape"),
        ({"b": np.where(np.arange(n) == 5, NAN, 1)}, "b holds nan in row"),
        ({"x0": b[1:]}, "x0 has shape"),
        ({"x0": np.full(n, INF)}, "inf"),
        ({"method": "jacobi"}, "use fgmres, gmres"),
        ({"tol": 0.0}, "tolerance is 0"),
        ({"tol": NAN}, "tolerance is nan"),
        ({"tol": 1.0}, "tolerance is 1"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"restart": -1}, "restart"),
        ({"method": "bicgstab", "restart": 5}, "restart"),
        ({"method": "gcr", "relaxed": True}, "relaxed"),
        ({"inner_tolerance": 2.0}, "inner_tolerance"),
        ({"cache_bytes": 1000}, "a cache of 1000 bytes"),
        ({"path": "teleport"}, "teleport"),
    ):
        refuse(words, lambda given=given: H.solve(matrix, **({"b": b} | given)))
    for given in ({"b": b * 1j}, {"b": ["a"] * n}, {"tol": "small"}, {"colour": 1}, {"callback": 3}):
        with pytest.raises(TypeError):
            H.solve(matrix, **({"b": b} | given))
    refuse(
        "No such file", lambda: H.solve(matrix, b, checkpoint="/no/such/folder/state", checkpoint_sweeps=1), "not_found"
    )
    assert H.solve(matrix, b).converged, "the matrix is as good as before"


def test_options_of_opening(matrix: HMatrix) -> None:
    for options, words in (
        ({"cache_bytes": 100}, "a cache of 100 bytes"),
        ({"cache_bytes": "lots"}, "lots"),
        ({"cache_bytes": 300_000, "pinned_batches": 100, "pinned_tiers": 0}, "cannot hold"),
        ({"path": "teleport"}, "teleport"),
        ({"verify": "sometimes"}, "use first, always or never"),
    ):
        refuse(words, lambda options=options: H.open(matrix.path, **options))
    for options in ({"cache_bytes": 1.5}, {"colour": 1}, {"zig_zag": "yes"}):
        with pytest.raises(TypeError):
            H.open(matrix.path, **options)
    with pytest.raises(ps.Error):
        matrix.reopen(cache_bytes=100)
    assert (matrix @ np.ones(matrix.shape[0])).shape == (matrix.shape[0],), "as it was before"


def test_another_file_of_the_same_name_is_no_reopening(tmp_path: Path, matrix: HMatrix) -> None:
    """A solve with another cache opens the file again: it must not be another matrix by then."""
    b = np.ones(matrix.shape[0])
    finer = built(tmp_path, eps=1e-6)  # of the same name; not opened yet
    wanted = H.solve(finer, b, cache_bytes="2 MiB").x
    assert finer.facts["eps"] == 1e-6
    refuse("another file has its name", lambda: matrix @ b)  # assembled and never opened: nothing is held of it
    other = built(tmp_path, eps=1e-2)
    assert np.allclose(H.solve(finer, b, cache_bytes="2 MiB").x, wanted), "what is open stays what it is"
    refuse("another file has its name", lambda: H.solve(finer, b, cache_bytes="3 MiB"))
    refuse("another file has its name", lambda: finer @ b)
    H.solve(other, b, cache_bytes="3 MiB")
    other.reopen(cache_bytes="2 MiB")  # control: the same file again
    with H.open(other.path) as opened:
        assert opened.facts["eps"] == 1e-2
        assert np.array_equal(opened @ b, other @ b)


def test_files_that_are_no_matrix(tmp_path: Path, matrix: HMatrix) -> None:
    whole = Path(matrix.path).read_bytes()
    other = tmp_path / "x.hmat"

    def opened(content: bytes) -> Callable[[], Any]:
        other.write_bytes(content)
        return lambda: (H.open(other), H.info(other))

    refuse("No such file", lambda: H.open(tmp_path / "absent.hmat"), "not_found")
    refuse("shorter than a header", opened(b""))
    refuse("not a .hmat file; check the name", opened(b"PK" + whole[2:]))
    refuse("of version 9", opened(whole[:8] + b"\x09" + whole[9:]), "unsupported")
    refuse("header", opened(whole[:24] + b"\xff" + whole[25:]))
    refuse("cut short", opened(whole[:-1]))
    refuse("cut short", opened(whole + b"\0"))
    refuse("tables", opened(whole[:-200] + b"\xff" + whole[-199:]))
    with pytest.raises(ps.Error, match="directory"):
        H.open(tmp_path)


def test_a_file_that_says_nonsense_about_its_problem(tmp_path: Path, matrix: HMatrix) -> None:
    """Whole by its checksums: any program may have written it."""
    content = bytearray(Path(matrix.path).read_bytes())
    table, (size,) = struct.unpack_from("<q", content, 56)[0], struct.unpack_from("<q", content, 88)
    for about in (b'"' + b"x" * (size - 2) + b'"', b"[" * size, b"\xff" * size, b"[]" + b" " * (size - 2)):
        content[-size:] = about
        struct.pack_into("<I", content, 200, zlib.crc32(content[table:]))
        struct.pack_into("<I", content, 204, zlib.crc32(content[:204]))
        (tmp_path / "x.hmat").write_bytes(content)
        refuse("not a JSON object", lambda: H.info(tmp_path / "x.hmat"))
        with H.open(tmp_path / "x.hmat") as opened:
            assert np.array_equal(opened @ np.ones(720), matrix @ np.ones(720))
            refuse("not a JSON object", lambda opened=opened: opened.about)


def test_a_damaged_batch_is_refused_by_name(tmp_path: Path, matrix: HMatrix) -> None:
    size, batches = (H.info(matrix.path)[name] for name in ("largest_batch_bytes", "batches"))
    matrix.close()
    content = bytearray(Path(matrix.path).read_bytes())
    (table,) = struct.unpack_from("<q", content, 64)
    (offset,) = struct.unpack_from("<q", content, table + 160 * (batches - 1))
    content[offset + 100] ^= 1
    Path(matrix.path).write_bytes(content)
    assert H.info(matrix.path)["unknowns"] == 720
    refuse("batch 3 is damaged", lambda: H.verify(matrix.path), "io_error")
    refuse("batch 3 is damaged", lambda: H.open(matrix.path), "io_error")
    opened = H.open(matrix.path, cache_bytes=3 * size, pinned_batches=0, pinned_tiers=0)
    refuse("batch 3 is damaged", lambda: opened @ np.ones(720), "io_error")
    refuse("batch 3 is damaged", lambda: H.solve(opened, np.ones(720)), "io_error")
    with H.open(matrix.path, verify="never") as unchecked:  # control: it is the checksum that found it
        assert (unchecked @ np.ones(720)).shape == (720,)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_a_full_disk_in_the_middle_of_assembly(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount here")
    try:
        (place / "m.hmat").write_bytes(b"the one before")
        with pytest.raises(ps.Error, match="No space left") as caught:
            H.assemble(H.shape("bumpy", 4000), store=place / "m.hmat", batches=20)
        assert (caught.value.code, caught.value.system_code) == ("no_space", errno.ENOSPC)
        assert [one.name for one in place.iterdir()] == ["m.hmat"]
        assert (place / "m.hmat").read_bytes() == b"the one before"
    finally:
        subprocess.run(["umount", place], check=True)
