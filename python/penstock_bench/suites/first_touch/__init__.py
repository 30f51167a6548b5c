"""The suite `first-touch`: snapshots of particles by size and by which processor touched the memory first."""
