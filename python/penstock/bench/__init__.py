"""Measuring the transfer paths of a machine: suites of trials, baselines, peers and the machine's fingerprint."""
