"""Runs of suites: the list of suites, their definitions, one run, rows that were stored, and two runs compared."""
