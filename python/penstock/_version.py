"""The version of the package, below everything that writes it into files."""

__version__ = "0.1.0"
