"""HDF5 data types as DTypes and back.

A type is plain when its stored bytes are the values: IEEE floats (bfloat16 and float8 too), the long double of this
machine, whole integers of either byte order, complex numbers (HDF5's own and h5py's pair of "r" and "i"), enumerations,
fixed strings, opaque bytes and the dates that h5py keeps in them, and compounds of these. What must stay true: a type
whose bytes need interpretation (references, variable length, odd precision) is UnreadableType with its reason, never
handed out as something it is not; `values` may know more of it.
"""

from __future__ import annotations

from dataclasses import replace

import h5py
from h5py import h5t

from penstock._arrays.dtype import DType, Field

COMPLEX_CLASS = getattr(h5t, "COMPLEX", None)  # HDF5 2.0

# size, sign bit, exponent (bit, bits), mantissa (bit, bits), bias: name. HDF5 numbers bits after undoing byte order.
_FLOATS = {
    (2, 15, 10, 5, 0, 10, 15): "float16",
    (4, 31, 23, 8, 0, 23, 127): "float32",
    (8, 63, 52, 11, 0, 52, 1023): "float64",
    (2, 15, 7, 8, 0, 7, 127): "bfloat16",
    (1, 7, 3, 4, 0, 3, 7): "float8_e4m3fn",
    (1, 7, 2, 5, 0, 2, 15): "float8_e5m2",
}
_BOOL = {b"FALSE": 0, b"TRUE": 1}


# Types that nearly all datasets have, so that these need no taking apart.
_COMMON = (
    (h5t.IEEE_F32LE, DType.of("float32")),
    (h5t.IEEE_F64LE, DType.of("float64")),
    (h5t.STD_I32LE, DType.of("int32")),
    (h5t.STD_I64LE, DType.of("int64")),
    (h5t.STD_U64LE, DType.of("uint64")),
)


class UnreadableType(Exception):
    """Why elements of a type are no plain bytes."""


def dtype_of(stored: h5t.TypeID) -> tuple[DType, tuple[int, ...]]:
    """The type of one element, and the dimensions that it adds when it is an array type. Raises UnreadableType."""
    for type, known in _COMMON:
        if stored.equal(type):
            return known, ()
    if stored.get_class() != h5t.ARRAY:
        return _scalar(stored), ()
    inner, dims = dtype_of(stored.get_super())
    return inner, (*stored.get_array_dims(), *dims)


def _scalar(stored: h5t.TypeID) -> DType:
    kind = stored.get_class()
    make = _KINDS.get(kind)
    if make is not None:
        return make(stored)
    reasons = {
        h5t.VLEN: "its elements have variable length",
        h5t.REFERENCE: "its elements are references into the file",
        h5t.TIME: "it has HDF5's time type, which no version of HDF5 defines",
    }
    raise UnreadableType(reasons.get(kind, f"HDF5 type class {kind} is unknown"))


def raw(size_bytes: int) -> DType:
    return DType(f"void{8 * size_bytes}", size_bytes, "V")


def _swapped(stored: h5t.TypeID, size_bytes: int) -> bool:
    order = stored.get_order()
    if order not in (h5t.ORDER_LE, h5t.ORDER_BE):
        raise UnreadableType("its byte order is neither little-endian nor big-endian")
    return order == h5t.ORDER_BE and size_bytes > 1


def _integer(stored: h5t.TypeID) -> DType:
    size = stored.get_size()
    if size not in (1, 2, 4, 8) or stored.get_precision() != 8 * size or stored.get_offset() != 0:
        raise UnreadableType(f"its integers have {stored.get_precision()} bits inside {size} bytes")
    signed = stored.get_class() == h5t.INTEGER and stored.get_sign() == h5t.SGN_2
    return _plain(f"{'' if signed else 'u'}int{8 * size}", _swapped(stored, size))


def _plain(name: str, big_endian: bool) -> DType:
    return replace(DType.of(name), big_endian=big_endian)


def _bitfield(stored: h5t.TypeID) -> DType:
    size = stored.get_size()
    if size not in (1, 2, 4, 8):
        raise UnreadableType(f"its bit fields have {size} bytes")
    return _plain(f"uint{8 * size}", _swapped(stored, size))


def _float(stored: h5t.TypeID) -> DType:
    size = stored.get_size()
    sign, exponent, exponent_bits, mantissa, mantissa_bits = stored.get_fields()
    layout = (size, sign, exponent, exponent_bits, mantissa, mantissa_bits, stored.get_ebias())
    if stored.equal(h5t.NATIVE_LDOUBLE) and size > 8:
        return DType.of("longdouble")
    name = _FLOATS.get(layout)
    if name is None or stored.get_precision() != 8 * size or stored.get_norm() != h5t.NORM_IMPLIED:
        raise UnreadableType(f"its floats are of no kind that devices know ({stored.get_precision()} bits)")
    return _plain(name, _swapped(stored, size))


def _enum(stored: h5t.TypeID) -> DType:
    integer = _integer(stored.get_super())
    members = {stored.get_member_name(i): stored.get_member_value(i) for i in range(min(stored.get_nmembers(), 3))}
    return DType.of("bool") if integer.itemsize == 1 and members == _BOOL else integer


def _string(stored: h5t.TypeID) -> DType:
    if stored.is_variable_str():
        raise UnreadableType("its elements are strings of variable length")
    size = stored.get_size()
    return DType(f"bytes{8 * size}", size, "S")


def _opaque(stored: h5t.TypeID) -> DType:
    """h5py keeps dates so, with NumPy's name for them as tag."""
    if stored.get_tag().startswith(b"NUMPY:"):
        try:
            named = DType.of(stored.dtype)
        except TypeError:
            return raw(stored.get_size())
        if named.itemsize == stored.get_size():
            return named
    return raw(stored.get_size())


def _complex(stored: h5t.TypeID) -> DType:
    part = _float(stored.get_super())
    return _pair(part)


def _pair(part: DType) -> DType:
    if part.name not in ("float32", "float64"):
        raise UnreadableType(f"its elements are complex of {part.name}")
    return _plain("complex64" if part.name == "float32" else "complex128", part.big_endian)


def _compound(stored: h5t.TypeID) -> DType:
    fields = []
    for index in range(stored.get_nmembers()):
        name = stored.get_member_name(index).decode("utf-8", "surrogateescape")
        fields.append(_member(stored, index, name))
    if _is_pair(fields, stored.get_size()):
        return _pair(fields[0].dtype)
    return replace(raw(stored.get_size()), fields=tuple(fields))


def _member(stored: h5t.TypeID, index: int, name: str) -> Field:
    try:
        inner, dims = dtype_of(stored.get_member_type(index))
    except UnreadableType as cause:
        raise UnreadableType(f"member {name!r}: {cause}") from None
    return Field(name, inner, stored.get_member_offset(index), dims)


def _is_pair(fields: list[Field], size_bytes: int) -> bool:
    """What h5py writes for complex numbers."""
    if [field.name for field in fields] != list(h5py.get_config().complex_names):
        return False
    real, imaginary = fields
    plain = real.dtype == imaginary.dtype and real.dtype.kind == "f" and not real.shape
    return plain and real.offset == 0 and imaginary.offset == real.dtype.itemsize and size_bytes == 2 * imaginary.offset


_KINDS = {
    h5t.INTEGER: _integer,
    h5t.BITFIELD: _bitfield,
    h5t.FLOAT: _float,
    h5t.ENUM: _enum,
    h5t.STRING: _string,
    h5t.OPAQUE: _opaque,
    h5t.COMPOUND: _compound,
}
if COMPLEX_CLASS is not None:
    _KINDS[COMPLEX_CLASS] = _complex


def stored_type(dtype: DType) -> h5t.TypeID:
    """The HDF5 type that holds elements of `dtype` as they are; what stock HDF5 1.10 reads."""
    if dtype.fields:
        return _stored_compound(dtype)
    if dtype.kind == "V":
        return _opaque_type(dtype.itemsize)
    if dtype.kind == "E":
        return _small_float(dtype)
    if dtype.kind in "Mm":
        return h5t.py_create(h5py.opaque_dtype(dtype.dtype), logical=True)
    if dtype == DType.objects("text"):
        return h5t.py_create(h5py.string_dtype(), logical=True)
    if dtype.kind == "U":
        raise TypeError(f"HDF5 has no type for {dtype}; {dtype.bytes_view} has the same bytes as numbers")
    return h5t.py_create(dtype.dtype, logical=True)


def _opaque_type(size_bytes: int) -> h5t.TypeID:
    opaque = h5t.create(h5t.OPAQUE, size_bytes)
    opaque.set_tag(b"")
    return opaque


def _stored_compound(dtype: DType) -> h5t.TypeID:
    compound = h5t.create(h5t.COMPOUND, dtype.itemsize)
    for field in dtype.fields:
        member = stored_type(field.dtype)
        if field.shape:
            member = h5t.array_create(member, field.shape)
        compound.insert(field.name.encode("utf-8", "surrogateescape"), field.offset, member)
    return compound


def _small_float(dtype: DType) -> h5t.TypeID:
    """HDF5 describes floats by their bits, so bfloat16 and float8 need no newer file format."""
    layout = next((key for key, name in _FLOATS.items() if name == dtype.name), None)
    if layout is None:
        raise TypeError(f"HDF5 cannot describe {dtype.name} by its bits; store them as uint8")
    size, sign, exponent, exponent_bits, mantissa, mantissa_bits, bias = layout
    small = h5t.IEEE_F64LE.copy()
    small.set_fields(sign, exponent, exponent_bits, mantissa, mantissa_bits)
    small.set_ebias(bias)
    small.set_precision(8 * size)
    small.set_size(size)
    small.set_order(h5t.ORDER_BE if dtype.big_endian else h5t.ORDER_LE)
    return small
