"""Where the variables of a new classic netCDF file go: from NewDatasets to a header with places, as pure data.

The format wants fixed variables first, in order of definition, then records in which all record variables are
interleaved without gaps. So fixed variables of a page or more begin at a page, the first record does too, and records
lie wherever their sizes put them. What must stay true: a variable keeps its place once its ranges were told.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from penstock._error import Error
from penstock.formats.faults import refused
from penstock.formats.model import NewDataset
from penstock.formats.netcdf3.encode import encode_attribute, type_code
from penstock.formats.netcdf3.header import TYPES, Attribute, ClassicDimension, Header, Variable, padded
from penstock.formats.netcdf_names import check_length

PAGE_BYTES = 4096
_SMALL = 64  # alignment of variables shorter than a page
_LARGEST_ROW = (1 << 32) - 4  # of a variable in CDF-2
_LARGEST_LENGTH = (1 << 31) - 1  # of a dimension in CDF-2


def aligned(offset: int, to: int = PAGE_BYTES) -> int:
    return -(-offset // to) * to


def declare(file: str, header: Header, datasets: Sequence[NewDataset]) -> Header:
    """The header with the datasets' variables at its end, without places yet. Raises penstock.Error."""
    for dataset in datasets:
        try:
            header = _declare_one(header, dataset)
        except ValueError as error:
            raise refused(file, str(error), dataset=dataset.name) from None
    return header


def place(header: Header, first: int, data_start: int) -> Header:
    """Gives variables from number `first` on a place behind those before, and the record section its place behind all
    fixed ones (no record may have been handed out)."""
    end = fixed_end(header, header.variables[:first], data_start)
    variables = list(header.variables)
    for number, variable in enumerate(variables):
        if number >= first and not header.is_record(variable):
            length = header.row_bytes(variable)
            begin = aligned(end, PAGE_BYTES if length >= PAGE_BYTES else _SMALL)
            variables[number] = variable._replace(begin=begin)
            end = begin + padded(length)
    end = aligned(end)
    for number, variable in enumerate(variables):
        if header.is_record(variable):
            variables[number] = variable._replace(begin=end)
            end += padded(header.row_bytes(variable))
    return replace(header, variables=tuple(variables))


def fixed_end(header: Header, variables: Sequence[Variable], data_start: int) -> int:
    ends = [one.begin + padded(header.row_bytes(one)) for one in variables if not header.is_record(one)]
    return max([data_start, *ends])


def file_bytes(header: Header, data_start: int) -> int:
    """The size of the file with all its records."""
    end = fixed_end(header, header.variables, data_start)
    if header.record_variables and header.records:
        begin = min(variable.begin for variable in header.record_variables)
        end = max(end, begin + header.records * header.record_bytes)
    return end


def with_attributes(header: Header, name: str, changes: dict[str, object]) -> Header:
    """Sets attributes of a variable, or ("") of the file; an attribute that is there keeps its place."""
    variable = next((one for one in header.variables if one.name == name), None)
    old = variable.attributes if variable is not None else header.attributes
    found = {one.name: one for one in old}
    for key, value in changes.items():
        _check_name(key, "an attribute")
        kind = variable.type if variable is not None and key == "_FillValue" else None
        found[key] = encode_attribute(key, value, header.version, kind)
    if variable is None:
        return replace(header, attributes=tuple(found.values()))
    changed = variable._replace(attributes=tuple(found.values()))
    return replace(header, variables=tuple(changed if one is variable else one for one in header.variables))


def _declare_one(header: Header, dataset: NewDataset) -> Header:
    name = dataset.name.removeprefix("/")
    _check_name(name, "a variable")
    if any(one.name == name for one in header.variables):
        raise ValueError("there is a variable of this name already")
    code = type_code(dataset.dtype.name, header.version)
    if code is None:
        known = [kind.name for kind in TYPES.values() if type_code(kind.name, header.version)]
        raise ValueError(f"CDF-{header.version} has no {dataset.dtype.name}; it has {', '.join(known)}")
    header, indices = _dimensions(header, dataset, _is_record(dataset))
    attributes: tuple[Attribute, ...] = ()
    variable = Variable(name, indices, attributes, code, 0)
    header = replace(header, variables=(*header.variables, variable))
    _check_size(header, variable)
    return with_attributes(header, name, dict(dataset.attributes)) if dataset.attributes else header


def _is_record(dataset: NewDataset) -> bool:
    largest = dataset.resizable
    is_record = largest is not None and len(largest) > 0 and largest[0] is None
    fixed = (None, *dataset.shape[1:]) if is_record else dataset.shape
    if largest is not None and tuple(largest) != fixed:
        raise ValueError(f"only the first dimension can grow, and without limit; resizable is {tuple(largest)}")
    whole = (1, *dataset.shape[1:]) if is_record else dataset.shape
    if dataset.shard_shape is not None:
        raise ValueError("shards are Zarr's; classic netCDF has none")
    if dataset.chunk_shape is not None and tuple(dataset.chunk_shape) != whole:
        raise ValueError(f"classic netCDF has no chunks; leave chunk_shape out (it is {tuple(dataset.chunk_shape)})")
    return is_record


def _dimensions(header: Header, dataset: NewDataset, is_record: bool) -> tuple[Header, tuple[int, ...]]:
    """Finds or adds the dimensions. Those without a name are named after their length."""
    names = dataset.dimensions or (None,) * len(dataset.shape)
    if len(names) != len(dataset.shape):
        raise ValueError(f"{len(names)} names for {len(dataset.shape)} dimensions")
    known = list(header.dimensions)
    indices: list[int] = []
    for place, (name, length) in enumerate(zip(names, dataset.shape, strict=True)):
        wanted = 0 if is_record and place == 0 else length
        if wanted == 0 and not (is_record and place == 0):
            raise ValueError("a dimension of length 0 is the record dimension in classic netCDF: make it resizable")
        indices.append(_dimension(known, (name, wanted), indices))
    return replace(header, dimensions=tuple(known)), tuple(indices)


def _dimension(known: list[ClassicDimension], wanted: tuple[str | None, int], used: Sequence[int]) -> int:
    name, length = wanted
    for index, one in enumerate(known):
        if name is None and one.length == length and index not in used:
            return index
        if name is not None and one.name == name:
            if one.length != length:
                lengths = f"{one.length or 'unlimited'}, not {length or 'unlimited'}"
                raise ValueError(f"dimension {name!r} has length {lengths}")
            return index
        if length == 0 and one.length == 0:
            raise ValueError(f"the unlimited dimension is {one.name!r}; classic netCDF has only one")
    name = name if name is not None else _free_name("record" if length == 0 else f"dim_{length}", known)
    _check_name(name, "a dimension")
    known.append(ClassicDimension(name, length))
    return len(known) - 1


def _free_name(plain: str, known: Sequence[ClassicDimension]) -> str:
    taken = {one.name for one in known}
    names = (plain if turn == 1 else f"{plain}_{turn}" for turn in itertools.count(1))
    return next(name for name in names if name not in taken)


def _check_size(header: Header, variable: Variable) -> None:
    if header.version == 5:
        return
    if header.row_bytes(variable) > _LARGEST_ROW or max(header.row_shape(variable), default=0) > _LARGEST_LENGTH:
        raise ValueError(f"it is too large for CDF-{header.version}; CDF-5 has no such limit")


def _check_name(name: str, what: str) -> None:
    """Stricter than the parser: what netCDF's own library would refuse is not written."""
    bad = any(ord(letter) < 0x20 or letter in "/\x7f" for letter in name)
    if not name or bad or name != name.rstrip() or not (name[0].isalnum() or name[0] == "_" or ord(name[0]) > 0x7F):
        raise ValueError(f"{name!r} is not a valid name for {what} in netCDF")
    check_length(name, what)


def need_version(file: str, version: int) -> int:
    if version not in (2, 5):
        raise Error(operation="create", file=file, cause=f"CDF-{version} is not written", advice="use version 2 or 5")
    return version
