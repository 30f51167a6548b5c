"""Words of h5py that datasets and groups know, and what to write for those of h5py, netCDF4 and zarr that they do not.

Programs that read with those ask for these. What must stay true: a word that is here means what it means in h5py; one
that is not is an AttributeError which says what to write in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import numpy as np

_OF_DATASETS = {
    "compression": "dataset.filters has the names of its filters",
    "compression_opts": "dataset.filters has the names of its filters",
    "shuffle": "dataset.filters has the names of its filters",
    "fletcher32": "dataset.filters has the names of its filters",
    "scaleoffset": "dataset.filters has the names of its filters",
    "fillvalue": "dataset.info.fill has its bytes",
    "is_virtual": "dataset.info.layout says so",
    "virtual_sources": "dataset.extents() has the files that its elements lie in",
    "external": "dataset.extents() has the files that its elements lie in",
    "is_scale": "dataset.attrs has CLASS, by which HDF5 knows scales",
    "make_scale": "give create_dataset the names of dimensions, in netCDF-4",
    "resize": "dataset.append(rows) lets it grow, where it was made with resizable=",
    "write_direct": "dataset.write(array, selection) writes",
    "refresh": "open the file again",
    "flush": "close the file",
    "dimensions": "dataset.dims has the names of its dimensions",
    "set_auto_mask": "elements are as stored; xarray with engine='penstock' masks and scales them",
    "set_auto_maskandscale": "elements are as stored; xarray with engine='penstock' masks and scales them",
    "set_auto_scale": "elements are as stored; xarray with engine='penstock' masks and scales them",
    "fill_value": "dataset.info.fill has its bytes",
    "oindex": "dataset[index] takes a list in one dimension",
    "vindex": "dataset[index] takes a list in one dimension, or a mask of its shape",
    "blocks": "dataset[index] reads; dataset.iter_chunks() has the index of each chunk",
    "compressors": "dataset.filters has the names of its filters",
    "shards": "dataset.info has what is known of its layout",
}
_OF_GROUPS = {
    "create_dataset": 'file.create_dataset("group/name", shape, dtype) makes one in a group',
    "create_group": 'a new dataset "group/name" makes its groups',
    "require_group": 'a new dataset "group/name" makes its groups',
    "require_dataset": "file.create_dataset(name, shape, dtype) makes one, `name in file` tells whether it is there",
    "create_virtual_dataset": "h5py makes those, and Penstock reads them",
    "visititems_links": "links are followed, and not told",
    "visit_links": "links are followed, and not told",
    "copy": "file[name] = other[name][...] copies elements",
    "move": "names cannot be changed",
    "pop": "datasets cannot be removed",
    "flush": "close the file",
    "variables": "file[name] is a variable, and the file lists their names",
    "dimensions": "dataset.dims has the names of its dimensions, dataset.shape their lengths",
    "arrays": "group.items() has names and datasets",
    "array_keys": "group.keys() has the names of all datasets below",
    "group_keys": "group.groups() has the names of groups",
    "tree": "print(file) lists its datasets",
}
_OF_BOTH = {
    "id": "h5py.File(name) has objects of HDF5",
    "ncattrs": ".attrs is a mapping of its attributes",
    "getncattr": ".attrs[name] is an attribute",
    "setncattr": ".attrs[name] = value sets an attribute",
    "file": "it is the file that you opened",
    "parent": "it is the group that you asked",
    "ref": "h5py makes references, and Penstock follows them",
    "regionref": "h5py makes references, and Penstock follows them",
}


class ForeignWords:
    """Base of datasets and groups."""

    __slots__ = ()
    _instead: Mapping[str, str] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            advice = None if name.startswith("_") else self._instead.get(name) or self._as_attribute(name)
            if advice is not None:
                kind = type(self).__name__
                raise AttributeError(f"a penstock.{kind} has no .{name}: {advice}", name=name, obj=self)
            above = getattr(super(), "__getattr__", None)
            return object.__getattribute__(self, name) if above is None else above(name)

        def _as_attribute(self, name: str) -> str | None:
            """The way to an attribute of the file, which netCDF4 shows as one of the object."""
            try:
                return f".attrs[{name!r}] has it" if name in self.attrs else None
            except Exception:  # noqa: BLE001 - whatever hinders, the name is none of the object
                return None


class WordsOfGroups(ForeignWords):
    """Base of groups and files."""

    _instead = _OF_BOTH | _OF_GROUPS


class WordsOfDatasets(ForeignWords):
    """Base of datasets."""

    _instead = _OF_BOTH | _OF_DATASETS

    if TYPE_CHECKING:
        info: Any
        name: str

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def chunks(self) -> tuple[int, ...] | None: ...
        def read(self, selection: Any = ..., *, out: Any = None) -> Any: ...

    @property
    def maxshape(self) -> tuple[int | None, ...]:
        """The largest shape that it may grow to; None: without end."""
        most = self.info.resizable
        if most is None:
            return self.shape
        return tuple(most) if self.info.order == "C" else tuple(most)[::-1]

    def len(self) -> int:
        """As len(), for those whose first dimension is too long for it."""
        if not self.shape:
            raise TypeError("a dataset without dimensions has no length")
        return self.shape[0]

    def iter_chunks(self, selection: Any = None) -> Iterator[tuple[slice, ...]]:
        """Selections, one for each chunk, in order. TypeError of a dataset without chunks. `selection`: only of chunks
        that this part has elements of: slices without steps."""
        chunks = self.chunks
        if chunks is None:
            raise TypeError(f"dataset {self.name!r} has no chunks")
        parts = () if selection is None else selection if isinstance(selection, tuple) else (selection,)
        if not all(isinstance(part, slice) for part in parts) or len(parts) > len(self.shape):
            raise TypeError("a selection of iter_chunks is made of slices, one for each dimension at most")
        bounds = [part.indices(extent) for part, extent in zip(parts, self.shape, strict=False)]
        if any(step != 1 for _, _, step in bounds):
            raise ValueError("a selection of iter_chunks has no steps")
        spans = [(start, stop) for start, stop, _ in bounds]
        spans += [(0, extent) for extent in self.shape[len(bounds) :]]
        return product(*(_parts(*span, size) for span, size in zip(spans, chunks, strict=True)))

    def read_direct(self, dest: Any, source_sel: Any = None, dest_sel: Any = None) -> None:
        """Reads into memory of yours, of the same type and shape as the selection; see read(out=)."""
        into = dest if dest_sel is None else dest[dest_sel]
        self.read(... if source_sel is None else source_sel, out=into)

    def fields(self, names: Any) -> Fields:
        """Of compound elements the member of this name, or the members: `dataset.fields("x")[:10]`."""
        return Fields(self, names)

    def astype(self, dtype: Any) -> Converting:
        """`dataset.astype("f8")[:10]` is an array of NumPy, in host memory, that NumPy has converted."""
        return Converting(self, lambda values: values.astype(dtype)[()])

    def asstr(self, encoding: str | None = None, errors: str = "strict") -> Converting:
        """`dataset.asstr()[:10]` is an array of NumPy with a str for each element, and `[0]` a str. TypeError of what
        is no text."""
        dtype = self.info.dtype
        if dtype.kind != "S" and dtype.name != "text":
            raise TypeError(f"dataset {self.name!r} has elements of {dtype}, which are no text")
        return Converting(self, lambda values: _texts(values, encoding or "utf-8", errors))


class Fields:
    """Members of the elements of a dataset, which indexing reads."""

    def __init__(self, dataset: Any, names: Any) -> None:
        self._dataset, self._names = dataset, names
        for name in [names] if isinstance(names, str) else names:
            dataset.info.dtype.member(name)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, selection: Any) -> Any:
        names = self._names
        return self._dataset[(names, selection)] if isinstance(names, str) else self._dataset[(*names, selection)]


class Converting:
    """A dataset whose elements are converted on the host when they were read."""

    def __init__(self, dataset: Any, convert: Any) -> None:
        self._dataset, self._convert = dataset, convert

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, selection: Any) -> Any:
        return self._convert(self._dataset[selection].to_numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        import numpy as np

        return np.asarray(self[...], dtype)


def _parts(start: int, stop: int, size: int) -> list[slice]:
    """The part of [start, stop) in each chunk that it meets."""
    firsts = range(start - start % size, stop, size) if start < stop else ()
    return [slice(max(at, start), min(at + size, stop), 1) for at in firsts]


def _texts(values: np.ndarray, encoding: str, errors: str) -> Any:
    """Text of fixed length is bytes, of variable length str, in which half characters stand for what is no UTF-8."""
    import numpy as np

    made = np.empty(values.size, object)
    for number, one in enumerate(values.ravel()):
        stored = one.encode("utf-8", "surrogateescape") if isinstance(one, str) else bytes(one).rstrip(b"\0")
        made[number] = stored.decode(encoding, errors)
    return made.reshape(values.shape)[()]
