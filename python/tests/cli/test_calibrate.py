"""Calibration writes a profile that this machine's contexts choose by, and no other's; explain says what they chose."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Ran

from penstock import Context, Error, profile_folders
from penstock.calibration.profile import Calibration, Found, profile_text
from penstock.calibration.stage import Cell, Sample, Stage
from penstock.calibration.workspace import Workspace
from penstock.cli.calibrate import _missing

Penstock = Callable[..., Ran]
SIZE = 16 << 20


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of the folder it lies in, made once for the tests of this file."""
    folder = tmp_path_factory.mktemp("calibrated")
    with Context("host", profile=None) as context, Workspace(context, folder, SIZE) as place:
        place.make(place.source)
        place.make(place.target)
        for seconds in (4, 16, 64):  # the first is enough where nothing else runs
            found = Calibration(context, place, seconds, lambda *_: None).run()
            text = profile_text(context, folder, found)
            if "\nread," in text and "\nwrite," in text:
                break
    (folder / "here.csv").write_text(text)
    return folder / "here.csv"


def data_beside(profile: Path) -> Path:
    """A file on the file system the profile is of."""
    path = profile.with_name("data.bin")
    path.write_bytes(bytes(SIZE))
    return path


def test_reads_are_chosen_by_the_profile_and_evidence_says_so(calibrated: Path) -> None:
    data = data_beside(calibrated)
    with Context("host", profile=calibrated) as context, context.open(data) as file:
        outcome = file.read(context.allocate(SIZE))
    assert (outcome.evidence["predicted_seconds"] or 0) > 0
    assert "; predicted " in outcome.evidence["reason"]
    assert ", measured " in outcome.evidence["reason"]
    with Context("host", profile=None) as context, context.open(data) as file:
        unknown, small = (file.read(context.allocate(size)).evidence for size in (SIZE, 4096))
    assert "no machine profile" in unknown["reason"]
    assert unknown["predicted_seconds"] is small["predicted_seconds"] is None


def test_what_no_profile_predicts_is_null_in_json(penstock: Penstock, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(1 << 20))
    told = penstock("read", tmp_path / "x.bin", "--to", "host", "--json", env={"PENSTOCK_PROFILES": str(tmp_path)})
    assert told.json["evidence"]["predicted_seconds"] is None


def test_explain_lists_every_path_and_names_the_profile(calibrated: Path) -> None:
    with Context("host", profile=calibrated) as context, context.open(data_beside(calibrated)) as file:
        found = file.explain(bytes=1 << 20)
    assert found["profile"] == str(calibrated)
    options = {one["path"]: one for part in found["parts"] for one in part["options"]}
    assert options["buffered"]["seconds"] > 0
    assert options["gds"]["refusal"]
    taken = found["reason"].split(",")[0]
    assert found["predicted_seconds"] == pytest.approx(options[taken]["seconds"])
    assert found["predicted_seconds"] <= 1.15 * found["parts"][0]["options"][0]["seconds"]


def test_the_command_explains_and_names_the_profile(calibrated: Path, penstock: Penstock) -> None:
    data = data_beside(calibrated)
    by_profile = penstock("explain", data, "--to", "host", env={"PENSTOCK_PROFILES": str(calibrated.parent)})
    assert by_profile.code == 0, by_profile.err
    assert f"predicted by {calibrated}" in by_profile.out
    by_rule = penstock("explain", data, "--to", "host", "--profile", "none", "--json")
    assert by_rule.json["predicted_seconds"] is None
    assert by_rule.json["profile"] == ""
    assert penstock("explain", data, "--memory", "tape").code == 2


@pytest.mark.parametrize("key", ["kernel", "cpu", "device"])
def test_a_profile_of_another_machine_is_refused_by_name(calibrated: Path, tmp_path: Path, key: str) -> None:
    lines = [
        f"# {key}: another" if line.startswith(f"# {key}: ") else line for line in calibrated.read_text().splitlines()
    ]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(lines) + "\n")
    with pytest.raises(Error, match=f"{key} another there") as refused:
        Context("host", profile=other)
    assert refused.value.code == "unsupported"


def test_a_broken_profile_is_refused_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b"\x7fELF\x00\xff")
    with pytest.raises(Error, match="line 1"):
        Context("host", profile=broken)
    with pytest.raises(Error, match="No such file"):
        Context("host", profile=tmp_path / "none.csv")


def test_folders_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_PROFILES", os.pathsep.join([str(tmp_path), "/else"]))
    assert profile_folders() == [tmp_path, Path("/else")]
    monkeypatch.setenv("PENSTOCK_PROFILES", "")
    assert profile_folders() == []
    monkeypatch.delenv("PENSTOCK_PROFILES")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert profile_folders() == [tmp_path / "penstock" / "profiles"]


def test_the_command_writes_where_contexts_look_and_leaves_nothing_else(penstock: Penstock, tmp_path: Path) -> None:
    folder, profiles = tmp_path / "data", tmp_path / "profiles"
    folder.mkdir()
    environment = {"PENSTOCK_PROFILES": str(profiles)}
    ran = penstock(
        "calibrate", folder, "--device", "host", "--seconds", "2", "--file-bytes", "16MiB", "--json", env=environment
    )
    assert ran.code == 0, ran.err
    assert [str(path) for path in profiles.iterdir()] == [ran.json["profile"]]
    assert ran.json["cells"] > 0
    assert list(folder.iterdir()) == []


def test_what_a_machine_without_gpu_cannot_measure_is_one_line() -> None:
    cufile = {f"{how} {path} device hot": "no GPU" for how in ("read", "write") for path in ("gds", "gds-compat")}
    lines = _missing(cufile | {"read direct device cold": "O_DIRECT is not possible"})
    assert lines == ["not measured: direct: O_DIRECT is not possible", "not measured: gds, gds-compat: no GPU"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("/nonexistent", "--out", "p.csv"), "no such directory"),
        ((".", "--file-bytes", "1KiB", "--out", "p.csv"), "too small"),
        ((".", "--seconds", "soon", "--out", "p.csv"), "not a whole number"),
        ((".",), "PENSTOCK_PROFILES is empty"),
        ((".", "--out", "."), "directory"),
        ((".", "--file-bytes", "1000TiB", "--out", "p.csv"), "are free"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_in_one_line(
    penstock: Penstock, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    ran = penstock("calibrate", *arguments, "--device", "host", env={"PENSTOCK_PROFILES": ""}, cwd=tmp_path)
    assert ran.code == (2 if says in ("too small", "not a whole number") else 1)
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


def test_a_transfer_that_moves_nothing_fails_the_measurement(tmp_path: Path) -> None:
    with Context("host", profile=None) as context, Workspace(context, tmp_path, SIZE) as place:
        place.make(place.source)
        place.make(place.target)
        stage = Stage(context, place, 1 << 20)
        for direction in ("read", "write"):
            cell = Cell(direction, True, 1 << 20, "buffered")
            assert stage.measure(cell).took == "buffered"
            with pytest.raises(Error, match="bytes are wrong"):
                stage.measure(cell, lambda file, memory, cell, offsets: ([1.0] * len(offsets), "none"))


def test_a_profile_of_nothing_is_not_made(tmp_path: Path) -> None:
    with Context("host", profile=None) as context, pytest.raises(Error, match="before any path was measured") as told:
        profile_text(context, tmp_path, Found())
    assert told.value.code == "timed_out"


def test_no_home_and_a_home_that_may_not_be_entered_hold_no_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's arbitrary user has no home, and one who became another by sudo may not enter the old one's."""
    for name in ("PENSTOCK_PROFILES", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    with monkeypatch.context() as patch:
        patch.setattr("pwd.getpwuid", unknown)
        assert profile_folders() == []
        Context("host")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".config" / "penstock" / "profiles").mkdir(parents=True)
    real = os.stat

    def closed(path: Any, *given: Any, **options: Any) -> os.stat_result:
        if "home" in os.fsdecode(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, *given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", closed)
        Context("host")


def test_explain_does_not_say_predicted_of_what_was_not_measured(
    calibrated: Path, tmp_path: Path, penstock: Penstock
) -> None:
    lines = calibrated.read_text().splitlines()
    kept = [line for line in lines if line.startswith("#") or line.startswith("direction,")]
    kept.append(next(line for line in lines if line.startswith("write,")))
    (tmp_path / "writes.csv").write_text("\n".join(kept) + "\n")
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    ran = penstock("explain", tmp_path / "data", "--to", "host", "--profile", tmp_path / "writes.csv")
    assert ran.code == 0, ran.err
    assert f"not predicted: {tmp_path / 'writes.csv'} has no measurements" in ran.out


def test_a_path_is_measured_whatever_came_before_it_took(tmp_path: Path) -> None:
    """Time that is up before the first path can be measured, as where a driver starts slowly."""
    with Context("host", profile=None) as context, Workspace(context, tmp_path, SIZE) as place:
        place.make(place.source)
        place.make(place.target)
        assert len(Calibration(context, place, 0.0, lambda *_: None).run().samples) == 1


def test_a_path_dropped_while_the_machine_was_fast_is_not_taken_for_the_faster_one() -> None:
    """Rounds of a machine that slows down by half after the third: 20 % slower in the same rounds stays 20 % slower."""
    found = Found()
    stays, dropped = Cell("read", False, 65536, "direct"), Cell("read", False, 65536, "uring")
    speeds = [1.0] * 3 + [1.5] * 6
    found.samples[stays] = [Sample(2.0 * speed, 0.0, 1, "direct") for speed in speeds]
    found.samples[dropped] = [Sample(2.4 * speed, 0.0, 1, "uring") for speed in speeds[:3]]
    assert found.seconds(stays) == 3.0
    assert found.seconds(dropped) == pytest.approx(3.6)
    assert found.best(dropped) == 3.0
