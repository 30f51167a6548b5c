"""The fingerprint of a machine whose system does not tell all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.calibration import machine


def test_a_mount_that_is_not_listed_has_the_file_system_that_the_system_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a chroot whose / is no mount."""
    (tmp_path / "file").write_bytes(b"x")
    with penstock.Context("host") as context, context.open(tmp_path / "file") as file:
        told = file.facts["file_system"]
    read = Path.read_text
    listed = Path("/proc/self/mountinfo")
    monkeypatch.setattr(Path, "read_text", lambda self, *a, **b: "" if self == listed else read(self, *a, **b))
    assert told != "unknown" and machine.mount_of(tmp_path) == {"type": told, "options": ""}
    assert machine.mount_of(Path("/proc"))["type"] == "unknown", "control: no file can be made there"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
