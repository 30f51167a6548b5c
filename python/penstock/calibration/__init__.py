"""Measures what each path costs on this machine, for the profiles that plans read: what `penstock calibrate` does."""
