"""Arrays under Python's own operators: numbers of one element, and comparisons that are refused."""

from __future__ import annotations

import gc
import operator
import weakref
from typing import Any

import numpy as np
import pytest
from array_rig import filled

import penstock

NUMBERS = ["bool", "int8", "uint16", "<i4", ">i8", "uint64", "float16", "<f4", ">f8", "complex64"]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("value", [0, 1, 49])  # 49 is the text "1" in memory
@pytest.mark.parametrize("convert", [int, float, complex, bool, operator.index, bytes])
def test_an_element_is_the_number_that_numpy_makes_of_it(
    context: penstock.Context, dtype: str, value: int, convert: Any
) -> None:
    content = np.array(value, dtype)
    array = filled(context, content)
    if convert is bytes:
        assert bytes(array) == content.astype(content.dtype.newbyteorder("=")).tobytes()
        return
    try:
        expected = convert(content)
    except TypeError:
        with pytest.raises(TypeError):
            convert(array)
        return
    assert convert(array) == expected
    assert type(convert(array)) is type(expected)
    if convert is not operator.index:
        assert convert(array.reshape(1, 1)) == expected


@pytest.mark.parametrize("count", [0, 2, 3])
def test_several_elements_are_no_number(context: penstock.Context, count: int) -> None:
    array = filled(context, np.full(count, ord("7"), "uint8"))
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match=f"array of {count} elements is no number; to_numpy"):
            convert(array)
    with pytest.raises(ValueError, match=f"array of {count} elements is neither true nor false"):
        bool(array)
    for content in (np.zeros(1, "int32"), np.zeros((), "bool"), np.zeros((), "float32")):
        with pytest.raises(TypeError, match="is no index"):
            operator.index(filled(context, content))


def test_raw_and_compound_elements_are_no_number(context: penstock.Context) -> None:
    for content in (np.array(b"7", "S1").view("V1"), np.zeros((), "i4,i4")):
        for convert in (int, float, complex, bool):
            with pytest.raises(TypeError, match="is no number"):
                convert(filled(context, content))


def test_comparing_elements_is_refused_and_says_what_to_do(context: penstock.Context) -> None:
    array, other = (filled(context, np.arange(3.0)) for _ in range(2))
    comparisons: list[Any] = [
        lambda: array == other,
        lambda: array != other,
        lambda: array == 1.0,
        lambda: 1.0 == array,  # noqa: SIM300
        lambda: 1.0 in array,
        lambda: array in [other],
        lambda: [other].index(array),
    ]
    for compare in comparisons:
        with pytest.raises(TypeError, match="no '(==|!=|in)': it knows no arithmetic; to_numpy"):
            compare()
    assert (np.arange(3.0) == array).all()  # NumPy takes the elements


def test_arrays_are_kept_and_found_by_identity(context: penstock.Context) -> None:
    array, other = (filled(context, np.arange(3.0)) for _ in range(2))
    assert array == array  # noqa: PLR0124
    assert not array != array  # noqa: PLR0124, SIM202
    assert {array: 1, other: 2}[array] == 1
    assert len({array, other}) == 2
    kept: Any = weakref.WeakKeyDictionary({array: 1, other: 2})
    assert kept[array] == 1
    assert array in weakref.WeakSet([other, array])
    held = [array, other]
    held.remove(array)
    assert len(held) == 1
    del array
    gc.collect()
    assert len(kept) == 1
