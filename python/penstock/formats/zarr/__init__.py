"""Zarr, versions 2 and 3, in folders."""
