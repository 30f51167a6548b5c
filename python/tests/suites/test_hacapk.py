"""HACApK's program beside the suite `hmatrix`: what it prints is taken, what is not it is missing with its cause."""

from __future__ import annotations

import os
import signal
import stat
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from penstock import hmatrix
from penstock.calibration.workspace import NotPossible
from penstock_bench.engine import definition
from penstock_bench.engine.run import Run
from penstock_bench.measured import making
from penstock_bench.runs import definitions, session, stored, suites
from penstock_bench.suites.hmatrix import hacapk as hmatrix_hacapk, judge as hmatrix_judge

# As HACApK 1.0.0 prints it, of 320 triangles; numbers are made up.
SAID = """ Number of processes            1
 No. of nsmtx         120         340         229
    1:Rk-matrix 2: dense-mat 3:H-matrix
 time_construction_Hmatrix    =   2.5000000000000000E-001
 Memory of the H-matrix=   2.50000000000000000      (Mbyte)
 HACApK_bicgstab_lfmtx_hyp start
 Original relative residual norm =   1.0000000000000000
           1   4.6599298999999927E-002  -1.2440880879741407
          12   7.6413202999999985E-002  -4.2500000000000000
time_HACApK_solve  = 1.11408255E+00
       time_1step  = 6.18934750E-02

lfmtx; time_AX_once  = 1.66793388E-02
 done
"""


def program(folder: Path, body: str) -> Path:
    path = folder / "bem-bb-SCM.out"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run(place: Path, hacapk: str, out: Path | None = None) -> list[dict[str, Any]]:
    whole = definitions.load("hmatrix", True)
    small = {"shape": "sphere", "triangles": 320, "batches": 3, "ratios": [], "pins": [], "tolerances": []}
    table = definition.Settings(place, whole.settings["hmatrix"] | small | {"hacapk": hacapk})
    chosen = replace(whole, file_bytes=1 << 20, repeats=1, seconds=60.0, settings={"hmatrix": table})
    return session.run(session.Request(chosen, "host", place, out, True), lambda *_: None)


def test_what_a_run_beside_it_wrote_can_be_read_and_reduced(tmp_path: Path) -> None:
    """Rows of HACApK tell no CPU seconds: those are of another process."""
    out = tmp_path / "r.jsonl"
    rows = run(tmp_path, str(program(tmp_path, f"cat <<'E'\n{SAID}E\n")), out)
    assert [row["kind"] for row in stored.read(out)] == [row["kind"] for row in rows]
    made = making.table_of(out, making.Origin("Mine", "penstock bench hmatrix", "1234abc"))
    assert made.value("beside: HACApK", "product_s") == pytest.approx(1.66793388e-2, rel=1e-4)


def test_both_are_told_beside_each_other(tmp_path: Path) -> None:
    copied = (
        f"cp mesh.pbf bem-bb-config.txt {tmp_path}\necho $OMP_NUM_THREADS >{tmp_path}/threads\ncat <<'E'\n{SAID}E\n"
    )
    found = {row["name"]: row for row in run(tmp_path, str(program(tmp_path, copied))) if row["kind"] == "hmatrix"}
    theirs, ours = found["beside: HACApK"], found["beside: penstock"]
    assert (theirs["seconds"], theirs["product_s"], theirs["solve_s"]) == (0.25, 0.0166793388, 1.11408255)
    assert (theirs["low_rank_leaves"], theirs["dense_leaves"], theirs["bytes_fp64"]) == (120, 340, 5 << 19)
    assert theirs["iterations"] == 12 and theirs["relative_residual"] == pytest.approx(10**-4.25)
    assert ours["relative_residual"] < 1e-4 and ours["iterations"] > 0 and ours["seconds"] > 0
    assert (tmp_path / "bem-bb-config.txt").read_text().split() == ["1", "BICGSTAB", "0.0001", "500"]
    assert int((tmp_path / "threads").read_text()) == len(os.sched_getaffinity(0))
    mesh = hmatrix.read_mesh(tmp_path / "mesh.pbf")
    given = hmatrix.shape("sphere", 320)
    np.testing.assert_array_equal(mesh.vertices, given.vertices)
    np.testing.assert_array_equal(mesh.triangles, given.triangles)
    np.testing.assert_array_equal(mesh.values, np.ones(320))


def test_they_are_judged_and_shown(tmp_path: Path) -> None:
    rows = run(tmp_path, str(program(tmp_path, f"cat <<'E'\n{SAID}E\n")))
    checks = {check.what: check for check in hmatrix_judge.checks(rows)}
    assert checks["build, HACApK / penstock, seconds"].value and checks["product, HACApK / penstock, seconds"].value
    slower = [row | {"seconds": 1.0} if row["name"] == "beside: penstock" else row for row in rows if "name" in row]
    judged = {check.what: check for check in hmatrix_judge.checks([*rows[:1], *slower])}
    assert judged["build, HACApK / penstock, seconds"].passed is False
    titles = [str(table.title) for table in suites.SUITES["hmatrix"].table(rows, "hmatrix")]
    assert any("HACApK" in title for title in titles)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("echo no memory >&2; exit 3", "exit code 3: no memory"),
        ("echo hello", "no leaves"),
        ("printf '\\377\\376\\n'", "no leaves"),
        ("mkdir -p left/behind; echo 1 >left/behind/it; exit 4", "exit code 4"),
        (f"cat <<'E' | sed 's/-4.25.*/-3.9/'\n{SAID}E", "HACApK found no solution: 1.3e-04 after 12"),
        (f"cat <<'E' | sed 's/-4.25.*/0.3/'\n{SAID}E", "HACApK found no solution: 2.0e+00 after 12"),
        (f"cat <<'E' | sed 's/-4.25.*/NaN/'\n{SAID}E", "HACApK found no solution: nan after 12"),
        (f"cat <<'E' | sed 's/-4.25.*/1E+4/'\n{SAID}E", "HACApK found no solution: 1.0e+300 after 12"),
        (f"cat <<'E' | sed 's/2.50.*-001/0.0/'\n{SAID}E", "time_construction_Hmatrix"),
        (f"cat <<'E' | sed 's/1.667.*/1-.5/'\n{SAID}E", "time_AX_once"),
        (f"cat <<'E' | grep -v time_AX\n{SAID}E", "time_AX_once"),
    ],
)
def test_what_went_wrong_is_the_cause(tmp_path: Path, body: str, cause: str) -> None:
    absent = {
        row["name"]: row["cause"] for row in run(tmp_path, str(program(tmp_path, body))) if row["kind"] == "missing"
    }
    assert cause in absent["beside: HACApK"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["bem-bb-SCM.out"]


def missing(rows: list[dict[str, Any]]) -> str:
    return next(str(row["cause"]) for row in rows if row["kind"] == "missing" and "HACApK" in row["name"])


@pytest.mark.parametrize(("then", "cause"), [("wait", "did not end within 1 s"), ("exit 5", "exit code 5")])
def test_one_that_is_not_taken_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, cause: str
) -> None:
    monkeypatch.setattr(hmatrix_hacapk, "MOST_SECONDS", 1.0)
    started = tmp_path.parent / f"{tmp_path.name}-started"
    rows = run(tmp_path, str(program(tmp_path, f"sleep 300 &\necho $! >{started}\n{then}\n")))
    assert cause in missing(rows)
    number = int(started.read_text())
    for _ in range(100):
        if not alive(number):
            break
        time.sleep(0.05)
    assert not alive(number)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bem-bb-SCM.out"]


def alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_one_that_asks_is_told_nothing(tmp_path: Path) -> None:
    assert "no leaves" in missing(run(tmp_path, str(program(tmp_path, "cat\n"))))


def test_one_that_never_ends_to_print_or_to_write_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmatrix_hacapk, "MOST_BYTES", 1 << 20)
    for body in ("exec yes", "exec yes >&2", "exec cat /dev/zero >file"):
        rows = run(tmp_path, str(program(tmp_path, body)))
        assert f"exit code -{signal.SIGXFSZ.value}" in missing(rows)


def test_a_suite_that_says_nothing_of_it_runs_without(tmp_path: Path) -> None:
    whole = definitions.load("hmatrix", True)
    table = {key: value for key, value in whole.settings["hmatrix"].items() if key != "hacapk"}
    asked = SimpleNamespace(settings=definition.Settings(tmp_path, table))
    assert hmatrix_hacapk.probes(cast(Run, asked), cast(Any, None)) == []


def test_a_program_that_is_not_there_is_missing(tmp_path: Path) -> None:
    rows = run(tmp_path, str(tmp_path / "none.out"))
    assert any(row["kind"] == "missing" and "there is no" in row["cause"] for row in rows)
    assert any(row.get("name") == "beside: penstock" and row["kind"] == "hmatrix" for row in rows)


def test_a_text_that_is_not_a_program_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("text")
    rows = run(tmp_path, str(path))
    assert any(row["kind"] == "missing" and "HACApK" in row["cause"] for row in rows)


def test_what_it_prints_must_be_whole() -> None:
    assert hmatrix_hacapk.parsed(SAID.replace("2.5000000000000000E-001", "2.5D-001"))["seconds"] == 0.25
    with pytest.raises(NotPossible, match="time_construction"):
        hmatrix_hacapk.parsed(SAID.replace("time_construction", "time_of"))
