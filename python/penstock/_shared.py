"""The context that open(), create(), load() and save() use when none is given: one for each device and process.

Making a context costs milliseconds (threads, staging memory, a GPU's own set-up), reading a small dataset
microseconds; so it is made once and kept. It holds no settings that could be changed: whoever wants others makes a
Context and passes it. What must stay true: a forked child gets its own.
"""

from __future__ import annotations

import atexit
import os
import threading

from penstock._api import Context


class _Contexts:
    """Guarded by its lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], Context] = {}
        os.register_at_fork(after_in_child=self._reset)
        atexit.register(self._kept.clear)

    def _reset(self) -> None:
        """A lock that another thread held at fork would never be free in the child."""
        self._lock = threading.Lock()

    def of(self, device: str) -> Context:
        with self._lock:
            key = (device, os.getpid())
            if key not in self._kept:
                made = Context(device)
                named = (made._place[0], key[1])  # "auto" is one of those
                self._kept[key] = self._kept.setdefault(named, made)
            return self._kept[key]


_contexts = _Contexts()


def shared_context(device: str = "auto") -> Context:
    """The context of this process for a device: "auto" (a GPU when there is one), "host", "cuda:0", ..."""
    device = device if isinstance(device, str) else str(device)
    return _contexts.of({"cpu": "host", "cuda": "cuda:0"}.get(device, device))
