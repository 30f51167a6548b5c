"""Compilers of MPI: wrappers, which may be there without the compiler that they call."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache


@cache
def works(wrapper: str) -> bool:
    if shutil.which(wrapper) is None:
        return False
    return subprocess.run([wrapper, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
