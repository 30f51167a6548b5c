"""Jobs of NVIDIA's gdsio, run by Penstock."""
