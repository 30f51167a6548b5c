"""The suites of measurements, a folder each."""
