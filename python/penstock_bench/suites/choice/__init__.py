"""The suite `choice`: how near the measured choice of a path comes to the fastest one."""
