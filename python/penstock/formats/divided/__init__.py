"""Datasets of which several files have parts, as one."""
