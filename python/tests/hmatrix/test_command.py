"""`penstock hmatrix` as a user runs it: output, files, wrong command lines, interruption, kill -9 and a full disk."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import PENSTOCK, Ran, assert_one_line_error
from hmatrix_rig import off, on_gpu

import penstock as ps
from penstock.hmatrix._close import all_but_coincident

Run = Callable[..., Ran]
H = ps.hmatrix
PROMISED = {"unknowns", "low_rank_leaves", "dense_leaves", "bytes_fp64", "bytes_stored", "bytes_read", "sweeps"}
PROMISED |= {"iterations", "relative_residual", "capacitance_over_4pi_eps0", "cache_hit_rate", "bytes_by_path"}
PROMISED |= {"assemble_s", "write_s", "read_s", "other_s", "total_s"}
SMALL = ("--shape", "bumpy", "--triangles", "600")


def surface_of(path: Path, count: int) -> np.ndarray:
    """The charges of a legacy VTK file, the one set of numbers that comes first: big-endian doubles behind its name."""
    content = path.read_bytes()
    at = content.index(b"surface_charge")
    begin = content.index(b"LOOKUP_TABLE default\n", at) + len(b"LOOKUP_TABLE default\n")
    return np.frombuffer(content, ">f8", count, begin)


def test_a_solve_tells_everything(penstock: Run, tmp_path: Path) -> None:
    out = ("--out", "q.vtk", "--picture", "q.png", "--width", "300", "--store", "m.hmat")
    ran = penstock("hmatrix", "solve", "--shape", "sphere", "--triangles", "1280", *out, "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    found = ran.json
    assert set(found) >= PROMISED
    assert ran.err == ""
    assert found["unknowns"] == 1280 and found["capacitance_over_4pi_eps0"] == pytest.approx(1, abs=4e-3)
    assert found["capacitance_farad"] == pytest.approx(111.265e-12 * found["capacitance_over_4pi_eps0"], rel=1e-5)
    assert found["converged"] and found["relative_residual"] < 1e-5
    phases = sum(found[f"{phase}_s"] for phase in ("assemble", "write", "read", "other"))
    assert found["total_s"] == pytest.approx(phases)
    assert found["command"].startswith("penstock hmatrix solve --shape sphere --triangles 1280 --out q.vtk")
    assert found["machine"]["git_revision"] == (ps._core.build_facts()["revision"] or None)
    assert found["machine"]["device"]["name"] == ("cuda:0" if on_gpu() else "host") and found["machine"]["cores"] >= 1
    assert found["bytes_stored"] == (tmp_path / "m.hmat").stat().st_size
    assert sum(found["bytes_by_path"].values()) == found["bytes_read"] > 0
    charge = surface_of(tmp_path / "q.vtk", 1280)
    assert charge.mean() == pytest.approx(8.854e-12, rel=0.02), "eps0 V / R"
    assert (tmp_path / "q.png").read_bytes().startswith(b"\x89PNG")
    log = tmp_path / "cufile.log"  # which NVIDIA's library for GPU I/O leaves when something is amiss
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.hmat", "q.png", "q.vtk"], (
        log.read_text() if log.exists() else ""
    )


def test_the_text_says_it_in_lines(penstock: Run, tmp_path: Path) -> None:
    ran = penstock("hmatrix", "solve", *SMALL, "--method", "gmres", cwd=tmp_path)
    assert ran.code == 0, ran.err
    begins = [line.split()[0] for line in ran.out.splitlines() if line[0] != " "]
    assert begins == ["mesh", "matrix", "solve", "result", "time"]
    for words in (
        "bumpy of 600: 720 triangles",
        "closed",
        "720 unknowns",
        "stored (tiers)",
        "eps 0.0001",
        "tol 1e-05",
        "pF",
    ):
        assert words in ran.out, words
    assert list(tmp_path.iterdir()) == [], "the scratch file is gone"


def test_a_built_matrix_is_solved_with_and_described(penstock: Run, tmp_path: Path) -> None:
    build = penstock("hmatrix", "build", *SMALL, "--store", "m.hmat", "--batches", "7", "--json", cwd=tmp_path)
    assert build.code == 0, build.err
    assert set(build.json) >= PROMISED and build.json["batches"] == 7 and build.json["bytes_read"] == 0
    info = penstock("hmatrix", "info", "m.hmat", "--verify", "--json", cwd=tmp_path).json
    assert info["unknowns"] == 720 and info["verified_bytes"] > 0 and info["about"]["kernel"] == "collocation"
    text = penstock("hmatrix", "info", "m.hmat", cwd=tmp_path).out
    assert "7 batches" in text and "tier 0" in text and "verified" not in text

    anew = penstock("hmatrix", "solve", *SMALL, "--json", cwd=tmp_path).json
    with_mesh = penstock("hmatrix", "solve", *SMALL, "--matrix", "m.hmat", "--json", cwd=tmp_path).json
    alone = penstock("hmatrix", "solve", "--matrix", "m.hmat", "--json", cwd=tmp_path).json
    same = pytest.approx(anew["capacitance_over_4pi_eps0"], rel=1e-6)  # a GPU adds up in no fixed order
    assert with_mesh["capacitance_over_4pi_eps0"] == same
    assert alone["capacitance_over_4pi_eps0"] is None
    assert alone["relative_residual"] == pytest.approx(with_mesh["relative_residual"], rel=1e-2)
    assert with_mesh["assemble_s"] == 0
    ran = penstock("hmatrix", "solve", "--shape", "torus", "--triangles", "720", "--matrix", "m.hmat", cwd=tmp_path)
    assert_one_line_error(ran, "m.hmat", "built of another mesh")


def test_parity_mode_pins_what_is_asked_for(penstock: Run, tmp_path: Path) -> None:
    parity = ("--encoding", "fp64", "--batches", "10", "--method", "bicgstab", "--no-preconditioner", "--tol", "1e-4")
    parity += ("--device", "host")  # no two runs on a GPU agree to the last bit
    whole = penstock("hmatrix", "solve", *SMALL, *parity, "--json", cwd=tmp_path).json
    assert whole["cache_hit_rate"] == 1.0 and whole["sweeps"] == 1 + 2 * whole["iterations"]
    cache = ("--cache", str(whole["bytes_stored"] // 2), "--path", "buffered")
    found = [
        penstock("hmatrix", "solve", *SMALL, *parity, *cache, "--pin", pins, "--json", cwd=tmp_path).json
        for pins in "03"
    ]
    for pins, one in zip((0, 3), found, strict=True):
        assert one["pinned_batches"] == pins and list(one["bytes_by_path"]) == ["buffered"]
        assert one["capacitance_over_4pi_eps0"] == whole["capacitance_over_4pi_eps0"], "to the last bit"
    assert found[0]["bytes_read"] > found[1]["bytes_read"] > 3 * whole["bytes_read"]
    assert found[1]["cache_hit_rate"] > 0.25


def test_a_matrix_less_accurate_than_eps_is_told(penstock: Run, tmp_path: Path) -> None:
    """Tiers coarser than eps: accepted up to ten times eps, unless it is to be strict."""
    mesh, store = H.shape("bumpy", 600), tmp_path / "coarse.hmat"
    assert 1e-4 < H.assemble(mesh, store=store, accuracies=[0.1, 1e-3]).facts["sampled_error"] <= 1e-3
    with pytest.raises(ps.Error, match="on sampled rows is"):
        H.assemble(mesh, store=tmp_path / "strict.hmat", accuracies=[0.1, 1e-3], refuse_error=1)
    said = "is above eps 0.0001: build with a smaller eps where that matters"
    for command in (("solve", "--matrix"), ("info",)):
        assert said in penstock("hmatrix", *command, "coarse.hmat", cwd=tmp_path).out
    assert "is above eps" not in penstock("hmatrix", "build", *SMALL, "--store", "usual.hmat", cwd=tmp_path).out
    assert H.assemble(mesh, store=tmp_path / "strict.hmat", refuse_error=1).shape == (720, 720)


def test_a_cache_without_a_tier_is_told_with_the_one_that_has_it(penstock: Run, tmp_path: Path) -> None:
    """Below it the default method has block-Jacobi alone, and takes several times the sweeps."""
    assert penstock("hmatrix", "build", *SMALL, "--store", "m.hmat", "--batches", "40", cwd=tmp_path).code == 0
    solve = ("hmatrix", "solve", "--matrix", "m.hmat")
    few = penstock(*solve, "--cache", "400KiB", "--json", cwd=tmp_path).json
    wanted = few["cache_for_a_tier"]
    enough = penstock(*solve, "--cache", str(wanted), "--json", cwd=tmp_path).json
    short = penstock(*solve, "--cache", str(wanted - 8), "--json", cwd=tmp_path).json
    assert (few["pinned_tiers"], short["pinned_tiers"], enough["pinned_tiers"]) == (0, 0, 1)
    assert short["cache_for_a_tier"] == wanted and enough["cache_for_a_tier"] is None
    assert few["sweeps"] >= 2 * enough["sweeps"]
    said = "no tier stayed in memory, so the preconditioner was block-Jacobi alone: "
    text = penstock(*solve, "--cache", "400KiB", cwd=tmp_path).out
    assert f"{said}--cache {-(-wanted // 1024)}KiB keeps the first" in text
    pinned = penstock(*solve, "--cache", str(wanted), "--pin", "0", cwd=tmp_path).out
    assert f"{said}--pin and --path gpu keep whole batches only" in pinned
    for other in (("--cache", str(wanted)), ("--cache", "400KiB", "--method", "gmres")):
        assert "no tier" not in penstock(*solve, *other, cwd=tmp_path).out


def test_a_mesh_with_faults_is_mended_and_they_are_told(penstock: Run, tmp_path: Path) -> None:
    mesh = H.shape("sphere", 320)
    H.Mesh(mesh.vertices * 1e3, np.concatenate([mesh.triangles[1:], mesh.triangles[5:9]])).write(tmp_path / "mm.ply")
    ran = penstock("hmatrix", "solve", "mm.ply", "--unit", "1mm", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "4 duplicate triangles were removed" in ran.out and "open: 3 boundary edges" in ran.out
    found = penstock("hmatrix", "solve", "mm.ply", "--unit", "mm", "--json", cwd=tmp_path).json
    assert found["duplicates_removed"] == 4 and found["unknowns"] == 319
    assert found["capacitance_over_4pi_eps0"] == pytest.approx(1, abs=0.02), "in metres"


def test_triangles_that_all_but_coincide_are_named(penstock: Run, tmp_path: Path) -> None:
    """No duplicates to the cleaning, and equal rows to block-Jacobi, which knows rows of the file only."""
    mesh, whole = H.shape("bumpy", 600), tmp_path / "close.ply"
    count = len(mesh.vertices)
    vertices = np.concatenate([mesh.vertices, mesh.vertices[mesh.triangles[77]] + 1e-9])
    H.Mesh(vertices, np.concatenate([mesh.triangles, [[count, count + 1, count + 2]]])).write(whole)
    solve = ("hmatrix", "solve", "close.ply", "--device", "host")
    ran = penstock(*solve, cwd=tmp_path)
    assert_one_line_error(
        ran, "is singular (rows in the file's order)", "triangles 77 and 720, counted from 0, are 1.7e-09 m"
    )
    assert penstock(*solve, "--no-preconditioner", cwd=tmp_path).code == 0, "as it advises"
    assert all_but_coincident(H.read_mesh(whole))[:2] == (77, 720)
    for sound in (mesh, H.shape("cube", 6912), H.Mesh(mesh.vertices, mesh.triangles[:1])):
        assert all_but_coincident(sound) is None


def test_potentials_of_a_pbf_file_are_used(penstock: Run, tmp_path: Path) -> None:
    mesh = H.shape("mirrored-spheres", 160)
    lines = [str(len(mesh.vertices)), *(" ".join(map(repr, map(float, one))) for one in mesh.vertices)]
    lines += [str(mesh.unknowns), "3", "0", "1", *(" ".join(map(str, one)) for one in mesh.triangles)]
    (tmp_path / "two.pbf").write_text("\n".join([*lines, *(f"{value:g}" for value in mesh.values)]) + "\n")
    ran = penstock("hmatrix", "solve", "two.pbf", "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    found = ran.json
    assert found["capacitance_over_4pi_eps0"] is None
    low, high = found["charges"]
    assert (low["volts"], high["volts"]) == (-1, 1) and low["triangles"] == high["triangles"] == mesh.unknowns // 2
    assert low["charge_over_4pi_eps0"] == pytest.approx(-high["charge_over_4pi_eps0"], rel=1e-3)
    assert "-1 V: charge" in penstock("hmatrix", "solve", "two.pbf", cwd=tmp_path).out


def test_a_mesh_is_cut_finer_and_pivots_are_chosen_by_references(penstock: Run, tmp_path: Path) -> None:
    one = penstock("hmatrix", "solve", "--shape", "sphere", "--triangles", "320", "--json", cwd=tmp_path).json
    finer = ("--shape", "sphere", "--triangles", "80", "--subdivide", "1")
    found = penstock("hmatrix", "solve", *finer, "--aca-plus", "--json", cwd=tmp_path).json
    assert found["mesh"] == "sphere of 80, subdivided once" and found["unknowns"] == one["unknowns"] == 320
    assert found["mesh_facts"]["triangles"] == 80, "as given"
    assert 0.9 < found["capacitance_over_4pi_eps0"] < one["capacitance_over_4pi_eps0"], "flat, not round"
    usual = penstock("hmatrix", "build", *SMALL, "--json", cwd=tmp_path).json
    other = penstock("hmatrix", "build", *SMALL, "--aca-plus", "--json", cwd=tmp_path).json
    assert other["rank_sum"] != usual["rank_sum"] and other["sampled_error"] < 1e-4


WRONG = [
    ((*SMALL, "--subdivide", "-1"), "--subdivide"),
    ((*SMALL, "--subdivide", "13"), "--subdivide"),
    ((*SMALL, "--subdivide", "11"), "11 times into four"),
    ((*SMALL, "--aca-plus", "--assemble-on", "gpu"), "--aca-plus runs on the host"),
    (("--matrix", "m.hmat", "--subdivide", "1"), "there is no mesh"),
    (("--matrix", "m.hmat", "--aca-plus"), "--aca-plus is about building"),
    ((), "there is no mesh"),
    (("absent.ply",), "absent.ply"),
    (("--shape", "egg"), "use sphere, cube"),
    (("a.ply", *SMALL), "both MESH and --shape"),
    ((*SMALL, "--triangles", "-1"), "--triangles"),
    ((*SMALL, "--unit", "mm"), "--unit is of a MESH file"),
    (("a.ply", "--unit", "furlong"), "units are"),
    (("a.ply", "--triangles", "600"), "--triangles is of a --shape"),
    (("--matrix", "m.hmat", "--unit", "mm"), "--unit: there is no mesh"),
    (("--matrix", "m.hmat", "--triangles", "9"), "--triangles: there is no mesh"),
    ((*SMALL, "--eps", "1"), "--eps: 1 is out of range"),
    ((*SMALL, "--tol", "nan"), "--tol: nan"),
    ((*SMALL, "--method", "jacobi"), "use fgmres, gmres"),
    ((*SMALL, "--encoding", "fp32"), "use tiers, fp64"),
    ((*SMALL, "--kernel", "helmholtz"), "use collocation, galerkin"),
    ((*SMALL, "--assemble-on", "fpga"), "use auto, host, gpu"),
    ((*SMALL, "--device", "host", "--assemble-on", "gpu"), "the device 'host' is not a GPU"),
    (("--matrix", "m.hmat", "--assemble-on", "host"), "--assemble-on is about building"),
    ((*SMALL, "--batches", "0"), "--batches"),
    ((*SMALL, "--pin", "-1"), "--pin"),
    ((*SMALL, "--cache", "0"), "--cache: 0 bytes"),
    ((*SMALL, "--cache", "plenty"), "--cache"),
    ((*SMALL, "--cache", "1000"), "--cache: 1000 bytes hold no batch"),
    ((*SMALL, "--path", "teleport"), "--path"),
    ((*SMALL, "--workers", "0"), "--workers"),
    ((*SMALL, "--max-iterations", "x"), "--max-iterations"),
    ((*SMALL, "--restart", "5", "--method", "bicgstab"), "restart"),
    ((*SMALL, "--relaxed", "--method", "gcr"), "relaxed"),
    ((*SMALL, "--checkpoint-sweeps", "0"), "--checkpoint-sweeps"),
    ((*SMALL, "--device", "cuda:99"), "cuda:99"),
    ((*SMALL, "--dir", "no/where"), "--dir"),
    ((*SMALL, "--out", "q.obj"), "neither .vtk nor .ply"),
    ((*SMALL, "--out", "no/q.vtk"), "--out"),
    ((*SMALL, "--picture", "q.gif"), "use .png"),
    ((*SMALL, "--picture", "no/q.png"), "no such directory"),
    ((*SMALL, "--view", "1,2,w"), "--view"),
    ((*SMALL, "--width", "100"), "--width: 100 pixels"),
    ((*SMALL, "--out", "a.ply", "--store", "./a.ply"), "are one file"),
    (("a.ply", "--out", "a.ply"), "are one file"),
    ((*SMALL, "--matrix", "absent.hmat"), "absent.hmat"),
    (("--matrix", "a.ply"), "a.ply"),
    (("--matrix", "m.hmat", "--eps", "1e-3"), "leave one of them out"),
    (("--matrix", "m.hmat", "--out", "q.vtk"), "there is no mesh"),
]


def test_wrong_command_lines_are_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In this process: to start one for each takes longer than all of them."""
    from penstock.cli.app import app

    (tmp_path / "a.ply").write_bytes(b"")
    before, here = sorted(tmp_path.iterdir()), Path.cwd()
    os.chdir(tmp_path)
    try:
        for arguments, words in WRONG:
            with pytest.raises(ps.Error) as caught:
                app(["hmatrix", "solve", *arguments], standalone_mode=False)
            assert words in str(caught.value), (arguments, str(caught.value))
            assert "\n" not in str(caught.value)
    finally:
        os.chdir(here)
    assert sorted(tmp_path.iterdir()) == before
    assert capfd.readouterr().out == ""


def test_failures_as_a_shell_sees_them(penstock: Run, tmp_path: Path) -> None:
    assert_one_line_error(penstock("hmatrix", "solve", *SMALL, "--tol", "2", cwd=tmp_path), "hmatrix solve", "--tol: 2")
    ran = penstock("hmatrix", "solve", *SMALL, "--eps", "small", cwd=tmp_path)
    assert ran.code == 2
    assert_one_line_error(ran, "--eps")
    ran = penstock("hmatrix", "cook", cwd=tmp_path)
    assert ran.code == 2
    assert_one_line_error(ran, "No such command 'cook'")
    ran = penstock("hmatrix", cwd=tmp_path)
    assert ran.code == 0 and "build" in ran.out and "info" in ran.out


def test_a_solve_that_does_not_converge_is_printed_and_refused(penstock: Run, tmp_path: Path) -> None:
    ran = penstock("hmatrix", "solve", *SMALL, "--method", "gmres", "--max-iterations", "2", "--json", cwd=tmp_path)
    assert ran.code == 1
    assert ran.json["converged"] is False and ran.json["iterations"] == 2 and ran.json["relative_residual"] > 1e-5
    assert ran.err.startswith("penstock: hmatrix solve: the residual is ") and ran.err.count("\n") == 1
    assert "ended by iterations" in ran.err and "--max-iterations, use --method fgmres, or" in ran.err
    ran = penstock("hmatrix", "solve", *SMALL, "--max-iterations", "1", cwd=tmp_path)
    assert ran.code == 1 and "--max-iterations or build" in ran.err, "not what it uses already"
    assert "fgmres: 1 iteration (" in ran.out and ", 1 sweep, " in ran.out


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PENSTOCK_PROGRESS": "1", "COLUMNS": "120", "TERM": "xterm"}
    pipe = subprocess.PIPE
    return subprocess.Popen([*PENSTOCK, *arguments], cwd=folder, env=environment, stdout=pipe, stderr=pipe)


def wait_for(process: subprocess.Popen[bytes], words: bytes) -> None:
    assert process.stderr is not None
    said, end = b"", time.monotonic() + 30
    while words not in said:
        assert process.poll() is None and time.monotonic() < end, said
        said += os.read(process.stderr.fileno(), 65536)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_assembles_leaves_nothing(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    how = ("--shape", "bumpy", "--triangles", "30000", "--batches", "60")
    process = started(tmp_path, "hmatrix", "solve", *how)
    wait_for(process, b"%")
    wait_for(process, b"MiB")  # a batch is written
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, b""), err
    assert err.splitlines()[-1].endswith(b"penstock: interrupted" if code == 130 else b"penstock: terminated")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_solve_goes_on_from_its_checkpoint(penstock: Run, tmp_path: Path) -> None:
    """kill -9 in the middle; the same command then begins where the checkpoint was and finds the same."""
    mesh = ("--shape", "bumpy", "--triangles", "5000")
    assert penstock("hmatrix", "build", *mesh, "--eps", "1e-6", "--store", "m.hmat", cwd=tmp_path).code == 0
    solve = ("hmatrix", "solve", *mesh, "--matrix", "m.hmat", "--method", "gmres", "--restart", "3")
    how = (*solve, "--no-preconditioner", "--tol", "1e-7", "--out", "q.vtk")
    plain = penstock(*how, "--json", cwd=tmp_path).json
    wanted = surface_of(tmp_path / "q.vtk", plain["unknowns"])
    (tmp_path / "q.vtk").unlink()
    process = started(tmp_path, *how, "--checkpoint", "state", "--checkpoint-sweeps", "3")
    end = time.monotonic() + 30
    while not (tmp_path / "state").exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL and not (tmp_path / "q.vtk").exists()
    ran = penstock(*how, "--checkpoint", "state", "--json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert ran.json["continued"] == "repeated" and ran.json["sweeps_before"] >= 3
    assert not (tmp_path / "state").exists() and not (tmp_path / "state.products").exists()
    assert (ran.json["sweeps"], ran.json["iterations"]) == (plain["sweeps"], plain["iterations"])
    found = surface_of(tmp_path / "q.vtk", plain["unknowns"])
    if on_gpu():  # which adds in any order: two runs of one solve differ by rounding
        assert np.allclose(ran.json["history"], plain["history"], rtol=1e-3) and off(found, wanted) < 1e-6
    else:
        assert ran.json["history"] == plain["history"] and np.array_equal(found, wanted), "bit by bit"


def test_the_text_says_what_a_checkpoint_was_good_for(penstock: Run, tmp_path: Path) -> None:
    how = ("hmatrix", "solve", *SMALL, "--method", "gmres", "--checkpoint", "state", "--checkpoint-sweeps", "2")
    assert penstock(*how, "--max-iterations", "6", cwd=tmp_path).code == 1
    ran = penstock(*how, cwd=tmp_path)
    assert ran.code == 0 and "of them made before the checkpoint and repeated without reading" in ran.out
    assert penstock(*how, "--max-iterations", "6", cwd=tmp_path).code == 1
    ran = penstock(*how, "--restart", "2", "--max-iterations", "90", cwd=tmp_path)
    assert ran.code == 0 and "begun anew from the iterate after 4 sweeps: the solve takes other steps" in ran.out


def test_what_a_killed_run_left_is_removed_by_the_next(penstock: Run, tmp_path: Path) -> None:
    process = started(tmp_path, "hmatrix", "solve", "--shape", "bumpy", "--triangles", "30000", "--batches", "60")
    wait_for(process, b"MiB")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert len(list(tmp_path.iterdir())) == 1
    assert penstock("hmatrix", "solve", *SMALL, cwd=tmp_path).code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """Files of this process may not grow beyond 1 MiB: the matrix does not fit, nor does anything of it stay."""
    line = 'trap "" XFSZ; ulimit -f 1024; "$@" hmatrix build --shape bumpy --triangles 3000 --store m.hmat'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *PENSTOCK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert_one_line_error(Ran(done.returncode, done.stdout, done.stderr), "m.hmat")
    assert list(tmp_path.iterdir()) == []


def test_charges_that_cannot_be_written_do_not_cost_the_result(penstock: Run, tmp_path: Path) -> None:
    """Files may not grow beyond 8 KiB: what was found is printed, then that the surface could not be written."""
    assert penstock("hmatrix", "build", *SMALL, "--store", "m.hmat", cwd=tmp_path).code == 0
    solve = '"$@" hmatrix solve --shape bumpy --triangles 600 --matrix m.hmat --out q.vtk --json'
    line = f'trap "" XFSZ; ulimit -f 8; {solve}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *PENSTOCK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    ran = Ran(done.returncode, done.stdout, done.stderr)
    assert ran.code == 1 and ran.json["converged"] and ran.json["capacitance_over_4pi_eps0"] > 1
    assert "q.vtk" in ran.err and ran.err.count("\n") == 1
    # Where there is NVIDIA's library for GPU I/O, it leaves a log of its own.
    assert {one.name for one in tmp_path.iterdir()} - {"cufile.log"} == {"m.hmat"}


def test_damage_is_named(penstock: Run, tmp_path: Path) -> None:
    assert penstock("hmatrix", "build", *SMALL, "--store", "m.hmat", cwd=tmp_path).code == 0
    content = bytearray((tmp_path / "m.hmat").read_bytes())
    (table,) = struct.unpack_from("<q", content, 64)
    (offset,) = struct.unpack_from("<q", content, table)
    content[offset + 9] ^= 1
    (tmp_path / "m.hmat").write_bytes(content)
    assert_one_line_error(
        penstock("hmatrix", "info", "m.hmat", "--verify", cwd=tmp_path), "m.hmat", "batch 0 is damaged"
    )
    assert_one_line_error(penstock("hmatrix", "solve", "--matrix", "m.hmat", cwd=tmp_path), "batch 0 is damaged")
    (tmp_path / "m.hmat").write_bytes(content[:-1])
    assert_one_line_error(penstock("hmatrix", "info", "m.hmat", cwd=tmp_path), "cut short")
