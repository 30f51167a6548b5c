"""What Python's own operators make of an array: a number of one element, no comparison and no arithmetic.

Without these Python helps itself: int() and float() would parse the memory as text, `==` and `in` would compare
identities and say False, of arrays in memory and of those that are still in a file. What must stay true: an answer is
that of the elements, or an error says what to do; a library that can answer for the other operand is asked.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from penstock._arrays.dtype import DType

_ADVICE = "to_numpy() gives a copy for NumPy, cupy.asarray(array) and torch.from_dlpack(array) share it"


class NoArithmetic:
    """Base of arrays: their operators say what does know arithmetic.

    A type checker does not see these methods, so that it refuses `array + 1` too.
    """

    __slots__ = ()

    def _refuse(self, operator: str) -> NoReturn:
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Methods of NumPy's arrays are told to be absent as operators are; anything else in Python's words."""
            numpy = sys.modules.get("numpy")
            if name.startswith("_") or hasattr(type(self), name) or not hasattr(getattr(numpy, "ndarray", None), name):
                return object.__getattribute__(self, name)
            try:
                self._refuse(f".{name}")
            except TypeError as error:
                raise AttributeError(str(error), name=name, obj=self) from None


def _left_of(operator: str) -> Callable[..., Any]:
    def refuse(self: NoArithmetic, other: object, *_modulus: object) -> Any:
        """Numbers have no answer; anything else is asked next."""
        plain = isinstance(other, (bool, int, float, complex, NoArithmetic)) and not _reads(other)
        return self._refuse(operator) if plain else NotImplemented

    return refuse


def _right_of(operator: str) -> Callable[..., Any]:
    def refuse(self: NoArithmetic, other: object) -> Any:
        """The other operand had no answer, unless it is a sequence: Python joins and repeats those after this."""
        return NotImplemented if isinstance(other, Sequence) else self._refuse(operator)

    return refuse


def _before(operator: str) -> Callable[..., Any]:
    return lambda self: self._refuse(operator)


def _refuse_operators() -> None:
    binary = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "divmod": "divmod()"}
    binary |= {"pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
    order = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    for name, sign in (binary | order).items():
        setattr(NoArithmetic, f"__{name}__", _left_of(sign))
    for name, sign in binary.items():
        setattr(NoArithmetic, f"__r{name}__", _right_of(sign))
    for name, sign in {"neg": "-", "pos": "+", "invert": "~", "abs": "abs()"}.items():
        setattr(NoArithmetic, f"__{name}__", _before(sign))


_refuse_operators()


class AsNumber(NoArithmetic):
    """Base of Array."""

    __slots__ = ()

    if TYPE_CHECKING:
        dtype: DType
        shape: tuple[int, ...]

        @property
        def size(self) -> int: ...
        def item(self) -> Any: ...
        def to_numpy(self) -> Any: ...

    def _number(self) -> Any:
        if self.size != 1:
            raise TypeError(f"an array of {self.size} elements is not a number; {_ADVICE}")
        if self.dtype.kind == "V":
            raise TypeError(
                f"an element of type {self.dtype} is not a number; use .field(name), .view(type) or to_numpy()"
            )
        return self.item()

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        """Of integers without dimensions only, as in NumPy."""
        if self.shape or self.dtype.kind not in "iu":
            raise TypeError(
                f"an array of shape {self.shape} of {self.dtype} is not an index; int(array) takes one element"
            )
        return self._number()

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._number(), digits)

    def __trunc__(self) -> int:
        return math.trunc(self._number())

    def __floor__(self) -> int:
        return math.floor(self._number())

    def __ceil__(self) -> int:
        return math.ceil(self._number())

    def __format__(self, specification: str) -> str:
        """`f"{array:.3f}"` formats the one element; without a specification it is str(array)."""
        return format(self._number(), specification) if specification else str(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is neither true nor false; {_ADVICE}")
        return bool(self._number())

    def __bytes__(self) -> bytes:
        """The elements; Python would take an integer without dimensions for a number of zeros."""
        return self.to_numpy().tobytes()

    def __eq__(self, other: object) -> bool:
        """Itself only: weak dictionaries need that. Elements are compared by the libraries that know arithmetic."""
        return self is other or self._refuse("==")

    def __ne__(self, other: object) -> bool:
        return self is not other and self._refuse("!=")

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, value: object) -> bool:
        self._refuse("in")

    if not TYPE_CHECKING:

        def __setitem__(self, index: object, value: object) -> NoReturn:
            self._refuse("[...] =")

    def _refuse(self, operator: str) -> NoReturn:
        raise TypeError(f"a penstock.Array has no {operator!r}: it knows no arithmetic; {_ADVICE}")


class Unread(NoArithmetic):
    """Base of arrays in files: they equal themselves, and have no elements to compare before they are read."""

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        """Libraries of arrays (NumPy, xarray, ...) may read it and compare the elements themselves."""
        if self._is(other):
            return True
        return NotImplemented if _reads(other) else self._refuse("==")

    def __ne__(self, other: object) -> Any:
        if self._is(other):
            return False
        return NotImplemented if _reads(other) else self._refuse("!=")

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, value: object) -> bool:
        self._refuse("in")

    def _is(self, other: object) -> bool:
        return self is other

    def _refuse(self, operator: str) -> NoReturn:
        kind = type(self).__name__
        advice = f"numpy.asarray({kind.lower()}[...])" if kind == "Dataset" else f"{kind.lower()}[...].to_numpy()"
        raise TypeError(f"a penstock.{kind} has no {operator!r}: its elements are in a file; read them: {advice}")


def _reads(other: object) -> bool:
    """Whether the other side is an array or a scalar whose library compares elements: NumPy, or one that is like it."""
    return hasattr(type(other), "__array_ufunc__") or hasattr(type(other), "__array_struct__")
