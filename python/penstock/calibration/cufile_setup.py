"""The cuFile configuration in force, for the fingerprint: which file libcufile reads, what of it bears on rates, and
the version of the library.

libcufile takes the file that CUFILE_ENV_PATH_JSON names, else /etc/cufile.json, else what is built into it. Only
settings that are known to bear on rates are kept: the file can hold addresses of machines.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from penstock import _core

VARIABLE = "CUFILE_ENV_PATH_JSON"
SYSTEM_FILE = Path("/etc/cufile.json")
_KEPT = {
    "properties": (
        "allow_compat_mode",
        "force_compat_mode",
        "use_poll_mode",
        "poll_mode_max_size_kb",
        "use_pci_p2pdma",
        "max_direct_io_size_kb",
        "max_device_cache_size_kb",
        "per_buffer_cache_size_kb",
        "max_device_pinned_mem_size_kb",
        "posix_pool_slab_size_kb",
        "posix_pool_slab_count",
        "io_batchsize",
    ),
    "execution": ("max_io_threads", "max_io_queue_depth", "parallel_io", "min_io_threshold_size_kb"),
}
_OUTSIDE_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def cufile_setup(directory: Path) -> dict[str, Any]:
    """`source` ("built in" where there is no file), `settings` as "section.name", `library` and `state` as `penstock
    doctor` finds them for the directory."""
    return _file_in_force() | _library(directory)


def _file_in_force() -> dict[str, Any]:
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else SYSTEM_FILE
    if not named and not path.is_file():
        return {"source": "built in", "settings": {}}
    source = f"{VARIABLE}: {path.name}" if named else str(path)  # a folder of a user may bear the user's name
    try:
        return {"source": source, "settings": settings(path.read_text())}
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        return {"source": source, "settings": {}, "unreadable": cause}


def settings(text: str) -> dict[str, Any]:
    """What is kept of a configuration: JSON with comments. Raises ValueError when it is none."""
    plain = _OUTSIDE_TEXT.sub(lambda found: found.group() if found.group().startswith('"') else " ", text)
    whole = json.loads(re.sub(r",(\s*[}\]])", r"\1", plain))
    if not isinstance(whole, dict):
        raise ValueError("no object")
    found: dict[str, Any] = {}
    for section, names in _KEPT.items():
        table = whole.get(section)
        if isinstance(table, dict):
            found |= {f"{section}.{name}": table[name] for name in names if name in table}
    return found


def _library(directory: Path) -> dict[str, str]:
    items = json.loads(_core.survey_json(str(directory)))["items"]
    item = next(one for one in items if one["name"] == "cufile")
    version = re.search(r"libcufile [\d.]+", item["detail"])
    return {"library": version.group() if version else f"not available: {item['detail']}", "state": item["state"]}
