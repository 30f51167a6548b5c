"""Runs of h5bench on one process, with the data in device memory and the bytes moved by Penstock.

Times are taken where h5bench takes them: raw time is spent writing or reading elements, metadata time making or opening
groups and datasets, observed time passes from before the file is made or opened until it is closed. Raw rate is bytes
by raw time; observed rate is bytes by observed time without the emulated computing. With MODE ASYNC a step is moved
while the next ones compute, and raw time is the time that the run waits for it. What must stay true: checking is never
in a time that a rate is made of, unless something else moves meanwhile.
"""

from __future__ import annotations

from penstock import Context
from penstock_bench.h5bench.benchmark import Options, Result
from penstock_bench.h5bench.config import H5benchRun


def perform(context: Context, run: H5benchRun, options: Options) -> Result:
    """Raises Error when the run cannot be done, or its data are wrong."""
    from penstock_bench.h5bench.read import Reading
    from penstock_bench.h5bench.write import Writing

    return (Writing if run.benchmark == "write" else Reading)(context, run, options).perform()
