"""DType: the type of one element, as files and devices see it.

NumPy is no dependency of arrays, and has no bfloat16 and no float8; so this is a value of our own, which NumPy
understands where it can (`numpy.dtype(dtype)`). Text of fixed length, dates and long doubles are plain bytes that NumPy
alone understands: devices hold them, and no library there computes with them. What must stay true: two DTypes are equal
only if the same bytes mean the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from struct import calcsize
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

# name: (itemsize, kind); kinds are NumPy's letters, and "E" for floats that NumPy does not have.
_PLAIN: dict[str, tuple[int, str]] = {
    "bool": (1, "b"),
    **{f"int{8 * size}": (size, "i") for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": (size, "u") for size in (1, 2, 4, 8)},
    **{f"float{8 * size}": (size, "f") for size in (2, 4, 8)},
    "complex64": (8, "c"),
    "complex128": (16, "c"),
    "bfloat16": (2, "E"),
    "float8_e4m3fn": (1, "E"),
    "float8_e5m2": (1, "E"),
    "float8_e4m3fnuz": (1, "E"),
    "float8_e5m2fnuz": (1, "E"),
    "float8_e8m0fnu": (1, "E"),
}
# DLDataTypeCode of dlpack.h, by kind, and by name where the kind does not tell.
_DLPACK_OF_KIND = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_DLPACK_OF_NAME = {
    "bfloat16": 4,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
# Letters of the struct module and the buffer protocol, in standard sizes; "?" is a bool.
_LETTERS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "Zf",
    "complex128": "Zd",
}

_AS_LONG = bytes.maketrans(b"qQ", b"lL")

# What shows elements that DLPack does not have, by kind.
_BYTES_VIEW = '.field("name") or .view("uint8")'
_OTHER_VIEWS = {
    "M": '.view("int64"), which counts from 1970',
    "m": '.view("int64"), which counts',
    "S": '.view("uint8")',
    "U": '.view("uint32")',
    "f": '.view("uint8"), or .to_numpy()',
    "c": '.view("uint8"), or .to_numpy()',
}


def not_taken(plain: numpy.dtype) -> tuple[str, str]:
    """What elements of a type of NumPy are that no DType is for, and what to do with an array of them."""
    if plain.hasobject:
        return "Python objects, which Penstock neither reads nor writes", "make numbers of them"
    if plain.itemsize == 0:
        return "of 0 bytes, which hold nothing", "give a type with bytes"
    return "of a kind that Penstock neither reads nor writes", "make numbers of them"


@dataclass(frozen=True)
class Field:
    """A member of a compound type, at a byte offset inside the element; with a shape, it is a small array."""

    name: str
    dtype: DType
    offset: int
    shape: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape) if self.shape else ''}"


@dataclass(frozen=True, eq=False)
class DType:
    """The type of one element, as files and devices see it. `numpy.dtype(dtype)` is NumPy's, where it has one.

    Args:
        name: "float32", "bfloat16", ..., or "void<N>" for N raw bits (compound types, opaque types).
        itemsize: bytes of one element.
        kind: NumPy's letter: b i u f c V S U M m, or E for bfloat16 and float8, or O for elements of no fixed size.
        big_endian: the stored byte order.
        fields: members of a compound type.
    """

    name: str
    itemsize: int
    kind: str
    big_endian: bool = False
    fields: tuple[Field, ...] = ()

    @classmethod
    def of(cls, type: Any) -> DType:
        """From a name ("float32", ">f4", "bfloat16"), a NumPy or torch dtype, or a DType. Raises TypeError."""
        if isinstance(type, DType):
            return type
        name = str(type).removeprefix("torch.") if not isinstance(type, str) else type
        return _SHARED.get(name) or cls._of_numpy(type)

    @classmethod
    def raw(cls, itemsize: int) -> DType:
        """Elements of `itemsize` bytes that nothing is known about."""
        return cls(f"void{8 * itemsize}", itemsize, "V")

    @classmethod
    def objects(cls, name: str) -> DType:
        """Elements of no fixed size, which Python objects hold: "text", "list of int32", ..."""
        return cls(name, 8, "O")

    @classmethod
    def _of_numpy(cls, type: Any) -> DType:
        import numpy as np

        try:
            plain = np.dtype(type)
        except TypeError:
            raise TypeError(
                f"{type!r} is not a data type; known are {', '.join(_PLAIN)}, and what numpy.dtype takes"
            ) from None
        if plain.kind in "biufc" and plain.newbyteorder("<").name in _PLAIN:
            swapped = plain.byteorder == ">"
            name = plain.newbyteorder("<").name
            is_big = swapped and plain.itemsize > 1
            return cls(name, plain.itemsize, plain.kind, True) if is_big else _SHARED[name]
        if plain.kind in "fcSUMm" and plain.itemsize:
            return cls(plain.newbyteorder("<").name, plain.itemsize, plain.kind, plain.byteorder == ">")
        if plain.hasobject or plain.kind != "V" or plain.subdtype is not None or plain.itemsize == 0:
            what, advice = not_taken(plain)
            raise TypeError(f"elements of type {plain} are {what}; {advice}")
        members = tuple(cls._member(name, *(plain.fields or {})[name][:2]) for name in plain.names or ())
        return cls(f"void{8 * plain.itemsize}", plain.itemsize, "V", False, members)

    @classmethod
    def _member(cls, name: str, member: Any, offset: int) -> Field:
        """Members that are nothing known are raw bytes."""
        base, shape = member.subdtype or (member, ())
        try:
            return Field(name, cls._of_numpy(base), offset, tuple(shape))
        except TypeError:
            return Field(name, cls.raw(base.itemsize), offset, tuple(shape))

    @classmethod
    def of_dlpack(cls, code: int, bits: int, lanes: int = 1) -> DType:
        """From the three numbers of a DLDataType. Raises TypeError for types without a name here."""
        for name, (itemsize, kind) in _PLAIN.items():
            if (code, bits, lanes) == (_DLPACK_OF_NAME.get(name, _DLPACK_OF_KIND.get(kind)), 8 * itemsize, 1):
                return cls(name, itemsize, kind)
        raise TypeError(f"DLPack type (code {code}, {bits} bits, {lanes} lanes) is not one of {', '.join(_PLAIN)}")

    @classmethod
    def of_buffer_format(cls, letters: str, itemsize: int) -> DType:
        """From the format of a buffer (PEP 3118). What is more than one plain number is raw bytes."""
        order, plain = (letters[0], letters[1:]) if letters[:1] in "@=<>!^" else ("@", letters)
        kind = {"l": "q", "L": "Q", "n": "q", "N": "Q", "c": "B"}.get(plain, plain)
        if plain in ("l", "L") and itemsize == 4:
            kind = {"l": "i", "L": "I"}[plain]
        for name, letter in _LETTERS.items():
            if letter == kind and _PLAIN[name][0] == itemsize:
                return cls(name, *_PLAIN[name], order in ">!" and itemsize > 1)
        return cls.raw(itemsize)

    @property
    def dlpack(self) -> tuple[int, int, int]:
        """(code, bits, lanes) of DLPack. Raises TypeError for big-endian numbers and for all that are no numbers."""
        code = _DLPACK_OF_NAME.get(self.name, _DLPACK_OF_KIND.get(self.kind))
        if code is None or self.name not in _PLAIN:
            raise TypeError(f"DLPack has no type for {self}; use {_OTHER_VIEWS.get(self.kind, _BYTES_VIEW)}")
        if self.big_endian:
            raise TypeError(f"DLPack has no type for {self}")
        return code, 8 * self.itemsize, 1

    @property
    def buffer_format(self) -> str:
        """The format of the buffer protocol (PEP 3118); TypeError where it has none."""
        if self.name not in _LETTERS or self.big_endian:
            raise TypeError(f"the buffer protocol has no format for {self}")
        return _LETTERS[self.name]

    @cached_property
    def export_letters(self) -> bytes:
        """As buffer_format, and 64-bit integers as NumPy has them; empty where it has none."""
        if self.name not in _LETTERS or self.big_endian:
            return b""
        letters = _LETTERS[self.name].encode()
        return letters.translate(_AS_LONG) if calcsize("l") == 8 else letters

    @cached_property
    def typestr(self) -> str:
        """As in `__array_interface__`: `"<f4"`, `"|u1"`, `"|V12"`. TypeError for what NumPy does not have."""
        if self.kind == "E":
            raise TypeError(f"{self.name} is not a type of NumPy; use DLPack, or .view('uint{8 * self.itemsize}')")
        if self.kind == "O":
            return "|O"
        order = "|" if self.itemsize == 1 or self.kind in "VS" else (">" if self.big_endian else "<")
        unit = self.name.partition("64")[2] if self.kind in "Mm" else ""
        return f"{order}{self.kind}{self.itemsize // 4 if self.kind == 'U' else self.itemsize}{unit}"

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of a compound type's members; None where there are none, as NumPy has it."""
        return tuple(member.name for member in self.fields) or None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What else a type of NumPy tells (`str`, `type`, `char`, ...), where NumPy has this one."""
            if name.startswith("_"):
                return object.__getattribute__(self, name)
            try:
                return getattr(self.dtype, name)
            except TypeError as error:
                raise AttributeError(f"a penstock.DType has no .{name}: {error}", name=name, obj=self) from None

    @property
    def host_only(self) -> bool:
        """Elements have no fixed size, so that only host memory holds them, as Python objects."""
        return self.kind == "O" or bool(self.fields) and any(member.dtype.host_only for member in self.fields)

    @property
    def bytes_view(self) -> str:
        """What shows the same bytes as numbers that every format and library has."""
        return f"array{_OTHER_VIEWS.get(self.kind, _BYTES_VIEW).partition(', which')[0]}"

    def need_on_gpu(self) -> None:
        """TypeError for text, dates and long doubles, which no library of a GPU knows."""
        if self.kind not in "VE":
            _ = self.native.dlpack

    @property
    def descr(self) -> list[Any] | None:
        """Members with their padding, as in `__array_interface__`; None for what is no compound type."""
        if not self.fields:
            return None
        members: list[Any] = []
        end = 0
        for member in sorted(self.fields, key=lambda one: one.offset):
            if member.offset < end:
                return None  # they overlap: raw bytes say all that can be said
            if member.offset > end:
                members.append(("", f"|V{member.offset - end}"))
            one = (member.name, member.dtype.descr or member.dtype.typestr)
            members.append((*one, member.shape) if member.shape else one)
            end = member.offset + member.bytes
        return [*members, ("", f"|V{self.itemsize - end}")] if end < self.itemsize else members

    @property
    def dtype(self) -> numpy.dtype:
        """This type in NumPy, which finds it here: `numpy.dtype(dtype)`. TypeError for bfloat16 and float8 unless
        the package ml_dtypes, which gives NumPy those, is installed."""
        import numpy as np

        if self.kind == "E":
            try:
                import ml_dtypes
            except ImportError:
                bits = f"array.view('uint{8 * self.itemsize}') shows the bits"
                raise TypeError(f"NumPy has no {self.name}: pip install ml_dtypes gives it one; {bits}") from None
            return np.dtype(getattr(ml_dtypes, self.name))
        if not self.fields:
            return np.dtype(self.typestr)
        names = [member.name for member in self.fields]
        types = [(member.dtype.dtype, member.shape) if member.shape else member.dtype.dtype for member in self.fields]
        offsets = [member.offset for member in self.fields]
        return np.dtype({"names": names, "formats": types, "offsets": offsets, "itemsize": self.itemsize})

    @property
    def __numpy_dtype__(self) -> numpy.dtype:
        return self.dtype

    @property
    def word_bytes(self) -> int:
        """Bytes of one word whose order may be reversed: half of a complex number, a character of text."""
        return {"c": self.itemsize // 2, "U": 4, "S": 1}.get(self.kind, self.itemsize)

    @property
    def swap_bytes(self) -> int:
        """Bytes of the words to reverse for the order of this machine; 0: nothing to reverse."""
        return self.word_bytes if self.big_endian else 0

    @property
    def native(self) -> DType:
        """The same values in little-endian order."""
        if not self.big_endian:
            return self
        return DType(self.name, self.itemsize, self.kind, False, self.fields)

    def member(self, name: str) -> Field:
        """A member of a compound type; KeyError lists them."""
        for one in self.fields:
            if one.name == name:
                return one
        raise KeyError(f"no field {name!r}; there are {', '.join(one.name for one in self.fields) or 'none'}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DType):
            try:
                other = DType.of(other)
            except (TypeError, ValueError):
                return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.name, self.itemsize, self.kind, self.big_endian, self.fields

    def __str__(self) -> str:
        if self.fields:
            return f"{{{', '.join(map(str, self.fields))}}}"
        return f"{'big-endian ' if self.big_endian else ''}{self.name}"


# One for all: each keeps what NumPy is told of it.
_SHARED = {name: DType(name, *about) for name, about in _PLAIN.items()}
