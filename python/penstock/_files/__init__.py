"""Files as the system has them: names, descriptors, leases, long moves, and how a small one appears whole."""
