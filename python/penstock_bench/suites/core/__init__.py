"""The suite `core`: what Penstock promises, beside baselines and peers."""

from __future__ import annotations

from penstock_bench.engine.suite import NAMED, Suite
from penstock_bench.suites import beside_peers
from penstock_bench.suites.core import judge, measure, page, words

SUITE = Suite(
    "core",
    measure.run_suite,
    "core",
    NAMED,
    "Promises, baselines and peers",
    judge=judge.checks,
    figures=(beside_peers.FIGURE,),
    says=words.of_core,
    page=page.PAGE,
    peers=("kvikio", "cufile", "torch", "safetensors", "fio"),
)
