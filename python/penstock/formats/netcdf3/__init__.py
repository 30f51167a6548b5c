"""Classic netCDF: CDF-1, CDF-2 and CDF-5."""
