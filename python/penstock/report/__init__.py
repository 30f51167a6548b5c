"""Figures and pages from results. matplotlib is imported here only, so that the rest stays small."""
