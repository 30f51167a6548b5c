"""The header of a classic netCDF file (CDF-1, CDF-2, CDF-5) as data, and the parser that makes it.

The grammar is in the appendix "File Format Specifications" of the netCDF user's guide; CDF-5 widens counts to 64 bits.
Where the netCDF library reads more than the grammar allows, this parser does too: names that end in zero bytes (the
library writes such when it gives a shorter name in place), names that are empty, contain "/" or are no UTF-8, several
dimensions of length 0, types of CDF-5 in older versions, any tag of an empty list, an attribute twice.
What must stay true: every count is compared with the bytes that are left before anything of that size is made; no
arithmetic can overflow (Python's integers, then one check against 2**63); a header has at most LARGEST_HEADER_BYTES;
whatever the bytes are, the answer is a Header or a penstock.Error.
"""

from __future__ import annotations

import math
import os
import stat
import struct
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from penstock._error import Error
from penstock._files.descriptor import close_read, read_at
from penstock._files.open_files import with_room
from penstock.formats.faults import FOREIGN_BYTES, damaged, foreign, unsupported

LARGEST_HEADER_BYTES = 256 << 20
MOST_DIMENSIONS = 1024  # of one variable: NC_MAX_VAR_DIMS
LARGEST = 1 << 63
_FETCH_BYTES = 64 << 10
_EITHER = "the file is damaged or was cut short"
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12


class Type(NamedTuple):
    """A type of the format: name of its DType, the letter `struct` knows it by, the value of elements never written."""

    name: str
    letter: str
    fill: int | float

    @property
    def itemsize(self) -> int:
        return struct.calcsize(">" + self.letter)

    @property
    def fill_bytes(self) -> bytes:
        return struct.pack(">" + self.letter, self.fill)


_FLOAT_FILL = 9.9692099683868690e36  # NC_FILL_FLOAT and NC_FILL_DOUBLE
TYPES = {
    1: Type("int8", "b", -127),
    2: Type("void8", "B", 0),  # char: bytes of text, not numbers
    3: Type("int16", "h", -32767),
    4: Type("int32", "i", -2147483647),
    5: Type("float32", "f", _FLOAT_FILL),
    6: Type("float64", "d", _FLOAT_FILL),
    7: Type("uint8", "B", 255),
    8: Type("uint16", "H", 65535),
    9: Type("uint32", "I", 4294967295),
    10: Type("int64", "q", -9223372036854775806),
    11: Type("uint64", "Q", 18446744073709551614),
}
CHAR = 2


def padded(bytes: int) -> int:
    return -(-bytes // 4) * 4


class StoredName(str):
    """A name that is stored in other bytes than its own UTF-8, which are written back as they were found."""

    stored: bytes

    @classmethod
    def of(cls, raw: bytes) -> str:
        """The name ends at the first zero. Older writers used Latin-1, which decodes any bytes."""
        plain = raw.split(b"\0", 1)[0]
        try:
            text = plain.decode("utf-8")
        except UnicodeDecodeError:
            text = plain.decode("latin-1")
        if text.encode("utf-8") == raw:
            return text
        name = cls(text)
        name.stored = raw
        return name


def name_bytes(name: str) -> bytes:
    """As stored, without padding."""
    return name.stored if isinstance(name, StoredName) else name.encode("utf-8")


class ClassicDimension(NamedTuple):
    """A name for a length, which variables share."""

    name: str
    length: int  # 0: the record dimension


class Attribute(NamedTuple):
    """`payload` is as stored, without padding, so that a header can be written back unchanged."""

    name: str
    type: int
    payload: bytes


class Variable(NamedTuple):
    """One variable; `begin` is where its data, or those of its first record, begin."""

    name: str
    dimensions: tuple[int, ...]  # indices into Header.dimensions
    attributes: tuple[Attribute, ...]
    type: int
    begin: int


@dataclass(frozen=True)
class Header:
    """`records`: number of records; None: the writer was streaming, the file's size tells. `bytes`: its length."""

    version: int
    records: int | None
    dimensions: tuple[ClassicDimension, ...]
    attributes: tuple[Attribute, ...]
    variables: tuple[Variable, ...]
    bytes: int = 0

    def is_record(self, variable: Variable) -> bool:
        return bool(variable.dimensions) and self.dimensions[variable.dimensions[0]].length == 0

    def is_interleaved(self, variable: Variable) -> bool:
        """Whether something lies between its records."""
        return self.is_record(variable) and self.record_bytes != self.row_bytes(variable)

    def row_shape(self, variable: Variable) -> tuple[int, ...]:
        """The shape without the record dimension."""
        lengths = tuple(self.dimensions[index].length for index in variable.dimensions)
        return lengths[1:] if self.is_record(variable) else lengths

    def row_bytes(self, variable: Variable) -> int:
        """Bytes of one record, or of all of a variable without records."""
        return math.prod(self.row_shape(variable)) * TYPES[variable.type].itemsize

    @cached_property
    def record_variables(self) -> tuple[Variable, ...]:
        return tuple(variable for variable in self.variables if self.is_record(variable))

    @cached_property
    def record_bytes(self) -> int:
        """From one record to the next. The only record variable of a file is not padded."""
        rows = [self.row_bytes(variable) for variable in self.record_variables]
        return rows[0] if len(rows) == 1 else sum(map(padded, rows))

    @property
    def end_of_data(self) -> int:
        """Bytes that a file must have to hold all that the header says."""
        steps = max(0, (self.records or 0) - 1) * self.record_bytes
        ends = [
            one.begin + self.row_bytes(one) + (steps if self.is_record(one) else 0)
            for one in self.variables
            if self.records or not self.is_record(one)
        ]
        return max([self.bytes, *ends])

    def records_in(self, file_bytes: int) -> int:
        """The number of records, of a file of that size where the header does not say."""
        if self.records is not None:
            return self.records
        if not self.record_variables:
            return 0
        begin = min(variable.begin for variable in self.record_variables)
        return max(0, file_bytes - begin) // self.record_bytes


def read_header(name: str) -> Header:
    """Parses the header of a file. Raises penstock.Error."""
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not make us wait
        descriptor = with_room(lambda: os.open(name, flags))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Error(code="not_a_regular_file", operation="open", file=name, cause="it is not a regular file")
            return _Parser(name, descriptor, status.st_size).header()
        finally:
            close_read(descriptor)
    except OSError as error:
        raise Error.of(error, "open", name, "check the name and its permissions") from error


class _Parser:
    """A position in the first bytes of a file, which are fetched as far as they are needed."""

    def __init__(self, name: str, descriptor: int, file_bytes: int) -> None:
        self._name = name
        self._descriptor = descriptor
        self._limit = min(file_bytes, LARGEST_HEADER_BYTES)
        self._held = bytearray()
        self._at = 0
        self._version = 1

    def header(self) -> Header:
        magic = self._take(min(4, self._limit), "magic number")
        if not magic or not b"CDF".startswith(magic[:3]):
            raise foreign(self._name, "classic netCDF", bytes(self._held[:FOREIGN_BYTES]))
        magic += self._take(4 - len(magic), "magic number")
        if magic[3] not in (1, 2, 5):
            raise unsupported(self._name, f"begins with {magic!r}; classic netCDF has CDF\\x01, \\x02 and \\x05")
        self._version = magic[3]
        records = self._records()
        dimensions = self._dimensions()
        attributes = self._attributes("the file")
        variables = self._variables(dimensions)
        header = Header(self._version, records, dimensions, attributes, variables, self._at)
        if header.record_bytes * (header.records or 1) >= LARGEST:
            raise damaged(self._name, f"{header.records or 1} records of {header.record_bytes} bytes fit into no file")
        return header

    def _records(self) -> int | None:
        raw = self._take(8 if self._version == 5 else 4, "number of records")
        if raw == b"\xff" * len(raw):
            return None
        return self._not_negative(raw, "number of records") if len(raw) == 8 else int.from_bytes(raw, "big")

    def _dimensions(self) -> tuple[ClassicDimension, ...]:
        found = []
        for _ in range(self._list(_DIMENSIONS, 12, "dimensions")):
            name = self._text("dimension")
            raw = self._take(8 if self._version == 5 else 4, f"length of dimension {name!r}")
            found.append(ClassicDimension(name, int.from_bytes(raw, "big")))
        names = self._distinct("dimensions", [dimension.name for dimension in found])
        return tuple(one._replace(name=name) for one, name in zip(found, names, strict=True))

    def _attributes(self, owner: str) -> tuple[Attribute, ...]:
        found = []
        for _ in range(self._list(_ATTRIBUTES, 16, f"attributes of {owner}")):
            name = self._text(f"attribute of {owner}")
            type = self._type(f"attribute {name!r} of {owner}")
            size = TYPES[type].itemsize
            bytes = size * self._count(size, f"values of attribute {name!r} of {owner}")
            found.append(Attribute(name, type, self._padded(bytes, f"attribute {name!r} of {owner}")))
        return tuple(found)

    def _variables(self, dimensions: tuple[ClassicDimension, ...]) -> tuple[Variable, ...]:
        smallest = 40 if self._version == 5 else 32
        found = [self._variable(dimensions) for _ in range(self._list(_VARIABLES, smallest, "variables"))]
        names = self._distinct("variables", [variable.name for variable in found])
        return tuple(one._replace(name=name) for one, name in zip(found, names, strict=True))

    def _variable(self, dimensions: tuple[ClassicDimension, ...]) -> Variable:
        name = self._text("variable")
        owner = f"variable {name!r}"
        indices = self._indices(owner, dimensions)
        attributes = self._attributes(owner)
        type = self._type(owner)
        self._take(8 if self._version == 5 else 4, f"size of {owner}")  # follows from the shape, and is wrong if large
        begin = self._not_negative(self._take(4 if self._version == 1 else 8, f"begin of {owner}"), f"begin of {owner}")
        lengths = [dimensions[index].length or 1 for index in indices]
        if math.prod(lengths) * TYPES[type].itemsize + begin >= LARGEST:
            raise damaged(self._name, f"{owner} is larger than any file")
        return Variable(name, indices, attributes, type, begin)

    def _indices(self, owner: str, dimensions: tuple[ClassicDimension, ...]) -> tuple[int, ...]:
        count = self._count(8 if self._version == 5 else 4, f"dimensions of {owner}")
        if count > MOST_DIMENSIONS:
            raise damaged(self._name, f"{owner} has {count} dimensions; the format allows {MOST_DIMENSIONS}")
        indices = tuple(self._number(f"dimension of {owner}") for _ in range(count))
        for place, index in enumerate(indices):
            if index >= len(dimensions):
                raise damaged(self._name, f"{owner} has dimension {index} of {len(dimensions)}")
            if dimensions[index].length == 0 and place > 0:
                raise damaged(self._name, f"{owner} has the record dimension at place {place}; it may only be first")
        return indices

    def _list(self, tag: int, smallest: int, what: str) -> int:
        """Number of entries of a list; 0 where it is absent. `smallest`: bytes of the shortest entry."""
        found = int.from_bytes(self._take(4, f"list of {what}"), "big")
        count = self._count(smallest, what)
        if found != tag and count:
            raise damaged(self._name, f"the list of {what} has tag {found} and {count} entries; its tag is {tag}")
        return count

    def _type(self, what: str) -> int:
        type = int.from_bytes(self._take(4, f"type of {what}"), "big")
        if type not in TYPES:
            raise damaged(self._name, f"{what} has type {type}, which classic netCDF does not have")
        return type

    def _text(self, what: str) -> str:
        return StoredName.of(self._padded(self._count(1, f"characters of the name of a {what}"), f"name of a {what}"))

    def _padded(self, bytes: int, what: str) -> bytes:
        return self._take(padded(bytes), what)[:bytes]

    def _count(self, each: int, what: str) -> int:
        """A number of things of at least `each` bytes, which the file must be long enough to hold."""
        count = self._number(f"number of {what}")
        if count * each > self._limit - self._at:
            raise damaged(
                self._name,
                f"{count} {what} do not fit into the {self._limit} bytes a header may have here",
                advice=_EITHER,
            )
        return count

    def _number(self, what: str) -> int:
        return self._not_negative(self._take(8 if self._version == 5 else 4, what), what)

    def _not_negative(self, raw: bytes, what: str) -> int:
        value = int.from_bytes(raw, "big", signed=True)
        if value < 0:
            raise damaged(self._name, f"the {what} is {value}")
        return value

    def _take(self, count: int, what: str) -> bytes:
        end = self._at + count
        if end > self._limit:
            cause = f"the header ends before the {what}: {self._limit} bytes, {end} are needed"
            raise damaged(self._name, cause, advice=_EITHER)
        while len(self._held) < end:
            wanted = min(self._limit, max(end, 2 * len(self._held), _FETCH_BYTES)) - len(self._held)
            more = read_at(self._descriptor, wanted, len(self._held))
            if not more:
                raise Error.cut_short(self._name, len(self._held), wanted, 0)
            self._held += more
        taken = bytes(memoryview(self._held)[self._at : end])
        self._at = end
        return taken

    def _distinct(self, what: str, names: list[str]) -> list[str]:
        """Of those whose text is one, the first that is stored so has it; the others have their bytes as text."""
        counts = Counter(names)
        if len(counts) == len(names):
            return names
        owners = {name: name for name in reversed(names)}
        owners |= {name: name for name in names if not isinstance(name, StoredName)}
        told = [name if counts[name] == 1 or name is owners[name] else _as_bytes(name) for name in names]
        twice, times = Counter(told).most_common(1)[0]
        if times > 1:
            raise damaged(self._name, f"two {what} are named {twice!r}")
        return told


def _as_bytes(name: str) -> str:
    if not isinstance(name, StoredName):
        return name
    told = StoredName(repr(name.stored)[2:-1])
    told.stored = name.stored
    return told
