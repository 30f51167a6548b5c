"""What a transfer brought, compared on the device with the stamp that its file bears."""

from __future__ import annotations

import time
from pathlib import Path

from penstock import Context
from penstock._api import Buffer
from penstock.calibration.stage import wrong_bytes


def check(context: Context, file: str | Path, memory: Buffer, seed: int, how: str = "") -> float:
    """Raises Error unless the device memory holds exactly what the file should hold from its start on. Returns the
    seconds of the comparison."""
    start = time.perf_counter()
    bad, first = context.verify_stamp(memory, 0, seed)
    seconds = time.perf_counter() - start
    if bad:
        raise wrong_bytes(file, first, bad, how)
    return seconds
