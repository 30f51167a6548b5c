"""Which byte ranges of files a selection needs, as a user asks: `dataset.extents()`."""

from __future__ import annotations

import numpy as np

from penstock._array import c_strides
from penstock.formats.model import ChunkTable, Extent
from penstock.formats.reading import pieces
from penstock.formats.reading.job import Request
from penstock.formats.reading.pieces import Side, Wanted
from penstock.formats.reading.plan import Plan


def stored_extents(wanted: Request, table: ChunkTable | None) -> list[Extent]:
    """Of plain chunks the ranges that are read; of encoded ones all their stored bytes. Ranges that touch are one."""
    if table is None:
        return []
    encoded = np.asarray(table.encoded, bool)
    plan, stored = Plan(), wanted.stored
    side = Side(0, 0, c_strides(stored.counts, wanted.info.dtype.itemsize))
    met = pieces.meet(wanted.info, stored, table)
    coded = encoded[met.rows]
    plan.add_groups(Wanted(wanted.info, stored, side), table, met.of(~coded))
    found = plan.extents()
    found += [
        Extent(table.files[int(table.file_index[row])], int(table.offset_bytes[row]), int(table.bytes[row]))
        for row in met.rows[coded]
        if table.bytes[row]
    ]
    return _joined(sorted(found))


def _joined(found: list[Extent]) -> list[Extent]:
    joined: list[Extent] = []
    for one in found:
        last = joined[-1] if joined else None
        if last and last.file == one.file and last.offset_bytes + last.bytes == one.offset_bytes:
            joined[-1] = last._replace(bytes=last.bytes + one.bytes)
        else:
            joined.append(one)
    return joined
