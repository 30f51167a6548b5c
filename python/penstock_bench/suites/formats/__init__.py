"""The suite `formats`: files of formats beside raw files, and beside what people use today."""

from __future__ import annotations

from penstock_bench.engine.suite import NAMED, Suite
from penstock_bench.suites import beside_peers
from penstock_bench.suites.formats import judge, measure, page, words

SUITE = Suite(
    "formats",
    measure.run_suite,
    "formats",
    NAMED,
    "Formats",
    judge=judge.checks,
    figures=(beside_peers.FIGURE,),
    says=words.of_formats,
    page=page.PAGE,
    peers=("h5py", "numpy", "safetensors"),
)
