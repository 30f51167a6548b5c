"""DType: the type of one element, as files and devices see it.

NumPy is no dependency of arrays, and has no bfloat16 and no float8; so this is a value of our own, which NumPy
understands where it can (`numpy.dtype(dtype)`). What must stay true: two DTypes are equal only if the same bytes mean
the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    "float8_e8m0fnu": (1, "E"),
}


@dataclass(frozen=True)
class Field:
    """A member of a compound type, at a byte offset inside the element."""

    name: str
    dtype: DType
    offset: int


@dataclass(frozen=True)
class DType:
    """Args:
    name: "float32", "bfloat16", ..., or "void<N>" for N raw bytes (compound types, opaque types).
    itemsize: bytes of one element.
    kind: NumPy's letter: b i u f c V, or E for bfloat16 and float8.
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
        if name in _PLAIN:
            return cls(name, *_PLAIN[name])
        return cls._of_numpy(type)

    @classmethod
    def _of_numpy(cls, type: Any) -> DType:
        import numpy as np

        try:
            plain = np.dtype(type)
        except TypeError:
            raise TypeError(
                f"{type!r} is no data type; known are {', '.join(_PLAIN)}, and what numpy.dtype takes"
            ) from None
        if plain.kind in "biufc" and plain.newbyteorder("<").name in _PLAIN:
            swapped = plain.byteorder == ">"
            name = plain.newbyteorder("<").name
            return cls(name, plain.itemsize, plain.kind, swapped and plain.itemsize > 1)
        if plain.kind != "V" or plain.subdtype is not None:
            raise TypeError(f"elements of type {plain} have no fixed, plain bytes that a device could use")
        members = (
            ()
            if plain.fields is None
            else tuple(
                Field(name, cls._member(plain.fields[name][0]), plain.fields[name][1]) for name in plain.names or ()
            )
        )
        return cls(f"void{8 * plain.itemsize}", plain.itemsize, "V", False, members)

    @classmethod
    def _member(cls, member: Any) -> DType:
        """A member may be a small array: then raw bytes."""
        if member.subdtype is not None:
            return cls(f"void{8 * member.itemsize}", member.itemsize, "V")
        return cls._of_numpy(member)

    @property
    def word_bytes(self) -> int:
        """Bytes of one word whose order may be reversed; half an element for complex numbers."""
        return self.itemsize // 2 if self.kind == "c" else self.itemsize

    @property
    def native(self) -> DType:
        """The same values in little-endian order."""
        return DType(self.name, self.itemsize, self.kind, False, self.fields)

    def __str__(self) -> str:
        return f"{'big-endian ' if self.big_endian else ''}{self.name}"
