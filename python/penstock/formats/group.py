"""Group: the datasets below a prefix, as a mapping from the rest of their names to Dataset.

A DataFile is the group without a prefix. The mapping is flat: keys are whole paths below the group, so that each key
gives a dataset; `groups()` and indexing with a prefix walk the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from penstock._arrays.foreign_words import WordsOfGroups
from penstock._arrays.like import as_like
from penstock._error import Error
from penstock.formats.attributes import Attributes
from penstock.formats.dataset import Dataset
from penstock.formats.loading import Loaded, load_all
from penstock.formats.model import DatasetInfo
from penstock.formats.reading.request import Request, request, user_shape
from penstock.formats.reference import Reference, as_reference
from penstock.formats.state import FileState

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._api import ReadOptions
    from penstock._arrays.array import Array
    from penstock.formats.pending import Pending

_SHOWN = 20  # datasets that repr lists
Like = TypeVar("Like")


class Group(WordsOfGroups, Mapping[str, "Entry"]):
    """`group["name"]` is a Dataset, or the Group of all that begins with "name/"."""

    _kind = ""  # in place of its prefix, for repr

    def __init__(self, file: FileState, prefix: str) -> None:
        self._file, self._prefix = file, prefix

    def __reduce__(self) -> tuple[Any, ...]:
        return Group, (self._file, self._prefix)

    @property
    def name(self) -> str:
        """As it was asked for, from the file on."""
        return self._prefix

    @property
    def attrs(self) -> Attributes:
        """Attributes of the group or file, a mapping; of a file open for writing they can be set."""
        return self._file.attributes(self._prefix)

    def __getitem__(self, name: str | Reference) -> Entry:
        """The dataset or group of that name in this group, or what a Reference leads to in the file. Raises KeyError
        with the names that come closest."""
        if not isinstance(name, str):
            reference = as_reference(name)
            if reference is not None:
                return self._led_to(reference)
            raise TypeError(f"names of datasets are text, not {name!r}")
        whole = self._whole(name)
        if not whole.strip("/") and name:
            return cast("Entry", Group(self._file, ""))
        info = self._file.described(whole)
        if info is None:
            return cast("Entry", Group(self._file, whole.strip("/")))
        return cast("Entry", Dataset(self._file, whole, info))

    def _led_to(self, reference: Reference) -> Entry:
        if not reference:
            raise KeyError(f"{self._file.name}: the reference leads nowhere")
        return Group(self._file, "")[reference.name]

    if not TYPE_CHECKING:  # a file takes values; a type checker says that a group does not

        def __setitem__(self, name: str, value: object) -> None:
            raise TypeError(f"a group makes no datasets: write file[{self._whole(name)!r}] = value")

    def _whole(self, name: str) -> str:
        """A name that begins with a slash is one of the file, where slashes make groups."""
        if not self._prefix or (name.startswith("/") and self._file.kind.has_groups):
            return name
        return f"{self._prefix}/{name}"

    def __iter__(self) -> Iterator[str]:
        start = len(f"{self._prefix}/") if self._prefix else 0
        return (name[start:] for name in self._file.names_in(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except Error:  # it is there, and cannot be read
            return True
        except KeyError:
            return False

    @overload
    def read_many(
        self, names: Sequence[str], *, stream: Any = None, **options: Unpack[ReadOptions]
    ) -> Pending[dict[str, Array]]: ...
    @overload
    def read_many(
        self, names: Mapping[str, Any], *, stream: Any = None, **options: Unpack[ReadOptions]
    ) -> Pending[dict[str, Any]]: ...
    def read_many(
        self, names: Sequence[str] | Mapping[str, Any], *, stream: Any = None, **options: Unpack[ReadOptions]
    ) -> Pending[Any]:
        """Starts reading several datasets in one submission, into one new buffer that their arrays share.

        `names`: names, or a mapping from names to selections (None: all; elements by number are a list), or to memory
        to fill (an array, as `out`).
        `result()` of what it returns is a dict of arrays.
        """
        return self._start_many(names, stream, options)

    def _start_many(
        self, names: Sequence[str] | Mapping[str, Any], stream: Any, options: Mapping[str, Any], background: bool = True
    ) -> Pending[dict[str, Any]]:
        if isinstance(names, str):
            raise TypeError(f"names are a list, or a mapping: [{names!r}] in place of {names!r}")
        chosen = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
        infos = self._file.infos([self._whole(name) for name in chosen])
        requests = [_wanted(info, wish) for info, wish in zip(infos, chosen.values(), strict=True)]
        take = lambda got: dict(zip(chosen, got, strict=True))  # noqa: E731 - it has no other name
        return self._file.start_read(requests, stream, options, take=take, background=background)

    @overload
    def load(
        self,
        names: Sequence[str] | None = None,
        *,
        like: None = None,
        stream: Any = None,
        **options: Unpack[ReadOptions],
    ) -> dict[str, Array]: ...
    @overload
    def load(
        self,
        names: Sequence[str] | None = None,
        *,
        like: Like,
        stream: Any = None,
        **options: Unpack[ReadOptions],
    ) -> dict[str, Like]: ...
    def load(
        self,
        names: Sequence[str] | None = None,
        *,
        like: Any = None,
        stream: Any = None,
        **options: Unpack[ReadOptions],
    ) -> dict[str, Any]:
        """The datasets of these names, or all, read in one submission. `like`: an array of the library whose arrays you
        want.

        Raises Error when one that is named cannot be read. Of all, those that cannot are left out with an
        UnreadableWarning that says why; the result's `unreadable` has the Error of each, and asking for one raises it.
        Error when none can be read, and, with strict=True, when one cannot."""
        if names is None:
            found = load_all(self._file, {name: self._whole(name) for name in self}, stream, options)
            return Loaded({name: as_like(array, like) for name, array in found.items()}, found.unreadable)
        got = self._start_many(names, stream, options, background=False).result()
        return {name: as_like(array, like) for name, array in got.items()}

    def groups(self) -> list[str]:
        """Names of the groups directly below."""
        return list(dict.fromkeys(name.split("/")[0] for name in self if "/" in name))

    def visititems(self, function: Callable[[str, Dataset], Any]) -> Any:
        """As visit()."""
        return self.visit(function)

    def visit(self, function: Callable[[str, Dataset], Any]) -> Any:
        """Calls function(name, dataset) for each dataset, until one call returns what is not None: that is returned."""
        for name in self:
            found = function(name, self[name])
            if found is not None:
                return found
        return None

    def __bool__(self) -> bool:
        """Whether its file is open, as of h5py's; len() tells whether there are datasets."""
        return not self._file.closed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self._file is other._file and self._prefix == other._prefix

    def __hash__(self) -> int:
        return hash((id(self._file), self._prefix))

    def _line(self, name: str) -> str:
        try:
            whole = self._whole(name)
            info, why = self._file.info(whole), self._file.ask(lambda source: source.hindrance(whole))
        except (Error, KeyError) as error:
            return f"  {_shown(name)}  cannot be read: {_shown(getattr(error, 'cause', '') or str(error))}"
        return f"  {_shown(name)}  {user_shape(info)}  {info.dtype}" + (
            f"  cannot be read: {_shown(why)}" if why else ""
        )

    def __repr__(self) -> str:
        file = self._file
        kind = self._kind or f"Group {self._prefix!r} of"
        if file.closed:
            return f"<penstock.{kind} {file.name!r}, {file.format}, closed>"
        names = list(self)
        count = "1 dataset" if len(names) == 1 else f"{len(names)} datasets"
        lines = [f"<penstock.{kind} {file.name!r}, {file.format}, {count}, to {file.device}>"]
        lines += [self._line(name) for name in names[:_SHOWN]]
        if len(names) > _SHOWN:
            lines.append(f"  and {len(names) - _SHOWN} more")
        return "\n".join(lines)


if TYPE_CHECKING:

    class Entry(Dataset, Group):
        """What a name gives, as type checkers see it: the file decides whether it is a Dataset or a Group, so both of
        their members are known. At run time it is one of the two, and isinstance() tells."""

        @overload  # type: ignore[override]
        def __getitem__(self, selection: str | Reference) -> Entry: ...
        @overload
        def __getitem__(self, selection: Any) -> Array: ...
        def __getitem__(self, selection: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...


def _shown(text: str) -> str:
    """What could change a terminal, or be no UTF-8, as an escape."""
    return text if text.isprintable() else repr(text)[1:-1]


def _wanted(info: DatasetInfo, wish: Any) -> Request:
    """A wish of read_many: nothing, a selection, or memory to fill."""
    if wish is None:
        return request(info)
    parts = wish if isinstance(wish, tuple) else (wish,)
    is_index = all(part is Ellipsis or isinstance(part, (int, slice, list, range)) for part in parts)
    return request(info, wish) if is_index else request(info, ..., wish)
