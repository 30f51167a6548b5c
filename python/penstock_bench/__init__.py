"""Measures Penstock beside its ceilings and peers, and reports it. The product beside this package does without it."""
