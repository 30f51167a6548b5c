"""What the suite `data` promises beside what people use: packing on all cores, and batches of random samples.

HDF5 packs chunks on one core, so a dataset is written 0.9 times as fast for each core that the machine has. An epoch of
random samples comes 5 times as fast as by h5py in a DataLoader with a worker a core.
"""

from __future__ import annotations

from typing import Any

from penstock_bench.engine.promises import Check, Medians, judged
from penstock_bench.suites.data import packing, training

Rows = list[dict[str, Any]]
A_CORE, EPOCH = 0.9, 5.0
LARGE_MIB = 8  # below that, what is made once for a file or an epoch counts


def checks(rows: Rows) -> list[Check]:
    medians = Medians(rows, "data")
    cores = next(row for row in rows if row["kind"] == "machine")["machine"]["cores"]
    promised = dict.fromkeys(packing.names("HDF5"), A_CORE * cores) | dict.fromkeys(training.names(), EPOCH)
    found = []
    for name, bound in promised.items():
        times, calls = medians.field(name, "times_peer"), medians.rows.get(name, [])
        if times and min(row["bytes"] / row["calls"] for row in calls) >= LARGE_MIB << 20:
            found.append(Check(f"{name}, times as fast as {calls[0]['peer']}", 1 / times, bound))
    return judged(rows, found)
