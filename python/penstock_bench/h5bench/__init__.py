"""Configurations of h5bench, run by Penstock."""
