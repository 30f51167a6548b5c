"""Where machine profiles lie: the folders that a Context looks into by itself, and what its `profile` may name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

Profiles = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None


def profile_folders() -> list[Path]:
    """Folders of profiles that a Context uses by itself: those of PENSTOCK_PROFILES, separated as in PATH (empty:
    none), else `penstock/profiles` under XDG_CONFIG_HOME, by default ~/.config; none where the process has no home.
    `penstock calibrate` writes into the first."""
    named = os.environ.get("PENSTOCK_PROFILES")
    if named is not None:
        return [Path(folder) for folder in named.split(os.pathsep) if folder]
    config = os.environ.get("XDG_CONFIG_HOME")
    try:
        return [(Path(config) if config else Path("~/.config").expanduser()) / "penstock" / "profiles"]
    except RuntimeError:
        return []


def named(profile: Profiles) -> list[str]:
    """Files and folders for the core. Raises TypeError for what names no file."""
    if profile is None:
        return []
    if isinstance(profile, str) and profile == "auto":
        return [str(folder) for folder in profile_folders() if _is_folder(folder)]
    if isinstance(profile, str | os.PathLike):
        return [os.fspath(profile)]
    if isinstance(profile, bytes | dict) or not isinstance(profile, Iterable):
        raise TypeError(f"profile must be 'auto', None, a path or several, not {type(profile).__name__}")
    return [_text(one) for one in profile]


def _is_folder(place: Path) -> bool:
    """Whether it is a folder that we may enter. One below a folder that may not be entered holds no profiles for us,
    like one that is not there; the caller did not name it, so that is no error."""
    try:
        return place.is_dir()
    except OSError:
        return False


def _text(one: str | os.PathLike[str]) -> str:
    name = os.fspath(one) if isinstance(one, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"a profile is named by a path, not by {type(one).__name__}")
    return name
