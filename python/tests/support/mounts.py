"""File systems that a test mounts and that are gone after it, and what the system tells of mounts."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")

PRIVATE = ["unshare", "--mount", "--propagation", "private"]  # what the program behind it mounts goes with it


def need_private_mounts() -> None:
    """Skips where the system gives no mounts of one's own: without rights, or in a chroot whose / is no mount."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    done = subprocess.run([*PRIVATE, "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no mounts of one's own here: {done.stderr.strip()}")


class Mounted:
    """A file system that is mounted inside a `with`: the options are those of mount(8)."""

    def __init__(self, place: Path, *options: str) -> None:
        self.place, self.options = place, options

    def __enter__(self) -> Path:
        self.place.mkdir()
        done = subprocess.run(["mount", *self.options, str(self.place)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"cannot mount here: {done.stderr.strip()}")
        return self.place

    def __exit__(self, *_: object) -> None:
        for _attempt in range(20):
            if subprocess.run(["umount", str(self.place)], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        pytest.fail("something still uses the mount: a file or a thread was left behind")


def mount_is_listed(place: Path) -> bool:
    """Whether the system tells this process of the mount that holds a folder: not in a chroot whose / is none."""
    descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    finally:
        os.close(descriptor)
    number = next(line.split()[1] for line in facts.splitlines() if line.startswith("mnt_id:"))
    return any(line.split()[0] == number for line in Path("/proc/self/mountinfo").read_text().splitlines())
