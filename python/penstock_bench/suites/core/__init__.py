"""The suite `core`: what Penstock promises, beside baselines and peers."""
