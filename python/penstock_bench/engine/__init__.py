"""What all suites share: rounds, results, intervals, tables, promises."""
