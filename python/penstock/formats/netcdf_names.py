"""How long the names of netCDF may be: of variables, groups, dimensions and attributes, of every kind of its files.

What must stay true: the netCDF library reads each name that is accepted here.
"""

from __future__ import annotations

# NC_MAX_NAME is 256, but readers have no room for the zero behind that many: netCDF4 shows garbage, ncdump fails.
MOST_NAME_BYTES = 255
_SHOWN = 40


def check_length(name: str, what: str) -> None:
    """Raises ValueError for a name, without its groups, that is too long."""
    size = len(name.encode("utf-8", "surrogateescape"))
    if size > MOST_NAME_BYTES:
        start = f"{name[:_SHOWN]}..."
        raise ValueError(
            f"{start!r} is not a valid name for {what}: it has {size} bytes, netCDF has at most {MOST_NAME_BYTES}"
        )
