"""Poison: what memory holds before a read, so that bytes that never came cannot pass for those that did.

Two memories could lie: the one that the bytes come to, and the staging memory they come through, which keeps what the
last read of the same place left there. What must stay true: before every read that is judged, both hold poison.
"""

from __future__ import annotations

from penstock import Context, Error, _core
from penstock._api import Buffer

POISON = 0xEE
DECOY_BYTES = 256 << 20  # of another file, through the staging memory of a peer: none has more by default


def poison(context: Context, memory: Buffer) -> None:
    """Fills device memory, and all staging memory of its context. Waits for transfers that are just ending."""
    poison_staging(context)
    context.fill(memory, POISON)


def poison_staging(context: Context) -> None:
    if not _core.fill_staging(context._raw, POISON):
        raise Error(
            code="internal",
            operation="bench",
            cause="a transfer still uses the staging memory that is to be filled before the next one",
            advice="report this",
        )
