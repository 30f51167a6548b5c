"""Format: what the rest of Penstock must know of a format before, or without, asking one of its files.

What must stay true: a Format imports nothing of the folder of its format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ReadAt = Callable[[int, int], bytes]  # (offset, bytes): what a file has there


@dataclass(frozen=True)
class Format:
    """What the rest of Penstock must know of a format before, or without, asking one of its files.

    `reader` and `writer` are "module:class" below penstock.formats. A writer takes append=True to change a file.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    reader: str = ""
    writer: str = ""
    single: bool = False  # holds one dataset
    shares_suffix: bool = False  # files of another format are named so too
    begins: tuple[bytes, ...] = ()  # its first bytes: one of these
    sees_kind: bool = False  # its reader refuses pipes and folders before it waits for them
    starts: tuple[int, ...] = (0,)  # where those may be, because something else may come first
    root_marks: tuple[tuple[str, str], ...] = ()  # attributes at the root, and formats that begin alike and have them
    is_begin: Callable[[ReadAt, int], bool] | None = None  # of a file of so many bytes, where none of `begins` tells
    marks: tuple[str, ...] = ()  # its files are folders, with a file of one of these names in them
    needs_dtype: bool = False  # its files say nothing of their elements: dtype= and shape= do
    library: str = "the format's library"  # that decodes on the host, as evidence says it
    keeps_bytes: bool = False  # names and text need be no UTF-8
    has_groups: bool = True  # else a slash is a character of a name
    has_shards: bool = False  # chunks may share a file
    has_compression: bool = False  # chunks may be compressed
    writes_text: bool = False  # of variable length
    always_grows: bool = False  # any dimension of any dataset can
    has_text: bool = False  # elements of raw bytes are characters
    fill_mark: str = ""  # "module:function" that gives the value which marks what is missing, as xarray wants it
