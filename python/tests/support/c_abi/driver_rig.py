"""Runs Python programs whose HDF5 moves its bytes through the driver, as `penstock vfd-path` says, and plain ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from command import run_penstock


@dataclass
class Done:
    """How a program ended, and the evidence of its files."""

    code: int
    out: str
    err: str
    evidence: list[dict]


def settings(config: str = "") -> dict[str, str]:
    """The variables, from the command's own words."""
    lines = run_penstock("vfd-path").out.splitlines()
    folder = lines[0].split("=", 1)[1].split('"')[0]
    assert lines[1] == "export HDF5_DRIVER=penstock"
    return {"HDF5_PLUGIN_PATH": folder, "HDF5_DRIVER": "penstock", "HDF5_DRIVER_CONFIG": config}


def run(program: str, place: Path, config: str | None = "", **environment: str) -> Done:
    """Runs it in `place`; without the driver where config is None. Evidence is taken from where it was told to go."""
    told = place / "evidence.jsonl"
    told.unlink(missing_ok=True)
    wanted = {} if config is None else settings(",".join(filter(None, [config, f"evidence={told}"])))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env=os.environ | wanted | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    evidence = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    return Done(done.returncode, done.stdout, done.stderr, evidence)


def moved(done: Done, direction: str, way: str) -> int:
    """Bytes of all files that went this way; of transfers, whatever their path."""
    shares = [one[direction][way] for one in done.evidence]
    if way == "transfers":
        return sum(share["bytes"] for paths in shares for share in paths.values())
    return sum(share["bytes"] for share in shares)
